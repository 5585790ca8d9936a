"""Bodies to our types: the documented samples, recorded real answers, and bodies of another shape."""

import pytest

from planner.model.membership import TopicFigures
from planner.model.queues import MessageQueue
from planner.model.routes import BrokerAddress, BrokerQueues
from planner.model.samples import QueueOffsets
from planner.sources.rocketmq import answers, codec, requests
from planner.sources.rocketmq.answers import ClientConnection
from planner.sources.rocketmq.errors import BodyError
from tests.unit.sources.rocketmq import java_json, samples
from tests.unit.sources.rocketmq.java_json import queue_key

PORTS = {"4.9.7": (32911, 33911), "5.5.0": (30911, 31911)}
ORDINALS = {"4.9.7": 407, "5.5.0": 513}
REBALANCE = "org.apache.rocketmq.client.consumer.rebalance."
by_version = pytest.mark.parametrize("version", samples.VERSIONS)


def test_sample_of_106() -> None:
    assert answers.cluster_info(samples.CLUSTER_INFO) == answers.ClusterInfo(
        brokers=(
            BrokerAddress("broker-a", "DefaultCluster", "127.0.0.1:10911"),
            BrokerAddress("broker-b", "DefaultCluster", "127.0.0.1:20911"),
        ),
        clusters=("DefaultCluster",),
    )


@by_version
def test_recorded_106(version: str) -> None:
    info = answers.cluster_info(samples.recorded(version, "106_cluster_info").body)
    first, second = PORTS[version]
    assert info.brokers == (
        BrokerAddress("broker-a", "DefaultCluster", f"127.0.0.1:{first}"),
        BrokerAddress("broker-b", "DefaultCluster", f"127.0.0.1:{second}"),
    )


def test_master_is_taken_where_a_slave_is_listed_too() -> None:
    info = answers.cluster_info(samples.recorded("5.5.0", "106_with_slave").body)
    assert info.brokers[0] == BrokerAddress("broker-a", "DefaultCluster", "127.0.0.1:30911", is_master=True)
    assert [one.broker for one in info.brokers] == ["broker-a", "broker-b", "broker-c"]


def test_lowest_slave_stands_in_for_a_missing_master_and_is_marked() -> None:
    table = {"b": {"brokerAddrs": {10: "h:10", 2: "h:2"}, "brokerName": "b", "cluster": "C"}}
    info = answers.cluster_info(java_json.body({"brokerAddrTable": table}))
    assert info.brokers == (BrokerAddress("b", "C", "h:2", is_master=False),)


def test_quoted_and_unquoted_broker_ids_are_the_same() -> None:
    table = {"b": {"brokerAddrs": {"1": "h:1", "0": "h:0"}, "brokerName": "b", "cluster": "C"}}
    info = answers.cluster_info(java_json.body({"brokerAddrTable": table}))
    assert info.brokers == (BrokerAddress("b", "C", "h:0"),)


def test_broker_without_address_is_named() -> None:
    info = answers.cluster_info(java_json.body({"brokerAddrTable": {"b": {"brokerAddrs": {}, "cluster": "C"}}}))
    assert (info.brokers, info.unreachable) == ((), ("b",))


def test_name_server_without_brokers() -> None:
    assert answers.cluster_info(b"{}") == answers.ClusterInfo((), ())


EXPECTED_ROUTE = (BrokerQueues("broker-a", 4, 4, 6), BrokerQueues("broker-b", 4, 4, 6))


@by_version
@pytest.mark.parametrize("name", ["105_route", "105_route_legacy"])
def test_recorded_105(version: str, name: str) -> None:
    route = answers.topic_route(samples.recorded(version, name).body, "TopicA")
    assert (route.topic.topic, route.topic.brokers, route.is_static) == ("TopicA", EXPECTED_ROUTE, False)
    assert len(route.topic.read_queues) == 8


def test_sample_of_105() -> None:
    assert answers.topic_route(samples.ROUTE, "TopicA").topic.brokers == EXPECTED_ROUTE


def test_read_write_and_permission_are_told_apart() -> None:
    data = {"brokerName": "b", "readQueueNums": 3, "writeQueueNums": 5, "perm": 2, "topicSysFlag": 0}
    route = answers.topic_route(java_json.body({"queueDatas": [data]}), "T").topic
    assert route.brokers == (BrokerQueues("b", read_queues=3, write_queues=5, permission=2),)
    assert route.read_queues == ()


def test_static_topic_is_marked() -> None:
    mapping = {"b": {"topic": "T", "currIdMap": {0: 0}}}
    assert answers.topic_route(java_json.body({"queueDatas": [], "topicQueueMappingByBroker": mapping}), "T").is_static
    assert not answers.topic_route(b'{"queueDatas":[],"topicQueueMappingByBroker":{}}', "T").is_static


@by_version
def test_recorded_38(version: str) -> None:
    ids = answers.member_ids(samples.recorded(version, "38_members").body)
    assert ids == ("127.0.0.1@c1", "127.0.0.1@c2", "127.0.0.1@c3")


def test_sample_of_38_is_sorted() -> None:
    assert answers.member_ids(samples.MEMBERS) == ("127.0.0.1@c1", "127.0.0.1@c2", "127.0.0.1@c3")


def test_id_that_is_connected_twice_is_listed_twice() -> None:
    ids = answers.member_ids(samples.recorded("5.5.0", "38_duplicate_id").body)
    assert ids == ("127.0.0.1@c1", "127.0.0.1@c1", "127.0.0.1@c2")
    group = answers.connections(samples.recorded("5.5.0", "203_duplicate_id").body)
    assert [(one.client_id, one.address) for one in group.connections] == [
        ("127.0.0.1@c1", "127.0.0.1:39784"),
        ("127.0.0.1@c1", "127.0.0.1:39800"),
        ("127.0.0.1@c2", "127.0.0.1:39786"),
    ]


@by_version
def test_recorded_203(version: str) -> None:
    group = answers.connections(samples.recorded(version, "203_connections").body)
    assert [one.client_id for one in group.connections] == ["127.0.0.1@c1", "127.0.0.1@c2", "127.0.0.1@c3"]
    assert {(one.language, one.version) for one in group.connections} == {("JAVA", ORDINALS[version])}
    assert all(one.address.startswith("127.0.0.1:") for one in group.connections)
    assert group.topics == ("%RETRY%GroupA", "TopicA", "TopicB")
    assert (group.consume_type, group.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")


def test_sample_of_203() -> None:
    assert answers.connections(samples.CONNECTIONS) == answers.GroupConnections(
        connections=(ClientConnection("127.0.0.1@c1", "127.0.0.1:41284", "JAVA", 409),),
        topics=("%RETRY%GroupA", "TopicB"),
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from="CONSUME_FROM_FIRST_OFFSET",
    )


def test_sample_of_208() -> None:
    stats = answers.consume_stats(samples.CONSUME_STATS)
    assert stats.delivered_per_s == 2.1
    assert stats.offsets == (
        QueueOffsets(MessageQueue("%RETRY%GroupA", "broker-a", 0), 0, 0, 0),
        QueueOffsets(MessageQueue("TopicB", "broker-a", 6), 6, 6, 1795234288626),
    )


def test_sample_of_208_since_5_1_has_a_pull_offset_that_is_not_taken_for_another() -> None:
    assert answers.consume_stats(samples.CONSUME_STATS_51).offsets == (
        QueueOffsets(MessageQueue("TopicB", "broker-a", 6), 16, 6, 1795234288626),
    )


@by_version
def test_recorded_208(version: str) -> None:
    offsets = answers.consume_stats(samples.recorded(version, "208_consume_stats").body).offsets
    assert [(str(one.queue), one.broker_offset, one.consumer_offset) for one in offsets] == [
        ("%RETRY%GroupA/broker-a/0", 0, 0),
        *((f"TopicA/broker-a/{queue_id}", 13, 13) for queue_id in range(4)),
        *((f"TopicB/broker-a/{queue_id}", 5, 5) for queue_id in range(4)),
    ]
    assert all(one.last_timestamp_ms > 1_795_000_000_000 for one in offsets[1:])


@by_version
def test_unknown_group_has_no_offsets(version: str) -> None:
    assert answers.consume_stats(samples.recorded(version, "208_unknown").body) == answers.ConsumeStats(0.0, ())


def test_sample_of_307_leaves_dropped_and_pop_entries_out() -> None:
    info = answers.running_info(samples.RUNNING_INFO)
    assert info.owned == (MessageQueue("TopicA", "broker-a", 0),)
    assert tuple(one.topic for one in info.subscriptions) == ("TopicA",)
    assert info.tuning.strategy_class == f"{REBALANCE}AllocateMessageQueueAveragely"
    assert info.tuning.threads == 20
    assert info.tuning.cached_messages == 0  # of the queue that it still owns
    assert (info.tuning.batch_size, info.tuning.pull_threshold) == (None, None)
    assert info.tuning.started_at_ms == 1795234286722
    assert info.tuning.figures == (TopicFigures("TopicA", consume_rt_ms=1.179, ok_per_s=0.78, failed_per_s=0.0),)
    assert dict(info.tuning.properties) == {
        "messageModel": "CLUSTERING",
        "pullBatchSize": "32",
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_CLIENT_VERSION": "V4_9_8",
    }


@by_version
def test_recorded_307(version: str) -> None:
    info = answers.running_info(samples.recorded(version, "307_running_info").body)
    assert info.owned == (
        MessageQueue("%RETRY%GroupA", "broker-a", 0),
        *(MessageQueue("TopicA", "broker-a", queue_id) for queue_id in range(3)),
        *(MessageQueue("TopicB", "broker-a", queue_id) for queue_id in range(3)),
    )
    assert tuple(one.topic for one in info.subscriptions) == ("%RETRY%GroupA", "TopicA", "TopicB")
    assert (info.tuning.orderly, info.tuning.threads, info.tuning.batch_size) == (False, 20, 1)
    assert info.tuning.pull_threshold == 1000
    assert [one.topic for one in info.tuning.figures] == ["%RETRY%GroupA", "TopicA", "TopicB"]
    expected = {
        "awaitTerminationMillisWhenShutdown": "0",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "messageModel": "CLUSTERING",
        "pullBatchSize": "32",
        "pullInterval": "0",
        "consumeConcurrentlyMaxSpan": "2000",
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_CLIENT_VERSION": f"V{version.replace('.', '_')}",
    }
    newer = {"clientRebalance": "true"} if version == "5.5.0" else {}
    assert dict(info.tuning.properties) == {**expected, **newer}


def test_owned_queues_topics_and_figures_are_sorted_whatever_the_hash_order() -> None:
    queues = [("T", "b-10", 0), ("T", "b-2", 10), ("S", "z", 0), ("T", "b-2", 9)]
    body = {
        "mqTable": {queue_key(*queue): {"droped": False} for queue in queues},
        "statusTable": {"T": {}, "S": {}},
        "subscriptionSet": [{"topic": "T"}, {"topic": "S"}],
    }
    info = answers.running_info(java_json.body(body))
    assert [str(queue) for queue in info.owned] == ["S/z/0", "T/b-10/0", "T/b-2/9", "T/b-2/10"]
    assert tuple(one.topic for one in info.subscriptions) == ("S", "T")
    assert [one.topic for one in info.tuning.figures] == ["S", "T"]


def running(properties: dict[str, object]) -> answers.RunningInfo:
    return answers.running_info(java_json.body({"properties": properties}))


def test_what_a_lite_pull_consumer_tells_of_its_polls_and_commits_is_kept() -> None:
    told: dict[str, object] = {
        "autoCommit": "true",
        "autoCommitIntervalMillis": "5000",
        "pollTimeoutMillis": "5000",
        "pullBatchSize": "10",
        "pullThreadNums": "20",
        "pullThresholdForAll": "10000",
        "PROP_CONSUME_TYPE": "CONSUME_ACTIVELY",
    }
    tuning = running({**told, "consumeMaxSpan": "2000"}).tuning
    assert dict(tuning.properties) == told
    assert (tuning.threads, tuning.orderly, tuning.batch_size) == (None, False, None)


@pytest.mark.parametrize(
    ("told", "strategy_class"),
    [
        ("com.acme.Mine@1f", "com.acme.Mine"),
        ("com.acme.Mine$$Lambda/0x00@ab@1f", "com.acme.Mine$$Lambda/0x00@ab"),
        ("MINE", "MINE"),
        ("", None),
    ],
)
def test_strategy_class_is_cut_at_the_last_at_sign(told: str, strategy_class: str | None) -> None:
    assert running({"allocateMessageQueueStrategy": told}).tuning.strategy_class == strategy_class


def test_client_that_tells_nothing_of_itself() -> None:
    tuning = answers.running_info(b"{}").tuning
    assert (tuning.strategy_class, tuning.threads, tuning.batch_size, tuning.pull_threshold) == (None, None, None, None)
    assert (tuning.started_at_ms, tuning.figures, tuning.properties, tuning.orderly) == (None, (), (), False)
    assert answers.running_info(b"{}").owned == ()


def test_order_and_the_pool_as_it_is_are_taken_from_properties() -> None:
    told = {"PROP_CONSUMEORDERLY": "true", "consumeThreadMax": "64", "PROP_THREADPOOL_CORE_SIZE": "20"}
    tuning = running({**told, "consumeMessageBatchMaxSize": "16", "pullThresholdForQueue": "-1"}).tuning
    assert (tuning.orderly, tuning.threads, tuning.batch_size, tuning.pull_threshold) == (True, 20, 16, -1)
    assert running({"consumeThreadMin": "20", "consumeThreadMax": "64"}).tuning.threads == 20
    assert running({"PROP_THREADPOOL_CORE_SIZE": "-1"}).tuning.threads is None  # clients of other languages


def test_property_that_is_no_number_is_unknown() -> None:
    assert running({"consumeThreadMax": "many", "pullThresholdForQueue": 5}).tuning.threads is None


MQ = queue_key("T", "b", 0)


@pytest.mark.parametrize(
    ("read", "value", "problem"),
    [
        (answers.cluster_info, [], "cluster info is 'list', expected an object"),
        (answers.cluster_info, {"brokerAddrTable": {"b": 1}}, "brokerAddrTable.b is '1', expected an object"),
        (answers.cluster_info, {"brokerAddrTable": {"b": {"brokerAddrs": {"x": "h:1"}}}}, "broker id of b is 'x'"),
        (answers.cluster_info, {"brokerAddrTable": {"b": {"brokerAddrs": {0: 1}}}}, "address of b is '1'"),
        (answers.member_ids, {}, "consumerIdList is 'None', expected a list"),
        (answers.member_ids, {"consumerIdList": [1]}, "consumerIdList is '1', expected text"),
        (answers.connections, {"connectionSet": [1]}, "connectionSet[0] is '1', expected an object"),
        (answers.connections, {"connectionSet": [{"clientId": "a"}]}, "connectionSet[0].clientAddr is 'None'"),
        (answers.connections, {}, "connectionSet is 'None', expected a list"),
        (answers.consume_stats, {"offsetTable": {"T": {}}}, "offsetTable has the key 'T', expected an object"),
        (answers.consume_stats, {"offsetTable": {MQ: {}}}, "brokerOffset of T/b/0 is 'None', expected an integer"),
        (answers.consume_stats, {"offsetTable": {MQ: {"brokerOffset": 1.5}}}, "brokerOffset of T/b/0 is '1.5'"),
        (answers.consume_stats, {"offsetTable": {MQ: {"brokerOffset": True}}}, "brokerOffset of T/b/0 is 'True'"),
        (answers.consume_stats, {"offsetTable": {MQ[:2]: {}}}, "offsetTable: topic of a key is 'None'"),
        (answers.consume_stats, {"consumeTps": "fast"}, "consumeTps is 'fast', expected a number"),
        (answers.running_info, {"mqTable": {MQ: []}}, "mqTable of T/b/0 is 'list', expected an object"),
        (answers.running_info, {"mqTable": {"T": {}}}, "mqTable has the key 'T'"),
        (answers.running_info, {"properties": []}, None),
        (answers.running_info, {"properties": [1]}, "properties is 'list', expected an object"),
        (answers.running_info, {"statusTable": {"T": {"consumeRT": "1"}}}, "consumeRT of T is '1', expected a number"),
        (answers.running_info, {"subscriptionSet": [{}]}, "subscriptionSet is 'None', expected text"),
    ],
)
def test_body_of_another_shape_is_refused_with_its_place(read: object, value: object, problem: str | None) -> None:
    assert callable(read)
    if problem is None:
        read(java_json.body(value))
        return
    with pytest.raises(BodyError) as caught:
        read(java_json.body(value))
    assert problem in str(caught.value)


def test_route_of_another_shape_is_refused_with_its_place() -> None:
    with pytest.raises(BodyError, match=r"queueDatas is 'None', expected a list"):
        answers.topic_route(b"{}", "T")
    with pytest.raises(BodyError, match=r"queueDatas\[0\].readQueueNums is 'None'"):
        answers.topic_route(b'{"queueDatas":[{"brokerName":"b"}]}', "T")


@by_version
def test_every_recorded_frame_is_an_answer_to_opaque_7(version: str) -> None:
    names = [path.stem for path in (samples.FIXTURES / version).glob("*.frame")]
    assert {int(name.split("_")[0]) for name in names} == {int(code) for code in requests.RequestCode}
    for name in names:
        answer = samples.recorded(version, name)
        assert (answer.opaque, answer.is_answer, answer.version) == (7, True, ORDINALS[version])
        frame = samples.recorded_frame(version, name)
        assert codec.frame_length(frame[:4]) == len(frame) - 4


def test_figures_that_are_no_numbers_are_left_out() -> None:
    table = {"A": {"consumeRT": float("nan")}, "B": {"consumeOKTPS": 2.0}, "C": {"consumeFailedTPS": float("inf")}}
    info = answers.running_info(java_json.body({"statusTable": table}))
    assert info.tuning.figures == (TopicFigures("B", 0.0, 2.0, 0.0),)
