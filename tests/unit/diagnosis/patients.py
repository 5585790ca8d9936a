"""Pictures made of a few words: a healthy group, and ways to change every look at it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from planner.diagnosis.diagnose import examine
from planner.diagnosis.finding import Diagnosis, Finding, Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.brokers import BrokerState, GroupSettings
from planner.model.membership import BrokerMembers, ClientTuning, KafkaMember, Member, Subscription, TopicFigures
from planner.model.queues import MessageQueue, TopicPartition
from planner.model.routes import BrokerAddress, BrokerQueues, PartitionRoute, RouteTable, TopicRoute
from planner.model.samples import GroupSample, KafkaGroup, QueueOffsets, RocketMQGroup
from tests.sample_builders import AVERAGELY, START, Offsets, steady, watch

BROKERS = ("broker-a", "broker-b")
CIRCLE = AVERAGELY.replace("Averagely", "AveragelyByCircle")
LONG_AGO = START - timedelta(hours=5)

Change = Callable[[GroupSample], GroupSample]


def tuning(started_s_ago: float = 18_000.0, rt_ms: float = 2.0, ok_per_s: float = 20.0, **fields: Any) -> ClientTuning:
    """Return the tuning of a member in good order: it waits for its calls when it stops."""
    made = ClientTuning(
        strategy_class=AVERAGELY,
        orderly=False,
        threads=20,
        batch_size=1,
        pull_threshold=1000,
        started_at_ms=round((START.timestamp() - started_s_ago) * 1000),
        figures=(TopicFigures("orders", rt_ms, ok_per_s, 0.0),),
        properties=(("awaitTerminationMillisWhenShutdown", "5000"), ("messageModel", "CLUSTERING")),
    )
    return replace(made, **fields)


def healthy(
    looks: int = 7,
    topics: Mapping[str, int] | None = None,
    clients: Sequence[str] = ("c1", "c2"),
    offsets: Offsets | None = None,
    every_s: float = 5.0,
    **fields: Any,
) -> GroupEvidence:
    """Return a group without any finding, watched for half a minute; ``fields`` are for its tuning."""
    wanted = dict(topics or {"orders": 4})
    told = tuple(Subscription(topic, "*") for topic in wanted)
    samples = tuple(
        replace(
            sample,
            members=tuple(replace(member, subscriptions=told) for member in sample.members),
            dead_letters=0,
            routes=replace(
                sample.routes, brokers=tuple(BrokerAddress(name, "DefaultCluster", f"{name}:1") for name in BROKERS)
            ),
            listed=tuple(BrokerMembers(name, tuple(clients), tuple(f"{c}:1" for c in clients)) for name in BROKERS),
            rocketmq=RocketMQGroup(("CONSUME_PASSIVELY",), ("CLUSTERING",), tuple(broker(name) for name in BROKERS)),
        )
        for sample in watch(looks, offsets or steady(100, 100), every_s, wanted, clients, tuning(**fields))
    )
    return GroupEvidence(samples, every_s)


def broker(name: str, **fields: Any) -> BrokerState:
    """Return a broker in good order."""
    settings = GroupSettings(True, False, True, 1, 16)
    return replace(BrokerState(name, 513, "ASYNC_MASTER", 6, (-0.4, 0.9), settings), **fields)


def each(picture: GroupEvidence, change: Change) -> GroupEvidence:
    """Return the picture with every look changed."""
    return replace(picture, samples=tuple(change(sample) for sample in picture.samples))


def at(picture: GroupEvidence, index: int, change: Change) -> GroupEvidence:
    """Return the picture with one look changed."""
    samples = list(picture.samples)
    samples[index] = change(samples[index])
    return replace(picture, samples=tuple(samples))


def member(client: str, **fields: Any) -> Change:
    """Return the change of one member."""
    return lambda sample: replace(
        sample,
        members=tuple(replace(one, **fields) if one.identity == client else one for one in sample.members),
    )


def tuned(client: str, **fields: Any) -> Change:
    """Return the change of one member's tuning."""
    return lambda sample: replace(
        sample,
        members=tuple(
            replace(one, tuning=replace(one.tuning, **fields))
            if one.identity == client and isinstance(one, Member) and one.tuning
            else one
            for one in sample.members
        ),
    )


def routed(topic: str, *parts: BrokerQueues, is_static: bool = False) -> Change:
    """Return the change of one topic's route."""
    return lambda sample: replace(
        sample,
        routes=replace(
            sample.routes,
            topics=tuple(TopicRoute(topic, parts, is_static) if r.topic == topic else r for r in sample.routes.topics),
        ),
    )


def offset(queue: MessageQueue, **fields: Any) -> Change:
    """Return the change of one queue's offsets."""
    return lambda sample: replace(
        sample, offsets=tuple(replace(one, **fields) if one.queue == queue else one for one in sample.offsets)
    )


def queue(number: int, broker_name: str = "broker-a", topic: str = "orders") -> MessageQueue:
    """Return one of the healthy group's queues."""
    return MessageQueue(topic, broker_name, number)


def kafka(
    members: int = 2, partitions: int = 8, assignor: str = "range", state: str = "Stable", **fields: Any
) -> GroupEvidence:
    """Return a Kafka group in good order, two looks; ``fields`` are for its members."""
    parts = tuple(TopicPartition("orders", number) for number in range(partitions))
    people = tuple(
        replace(
            KafkaMember(
                f"m{n:02}", f"app-{n}", "10.0.0.1", f"id-{n}", None, ("orders",), (assignor,), parts[n::members]
            ),
            **fields,
        )
        for n in range(members)
    )
    samples = tuple(
        GroupSample(
            system="kafka",
            cluster="k",
            group="shop",
            at=START + timedelta(seconds=5 * number),
            took_s=0.1,
            routes=RouteTable(partitions=tuple(PartitionRoute(part, 1) for part in parts)),
            members=people,
            offsets=tuple(QueueOffsets(part, 1000 + 20 * number, 1000 + 20 * number) for part in parts),
            kafka=KafkaGroup(state, "classic", assignor, 7, 1),
        )
        for number in range(3)
    )
    return GroupEvidence(samples)


def codes(picture: GroupEvidence) -> dict[str, Severity]:
    """Return the findings' codes with their severities."""
    return {one.code: one.severity for one in examine(picture).findings}


def finding(picture: GroupEvidence, code: str) -> Finding:
    """Return the one finding of that code."""
    (one,) = [one for one in examine(picture).findings if one.code == code]
    return one


def gaps(picture: GroupEvidence) -> dict[str, str]:
    """Return the checks that could not judge, with their reasons."""
    told: Diagnosis = examine(picture)
    return {one.code: one.reason for one in told.unchecked}
