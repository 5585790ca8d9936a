"""Answers about topics, groups and whole brokers: recorded real ones, and bodies of another shape."""

from dataclasses import replace

import pytest

from planner.model.queues import MessageQueue
from planner.sources.rocketmq import answers, broker_answers
from planner.sources.rocketmq.broker_answers import (
    CommittedOffsets,
    GroupConfig,
    MemberOffsets,
    QueueRange,
    StatsWindow,
    Subscription,
    TopicConfig,
)
from planner.sources.rocketmq.errors import BodyError, JsonError
from tests.unit.sources.rocketmq import java_json, samples
from tests.unit.sources.rocketmq.java_json import queue_key

by_version = pytest.mark.parametrize("version", samples.VERSIONS)
T = [MessageQueue("TopicA", "broker-a", queue_id) for queue_id in range(4)]
MQ = queue_key("T", "b", 0)


def body(version: str, name: str) -> bytes:
    return samples.recorded(version, name).body


@by_version
@pytest.mark.parametrize("name", ["206_topics", "224_topics_of_cluster"])
def test_topic_names_are_sorted_and_hold_the_brokers_own(version: str, name: str) -> None:
    names = broker_answers.topic_list(body(version, name))
    assert list(names) == sorted(names)
    assert {"TopicA", "TopicB", "Fresh", "%RETRY%GroupA", "SCHEDULE_TOPIC_XXXX"} <= set(names)


@by_version
def test_recorded_202(version: str) -> None:
    stats = broker_answers.topic_stats(body(version, "202_topic_stats"))
    assert [(one.queue, one.min_offset, one.max_offset) for one in stats.queues] == [
        (queue, 0, end) for queue, end in zip(T, (15, 18, 21, 24), strict=True)
    ]
    assert all(one.last_update_ms > 1_795_000_000_000 for one in stats.queues)
    assert stats.puts_per_s == (7.8 if version == "5.5.0" else None)


@by_version
def test_topic_without_messages_has_queues_from_0_to_0(version: str) -> None:
    stats = broker_answers.topic_stats(body(version, "202_empty"))
    assert stats.queues == tuple(QueueRange(MessageQueue("Fresh", "broker-a", number), 0, 0, 0) for number in (0, 1))


@by_version
def test_recorded_300(version: str) -> None:
    assert broker_answers.group_list(body(version, "300_groups")) == ("GroupA",)


def test_recorded_343_and_345() -> None:
    names = broker_answers.topic_list(body("5.5.0", "343_topics_of_group"))
    assert names == ("%RETRY%GroupA", "TopicA", "TopicB")
    wanted = broker_answers.subscription(body("5.5.0", "345_subscription"))
    assert wanted == Subscription("TopicA", "*", "TAG", 1795261781079)
    assert broker_answers.subscription(body("5.5.0", "345_unknown")) is None


@by_version
def test_recorded_201(version: str) -> None:
    groups = {one.group: one for one in broker_answers.group_configs(body(version, "201_groups"))}
    assert groups["GroupA"] == GroupConfig("GroupA", True, True, 1, 16, True)
    assert list(groups) == sorted(groups)
    assert ("CID_RMQ_SYS_TRANS" in groups) == (version == "5.5.0")


def test_settings_of_a_group_are_told_apart() -> None:
    told = {"consumeEnable": False, "consumeBroadcastEnable": True, "retryQueueNums": 2, "retryMaxTimes": 3}
    told |= {"notifyConsumerIdsChangedEnable": False}
    default = GroupConfig("d", True, True, 1, 16, True)
    found = broker_answers.group_configs(java_json.body({"subscriptionGroupTable": {"g": told, "d": {}}}))
    assert found == (default, GroupConfig("g", False, True, 2, 3, False))
    other = {**told, "consumeEnable": True, "consumeBroadcastEnable": False}
    (found_other,) = broker_answers.group_configs(java_json.body({"subscriptionGroupTable": {"g": other}}))
    assert found_other == replace(found[1], can_consume=True, can_broadcast=False)


@by_version
def test_recorded_21(version: str) -> None:
    topics = {one.topic: one for one in broker_answers.topic_configs(body(version, "21_topic_configs"))}
    assert topics["TopicB"] == TopicConfig("TopicB", 2, 2, 6, is_ordered=False)
    assert topics["DefaultCluster"].permission == 7


def test_settings_of_a_topic_are_told_apart() -> None:
    told = {"readQueueNums": 3, "writeQueueNums": 5, "perm": 4, "order": True, "topicSysFlag": 9}
    found = broker_answers.topic_configs(java_json.body({"topicConfigTable": {"T": told}}))
    assert found == (TopicConfig("T", 3, 5, 4, is_ordered=True),)


@by_version
def test_recorded_223(version: str) -> None:
    assert broker_answers.member_offsets(body(version, "223_consumer_status")) == (
        MemberOffsets("127.0.0.1@c1", ((T[0], 15), (T[1], 18))),
        MemberOffsets("127.0.0.1@c2", ((T[2], 21), (T[3], 24))),
    )


@by_version
def test_recorded_43(version: str) -> None:
    assert broker_answers.all_offsets(body(version, "43_all_offsets")) == (
        CommittedOffsets("GroupA", "%RETRY%GroupA", ((0, 0),)),
        CommittedOffsets("GroupA", "TopicA", ((0, 15), (1, 18), (2, 21), (3, 24))),
        CommittedOffsets("GroupA", "TopicB", ((0, 15), (1, 18))),
    )


def test_commits_under_a_key_that_brokers_do_not_read_are_left_out() -> None:
    told = {"T@g": {"1": 2, 0: 1}, "T": {0: 9}, "T@g@x": {0: 9}, "@g": {0: 9}, "T@": {0: 9}}
    found = broker_answers.all_offsets(java_json.body({"offsetTable": told}))
    assert found == (CommittedOffsets("g", "T", ((0, 1), (1, 2))),)


@by_version
def test_recorded_317(version: str) -> None:
    stats = broker_answers.broker_consume_stats(body(version, "317_broker_consume_stats"))
    by_group = dict(stats.groups)
    told = {one.queue: one.consumer_offset for part in by_group["GroupA"] for one in part.offsets}
    assert [told[queue] for queue in T] == [15, 18, 21, 24]
    assert (len(told), by_group["TOOLS_CONSUMER"], stats.lag) == (7, (), 0)
    # 5.5.0 said -111, which is minus the sum of all commits.
    assert stats.in_flight is None
    assert stats.address.startswith("127.0.0.1:")


def test_messages_in_flight_are_taken_where_they_can_be_true() -> None:
    stats = broker_answers.broker_consume_stats(b'{"totalDiff":7,"totalInflightDiff":5,"brokerAddr":"h:1"}')
    assert (stats.lag, stats.in_flight, stats.address, stats.groups) == (7, 5, "h:1", ())


@by_version
def test_recorded_header_offsets(version: str) -> None:
    def offset(name: str) -> int:
        return broker_answers.header_offset(samples.recorded(version, name).fields)

    assert (offset("14_offset"), offset("30_max_offset"), offset("31_min_offset")) == (15, 18, 0)
    assert 0 < offset("29_search_offset") <= 18
    # 4.9 makes up a 0 for a group that is not there; 5.x can be told not to.
    unknown = samples.recorded(version, "14_unknown_not_zero")
    assert (unknown.code, unknown.fields.get("offset")) == ((0, "0") if version == "4.9.7" else (22, None))


@pytest.mark.parametrize("told", [{}, {"offset": ""}, {"offset": "1.5"}, {"offset": "9" * 2000}, {"offset": "x"}])
def test_header_without_offset_is_refused(told: dict[str, str]) -> None:
    with pytest.raises(BodyError, match="offset in the header is"):
        broker_answers.header_offset(told)
    assert broker_answers.header_offset({"offset": "-1"}) == -1


@by_version
def test_recorded_315(version: str) -> None:
    counter = broker_answers.counter(body(version, "315_stats"))
    mean = 1.0833333333333333 if version == "4.9.7" else 1.0
    assert counter.minute == StatsWindow(78, 7.8, mean)
    assert counter.hour == counter.day == StatsWindow(0, 0.0, 0.0)


@by_version
def test_recorded_28(version: str) -> None:
    runtime = broker_answers.runtime(body(version, "28_runtime"))
    assert runtime.version_name == f"V{version.replace('.', '_')}"
    # 5.5.0 tells its version by name only.
    assert runtime.version == (407 if version == "4.9.7" else None)
    assert (runtime.started_at_ms or 0) > 1_795_000_000_000
    assert runtime.figures["msgPutTotalTodayNow"] == "111"
    assert runtime.per_s("putTps") == (0.0,)
    assert (runtime.per_s("nothing"), runtime.per_s("runtime")) == ((), ())


def test_rates_come_for_10_60_and_600_seconds() -> None:
    runtime = broker_answers.runtime(b'{"table":{"putTps":"0.0 1.699263652417286 2"}}')
    assert runtime.per_s("putTps") == (0.0, 1.699263652417286, 2.0)


@by_version
def test_recorded_26(version: str) -> None:
    config = broker_answers.properties(body(version, "26_config"))
    assert (config["brokerName"], config["brokerIP1"], config["registerNameServerPeriod"]) == (
        "broker-a",
        "127.0.0.1",
        "10000",
    )
    assert config["storePathRootDir"] == "broker-a/store"
    assert len(config) > 150


def test_properties_are_unescaped_and_secrets_hidden() -> None:
    text = (
        "#note=1\n!x=2\n\nplain=a=b\nspaced = c \\\\ d\nk\\:ey:\\u00e9\\n\nempty=\naclSecretKey=\n"
        'initAuthenticationUser={"username":"root","password":"hunter2"}\n'
        'innerClientAuthenticationCredentials={"accessKey":"a","secretKey":"hunter2"}\ntls.keyPassword=hunter2\nbare\n'
    )
    config = broker_answers.properties(text.encode())
    assert config == {
        "plain": "a=b",
        "spaced": "c \\ d",
        "k:ey": "é\n",
        "empty": "",
        "aclSecretKey": "",
        "initAuthenticationUser": broker_answers.HIDDEN,
        "innerClientAuthenticationCredentials": broker_answers.HIDDEN,
        "tls.keyPassword": broker_answers.HIDDEN,
    }


@pytest.mark.parametrize(
    ("read", "value", "problem"),
    [
        (broker_answers.topic_list, {"topicList": "T"}, "topicList is 'T', expected a list"),
        (broker_answers.group_list, {"groupList": [1]}, "groupList is '1', expected text"),
        (broker_answers.topic_stats, {"offsetTable": {MQ: {}}}, "minOffset of T/b/0 is 'None', expected an integer"),
        (broker_answers.topic_stats, {"topicPutTps": "x"}, "topicPutTps is 'x', expected a number"),
        (broker_answers.topic_stats, {"topicPutTps": 10**400}, "expected a number"),
        (broker_answers.subscription, {"subscriptionData": {}}, "topic is 'None', expected text"),
        (broker_answers.group_configs, {"subscriptionGroupTable": {"g": 1}}, "group g is '1', expected an object"),
        (
            broker_answers.group_configs,
            {"subscriptionGroupTable": {"g": {"consumeEnable": 1}}},
            "consumeEnable of g is '1', expected true or false",
        ),
        (broker_answers.topic_configs, {"topicConfigTable": {"T": {}}}, "readQueueNums of T is 'None'"),
        (broker_answers.member_offsets, {"consumerTable": {"c": {"T": 1}}}, "consumerTable of c has the key 'T'"),
        (broker_answers.member_offsets, {"consumerTable": {"c": {MQ: None}}}, "consumerTable of c is 'None'"),
        (broker_answers.all_offsets, {"offsetTable": {"T@g": {"x": 1}}}, "queue id in T@g is 'x'"),
        (broker_answers.all_offsets, {"offsetTable": {"T@g": [1]}}, "offsetTable of T@g is 'list'"),
        (broker_answers.broker_consume_stats, {"consumeStatsList": [{"g": {}}]}, "consumeStatsList of g is 'dict'"),
        (broker_answers.broker_consume_stats, {"totalInflightDiff": "1"}, "totalInflightDiff is '1'"),
        (broker_answers.counter, {"statsMinute": {}}, "sum of statsMinute is 'None', expected an integer"),
        (broker_answers.runtime, {}, "table is 'None', expected an object"),
    ],
)
def test_body_of_another_shape_is_refused_with_its_place(read: object, value: object, problem: str) -> None:
    assert callable(read)
    with pytest.raises(BodyError) as caught:
        read(java_json.body(value))
    assert problem in str(caught.value)


def test_text_that_is_neither_json_nor_utf8_is_refused() -> None:
    with pytest.raises(JsonError):
        broker_answers.runtime(b"no")
    with pytest.raises(BodyError, match="not UTF-8, near byte 2"):
        broker_answers.properties(b"a=\xff")


def test_queue_counts_that_cannot_be_are_refused() -> None:
    for wrong in (-1, 2**31 - 1, 10**400):
        told = {"brokerName": "b", "readQueueNums": wrong, "writeQueueNums": 1, "perm": 6}
        with pytest.raises(BodyError, match="expected 0 to 65536"):
            answers.topic_route(java_json.body({"queueDatas": [told]}), "T")
