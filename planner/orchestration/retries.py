"""Which errors Airflow tries again: those that a retry may help."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from planner.errors import PlannerError


@contextmanager
def without_useless_retries() -> Iterator[None]:
    """Let an error that no retry can help fail the task at once, with its one sentence."""
    try:
        yield
    except PlannerError as error:
        if error.can_retry:
            raise
        raise AirflowFailException(str(error)) from error
