"""The reader of fastjson's JSON: every quirk, every sample, and what it refuses."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import OutOfReachError
from planner.sources.rocketmq import fastjson
from planner.sources.rocketmq.errors import JsonError
from planner.text.bounded import MOST_DEPTH
from tests.unit.sources.rocketmq import java_json, samples
from tests.unit.sources.rocketmq.java_json import queue_key

DEEP = 100_000


def test_object_as_key_becomes_sorted_pairs_q1() -> None:
    read = fastjson.parse(b'{{"topic":"T","queueId":0,"brokerName":"b"}:{"brokerOffset":6}}')
    assert read == {(("brokerName", "b"), ("queueId", 0), ("topic", "T")): {"brokerOffset": 6}}


def test_order_of_fields_in_an_object_key_does_not_matter_q1() -> None:
    one, other = b'{{"a":1,"b":2}:0}', b'{{"b":2,"a":1}:0}'
    assert fastjson.parse(one) == fastjson.parse(other)


def test_empty_object_as_key_is_an_empty_tuple_q1() -> None:
    assert fastjson.parse(b"{{}:1}") == {(): 1}


def test_object_keys_nested_in_values_q1() -> None:
    stats = fastjson.parse(samples.OTHERS[317])
    assert isinstance(stats, dict)
    assert stats["consumeStatsList"][1]["GroupA"][0]["offsetTable"] == {
        queue_key("TopicB", "broker-a", 6): {
            "brokerOffset": 6,
            "consumerOffset": 6,
            "lastTimestamp": 1795234288626,
        }
    }


def test_unquoted_integer_keys_are_int_q2() -> None:
    assert fastjson.parse(b'{0:"127.0.0.1:10911",-1:"x", 12 : "y"}') == {0: "127.0.0.1:10911", -1: "x", 12: "y"}


def test_quoted_integer_keys_stay_text_and_are_normalised_on_request_q2() -> None:
    read = fastjson.parse(b'{"0":"a"}')
    assert read == {"0": "a"}
    assert [fastjson.integer_key(key) for key in ("0", "-7", 3, "x", "", "1.5", "-", "²")] == [
        *(0, -7, 3, "x", "", "1.5", "-", "²")
    ]


def test_reference_of_fastjson_1_reads_as_none_q3() -> None:
    assert fastjson.parse(b'{"a":{"$ref":"$.b[0]"},"b":[1]}') == {"a": None, "b": [1]}
    assert fastjson.parse(b'{"a":{"$ref":"..","more":1}}') == {"a": {"$ref": "..", "more": 1}}


def test_null_and_empty_collections_q4() -> None:
    assert fastjson.parse(b'{"a":null,"b":[],"c":{}}') == {"a": None, "b": [], "c": {}}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("0.0", 0.0), ("1.5", 1.5), ("1.0E-4", 0.0001), ("1e3", 1000.0), ("-2.5e+2", -250.0)],
        *[("9007199254740993", 2**53 + 1), ("-9223372036854775808", -(2**63)), ("9" * 1000, int("9" * 1000))],
    ],
)
def test_numbers_are_exact_q5(text: str, number: float) -> None:
    read = fastjson.parse(text.encode())
    assert read == number
    assert type(read) is type(number)


def test_nan_is_taken_unquoted_q5() -> None:
    read = fastjson.parse(b'{"a":NaN,"b":Infinity,"c":-Infinity}')
    assert isinstance(read, dict)
    assert isinstance(read["a"], float)
    assert math.isnan(read["a"])
    assert (read["b"], read["c"]) == (math.inf, -math.inf)


def test_names_keep_their_typos_and_unknown_fields_stay_q6_q7() -> None:
    read = fastjson.parse(b'{"droped":true,"groupTopicMap":{"g":["t"]},PROP_CONSUMEORDERLY:"false"}')
    assert read == {"droped": True, "groupTopicMap": {"g": ["t"]}, "PROP_CONSUMEORDERLY": "false"}


@pytest.mark.parametrize(
    ("text", "string"),
    [
        (r'"\" \\ \/ \b\f\n\r\t"', '" \\ / \b\f\n\r\t'),
        (r'"\u00fc\u20AC"', "ü€"),
        (r'"\uD83D\uDE00"', "😀"),
        (r'"a\ud83dz"', "a\ufffdz"),
        (r'"\x41\v\0\7\'"', "A\v\0\a'"),
        ('"ü€😀"', "ü€😀"),
        ('"{}[]:,"', "{}[]:,"),
        ('""', ""),
        (r'"\\"', "\\"),
    ],
)
def test_strings_and_escapes_q8(text: str, string: str) -> None:
    read = fastjson.parse(text.encode())
    assert read == string
    string.encode()


def test_pretty_printed_file_q9() -> None:
    text = b'{\n\t"offsetTable":{\n\t\t"TopicA@GroupA":{0:13,1:13\n\t\t}\n\t}\n}\r\n'
    assert fastjson.parse(text) == {"offsetTable": {"TopicA@GroupA": {0: 13, 1: 13}}}


@pytest.mark.parametrize("code", samples.OTHERS)
def test_sample_of_a_request_that_comes_later_is_read(code: int) -> None:
    read = fastjson.parse(samples.OTHERS[code])
    assert isinstance(read, dict)
    assert java_json.body(read) == samples.OTHERS[code]


@pytest.mark.parametrize(
    "body",
    [
        *(samples.CLUSTER_INFO, samples.ROUTE, samples.MEMBERS, samples.CONNECTIONS, samples.CONSUME_STATS),
        *(samples.CONSUME_STATS_51, samples.NO_STATS, samples.RUNNING_INFO),
    ],
)
def test_sample_comes_back_byte_for_byte(body: bytes) -> None:
    assert java_json.body(fastjson.parse(body)) == body


def test_of_equal_keys_the_last_one_counts() -> None:
    assert fastjson.parse(b'{"a":1,"a":2,{"k":1}:1,{"k":1}:2}') == {"a": 2, (("k", 1),): 2}


@pytest.mark.parametrize(
    ("text", "problem", "position"),
    [
        ("", "expected a value", 0),
        ("   ", "expected a value", 3),
        ("{", "found the end, expected a key", 1),
        ('{"a"', "expected ':'", 4),
        ('{"a":', "expected a value", 5),
        ('{"a":1', "expected ',' or '}'", 6),
        ('{"a":1,}', "expected a key", 7),
        ("[1,]", "expected a value", 3),
        ("[1 2]", "expected ',' or ']'", 3),
        ("[1}", "expected ',' or ']'", 2),
        ('{"a":1]', "expected ',' or '}'", 6),
        ("1 1", "expected the end", 2),
        ("]", "expected a value", 0),
        ("nul", "found 'nul', expected a value", 0),
        ("'a'", "unexpected", 0),
        ("01x", "unexpected", 0),
        ("1.", "unexpected", 0),
        ("-", "unexpected", 0),
        ('"abc', "unexpected", 0),
        (r'"abc\n', "string without end", 0),
        (r'"abc\n def', "string without end", 0),
        (r'"abc\q"', "unknown escape", 4),
        (r'"\u12g4"', "unknown escape", 1),
        ('"a\\', "unknown escape", 2),
        ('{{"a":{}}:1}', "expected text or a number inside an object used as key", 6),
        ('{{"a":[]}:1}', "expected text or a number inside an object used as key", 6),
        ('{{{"a":1}:1}:1}', "expected a key", 2),
        ("{[1]:1}", "expected a key", 1),
        ("9" * 1001, "integer of 1001 characters", 0),
        ("\x00", "unexpected", 0),
    ],
)
def test_other_text_is_refused_with_its_position(text: str, problem: str, position: int) -> None:
    with pytest.raises(JsonError) as caught:
        fastjson.parse(text.encode())
    assert problem in str(caught.value)
    assert caught.value.position == position
    assert isinstance(caught.value, OutOfReachError)


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(JsonError, match="not UTF-8") as caught:
        fastjson.parse(b'{"a":"\xff"}')
    assert caught.value.position == 6


@pytest.mark.parametrize(
    ("start", "middle", "end"), [("[", "", "]"), ('{"a":', "1", "}"), ('{0:[{{"k":1}:', "1", "}]}")]
)
def test_depth_is_bounded_by_levels_not_by_recursion(start: str, middle: str, end: str) -> None:
    """No broker nests more than a handful; the deepest that is read, and one that would be gigabytes."""
    few = MOST_DEPTH // 4
    read = fastjson.parse((start * few + middle + end * few).encode())
    depth = 0
    while isinstance(read, list | dict) and read:
        read = next(iter(read.values())) if isinstance(read, dict) else read[0]
        depth += 1
    assert depth >= few - 1
    with pytest.raises(JsonError, match=f"more than {MOST_DEPTH} levels"):
        fastjson.parse((start * DEEP + middle + end * DEEP).encode())


@pytest.mark.parametrize("start", ["[", "{", '{"a":', '{"a":[', "{{", '[{"a":'])
def test_deep_text_without_end_is_refused(start: str) -> None:
    with pytest.raises(JsonError):
        fastjson.parse((start * DEEP).encode())


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
object_keys = st.dictionaries(st.text(), scalars, max_size=4).map(lambda pairs: tuple(sorted(pairs.items())))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text() | st.integers() | object_keys, inner, max_size=5)
    ),
    max_leaves=25,
)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(values.filter(lambda value: "$ref" not in repr(value)))
def test_what_is_written_is_read(value: object) -> None:
    assert fastjson.parse(java_json.body(value)) == value


PIECES = (
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"b"',
    '"$ref"',
    "0",
    "01",
    "-1.5",
    "NaN",
    "bare",
    '{"a":1}',
    "{0:1}",
    " ",
)
ODD = (
    r'"\ud83d"',
    r'"\u00e4"',
    r'"\'"',
    "9" * 1001,
    '{"$ref":"$"}',
    '{"a":{"$ref":".."}}',
    '{{"a":[1]}:2}',
    '{"a":1,"a":2}',
)


def told(text: str) -> str:
    try:
        return repr(fastjson.parse(text.encode()))
    except JsonError as error:
        return f"{error} at {error.position}"


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES + ODD), max_size=14).map("".join) | values.map(java_json.write))
@settings(max_examples=1500, deadline=None)
def test_the_standard_library_changes_nothing_but_the_time(text: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fastjson, "_ATTEMPTS", 0)
        slowly = told(text)
    assert told(text) == slowly


@given(st.text(alphabet='{}[]:,"\\ 0a-.eE\n', max_size=60))
@settings(max_examples=1000, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        fastjson.parse(text.encode())
    except JsonError as error:
        assert 0 <= error.position <= len(text)
