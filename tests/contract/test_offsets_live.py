"""Offset steps on real brokers: real consumers begin at exactly the offsets that were set."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from planner.deployments.groups import LiveGroups
from planner.deployments.offsets.actions import OffsetActions
from planner.deployments.offsets.installations import installation
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.errors import BadInputError
from planner.execution.effects import SetOffsets
from planner.execution.ports import ConflictError, DeniedError
from planner.rollout.steps import CloneOffsets, ResetOffsets
from tests.clusters.kafka import KafkaCluster
from tests.clusters.kafka_load import ClientProcess
from tests.clusters.rocketmq import GHOSTS_GONE_S, NEW, OLD, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_200)]

WAIT_S = 300.0
WAITS_MS = 30_000
"""So long a consumer that stops waits at most for calls that run: else they count as not consumed."""
MILLISECOND = timedelta(milliseconds=1)
Queue = tuple[str, int]


def policy(source: str, group: str, topics: str) -> ConsumerScalingPolicy:
    text = f"""
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {{name: shop}}
spec:
  source: {{{source}, group: {group}, topics: [{topics}]}}
  scaleTargetRef: {{name: shop}}
  maxReplicas: 8
"""
    return parse_policy(text, "policy")


def clone(origin: str, group: str) -> SetOffsets:
    return SetOffsets(CloneOffsets(group, f"set the offsets of {group}", 60), origin, "plan/1", "shop")


def reset(group: str, to: datetime) -> SetOffsets:
    return SetOffsets(ResetOffsets(group, f"set the offsets of {group}", 60, to_time=to), group, "plan/1", "shop")


def reset_to(group: str, **point: Any) -> SetOffsets:
    return SetOffsets(ResetOffsets(group, f"set the offsets of {group}", 60, **point), group, "plan/1", "shop")


def members(policy: ConsumerScalingPolicy, group: str) -> tuple[str, ...] | None:
    """Return the group's members as the engine sees them before it sets offsets."""
    return LiveGroups().look(policy, group, None, datetime.now(UTC)).members


def at(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms // 1000, UTC) + (epoch_ms % 1000) * MILLISECOND


class Shop:
    """A topic of four queues on two real brokers and a group ``old`` that has read a part of it."""

    def __init__(self, cluster: RocketMQCluster) -> None:
        self.cluster = cluster
        self.topic = f"offsets-{cluster.version.replace('.', '')}"
        self.old, self.green = f"{self.topic}-old", f"{self.topic}-green"
        cluster.create_topic(self.topic, 2)
        self.load = cluster.load(NEW)
        self.policy = policy(
            f"system: rocketmq, nameServers: ['{cluster.name_server}'], cluster: DefaultCluster", self.old, self.topic
        )

    def produce(self, seconds: float, rate: float) -> None:
        points = ((0.0, rate), (seconds, rate))
        queues = self.cluster.produced(self.topic)
        curves = [QueueCurve(self.topic, broker, number, points) for broker, number in queues]
        self.load.start_producer(curves).wait(WAIT_S)

    def consume(self, group: str, messages: int) -> ConsumerProcess:
        """Return a consumer that was delivered so many, as a client that begins at the start where it has no offset."""
        consumer = self.load.start_consumer(
            group=group, topics=[self.topic], instance=group, await_termination_ms=WAITS_MS
        )
        consumer.process.wait_until(f"{messages} messages", lambda: len(consumer.deliveries()) >= messages, WAIT_S)
        return consumer

    def stop(self, consumer: ConsumerProcess, group: str) -> list[Delivery]:
        """Return all that it was delivered, once no broker lists it."""
        consumer.stop()
        self.load.processes[0].wait_until(
            "the group's end", lambda: not any(self.cluster.members(group).values()), GHOSTS_GONE_S
        )
        return consumer.deliveries()

    def committed(self, group: str) -> dict[Queue, int | None]:
        return self.cluster.committed(group, self.topic)


def first_offsets(deliveries: Iterable[Delivery]) -> dict[Queue, int]:
    """Return queue -> its lowest offset; each offset from there on must have come exactly once."""
    counted = Counter((one.broker, one.queue, one.offset) for one in deliveries)
    assert set(counted.values()) == {1}, "none comes twice"
    offsets: dict[Queue, list[int]] = {}
    for broker, queue, offset in sorted(counted):
        offsets.setdefault((broker, queue), []).append(offset)
    for found in offsets.values():
        assert found == list(range(found[0], found[-1] + 1)), "none is left out"
    return {queue: found[0] for queue, found in offsets.items()}


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_rocketmq_group_begins_at_cloned_offsets_and_at_a_time(
    rocketmq_cluster: Callable[[str], RocketMQCluster], version: str
) -> None:
    shop, actions = Shop(rocketmq_cluster(version)), OffsetActions(installation)
    shop.produce(1.0, 40.0)
    shop.stop(shop.consume(shop.old, sum(shop.cluster.produced(shop.topic).values())), shop.old)
    read = shop.committed(shop.old)
    assert read == shop.cluster.produced(shop.topic)
    shop.produce(0.5, 2_000.0)
    ends = shop.cluster.produced(shop.topic)

    wanted = clone(shop.old, shop.green)
    assert not actions.state(shop.policy, wanted).is_set
    assert members(shop.policy, shop.green) == (), "no broker knows it yet"
    assert members(shop.policy, shop.old) == (), "all brokers say that it is offline"
    for _ in range(2):
        actions.set(shop.policy, wanted)
        assert actions.state(shop.policy, wanted).is_set
        assert shop.committed(shop.green) == read
    assert members(shop.policy, shop.green) == (), "it has nothing but offsets"
    backlog = sum(ends.values()) - sum(offset or 0 for offset in read.values())
    consumer = shop.consume(shop.green, backlog)
    assert members(shop.policy, shop.green) == (f"127.0.0.1@{shop.green}",)
    with pytest.raises(ConflictError, match=f"group {shop.green} has members at broker broker-"):
        actions.set(shop.policy, wanted)
    delivered = shop.stop(consumer, shop.green)
    assert first_offsets(delivered) == read
    assert shop.committed(shop.green) == ends, "the refused clone has changed nothing"

    # The millisecond in which one queue got most messages: 4.9 finds any of them, and not always the first.
    stored = Counter((one.broker, one.queue, one.stored_ms) for one in delivered)
    ((*_, time_ms), together) = stored.most_common(1)[0]
    assert together > 1, "a burst has several messages of a queue in one millisecond"
    wanted = reset(shop.green, at(time_ms))
    assert not actions.state(shop.policy, wanted).is_set
    for _ in range(2):
        actions.set(shop.policy, wanted)
        assert actions.state(shop.policy, wanted).is_set
    since = [one for one in delivered if one.stored_ms >= time_ms]
    again = shop.stop(shop.consume(shop.green, len(since)), shop.green)
    starts, exact = first_offsets(again), first_offsets(since)
    assert shop.committed(shop.green) == ends
    earlier = Counter((one.broker, one.queue) for one in again if one.stored_ms < time_ms - 1)
    assert all(starts[queue] <= exact[queue] for queue in exact), "no message since then is left out"
    assert max(earlier.values(), default=0) <= (1 if version == OLD else 0)

    first, *others = sorted(ends)
    name = f"{shop.topic}/{first[0]}/{first[1]}"
    for point, expected in (
        ({"to_end": "earliest"}, dict.fromkeys(ends, 0)),
        ({"to_offset": 3, "queue": name}, {first: 3, **dict.fromkeys(others, 0)}),
        ({"to_end": "latest", "topic": shop.topic}, ends),
    ):
        wanted = reset_to(shop.green, **point)
        assert not actions.state(shop.policy, wanted).is_set
        actions.set(shop.policy, wanted)
        assert (actions.state(shop.policy, wanted).is_set, shop.committed(shop.green)) == (True, expected)
    with pytest.raises(BadInputError, match=f"queue {name} keeps offsets 0 to {ends[first]}, the plan asks for"):
        actions.set(shop.policy, reset_to(shop.green, to_offset=ends[first] + 1, queue=name))


def test_a_new_broker_refuses_a_reset_of_a_group_that_it_has_no_settings_for(
    rocketmq_cluster: Callable[[str], RocketMQCluster],
) -> None:
    cluster = rocketmq_cluster(NEW)
    cluster.create_topic("offsets-unknown", 1)
    source = f"system: rocketmq, nameServers: ['{cluster.name_server}'], cluster: DefaultCluster"
    wanted, asked = reset("offsets-nobody", datetime.now(UTC)), policy(source, "offsets-nobody", "offsets-unknown")
    with pytest.raises(DeniedError, match=r"offsets-nobody not exist.*create the group there"):
        OffsetActions(installation).set(asked, wanted)
    cluster.create_group("offsets-nobody")
    OffsetActions(installation).set(asked, wanted)
    assert OffsetActions(installation).state(asked, wanted).is_set


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_kafka_group_begins_at_cloned_offsets_and_at_a_time(kafka_cluster: KafkaCluster, protocol: str) -> None:
    topic, old, green = f"offsets-{protocol}", f"offsets-{protocol}-old", f"offsets-{protocol}-green"
    kafka_cluster.create_topic(topic, 3)
    kafka_cluster.produce(topic, dict.fromkeys(range(3), 60))
    read = {(topic, number): 20 + number for number in range(3)}
    kafka_cluster.commit(old, read)
    servers = str(kafka_cluster.bootstrap.split(","))
    asked = policy(f"system: kafka, bootstrapServers: {servers}, cluster: c", old, topic)
    actions, clients = OffsetActions(installation), kafka_cluster.load("librdkafka").start()

    wanted = clone(old, green)
    assert not actions.state(asked, wanted).is_set
    assert members(asked, green) == members(asked, old) == (), "the one is not there, the other is empty"
    for _ in range(2):
        actions.set(asked, wanted)
        assert actions.state(asked, wanted).is_set
    _consume(clients, "first", green, topic, protocol, expected := sum(60 - offset for offset in read.values()))
    assert len(members(asked, green) or ()) == 1
    with pytest.raises(ConflictError, match=f"group {green} has members"):
        actions.set(asked, wanted)
    clients.stop_consumer("first")
    delivered = [one for one in clients.deliveries() if one.client == "first"]
    assert len(delivered) == expected
    assert {(one.topic, one.partition, one.offset) for one in delivered} == {
        (topic, number, offset) for (_, number), first in read.items() for offset in range(first, 60)
    }

    # Records of one millisecond lie before and behind that time.
    _consume(clients, "all", f"{green}-all", topic, protocol, 180)
    everything = [one for one in clients.deliveries() if one.client == "all"]
    time_ms = sorted(one.made_ms for one in everything)[len(everything) // 2]
    wanted = reset(green, at(time_ms))
    for _ in range(2):
        actions.set(asked, wanted)
        assert actions.state(asked, wanted).is_set
    since = {(one.partition, one.offset) for one in everything if one.made_ms >= time_ms}
    _consume(clients, "second", green, topic, protocol, len(since))
    clients.stop_consumer("second")
    again = [(one.partition, one.offset) for one in clients.deliveries() if one.client == "second"]
    assert sorted(again) == sorted(since)

    end, earliest = reset_to(green, to_offset=60, queue=f"{topic}/0"), reset_to(green, to_end="earliest", topic=topic)
    for wanted, expected in ((earliest, [0, 0, 0]), (end, [60, 0, 0])):
        assert not actions.state(asked, wanted).is_set
        actions.set(asked, wanted)
        with installation(asked) as offsets:
            assert [offset for _, offset in sorted(offsets.committed(green).items(), key=str)] == expected
    _consume(clients, "third", green, topic, protocol, 120)
    clients.stop_consumer("third")
    third = {(one.partition, one.offset) for one in clients.deliveries() if one.client == "third"}
    assert third == {(number, offset) for number in (1, 2) for offset in range(60)}
    with pytest.raises(BadInputError, match=f"queue {topic}/0 keeps offsets 0 to 60, the plan asks for 61,"):
        actions.set(asked, reset_to(green, to_offset=61, queue=f"{topic}/0"))


def _consume(clients: ClientProcess, client: str, group: str, topic: str, protocol: str, records: int) -> None:
    clients.start_consumer(client, group=group, topics=[topic], config={"group.protocol": protocol})

    def has_all() -> bool:
        return sum(one.client == client for one in clients.deliveries()) >= records

    clients.process.wait_until(f"{records} records for {client}", has_all, WAIT_S)
