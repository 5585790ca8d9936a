"""The RocketMQ launcher and its load program against real brokers, old and new."""

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.errors import StartFailedError
from tests.clusters.ports import is_free
from tests.clusters.rocketmq import NEW, OLD, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve, RocketMQLoad, read_deliveries
from tests.clusters.workspace import shelf_of_clusters

pytestmark = pytest.mark.cluster

REPOSITORY = Path(__file__).parents[2]
DEADLINE_S = 300.0
ROUND_S = 15.0
# Quick to notice; so slow to commit by itself that only an orderly stop does.
OPTIONS = {"poll-ms": 1000, "heartbeat-ms": 2000, "persist-ms": 600_000}

# Starts one broker and two clients, tells which processes and ports that took, and waits for its end.
OWNER = """
import time
from tests.clusters.rocketmq import RocketMQCluster
with RocketMQCluster.start({version!r}, brokers=1) as cluster:
    cluster.create_topic("orders", 1)
    cluster.load().start_consumer(group="g", topics=["orders"], instance="c1").freeze()
    print(*(process.pid for process in cluster.processes))
    print(cluster.name_server, *(broker.address for broker in cluster.brokers))
    print(cluster.directory, flush=True)
    time.sleep(600)
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextlib.contextmanager
def owner_of_a_cluster(version: str) -> Iterator[tuple[subprocess.Popen[str], list[int], list[int], Path]]:
    """Another Python that has started a cluster: itself, its java processes, their ports, their directory."""
    command = [sys.executable, "-c", OWNER.format(version=version)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout
            pids = [int(word) for word in owner.stdout.readline().split()]
            ports = [int(word.rpartition(":")[2]) for word in owner.stdout.readline().split()]
            yield owner, pids, ports, Path(owner.stdout.readline().strip())
        finally:
            owner.kill()


def is_java(pid: int) -> bool:
    """False once the process is gone, or all that is left of it is its exit code."""
    with contextlib.suppress(FileNotFoundError):
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.parametrize(("version", "client_version"), [(OLD, "4.9.8"), (NEW, NEW)])
def test_two_consumers_get_exactly_what_was_produced(
    rocketmq_cluster: Callable[[str], RocketMQCluster], version: str, client_version: str
) -> None:
    cluster = rocketmq_cluster(version)
    cluster.create_topic("counted", 4)
    load = cluster.load(client_version)
    consumers = [
        load.start_consumer(
            group="counting",
            topics=["counted"],
            instance=name,
            service_ms=1.5,
            await_termination_ms=3000,
            options=OPTIONS,
            wait_ready=False,
        )
        for name in ("c1", "c2")
    ]
    for consumer in consumers:
        consumer.await_ready()
    c1, c2 = (consumer.client_id for consumer in consumers)
    assert (c1, c2) == ("127.0.0.1@c1", "127.0.0.1@c2")
    # Until the first has made room for the second, a message may come twice, and rightly so.
    split = {c: {(broker, queue) for queue in range(4)} for c, broker in ((c1, "broker-a"), (c2, "broker-b"))}
    wait_until(lambda: owners_of_one_more_round(cluster, load, "counted", consumers, due=8) == split)
    wait_until(lambda: cluster.members("counting") == {"broker-a": (c1, c2), "broker-b": (c1, c2)})
    before = cluster.produced("counted")

    # A ramp, a jump, a flat part and a pause: 30 + 40 + 0 messages for one half, 20 for the other.
    ramp = ((0.0, 20.0), (1.0, 40.0), (1.0, 80.0), (1.5, 80.0), (1.5, 0.0), (2.0, 0.0))
    curves = [QueueCurve("counted", "broker-a", queue, ramp) for queue in range(4)]
    curves += [QueueCurve("counted", "broker-b", queue, ((0.5, 20.0), (1.5, 20.0))) for queue in range(4)]
    sent = load.start_producer(curves).wait(DEADLINE_S)

    assert sum(sent.failed.values()) == 0
    for curve in curves:
        assert abs(sent.acknowledged[curve.topic, curve.broker, curve.queue] - curve.messages) < 1
    produced = [
        (*queue, offset) for queue, end in cluster.produced("counted").items() for offset in range(before[queue], end)
    ]
    assert len(produced) == sent.total
    wait_until(lambda: len(delivered(consumers, before)) >= len(produced))
    for consumer in consumers:
        consumer.stop()
        assert {one.client_id for one in consumer.deliveries()} == {consumer.client_id}
    assert delivered(consumers, before) == sorted(produced)
    assert cluster.committed("counting", "counted") == cluster.produced("counted")
    wait_until(lambda: cluster.members("counting") == {"broker-a": (), "broker-b": ()})


def delivered(consumers: list[ConsumerProcess], since: Mapping[tuple[str, int], int]) -> list[tuple[str, int, int]]:
    """(broker, queue, offset) of every delivery from the offsets ``since`` on, sorted, duplicates included."""
    deliveries = (one for consumer in consumers for one in consumer.deliveries())
    return sorted(
        (one.broker, one.queue, one.offset) for one in deliveries if one.offset >= since[one.broker, one.queue]
    )


def owners_of_one_more_round(
    cluster: RocketMQCluster, load: RocketMQLoad, topic: str, consumers: list[ConsumerProcess], due: int
) -> dict[str, set[tuple[str, int]]]:
    """Send a message to each queue; return client id -> queues it got one from, ``due`` of them if in time."""
    before = cluster.produced(topic)
    load.start_producer([QueueCurve(topic, *queue, ((0, 10), (0.1, 10))) for queue in before]).wait(DEADLINE_S)
    deadline = time.monotonic() + ROUND_S
    while True:
        got: dict[str, set[tuple[str, int]]] = {one: set() for consumer in consumers for one in consumer.client_ids}
        for delivery in (delivery for consumer in consumers for delivery in consumer.deliveries()):
            queue = (delivery.broker, delivery.queue)
            if delivery.topic == topic and delivery.offset >= before[queue]:
                got[delivery.client_id].add(queue)
        if sum(map(len, got.values())) >= due or time.monotonic() > deadline:
            return got
        time.sleep(0.1)


A0, A1, B0, B1 = ("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1)


@dataclass(frozen=True)
class Choice:
    """A strategy, and the queues that each consumer of a group then owns (of two brokers with A0 to B1)."""

    strategy: str
    options: Mapping[str, str | int]
    shares: Mapping[str, set[tuple[str, int]]]


CHOICES = [
    Choice("AVG_BY_CIRCLE", {}, {"circle-1": {A0, B0}, "circle-2": {A1, B1}}),
    Choice("CONFIG", {"queues": "chosen/broker-a/1,chosen/broker-b/0"}, {"config-1": {A1, B0}}),
    Choice("CONSISTENT_HASH", {"virtual-nodes": 3}, {"hash-1": {A0, A1, B0, B1}}),
    Choice("MACHINE_ROOM", {"rooms": "r1"}, {"room-1": set()}),  # no broker here is called room@name
    Choice(
        "MACHINE_ROOM_NEARBY-AVG",
        {
            "broker-rooms": "broker-a=r1,broker-b=r2",
            "client-rooms": "127.0.0.1@near-1=r1,127.0.0.1@near-2=r2",
        },
        {"near-1": {A0, A1}, "near-2": {B0, B1}},
    ),
]


def test_every_strategy_of_the_client_can_be_chosen(rocketmq_cluster: Callable[[str], RocketMQCluster]) -> None:
    cluster = rocketmq_cluster(NEW)
    cluster.create_topic("chosen", 2)
    load = cluster.load()
    started = [
        load.start_consumer(
            group=choice.strategy,
            topics=["chosen"],
            instance=list(choice.shares),
            strategy=choice.strategy,
            strategy_options=choice.options,
            wait_ready=False,
        )
        for choice in CHOICES
    ]
    for consumer in started:
        consumer.await_ready()
    wanted = {f"127.0.0.1@{name}": share for choice in CHOICES for name, share in choice.shares.items()}
    due = sum(map(len, wanted.values()))
    # Members of a group that has just started may still share by what they saw before.
    wait_until(lambda: owners_of_one_more_round(cluster, load, "chosen", started, due) == wanted)


def test_topics_and_groups_are_as_asked_for(rocketmq_cluster: Callable[[str], RocketMQCluster]) -> None:
    cluster = rocketmq_cluster(OLD)
    uneven = {"broker-a": QueueCounts(read=3, write=2)}
    cluster.create_topic("uneven", per_broker=uneven)
    assert remoting.topic_route(cluster.name_server, "uneven") == uneven
    cluster.create_topic("uneven", 5)
    five = QueueCounts(read=5, write=5)
    assert remoting.topic_route(cluster.name_server, "uneven") == {"broker-a": five, "broker-b": five}
    cluster.create_group("patient", retryMaxTimes=3)
    for broker in cluster.brokers:
        groups = remoting.ask_or_raise(broker.address, remoting.ALL_GROUPS).body["subscriptionGroupTable"]
        assert groups["patient"]["retryMaxTimes"] == 3


def test_a_crashed_and_a_restarted_broker_come_back_with_their_messages() -> None:
    with RocketMQCluster.start(OLD, brokers=1) as cluster:
        cluster.create_topic("kept", 1)
        broker = cluster.broker("broker-a")
        sent = cluster.load().start_producer([QueueCurve("kept", "broker-a", 0, ((0, 50), (0.4, 50)))])
        assert sent.wait(DEADLINE_S).total == 20
        broker.kill()
        wait_until(lambda: remoting.broker_addresses(cluster.name_server) == {})
        broker.start()
        assert cluster.produced("kept") == {("broker-a", 0): 20}
        broker.restart()
        assert cluster.produced("kept") == {("broker-a", 0): 20}
        broker.kill()  # saves the ten seconds of one more orderly stop


def test_a_broker_that_does_not_come_up_shows_its_log_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # apart from clusters of other test runs
    message = r"(?s)broker-a ended with .* before .*last \d+ lines of broker-a.*Slave's brokerId must be > 0"
    with (
        pytest.raises(StartFailedError, match=message),
        RocketMQCluster.start(OLD, brokers=1, settings={"brokerRole": "SLAVE"}),
    ):
        pass
    assert list(shelf_of_clusters().iterdir()) == []


def test_kill_9_of_the_owner_leaves_no_process_and_no_port() -> None:
    with owner_of_a_cluster(OLD) as (owner, pids, ports, directory):
        assert len(pids) == 3
        assert all(is_java(pid) for pid in pids)
        assert not any(is_free(port) for port in ports)
        owner.kill()
        owner.wait()
        wait_until(lambda: not any(is_java(pid) for pid in pids) and all(is_free(port) for port in ports))
    with RocketMQCluster(OLD, brokers=1):  # even one that is never started tidies up
        wait_until(lambda: not directory.exists())  # another test run may be about to


def test_ctrl_c_leaves_nothing() -> None:
    with owner_of_a_cluster(OLD) as (owner, pids, ports, directory):
        owner.send_signal(signal.SIGINT)
        owner.wait(DEADLINE_S)
        assert not any(is_java(pid) for pid in pids)
        assert all(is_free(port) for port in ports)
        assert not directory.exists()


def test_half_a_line_of_a_crashed_consumer_is_no_delivery(tmp_path: Path) -> None:
    log = tmp_path / "deliveries.tsv"
    log.write_text(
        "1795257678033\t127.0.0.1@c1\torders\tbroker-a\t1\t7\t1795257678031\n1795257678034\t127.0.0.1@c1\tord"
    )
    assert read_deliveries(log) == [Delivery(1795257678033, "127.0.0.1@c1", "orders", "broker-a", 1, 7, 1795257678031)]
