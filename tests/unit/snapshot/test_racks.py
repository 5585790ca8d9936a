"""Racks of a Kafka group's members and replicas on their way into the snapshot, and documents that have none."""

from dataclasses import replace
from datetime import UTC, datetime

from planner.documents.data import SNAPSHOT
from planner.documents.policy import parse_policy
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample, KafkaGroup, QueueOffsets
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import unsettled_queues
from planner.snapshot.build import build_snapshot
from tests.sample_builders import kafka_policy

PARTS = tuple(TopicPartition("t", number) for number in range(4))
RACKS = ("r1", "r2", "r2", "r1")


def taken(*, homes: tuple[str | None, str | None] = ("r2", "r1"), policy: str = "") -> GroupSnapshot:
    """Return the snapshot of two ``range`` members that own what lies in the racks r2 and r1."""
    owned = (PARTS[1:3], (PARTS[0], PARTS[3]))
    sample = GroupSample(
        system="kafka",
        cluster="k",
        group="shop",
        at=datetime(2026, 11, 26, tzinfo=UTC),
        took_s=0.1,
        routes=RouteTable(
            partitions=tuple(
                PartitionRoute(part, 1, (1, 2), (rack, "")) for part, rack in zip(PARTS, RACKS, strict=True)
            )
        ),
        members=tuple(
            KafkaMember(f"m{number}", f"m{number}", f"10.0.0.{number}", None, rack, ("t",), ("range",), owned[number])
            for number, rack in enumerate(homes)
        ),
        offsets=tuple(QueueOffsets(part, 10, 10) for part in PARTS),
        kafka=KafkaGroup("Stable", "classic", "range", 1, 1),
    )
    text = f"{kafka_policy('k:9092', 'shop')}  membersPerPod: 1\n{policy}"
    return build_snapshot(sample, (), sample.at, parse_policy(text, "p.yaml").snapshot_settings)


def test_replicas_racks_are_in_the_snapshot_and_explain_who_owns_what() -> None:
    """Red where they are dropped on the way: four partitions then stand for a rebalance that never ends."""
    made = taken(policy="  newPods: {rack: r1}\n")
    assert [state.racks for state in made.data_queues] == [(rack,) for rack in RACKS]
    assert made.new_pods.rack == "r1"
    assert unsettled_queues(made) == 0
    blind = replace(made, members=tuple(replace(m, rack=None) for m in made.members), new_pods=taken().new_pods)
    assert unsettled_queues(blind)
    assert SNAPSHOT.parse(SNAPSHOT.dump(made), "x") == made


def test_a_snapshot_and_a_policy_without_racks_keep_their_digests() -> None:
    body = SNAPSHOT.body(taken(homes=(None, None)))
    assert not [state for state in body["queues"] if "racks" in state]
    assert "rack" not in body["new_pods"]
    text = kafka_policy("k:9092", "shop")
    plain, stated = (parse_policy(text + more, "p.yaml") for more in ("", "  newPods: {room: x}\n"))
    assert plain.digest != stated.digest
    assert parse_policy(text + "  newPods: {}\n", "p.yaml").digest == plain.digest
