"""What earlier forecasts of a group came to: counted by figure, doubted only where chance cannot be the reason."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from planner.rollout.plan import GroupRef
from planner.verification.calibration import CalibrationRecord, Miss
from planner.verification.track import BY_CHANCE, LAST, LEAST, Tally, TrackRecord, track_record
from planner.verification.verdict import Fit

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
IN, OUT, UNKNOWN = Fit.INSIDE, Fit.OUTSIDE, Fit.UNKNOWN
PAUSE = "longest pause"


def record(number: int, fit: Fit, name: str = PAUSE, width: float | None = 1.0) -> CalibrationRecord:
    miss = Miss(name, "seconds", fit, None, width)
    at = AT + timedelta(days=number)
    return CalibrationRecord(GroupRef("rocketmq", "c", "shop"), "p", "AVG", None, 2, 3, 8, "sha256:s", at, (miss,))


def track(*fits: Fit, name: str = PAUSE) -> TrackRecord:
    return track_record("shop", [record(number, fit, name) for number, fit in enumerate(fits)])


def test_without_records_it_says_so() -> None:
    assert track().lines == ("No forecast of group shop was judged yet.",)
    assert track().doubts == ()


def test_each_figure_is_counted_and_what_was_not_forecast_is_left_out() -> None:
    records = [record(0, IN), record(1, OUT), record(2, UNKNOWN), record(3, UNKNOWN, width=None)]
    more = replace(records[3].misses[0], name="duplicates", fit=IN, width=0.0)
    found = track_record("shop", [*records[:3], replace(records[3], misses=(more, *records[3].misses))])
    assert found.tallies == (Tally("duplicates", 1, 0, 0), Tally(PAUSE, 1, 1, 1))
    assert found.lines == (
        "Of the last 4 forecasts of group shop (2026-11-21 to 2026-11-24): duplicates inside 1 of 1; longest pause "
        "inside 1 of 3, outside 1, unknown 1.",
    )


def test_what_is_long_ago_is_no_longer_looked_at() -> None:
    found = track(*[OUT] * 9, *[IN] * LAST)
    assert (found.forecasts, found.tallies) == (LAST, (Tally(PAUSE, LAST, 0, 0),))


@pytest.mark.parametrize(
    ("fits", "is_doubtful"),
    [
        ([OUT] * (LEAST - 1), False),  # too few to say anything
        ([OUT] * 3 + [IN] * 2, True),  # once in 117 by chance
        ([OUT] * 2 + [IN] * 3, False),  # once in 12
        ([OUT] * 3 + [UNKNOWN] * 2, True),
        ([OUT] * 3 + [UNKNOWN] * 7, False),  # those nobody saw may all have been inside
        ([OUT] * 7 + [IN] * 13, True),
        ([OUT] * 6 + [IN] * 14, False),  # once in 89
    ],
)
def test_more_misses_than_chance_brings_are_a_doubt_and_what_nobody_saw_is_none(
    fits: list[Fit], is_doubtful: bool
) -> None:
    assert bool(track(*fits).doubts) is is_doubtful


def test_a_doubt_is_told_with_its_chance() -> None:
    (doubt,) = track(*[OUT] * 3, *[IN] * 2).doubts
    assert doubt == (
        "longest pause was missed in 3 of 5 forecasts of group shop, which intervals that hold nine times of ten come "
        "to once in 117"
    )
    assert track(*[OUT] * 3, *[IN] * 2).lines[1] == f"Doubt this: {doubt}."


def test_what_is_forecast_at_the_upper_rate_is_told_and_not_doubted() -> None:
    found = track(*[OUT] * 20, name="busiest consumer")
    assert found.doubts == ()
    assert "busiest consumer inside 0 of 20, outside 20" in found.lines[0]


def test_true_intervals_are_doubted_no_more_often_than_promised() -> None:
    """20 000 groups whose intervals hold exactly nine times of ten, with any number of records."""
    random = np.random.default_rng(7)
    for forecasts in range(1, LAST + 1):
        missed = random.binomial(forecasts, 0.1, 20_000)
        doubted = [Tally(PAUSE, forecasts - misses, misses, 0).is_doubtful for misses in range(forecasts + 1)]
        assert np.mean(np.array(doubted)[missed]) <= BY_CHANCE * 1.25
