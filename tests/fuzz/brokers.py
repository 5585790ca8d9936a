"""Readers of what brokers and Prometheus answer."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final
from unittest import mock

from planner.sources.kafka import describe, requests, sasl, wire
from planner.sources.kafka.errors import ProtocolError
from planner.sources.kafka.subscription import read_assignment, read_subscription
from planner.sources.kafka.wire import Reader as WireReader
from planner.sources.prometheus.answers import error_of
from planner.sources.prometheus.choice import GroupQuery, list_groups
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.history import history
from planner.sources.rocketmq import fastjson
from planner.sources.rocketmq.errors import BodyError, FrameError, JsonError
from tests.fuzz.damage import damaged_bytes, json_or_bytes
from tests.fuzz.engine import Reader
from tests.unit.sources.kafka.test_kafka_sasl import NONCE, SERVER_FINAL, SERVER_FIRST
from tests.unit.sources.kafka.test_kafka_wire import MEMBER_ANSWER, OWNED, TOPICS
from tests.unit.sources.rocketmq import fuzz as rocketmq

_APIS: Final = (
    requests.API_VERSIONS,
    requests.SASL_HANDSHAKE,
    requests.SASL_AUTHENTICATE,
    requests.METADATA,
    requests.FIND_COORDINATOR,
    requests.LIST_GROUPS,
    requests.DESCRIBE_GROUPS,
    requests.CONSUMER_GROUP_DESCRIBE,
    requests.OFFSET_FETCH,
)
_SUBSCRIPTION, _ASSIGNMENT = len(_APIS), len(_APIS) + 1
_MEMBERS: Final = (requests.DESCRIBE_GROUPS, requests.CONSUMER_GROUP_DESCRIBE)


def read_rocketmq(data: bytes) -> object:
    """Read ``CODE KIND``, a line break, and the bytes of that answer."""
    head, _, body = data.partition(b"\n")
    code, _, kind = head.decode().partition(" ")
    return rocketmq.read(code, kind, body)


def damage_rocketmq(chance: Random, _: bytes, __: Sequence[bytes]) -> bytes:
    """Return a real answer after some damage, by the fuzzer that knows RocketMQ's codes."""
    code, kind, body = rocketmq.case(chance)
    return f"{code} {kind}\n".encode() + body


def rocketmq_seeds() -> list[bytes]:
    """Return the recorded frames."""
    return [f"{code} frame\n".encode() + frame for code, frame in rocketmq.FRAMES]


def fastjson_seeds() -> list[bytes]:
    """Return the bodies of recorded answers, short ones."""
    return [body for _, body in rocketmq.WITH_BODY if len(body) < 3_000]


def read_kafka(data: bytes) -> object:
    """Read an answer: a byte for the request, a byte for the version, the fields."""
    number, body = data[0] if data else 0, data[2:]
    if number >= len(_APIS):
        return (read_subscription if number % 2 else read_assignment)(body)
    api = _APIS[number]
    version = max(api.versions[0], min(api.versions[1], data[1] if len(data) > 1 else 0))
    answer = api.read(WireReader(body), version)
    if api in _MEMBERS:
        return [describe._description(group, 1, {}) for group in answer]
    return answer


def damage_kafka(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage the fields, seldom the request's number."""
    if chance.random() < 0.05:
        data = bytes([chance.randint(0, _ASSIGNMENT + 1), chance.randint(0, 9)]) + data[2:]
    return data[:2] + damaged_bytes(chance, data[2:], [one[2:] for one in others])


def kafka_seeds() -> list[bytes]:
    """Return one answer to each request, and a member's own bytes."""
    subscription = wire.int16(3) + TOPICS + wire.int32(-1) + OWNED + wire.int32(7) + wire.text("r1")
    assignment = wire.int16(1) + OWNED + wire.int32(-1)
    coordinator = wire.compact_text("g") + wire.int32(2) + wire.compact_text("h") + wire.int32(9092)
    node = wire.int32(1) + wire.compact_text("h") + wire.int32(9092) + wire.compact_text("r") + b"\0"
    listing = b"".join(map(wire.compact_text, ("g", "consumer", "Stable", "Consumer"))) + b"\0"
    packed = (wire.varint(len(subscription) + 1) + subscription, wire.varint(len(assignment) + 1) + assignment)
    member = wire.compact_text("m") + b"\0" + wire.compact_text("c") + wire.compact_text("/1.2.3.4") + b"".join(packed)
    names = b"".join(map(wire.compact_text, ("g", "Stable", "consumer", "range")))
    classic = wire.int16(0) + names + b"\x02" + member + b"\0" + wire.int32(-2147483648) + b"\0"
    commit = wire.int32(0) + (7).to_bytes(8) + wire.int32(1) + b"\0" + wire.int16(0) + b"\0"
    commits = (
        wire.compact_text("g") + b"\x02" + wire.compact_text("t") + b"\x02" + commit + b"\0" + wire.int16(0) + b"\0"
    )
    bodies = [
        (requests.API_VERSIONS, wire.int16(0) + wire.int32(1) + wire.int16(18) + wire.int16(0) + wire.int16(4)),
        (requests.SASL_HANDSHAKE, wire.int16(0) + wire.int32(1) + wire.text("PLAIN")),
        (requests.SASL_AUTHENTICATE, wire.int16(0) + wire.text(None) + wire.data(b"x") + bytes(8)),
        (requests.METADATA, wire.int32(0) + b"\x02" + node + wire.compact_text("id")),
        (requests.FIND_COORDINATOR, wire.int32(0) + b"\x02" + coordinator + wire.int16(0) + b"\0\0" + b"\0"),
        (requests.LIST_GROUPS, wire.int32(0) + wire.int16(0) + b"\x02" + listing + b"\0"),
        (requests.DESCRIBE_GROUPS, wire.int32(0) + b"\x02" + classic + b"\0"),
        (requests.CONSUMER_GROUP_DESCRIBE, MEMBER_ANSWER),
        (requests.OFFSET_FETCH, wire.int32(0) + b"\x02" + commits + b"\0"),
    ]
    answers = [bytes([_APIS.index(api), api.versions[1]]) + body for api, body in bodies]
    return [*answers, bytes([_SUBSCRIPTION, 0]) + subscription, bytes([_ASSIGNMENT, 0]) + assignment]


def read_scram(data: bytes) -> object:
    """Speak SCRAM with a broker that says these lines, whatever it is asked."""
    with mock.patch.object(sasl.secrets, "token_urlsafe", lambda _: NONCE):
        talk = sasl.exchange("SCRAM-SHA-256", "user", "pencil")
        next(talk)
        try:
            for said in data.split(b"\n"):
                talk.send(said)
        except StopIteration:
            return True
    return False


class _Scripted(Prometheus):
    """A server whose answers stand in one document: to series, and to ranges by a metric's name in the query."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.url, self._answers = "http://prometheus", answers

    def _get(self, path: str, asked: Sequence[tuple[str, str]], where: str) -> bytes:  # noqa: ARG002
        query = "".join(value for name, value in asked if name in ("query", "match[]"))
        name = next((key for key in self._answers if key.startswith(path) and key.partition(" ")[2] in query), "")
        none: Any = {"status": "success", "data": [] if path == "series" else {"resultType": "matrix", "result": []}}
        return json.dumps(self._answers.get(name, none)).encode()


_SINCE: Final = datetime(2026, 11, 1, tzinfo=UTC)
_SPAN: Final = timedelta(minutes=5)


def read_prometheus(data: bytes) -> object:
    """Read a group's past from a server that answers what the document has; other bytes are an error's page."""
    try:
        answers = json.loads(data)
    except (ValueError, RecursionError):
        answers = None
    error_of(data)
    if not isinstance(answers, dict):
        return None
    server, system = _Scripted(answers), "rocketmq" if "rocketmq" in str(list(answers)) else "kafka"
    list_groups(server, GroupQuery(system, "g"), _SINCE, _SINCE + _SPAN)
    return history(server, GroupQuery(system, "g"), _SINCE, _SINCE + _SPAN)


def prometheus_seeds() -> list[bytes]:
    """Return the answers of the four families that we read."""
    kafka = {"topic": "t", "partition": "0"}
    lag = {"cluster_name": "c", "group": "g", "topic": "t", "partition": "0"}
    broker = {"cluster": "c", "node_id": "b", "topic": "t", "consumer_group": "g", "message_type": "normal"}
    exporter = {"cluster": "c", "broker": "b", "topic": "t", "group": "g"}
    families = (
        {
            "kafka_consumergroup_lag": {**kafka, "consumergroup": "g"},
            "kafka_consumergroup_current_offset": {**kafka, "consumergroup": "g"},
            "kafka_topic_partition_current_offset": kafka,
            "kafka_consumergroup_members": {"consumergroup": "g"},
            "kafka_topic_partition_leader": kafka,
        },
        {
            "kafka_consumergroup_group_lag": lag,
            "kafka_consumergroup_group_lag_seconds": lag,
            "kafka_consumergroup_group_offset": lag,
            "kafka_partition_latest_offset": {"cluster_name": "c", **kafka},
        },
        {
            "rocketmq_consumer_lag_messages": {**broker, "is_retry": "false"},
            "rocketmq_messages_in_total": broker,
            "rocketmq_messages_out_total": broker,
            "rocketmq_consumer_lag_latency_milliseconds": broker,
            "rocketmq_consumer_connections": {**broker, "language": "JAVA", "version": "V5", "consume_mode": "PUSH"},
        },
        {
            "rocketmq_group_diff": exporter,
            "rocketmq_producer_offset": exporter,
            "rocketmq_consumer_offset": exporter,
            "rocketmq_group_get_latency_by_storetime": exporter,
            "rocketmq_group_count": {"group": "g"},
        },
    )
    lean = (dict(list(family.items())[:2]) for family in families)
    whole = [json.dumps(_answers(family)).encode() for family in families]
    return [*whole, *(json.dumps(_answers(family, steps=2)).encode() for family in lean)]


_READINGS: Final = (
    *(
        "NaN",
        "+Inf",
        "-Inf",
        "-0",
        "-1",
        "0",
        "0.5",
        "1e300",
        "5e-324",
        "9007199254740993",
        "1e",
        "",
        "0x10",
        "9" * 400,
    ),
)
_LABELS: Final = (
    "",
    "0",
    "-1",
    "1.0",
    "65536",
    "99999999999999999999",
    "\0",
    "\u202e",
    "a" * 300,
    "true",
    "%RETRY%g",
    "..",
)


def damage_prometheus(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return answers in whose series a reading, a time, a label or a series is another; else damage of any kind."""
    try:
        answers = json.loads(data)
        answer = chance.choice(list(answers.values()))
        _damage_answer(chance, answer)
        return json.dumps(answers).encode()
    except (ValueError, RecursionError, TypeError, KeyError, IndexError, AttributeError):
        return json_or_bytes(chance, data, others)


def _damage_answer(chance: Random, answer: Any) -> None:
    if isinstance(answer["data"], list):
        answer["data"].append(dict(answer["data"][0]))
        return _damage_labels(chance, answer["data"][-1])
    series = answer["data"]["result"]
    entry = chance.choice(series)
    action = chance.random()
    if action < 0.4:
        pair = chance.choice(entry["values"])
        pair[1] = chance.choice((*_READINGS, chance.choice(entry["values"])[1]))
    elif action < 0.6:
        pair = chance.choice(entry["values"])
        pair[0] = chance.choice((pair[0] + chance.choice((-60, -1, 0.5, 60, 3600, 1e12)), -1, 0, str(pair[0]), 1e300))
    elif action < 0.8:
        _damage_labels(chance, entry["metric"])
    elif action < 0.9:
        series.append(json.loads(json.dumps(entry)))
        _damage_labels(chance, series[-1]["metric"])
    else:
        del entry["values"][: chance.randint(0, len(entry["values"]))]
        series.remove(chance.choice(series))
    return None


def _damage_labels(chance: Random, labels: dict[str, str]) -> None:
    name = chance.choice([*labels, "x"])
    if chance.random() < 0.3:
        labels.pop(name, None)
    else:
        labels[name] = chance.choice((*_LABELS, *labels.values()))


def damage_half_of_prometheus(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage series as above in one half of the cases, anything in the other."""
    return (damage_prometheus if chance.random() < 0.5 else json_or_bytes)(chance, data, others)


def _answers(family: dict[str, dict[str, str]], steps: int = 6) -> dict[str, Any]:
    listed, *_ = family.items()
    series = {"status": "success", "data": [{"__name__": listed[0], **listed[1]}]}
    ranges = {f"query_range {name}": _range(labels, steps) for name, labels in family.items()}
    return {f"series {listed[0]}": series, **ranges}


def _range(labels: dict[str, str], steps: int) -> dict[str, Any]:
    first = _SINCE.timestamp()
    values = [[first + 60 * step, str(1000 + 60 * step)] for step in range(steps)]
    times = [[first + 60 * step, str(first + 60 * step - 3)] for step in range(steps)]
    readings = {"value": values, "time": times, "lowest": values, "resets": [[time, "0"] for time, _ in values]}
    result = [{"metric": {**labels, "planner_reads": name}, "values": told} for name, told in readings.items()]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


READERS: Final = (
    Reader(
        "rocketmq",
        read_rocketmq,
        rocketmq_seeds,
        ("planner.sources.rocketmq",),
        damage_rocketmq,
        (FrameError, JsonError, BodyError),
    ),
    Reader(
        "fastjson",
        fastjson.parse,
        fastjson_seeds,
        ("planner.sources.rocketmq.fastjson",),
        damaged_bytes,
        (JsonError,),
    ),
    Reader(
        "kafka wire",
        read_kafka,
        kafka_seeds,
        ("planner.sources.kafka",),
        damage_kafka,
        (ProtocolError,),
    ),
    Reader(
        "scram",
        read_scram,
        lambda: [SERVER_FIRST + b"\n" + SERVER_FINAL],
        ("planner.sources.kafka.sasl",),
        damaged_bytes,
        (ProtocolError,),
    ),
    Reader("prometheus", read_prometheus, prometheus_seeds, ("planner.sources.prometheus",), damage_half_of_prometheus),
)
