"""Record a real cluster with the planner's own observe stage: ``make capture``, ``make capture SYSTEM=kafka``.

The Kafka group's story stands in ``kafka_capture``. RocketMQ's is a day's shape in 34 minutes: a quiet night, a morning
rise, a noon peak that three consumers cannot follow, a fourth that joins and catches up, a dip, one that leaves, and an
evening in which the consumer of the hot queue falls behind.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from planner.sources.capture import Capture, write_capture
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.errors import StartFailedError
from tests.clusters.rocketmq import NEW, READY_S, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, QueueCurve, RocketMQLoad
from tests.load import kafka_capture
from tests.load.sampling import SAMPLE_EVERY_S, Event, sample_group

GROUP = "shop-orders"
FULL_S = 2040.0
THREADS, SERVICE_MS = 2, 20.0

DAY = (
    (0, 90), (180, 90), (540, 230), (600, 330), (860, 330), (1080, 240), (1140, 180), (1380, 170), (1560, 285),
    (2040, 290),
)  # fmt: skip
"""Messages per second over both topics, at these seconds of the full length."""

ORDERS_SHARE, HOT_WEIGHT, HOT = 0.8, 3.0, ("broker-a", 2)
JOIN_S, LEAVE_S = 860.0, 1330.0

STORY = (
    "Two brokers; topic orders has 16 queues, topic payments 6; broker-a/2 of orders gets three times its share.",
    "Three consumers with AVG, 2 threads and 20 ms a message: each can do about 99 messages/s.",
    "A day's shape in 34 minutes: from 90 messages/s to 330 at noon, when three consumers fall behind.",
    "A fourth consumer joins in the afternoon's beginning, catches up, and leaves again in the dip.",
    "In the evening, at 290 messages/s, the consumer that owns the hot queue falls behind.",
)


@dataclass(frozen=True)
class Timeline:
    """The day squeezed into ``seconds``."""

    seconds: float

    def at(self, second: float) -> float:
        """Return a second of the full length as one of this run."""
        return second * self.seconds / FULL_S

    def curves(self) -> Iterator[QueueCurve]:
        """Yield the rate curve of every queue."""
        orders = [(broker, queue) for broker in ("broker-a", "broker-b") for queue in range(8)]
        weights = [HOT_WEIGHT if queue == HOT else 1.0 for queue in orders]
        for (broker, queue), weight in zip(orders, weights, strict=True):
            yield QueueCurve("orders", broker, queue, self._points(ORDERS_SHARE * weight / sum(weights)))
        for broker in ("broker-a", "broker-b"):
            for queue in range(3):
                yield QueueCurve("payments", broker, queue, self._points((1 - ORDERS_SHARE) / 6))

    def _points(self, share: float) -> tuple[tuple[float, float], ...]:
        tail_s = 60.0  # the load goes on a little, so that the last sample is an ordinary one
        points = [(self.at(second), rate * share) for second, rate in DAY]
        return (*points, (points[-1][0] + tail_s, points[-1][1]))


def record(folder: Path, seconds: float = FULL_S) -> Capture:
    """Run the whole story on a cluster of its own and return the capture written to ``folder``."""
    timeline = Timeline(seconds)
    with RocketMQCluster.start(NEW, brokers=2) as cluster:
        cluster.create_topic("orders", 8)
        cluster.create_topic("payments", 3)
        load = cluster.load(NEW)
        consumers = [start_consumer(load, f"10.42.0.{host}") for host in (11, 12, 13)]
        fourth = start_consumer(load, "10.42.0.14", on_order=True)
        _await_members(cluster, len(consumers))
        producer = load.start_producer(list(timeline.curves()))
        producer.await_ready()
        events: list[Event] = [(timeline.at(JOIN_S), fourth.begin), (timeline.at(LEAVE_S), fourth.stop)]
        with RocketMQAdmin(cluster.name_server) as admin:
            samples = sample_group(
                lambda at: observe_group(admin, cluster=None, group=GROUP, topics=None, at=at), seconds, events
            )
        assert all(consumer.running for consumer in consumers), "a consumer died during the recording"
        producer.stop()
    versions = (("rocketmq", NEW), ("rocketmq-client", NEW))
    return write_capture(folder, samples, SAMPLE_EVERY_S, STORY, versions)


def _await_members(cluster: RocketMQCluster, count: int) -> None:
    """Return once every broker lists so many members of the group."""
    deadline = time.monotonic() + READY_S
    while any(len(listed) != count for listed in cluster.members(GROUP).values()):
        if time.monotonic() > deadline:
            raise StartFailedError(f"not {count} members after {READY_S:g} s: {cluster.members(GROUP)}")
        time.sleep(0.1)


def start_consumer(load: RocketMQLoad, client_ip: str, on_order: bool = False) -> ConsumerProcess:
    """Start one consumer of the group on both topics, with an id like a pod's.

    With ``on_order`` its process waits for ``begin``, so that it joins then, however long a process takes to start.
    """
    return load.start_consumer(
        group=GROUP,
        topics=["orders", "payments"],
        instance="1",
        client_ip=client_ip,
        threads=THREADS,
        service_ms=SERVICE_MS,
        await_termination_ms=3000,
        log_deliveries=False,
        on_order=on_order,
    )


def main() -> None:
    """Record into the folder named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--system", choices=("rocketmq", "kafka"), default="rocketmq")
    parser.add_argument("--seconds", type=float, help="squeeze the story into so many seconds")
    arguments = parser.parse_args()
    if arguments.system == "kafka":
        capture = kafka_capture.record(arguments.folder, arguments.seconds or kafka_capture.FULL_S)
    else:
        capture = record(arguments.folder, arguments.seconds or FULL_S)
    print(f"{capture.header.samples} samples of {', '.join(capture.header.groups)} written to {capture.folder}")


if __name__ == "__main__":
    main()
