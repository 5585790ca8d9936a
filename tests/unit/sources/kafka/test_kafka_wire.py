"""Fields, subscriptions and answers in bytes: worked by hand from the protocol guide, and damaged in every way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.queues import TopicPartition
from planner.sources.kafka import ProtocolError, requests, wire
from planner.sources.kafka.requests import Coordinator, Listing, WireGroup, WireMember, WireNode
from planner.sources.kafka.subscription import Subscription, read_assignment, read_subscription
from planner.sources.kafka.wire import Reader

TOPICS = wire.int32(2) + wire.text("a") + wire.text("b")
NO_DATA = wire.int32(-1)
OWNED = wire.int32(1) + wire.text("a") + wire.int32(2) + wire.int32(3) + wire.int32(1)
PARTS = (TopicPartition("a", 1), TopicPartition("a", 3))


@pytest.mark.parametrize(("number", "encoded"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02")])
def test_variable_numbers_are_as_protobuf_writes_them(number: int, encoded: str) -> None:
    assert wire.varint(number).hex() == encoded
    assert Reader(bytes.fromhex(encoded)).varint() == number


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (wire.int16(0) + TOPICS + wire.data(b"u"), Subscription(0, ("a", "b"), b"u")),
        (wire.int16(1) + TOPICS + NO_DATA + OWNED, Subscription(1, ("a", "b"), None, PARTS)),
        (wire.int16(2) + TOPICS + NO_DATA + OWNED + wire.int32(7), Subscription(2, ("a", "b"), None, PARTS, 7)),
        (wire.int16(2) + TOPICS + NO_DATA + OWNED + wire.int32(-1), Subscription(2, ("a", "b"), None, PARTS)),
        (
            wire.int16(3) + TOPICS + NO_DATA + OWNED + wire.int32(7) + wire.text("r1"),
            Subscription(3, ("a", "b"), None, PARTS, 7, "r1"),
        ),
        (
            wire.int16(9) + TOPICS + NO_DATA + OWNED + wire.int32(7) + wire.text(None) + b"what comes later",
            Subscription(9, ("a", "b"), None, PARTS, 7),
        ),
    ],
    ids=["version 0", "version 1", "version 2", "no generation", "version 3", "a later version without rack"],
)
def test_each_version_of_a_subscription_is_read(metadata: bytes, expected: Subscription) -> None:
    assert read_subscription(metadata) == expected


def test_an_assignment_is_read_and_none_is_nothing() -> None:
    assert read_assignment(wire.int16(1) + OWNED + NO_DATA) == PARTS
    assert read_assignment(b"") == ()


def test_a_subscription_of_somebodys_own_is_refused() -> None:
    with pytest.raises(ProtocolError, match="array of 1953460329 elements at byte 6, where 6 bytes are left"):
        read_subscription(b'{"topics": 1')


def test_nothing_is_made_room_for_on_a_liars_word() -> None:
    with pytest.raises(ProtocolError, match="array of 2147483647 elements at byte 4, where 0 bytes are left"):
        Reader(wire.int32(2**31 - 1)).array(lambda: 0)
    with pytest.raises(ProtocolError, match="more than 5 bytes"):
        Reader(b"\xff" * 9).varint()


MEMBER_ANSWER = (
    wire.int32(0)
    + b"\x02"  # one group
    + wire.int16(0)
    + b"\x00"  # no error message
    + wire.compact_text("g")
    + wire.compact_text("Reconciling")
    + wire.int32(5)
    + wire.int32(4)
    + wire.compact_text("uniform")
    + b"\x02"  # one member
    + wire.compact_text("m")
    + b"\x00"  # no instance id
    + wire.compact_text("r1")
    + wire.int32(4)
    + wire.compact_text("c")
    + wire.compact_text("/10.0.0.1")
    + wire.compact_texts(("a",))
    + b"\x00"  # no pattern
    + (b"\x02" + bytes(16) + wire.compact_text("a") + b"\x02" + wire.int32(3) + b"\0" + b"\0")  # owned
    + (b"\x01" + b"\0")  # target
    + wire.int8(0)
    + b"\x01\x07\x02ab"  # a tagged field that a newer broker adds
    + wire.int32(-2147483648)
    + b"\0"
    + b"\0"
)


def test_a_modern_group_is_read_and_tags_of_newer_brokers_are_passed_over() -> None:
    (group,) = requests.CONSUMER_GROUP_DESCRIBE.read(Reader(MEMBER_ANSWER), 1)
    member = WireMember(
        "m",
        None,
        "c",
        "/10.0.0.1",
        rack="r1",
        epoch=4,
        topics=("a",),
        owned=(TopicPartition("a", 3),),
        is_classic=True,
    )
    assert group == WireGroup("g", 0, "", "Reconciling", "consumer", "uniform", (member,), 5, 4)


def test_coordinators_brokers_and_listings_are_read() -> None:
    coordinator = wire.compact_text("g") + wire.int32(2) + wire.compact_text("h") + wire.int32(9092)
    coordinators = wire.int32(0) + b"\x02" + coordinator + wire.int16(0) + b"\0\0" + b"\0"
    assert requests.FIND_COORDINATOR.read(Reader(coordinators), 4) == (Coordinator("g", 2, "h", 9092, 0, ""),)
    node = wire.int32(1) + wire.compact_text("h") + wire.int32(9092) + wire.compact_text("r") + b"\0"
    brokers = wire.int32(0) + b"\x02" + node + wire.compact_text("id")
    assert requests.METADATA.read(Reader(brokers), 9) == ("id", (WireNode(1, "h", 9092, "r"),))
    listing = b"".join(map(wire.compact_text, ("g", "consumer", "Stable", "Consumer"))) + b"\0"
    listings = wire.int32(0) + wire.int16(0) + b"\x02" + listing + b"\0"
    assert requests.LIST_GROUPS.read(Reader(listings), 5) == (0, (Listing("g", "consumer", "Stable", "consumer"),))


APIS = [
    requests.API_VERSIONS,
    requests.SASL_HANDSHAKE,
    requests.SASL_AUTHENTICATE,
    requests.METADATA,
    requests.FIND_COORDINATOR,
    requests.LIST_GROUPS,
    requests.DESCRIBE_GROUPS,
    requests.CONSUMER_GROUP_DESCRIBE,
]


@given(st.sampled_from(APIS), st.binary(max_size=400))
def test_garbage_gives_an_answer_or_an_error_of_ours(api: requests.Api[object], content: bytes) -> None:
    _read_or_refuse(api, content)


@given(st.integers(0, len(MEMBER_ANSWER) - 1), st.binary(min_size=1, max_size=4), st.integers(0, len(MEMBER_ANSWER)))
def test_a_damaged_answer_gives_an_answer_or_an_error_of_ours(position: int, damage: bytes, cut: int) -> None:
    damaged = MEMBER_ANSWER[:position] + damage + MEMBER_ANSWER[position + len(damage) :]
    _read_or_refuse(requests.CONSUMER_GROUP_DESCRIBE, damaged[:cut])


@given(st.binary(max_size=200))
def test_a_garbled_subscription_gives_a_subscription_or_an_error_of_ours(content: bytes) -> None:
    for read in (read_subscription, read_assignment):
        try:
            read(content)
        except ProtocolError:
            continue


def _read_or_refuse(api: requests.Api[object], content: bytes) -> None:
    try:
        api.read(Reader(content), api.versions[1])
    except ProtocolError:
        return


def test_no_request_can_write() -> None:
    known = {one.name: one.key for one in vars(requests).values() if isinstance(one, requests.Api)}
    assert known == {
        "ApiVersions": 18,
        "SaslHandshake": 17,
        "SaslAuthenticate": 36,
        "Metadata": 3,
        "FindCoordinator": 10,
        "ListGroups": 16,
        "DescribeGroups": 15,
        "ConsumerGroupDescribe": 69,
        "OffsetFetch": 9,
        "ShareGroupDescribe": 77,
        "DescribeShareGroupOffsets": 90,
    }


DESCRIBED = bytes.fromhex(
    "0000001200000000000200000003736707537461626c6500000003000000030773696d706c650317492b382b772b616154416135624b47497077"
    "5273724100000000030363310b2f3132372e302e302e3102026f02579175fb7e7b460889cbff87a3f0204b026f04000000010000000300000005"
    "00000017446e7978687650595352535a784e6b4133364a63436700000000030363300b2f3132372e302e302e3102026f02579175fb7e7b460889"
    "cbff87a3f0204b026f04000000000000000200000004000000800000000000"
)
LAGS = bytes.fromhex(
    "0000001300000000000203736702026f579175fb7e7b460889cbff87a3f0204b0700000000ffffffffffffffff00000000ffffffffffffffff00"
    "00000000000001ffffffffffffffff00000000ffffffffffffffff0000000000000002ffffffffffffffff00000000ffffffffffffffff000000"
    "0000000003ffffffffffffffff00000000ffffffffffffffff000000000000000400000000000000000000000000000000000001590000000000"
    "000005000000000000000000000000000000000000015900000000000000000000"
)
"""What a broker 4.3.1 answered on share group ``sg`` of two librdkafka 2.15 members and a topic of six partitions."""

FRAME = 5
"""Bytes before an answer: correlation id and no tagged fields."""


def test_a_recorded_description_of_a_share_group_is_read() -> None:
    (group,) = requests.SHARE_GROUP_DESCRIBE.read(Reader(DESCRIBED[FRAME:]), 1)
    assert (group.group, group.code, group.state, group.protocol_type) == ("sg", 0, "Stable", "share")
    assert (group.assignor, group.epoch, group.assignment_epoch) == ("simple", 3, 3)
    assert [(member.client_id, member.host, member.topics) for member in group.members] == [
        ("c1", "/127.0.0.1", ("o",)),
        ("c0", "/127.0.0.1", ("o",)),
    ]
    assert [[part.partition for part in member.owned] for member in group.members] == [[1, 3, 5], [0, 2, 4]]


def test_recorded_lags_of_a_share_group_are_read_and_minus_one_is_kept() -> None:
    (group,) = requests.DESCRIBE_SHARE_GROUP_OFFSETS.read(Reader(LAGS[FRAME:]), 1)
    assert (group.group, group.code) == ("sg", 0)
    assert [(entry.partition.partition, entry.start, entry.lag) for entry in group.offsets] == [
        *((number, -1, -1) for number in range(4)),
        (4, 0, 345),
        (5, 0, 345),
    ]


@pytest.mark.parametrize(
    ("api", "recorded"),
    [(requests.SHARE_GROUP_DESCRIBE, DESCRIBED), (requests.DESCRIBE_SHARE_GROUP_OFFSETS, LAGS)],
    ids=["description", "lags"],
)
def test_answers_on_share_groups_that_end_early_are_refused(api: requests.Api[object], recorded: bytes) -> None:
    for length in range(
        FRAME, len(recorded) - 1
    ):  # the last byte ends the answer's own tagged fields: nothing is there
        with pytest.raises(ProtocolError):
            api.read(Reader(recorded[FRAME:length]), 1)


def test_the_request_for_lags_asks_for_all_topics() -> None:
    assert requests.share_offsets_request(("sg",)).hex() == "02" + "037367" + "00" + "00" + "00"
