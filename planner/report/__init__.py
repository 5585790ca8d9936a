"""One self-contained page that shows what was decided and why."""

from planner.report.write import write_report

__all__ = ["write_report"]
