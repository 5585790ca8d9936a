"""A notifier that keeps what it is asked to say."""

from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


class NotingNotifier(BaseNotifier):
    """Adds a line to a file for each notification."""

    template_fields = ("line",)

    def __init__(self, file: str, line: str) -> None:
        super().__init__()
        self.file, self.line = file, line

    def notify(self, context: Any) -> None:  # noqa: ARG002
        """Add the line."""
        with Path(self.file).open("a", encoding="utf-8") as file:
            file.write(f"{self.line}\n")
