"""Damaged answers of real servers, and every reader of the client by request code: ``tests/fuzz`` runs them."""

import re
from collections.abc import Callable
from random import Random
from typing import Final

from planner.sources.rocketmq import answers, broker_answers, codec, fastjson
from planner.sources.rocketmq.errors import BodyError, FrameError, JsonError
from tests.unit.sources.rocketmq import samples

READERS: Final[dict[str, Callable[[bytes], object]]] = {
    "106": answers.cluster_info,
    "105": lambda body: answers.topic_route(body, "TopicA").topic.read_queues,
    "38": answers.member_ids,
    "203": answers.connections,
    "208": answers.consume_stats,
    "307": answers.running_info,
    "202": broker_answers.topic_stats,
    "206": broker_answers.topic_list,
    "224": broker_answers.topic_list,
    "343": broker_answers.topic_list,
    "300": broker_answers.group_list,
    "345": broker_answers.subscription,
    "201": broker_answers.group_configs,
    "21": broker_answers.topic_configs,
    "223": broker_answers.member_offsets,
    "43": broker_answers.all_offsets,
    "317": broker_answers.broker_consume_stats,
    "315": broker_answers.counter,
    "28": broker_answers.runtime,
    "26": broker_answers.properties,
}
"""By request code, how the body of its answer is read; the other answers have a header alone."""

_MARKS: Final = [
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"0", b"-", b"null", b"true", b"\xff", b"{{", b"1e999", b"NaN"),
    *(b"", b'{"$ref":"$"}', b"-Infinity", b'\\ud800"', b"\\u", b"9" * 400, b"9" * 1200, b"[" * 300, b'{"a":' * 300),
    *(b"-1", b"2147483648", b"9223372036854775808", b"1.5", b'""', b"{}", b"[]", b"\0\0\0\1", b"\xff\xff\xff\xff"),
]
_VALUES: Final = [
    *(b"0", b"-1", b"1.5", b"1e999", b"NaN", b"null", b"true", b"{}", b"[]", b'""', b'"x"', b'"1"', b"9" * 400),
    *(b"2147483648", b"9223372036854775808", b'{"a":{}}', b"[[1]]", b'{"$ref":"$"}', b'"\\ud800"', b'"topic"', b"-0"),
]
_SCALAR: Final = re.compile(rb'"[^"\\]*"|-?[0-9.]+|true|false|null')
FRAMES: Final = [(path.stem.split("_")[0], path.read_bytes()) for path in sorted(samples.FIXTURES.rglob("*.frame"))]
WITH_BODY: Final = [(code, body) for code, frame in FRAMES if (body := codec.decode(frame[4:]).body)]


def case(chance: Random) -> tuple[str, str, bytes]:
    """Return (request code, "frame" or "body", bytes): a real answer after some damage."""
    if chance.random() < 0.3:
        code, frame = _drawn(chance, FRAMES)
        return code, "frame", _damaged(chance, frame)
    code, body = _drawn(chance, WITH_BODY)
    if chance.random() < 0.1:
        return code, "body", b"".join(chance.choices(_MARKS, k=chance.randint(1, 30)))
    if chance.random() < 0.5:
        return code, "body", _changed(chance, body)
    return code, "body", _damaged(chance, body)


def _drawn(chance: Random, listed: list[tuple[str, bytes]]) -> tuple[str, bytes]:
    """Return one of ``listed``, short ones more often: they are read faster and have all the shapes."""
    first, second = chance.choice(listed), chance.choice(listed)
    return min(first, second, key=lambda one: len(one[1]))


def _changed(chance: Random, data: bytes) -> bytes:
    """Return ``data`` with one to three values or keys replaced: right JSON mostly, with wrong content."""
    for _ in range(chance.randint(1, 3)):
        places = [match.span() for match in _SCALAR.finditer(data)]
        if places:
            start, end = chance.choice(places)
            data = data[:start] + chance.choice(_VALUES) + data[end:]
    return data


def _damaged(chance: Random, data: bytes) -> bytes:
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        start = chance.randint(0, len(data))
        if chance.random() < 0.1:
            # A part of the answer in another place of it: right tokens at wrong places.
            other = chance.randint(0, len(data))
            patch = data[other : other + chance.randint(0, 60)]
        else:
            patch = chance.choice(_MARKS) if chance.random() < 0.7 else chance.randbytes(chance.randint(0, 4))
        data = data[:start] + patch + data[start + chance.choice((0, 0, 1, 1, 2, 4, 8, 200)) :]
    return data


def outcome(code: str, kind: str, data: bytes) -> str:
    """Read ``data`` and return what came of it: "read", or the name of our error. Anything else passes through."""
    try:
        read(code, kind, data)
    except (FrameError, JsonError, BodyError) as error:
        return type(error).__name__
    return "read"


def read(code: str, kind: str, data: bytes) -> None:
    """Read an answer to the request ``code``, or its body alone."""
    if kind == "body":
        READERS.get(code, fastjson.parse)(data)
        return
    codec.frame_length(data[:4].ljust(4, b"\0"))
    answer = codec.decode(data[4:])
    if code in READERS:
        READERS[code](answer.body)
    else:
        broker_answers.header_offset(answer.fields)
