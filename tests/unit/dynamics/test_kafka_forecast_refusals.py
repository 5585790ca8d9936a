"""What ``planner forecast`` refuses of a Kafka request: one sentence that names field, found and expected."""

from typing import Any

import pytest

from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import Document, kafka_leave, kafka_request

JOIN = {"kind": "join", "clients": [{"id": "c9"}]}
OLD = {"client": "4.4.0", "broker": "3.9.2"}
LIBRDKAFKA = {"client": "librdkafka 2.16.1", "broker": "4.3.1"}


def refused(request: Document) -> str:
    with pytest.raises(BadInputError) as error:
        forecast(request)
    return str(error.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"strategy": "AVG"}, "strategy: found"),
        ({"strategy": "uniform"}, "with protocol classic"),
        ({"protocol": "queue"}, "protocol: found"),
        ({"protocol": "consumer", "strategy": "uniform", "versions": OLD}, "found consumer with broker 3.9.2"),
        ({"versions": {"client": "new", "broker": "4.3.1"}}, "versions.client: found"),
        ({"versions": {"client": "4.4.0"}}, "versions.broker: missing"),
        ({"strategy": "sticky", "versions": LIBRDKAFKA}, "of librdkafka"),
        ({"partitions": {}}, "partitions: found none"),
        ({"partitions": {"t": []}}, "partitions: found none"),
        ({"partitions": {"t": [{"lag": 0}]}}, "partitions['t'][0].rate: missing"),
        ({"partitions": {"t": [{"rate": -1}]}}, "partitions['t'][0].rate: found -1"),
        ({"partitions": {"t": [{"rate": float("nan")}]}}, "rate: found NaN"),
        ({"partitions": {"t": [{"rate": 1, "lags": 0}]}}, "lags"),
        ({"members": [{"id": None, "topics": ["t"]}]}, "members[0].id: found null"),
        ({"members": [{"id": "a", "topics": ["t"]}] * 2}, '"a" twice'),
        ({"members": [{"id": "a"}]}, "members[0].topics: missing"),
        ({"members": [{"id": "a", "topics": ["t"], "owned": [["t", -1]]}]}, "members[0].owned[0]: found"),
        ({"service_time_s": float("inf")}, "service_time_s: found"),
        ({"trials": 0}, "trials: found 0"),
        ({"seed": -1}, "seed: found -1"),
        ({"since_rebalance_s": -1}, "since_rebalance_s: found -1"),
        ({"options": {"virtual_nodes": 1}}, "virtual_nodes"),
        ({"options": {"commit_on_revoke": 1}}, "commit_on_revoke: found 1"),
        ({"settings": {"session.timeout": 1}}, "session.timeout"),
        ({"settings": {"session.timeout.ms": "10s"}}, "session.timeout.ms: found"),
        ({"settings": {"session.timeout.ms": 5_000}}, "group.min.session.timeout.ms"),
        ({"settings": {"heartbeat.interval.ms": 45_000}}, "less than session.timeout.ms"),
        ({"settings": {"group.consumer.heartbeat.interval.ms": 5_000}, "versions": OLD}, "since 4.0.0"),
        ({"settings": {"auto.offset.reset": "newest"}}, "one of latest, earliest, none"),
        ({"settings": {"topic.metadata.refresh.interval.ms": 1}}, "with librdkafka only"),
        ({"settings": {"max.poll.records": 1}, "versions": LIBRDKAFKA}, "with the Java client only"),
        ({"settings": {"max.poll.interval.ms": 10_000}, "versions": LIBRDKAFKA}, "librdkafka refuses to start"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], words: str) -> None:
    assert words in refused(kafka_request(JOIN) | fields)


@pytest.mark.parametrize("name", ["session.timeout.ms", "heartbeat.interval.ms"])
def test_the_consumer_protocol_refuses_settings_of_the_classic_one(name: str) -> None:
    assert f"group.consumer.{name}" in refused(kafka_request(JOIN, "uniform", settings={name: 20_000}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "explode"}, "change.kind: found"),
        ({"kind": "join", "clients": []}, "found none"),
        ({"kind": "join", "clients": [{"id": "c1"}]}, "is in the group already"),
        (kafka_leave("graceful", "c7"), "whose members are c0, c1, c2"),
        (kafka_leave("politely", "c1"), "change.how: found"),
        (kafka_leave("graceful", "c1", "c1"), "twice"),
        ({"kind": "restart", "clients": ["c1"], "how": "crash"}, "change.interval_s: missing"),
        ({"kind": "freeze", "clients": ["c1"]}, "change.for_s: missing"),
        ({"kind": "queues", "topic": "t"}, "change.partitions: missing"),
        ({"kind": "queues", "topic": "u", "partitions": 9}, "whose topics are t"),
        ({"kind": "queues", "topic": "t", "partitions": 7}, "cannot take partitions away"),
        ({"kind": "queues", "topic": "t", "read_queues": 9, "write_queues": 10}, "expected one number"),
        ({"kind": "strategy", "to": "AVG", "clients": ["c1"], "interval_s": 1}, "change.to: found"),
        ({"kind": "rolling_update", "beside": "AVG", "ready_s": 1}, "change.beside: found"),
        ({"kind": "rolling_update", "beside": "uniform", "ready_s": 1}, "expected another assignor of clients"),
        ({"kind": "rolling_update", "beside": "range", "ready_s": 1}, "expected another assignor of clients"),
        ({"kind": "rolling_update", "beside": "sticky", "to": "sticky", "ready_s": 1}, "expected one of them"),
        ({"kind": "broker_down"}, "change.broker: missing"),
    ],
)
def test_a_wrong_change_is_named(change: Document, words: str) -> None:
    assert words in refused(kafka_request(change))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "strategy", "to": "cooperative-sticky", "clients": ["c0", "c1", "c2"], "interval_s": 1},
        {"kind": "rolling_update", "to": "cooperative-sticky", "ready_s": 1},
        {"kind": "rolling_update", "beside": "cooperative-sticky", "ready_s": 1},
    ],
)
def test_librdkafka_cannot_roll_between_eager_and_cooperative(change: Document) -> None:
    assert "stop all" in refused(kafka_request(change, versions=LIBRDKAFKA))


def test_members_of_the_consumer_protocol_list_no_assignors() -> None:
    change = {"kind": "rolling_update", "beside": "range-server", "ready_s": 1}
    assert "in a classic group" in refused(kafka_request(change, "uniform"))


def test_an_instance_id_that_is_taken_is_refused() -> None:
    change = {"kind": "join", "clients": [{"id": "c9", "instance_id": "pod-1"}]}
    assert "expected a new instance id" in refused(kafka_request(change, static=True))


def test_a_partition_of_two_owners_is_no_stable_group() -> None:
    members = [{"id": name, "topics": ["t"], "owned": [["t", 0]]} for name in ("a", "b")]
    assert "one owner" in refused(kafka_request(JOIN) | {"members": members})


def test_a_group_without_members_can_only_be_joined() -> None:
    empty = kafka_request({"kind": "queues", "topic": "t", "partitions": 9}, members=0)
    assert "expected at least one member" in refused(empty)


def test_a_broker_that_leads_nothing_is_named() -> None:
    request = kafka_request({"kind": "broker_down", "broker": "9"})
    request["partitions"]["t"][0]["leader"] = "1"
    assert "whose leaders are 1" in refused(request)
