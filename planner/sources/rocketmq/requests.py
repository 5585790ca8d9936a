"""The requests that this client is able to send: an allow-list, all of them reads.

A ``Request`` carries a member of ``RequestCode`` or does not come into being, and a connection sends nothing but
``Request``. So no mistake elsewhere can register a member (34), reset offsets (222) or write a message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from planner.model.queues import MessageQueue


class RequestCode(IntEnum):
    """Codes of RocketMQ's ``RequestCode`` that only read."""

    QUERY_CONSUMER_OFFSET = 14
    GET_ALL_TOPIC_CONFIG = 21
    GET_BROKER_CONFIG = 26
    GET_BROKER_RUNTIME_INFO = 28
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    GET_CONSUMER_LIST_BY_GROUP = 38
    GET_ALL_CONSUMER_OFFSET = 43
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    GET_CONSUME_STATS = 208
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223
    GET_TOPICS_BY_CLUSTER = 224
    QUERY_TOPIC_CONSUME_BY_WHO = 300
    GET_CONSUMER_RUNNING_INFO = 307
    VIEW_BROKER_STATS_DATA = 315
    GET_BROKER_CONSUME_STATS = 317
    QUERY_TOPICS_BY_CONSUMER = 343
    QUERY_SUBSCRIPTION_BY_CONSUMER = 345


class AnswerCode(IntEnum):
    """Codes of RocketMQ's ``ResponseCode`` that we distinguish."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    NOT_SUPPORTED = 3
    SERVICE_NOT_AVAILABLE = 14
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    QUERY_NOT_FOUND = 22
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    FLOW_CONTROL = 215
    GO_AWAY = 1500


@dataclass(frozen=True, slots=True)
class Request:
    """One read request; ``fields`` are the header's ``extFields``, names as RocketMQ spells them, values as text."""

    code: RequestCode
    fields: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.code, RequestCode):
            raise TypeError(f"request code {self.code!r} is not on the allow-list of read requests")

    def __str__(self) -> str:
        """``GET_CONSUME_STATS (208) for consumerGroup GroupA``: how errors and logs name a request."""
        shown = ", ".join(f"{name} {value}" for name, value in self.fields.items() if name != "jstackEnable")
        name = f"{self.code.name} ({self.code.value})"
        return f"{name} for {shown}" if shown else name


def cluster_info() -> Request:
    """Ask a name server for all brokers and clusters."""
    return Request(RequestCode.GET_BROKER_CLUSTER_INFO)


def topic_route(topic: str) -> Request:
    """Ask a name server which brokers hold ``topic``."""
    return Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})


def member_ids(group: str) -> Request:
    """Ask a broker for the client ids of ``group``."""
    return Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})


def connections(group: str) -> Request:
    """Ask a broker, or a proxy (5.1.1 on), for the connections and subscriptions of ``group``."""
    return Request(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})


def consume_stats(group: str, topic: str | None = None) -> Request:
    """Ask a broker for the offsets of ``group``, of one topic or of all that it has committed on."""
    fields = {"consumerGroup": group}
    return Request(RequestCode.GET_CONSUME_STATS, fields if topic is None else {**fields, "topic": topic})


def running_info(group: str, client_id: str) -> Request:
    """Ask a broker to ask one member about itself; never with stack traces, which halt big clients."""
    return Request(
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"},
    )


def topic_names() -> Request:
    """Ask a name server for all topics."""
    return Request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)


def topics_of_cluster(cluster: str) -> Request:
    """Ask a name server for the topics of one cluster."""
    return Request(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": cluster})


def topic_stats(topic: str) -> Request:
    """Ask a broker for the offsets of a topic's queues."""
    return Request(RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})


def groups_of_topic(topic: str) -> Request:
    """Ask a broker which groups subscribe to ``topic`` or have committed on it."""
    return Request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": topic})


def topics_of_group(group: str) -> Request:
    """Ask a broker (5.0 on) which topics ``group`` subscribes to or has committed on."""
    return Request(RequestCode.QUERY_TOPICS_BY_CONSUMER, {"group": group})


def subscription(group: str, topic: str) -> Request:
    """Ask a broker (5.0 on) what ``group`` wants of ``topic``."""
    return Request(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, {"group": group, "topic": topic})


def group_configs() -> Request:
    """Ask a broker for the settings of all its groups."""
    return Request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)


def topic_configs() -> Request:
    """Ask a broker for the settings of all its topics."""
    return Request(RequestCode.GET_ALL_TOPIC_CONFIG)


def member_offsets(group: str, topic: str, client_id: str = "") -> Request:
    """Ask a broker to ask one member, or all of them, for the offsets in their memory."""
    fields = {"topic": topic, "group": group, "clientAddr": client_id}
    return Request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)


def all_offsets() -> Request:
    """Ask a broker for all offsets that groups have committed."""
    return Request(RequestCode.GET_ALL_CONSUMER_OFFSET)


def broker_consume_stats(*, is_orderly: bool) -> Request:
    """Ask a broker for the offsets of all groups, orderly ones by the group's settings or the others."""
    return Request(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": str(is_orderly).lower()})


def committed_offset(group: str, queue: MessageQueue) -> Request:
    """Ask a broker for one committed offset; 5.x does not make up a 0 when asked like this, 4.9 does."""
    fields = {"consumerGroup": group, **_queue_fields(queue), "setZeroIfNotFound": "false"}
    return Request(RequestCode.QUERY_CONSUMER_OFFSET, fields)


def max_offset(queue: MessageQueue) -> Request:
    """Ask a broker for the offset that the queue's next message will get."""
    return Request(RequestCode.GET_MAX_OFFSET, _queue_fields(queue))


def min_offset(queue: MessageQueue) -> Request:
    """Ask a broker for the offset of the oldest message that the queue still holds."""
    return Request(RequestCode.GET_MIN_OFFSET, _queue_fields(queue))


def offset_at(queue: MessageQueue, epoch_ms: int) -> Request:
    """Ask a broker for the offset of the first message stored at or after ``epoch_ms``."""
    fields = {**_queue_fields(queue), "timestamp": str(epoch_ms)}
    return Request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields)


def counter(name: str, key: str) -> Request:
    """Ask a broker for one of its counters, for example ``GROUP_GET_NUMS`` of ``topic@group``."""
    return Request(RequestCode.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key})


def broker_runtime() -> Request:
    """Ask a broker for its figures."""
    return Request(RequestCode.GET_BROKER_RUNTIME_INFO)


def broker_config() -> Request:
    """Ask a broker for its settings."""
    return Request(RequestCode.GET_BROKER_CONFIG)


def _queue_fields(queue: MessageQueue) -> dict[str, str]:
    return {"topic": queue.topic, "queueId": str(queue.queue_id)}
