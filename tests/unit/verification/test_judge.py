import math
from datetime import UTC, datetime

import pytest

from planner.rollout.plan import Cost, Forecast, GroupRef, OwnedQueues, Preconditions, RolloutPlan, SnapshotRef
from planner.rollout.steps import AwaitReady, MovedQueues
from planner.simulation.outcome import Messages, Seconds
from planner.verification.calibration import calibration_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.verdict import Figure, Fit, Verdict

AT = datetime(2026, 11, 21, 10, 40, tzinfo=UTC)
MOVED = MovedQueues(4, 7)
COST = Cost(
    pause_seconds=Seconds(0.3, 0.4, 0.6),
    stall_seconds=None,
    duplicates=Messages(12, 18, 25),
    burst_messages=Messages(1, 1, 1),
    settle_seconds=Seconds(1.9, 2.5, 3.1),
    drained_seconds=None,
)


def forecast(cost: Cost | None = COST, moved: MovedQueues = MOVED) -> Forecast:
    return Forecast(
        moved_queues=moved,
        utilisation=0.7,
        wait_seconds=None,
        owners_before=(),
        owners_after=(OwnedQueues("a", ()), OwnedQueues("b", ())),
        unknowns=(),
        cost=cost,
    )


def figure(verdict: Verdict, name: str) -> Figure:
    (found,) = [one for one in verdict.figures if one.name == name]
    return found


def moved(seen: Between | None) -> Figure:
    return figure(judge(forecast(), ObservedChange(moved_queues=seen), AT), "moved queues")


@pytest.mark.parametrize(
    ("low", "high", "fit"),
    [
        (5, 5, Fit.INSIDE),
        (4, 7, Fit.INSIDE),
        (8, 8, Fit.OUTSIDE),
        (3, 3, Fit.OUTSIDE),
        (8, math.inf, Fit.OUTSIDE),
        (6, 9, Fit.UNKNOWN),
        (1, 5, Fit.UNKNOWN),
        (1, 20, Fit.UNKNOWN),
    ],
)
def test_a_figure_is_inside_when_all_that_was_seen_is_and_outside_when_nothing_is(
    low: float, high: float, fit: Fit
) -> None:
    assert moved(Between(low, high)).fit is fit


def test_what_was_not_seen_or_not_forecast_is_unknown_and_never_inside() -> None:
    assert moved(None).fit is Fit.UNKNOWN
    nothing = judge(
        forecast(cost=None, moved=MovedQueues(None, None)), ObservedChange(moved_queues=Between.exactly(3)), AT
    )
    assert figure(nothing, "moved queues").fit is Fit.UNKNOWN
    assert nothing.fit is Fit.UNKNOWN
    assert not nothing.misses


def test_of_utilisation_only_more_is_a_miss() -> None:
    for seen, fit in ((0.1, Fit.INSIDE), (0.7, Fit.INSIDE), (0.75, Fit.OUTSIDE)):
        verdict = judge(forecast(), ObservedChange(utilisation=Between.exactly(seen)), AT)
        assert figure(verdict, "busiest consumer").fit is fit


def test_misses_are_sentences_with_both_figures_and_one_miss_makes_the_verdict() -> None:
    seen = ObservedChange(
        moved_queues=Between.exactly(5),
        pause_seconds=Between(0.9, 1.2),
        duplicates=Between(30, math.inf),
        settle_seconds=Between.exactly(2.0),
    )
    verdict = judge(forecast(), seen, AT)
    assert verdict.fit is Fit.OUTSIDE
    assert verdict.misses == (
        "longest pause: forecast 0.30 to 0.60 seconds, seen 0.90 to 1.20 seconds",
        "duplicates: forecast 12 to 25 messages, seen at least 30 messages",
    )


def test_every_verdict_has_the_same_figures_in_the_same_order() -> None:
    names = [one.name for one in judge(forecast(), ObservedChange(), AT).figures]
    assert names == [
        one.name for one in judge(forecast(cost=None), ObservedChange(moved_queues=Between(1, 2)), AT).figures
    ]
    assert len(set(names)) == len(names)


def test_a_record_keeps_how_far_off_each_figure_was_and_how_wide_its_forecast() -> None:
    plan = RolloutPlan(
        policy="billing",
        group=GroupRef("rocketmq", "c", "billing"),
        deployment="billing-consumer",
        snapshot=SnapshotRef("sha256:s", AT),
        made_at=AT,
        valid_until=AT.replace(hour=11),
        reason="because",
        rejected=(),
        preconditions=Preconditions(1, ("a",), "AVG", 8),
        forecast=forecast(),
        steps=(AwaitReady(1, 10),),
    )
    seen = ObservedChange(
        moved_queues=Between.exactly(9), pause_seconds=Between(0.4, 0.5), settle_seconds=Between(1.0, 1.5)
    )
    (record,) = calibration_records(plan, judge(forecast(), seen, AT))
    distances = {miss.name: miss.distance for miss in record.misses if miss.distance is not None}
    widths = {miss.name: miss.width for miss in record.misses if miss.width is not None}
    assert distances == pytest.approx({"moved queues": 2.0, "longest pause": 0.0, "settled after": -0.4})
    assert widths["duplicates"] == 13
    assert widths["settled after"] == pytest.approx(1.2)
    assert (record.members_before, record.members_after) == (1, 2)


def test_a_figure_that_goes_down_from_low_to_high_is_nonsense() -> None:
    with pytest.raises(ValueError, match="from 3 to 2"):
        Between(3, 2)
