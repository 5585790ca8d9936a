"""Random bytes and damaged real answers: our own errors come out, never anything else."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.sources.rocketmq import answers, broker_answers, codec, fastjson
from planner.sources.rocketmq.errors import BodyError, FrameError, JsonError
from tests.unit.sources.rocketmq import samples

READERS: dict[str, Callable[[bytes], object]] = {
    "106": answers.cluster_info,
    "105": lambda body: answers.topic_route(body, "TopicA"),
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
HEADER_ONLY = {"14", "29", "30", "31"}
FRAMES = {path: path.read_bytes() for path in sorted(samples.FIXTURES.rglob("*.frame"))}
MARKS = [b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"0", b"-", b"null", b"\xff", b"{{", b"1e999", b"NaN", b""]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A recorded frame after one to five cuts, changed bytes or inserted marks."""
    path = draw(st.sampled_from(sorted(FRAMES)))
    data = FRAMES[path]
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 8))
        patch = draw(st.sampled_from(MARKS) | st.binary(max_size=4))
        data = data[:start] + patch + data[start + size :]
    return path.stem.split("_")[0], data


def read(code: str, frame: bytes) -> bool:
    """Read all that ``frame`` holds; return whether it held something."""
    with contextlib.suppress(FrameError, JsonError, BodyError):
        codec.frame_length(frame[:4].ljust(4, b"\0"))
        answer = codec.decode(frame[4:])
        if code in HEADER_ONLY:
            broker_answers.header_offset(answer.fields)
        else:
            READERS[code](answer.body)
        return True
    return False


@pytest.mark.parametrize("path", FRAMES, ids=str)
def test_an_undamaged_frame_is_read_or_empty(path: object) -> None:
    frame = next(frame for other, frame in FRAMES.items() if other == path)
    answer = codec.decode(frame[4:])
    code = str(path).rsplit("/", maxsplit=1)[-1].split("_")[0]
    assert read(code, frame) == (answer.code == 0)


@settings(max_examples=700, deadline=None)
@given(damaged())
def test_a_damaged_frame_gives_only_our_errors(case: tuple[str, bytes]) -> None:
    read(*case)


@settings(max_examples=700, deadline=None)
@given(damaged())
def test_a_damaged_body_gives_only_our_errors(case: tuple[str, bytes]) -> None:
    code, data = case
    with contextlib.suppress(JsonError, BodyError):
        READERS.get(code, fastjson.parse)(data[data.find(b"}{") + 1 :])


@settings(max_examples=700, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(sorted(READERS)))
def test_random_bytes_give_only_our_errors(data: bytes, code: str) -> None:
    read(code, data)
    with contextlib.suppress(JsonError):
        fastjson.parse(data)
    with contextlib.suppress(JsonError, BodyError):
        READERS[code](data)
