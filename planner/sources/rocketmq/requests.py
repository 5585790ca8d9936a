"""The requests that this client is able to send: an allow-list, all of them reads.

A ``Request`` carries a member of ``RequestCode`` or does not come into being, and a connection sends nothing but
``Request``. So no mistake elsewhere can register a member (34), reset offsets (222) or write a message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class RequestCode(IntEnum):
    """Codes of RocketMQ's ``RequestCode`` that only read."""

    GET_CONSUMER_LIST_BY_GROUP = 38
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_CONSUME_STATS = 208
    GET_CONSUMER_RUNNING_INFO = 307


class AnswerCode(IntEnum):
    """Codes of RocketMQ's ``ResponseCode`` that we tell apart."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    NOT_SUPPORTED = 3
    SERVICE_NOT_AVAILABLE = 14
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
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
        wanted = ", ".join(f"{name} {value}" for name, value in self.fields.items() if name != "jstackEnable")
        name = f"{self.code.name} ({self.code.value})"
        return f"{name} for {wanted}" if wanted else name


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
    """Ask a broker for the connections and subscriptions of ``group``."""
    return Request(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})


def consume_stats(group: str, topic: str | None = None) -> Request:
    """Ask a broker for the offsets of ``group``, of one topic or of all that it has committed on."""
    wanted = {"consumerGroup": group}
    return Request(RequestCode.GET_CONSUME_STATS, wanted if topic is None else {**wanted, "topic": topic})


def running_info(group: str, client_id: str) -> Request:
    """Ask a broker to ask one member about itself; never with stack traces, which halt big clients."""
    return Request(
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"},
    )
