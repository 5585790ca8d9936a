"""Looks of an executor, one after the other: what they add up to, and what a later executor does not know."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from planner.deployments.watches import Watches
from planner.execution.observation import GroupObservation
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import RolloutStatus, StepProgress
from planner.model.queues import MessageQueue
from planner.model.samples import QueueOffsets
from planner.model.snapshot import Capacity
from planner.rollout.steps import AwaitSettled, MarkVictims, MovedQueues, StopConsumers, Victim
from planner.verification.observed_change import Between
from planner.verification.watch import Watch
from tests.pod_groups import plan_for

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
QUEUE = MessageQueue("orders", "broker-a", 0)
STEPS = (
    MarkVictims((Victim("b", ("b",)),), 60),
    StopConsumers(2, 1, ("b",), 60, MovedQueues(0, 8), undo="set 2"),
    AwaitSettled(1, "AVG", 60),
)


def stored(*begun_s: float) -> StoredPlan:
    """Return a plan whose steps began so many seconds after ``AT``."""
    steps = tuple(
        StepProgress(index, STEPS[index].kind, AT + timedelta(seconds=at)) for index, at in enumerate(begun_s)
    )
    status = RolloutStatus(phase=Phase.RUNNING, steps=steps)
    return StoredPlan("down", "uid", plan_for("app", ["a", "b"], STEPS), "sha256:p", "1", status)


def look(second: float, end: int, committed: int | None, owner: str = "a") -> GroupObservation:
    return GroupObservation(
        name="billing",
        at=AT + timedelta(seconds=second),
        members=("a", "b"),
        queues=(QUEUE,),
        owners=((QUEUE, (owner,)),),
        strategy="AVG",
        misplaced=0,
        is_rebalancing=False,
        offsets=(QueueOffsets(QUEUE, end, committed),),
        capacity=Capacity(50.0, "stated by the policy"),
    )


def note(watches: Watches, plan: StoredPlan, found: GroupObservation) -> tuple[GroupObservation, Watch | None]:
    """Note a look that took a tenth of a second, by a steady clock that began at 1000."""
    steady_s = 1000 + (found.at - AT).total_seconds()
    return watches.note(plan, found, steady_s, steady_s, steady_s + 0.1)


def test_the_oldest_message_came_after_the_last_look_that_did_not_show_it() -> None:
    watches = Watches()
    ages = [note(watches, stored(), look(at, end, 10))[0].lag_seconds for at, end in ((0, 10), (2, 10), (7, 15))]
    assert ages[:2] == [0.0, 0.0]
    assert ages[2] is not None
    assert math.isclose(ages[2], 5.1)


def test_marking_pods_changes_no_group_and_the_stop_does_from_when_it_was_written_down() -> None:
    watches = Watches()
    for plan in (stored(), stored(1.0)):
        _, watch = note(watches, plan, look(3, 10, 10))
        assert watch is not None
        assert watch.spans == ()
    _, watch = note(watches, stored(1.0, 4.0), look(5, 10, 10, owner="b"))
    assert watch is not None
    assert not watch.is_late
    (span,) = watch.spans
    assert span.begun.step == 1
    assert math.isclose(span.begun.at_s, 1004 - 1.5), "the server's time and the steady clock differ by so much at most"
    assert watch.last.capacity == Between(50, 50)


def test_an_executor_that_comes_later_says_that_it_does_not_know_the_beginning() -> None:
    first = Watches()
    note(first, stored(), look(0, 10, 10))
    _, watch = note(Watches(), stored(1.0, 4.0), look(30, 10, 10))
    assert watch is not None
    assert watch.is_late
    assert watch.observed_change(Between.exactly(0)).duplicates is None


def test_a_look_without_offsets_is_left_out_and_the_age_of_the_oldest_message_stays_unknown() -> None:
    watches = Watches()
    _, before = note(watches, stored(), look(0, 10, 10))
    found, watch = note(watches, stored(), replace(look(1, 10, 10), offsets=()))
    assert watch is before
    assert found.lag_seconds is None
    never, _ = note(watches, stored(), replace(look(2, 10, None), name="other"))
    assert never.lag_seconds is None


def test_a_group_that_nobody_looks_at_any_more_is_forgotten() -> None:
    watches = Watches()
    note(watches, stored(), look(0, 10, 9))
    assert note(watches, stored(), look(3_500, 10, 9))[0].lag_seconds is None, "it came before the first look"
    found, _ = note(watches, stored(), look(9_000, 12, 10))
    assert found.lag_seconds is None, "the looks before were forgotten, so its age is unknown again"
