"""Which errors Airflow tries again: those that a retry may help."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from planner.errors import PlannerError
from planner.orchestration.run_notes import leave_note


@contextmanager
def without_useless_retries(ti: Any = None, counts: str = "") -> Iterator[None]:
    """Let an error that no retry can help fail the task at once, with its one sentence.

    Given ``ti``, the sentence is the run's note as well, behind the ``counts``: whoever looks at the list of runs reads
    it there. A later try or task that leaves another note takes its place.
    """
    try:
        yield
    except PlannerError as error:
        if ti is not None:
            leave_note(ti, f"{counts}: {error}" if counts else str(error))
        if error.can_retry:
            raise
        raise AirflowFailException(str(error)) from error
