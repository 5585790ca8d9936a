"""Offset steps on brokers that stand in: done, done twice, forgotten, and refused."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from planner.deployments.offsets.actions import KeptOffsets, OffsetActions, Offsets
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.errors import BadInputError
from planner.execution.effects import SetOffsets
from planner.execution.ports import ConflictError
from planner.model.queues import MessageQueue, Queue
from planner.rollout.steps import CloneOffsets, ResetOffsets
from tests.sample_builders import POLICY, START

POLICY_READ = parse_policy(POLICY, "p")
FIRST, SECOND = (MessageQueue("orders", "broker-a", number) for number in range(2))
CLONE = SetOffsets(CloneOffsets("shop-2", "set the offsets of shop-2", 60), "shop", "plan/1", "shop")
RESET = SetOffsets(ResetOffsets("shop", "set the offsets of shop", 60, to_time=START), "shop", "plan/1", "shop")


@dataclass
class Brokers:
    """What groups have committed; ``on_clone`` happens right after a clone."""

    groups: dict[str, dict[Queue, int]] = field(default_factory=dict)
    at_time: dict[Queue, int] = field(default_factory=dict)
    keeps: dict[Queue, KeptOffsets] = field(default_factory=dict)
    on_clone: Callable[[], None] = lambda: None
    clones: int = 0

    @contextmanager
    def __call__(self, _: ConsumerScalingPolicy) -> "Iterator[Brokers]":
        yield self

    def committed(self, group: str) -> Offsets:
        return dict(self.groups.get(group, {}))

    def since(self, _: str, time: datetime) -> Offsets:
        assert time == START
        return self.at_time

    def kept(self, _: str) -> dict[Queue, KeptOffsets]:
        return self.keeps

    def clone(self, origin: str, group: str) -> None:
        self.clones += 1
        self.groups[group] = dict(self.groups[origin])
        self.on_clone()

    def commit(self, group: str, offsets: Offsets) -> None:
        self.groups.setdefault(group, {}).update(offsets)


def test_a_clone_is_done_once_the_other_group_has_the_same_offsets() -> None:
    brokers = Brokers({"shop": {FIRST: 7, SECOND: 0}})
    actions = OffsetActions(brokers)
    assert not actions.state(POLICY_READ, CLONE).is_set
    actions.set(POLICY_READ, CLONE)
    assert actions.state(POLICY_READ, CLONE).is_set
    assert brokers.groups["shop-2"] == {FIRST: 7, SECOND: 0}


def test_offsets_of_an_earlier_use_of_the_name_are_no_clone() -> None:
    brokers = Brokers({"shop": {FIRST: 7, SECOND: 3}, "shop-2": {FIRST: 2, SECOND: 3}})
    assert not OffsetActions(brokers).state(POLICY_READ, CLONE).is_set


def test_a_group_that_goes_on_consuming_is_ahead_of_its_clone_which_is_done_all_the_same() -> None:
    brokers = Brokers({"shop": {FIRST: 7}})
    actions = OffsetActions(brokers)
    actions.set(POLICY_READ, CLONE)
    brokers.groups["shop"][FIRST] = 9
    assert actions.state(POLICY_READ, CLONE).is_set


def test_an_executor_that_does_not_remember_the_clone_of_a_running_group_makes_it_anew() -> None:
    brokers = Brokers({"shop": {FIRST: 7}})
    OffsetActions(brokers).set(POLICY_READ, CLONE)
    brokers.groups["shop"][FIRST] = 9
    other = OffsetActions(brokers)
    assert not other.state(POLICY_READ, CLONE).is_set
    other.set(POLICY_READ, CLONE)
    assert other.state(POLICY_READ, CLONE).is_set
    assert (brokers.groups["shop-2"], brokers.clones) == ({FIRST: 9}, 2)


def test_the_clone_of_an_earlier_plan_is_not_that_of_the_next() -> None:
    brokers = Brokers({"shop": {FIRST: 7}})
    actions = OffsetActions(brokers)
    actions.set(POLICY_READ, CLONE)
    brokers.groups["shop"][FIRST] = 9
    assert not actions.state(POLICY_READ, replace(CLONE, plan="plan/2")).is_set


def test_a_queue_that_gets_its_first_commit_during_the_clone_makes_it_be_done_again() -> None:
    brokers = Brokers({"shop": {FIRST: 7}})
    brokers.on_clone = lambda: brokers.groups["shop"].update({SECOND: 1})
    actions = OffsetActions(brokers)
    with pytest.raises(ConflictError, match="committed on orders/broker-a/1 while"):
        actions.set(POLICY_READ, CLONE)
    assert not actions.state(POLICY_READ, CLONE).is_set


def test_a_broker_that_was_away_during_the_clone_is_cloned_from_once_it_is_back() -> None:
    brokers = Brokers({"shop": {FIRST: 7}})
    actions = OffsetActions(brokers)
    actions.set(POLICY_READ, CLONE)
    brokers.groups["shop"] = {FIRST: 9, SECOND: 5}
    assert not actions.state(POLICY_READ, CLONE).is_set
    actions.set(POLICY_READ, CLONE)
    assert actions.state(POLICY_READ, CLONE).is_set
    assert brokers.groups["shop-2"] == {FIRST: 9, SECOND: 5}


def test_offsets_that_are_set_in_part_are_told_from_those_of_before() -> None:
    brokers = Brokers({"shop": {FIRST: 7, SECOND: 0}}, at_time={FIRST: 3, SECOND: 4})
    actions = OffsetActions(brokers)
    before = actions.state(POLICY_READ, RESET)
    assert before == OffsetActions(brokers).state(POLICY_READ, RESET)
    brokers.groups["shop"][FIRST] = 3
    part = actions.state(POLICY_READ, RESET)
    assert (before.is_set, part.is_set) == (False, False)
    assert before.fingerprint != part.fingerprint


def test_a_reset_sets_every_queue_and_is_done_once_they_are_there() -> None:
    brokers = Brokers({"shop": {FIRST: 7}}, at_time={FIRST: 3, SECOND: 4})
    actions = OffsetActions(brokers)
    assert not actions.state(POLICY_READ, RESET).is_set
    actions.set(POLICY_READ, RESET)
    assert actions.state(POLICY_READ, RESET).is_set
    assert brokers.groups["shop"] == {FIRST: 3, SECOND: 4}
    actions.set(POLICY_READ, RESET)
    assert brokers.groups["shop"] == {FIRST: 3, SECOND: 4}


def reset_to(**point: Any) -> SetOffsets:
    return SetOffsets(ResetOffsets("shop", "set the offsets of shop", 60, **point), "shop", "plan/1", "shop")


@pytest.mark.parametrize(
    ("point", "after"),
    [
        ({"to_end": "earliest"}, {FIRST: 2, SECOND: 3}),
        ({"to_end": "latest"}, {FIRST: 9, SECOND: 8}),
        ({"to_end": "latest", "topic": "orders"}, {FIRST: 9, SECOND: 8}),
        ({"to_end": "earliest", "queue": "orders/broker-a/1"}, {FIRST: 7, SECOND: 3}),
        ({"to_offset": 5, "queue": "orders/broker-a/0"}, {FIRST: 5, SECOND: 8}),
        ({"to_time": START, "queue": "orders/broker-a/0"}, {FIRST: 4, SECOND: 8}),
    ],
)
def test_a_reset_sets_what_it_names_and_leaves_every_other_queue(
    point: dict[str, Any], after: dict[Queue, int]
) -> None:
    keeps: dict[Queue, KeptOffsets] = {FIRST: KeptOffsets(2, 9), SECOND: KeptOffsets(3, 8)}
    brokers = Brokers({"shop": {FIRST: 7, SECOND: 8}}, at_time={FIRST: 4, SECOND: 6}, keeps=keeps)
    actions, effect = OffsetActions(brokers), reset_to(**point)
    assert not actions.state(POLICY_READ, effect).is_set
    actions.set(POLICY_READ, effect)
    assert (actions.state(POLICY_READ, effect).is_set, brokers.groups["shop"]) == (True, after)


def test_a_reset_to_the_latest_is_done_although_producers_go_on() -> None:
    brokers = Brokers({"shop": {FIRST: 7}}, keeps={FIRST: KeptOffsets(2, 9)})
    actions, latest = OffsetActions(brokers), reset_to(to_end="latest")
    actions.set(POLICY_READ, latest)
    brokers.keeps[FIRST] = KeptOffsets(2, 30)
    assert actions.state(POLICY_READ, latest).is_set
    assert not actions.state(POLICY_READ, replace(latest, plan="plan/2")).is_set
    # An executor that took over does not remember: nobody of the group has read meanwhile, so it skips these, too.
    other = OffsetActions(brokers)
    other.set(POLICY_READ, latest)
    assert (other.state(POLICY_READ, latest).is_set, brokers.groups["shop"]) == (True, {FIRST: 30})


@pytest.mark.parametrize("offset", [1, 10])
def test_an_offset_that_no_broker_keeps_is_never_set(offset: int) -> None:
    brokers = Brokers({"shop": {FIRST: 7}}, keeps={FIRST: KeptOffsets(2, 9)})
    effect = reset_to(to_offset=offset, queue="orders/broker-a/0")
    with pytest.raises(BadInputError, match=f"keeps offsets 2 to 9, the plan asks for {offset},"):
        OffsetActions(brokers).set(POLICY_READ, effect)
    assert brokers.groups == {"shop": {FIRST: 7}}


@pytest.mark.parametrize(("wanted", "why"), [(CLONE, "shop has no committed offset"), (RESET, "committed on no topic")])
def test_where_there_is_nothing_to_set_nothing_is_taken_for_done(wanted: SetOffsets, why: str) -> None:
    with pytest.raises(BadInputError, match=why):
        OffsetActions(Brokers()).state(POLICY_READ, wanted)
