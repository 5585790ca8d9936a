"""A live run observes the present: it cannot stand for a time that is over."""

from datetime import UTC, datetime, timedelta
from typing import Final

from planner.errors import BadInputError

LATE: Final = timedelta(days=1)
"""A run may begin so long after its time: an Airflow that was down, or a run that was cleared the same day."""


def check_present(run_type: str, logical_date: datetime | None, now: datetime | None = None) -> None:
    """Raise ``BadInputError`` for a live run that stands for the past: a backfill, or a time more than a day ago.

    Brokers show the present alone: what such a run observed would be decided on under an old date.
    """
    if run_type == "backfill":
        past = "a backfill"
    elif logical_date is not None and (now or datetime.now(UTC)) - logical_date > LATE:
        past = f"the run of {logical_date.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    else:
        return
    raise BadInputError(
        f"{past} cannot be observed live: brokers show the present alone. Start consumer_planner_replay for the past, "
        "or a new run for the present"
    )
