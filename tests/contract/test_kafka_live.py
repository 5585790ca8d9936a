"""``observe_group`` against a real Kafka with real consumers: Java's newest and 3.9, and librdkafka's."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as TheirPartition

from planner.documents.data import SNAPSHOT
from planner.errors import PlannerError, UnknownNameError
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.samples import GroupSample
from planner.sources.kafka import AnswerError, KafkaAdmin, observe_group, observe_groups
from planner.sources.kafka.answers import Commits
from tests.allocations import assign
from tests.clusters.kafka import CLIENT, OLD_CLIENT, KafkaCluster
from tests.clusters.kafka_load import LIBRDKAFKA, ClientProcess
from tests.unit.cli.test_cli import planner

pytestmark = pytest.mark.cluster

JAVA = "org.apache.kafka.clients.consumer."
JAVA_NAMES = {
    "range": f"{JAVA}RangeAssignor",
    "roundrobin": f"{JAVA}RoundRobinAssignor",
    "sticky": f"{JAVA}StickyAssignor",
    "cooperative-sticky": f"{JAVA}CooperativeStickyAssignor",
}
SIZES = {"live-orders": 6, "live-payments": 3}
ALL = {TopicPartition(topic, number) for topic, size in SIZES.items() for number in range(size)}
SETTLED_S = 600.0


@dataclass
class World:
    """One process of each client, all in one cluster."""

    cluster: KafkaCluster
    admin: KafkaAdmin
    processes: Mapping[str, ClientProcess]

    def look(self, group: str, **options: object) -> GroupSample:
        wanted = {"cluster": None, "topics": None, "at": datetime.now(UTC), **options}
        return observe_group(self.admin, group=group, **wanted)

    def await_sample(self, group: str, is_met: Callable[[GroupSample], bool]) -> GroupSample:
        """Look until it is so: a group that has just begun, or rebalances, is no defect."""
        deadline = time.monotonic() + SETTLED_S
        while True:
            try:
                sample = self.look(group)
            except (UnknownNameError, AnswerError) as error:  # nobody has joined yet; the cluster never had a group
                sample = error
            if isinstance(sample, GroupSample) and is_met(sample):
                return sample
            assert time.monotonic() < deadline, f"not met in {SETTLED_S} s: {sample}"
            time.sleep(0.2)

    def await_members(self, group: str, count: int) -> GroupSample:
        """Look until so many members share all partitions."""
        return self.await_sample(
            group,
            lambda sample: (
                sample.kafka.state == "Stable"
                and len(sample.members) == count
                and all(one.owned for one in sample.members)
                and set(sample.owners) == ALL
            ),
        )


def _knows_topics(sample: GroupSample) -> bool:
    """False while the broker that was asked has not heard of a new topic: each learns of it at its own time."""
    return bool(sample.offsets)


@pytest.fixture(scope="module")
def world(kafka_cluster: KafkaCluster) -> Iterator[World]:
    kafka_cluster.create_topic("live-orders", replicas=[[1, 2]] * 6)
    kafka_cluster.create_topic("live-payments", replicas=[[1, 2]] * 3)
    kafka_cluster.produce("live-orders", {0: 30, 1: 20})
    processes = {version: kafka_cluster.load(version).start() for version in (CLIENT, OLD_CLIENT, LIBRDKAFKA)}
    with KafkaAdmin(kafka_cluster.bootstrap.split(",")) as admin:
        yield World(kafka_cluster, admin, processes)
    for process in processes.values():
        process.stop()


@dataclass(frozen=True)
class Kind:
    """A kind of group: which client, which protocol and assignor."""

    client: str
    strategy: str
    protocol: str = "classic"

    @property
    def group(self) -> str:
        return f"{self.strategy}-{self.protocol}-{self.client}"

    @property
    def config(self) -> dict[str, str]:
        if self.protocol == "consumer":
            return {"group.protocol": "consumer", "group.remote.assignor": self.strategy}
        name = self.strategy if self.client == LIBRDKAFKA else JAVA_NAMES[self.strategy]
        return {"partition.assignment.strategy": name, "heartbeat.interval.ms": "500"}

    def __str__(self) -> str:
        return self.group


KINDS = [
    *(Kind(CLIENT, strategy) for strategy in JAVA_NAMES),
    *(Kind(OLD_CLIENT, strategy) for strategy in ("range", "cooperative-sticky")),
    *(Kind(LIBRDKAFKA, strategy) for strategy in ("range", "roundrobin", "cooperative-sticky")),
    *(Kind(CLIENT, strategy, "consumer") for strategy in ("uniform", "range")),
    Kind(LIBRDKAFKA, "uniform", "consumer"),
]


@contextmanager
def members(world: World, kind: Kind, *names: str, **config: str) -> Iterator[None]:
    """Run consumers of one kind while in context."""
    process = world.processes[kind.client]
    for name in names:
        process.start_consumer(name, group=kind.group, topics=list(SIZES), config={**kind.config, **config})
    try:
        yield
    finally:
        for name in names:
            process.stop_consumer(name)


def answer(strategy: str, found: tuple[KafkaMember, ...], *newcomers: str) -> dict[str, set[TopicPartition]]:
    """Return what our own assignor says that these members own, by client id."""
    request = {
        "strategy": strategy,
        "partitions": SIZES,
        "members": [
            *(
                {
                    "id": one.member_id,
                    "instance_id": one.instance_id,
                    "topics": list(SIZES),
                    "owned": [[part.topic, part.partition] for part in one.owned],
                    "generation": 1,
                }
                for one in found
            ),
            *({"id": f"{name}-new", "topics": list(SIZES)} for name in newcomers),
        ],
    }
    clients = {one.member_id: one.client_id for one in found} | {f"{name}-new": name for name in newcomers}
    said = assign(request)["assignments"]
    return {clients[name]: {TopicPartition(*part) for part in parts} for name, parts in said.items()}


def owned(sample: GroupSample) -> dict[str, set[TopicPartition]]:
    return {one.client_id: set(one.owned) for one in sample.members}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_group_is_seen_as_it_is_and_owns_what_our_assignor_says(world: World, kind: Kind) -> None:
    prefix = f"{KINDS.index(kind)}-"
    names = [f"{prefix}{name}" for name in ("c0", "c1", "c2")]
    with members(world, kind, *names[:2]):
        before = world.await_members(kind.group, 2)
        assert [one.client_id for one in sorted(before.members, key=lambda one: one.client_id)] == names[:2]
        assert (before.system, before.kafka.protocol) == ("kafka", kind.protocol)
        assert before.kafka.assignor == kind.strategy
        assert before.kafka.coordinator in (1, 2)
        assert before.problems == ()
        assert {one.topics for one in before.members} == {("live-orders", "live-payments")}
        assert {one.host for one in before.members} == {"127.0.0.1"}
        assert {(one.instance_id, one.rack, one.protocol) for one in before.members} == {(None, None, kind.protocol)}
        assert all(len(owners) == 1 for owners in before.owners.values())
        server_names = {"range": "range-server", "uniform": "uniform"}
        strategy = server_names[kind.strategy] if kind.protocol == "consumer" else kind.strategy
        assert owned(before) == answer(strategy, before.members), "allocated again, nothing may move"
        with members(world, kind, names[2]):
            after = world.await_members(kind.group, 3)
            if kind.protocol == "consumer":
                assert after.kafka.epoch > before.kafka.epoch
                assert {one.epoch for one in after.members} == {after.kafka.epoch}
                assert {len(parts) for parts in owned(after).values()} == {3}
            elif (kind.client, kind.strategy) != (LIBRDKAFKA, "cooperative-sticky"):
                # 9 partitions among 3 members: no member may keep one more, so hash order decides nothing.
                assert owned(after) == answer(kind.strategy, before.members, names[2])
            else:  # an algorithm of its own: only loads are known
                assert {len(parts) for parts in owned(after).values()} == {3}


def test_static_members_and_racks_are_told(world: World) -> None:
    kind = Kind(CLIENT, "range")
    process = world.processes[CLIENT]
    for name, rack in (("s0", "r1"), ("s1", "r2")):
        config = {**kind.config, "group.instance.id": f"seat-{name}", "client.rack": rack}
        process.start_consumer(name, group="static", topics=list(SIZES), config=config)
    sample = world.await_members("static", 2)
    assert [(one.client_id, one.instance_id, one.rack) for one in sample.members] == [
        ("s0", "seat-s0", "r1"),
        ("s1", "seat-s1", "r2"),
    ]
    assert all(one.member_id.startswith(f"{one.instance_id}-") for one in sample.members)
    assert owned(sample) == answer("range", sample.members)
    for name in ("s0", "s1"):
        process.stop_consumer(name)
    left = world.look("static")
    assert len(left.members) == 2, "static members do not leave when they stop"


def test_static_members_and_racks_of_a_new_group_are_told(world: World) -> None:
    kind = Kind(CLIENT, "uniform", "consumer")
    process = world.processes[CLIENT]
    config = {**kind.config, "group.instance.id": "seat-n0", "client.rack": "r2"}
    process.start_consumer("n0", group="static-new", topics=list(SIZES), config=config)
    sample = world.await_members("static-new", 1)
    assert [(one.client_id, one.instance_id, one.rack) for one in sample.members] == [("n0", "seat-n0", "r2")]
    process.stop_consumer("n0")


def test_routes_name_leaders_replicas_and_racks(world: World) -> None:
    world.cluster.produce("live-orders", {0: 1})
    world.cluster.commit("routes", {("live-orders", 0): 1})
    routes = world.look("routes", topics=["live-orders"]).routes
    assert routes.read_queues == tuple(TopicPartition("live-orders", number) for number in range(6))
    assert {(one.leader, one.replicas, one.racks) for one in routes.partitions} == {(1, (1, 2), ("r1", "r2"))}
    assert [(one.broker, one.address) for one in routes.brokers] == [
        (str(broker.number), broker.address) for broker in world.cluster.brokers
    ]


def test_offsets_are_what_was_sent_and_committed_and_no_commit_is_unknown(world: World) -> None:
    world.cluster.create_topic("offsets", 3)
    world.cluster.produce("offsets", {0: 12, 1: 5})
    world.cluster.commit("offsets", {("offsets", 0): 7})
    sample = world.look("offsets")
    assert [
        (one.queue.partition, one.first_offset, one.consumer_offset, one.broker_offset, one.lag)
        for one in sample.offsets
    ] == [
        (0, 0, 7, 12, 5),
        (1, 0, None, 5, None),
        (2, 0, None, 0, 0),
    ]
    assert (sample.kafka.state, sample.members, sample.problems) == ("Empty", (), ())


def test_commits_are_read_as_the_library_reads_them(world: World) -> None:
    world.cluster.create_topic("read-by-both", 3)
    world.cluster.create_topic("read-by-both-too", 1)
    world.cluster.commit("both", {("read-by-both", 0): 7, ("read-by-both", 2): 2**40, ("read-by-both-too", 0): 0})
    told = []
    for own_connections in (True, False):
        with KafkaAdmin(world.cluster.bootstrap.split(","), own_connections=own_connections) as admin:
            told.append(admin.committed(["both", "nobody"]))
    assert told[0] == told[1]
    assert isinstance(told[0]["both"], Commits)
    assert told[0]["both"].offsets == {
        TopicPartition("read-by-both", 0): 7,
        TopicPartition("read-by-both", 2): 2**40,
        TopicPartition("read-by-both-too", 0): 0,
    }


def test_deleted_records_move_the_first_offset(world: World) -> None:
    world.cluster.create_topic("cut", 1)
    world.cluster.produce("cut", {0: 10})
    world.cluster.commit("cut", {("cut", 0): 2})
    for future in world.cluster.admin.delete_records([TheirPartition("cut", 0, 6)]).values():
        future.result(SETTLED_S)
    (told,) = world.await_sample("cut", _knows_topics).offsets
    assert (told.first_offset, told.consumer_offset, told.broker_offset) == (6, 2, 10)


def test_a_topic_made_anew_is_named(world: World) -> None:
    world.cluster.create_topic("anew", 1)
    world.cluster.produce("anew", {0: 3})
    world.cluster.commit("anew", {("anew", 0): 3})
    world.cluster.delete_topic("anew")
    world.cluster.create_topic("anew", 1)
    world.cluster.commit("anew", {("anew", 0): 3})
    sample = world.await_sample("anew", _knows_topics)
    assert [(one.consumer_offset, one.broker_offset) for one in sample.offsets] == [(3, 0)]
    assert sample.problems == ("committed is more than there is, as after a topic was made anew: anew/0 (3 of 0)",)


def test_a_transaction_leaves_marks_and_an_open_one_holds_back_the_committed_end(world: World) -> None:
    world.cluster.create_topic("transactions", 1)
    part = TopicPartition("transactions", 0)
    producer = Producer({"bootstrap.servers": world.cluster.bootstrap, "transactional.id": "marks"})
    producer.init_transactions(SETTLED_S)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("transactions", b"x", partition=0)
    producer.commit_transaction(SETTLED_S)
    with KafkaAdmin(world.cluster.bootstrap.split(","), read_committed=True) as committed_only:
        deadline = time.monotonic() + SETTLED_S
        # Three records and the mark of the transaction's end, which no consumer ever sees.
        while (end := committed_only.end_offsets([part])[part]) != 4:
            assert time.monotonic() < deadline, f"the end is {end}"
            time.sleep(0.1)
        producer.begin_transaction()
        producer.produce("transactions", b"y", partition=0)
        producer.flush(SETTLED_S)
        assert world.admin.end_offsets([part]) == {part: 5}
        assert committed_only.end_offsets([part]) == {part: 4}
    producer.abort_transaction(SETTLED_S)


def test_compaction_takes_records_and_leaves_the_offsets(world: World) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    world.cluster.create_topic("compacting", 1, config=config)
    part = TopicPartition("compacting", 0)
    deadline, sent = time.monotonic() + SETTLED_S, 0
    while not 0 < (left := len(_records(world, part))) < sent:
        assert time.monotonic() < deadline, f"{left} of {sent} records are left"
        world.cluster.produce("compacting", {0: 5})  # the same five keys, each time in a new segment
        sent += 5
        time.sleep(0.3)
    assert world.admin.end_offsets([part]) == {part: sent}
    assert world.admin.first_offsets([part]) == {part: 0}


def test_a_broker_of_kafka_3_is_read() -> None:
    with KafkaCluster.start(OLD_CLIENT) as cluster:
        cluster.create_topic("old", 3)
        cluster.produce("old", {0: 5})
        process = cluster.load().start()
        process.start_consumer("c", group="old", topics=["old"])
        with KafkaAdmin([cluster.bootstrap]) as admin:
            old = World(cluster, admin, {})
            sample = old.await_sample("old", lambda sample: len(sample.owners) == 3)
            assert (sample.kafka.protocol, sample.kafka.assignor, sample.problems) == ("classic", "range", ())
            assert [(one.client_id, one.topics) for one in sample.members] == [("c", ("old",))]
            assert [(one.kind, one.state) for one in admin.list_groups().groups] == [("classic", "Stable")]
            with pytest.raises(UnknownNameError):
                old.look("nobody")


def test_topic_and_broker_settings_are_told(world: World) -> None:
    world.cluster.create_topic("compacted", 1, config={"cleanup.policy": "compact"})
    assert world.admin.topic_config("compacted")["cleanup.policy"] == "compact"
    broker = world.admin.broker_config(1)
    wanted = ("group.initial.rebalance.delay.ms", "group.min.session.timeout.ms", "group.max.session.timeout.ms")
    assert [broker[name] for name in wanted] == ["0", "6000", "1800000"]
    assert broker["group.consumer.session.timeout.ms"] == "45000"
    assert world.admin.group_config("any")["consumer.session.timeout.ms"] == "45000"


def test_a_group_in_the_middle_of_a_rebalance_says_so(world: World) -> None:
    process = world.processes[CLIENT]
    kind = Kind(CLIENT, "range")
    config = {**kind.config, "max.poll.interval.ms": "60000"}
    process.start_consumer("slow", group="middle", topics=["live-orders"], config=config)
    world.await_sample("middle", lambda sample: sample.kafka.state == "Stable" and bool(sample.members))
    process.hang("slow")  # its heartbeats go on, but it does not rejoin: the barrier stays closed
    process.start_consumer("late", group="middle", topics=["live-orders"], config=config)
    sample = world.await_sample("middle", lambda sample: sample.kafka.state == "PreparingRebalance")
    assert sample.problems[0].startswith("group middle is PreparingRebalance: until it is Stable it shows no")
    assert {(one.owned, one.topics) for one in sample.members} == {(None, None)}
    assert sample.offsets == (), "nothing names its topics now"
    process.stop_consumer("slow")
    world.await_sample("middle", lambda sample: sample.kafka.state == "Stable")
    process.stop_consumer("late")


def test_a_pattern_is_named(world: World) -> None:
    process = world.processes[LIBRDKAFKA]
    config = {"group.protocol": "consumer"}
    process.start_consumer("pattern", group="pattern", topics=["^live-o.*"], config=config)
    sample = world.await_sample("pattern", lambda sample: len(sample.owners) == 6)
    (member,) = sample.members
    assert member.topics is None
    assert sample.problems == (
        f"member {member.member_id} subscribes to the pattern (^live-o.*): which topics match is not reported",
    )
    process.stop_consumer("pattern")


def test_a_group_on_its_way_to_the_new_protocol_names_each_members_own(world: World) -> None:
    process = world.processes[CLIENT]
    old, new = Kind(CLIENT, "range"), Kind(CLIENT, "uniform", "consumer")
    process.start_consumer("m-old", group="migrating", topics=list(SIZES), config=old.config)
    world.await_members("migrating", 1)
    process.start_consumer("m-new", group="migrating", topics=list(SIZES), config=new.config)
    sample = world.await_members("migrating", 2)
    assert sample.kafka.protocol == "consumer"
    assert {one.client_id: one.protocol for one in sample.members} == {"m-old": "classic", "m-new": "consumer"}
    process.stop_consumer("m-old")
    process.stop_consumer("m-new")


def test_many_groups_are_seen_at_once_and_a_bad_one_spoils_no_other(world: World) -> None:
    for number in range(5):
        world.cluster.commit(f"many-{number}", {("live-orders", number): number})
    wanted = {f"many-{number}": None for number in range(5)} | {"nobody": None, "many-0": ["nowhere"]}
    told = observe_groups(world.admin, cluster="prod", groups=wanted, at=datetime.now(UTC))
    for number in range(1, 5):
        sample = told[f"many-{number}"]
        assert sample.cluster == "prod"
        commits = {one.queue.partition: one.consumer_offset for one in sample.offsets}
        assert commits == {part: number if part == number else None for part in range(6)}
    assert isinstance(told["nobody"], UnknownNameError)
    assert "no consumer group nobody" in str(told["nobody"])
    assert isinstance(told["many-0"], UnknownNameError)
    assert "nowhere" in str(told["many-0"])


def test_groups_of_other_kinds_are_named(world: World) -> None:
    world.cluster.commit("simple", {("live-orders", 0): 1})
    listed = {one.group: one for one in world.admin.list_groups().groups}
    assert (listed["simple"].kind, listed["simple"].is_simple, listed["simple"].state) == ("classic", True, "Empty")


def test_a_group_that_is_deleted_while_we_look_is_gone_and_not_without_commits(world: World) -> None:
    world.cluster.commit("short", {("live-orders", 0): 1})

    class Deleting(KafkaAdmin):
        """Deletes the group after it has been described."""

        def committed(self, groups: Iterable[str]) -> dict[str, Commits | PlannerError]:
            for future in world.cluster.admin.delete_consumer_groups(["short"]).values():
                future.result(SETTLED_S)
            return super().committed(groups)

    with (
        Deleting(world.cluster.bootstrap.split(",")) as admin,
        pytest.raises(UnknownNameError, match="there is no consumer group short"),
    ):
        observe_group(admin, cluster=None, group="short", topics=["live-orders"], at=datetime.now(UTC))


def test_without_connections_of_our_own_owners_are_told_and_the_rest_is_named_unknown(world: World) -> None:
    kind = Kind(CLIENT, "range")
    process = world.processes[CLIENT]
    process.start_consumer("plain", group="library", topics=list(SIZES), config=kind.config)
    own = world.await_members("library", 1)
    with KafkaAdmin(world.cluster.bootstrap.split(","), own_connections=False) as admin:
        sample = observe_group(admin, cluster=None, group="library", topics=None, at=datetime.now(UTC))
        assert (sample.owners, sample.kafka) == (own.owners, own.kafka)
        assert sample.members[0].topics is None
        assert "subscriptions, racks and epochs of its members are not known" in sample.problems[0]
        assert "library" in {one.group for one in admin.list_groups().groups}
        with pytest.raises(UnknownNameError):
            observe_group(admin, cluster=None, group="nobody", topics=None, at=datetime.now(UTC))
    process.stop_consumer("plain")


def test_a_snapshot_is_taken_from_the_command_line(world: World, tmp_path: Path) -> None:
    process = world.processes[CLIENT]
    process.start_consumer("cli", group="cli", topics=list(SIZES), config=Kind(CLIENT, "range").config)
    world.await_members("cli", 1)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: consumerplanner.dev/v1alpha1\nkind: ConsumerScalingPolicy\nmetadata: {name: cli}\n"
        "spec:\n  source: {system: kafka, cluster: here, group: cli, bootstrapServers: "
        f"[{', '.join(repr(one) for one in world.cluster.bootstrap.split(','))}]}}\n"
        "  scaleTargetRef: {name: cli}\n  maxReplicas: 12\n"
    )
    found = planner("snapshot", "-p", policy, "-o", tmp_path / "snap.json", "--observe-seconds", 0)
    assert (found.returncode, found.stderr) == (0, "")
    taken = SNAPSHOT.read(tmp_path / "snap.json")
    assert (taken.strategy, [one.client_id for one in taken.members]) == ("range", ["cli"])
    assert {state.queue: state.owner for state in taken.queues} == dict.fromkeys(ALL, taken.clients[0])
    process.stop_consumer("cli")


def _records(world: World, part: TopicPartition) -> list[int]:
    """Return the offsets of the records that a consumer can still read."""
    config = {"bootstrap.servers": world.cluster.bootstrap, "group.id": "reader", "enable.partition.eof": "true"}
    consumer = Consumer({**config, "enable.auto.commit": "false"})
    consumer.assign([TheirPartition(part.topic, part.partition, 0)])
    offsets: list[int] = []
    while (record := consumer.poll(SETTLED_S)) is not None and record.error() is None:
        offsets.append(record.offset())
    consumer.close()
    return offsets
