"""Real groups for cells: topics, consumers and load, on one broker of each system."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import LIBRDKAFKA, ClientProcess, PartitionCurve
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, ProducerProcess, QueueCurve, read_deliveries
from tests.matrix.cells import BLOCKED_QUEUE, SLOW_MEMBER, SLOWER, Cell

BACKLOG_S = 20.0
"""The backlog of an overloaded group is sent within so many seconds, before its load."""

BURST_S, QUIET_S = 10.0, 20.0
"""A burst of three times the mean rate, then nothing."""

STUCK_AFTER = 100
"""The message of the blocked queue that its listener never returns from."""

PER_PROCESS = 4
"""Kafka groups of one process: each buffers what it fetched."""

POP_SETTINGS = {"timerWheelEnable": "true", "maxMessageSize": str(256 * 1024)}
"""Without a timer wheel a broker lets nobody pop; smaller messages need smaller buffers."""

Points = tuple[tuple[float, float], ...]
Counts = Mapping[str, int]


class Groups(Protocol):
    """Running groups of one system."""

    address: str

    def start(self, cells: Sequence[Cell], seconds: float) -> None:
        """Start the groups and their load, which lasts ``seconds``."""

    def consumed(self, cell: Cell, first_ms: float, last_ms: float) -> Counts:
        """Return client -> messages handed to it between two times."""

    def stop(self) -> None:
        """End all clients of these groups."""


def points(cell: Cell, share: float, seconds: float) -> Points:
    """Return the curve of the queue that gets ``share`` of the arrivals: a backlog first, then the cell's rate."""
    rate = cell.rate * share
    head = _block(0.0, BACKLOG_S, cell.backlog * share / BACKLOG_S) if cell.backlog else ()
    begin = BACKLOG_S if cell.backlog else 0.0
    if cell.arrivals == "constant":
        return (*head, *_block(begin, seconds, rate))
    peak = rate * (BURST_S + QUIET_S) / BURST_S
    starts = itertools.takewhile(lambda at: at < seconds, itertools.count(begin, BURST_S + QUIET_S))
    bursts = (_block(at, at + BURST_S, peak) + _block(at + BURST_S, at + BURST_S + QUIET_S, 0.0) for at in starts)
    return (*head, *itertools.chain.from_iterable(bursts))


def _block(begin: float, end: float, rate: float) -> Points:
    return ((begin, rate), (end, rate))


def service_ms(cell: Cell, member: int) -> int:
    """Return what a member spends on each message; the last may be the slow one."""
    is_slow = cell.cause == SLOW_MEMBER and member == cell.members - 1
    return cell.service_ms * (SLOWER if is_slow else 1)


class KafkaGroups:
    """Groups on one Kafka cluster, both clients."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster, self.address = cluster, cluster.bootstrap
        self._processes: list[ClientProcess] = []
        self._of: dict[str, ClientProcess] = {}

    def start(self, cells: Sequence[Cell], seconds: float) -> None:
        """See ``Groups``."""
        for cell in cells:
            self.cluster.create_topic(cell.name, cell.queues)
        for version in (CLIENT, LIBRDKAFKA):
            mine = [cell for cell in cells if (cell.client == LIBRDKAFKA) == (version == LIBRDKAFKA)]
            for some in _chunks(mine, PER_PROCESS):
                self._start_consumers(version, some)
        if cells:
            producer = self._process(CLIENT)
            producer.produce("load", [one for cell in cells for one in _partition_curves(cell, seconds)])

    def _start_consumers(self, version: str, cells: Iterable[Cell]) -> None:
        process = self._process(version)
        for cell in cells:
            self._of[cell.name] = process
            for member in range(cell.members):
                process.start_consumer(
                    f"{cell.name}-{member}",
                    group=cell.name,
                    topics=[cell.name],
                    service_ms=service_ms(cell, member),
                    commit={"poll": "sync"}.get(cell.commit, cell.commit),
                    config=_kafka_config(cell),
                    extra=_kafka_extra(cell),
                )

    def _process(self, version: str) -> ClientProcess:
        process = self.cluster.load(version).start()
        self._processes.append(process)
        return process

    def consumed(self, cell: Cell, first_ms: float, last_ms: float) -> Counts:
        """See ``Groups``."""
        return Counter(
            one.client
            for one in self._of[cell.name].deliveries()
            if one.topic == cell.name and first_ms <= one.epoch_ms < last_ms
        )

    def stop(self) -> None:
        """See ``Groups``: crashed, as a consumer with a long poll would close only after it."""
        for process in self._processes:
            process.kill()
        self._processes.clear()


def _kafka_config(cell: Cell) -> dict[str, str]:
    """Return the cell's settings; the rest is as the client has it (our load programs commit every second)."""
    config = {"auto.commit.interval.ms": "5000"}
    return {**config, "max.poll.records": str(cell.batch)} if cell.client == "kafka-java" else config


def _kafka_extra(cell: Cell) -> dict[str, int]:
    stuck = {"stuck": 0, "stuck_after": STUCK_AFTER} if cell.cause == BLOCKED_QUEUE else {}
    return {**stuck, "batch": cell.batch} if cell.client == LIBRDKAFKA else stuck


def _partition_curves(cell: Cell, seconds: float) -> Iterator[PartitionCurve]:
    for number, share in enumerate(cell.shares):
        yield PartitionCurve(cell.name, number, points(cell, share, seconds))


class RocketMQGroups:
    """Groups on one RocketMQ cluster of one broker, all its clients."""

    def __init__(self, cluster: RocketMQCluster, folder: Path) -> None:
        self.cluster, self.address, self.folder = cluster, cluster.name_server, folder
        (self.broker,) = cluster.brokers
        self._wards: list[ConsumerProcess] = []
        self._producers: list[ProducerProcess] = []

    def start(self, cells: Sequence[Cell], seconds: float) -> None:
        """See ``Groups``."""
        for cell in cells:
            self.cluster.create_topic(cell.name, cell.queues)
            self.cluster.create_group(cell.name)
            if cell.client == "pop":
                remoting.pop(self.broker.address, cell.name, cell.name, -1)
        for version in ("4.9.8", NEW):
            lines = [line for cell in cells if _version(cell) == version for line in self._lines(cell)]
            if lines:
                ward = self.cluster.load(version).start_ward(lines, wait_ready=False, heap="1g")
                self._wards.append(ward)
        for ward in self._wards:
            ward.await_ready()
        if cells:
            curves = [one for cell in cells for one in self._curves(cell, seconds)]
            self._producers.append(self.cluster.load(NEW).start_producer(curves))

    def _curves(self, cell: Cell, seconds: float) -> Iterator[QueueCurve]:
        for number, share in enumerate(cell.shares):
            yield QueueCurve(cell.name, self.broker.name, number, points(cell, share, seconds))

    def _lines(self, cell: Cell) -> Iterator[dict[str, str | int | float]]:
        """Yield each member as a line of its own: a lite pull consumer is one, and one may be slow."""
        for member in range(cell.members):
            yield {
                "group": cell.name,
                "topics": cell.name,
                "instances": f"{cell.name}-{member}",
                "threads": cell.threads,
                "service-ms": service_ms(cell, member),
                "delivery-log": str(self._log(cell, member)),
                "await-termination-ms": 1_000,
                **({"stuck": 0, "stuck-after": STUCK_AFTER} if cell.cause == BLOCKED_QUEUE else {}),
                **({"set": "clientRebalance=false"} if cell.client == "pop" else {}),
                **({"poll": "true"} if cell.client == "lite-pull" else {}),
                **({"commit-each-poll": "true"} if (cell.client, cell.commit) == ("lite-pull", "poll") else {}),
            }

    def _log(self, cell: Cell, member: int) -> Path:
        return self.folder / f"{cell.name}-{member}.tsv"

    def consumed(self, cell: Cell, first_ms: float, last_ms: float) -> Counts:
        """See ``Groups``."""
        return Counter(
            one.client_id
            for member in range(cell.members)
            for one in read_deliveries(self._log(cell, member))
            if one.topic == cell.name and first_ms <= one.epoch_ms < last_ms
        )

    def stop(self) -> None:
        """See ``Groups``."""
        for process in (*self._producers, *self._wards):
            process.kill()
        self._producers.clear()
        self._wards.clear()


def _version(cell: Cell) -> str:
    return "4.9.8" if cell.client == "push-4.9.8" else NEW


def _chunks(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    return (cells[first : first + size] for first in range(0, len(cells), size))
