"""A run's note: what came of it in one line, beside the run in Airflow's list.

A task of Airflow 3.3 cannot write a note: its API has no such request. So a task leaves the line as an XCom, and a
listener in the scheduler (``plugin``) makes it the run's note once the run is over.
"""

from typing import Any, Final

KEY: Final = "run_note"
"""The XCom's key."""
LONGEST: Final = 1000
"""Characters of a note that Airflow takes."""


def leave_note(ti: Any, text: str) -> None:
    """Let the text be the run's note once the run is over; the last one of a run counts."""
    ti.xcom_push(key=KEY, value=text[:LONGEST])
