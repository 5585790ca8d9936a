"""What ownership adds to a snapshot: parameters, confirmation, contradiction; and nothing while it changes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from planner.documents.policy import parse_policy
from planner.model.membership import KafkaMember
from planner.model.queues import MessageQueue, TopicPartition
from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample, KafkaGroup, QueueOffsets
from planner.model.snapshot import GroupSnapshot
from planner.pipeline import take_snapshot
from tests.sample_builders import POLICY, START, routes, tuning, watch
from tests.unit.inference.worlds import CLASSES, owned_under

CLIENTS = ("10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1")
ROUTES = routes({"orders": 8, "payments": 3}, ("r1@a", "r2@b"))
AVG_TOLD = "running info of the members (AllocateMessageQueueAveragely)"


def samples(strategy: str, options: dict[str, object], told: str | None, count: int = 10) -> tuple[GroupSample, ...]:
    """Return a group at rest for ``5 × (count - 1)`` seconds, whose members tell the class ``told``."""
    queues = [queue for queue in ROUTES.read_queues if isinstance(queue, MessageQueue)]
    owned = owned_under(strategy, options, queues, CLIENTS)
    return tuple(
        replace(
            sample,
            routes=ROUTES,
            members=tuple(
                replace(one, owned=tuple(sorted(owned[one.identity])), tuning=tuning(told)) for one in sample.members
            ),
            offsets=tuple(QueueOffsets(queue, 1000, 1000) for queue in queues),
        )
        for sample in watch(count, clients=CLIENTS)
    )


def snapshot(seen: Sequence[GroupSample], stated: str = "") -> GroupSnapshot:
    text = POLICY.replace("minReplicas: 1", f"minReplicas: 1\n  {stated}") if stated else POLICY
    return take_snapshot(seen, 5.0, parse_policy(text, "shop.yaml"), seen[-1].at)


def test_what_members_tell_is_confirmed_by_what_they_own() -> None:
    taken = snapshot(samples("AVG", {}, CLASSES["AVG"]))
    assert taken.strategy == "AVG"
    assert taken.strategy_source == f"{AVG_TOLD}; AVG explains the owners of all 22 queues seen in 1 snapshot"


def test_a_class_that_does_not_explain_ownership_is_said() -> None:
    taken = snapshot(samples("AVG_BY_CIRCLE", {}, CLASSES["AVG"]))
    assert taken.strategy_source == (
        f"{AVG_TOLD}; AVG, which the group names, does not explain what its members own: "
        "AVG would give orders/r1@a/1 to 10.0.0.1@1, but 10.0.0.2@1 has it"
    )


def test_nothing_is_concluded_while_ownership_is_young_or_changes() -> None:
    told = CLASSES["AVG"]
    assert snapshot(samples("AVG", {}, told, count=5)).strategy_source == AVG_TOLD
    moved = (*samples("AVG", {}, told)[:-1], samples("AVG_BY_CIRCLE", {}, told)[-1])
    assert snapshot(moved).strategy_source == AVG_TOLD


def test_rooms_are_filled_in_when_only_one_set_fits() -> None:
    taken = snapshot(samples("MACHINE_ROOM", {"consumer_rooms": ["r1"]}, CLASSES["MACHINE_ROOM"]))
    assert (taken.strategy, taken.strategy_options) == ("MACHINE_ROOM", {"consumer_rooms": ["r1"]})


def test_the_default_number_of_virtual_nodes_is_confirmed() -> None:
    taken = snapshot(samples("CONSISTENT_HASH", {}, CLASSES["CONSISTENT_HASH"]))
    assert (taken.strategy, taken.strategy_options) == ("CONSISTENT_HASH", {})
    assert "CONSISTENT_HASH with 10" in taken.strategy_source


def test_another_number_of_virtual_nodes_is_never_taken_for_the_default() -> None:
    taken = snapshot(samples("CONSISTENT_HASH", {"virtual_nodes": 160}, CLASSES["CONSISTENT_HASH"]))
    assert (taken.strategy, taken.strategy_options) == (None, {})
    assert taken.strategy_source.endswith(
        "CONSISTENT_HASH with 147 to 194 virtual nodes explains the owners of all 22 queues seen in 1 snapshot: "
        "state the number in spec.strategyOptions"
    )
    stated = snapshot(
        samples("CONSISTENT_HASH", {"virtual_nodes": 160}, CLASSES["CONSISTENT_HASH"]),
        "strategy: CONSISTENT_HASH\n  strategyOptions: {virtual_nodes: 160}",
    )
    assert (stated.strategy, stated.strategy_options) == ("CONSISTENT_HASH", {"virtual_nodes": 160})


def test_a_single_number_of_virtual_nodes_is_filled_in() -> None:
    """3 nodes on three clients: 22 queues leave no other number."""
    taken = snapshot(samples("CONSISTENT_HASH", {"virtual_nodes": 3}, CLASSES["CONSISTENT_HASH"]))
    assert (taken.strategy, taken.strategy_options) == ("CONSISTENT_HASH", {"virtual_nodes": 3})


def test_a_strategy_that_nobody_tells_is_found() -> None:
    taken = snapshot(samples("AVG_BY_CIRCLE", {}, None))
    assert taken.strategy == "AVG_BY_CIRCLE"
    assert taken.strategy_source.startswith("no member reports its allocation strategy; AVG_BY_CIRCLE explains")


def test_a_users_own_class_is_described_and_not_replaced() -> None:
    taken = snapshot(samples("AVG", {}, "com.shop.Mine"))
    assert taken.strategy is None
    assert "the members run com.shop.Mine, which is not known here; AVG explains" in taken.strategy_source


@pytest.mark.parametrize("told", [None, CLASSES["AVG"]])
def test_a_policy_that_ownership_contradicts_leaves_the_strategy_unknown(told: str | None) -> None:
    taken = snapshot(samples("AVG", {}, told), "strategy: AVG_BY_CIRCLE")
    assert taken.strategy is None
    assert taken.strategy_source.startswith("the policy s")
    right = snapshot(samples("AVG", {}, told), "strategy: AVG")
    assert (right.strategy, right.strategy_source) == ("AVG", "stated by the policy")


def test_stated_parameters_are_held_against_ownership_too() -> None:
    seen = samples("CONSISTENT_HASH", {"virtual_nodes": 160}, CLASSES["CONSISTENT_HASH"])
    taken = snapshot(seen, "strategy: CONSISTENT_HASH\n  strategyOptions: {virtual_nodes: 10}")
    assert (taken.strategy, taken.strategy_options) == (None, {})
    assert "the policy states CONSISTENT_HASH, but CONSISTENT_HASH would give" in taken.strategy_source


def kafka(assignor: str | None, owned: dict[str, list[int]]) -> tuple[GroupSample, ...]:
    partitions = tuple(TopicPartition("t", number) for number in range(5))
    members = tuple(
        KafkaMember(name, name, "10.0.0.1", topics=("t",), owned=tuple(TopicPartition("t", one) for one in numbers))
        for name, numbers in owned.items()
    )
    return tuple(
        GroupSample(
            "kafka",
            "c",
            "shop",
            START + timedelta(seconds=5 * number),
            0.1,
            RouteTable(partitions=tuple(PartitionRoute(partition, 1) for partition in partitions)),
            members,
            tuple(QueueOffsets(partition, 10, 10) for partition in partitions),
            kafka=KafkaGroup("Stable", "classic", assignor, 3),
        )
        for number in range(10)
    )


def test_a_kafka_groups_assignor_is_confirmed_or_found() -> None:
    told = snapshot(kafka("range", {"a": [0, 1, 2], "b": [3, 4]}))
    assert told.strategy_source == (
        "the coordinator (classic protocol); range explains the owners of all 5 queues seen in 1 snapshot"
    )
    silent = snapshot(kafka(None, {"a": [0, 2, 4], "b": [1, 3]}))
    assert (silent.strategy, "roundrobin explains" in silent.strategy_source) == ("roundrobin", True)
