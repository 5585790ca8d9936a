"""The made tables of ``docs/conformance.md``: one a system, between two marks, from the committed observations."""

from collections.abc import Sequence
from pathlib import Path

from tests.conformance.report import Compared, table

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
END = "<!-- /made -->"


def read_table(page: str, system: str) -> str:
    """Return what stands between the marks of a system. Raises ``ValueError`` where a mark is missing."""
    return page[slice(*_span(page, system))]


def replace_table(page: str, system: str, compared: Sequence[Compared]) -> str:
    """Return the page with the system's table of now. Raises ``ValueError`` where a mark is missing."""
    begin, end = _span(page, system)
    return page[:begin] + table(compared) + page[end:]


def _span(page: str, system: str) -> tuple[int, int]:
    mark = f"<!-- made by make conformance-report: {system} -->\n\n"
    begin = page.index(mark) + len(mark)
    return begin, page.index(f"\n\n{END}", begin)
