"""The story of the recorded Kafka group: a quiet start, a rolling restart under load, and an overload that stays."""

import functools
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from planner.model.samples import GroupSample
from planner.sources.capture import Capture, write_capture
from planner.sources.kafka import KafkaAdmin, observe_group
from tests.clusters.errors import StartFailedError
from tests.clusters.kafka import CLIENT, NEWEST, READY_S, KafkaCluster
from tests.clusters.kafka_load import ClientProcess, PartitionCurve
from tests.load.sampling import SAMPLE_EVERY_S, Event, sample_group

GROUP, CLUSTER = "shop-payments", "shop"
PARTITIONS = {"payments": 12, "refunds": 4}
FULL_S = 1020.0
SERVICE_MS = 10.0
PODS = ("4kqzt", "9wmxr", "c7h2d", "tn5vb")
OLD_REVISION, NEW_REVISION = "6f7d9c5b8", "7b9c4f6dd"

LOAD = ((0, 160), (60, 160), (240, 240), (540, 240), (600, 480), (1020, 480))
"""Records per second over both topics, at these seconds of the full length."""

PAYMENTS_SHARE = 0.8
ROLL_S, ROLL_EVERY_S, SURGE_S = 300.0, 45.0, 20.0

DEFAULTS = {
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "auto.commit.interval.ms": "5000",  # the client's own default, which the load program shortens
}

STORY = (
    "Two brokers; topic payments has 12 partitions, topic refunds 4.",
    "Four Java consumers, cooperative-sticky, all else default: 500 records a poll, commits every 5 s at a poll.",
    "10 ms a record on one thread: each consumer does somewhat less than 100 records/s.",
    "A rolling restart from second 300 to 460 under 240 records/s: a new consumer joins, 20 s later an old one leaves.",
    "From second 600 on 480 records/s arrive, more than four consumers can do, and the backlog grows until the end.",
)


def record(folder: Path, seconds: float = FULL_S) -> Capture:
    """Run the whole story on a cluster of its own and return the capture written to ``folder``."""
    scale = seconds / FULL_S
    with KafkaCluster.start(NEWEST, brokers=2) as cluster:
        for topic, partitions in PARTITIONS.items():
            cluster.create_topic(topic, partitions)
        load = cluster.load(CLIENT)
        consumers, producer = load.start(), load.start()
        for pod in PODS:
            _start_consumer(consumers, _pod(OLD_REVISION, pod))
        for pod in PODS:
            consumers.await_event(_pod(OLD_REVISION, pod), "assigned")
        producer.produce("load", _curves(scale))
        with KafkaAdmin(cluster.bootstrap.split(",")) as admin:
            observe = functools.partial(_observe, admin)
            _await_commits(observe)
            samples = sample_group(observe, seconds, list(_rolling_restart(consumers, scale)))
        failed = [event for event in consumers.events() if event.kind == "failed"]
        assert not failed, f"a consumer failed during the recording: {failed[0]}"
    versions = (("kafka", NEWEST), ("kafka-client", CLIENT))
    return write_capture(folder, samples, SAMPLE_EVERY_S, STORY, versions)


def _observe(admin: KafkaAdmin, at: datetime) -> GroupSample:
    return observe_group(admin, cluster=CLUSTER, group=GROUP, topics=None, at=at)


def _await_commits(observe: "functools.partial[GroupSample]") -> None:
    """Return once the group has committed on every partition, so that no lag is unknown when the recording starts."""
    deadline = time.monotonic() + READY_S
    while True:
        sample = observe(datetime.now(UTC))
        committed = sum(offsets.consumer_offset is not None for offsets in sample.offsets)
        if committed == sum(PARTITIONS.values()) and len(sample.members) == len(PODS):
            return
        if time.monotonic() > deadline:
            raise StartFailedError(f"{len(sample.members)} members and commits on {committed} partitions only")
        time.sleep(1.0)


def _rolling_restart(consumers: ClientProcess, scale: float) -> Iterator[Event]:
    """Yield the starts and stops of a Deployment's rolling update: for each pod the new one, then the old one."""
    for number, pod in enumerate(PODS):
        start_s = ROLL_S + number * ROLL_EVERY_S
        yield start_s * scale, functools.partial(_start_consumer, consumers, _pod(NEW_REVISION, pod))
        yield (start_s + SURGE_S) * scale, functools.partial(consumers.ask_to_stop, _pod(OLD_REVISION, pod))


def _start_consumer(consumers: ClientProcess, pod: str) -> None:
    consumers.start_consumer(pod, group=GROUP, topics=list(PARTITIONS), config=DEFAULTS, service_ms=SERVICE_MS)


def _pod(revision: str, suffix: str) -> str:
    """Return a pod's name as its Deployment makes it; each revision has its own pods."""
    return f"{GROUP}-consumer-{revision}-{suffix if revision == OLD_REVISION else suffix[::-1]}"


def _curves(scale: float) -> Iterator[PartitionCurve]:
    """Yield the rate curve of every partition, even within its topic."""
    tail_s = 120.0  # the load starts before the first sample, and the last one has to be an ordinary one
    for topic, partitions in PARTITIONS.items():
        share = (PAYMENTS_SHARE if topic == "payments" else 1 - PAYMENTS_SHARE) / partitions
        points = [(second * scale, rate * share) for second, rate in LOAD]
        curve = (*points, (points[-1][0] + tail_s, points[-1][1]))
        for partition in range(partitions):
            yield PartitionCurve(topic, partition, curve)
