"""Offset steps on brokers that stand in: done, done twice, forgotten, and refused."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from planner.deployments.offsets.actions import OffsetActions, Offsets
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
RESET = SetOffsets(ResetOffsets("shop", START, "set the offsets of shop", 60), "shop", "plan/1", "shop")


@dataclass
class Brokers:
    """What groups have committed; ``on_clone`` happens right after a clone."""

    groups: dict[str, dict[Queue, int]] = field(default_factory=dict)
    at_time: dict[Queue, int] = field(default_factory=dict)
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


@pytest.mark.parametrize(("wanted", "why"), [(CLONE, "shop has no committed offset"), (RESET, "committed on no topic")])
def test_where_there_is_nothing_to_set_nothing_is_taken_for_done(wanted: SetOffsets, why: str) -> None:
    with pytest.raises(BadInputError, match=why):
        OffsetActions(Brokers()).state(POLICY_READ, wanted)
