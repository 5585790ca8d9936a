"""When a watch may end."""

from dataclasses import replace

import pytest

from planner.advice.evaluation import Evaluation, evaluate, rate_margin
from planner.advice.sequential import DEFAULT_PATIENCE_S, DIRECTION_S, LEAST_S, PATIENCE_S, STEADY_S, clarity, steady_s
from planner.decision.decision import Decision, HoldCause
from planner.model.snapshot import Capacity
from tests.builders import AT, OBJECTIVE, series, snapshot


def decision(target: int, cause: HoldCause | None = None, current: int = 3) -> Decision:
    return Decision("shop", AT, "AVG", current, target, "Because.", (), cause)


def watched(
    *answers: Decision, every_s: float = 5.0, fewest: int | None = None, most: int | None = None, is_open: bool = False
) -> list[Evaluation]:
    """Return one evaluation for each answer; both bounds agree with it unless they are given."""
    return [
        Evaluation(number * every_s, answer, fewest or answer.target, most or answer.target, is_open)
        for number, answer in enumerate(answers)
    ]


def long(answer: Decision, seconds: float, **bounds: object) -> list[Evaluation]:
    return watched(*[answer] * (int(seconds / 5) + 1), **bounds)  # type: ignore[arg-type]


def test_a_steady_answer_is_clear_after_a_minute_and_not_before() -> None:
    assert clarity(long(decision(6), LEAST_S)).is_clear
    assert not clarity(long(decision(6), LEAST_S - 5)).is_clear


def test_an_answer_that_just_changed_is_not_clear() -> None:
    changed = [*[decision(6)] * 13, decision(12)]
    assert not clarity(watched(*changed)).is_clear
    assert clarity(watched(*changed, *[decision(12)] * int(STEADY_S / 5))).is_clear


def test_bounds_that_allow_another_count_keep_the_watch_going() -> None:
    apart = long(decision(6), LEAST_S, fewest=4, most=6)
    assert not clarity(apart).is_clear
    assert "4 to 6 consumers are possible" in clarity(apart).missing


def test_from_three_minutes_on_a_direction_is_enough() -> None:
    assert clarity(long(decision(6), DIRECTION_S, fewest=4, most=6)).is_clear
    assert clarity(long(decision(1), DIRECTION_S, fewest=1, most=2)).is_clear
    assert not clarity(long(decision(6), DIRECTION_S, fewest=3, most=6)).is_clear


def test_growth_is_clear_once_each_member_with_work_was_seen_to_commit_three_times() -> None:
    """Red where a member that works 150 s on its records is answered with more members (docs/matrix.md)."""
    seen = long(decision(6), 2 * LEAST_S)
    unseen = [*seen[:-1], replace(seen[-1], between_commits=("c-2",))]
    assert clarity(seen).is_clear
    assert not clarity(unseen).is_clear
    assert clarity(unseen).missing == ("c-2 committed less than three times until 30 s ago",)
    later = [replace(each, watched_s=unseen[-1].watched_s + 5 * number) for number, each in enumerate(seen[-8:], 1)]
    assert [clarity([*unseen, *later[:number]]).is_clear for number in (1, 5, 6)] == [False, False, True]
    fewer = long(decision(2), 2 * LEAST_S)
    assert clarity([*fewer[:-1], replace(fewer[-1], between_commits=("c-2",))]).is_clear


def test_a_group_that_was_never_busy_is_watched_for_three_minutes() -> None:
    right = decision(3, HoldCause.RIGHT_ALREADY)
    assert not clarity(long(right, LEAST_S, is_open=True)).is_clear
    assert clarity(long(right, DIRECTION_S, is_open=True)).is_clear


@pytest.mark.parametrize("cause", [HoldCause.NO_CONSUMERS, HoldCause.UNSETTLED, HoldCause.UNKNOWN_CAPACITY])
def test_a_reason_to_hold_is_clear_when_it_has_lasted(cause: HoldCause) -> None:
    patience = PATIENCE_S.get(cause, DEFAULT_PATIENCE_S)
    assert clarity(long(decision(3, cause), patience)).is_clear
    assert not clarity(long(decision(3, cause), patience - 5)).is_clear


def test_confidence_grows() -> None:
    shares = [clarity(long(decision(6), seconds)).share for seconds in (0, 30, 60)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_steadiness_counts_from_the_first_evaluation_with_the_same_answer() -> None:
    assert steady_s(watched(decision(6), decision(12), decision(12), decision(12))) == 10.0
    hold = decision(3, HoldCause.UNSETTLED)
    assert steady_s(watched(hold, decision(3, HoldCause.UNKNOWN_LAG))) == 0.0


def test_the_bounds_of_a_capacity_widen_the_counts() -> None:
    known = snapshot(recent=series([0] * 12, [160.0] * 12, [160.0] * 12))
    sure = evaluate(known, OBJECTIVE, 120.0)
    capacity = Capacity(60.0, "measured", low=30.0, high=90.0, observations=4)
    vague = evaluate(replace(known, capacity=capacity), OBJECTIVE, 120.0)
    assert sure.fewest == sure.most == sure.decision.target
    assert vague.fewest is not None
    assert vague.most is not None
    assert vague.fewest < vague.most
    assert vague.decision.target == vague.most, "the decision goes by the lower bound"


def test_a_bursty_rate_is_less_sure_than_a_steady_one() -> None:
    steady, bursty = [100.0] * 12, [20.0, 180.0] * 6
    assert rate_margin(snapshot(recent=series([0] * 12, steady, steady))) == 0.0
    assert rate_margin(snapshot(recent=series([0] * 12, bursty, bursty))) > 0.3
    assert rate_margin(snapshot(recent=())) == 0.5


def test_nothing_is_compared_while_the_data_carry_no_decision() -> None:
    evaluation = evaluate(snapshot(capacity=None), OBJECTIVE, 30.0)
    assert (evaluation.fewest, evaluation.most) == (None, None)
    assert evaluation.decision.hold_cause is HoldCause.UNKNOWN_CAPACITY
