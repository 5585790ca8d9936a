"""A rule approves a plan only where every bound is known to hold, at a time that is allowed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from planner.rollout.approval import ApprovalRule, why_not
from planner.rollout.plan import Cost, RolloutPlan
from planner.rollout.steps import MovedQueues, PauseForPerson
from planner.rollout.windows import ChangeWindow, why_closed
from planner.simulation.outcome import Messages, Seconds
from tests.builders import AT, decided, snapshot

BERLIN = ZoneInfo("Europe/Berlin")
COST = Cost(
    pause_seconds=Seconds(0.3, 0.4, 0.6),
    stall_seconds=Seconds(0.0, 0.1, 0.2),
    duplicates=Messages(12, 18, 25),
    burst_messages=Messages(1, 1, 1),
)
MOVED = MovedQueues(7, 9)
MADE = decided(snapshot(capacity=65.0)).plan


def plan(moved: MovedQueues = MOVED, cost: Cost | None = COST) -> RolloutPlan:
    assert MADE is not None
    return replace(MADE, forecast=replace(MADE.forecast, moved_queues=moved, cost=cost))


ALL = ApprovalRule(most_moved_queues=9, most_duplicates=25, longest_pause_s=0.6)


def test_a_plan_on_its_bounds_is_approved() -> None:
    assert why_not(plan(), ALL, AT) == ()


TOO_MUCH = [
    (replace(ALL, most_moved_queues=8), plan(), "up to 9 queues move, 8 may"),
    (ALL, plan(MovedQueues(None, None)), "how many queues move is not known beforehand"),
    (replace(ALL, most_duplicates=24), plan(), "up to 25 messages come twice (1 in 20), 24 may"),
    (replace(ALL, longest_pause_s=0.5), plan(), "a queue that moves pauses up to 0.6 s (1 in 20), 0.5 s may be"),
    (
        ALL,
        plan(cost=replace(COST, stall_seconds=Seconds(0, 1, 2))),
        "a queue that stays pauses up to 2 s (1 in 20), 0.6 s may be",
    ),
    (ALL, plan(cost=replace(COST, pause_seconds=None)), "how long a queue that moves pauses is not known beforehand"),
    (ALL, replace(plan(), migration="image"), "it is a migration (image): those are for a person"),
    (
        ALL,
        replace(plan(), steps=(PauseForPerson("Is all well?", 60), *plan().steps)),
        "it asks a person a question on its way",
    ),
]


@pytest.mark.parametrize(("rule", "made", "said"), TOO_MUCH, ids=[said[:40] for _, _, said in TOO_MUCH])
def test_the_one_bound_that_is_broken_is_named(rule: ApprovalRule, made: RolloutPlan, said: str) -> None:
    assert why_not(made, rule, AT) == (said,)


def test_a_cost_that_nobody_knows_is_within_no_bound() -> None:
    assert len(why_not(plan(cost=None), ALL, AT)) == 3
    assert why_not(plan(cost=None), ApprovalRule(most_moved_queues=9), AT) == ()


def test_no_plan_with_messages_that_come_twice_is_approved_where_consumers_are_not_idempotent() -> None:
    rule = replace(ALL, may_repeat=False)
    false = "spec.idempotent of the policy is false"
    assert why_not(plan(), rule, AT) == (f"up to 25 messages come twice (1 in 20), and {false}",)
    never = replace(COST, duplicates=Messages(0, 0, 0))
    assert why_not(plan(cost=never), rule, AT) == ()
    unknown = why_not(plan(cost=None), ApprovalRule(most_moved_queues=9, may_repeat=False), AT)
    assert unknown == (f"how many messages come twice is not known beforehand, and {false}",)


def test_an_expired_plan_is_not_approved() -> None:
    assert why_not(plan(), ALL, plan().valid_until - timedelta(seconds=1)) == ()
    assert why_not(plan(), ALL, plan().valid_until) == ("the plan held until 2026-11-21 10:45:00 UTC only",)


def test_a_rule_without_bounds_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="to name a bound"):
        ApprovalRule()


def test_outside_the_windows_the_next_opening_is_named() -> None:
    # AT is a Saturday, 10:30 UTC.
    working_day = ChangeWindow(frozenset(range(5)), 9 * 60, 17 * 60, BERLIN)
    night = ChangeWindow(frozenset({5}), 22 * 60, 6 * 60, UTC)
    assert why_not(plan(), replace(ALL, windows=(working_day,)), AT) == (
        "no change window is open; the next one opens on Monday, 2026-11-23 09:00 CET",
    )
    assert why_closed((working_day, night), AT) == (
        "no change window is open; the next one opens on Saturday, 2026-11-21 22:00 UTC"
    )
    assert why_not(plan(), replace(ALL, windows=(ChangeWindow(frozenset({5}), 0, 1440, BERLIN),)), AT) == ()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


OPEN = [
    # Monday to Friday from nine to five in Berlin.
    ((range(5), 540, 1020), "2026-11-23T08:00+00:00", True),
    ((range(5), 540, 1020), "2026-11-23T07:59:59+00:00", False),
    ((range(5), 540, 1020), "2026-11-23T15:59:59+00:00", True),
    ((range(5), 540, 1020), "2026-11-23T16:00+00:00", False),
    ((range(5), 540, 1020), "2026-07-20T07:00+00:00", True),
    ((range(5), 540, 1020), "2026-11-22T10:00+00:00", False),
    # Friday's night goes on into Saturday, and Sunday's into Monday.
    (([4, 6], 1320, 360), "2026-11-27T22:00+01:00", True),
    (([4, 6], 1320, 360), "2026-11-28T05:59+01:00", True),
    (([4, 6], 1320, 360), "2026-11-28T06:00+01:00", False),
    (([4, 6], 1320, 360), "2026-11-28T22:00+01:00", False),
    (([4, 6], 1320, 360), "2026-11-30T00:00+01:00", True),
    (([4, 6], 1320, 360), "2026-11-27T05:00+01:00", False),
    # The hour that is there twice, and the day that lacks one.
    (([6], 150, 180), "2026-10-25T00:30+00:00", True),
    (([6], 150, 180), "2026-10-25T01:30+00:00", True),
    (([6], 150, 180), "2026-03-29T01:00+00:00", False),
]


@pytest.mark.parametrize(
    ("window", "when", "is_open"), OPEN, ids=[f"{n}-{when}" for n, (_, when, _) in enumerate(OPEN)]
)
def test_a_window_goes_by_the_clock_on_the_wall(window: tuple[list[int], int, int], when: str, is_open: bool) -> None:
    days, opens, closes = window
    assert ChangeWindow(frozenset(days), opens, closes, BERLIN).is_open(at(when)) is is_open


def test_the_next_opening_is_never_now_and_at_most_a_week_away() -> None:
    saturday = ChangeWindow(frozenset({5}), 10 * 60 + 30, 12 * 60, UTC)
    assert saturday.next_opening(AT) == AT + timedelta(days=7)
    assert saturday.next_opening(AT - timedelta(seconds=1)) == AT


@pytest.mark.parametrize(
    ("days", "opens", "closes"), [((), 0, 60), ((7,), 0, 60), ((1,), 60, 60), ((1,), 1440, 60), ((1,), 5, 1441)]
)
def test_a_senseless_window_cannot_be_built(days: tuple[int, ...], opens: int, closes: int) -> None:
    with pytest.raises(ValueError, match="a change window to"):
        ChangeWindow(frozenset(days), opens, closes, UTC)
