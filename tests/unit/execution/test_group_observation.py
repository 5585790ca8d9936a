from dataclasses import replace

from planner.execution.group_drift import moved_queues
from planner.execution.group_observation import observe_group
from planner.execution.observation import GroupObservation
from planner.model.membership import BrokerMembers
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample, KafkaGroup
from planner.rollout.plan import OwnedQueues
from planner.snapshot.build import build_snapshot
from planner.snapshot.settings import SnapshotSettings
from tests.sample_builders import tuning, watch


def looked(sample: GroupSample) -> GroupObservation:
    return observe_group(sample, build_snapshot(sample, (), sample.at, SnapshotSettings()))


SAMPLE = watch(1)[0]


def test_only_queues_that_had_an_owner_can_move() -> None:
    queues = [MessageQueue("orders", "broker-a", number) for number in range(4)]
    before = (OwnedQueues("a", ("orders/broker-a/0-1",)), OwnedQueues("b", ("orders/broker-a/2",)))
    owners = [(queues[0], ("a",)), (queues[1], ("c",)), (queues[2], ()), (queues[3], ("c",))]
    assert moved_queues(before, owners) == 2
    assert moved_queues((), owners) == 3, "of a group at zero each queue counts that gets its first owner"


def test_a_settled_group_is_seen_with_members_queues_and_owners() -> None:
    look = looked(SAMPLE)
    assert look.members == tuple(sorted(member.identity for member in SAMPLE.members))
    assert look.misplaced == 0
    assert look.is_rebalancing is False
    assert look.strategy == "AVG"
    assert look.owners is not None
    assert all(len(owners) == 1 for _, owners in look.owners)
    assert look.queues == tuple(queue for queue, _ in look.owners)


def test_a_queue_with_two_owners_is_misplaced_and_names_both() -> None:
    first, second, *others = SAMPLE.members
    assert first.owned is not None
    both = replace(second, owned=(*(second.owned or ()), first.owned[0]))  # type: ignore[arg-type]
    look = looked(replace(SAMPLE, members=(first, both, *others)))
    assert look.misplaced == 1
    assert dict(look.owners or ())[first.owned[0]] == (first.identity, second.identity)


def test_a_member_that_does_not_answer_leaves_owners_and_settling_unknown() -> None:
    silent = replace(SAMPLE.members[0], owned=None)
    look = looked(replace(SAMPLE, members=(silent, *SAMPLE.members[1:])))
    assert (look.owners, look.misplaced) == (None, None)


def test_what_members_say_of_their_strategy_is_told_and_parameters_that_do_not_name_a_member_leave_it_unknown() -> None:
    assert looked(SAMPLE).reported_strategies == ("AVG",)
    own = watch(1, client_tuning=tuning("com.acme.Mine"))[0]
    assert looked(own).reported_strategies == ("com.acme.Mine",)
    rooms = {"machine_rooms": {"brokers": {"broker-a": "r"}, "clients": {SAMPLE.members[0].identity: "r"}}}
    silent = watch(1, client_tuning=tuning(None))[0]
    taken = replace(build_snapshot(silent, (), silent.at, SnapshotSettings()), strategy="MACHINE_ROOM_NEARBY")
    assert observe_group(silent, replace(taken, strategy_options=rooms)).misplaced is None
    assert observe_group(silent, taken).reported_strategies == ()


def test_no_member_is_none_only_in_a_complete_sample() -> None:
    assert looked(replace(SAMPLE, members=())).members == ()
    assert looked(replace(SAMPLE, members=(), problems=("broker-a does not answer",))).members is None


def test_a_group_of_which_all_brokers_say_that_it_is_offline_has_no_member() -> None:
    offline = replace(SAMPLE, members=(), problems=("group shop is offline",))
    empty, silent = BrokerMembers("broker-a", ()), BrokerMembers("broker-b", None)
    assert looked(replace(offline, listed=(empty,))).members == ()
    assert looked(replace(offline, listed=(empty, silent))).members is None
    assert looked(replace(offline, kafka=KafkaGroup("Empty", "classic", "range"))).members == ()
    assert looked(replace(offline, kafka=KafkaGroup("PreparingRebalance", "classic", "range"))).members is None


def test_a_kafka_group_that_prepares_a_rebalance_is_rebalancing() -> None:
    for state, rebalancing in (
        ("Stable", False),
        ("PreparingRebalance", True),
        ("Reconciling", True),
        ("Empty", False),
    ):
        group = KafkaGroup(state, "classic", "range", epoch=4)
        look = looked(replace(SAMPLE, members=(), kafka=group))
        assert (look.is_rebalancing, look.epoch) == (rebalancing, 4)
