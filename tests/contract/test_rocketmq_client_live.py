"""``observe_group`` against real name servers, brokers and Java clients, old and new."""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from planner.errors import OutOfReachError, UnknownNameError
from planner.model.brokers import GroupSettings
from planner.model.membership import Subscription
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample, QueueOffsets
from planner.sources.rocketmq import AnswerError, RocketMQAdmin, observe_group, observe_groups
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import GHOSTS_GONE_S, NEW, OLD, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, QueueCurve, RocketMQLoad
from tests.patience import PATIENT
from tests.sample_builders import AVERAGELY

pytestmark = pytest.mark.cluster

MIDDLE = "5.1.4"
LIMIT_S = 6.0
"""How long a frozen member is waited for: the others answer in that time on a busy machine, too."""
ORDINALS = {"4.9.7": 407, "5.1.4": 441, "5.5.0": 513}
WAIT_S = 300.0
QUICK = {"poll-ms": 1000, "heartbeat-ms": 2000, "persist-ms": 500}
QUEUES = {
    *(MessageQueue("orders", broker, queue_id) for broker in ("broker-a", "broker-b") for queue_id in range(4)),
    *(MessageQueue("skewed", "broker-a", queue_id) for queue_id in range(3)),
    *(MessageQueue("%RETRY%shop", broker, 0) for broker in ("broker-a", "broker-b")),
}


@dataclass
class World:
    """Two brokers; group ``shop`` with two members on two topics, group ``left`` whose member has gone."""

    cluster: RocketMQCluster
    load: RocketMQLoad
    consumers: tuple[ConsumerProcess, ...]
    admin: RocketMQAdmin

    def look(self, group: str = "shop", **options: object) -> GroupSample:
        wanted = {"cluster": None, "topics": None, "at": datetime.now(UTC), **options}
        return observe_group(self.admin, group=group, **wanted)

    def commits(self, broker: str) -> set[tuple[str, str]]:
        """Return (group, topic) of everything that a broker has stored."""
        return {(one.group, one.topic) for one in self.admin.all_offsets(self.cluster.broker(broker).address)}

    def await_true(self, is_met: Callable[[], object], within_s: float = GHOSTS_GONE_S) -> None:
        deadline = time.monotonic() + within_s
        while not is_met():
            assert time.monotonic() < deadline, f"not met in {within_s} s"
            time.sleep(0.3)

    def await_sample(self, is_met: Callable[[GroupSample], bool], within_s: float = GHOSTS_GONE_S) -> GroupSample:
        """Look until it is so; a sample during a rebalance or before the first commits is no defect."""
        deadline = time.monotonic() + within_s
        while not is_met(sample := self.look()):
            assert time.monotonic() < deadline, f"not met in {within_s} s: {sample}"
            time.sleep(0.5)
        return sample


@pytest.fixture(scope="module", params=[OLD, MIDDLE, NEW])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with (
        RocketMQCluster.start(request.param, brokers=2) as cluster,
        RocketMQAdmin(cluster.name_server, limits=PATIENT) as admin,
    ):
        cluster.create_topic("orders", 4)
        cluster.create_topic("skewed", per_broker={"broker-a": QueueCounts(read=3, write=2)})
        load = cluster.load()
        consumers = tuple(
            load.start_consumer(
                group="shop", topics=["orders", "skewed"], instance=name, threads=3, options=QUICK, wait_ready=False
            )
            for name in ("c1", "c2")
        )
        gone = load.start_consumer(group="left", topics=["orders"], instance="g1", options=QUICK, wait_ready=False)
        for consumer in (*consumers, gone):
            consumer.await_ready()
        curves = [
            *(QueueCurve("orders", broker, queue, ((0, 5.0 + queue), (3, 5.0 + queue))) for broker, queue in _orders()),
            *(QueueCurve("skewed", "broker-a", queue, ((0, 4), (3, 4))) for queue in range(2)),
        ]
        sent = load.start_producer(curves).wait(WAIT_S)
        assert sent.total > 100
        world = World(cluster, load, consumers, admin)
        # Without a commit the broker forgets that the group ever was.
        world.await_true(lambda: any(one.consumer_offset for one in world.look("left").offsets))
        gone.stop()
        world.await_true(lambda: not any(cluster.members("left").values()))
        yield world


def _orders() -> list[tuple[str, int]]:
    return [(broker, queue) for broker in ("broker-a", "broker-b") for queue in range(4)]


def _is_settled(sample: GroupSample) -> bool:
    return not sample.problems and all(one.owned for one in sample.members) and set(sample.owners) == QUEUES


def _has_all_commits(sample: GroupSample) -> bool:
    return all(one.consumer_offset == one.broker_offset for one in sample.offsets)


def test_route_holds_what_was_created(world: World) -> None:
    sample = world.await_sample(_is_settled)
    assert set(sample.routes.read_queues) == QUEUES
    skewed = next(route for route in sample.routes.topics if route.topic == "skewed")
    assert [(one.broker, one.read_queues, one.write_queues, one.permission) for one in skewed.brokers] == [
        ("broker-a", 3, 2, 6)
    ]
    assert [(one.broker, one.address, one.is_master) for one in sample.routes.brokers] == [
        (broker.name, broker.address, True) for broker in world.cluster.brokers
    ]


def test_members_are_those_that_run(world: World) -> None:
    sample = world.await_sample(_is_settled)
    assert [one.client_id for one in sample.members] == ["127.0.0.1@c1", "127.0.0.1@c2"]
    assert {(one.language, one.version) for one in sample.members} == {("JAVA", ORDINALS[world.cluster.version])}
    assert all(one.address.startswith("127.0.0.1:") for one in sample.members)


def test_each_queue_has_exactly_one_owner(world: World) -> None:
    sample = world.await_sample(_is_settled)
    assert {queue: len(owners) for queue, owners in sample.owners.items()} == dict.fromkeys(QUEUES, 1)
    assert sample.owners[MessageQueue("orders", "broker-a", 0)] == ("127.0.0.1@c1",)
    assert sample.owners[MessageQueue("orders", "broker-b", 3)] == ("127.0.0.1@c2",)


def test_offsets_are_what_was_sent_and_consumed(world: World) -> None:
    sample = world.await_sample(lambda sample: _is_settled(sample) and _has_all_commits(sample))
    told = {(one.queue.topic, one.queue.broker, one.queue.queue_id): one for one in sample.offsets}
    produced = {
        (topic, *queue): count
        for topic in ("orders", "skewed")
        for queue, count in world.cluster.produced(topic).items()
    }
    assert produced["orders", "broker-b", 3] > produced["orders", "broker-a", 0] > 0
    for queue, count in produced.items():
        assert (told[queue].broker_offset, told[queue].consumer_offset) == (count, count)
        assert abs(told[queue].last_timestamp_ms / 1000 - time.time()) < 600
    assert (told["skewed", "broker-a", 2].broker_offset, told["skewed", "broker-a", 2].last_timestamp_ms) == (0, 0)


def test_tuning_is_what_the_client_was_started_with(world: World) -> None:
    sample = world.await_sample(_is_settled)
    for member in sample.members:
        assert member.tuning is not None
        assert member.tuning.strategy_class == AVERAGELY
        assert (member.tuning.orderly, member.tuning.threads, member.tuning.batch_size) == (False, 3, 1)
        assert abs((member.tuning.started_at_ms or 0) / 1000 - time.time()) < 600
        assert {one.topic for one in member.tuning.figures} >= {"orders"}
        properties = dict(member.tuning.properties)
        assert properties["PROP_CLIENT_VERSION"] == f"V{world.cluster.version.replace('.', '_')}"
        assert properties["consumeFromWhere"] == "CONSUME_FROM_FIRST_OFFSET"


def test_every_read_is_answered_by_a_real_broker(world: World) -> None:
    world.await_sample(lambda sample: _is_settled(sample) and _has_all_commits(sample))
    admin, broker = world.admin, world.cluster.brokers[0].address
    is_old = world.cluster.version == OLD
    queue = MessageQueue("orders", "broker-a", 0)
    produced = world.cluster.produced("orders")["broker-a", 0]
    topics = ("%RETRY%shop", "orders", "skewed")
    assert set(topics) <= set(admin.topic_names())
    assert set(topics) <= set(admin.topics_of_cluster("DefaultCluster"))
    assert admin.topics_of_cluster("nowhere") == ()
    stats = admin.topic_stats(broker, "orders")
    assert stats is not None
    assert {(one.queue, one.min_offset, one.max_offset) for one in stats.queues} >= {(queue, 0, produced)}
    assert admin.topic_stats(broker, "nothing") is None
    assert set(admin.groups_of_topic(broker, "orders")) >= {"shop", "left"}
    assert admin.topics_of_group(broker, "shop") == (None if is_old else topics)
    wanted = admin.subscription(broker, "shop", "orders")
    assert (wanted.expression if wanted else None) == (None if is_old else "*")
    assert {"shop", "left"} <= {one.group for one in admin.group_configs(broker)}
    skewed = next(one for one in admin.topic_configs(broker) if one.topic == "skewed")
    assert (skewed.read_queues, skewed.write_queues, skewed.permission) == (3, 2, 6)
    told = [entry for one in admin.member_offsets(broker, "shop", "orders") for entry in one.offsets]
    assert dict(told)[queue] == produced
    kept = {(one.group, one.topic): dict(one.offsets) for one in admin.all_offsets(broker)}
    assert kept["shop", "orders"][0] == produced
    assert "shop" in dict(admin.broker_consume_stats(broker).groups)
    assert admin.committed_offset(broker, "shop", queue) == produced
    # 4.9 makes up a 0 for a group that never was.
    assert admin.committed_offset(broker, "nobody", queue) == (0 if is_old else None)
    assert (admin.max_offset(broker, queue), admin.min_offset(broker, queue)) == (produced, 0)
    assert admin.offset_at(broker, queue, datetime(2020, 1, 1, tzinfo=UTC)) == 0
    assert admin.counter(broker, "TOPIC_PUT_NUMS", "orders") is not None
    assert admin.counter(broker, "TOPIC_PUT_NUMS", "nothing") is None
    assert admin.broker_runtime(broker).version_name == f"V{world.cluster.version.replace('.', '_')}"
    assert admin.broker_config(broker)["brokerName"] == "broker-a"


def test_messages_on_a_topic_without_a_commit_are_counted_and_no_offset_is_made_up(world: World) -> None:
    world.cluster.create_topic("idle", 2)
    curves = [QueueCurve("idle", broker, 0, ((0, 10), (1, 10))) for broker in ("broker-a", "broker-b")]
    sent = world.load.start_producer(curves).wait(WAIT_S)
    sample = world.look(topics=["idle"])
    half = sent.total // 2
    assert [(str(one.queue), one.broker_offset, one.consumer_offset, one.lag) for one in sample.offsets][-4:] == [
        ("idle/broker-a/0", half, None, None),
        ("idle/broker-a/1", 0, None, 0),
        ("idle/broker-b/0", half, None, None),
        ("idle/broker-b/1", 0, None, 0),
    ]
    assert (
        f"topic idle: the brokers know of no commit of the group on 2 queues, which hold {sent.total} messages: "
        "broker-a/0, broker-b/0"
    ) in sample.problems


def test_offset_0_is_told_only_where_it_was_committed(world: World) -> None:
    """Brokers tell 0 for both queues: the one read before a message came, and the one made after the group had left."""
    world.cluster.create_topic("late", 1)
    member = world.load.start_consumer(group="early", topics=["late"], instance="e1", options=QUICK)
    world.await_true(lambda: ("early", "late") in world.commits("broker-a"))
    member.stop()
    world.cluster.create_topic("late", 2)
    sent = world.load.start_producer([QueueCurve("late", "broker-a", queue, ((0, 9), (1, 9))) for queue in (0, 1)])
    half = sent.wait(WAIT_S).total // 2
    read, unread = (MessageQueue("late", "broker-a", queue) for queue in (0, 1))
    address = world.cluster.broker("broker-a").address
    told = {one.queue: one.consumer_offset for one in world.admin.consume_stats(address, "early").offsets}
    assert (told[read], told[unread]) == (0, 0)
    sample = world.look("early")
    many = dict(observe_groups(world.admin, groups=None, cluster=None, at=sample.at))["early"]
    assert isinstance(many, GroupSample)
    for one in (sample, many):  # which ask in different ways
        known = {offsets.queue: offsets for offsets in one.offsets}
        assert known[read] == QueueOffsets(read, half, 0)
        assert known[unread] == QueueOffsets(unread, half, None, first_offset=0)
        lag = f"topic late: the brokers know of no commit of the group on 1 queues, which hold {half} messages: "
        assert f"{lag}broker-a/1" in one.problems


def test_look_at_all_groups_tells_the_same_as_one_by_one(world: World) -> None:
    single = world.await_sample(lambda sample: _is_settled(sample) and _has_all_commits(sample))
    looked = dict(observe_groups(world.admin, groups=None, cluster="DefaultCluster", at=single.at))
    assert {"shop", "left"} <= set(looked)
    assert not [name for name in looked if name.startswith(("CID_", "TOOLS_"))]
    many = looked["shop"]
    assert isinstance(many, GroupSample)
    volatile = {"took_s": 0.0, "members": (), "rocketmq": None}
    assert replace(many, **volatile) == replace(single, **volatile)
    assert [(one.client_id, one.owned, one.subscriptions) for one in many.members] == [
        (one.client_id, one.owned, one.subscriptions) for one in single.members
    ]


def test_what_brokers_and_members_are_set_to(world: World) -> None:
    sample = world.await_sample(_is_settled)
    wanted = {Subscription(topic, "*") for topic in ("%RETRY%shop", "orders", "skewed")}
    assert [set(one.subscriptions or ()) for one in sample.members] == [wanted, wanted]
    assert sample.dead_letters == 0
    assert sample.rocketmq is not None
    assert sample.rocketmq.consume_types == ("CONSUME_PASSIVELY",)
    assert sample.rocketmq.message_models == ("CLUSTERING",)
    for state in sample.rocketmq.brokers:
        assert (state.version, state.role, state.permission) == (ORDINALS[world.cluster.version], "ASYNC_MASTER", 6)
        assert state.settings == GroupSettings(True, True, True, 1, 16, in_order=False)
        low, high = state.clock_ahead_s or (9.0, 9.0)
        assert low <= 0 <= high
        disk, there = state.disk, shutil.disk_usage(world.cluster.directory)
        assert disk is not None
        assert (disk.removes_from, disk.refuses_from) == (0.85, 0.90)
        used = there.used / (there.used + there.free)
        assert used - 0.01 <= disk.used <= used + 0.02, "the broker's figure is of the whole per cent above"


def test_named_topic_leaves_the_others_out(world: World) -> None:
    sample = world.look(topics=["skewed"], cluster="DefaultCluster")
    assert [route.topic for route in sample.routes.topics] == ["%RETRY%shop", "skewed"]
    assert {one.queue.topic for one in sample.offsets} <= {"%RETRY%shop", "skewed"}


def test_group_without_members_is_offline_with_offsets(world: World) -> None:
    sample = world.look("left")
    assert sample.members == ()
    assert [problem for problem in sample.problems if "offline" in problem]
    assert sum(one.consumer_offset or 0 for one in sample.offsets) > 0


def test_names_that_are_not_there_are_refused(world: World) -> None:
    with pytest.raises(UnknownNameError, match="no broker knows group nobody"):
        world.look("nobody")
    with pytest.raises(UnknownNameError, match="topic nothing has no route"):
        world.look(topics=["nothing"])
    with pytest.raises(UnknownNameError, match="no cluster nowhere, but DefaultCluster"):
        world.look(cluster="nowhere")


def test_broker_asked_as_name_server_is_told_apart(world: World) -> None:
    broker = world.cluster.brokers[0].address
    with RocketMQAdmin(f"{broker};{world.cluster.name_server}", limits=PATIENT) as admin:
        assert len(admin.cluster_info().brokers) == 2
    with RocketMQAdmin(broker, limits=PATIENT) as admin, pytest.raises(OutOfReachError, match="NOT_SUPPORTED"):
        admin.cluster_info()


def test_member_of_another_group_is_not_online(world: World) -> None:
    with pytest.raises(AnswerError, match="not online") as caught:
        world.admin.running_info(world.cluster.brokers[0].address, "shop", "127.0.0.1@nobody")
    assert caught.value.code == 1


def test_frozen_member_is_unknown_and_the_others_are_not(world: World) -> None:
    world.await_sample(_is_settled)
    frozen = world.consumers[1]
    frozen.freeze()
    try:
        with RocketMQAdmin(world.cluster.name_server, limits=replace(PATIENT, running_info_s=LIMIT_S)) as admin:
            sample = observe_group(admin, cluster=None, group="shop", topics=None, at=datetime.now(UTC))
    finally:
        frozen.resume()
    first, second = sample.members
    assert first.owned
    assert (second.client_id, second.owned, second.tuning) == ("127.0.0.1@c2", None, None)
    (problem,) = (one for one in sample.problems if "127.0.0.1@c2 did not report what it runs" in one)
    assert f"within {LIMIT_S:g} s" in problem, "our limit ended the waiting, before the broker's own of 10 s"
    assert sample.took_s >= LIMIT_S


def test_stopped_broker_leaves_the_route_and_its_queues(world: World) -> None:
    world.await_sample(_is_settled)
    broker = world.cluster.broker("broker-b")
    broker.stop()
    try:
        world.await_true(lambda: broker.name not in remoting.broker_addresses(world.cluster.name_server))
        sample = world.look(topics=["skewed"])
        assert [one.broker for one in sample.routes.brokers] == ["broker-a"]
        assert {queue.broker for queue in sample.routes.read_queues} == {"broker-a"}
    finally:
        broker.start()
        broker.await_ready()
    world.await_sample(_is_settled)
