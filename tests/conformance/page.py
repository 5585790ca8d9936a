"""The made tables of ``docs/conformance.md``, each between two marks, from the committed observations.

One is of each system, and ``LATENESS`` of Kafka's stalls.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.conformance.report import Compared, lateness_table, table

LATENESS = "kafka, stalls"
TABLES = {"rocketmq": table, "kafka": table, LATENESS: lateness_table}
"""What each table is made by."""
PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
END = "<!-- /made -->"


def read_table(page: str, name: str) -> str:
    """Return what stands between the marks of a table. Raises ``ValueError`` where a mark is missing."""
    return page[slice(*_span(page, name))]


def replace_table(page: str, name: str, compared: Sequence[Compared]) -> str:
    """Return the page with the table of now. Raises ``ValueError`` where a mark is missing."""
    begin, end = _span(page, name)
    return page[:begin] + TABLES[name](compared) + page[end:]


def _span(page: str, name: str) -> tuple[int, int]:
    mark = f"<!-- made by make conformance-report: {name} -->\n\n"
    begin = page.index(mark) + len(mark)
    return begin, page.index(f"\n\n{END}", begin)
