"""Ownership held against the parameters that a step states, for the members that really came."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.execution.awaited import as_awaited
from planner.execution.observation import GroupObservation
from planner.execution.ports import StoredPlan
from planner.execution.progress import RolloutStatus, StepProgress
from planner.model.queues import MessageQueue
from planner.rollout.steps import AwaitReady, AwaitSettled, CheckForecast, Step
from tests.builders import AT
from tests.pod_groups import GROUP, plan_for

QUEUES = tuple(MessageQueue("orders", broker, number) for broker in ("broker-a", "broker-b") for number in range(8))
MEMBERS = ("10.0.0.1@old", "10.0.0.2@new", "10.0.0.3@new")
NODES = {"virtual_nodes": 3}
ROOMS = {"machine_rooms": {"brokers": {"broker-a": "r", "broker-b": "s"}, "clients": {MEMBERS[0]: "r"}}}
NEARBY = "MACHINE_ROOM_NEARBY"


def seen(strategy: str, options: dict[str, Any], members: Sequence[str] = MEMBERS, **changes: Any) -> GroupObservation:
    """Return a look at members that own what the strategy gives them, and that the look itself can make nothing of."""
    owned = allocate_group(find_strategy(strategy, options), QUEUES, members).answer()
    owners = tuple((queue, tuple(m for m in members if queue in owned[m])) for queue in QUEUES)
    look = GroupObservation("billing", AT, tuple(members), QUEUES, owners, None, None, is_rebalancing=False)
    return replace(look, **changes)


def come_to(*steps: Step) -> StoredPlan:
    """Return a plan of which all these steps have begun."""
    progress = tuple(StepProgress(index, step.kind, AT) for index, step in enumerate(steps))
    plan = plan_for("app", list(MEMBERS), [*steps, CheckForecast(60)])
    return StoredPlan("one", "u", plan, "sha256:1", "1", status=replace(RolloutStatus(), steps=progress))


def awaits(strategy: str, options: dict[str, Any] | None, **more: Any) -> StoredPlan:
    return come_to(AwaitReady(3, 60), AwaitSettled(3, strategy, 60, options=options, **more))


def test_the_step_tells_the_number_of_virtual_nodes_that_nobody_else_does() -> None:
    look = replace(
        seen("CONSISTENT_HASH", NODES, reported_strategies=("CONSISTENT_HASH",)),
        strategy="CONSISTENT_HASH",
        misplaced=9,
    )
    found = as_awaited(awaits("CONSISTENT_HASH", NODES), look)
    assert (found.strategy, found.misplaced, found.is_calm) == ("CONSISTENT_HASH", 0, True)
    other = as_awaited(awaits("CONSISTENT_HASH", {"virtual_nodes": 200}), look)
    assert other.misplaced, "other parameters give other owners"
    assert not other.is_calm


def test_members_that_nobody_named_are_in_the_new_room() -> None:
    really = {"machine_rooms": {**ROOMS["machine_rooms"], "clients": dict(zip(MEMBERS, "rss", strict=True))}}
    look = seen(NEARBY, really, reported_strategies=(NEARBY,))
    assert as_awaited(awaits(NEARBY, ROOMS, new_room="s"), look).misplaced == 0
    assert as_awaited(awaits(NEARBY, ROOMS, new_room="r"), look).misplaced == 10, "5 of each broker"


def test_members_whose_room_nobody_states_may_be_in_any_room_that_ownership_shows() -> None:
    really = {"machine_rooms": {**ROOMS["machine_rooms"], "clients": dict(zip(MEMBERS, "rss", strict=True))}}
    look = seen(NEARBY, really, reported_strategies=(NEARBY,))
    assert as_awaited(awaits(NEARBY, ROOMS), look).misplaced == 0
    assert look.owners is not None
    (first, _), *others = look.owners
    torn = replace(look, owners=((first, ("nobody of them",)), *others))
    assert as_awaited(awaits(NEARBY, ROOMS), torn).misplaced == 1, "no choice of rooms explains it"


def test_many_ways_to_be_in_rooms_are_compared_one_after_the_other() -> None:
    """All answers at once were 135 MB for 12 such members and 128 queues, in a process that may have 512 MiB."""
    members = (MEMBERS[0], *(f"10.0.1.{number}@new" for number in range(10)))
    really = {"machine_rooms": {**ROOMS["machine_rooms"], "clients": dict(zip(members, "rssrsrsrsrs", strict=True))}}
    look = seen(NEARBY, really, members, reported_strategies=(NEARBY,))
    tracemalloc.start()
    try:
        assert as_awaited(awaits(NEARBY, ROOMS), look).misplaced == 0
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most_bytes < 1_000_000


@pytest.mark.parametrize(
    ("told", "strategy", "is_held"),
    [
        ((), "VIP", True),  # members that tell nothing: ownership alone speaks
        (("com.acme.Vip",), "VIP", True),  # a user's own class may be any that is not a client's
        (("STATIC",), "VIP", False),
        (("AVG",), "VIP", False),
        (("AVG", "VIP"), "VIP", False),
        (("com.acme.Hash",), "CONSISTENT_HASH", False),
        ((NEARBY,), "MACHINE_ROOM_NEARBY-AVG", True),
    ],
)
def test_what_members_say_goes_before_what_the_step_says(told: tuple[str, ...], strategy: str, is_held: bool) -> None:
    every: dict[str, dict[str, Any]] = {
        "VIP": {"vip_queues": [], "vip_clients": ["new"]},
        "CONSISTENT_HASH": NODES,
        "MACHINE_ROOM_NEARBY-AVG": {
            "machine_rooms": {**ROOMS["machine_rooms"], "clients": dict.fromkeys(MEMBERS, "r")}
        },
    }
    options = every[strategy]
    look = seen(strategy, options, reported_strategies=told)
    found = as_awaited(awaits(strategy, options), look)
    assert (found.strategy == strategy, found.misplaced == 0) == (is_held, is_held)
    if not is_held:
        assert found == look


def test_before_that_step_and_without_parameters_a_look_stays_as_it_is() -> None:
    look = seen("CONSISTENT_HASH", NODES)
    step = AwaitSettled(3, "CONSISTENT_HASH", 60, options=NODES)
    assert as_awaited(come_to(AwaitReady(3, 60)), look) == look
    assert as_awaited(awaits("CONSISTENT_HASH", None), look) == look
    assert as_awaited(come_to(step, AwaitSettled(3, "AVG", 60)), look) == look, "the last one counts"
    assert as_awaited(come_to(step), replace(look, name="other")) == replace(look, name="other")
    assert as_awaited(come_to(replace(step, group="other")), replace(look, name="other")).misplaced == 0
    assert GROUP.group == look.name


@pytest.mark.parametrize("change", [{"members": ()}, {"members": None}])
def test_a_group_without_members_stays_as_it_is(change: dict[str, Any]) -> None:
    look = replace(seen("CONSISTENT_HASH", NODES), **change)
    assert as_awaited(awaits("CONSISTENT_HASH", NODES), look) == look


def test_owners_that_are_unknown_leave_it_unknown() -> None:
    look = seen("CONSISTENT_HASH", NODES, owners=None)
    assert as_awaited(awaits("CONSISTENT_HASH", NODES), look).misplaced is None
