"""The few RocketMQ requests a launcher needs, written apart from the product's client.

A test that judges the product's client must not set its world up with that same client. Unlike the
product, this one also writes: it creates topics and groups.
"""

import itertools
import json
import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.clusters.errors import ClusterError

MASTER = 0
SUCCESS = 0
TOPIC_NOT_EXIST = 17
QUERY_NOT_FOUND = 22
UPDATE_TOPIC, CONSUMER_IDS, ROUTE, CLUSTER_INFO, UPDATE_GROUP, ALL_GROUPS = 17, 38, 105, 106, 200, 201
UPDATE_BROKER_CONFIG = 25
SET_REQUEST_MODE = 401
CONSUMER_OFFSET, UPDATE_OFFSET, MAX_OFFSET = 14, 15, 30

_opaque = itertools.count(1)
_BARE_INTEGER_KEY = re.compile(r"([{,])(\d+):")


@dataclass(frozen=True)
class QueueCounts:
    """How many queues a topic has on one broker."""

    read: int
    write: int


@dataclass(frozen=True)
class Answer:
    """A response: ``code`` 0 is success; ``body`` is decoded JSON, ``None`` when empty."""

    code: int
    remark: str
    fields: Mapping[str, str]
    body: Any


class RefusedError(ClusterError):
    """The server answered with another code than success."""


def ask(
    address: str, code: int, fields: Mapping[str, str] | None = None, body: bytes = b"", timeout_s: float = 30.0
) -> Answer:
    """Send one request to ``host:port`` and return its answer; raise OSError when nobody answers in time."""
    header = {
        "code": code,
        "flag": 0,
        "language": "OTHER",
        "opaque": next(_opaque),
        "version": 401,
        "extFields": dict(fields or {}),
        "serializeTypeCurrentRPC": "JSON",
    }
    encoded = json.dumps(header).encode()
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout_s) as connection:
        connection.sendall(struct.pack(">ii", 4 + len(encoded) + len(body), len(encoded)) + encoded + body)
        (length,) = struct.unpack(">i", _read(connection, 4))
        return _decode(_read(connection, length))


def ask_or_raise(address: str, code: int, fields: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
    """Like ``ask``; raise RefusedError with the server's remark unless it answers success."""
    answer = ask(address, code, fields, body)
    if answer.code != SUCCESS:
        raise RefusedError(f"{address} refused request {code} {dict(fields or {})}: {answer.code} {answer.remark}")
    return answer


def broker_addresses(name_server: str, broker_id: int = MASTER) -> dict[str, str]:
    """Return broker name -> address of its master, or of that slave, for every broker that the name server knows."""
    table = ask_or_raise(name_server, CLUSTER_INFO).body["brokerAddrTable"]
    addresses = {name: data["brokerAddrs"].get(str(broker_id)) for name, data in table.items()}
    return {name: address for name, address in addresses.items() if address}


def topic_route(name_server: str, topic: str) -> dict[str, QueueCounts]:
    """Return broker name -> queue counts as the name server tells clients; empty while it knows no such topic."""
    answer = ask(name_server, ROUTE, {"topic": topic, "acceptStandardJsonOnly": "true"})
    if answer.code == TOPIC_NOT_EXIST:
        return {}
    if answer.code != SUCCESS:
        raise RefusedError(f"route of {topic}: {answer.code} {answer.remark}")
    return {
        data["brokerName"]: QueueCounts(data["readQueueNums"], data["writeQueueNums"])
        for data in answer.body["queueDatas"]
    }


def have_announced(broker: str) -> None:
    """Have the broker at ``host:port`` register with its name server at once, by setting the permission it has."""
    ask_or_raise(broker, UPDATE_BROKER_CONFIG, body=b"brokerPermission=6\n")


def update_topic(broker: str, topic: str, counts: QueueCounts, *, permission: int = 6) -> None:
    """Create ``topic`` on the broker at ``host:port``, or change its queue counts and permission bits there."""
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(counts.read),
        "writeQueueNums": str(counts.write),
        "perm": str(permission),
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    ask_or_raise(broker, UPDATE_TOPIC, fields)


def update_group(broker: str, group: str, settings: Mapping[str, object] | None = None) -> None:
    """Create a subscription group on the broker at ``host:port``; ``settings`` override the usual ones."""
    config = {
        "groupName": group,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeBroadcastEnable": True,
        "retryQueueNums": 1,
        "retryMaxTimes": 16,
        "brokerId": 0,
        "whichBrokerWhenConsumeSlowly": 1,
        "notifyConsumerIdsChangedEnable": True,
        **(settings or {}),
    }
    ask_or_raise(broker, UPDATE_GROUP, body=json.dumps(config).encode())


def pop(broker: str, topic: str, group: str, share_queues: int) -> None:
    """Let the group's clients that leave allocation to the broker at ``host:port`` pop the topic (5.x).

    ``share_queues`` is the broker's ``popShareQueueNum``.
    """
    mode = {"topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": share_queues}
    ask_or_raise(broker, SET_REQUEST_MODE, body=json.dumps(mode).encode())


def consumer_ids(broker: str, group: str) -> tuple[str, ...]:
    """Return the client ids of ``group`` that the broker knows, sorted; empty when nobody is online."""
    answer = ask(broker, CONSUMER_IDS, {"consumerGroup": group})
    if answer.code != SUCCESS or answer.body is None:
        return ()
    return tuple(sorted(answer.body["consumerIdList"]))


def max_offset(broker: str, topic: str, queue: int) -> int:
    """Return the offset that the next message of a queue will get: the number of messages ever sent to it."""
    return int(ask_or_raise(broker, MAX_OFFSET, {"topic": topic, "queueId": str(queue)}).fields["offset"])


def committed_offset(broker: str, group: str, topic: str, queue: int) -> int | None:
    """Return the offset from which ``group`` would go on in a queue; ``None`` when it never committed there.

    A 4.9 broker may answer 0 instead, when it still has a young queue from its first message on.
    """
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue), "setZeroIfNotFound": "false"}
    answer = ask(broker, CONSUMER_OFFSET, fields)
    if answer.code == QUERY_NOT_FOUND:
        return None
    if answer.code != SUCCESS:
        raise RefusedError(f"offset of {group} in {topic}/{queue}: {answer.code} {answer.remark}")
    return int(answer.fields["offset"])


def commit_offset(broker: str, group: str, topic: str, queue: int, offset: int) -> None:
    """Commit as the group's consumer does; a 5.5.0 broker must have settings for the group."""
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue), "commitOffset": str(offset)}
    ask_or_raise(broker, UPDATE_OFFSET, fields)


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError(f"connection closed after {len(parts)} of {size} bytes")
        parts += part
    return bytes(parts)


def _decode(frame: bytes) -> Answer:
    (header_length,) = struct.unpack(">i", frame[:4])
    if header_length >> 24 != 0:
        raise ClusterError(f"the answer's header is not JSON but of type {header_length >> 24}")
    header = json.loads(frame[4 : 4 + header_length])
    body = frame[4 + header_length :].decode()
    return Answer(
        code=header["code"],
        remark=header.get("remark") or "",
        fields=header.get("extFields") or {},
        body=json.loads(_BARE_INTEGER_KEY.sub(r'\1"\2":', body)) if body else None,
    )
