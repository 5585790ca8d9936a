"""Frames: the vectors, both header encodings, and everything that is cut or lies about its length."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import OutOfReachError
from planner.sources.rocketmq import codec, requests
from planner.sources.rocketmq.codec import HEADER_BINARY, HEADER_JSON, Command
from planner.sources.rocketmq.errors import FrameError
from tests.unit.sources.rocketmq import samples

ENCODINGS = [HEADER_JSON, HEADER_BINARY]
ANSWER = Command(
    code=1, opaque=7, flag=1, language="JAVA", version=409, remark="no consumer, ü", fields={"k": "v"}, body=b"{}"
)


def decoded(frame: bytes) -> Command:
    assert codec.frame_length(frame[:4]) == len(frame) - 4
    return codec.decode(frame[4:])


def frame_of(header: bytes, body: bytes = b"", encoding: int = HEADER_JSON) -> bytes:
    return struct.pack(">I", encoding << 24 | len(header)) + header + body


def test_the_documented_request_is_110_bytes() -> None:
    frame = codec.encode_request(requests.member_ids("GroupA"), 7, version=0)
    header = b'{"code":38,"extFields":{"consumerGroup":"GroupA"},"flag":0,"language":"PYTHON","opaque":7,"version":0}'
    assert len(header) == 102
    assert frame == bytes.fromhex("0000006a 00000066") + header


def test_requests_carry_a_version_for_which_servers_quote_keys() -> None:
    assert decoded(codec.encode_request(requests.cluster_info(), 1)).version >= 401


@pytest.mark.parametrize(
    ("encoding", "length", "mark"), [(HEADER_JSON, 261, "00000105"), (HEADER_BINARY, 16_777_215, "01ffffff")]
)
def test_the_mark_packs_encoding_and_header_length_as_upstream_tests_it(encoding: int, length: int, mark: str) -> None:
    empty = Command(code=0, opaque=0, remark="x")
    room = len(codec.encode(empty, encoding)) - 8 - 1
    frame = codec.encode(Command(code=0, opaque=0, remark="x" * (length - room)), encoding)
    assert frame[4:8].hex() == mark
    if length <= codec._MOST_HEADER:
        assert decoded(frame).remark == "x" * (length - room)
    else:  # upstream can write it; nothing that we ask for has such a header, and we read none
        with pytest.raises(FrameError, match="header of 16777215 bytes, expected at most 1048576"):
            decoded(frame)


def test_a_longer_header_is_not_written() -> None:
    with pytest.raises(FrameError, match="16777216 bytes"):
        room = len(codec.encode(Command(code=0, opaque=0, remark="x"), HEADER_BINARY)) - 8 - 1
        codec.encode(Command(code=0, opaque=0, remark="x" * (16_777_216 - room)), HEADER_BINARY)


def test_the_lowest_bit_of_the_flag_marks_an_answer() -> None:
    assert [Command(0, 1, flag=flag).is_answer for flag in (0, 1, 2, 3)] == [False, True, False, True]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_answer_comes_back_as_it_was(encoding: int) -> None:
    assert decoded(codec.encode(ANSWER, encoding)) == ANSWER


texts = st.text(st.characters(exclude_categories=["Cs"]))
commands = st.builds(
    Command,
    code=st.integers(0, 2**15 - 1),
    opaque=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(0, 3),
    language=st.sampled_from(["JAVA", "PYTHON", "GO", "NODE_JS"]),
    version=st.integers(0, 2**15 - 1),
    remark=texts,
    fields=st.dictionaries(texts, texts, max_size=5),
    body=st.binary(max_size=100),
)


@settings(deadline=None)
@given(commands, st.sampled_from(ENCODINGS))
def test_every_command_comes_back_as_it_was(command: Command, encoding: int) -> None:
    assert decoded(codec.encode(command, encoding)) == command


def test_a_real_broker_s_binary_header_is_read() -> None:
    answer = samples.recorded("5.5.0", "38_no_members_binary")
    assert answer == Command(
        code=1, opaque=7, flag=1, language="JAVA", version=513, remark="no consumer for this group, GroupA"
    )
    assert samples.recorded("5.5.0", "208_unknown_binary").body == samples.NO_STATS


@pytest.mark.parametrize("version", samples.VERSIONS)
def test_a_real_broker_s_json_header_is_read(version: str) -> None:
    answer = samples.recorded(version, "38_no_members")
    ordinal = {"4.9.7": 407, "5.5.0": 513}[version]
    assert answer == Command(
        code=1, opaque=7, flag=1, language="JAVA", version=ordinal, remark="no consumer for this group, Nope"
    )


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 3, codec.MAX_FRAME + 1, 2**31 - 1])
def test_a_length_that_cannot_be_is_refused(length: int) -> None:
    with pytest.raises(FrameError, match=str(length)) as caught:
        codec.frame_length(struct.pack(">i", length))
    assert isinstance(caught.value, OutOfReachError)


def test_lengths_from_the_least_to_the_limit_are_taken() -> None:
    assert [codec.frame_length(struct.pack(">i", length)) for length in (4, codec.MAX_FRAME)] == [4, codec.MAX_FRAME]
    assert codec.MAX_FRAME >= 16_777_216


def test_the_start_of_an_http_answer_is_refused() -> None:
    with pytest.raises(FrameError, match="48 54 54 50"):
        codec.frame_length(b"HTTP")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_frame_cut_inside_its_header_is_refused_wherever(encoding: int) -> None:
    frame = codec.encode(ANSWER, encoding)[4:]
    for size in range(len(frame) - len(ANSWER.body)):
        with pytest.raises(FrameError):
            codec.decode(frame[:size])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_header_whose_own_length_is_too_small_is_refused(encoding: int) -> None:
    frame = codec.encode(ANSWER, encoding)[4:]
    length = len(frame) - 4 - len(ANSWER.body)
    for short in range(length):
        with pytest.raises(FrameError):
            codec.decode(struct.pack(">I", encoding << 24 | short) + frame[4:])


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("more", [1, 4, 2**24 - 1000])
def test_a_header_length_beyond_the_frame_is_refused_though_the_header_is_whole(encoding: int, more: int) -> None:
    frame = codec.encode(replace(ANSWER, body=b""), encoding)[4:]
    mark = struct.pack(">I", encoding << 24 | (len(frame) - 4 + more))
    with pytest.raises(FrameError, match="header length"):
        codec.decode(mark + frame[4:])


def test_an_unknown_header_encoding_is_refused() -> None:
    with pytest.raises(FrameError, match="encoding 2, expected 0"):
        codec.decode(frame_of(b"{}", encoding=2))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"[]", "header is list"),
        (b"", "header is not JSON"),
        (b'{"code":0,"flag":1', "header is not JSON"),
        (b"[" * 100_000, "header is not JSON"),
        (b'{"flag":1,"opaque":1}', "code of the header is None"),
        (b'{"code":0,"opaque":1}', "flag of the header is None"),
        (b'{"code":0,"flag":1}', "opaque of the header is None"),
        (b'{"code":"0","flag":1,"opaque":1}', "code of the header is '0'"),
        (b'{"code":0,"flag":true,"opaque":1}', "flag of the header is True"),
        (b'{"code":0,"flag":1,"opaque":1.5}', "opaque of the header is 1.5"),
        (b'{"code":0,"flag":1,"opaque":1,"extFields":[1]}', "extFields of the header is list"),
    ],
)
def test_a_header_of_another_shape_is_refused(header: bytes, problem: str) -> None:
    with pytest.raises(FrameError) as caught:
        codec.decode(frame_of(header))
    assert problem in str(caught.value)


def test_a_header_may_lack_what_we_can_do_without() -> None:
    assert codec.decode(frame_of(b'{"code":0,"flag":1,"opaque":1,"extFields":null,"remark":null,"new":{}}')) == Command(
        code=0, opaque=1, flag=1, language="", version=0
    )


@pytest.mark.parametrize(
    ("tail", "problem"),
    [
        (struct.pack(">ii", -1, 0), "length -1"),
        (struct.pack(">ii", 0, -1), "length -1"),
        (struct.pack(">ii", 5, 0), "ends after"),
        (struct.pack(">ii", 0, 5), "extFields of 5 bytes in a header with 0 bytes left"),
        (struct.pack(">iih", 0, 2, -1), "length -1"),
        (struct.pack(">iihci", 0, 7, 1, b"k", -1), "length -1"),
        (struct.pack(">iihci", 0, 7, 1, b"k", 9), "ends after"),
        (struct.pack(">ici", 1, b"\xff", 0), "not UTF-8"),
        (struct.pack(">ii", 0, 0) + b"x", "extFields of 0 bytes in a header with 1 bytes left"),
    ],
)
def test_a_binary_header_that_lies_about_lengths_is_refused(tail: bytes, problem: str) -> None:
    with pytest.raises(FrameError) as caught:
        codec.decode(frame_of(struct.pack(">hBhii", 0, 0, 513, 7, 1) + tail, encoding=HEADER_BINARY))
    assert problem in str(caught.value)


def test_a_language_unknown_to_us_is_other() -> None:
    header = struct.pack(">hBhii", 0, 200, 513, 7, 1) + struct.pack(">ii", 0, 0)
    assert codec.decode(frame_of(header, encoding=HEADER_BINARY)).language == "OTHER"
