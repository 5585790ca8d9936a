"""A growth that did not help is noticed and not repeated."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from planner.decision.decision import HoldCause
from planner.decision.growth import vain_growth
from planner.model.snapshot import GroupSnapshot, SeriesPoint
from tests.builders import AT, OBJECTIVE, clients, queues, snapshot
from tests.unit.decision.test_decide import decision_on


def grown(
    counts: Sequence[int], work: Sequence[float], lag: int | None = 100_000, present: int | None = None
) -> GroupSnapshot:
    """Return a group with these consumers and this work minute by minute."""
    first = AT - timedelta(minutes=len(counts) - 1)
    points = tuple(
        SeriesPoint(first + timedelta(minutes=number), 60.0, 900.0, done, lag, count, 0, False)
        for number, (count, done) in enumerate(zip(counts, work, strict=True))
    )
    taken = snapshot(clients=clients(present or counts[-1]), capacity=14.0, lags=dict.fromkeys(queues(), 5000))
    return replace(taken, recent=points)


VAIN = grown([2] * 10 + [4] * 15, [200.0] * 10 + [205.0] * 15)


def test_a_growth_that_brought_nothing_is_not_repeated() -> None:
    decision = decision_on(VAIN)
    assert (decision.target, decision.hold_cause) == (4, HoldCause.GROWTH_DID_NOT_HELP)
    assert decision.reason == (
        "Hold at 4 consumers: the last growth did not help: 2 consumers did 200 messages/s, the 4 since 14 min ago do "
        "205, while messages waited all the time: something that all of them share limits them, such as a database."
    )


def test_pods_that_start_one_by_one_are_one_growth() -> None:
    growth = vain_growth(grown([2] * 10 + [3] + [4] * 15, [200.0] * 10 + [210.0] * 16))
    assert growth is not None
    assert (growth.before, growth.after) == (2, 4)


def test_a_growth_that_helped_may_be_repeated() -> None:
    assert vain_growth(grown([2] * 10 + [4] * 15, [200.0] * 10 + [380.0] * 15)) is None
    # A quarter of what equal consumers would bring: half of 200 for two more of two.
    assert vain_growth(grown([2] * 10 + [4] * 15, [200.0] * 10 + [251.0] * 15)) is None
    assert vain_growth(grown([2] * 10 + [4] * 15, [200.0] * 10 + [249.0] * 15)) is not None


def test_what_was_not_observed_is_no_reason() -> None:
    work = [200.0] * 25
    assert vain_growth(grown([4] * 25, work)) is None
    assert vain_growth(grown([6] * 10 + [4] * 15, work)) is None, "it shrank"
    assert vain_growth(grown([2] + [4] * 24, work)) is None, "one minute before it is too short"
    assert vain_growth(grown([2] * 21 + [4] * 4, work)) is None, "it has hardly settled"
    assert vain_growth(grown([2] * 10 + [4] * 15, work, lag=500)) is None, "the consumers had time to spare"
    assert vain_growth(grown([2] * 10 + [4] * 15, work, lag=None)) is None
    assert vain_growth(grown([2] * 10 + [4] * 15, work, present=6)) is None, "it has grown again"
    assert vain_growth(replace(VAIN, blocked_queues=(queues()[0],))) is None
    assert vain_growth(replace(VAIN, recent=())) is None


def test_the_policys_lowest_count_is_asked_for_whatever_it_helps() -> None:
    assert decision_on(VAIN, replace(OBJECTIVE, lowest=8)).target >= 8
