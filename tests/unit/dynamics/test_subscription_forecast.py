"""Members that come back with other topics or tags one by one: who owns what, what is unread, what is filtered away."""

from typing import Any
from uuid import UUID

import pytest

from planner.documents.forecast import forecast
from planner.errors import BadInputError, UnknownNameError
from tests.unit.dynamics.small_groups import Document, client_id, kafka_request, rocketmq_request

STEP_S = 30.0
FOUR = [{"rate": 10.0, "lag": 0}] * 4


def kafka(before: str, after: str, strategy: str = "range", members: int = 2, **more: Any) -> Document:
    """Return the answer for members that subscribe to the topics of these letters."""
    ids = [f"c{number}" for number in range(members)]
    change = {"kind": "subscription", "to": list(after), "clients": ids, "interval_s": STEP_S}
    asked = kafka_request(change, strategy, partitions=1, members=members)
    topics = dict.fromkeys(sorted({*before, *after}), FOUR)
    own = [{"id": name, "topics": list(before)} for name in ids]
    return forecast({**asked, "partitions": topics, "members": own, **more})


def rocketmq(before: dict[str, str], after: dict[str, str], clients: int = 2, **more: Any) -> Document:
    ids = [client_id(number + 1) for number in range(clients)]
    change = {"kind": "subscription", "from": before, "to": after, "clients": ids, "interval_s": STEP_S}
    asked = rocketmq_request({**change, **more.pop("change", {})}, clients=clients)
    queues = [
        {"topic": topic, "broker": "broker-a", "queue_id": number, "rate": 10.0, "lag": 0}
        for topic in sorted({*before, *after})
        for number in range(4)
    ]
    return forecast({**asked, "queues": queues, **more})


def owners(answer: Document, step: int) -> dict[tuple[str, int], str | None]:
    listed = answer["subscription"]["steps"][step - 1]["owners"]
    return {(one["queue"][0], one["queue"][-1]): one["owner"] for one in listed}


def topic(answer: Document, name: str) -> Document:
    (found,) = (one for one in answer["subscription"]["topics"] if one["topic"] == name)
    return dict(found)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky", "uniform"])
def test_kafka_gives_a_topic_to_its_subscribers_alone(strategy: str) -> None:
    answer = kafka("a", "b", strategy)
    first = owners(answer, 1)
    assert {first["a", number] for number in range(4)} == {"c1"}
    assert {first["b", number] for number in range(4)} == {"c0"}
    last = owners(answer, 2)
    assert {last["a", number] for number in range(4)} == {None}
    assert {last["b", number] for number in range(4)} == {"c0", "c1"}
    assert topic(answer, "a")["unread_s"] is None
    assert topic(answer, "a")["queues_unread_for_good"] == 4
    assert topic(answer, "b")["read_again_s"]["p05"] < STEP_S + 15


def test_members_that_come_again_get_ids_of_another_hash_order() -> None:
    """Which partition moves back to the last one is a tie, and decides whether one of them moves twice or two once."""
    answer = kafka("ab", "a", "cooperative-sticky", members=3, trials=400)
    last = {tuple(one["queue"]): one.get("share", 1.0) for one in answer["subscription"]["steps"][2]["owners"]}
    assert 0.3 < min(last["a", number] for number in range(4)) < 0.7
    unread = topic(answer, "a")["unread_s"]
    assert unread["p05"] < 4.5
    assert unread["p95"] > 6.0
    assert any("members that come again get other ids" in line for line in answer["warnings"])


@pytest.mark.parametrize(("ids", "moves"), [("other", False), ("same", True)])
def test_a_restart_keeps_its_place_under_range_where_client_ids_differ(ids: str, moves: bool) -> None:
    """With Java's own client id all ids differ in their random ends alone, and who comes again may sort anywhere."""
    ends = [UUID(int=number << 120) for number in range(0x11, 0x14)]
    names = [f"consumer-g-{1 if ids == 'same' else number}-{end}" for number, end in enumerate(ends)]
    change = {"kind": "restart", "clients": names[:1], "how": "graceful", "interval_s": 1}
    asked = kafka_request(change, "range", partitions=6, members=3)
    members = [{"id": name, "topics": ["t"]} for name in names]
    answer = forecast({**asked, "members": members, "trials": 200})
    assert (answer["total"]["moved_queues"]["p95"] > 0) == moves
    assert any("have one client.id" in line for line in answer["warnings"]) == moves


def test_an_added_topic_is_read_as_soon_as_the_first_member_has_come_back() -> None:
    answer = kafka("a", "ab")
    assert owners(answer, 1)["b", 3] == "c0"
    assert topic(answer, "b")["unread_s"]["p95"] < STEP_S / 2
    assert topic(answer, "b")["change"] == "added"
    assert any("not earliest, unless" in line for line in answer["warnings"])
    settings = {"auto.offset.reset": "earliest"}
    assert not any("auto.offset.reset" in line for line in kafka("a", "ab", settings=settings)["warnings"])


def test_a_topic_that_a_pattern_matches_waits_for_the_first_metadata_refresh() -> None:
    change = {"kind": "subscription", "matches": "b"}
    members = [{"id": "c0", "topics": ["a"]}, {"id": "c1", "topics": ["a"]}]
    asked = kafka_request(change, partitions=1) | {"partitions": {"a": FOUR, "b": FOUR}, "members": members}
    usual = topic(forecast(asked), "b")["unread_s"]
    assert 60 < usual["p50"] < 150  # the earlier of two moments within 300 s: 100 s in the mean
    often = topic(forecast({**asked, "settings": {"metadata.max.age.ms": 5_000}}), "b")["unread_s"]
    assert often["p95"] < 10
    by_broker = {**asked, "protocol": "consumer", "strategy": "uniform"}
    soon = forecast({**by_broker, "change": {**change, "evaluated_by": "broker"}})
    # The member whose heartbeat makes the broker evaluate the pattern hears of it by its next one, 5 s later.
    assert 5 < topic(soon, "b")["unread_s"]["p05"] < topic(soon, "b")["unread_s"]["p95"] < 11
    assert {owner for answer in soon["after"].values() for owner in map(tuple, answer)} >= {("b", 0), ("b", 3)}


def test_rocketmq_gives_queues_to_clients_that_do_not_subscribe_and_nobody_reads_them() -> None:
    answer = rocketmq({"A": "*"}, {"A": "*", "B": "*"})
    assert [owners(answer, 1)["A", number] for number in range(4)] == [client_id(1)] * 2 + [client_id(2)] * 2
    assert [owners(answer, 1)["B", number] for number in range(4)] == [client_id(1)] * 2 + [None] * 2
    assert answer["subscription"]["steps"][0]["unread"] == [["B", "broker-a", 2], ["B", "broker-a", 3]]
    assert answer["subscription"]["steps"][1]["unread"] == []
    assert STEP_S < topic(answer, "B")["unread_s"]["p05"] < topic(answer, "B")["unread_s"]["p95"] < STEP_S + 10
    (missing,) = answer["subscription"]["missing"]
    assert (missing["step"], missing["topic"]) == (1, "B")
    assert 0 < missing["share"]["p05"] < missing["share"]["p95"] < 1
    assert missing["longest_s"]["p95"] <= 30


def test_a_topic_that_some_clients_give_up_loses_their_queues() -> None:
    answer = rocketmq({"A": "*", "B": "*"}, {"A": "*"}, change={"clients": [client_id(1)]})
    assert [owners(answer, 1)["B", number] for number in range(4)] == [None] * 2 + [client_id(2)] * 2
    assert topic(answer, "B")["unread_s"] is None
    assert topic(answer, "B")["queues_unread_for_good"] == 2
    assert answer["after"][client_id(1)] == [["A", "broker-a", 0], ["A", "broker-a", 1]]


def test_what_is_filtered_away_is_unknown_and_bounded_by_what_comes() -> None:
    answer = rocketmq({"A": "x"}, {"A": "x || y"}, clients=3)
    (filtered,) = answer["subscription"]["filters"]
    assert filtered["tags_at_risk"] == ["y"]
    assert filtered["filtered_messages"] is None
    # 40 a second for the two steps between the first new client and the last one, and a start more or less.
    assert 2 * STEP_S * 40 * 0.9 < filtered["filtered_at_most"]["p50"] < 2 * STEP_S * 40 * 1.1
    assert [step["filtered_at_most"] for step in filtered["steps"]] == [1_200, 1_200]
    assert any("messages with tag y may be passed over" in line for line in answer["warnings"])


@pytest.mark.parametrize(
    ("before", "after", "risk"), [("x", "y", ["x", "y"]), ("*", "x", ["*"]), ("x || y", "y || z", ["x", "z"])]
)
def test_tags_that_only_one_side_names_are_at_risk(before: str, after: str, risk: list[str]) -> None:
    (filtered,) = rocketmq({"A": before}, {"A": after})["subscription"]["filters"]
    assert filtered["tags_at_risk"] == risk


def test_clients_that_keep_the_old_tags_filter_for_good() -> None:
    answer = rocketmq({"A": "x"}, {"A": "y"}, change={"clients": [client_id(2)]})
    (filtered,) = answer["subscription"]["filters"]
    assert filtered["mixed_until_s"] is None
    assert filtered["filtered_at_most"] is None
    assert any("for good" in line for line in answer["warnings"])


def test_one_client_never_mixes() -> None:
    (filtered,) = rocketmq({"A": "x"}, {"A": "y"}, clients=1)["subscription"]["filters"]
    assert filtered["filtered_at_most"] == {"p05": 0, "p50": 0, "p95": 0}
    assert filtered["steps"] == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"to": ["t"]}, "which all members of change.clients subscribe to already"),
        ({"to": []}, "change.to: found no topic"),
        ({}, "found neither"),
        ({"to": ["u"], "matches": "u"}, "found both"),
        ({"matches": "t"}, "which a member subscribes to already"),
        ({"to": ["u"], "evaluated_by": "broker"}, "beside matches"),
    ],
)
def test_kafka_refuses_what_is_no_other_subscription(change: Document, what: str) -> None:
    whole = {"kind": "subscription", **({} if "matches" in change else {"clients": ["c0"], "interval_s": 1}), **change}
    asked = kafka_request(whole) | {"partitions": {"t": FOUR, "u": FOUR}}
    with pytest.raises(BadInputError, match=what):
        forecast(asked)


def test_kafka_refuses_what_has_no_forecast() -> None:
    change = {"kind": "subscription", "to": ["t", "u"], "clients": ["c0"], "interval_s": 1}
    topics = {"partitions": {"t": FOUR, "u": FOUR}}
    with pytest.raises(BadInputError, match="keeps the assignment of a static member"):
        forecast(kafka_request(change, static=True) | topics)
    with pytest.raises(BadInputError, match="nobody has watched static members of the consumer protocol"):
        forecast(kafka_request(change, "uniform", static=True) | topics)
    pattern = {"kind": "subscription", "matches": "u"}
    with pytest.raises(BadInputError, match="each client finds the topic by a check of its own"):
        forecast(kafka_request(pattern, "uniform") | topics)
    with pytest.raises(BadInputError, match="only its brokers evaluate patterns"):
        forecast(kafka_request({**pattern, "evaluated_by": "broker"}) | topics)


def test_rocketmq_refuses_what_is_no_other_subscription() -> None:
    with pytest.raises(BadInputError, match="what the clients subscribe to already"):
        rocketmq({"A": "x || y"}, {"A": "y||x"})
    with pytest.raises(BadInputError, match="expressions of SQL"):
        rocketmq({"A": "x"}, {"A": "a > 5"})
    with pytest.raises(UnknownNameError, match=r"change\.to"):
        rocketmq({"A": "*"}, {"A": "*", "B": "*"}, queues=[rocketmq_request({})["queues"][0] | {"topic": "A"}])
    with pytest.raises(BadInputError, match="broadcasting clients"):
        rocketmq({"A": "*"}, {"A": "x"}, settings={"messageModel": "BROADCASTING"})


def test_a_large_group_has_the_topics_figures_alone() -> None:
    many = {"a": [{"rate": 0.1, "lag": 0}] * 10_001, "b": FOUR}
    answer = kafka("a", "ab", partitions=many, trials=2)
    assert answer["subscription"]["steps"] is None
    assert topic(answer, "b")["change"] == "added"
    assert any("who owns what after each step is left out: 2 steps and 10005 queues" in w for w in answer["warnings"])
