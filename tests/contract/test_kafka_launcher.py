"""The Kafka launcher itself: what its clients log is what happened, and nothing of it outlives it."""

import time
from collections.abc import Callable

import psutil
import pytest

from tests.clusters.errors import StartFailedError
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import LIBRDKAFKA, ClientProcess, PartitionCurve

pytestmark = pytest.mark.cluster

PATIENCE_S = 600.0


def await_true(what: str, is_met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_met():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def seen(process: ClientProcess, topic: str) -> set[tuple[int, int]]:
    return {(one.partition, one.offset) for one in process.deliveries() if one.topic == topic}


@pytest.mark.parametrize("version", [CLIENT, LIBRDKAFKA])
def test_each_record_of_a_curve_is_delivered_and_logged(kafka_cluster: KafkaCluster, version: str) -> None:
    topic = f"launcher-{version}"
    kafka_cluster.create_topic(topic, 2)
    consumers, producers = kafka_cluster.load(version).start(), kafka_cluster.load().start()
    for name in ("a", "b"):
        consumers.start_consumer(name, group=topic, topics=[topic], service_ms=1, commit="sync")
    producers.produce("p", [PartitionCurve(topic, number, ((0, 20), (2, 20))) for number in range(2)])
    sent = producers.sent("p", PATIENCE_S)
    assert sent == {(topic, number): (40, 0) for number in range(2)}
    everything = {(number, offset) for number in range(2) for offset in range(40)}
    await_true("all records", lambda: seen(consumers, topic) == everything)
    consumers.stop()
    assert {one.client for one in consumers.events() if one.kind == "stopped"} == {"a", "b"}
    producers.stop()


def test_a_crashed_process_takes_its_consumers_along_and_a_frozen_one_delivers_nothing(
    kafka_cluster: KafkaCluster,
) -> None:
    kafka_cluster.create_topic("launcher-crash", 1)
    process = kafka_cluster.load().start()
    process.start_consumer("c", group="launcher-crash", topics=["launcher-crash"])
    process.await_event("c", "assigned")
    process.freeze()
    kafka_cluster.produce("launcher-crash", {0: 3})
    assert seen(process, "launcher-crash") == set()
    process.resume()
    await_true("what was sent meanwhile", lambda: len(seen(process, "launcher-crash")) == 3)
    process.kill()
    with pytest.raises(StartFailedError, match="takes no orders any more"):
        process.hang("c")
    assert "stopped" not in {one.kind for one in process.events()}


def test_an_impossible_setting_fails_with_the_clients_own_words(kafka_cluster: KafkaCluster) -> None:
    process = kafka_cluster.load().start()
    process.start_consumer("bad", group="launcher-bad", topics=["t"], config={"session.timeout.ms": "soon"})
    assert "session.timeout.ms" in process.await_event("bad", "failed").detail
    process.stop()


def test_nothing_outlives_a_cluster() -> None:
    with KafkaCluster.start() as cluster:
        cluster.load().start()
        pids = [process.pid for process in cluster.processes]
        assert all(psutil.pid_exists(pid) for pid in pids)
        directory = cluster.directory
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    assert not directory.exists()


def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(StartFailedError, match=r"(?i)message\.max\.bytes"):
        KafkaCluster.start(settings={"message.max.bytes": "many"})
