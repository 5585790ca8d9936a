"""Bodies of answers as our types: pure functions, one per request.

Each raises ``JsonError`` for what is not JSON and ``BodyError``, with the place, for JSON of another shape. Fields
that are not used are not read, so a server may add its own. Shapes: RocketMQ 4.9 to 5.5, ``protocol.body``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from planner.model.membership import ClientTuning, Subscription, TopicFigures
from planner.model.queues import MessageQueue
from planner.model.routes import MAX_QUEUES, BrokerAddress, BrokerQueues, TopicRoute
from planner.model.samples import QueueOffsets
from planner.sources.rocketmq import fastjson, shapes
from planner.sources.rocketmq.errors import BodyError
from planner.sources.rocketmq.fastjson import Json, Key

_MASTER: Final = 0
_KEPT_PROPERTIES: Final = (
    "awaitTerminationMillisWhenShutdown",
    "consumeFromWhere",
    "messageModel",
    "clientRebalance",
    "autoCommit",
    "autoCommitIntervalMillis",
    "pollTimeoutMillis",
    "pullBatchSize",
    "pullInterval",
    "pullThreadNums",
    "pullThresholdForAll",
    "consumeConcurrentlyMaxSpan",
    "PROP_CONSUME_TYPE",
    "PROP_CLIENT_VERSION",
)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """All brokers of a name server, in name order; ``unreachable`` names those without any address."""

    brokers: tuple[BrokerAddress, ...]
    clusters: tuple[str, ...]
    unreachable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """A topic's route; ``is_static`` marks a 5.x static topic, whose real queues are mapped ones, not these."""

    topic: TopicRoute
    is_static: bool = False


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """One member's connection to the broker that was asked; ``version`` is the ordinal of ``MQVersion``."""

    client_id: str
    address: str
    language: str
    version: int


@dataclass(frozen=True, slots=True)
class GroupConnections:
    """A group on one broker: its connections by client id, its topics sorted, and how it consumes.

    ``consume_type`` is ``CONSUME_PASSIVELY`` (push), ``CONSUME_ACTIVELY`` (pull) or ``CONSUME_POP``;
    ``message_model`` is ``CLUSTERING`` or ``BROADCASTING``.
    """

    connections: tuple[ClientConnection, ...]
    topics: tuple[str, ...]
    consume_type: str
    message_model: str
    consume_from: str


@dataclass(frozen=True, slots=True)
class ConsumeStats:
    """Offsets of a group on one broker, sorted by queue; ``delivered_per_s`` is messages pulled, last minute."""

    delivered_per_s: float
    offsets: tuple[QueueOffsets, ...]


@dataclass(frozen=True, slots=True)
class RunningInfo:
    """What one member reports of itself: tuning, owned queues (dropped ones left out), subscriptions; sorted."""

    tuning: ClientTuning
    owned: tuple[MessageQueue, ...]
    subscriptions: tuple[Subscription, ...]


def cluster_info(body: bytes) -> ClusterInfo:
    """Return the brokers in the answer to 106: the master's address, or the lowest slave's without a master."""
    fields = shapes.mapping(fastjson.parse(body), "cluster info")
    table = shapes.mapping(fields.get("brokerAddrTable") or {}, "brokerAddrTable")
    brokers, unreachable = [], []
    for name, entry in table.items():
        broker = _broker(str(name), shapes.mapping(entry, f"brokerAddrTable.{name}"))
        if broker is None:
            unreachable.append(str(name))
        else:
            brokers.append(broker)
    return ClusterInfo(
        tuple(sorted(brokers, key=lambda broker: broker.broker)),
        tuple(sorted({broker.cluster for broker in brokers})),
        tuple(sorted(unreachable)),
    )


def _broker(name: str, entry: Mapping[Key, Json]) -> BrokerAddress | None:
    addresses = shapes.mapping(entry.get("brokerAddrs") or {}, f"brokerAddrs of {name}")
    by_id = {_broker_id(key, name): shapes.text(value, f"address of {name}") for key, value in addresses.items()}
    if not by_id:
        return None
    lowest = min(by_id)
    cluster = shapes.text(entry.get("cluster") or "", f"cluster of {name}")
    return BrokerAddress(name, cluster, by_id[lowest], is_master=lowest == _MASTER)


def _broker_id(key: Key, name: str) -> int:
    number = fastjson.integer_key(key)
    if not isinstance(number, int):
        raise BodyError(f"broker id of {name} is {key!r:.60}, expected an integer")
    return number


def topic_route(body: bytes, topic: str) -> Route:
    """Return the route in the answer to 105; readable and writable or not, brokers in name order."""
    fields = shapes.mapping(fastjson.parse(body), f"route of {topic}")
    brokers = [
        BrokerQueues(
            broker=shapes.text(entry.get("brokerName"), f"queueDatas[{index}].brokerName"),
            read_queues=_queue_count(entry.get("readQueueNums"), f"queueDatas[{index}].readQueueNums"),
            write_queues=_queue_count(entry.get("writeQueueNums"), f"queueDatas[{index}].writeQueueNums"),
            permission=shapes.integer(entry.get("perm"), f"queueDatas[{index}].perm"),
        )
        for index, entry in enumerate(shapes.mappings(fields.get("queueDatas"), "queueDatas"))
    ]
    is_static = bool(fields.get("topicQueueMappingByBroker"))
    return Route(
        TopicRoute(topic, tuple(sorted(brokers, key=lambda broker: broker.broker)), is_static), is_static=is_static
    )


def _queue_count(value: Json, where: str) -> int:
    """Return a number of queues; a wrong one would make us list billions of queues."""
    count = shapes.integer(value, where)
    if not 0 <= count <= MAX_QUEUES:
        raise BodyError(f"{where} is {str(count)[:20]}, expected 0 to {MAX_QUEUES}")
    return count


def member_ids(body: bytes) -> tuple[str, ...]:
    """Return the client ids in the answer to 38, sorted; an id that is listed twice is connected twice."""
    fields = shapes.mapping(fastjson.parse(body), "consumer list")
    return shapes.texts(fields.get("consumerIdList"), "consumerIdList")


def connections(body: bytes) -> GroupConnections:
    """Return the connections and subscribed topics in the answer to 203."""
    fields = shapes.mapping(fastjson.parse(body), "consumer connections")
    listed = [
        ClientConnection(
            client_id=shapes.text(entry.get("clientId"), f"connectionSet[{index}].clientId"),
            address=shapes.text(entry.get("clientAddr"), f"connectionSet[{index}].clientAddr"),
            language=shapes.text(entry.get("language") or "", f"connectionSet[{index}].language"),
            version=shapes.integer(entry.get("version"), f"connectionSet[{index}].version"),
        )
        for index, entry in enumerate(shapes.mappings(fields.get("connectionSet"), "connectionSet"))
    ]
    return GroupConnections(
        connections=tuple(sorted(listed, key=lambda connection: (connection.client_id, connection.address))),
        topics=tuple(
            sorted(str(topic) for topic in shapes.mapping(fields.get("subscriptionTable") or {}, "subscriptionTable"))
        ),
        consume_type=shapes.text(fields.get("consumeType") or "", "consumeType"),
        message_model=shapes.text(fields.get("messageModel") or "", "messageModel"),
        consume_from=shapes.text(fields.get("consumeFromWhere") or "", "consumeFromWhere"),
    )


def consume_stats(body: bytes) -> ConsumeStats:
    """Return the offsets in the answer to 208; empty for a group that the broker does not know."""
    return stats_of(shapes.mapping(fastjson.parse(body), "consume stats"))


def stats_of(fields: Mapping[Key, Json]) -> ConsumeStats:
    """Return the offsets in an object of RocketMQ's ``ConsumeStats``."""
    table = shapes.mapping(fields.get("offsetTable") or {}, "offsetTable")
    offsets = [_offsets(key, entry) for key, entry in table.items()]
    return ConsumeStats(
        delivered_per_s=shapes.number(fields.get("consumeTps", 0.0), "consumeTps"),
        offsets=tuple(sorted(offsets, key=lambda entry: entry.queue)),
    )


def _offsets(key: Key, entry: Json) -> QueueOffsets:
    queue = shapes.queue(key, "offsetTable")
    fields = shapes.mapping(entry, f"offsetTable of {queue}")
    return QueueOffsets(
        queue=queue,
        broker_offset=shapes.integer(fields.get("brokerOffset"), f"brokerOffset of {queue}"),
        consumer_offset=shapes.integer(fields.get("consumerOffset"), f"consumerOffset of {queue}"),
        last_timestamp_ms=shapes.integer(fields.get("lastTimestamp", 0), f"lastTimestamp of {queue}"),
    )


def running_info(body: bytes) -> RunningInfo:
    """Return what a member reports of itself in the answer to 307."""
    fields = shapes.mapping(fastjson.parse(body), "running info")
    table = shapes.mapping(fields.get("mqTable") or {}, "mqTable")
    entries = {queue: entry for key, entry in table.items() for queue in [shapes.queue(key, "mqTable")]}
    owned = [queue for queue, entry in entries.items() if not _is_dropped(entry, queue)]
    subscribed = shapes.mappings(fields.get("subscriptionSet") or [], "subscriptionSet")
    return RunningInfo(
        tuning=replace(_tuning(fields), cached_messages=_cached({queue: entries[queue] for queue in owned})),
        owned=tuple(sorted(owned)),
        subscriptions=tuple(sorted(map(_subscription, subscribed), key=lambda subscription: subscription.topic)),
    )


def _subscription(entry: Mapping[Key, Json]) -> Subscription:
    topic = shapes.text(entry.get("topic"), "topic in subscriptionSet")
    return Subscription(
        topic=topic,
        expression=shapes.text(entry.get("subString") or "", f"subString of {topic}"),
        kind=shapes.text(entry.get("expressionType") or "TAG", f"expressionType of {topic}"),
    )


def _is_dropped(entry: Json, queue: MessageQueue) -> bool:
    # "droped" is RocketMQ's own spelling; the correct one would be read as well, should it come one day.
    fields = shapes.mapping(entry, f"mqTable of {queue}")
    return bool(fields.get("droped") or fields.get("dropped"))


def _cached(owned: Mapping[MessageQueue, Json]) -> int | None:
    """Return the messages that lie in the member's own queues, ``None`` as soon as one entry does not have them."""
    counts = [shapes.mapping(entry, f"mqTable of {queue}").get("cachedMsgCount") for queue, entry in owned.items()]
    if not counts or None in counts:
        return None
    return sum(shapes.integer(count, "cachedMsgCount in mqTable") for count in counts)


def _tuning(fields: Mapping[Key, Json]) -> ClientTuning:
    properties = {
        str(name): value
        for name, value in shapes.mapping(fields.get("properties") or {}, "properties").items()
        if isinstance(value, str)
    }
    strategy = properties.get("allocateMessageQueueStrategy")
    return ClientTuning(
        strategy_class=strategy.rpartition("@")[0] or strategy if strategy else None,
        orderly=properties.get("PROP_CONSUMEORDERLY") == "true",
        # The queue in front of the pool has no bound, so that it never grows from its core size to consumeThreadMax.
        threads=_positive(_count(properties, "PROP_THREADPOOL_CORE_SIZE", "consumeThreadMin", "consumeThreadMax")),
        batch_size=_count(properties, "consumeMessageBatchMaxSize"),
        pull_threshold=_count(properties, "pullThresholdForQueue"),
        started_at_ms=_count(properties, "PROP_CONSUMER_START_TIMESTAMP"),
        figures=_figures(shapes.mapping(fields.get("statusTable") or {}, "statusTable")),
        properties=tuple((name, properties[name]) for name in _KEPT_PROPERTIES if name in properties),
    )


def _count(properties: Mapping[str, str], *names: str) -> int | None:
    """Return the first of ``names`` that is there as an integer; clients of other languages leave some out."""
    for name in names:
        number = fastjson.integer_key(properties.get(name, ""))
        if isinstance(number, int):
            return number
    return None


def _positive(count: int | None) -> int | None:
    """Return the count; clients of other languages report -1 or 0 for what they do not know."""
    return count if count is not None and count > 0 else None


def _figures(table: Mapping[Key, Json]) -> tuple[TopicFigures, ...]:
    entries = ((str(topic), shapes.mapping(entry, f"statusTable of {topic}")) for topic, entry in table.items())
    figures = (_topic_figures(topic, entry) for topic, entry in entries)
    return tuple(
        sorted((of_topic for of_topic in figures if of_topic is not None), key=lambda of_topic: of_topic.topic)
    )


def _topic_figures(topic: str, entry: Mapping[Key, Json]) -> TopicFigures | None:
    """Return the figures of one topic, ``None`` when one is infinite or no number: it would spoil every mean."""
    names = ("consumeRT", "consumeOKTPS", "consumeFailedTPS")
    values = [shapes.number(entry.get(name, 0.0), f"{name} of {topic}") for name in names]
    return TopicFigures(topic, *values) if all(map(math.isfinite, values)) else None
