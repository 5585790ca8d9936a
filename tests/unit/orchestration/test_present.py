"""Which live runs are refused: those that stand for a time that is over."""

from datetime import UTC, datetime, timedelta

import pytest

from planner.errors import BadInputError
from planner.orchestration.present import check_present

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize("late", [None, timedelta(0), timedelta(hours=23), -timedelta(hours=1)])
def test_a_run_of_today_is_observed(late: timedelta | None) -> None:
    check_present("scheduled", None if late is None else NOW - late, NOW)


def test_a_backfill_and_a_day_that_is_over_are_refused() -> None:
    with pytest.raises(BadInputError, match=r"^a backfill cannot be observed live: .* Start consumer_planner_replay"):
        check_present("backfill", NOW, NOW)
    with pytest.raises(BadInputError, match=r"^the run of 2026-11-20 11:00 UTC cannot be observed live"):
        check_present("manual", NOW - timedelta(hours=25), NOW)
