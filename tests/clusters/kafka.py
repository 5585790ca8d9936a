"""A real Kafka on loopback: KRaft brokers from Maven Central's jars, the first of them the controller, too."""

import contextlib
import functools
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from planner.errors import PlannerError
from planner.sources.kafka import KafkaSettings, wire
from planner.sources.kafka.connection import Address, Connection
from planner.sources.kafka.requests import Api
from planner.sources.kafka.wire import Reader
from tests.clusters.artifacts import Coordinate, class_path, find_program
from tests.clusters.errors import StartFailedError
from tests.clusters.java_programs import archive_options
from tests.clusters.kafka_load import GROUP_ID, KafkaLoad
from tests.clusters.kafka_security import Guard, guard
from tests.clusters.launcher import Launcher
from tests.clusters.ports import lease_block
from tests.clusters.processes import ManagedProcess, stop_together
from tests.clusters.workspace import workspace

__all__ = ["CLIENT", "NEWEST", "OLD_CLIENT", "KafkaBroker", "KafkaCluster"]

# Of 4.4.0 the client jars are there, but not all that a broker needs (kafka-tools-api).
NEWEST, CLIENT, OLD_CLIENT = "4.3.1", "4.4.0", "3.9.2"
READY_S = 300.0
REQUEST_S = 120.0
ARCHIVED_S = 120.0
"""A limit against hanging only: a JVM writes the archive of its classes as it ends."""
CLUSTER_ID = "consumer-planner-test0"

_JVM = ("-Xms256m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_LOGGING = Coordinate("org.slf4j", "slf4j-simple", "1.7.36")
_QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")


@dataclass
class KafkaBroker:
    """One broker; number 1 is the controller as well, so without it the others stay but nothing can change."""

    number: int
    address: str
    process: ManagedProcess = field(repr=False)

    def start(self, timeout_s: float = READY_S) -> None:
        """Start it and return once clients can reach it."""
        self.process.start()
        self.await_ready(timeout_s)

    def await_ready(self, timeout_s: float = READY_S) -> None:
        """Return once it answers for metadata; raise StartFailedError with its log tail otherwise."""
        self.process.wait_until("its answer for metadata", lambda: _lists(self.address, self.number), timeout_s)

    def stop(self) -> None:
        """Stop it as an operator does (SIGTERM, SIGKILL after 15 s)."""
        self.process.stop()

    def kill(self) -> None:
        """Crash it (SIGKILL)."""
        self.process.kill()


class KafkaCluster(Launcher):
    """Running brokers. A context manager: leaving it stops everything and deletes all files.

    ``brokers`` is their number; ``racks`` names the rack of each (none where it is shorter). ``settings`` are extra
    lines of ``server.properties`` for every broker, overriding ours; ``jvm_options`` go in the place of those by which
    JVMs start quickly. With ``guarded`` there are listeners that ask for an account and a certificate too (``guard``),
    and an authoriser; ``bootstrap`` stays open and may do everything.
    """

    def __init__(
        self,
        version: str = NEWEST,
        brokers: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        racks: Sequence[str] = (),
        guarded: bool = False,
        jvm_options: Sequence[str] | None = None,
    ) -> None:
        self.version = version
        self._java = find_program("java")
        self._jars = class_path("kafka-server", [Coordinate(GROUP_ID, "kafka_2.13", version), _LOGGING])
        self._jvm_options = _archived(version, self._jars) if jvm_options is None else jvm_options
        self._loads: list[KafkaLoad] = []
        self._undo = contextlib.ExitStack()  # unwound from its end: clients, brokers, files
        with contextlib.ExitStack() as undo:
            self.directory = undo.enter_context(workspace(f"kafka-{version}"))
            first_ports = [_lease(undo) for _ in range(brokers)]
            self._controller = f"127.0.0.1:{first_ports[0] + 1}"
            self.guard: Guard | None = guard(self.directory, first_ports[0]) if guarded else None
            self.brokers = tuple(
                self._prepare(number, port, racks[number - 1 : number], settings or {})
                for number, port in enumerate(first_ports, start=1)
            )
            undo.callback(lambda: stop_together([one.process for one in reversed(self.brokers)]))
            self._undo = undo.pop_all()

    @classmethod
    def start(
        cls,
        version: str = NEWEST,
        brokers: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        racks: Sequence[str] = (),
        guarded: bool = False,
    ) -> Self:
        """Return a running cluster in which every broker answers; raise StartFailedError with log tails."""
        return cls(version, brokers, settings, racks=racks, guarded=guarded)._started()

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, without account or encryption."""
        return ",".join(broker.address for broker in self.brokers)

    @functools.cached_property
    def admin(self) -> AdminClient:
        """A client that may change everything; kept, as its requests end with it."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(
        self,
        topic: str,
        partitions: int = 4,
        *,
        replicas: Sequence[Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create ``topic``; ``replicas`` names the brokers of each partition, else there is one replica each.

        Returns once every broker knows it: each learns of it at its own time, and clients ask any of them.
        """
        wanted: dict[str, Any] = {"replica_assignment": replicas} if replicas else {"replication_factor": 1}
        count = len(replicas) if replicas else partitions
        done(self.admin.create_topics([NewTopic(topic, count, config=dict(config or {}), **wanted)]))
        self._await_each(f"topic {topic}", lambda broker: _has_topic(broker, topic, count))

    def delete_topic(self, topic: str) -> None:
        """Delete ``topic``, and return once no broker knows it any more."""
        done(self.admin.delete_topics([topic]))
        self._await_each(f"end of {topic}", lambda broker: _leaders(broker, topic) == ())

    def _await_each(self, what: str, is_met: Callable[[KafkaBroker], bool]) -> None:
        for broker in self.brokers:
            if broker.process.running:
                broker.process.wait_until(what, functools.partial(is_met, broker), REQUEST_S)

    def produce(self, topic: str, counts: Mapping[int, int], config: Mapping[str, str] | None = None) -> None:
        """Send so many records to each partition and wait until all are acknowledged."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0, **(config or {})})
        for partition, count in counts.items():
            for number in range(count):
                producer.produce(topic, value=str(number), key=str(number), partition=partition)
        if left := producer.flush(REQUEST_S):
            raise StartFailedError(f"{left} records to {topic} were not acknowledged in {REQUEST_S:g} s")

    def allow(self, account: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """Grant an account of a guarded cluster one operation on one thing; brokers go by it a moment later."""
        pattern, verdict = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        done(self.admin.create_acls([AclBinding(kind, name, pattern, f"User:{account}", "*", operation, verdict)]))

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int], timeout_s: float = REQUEST_S) -> None:
        """Commit (topic, partition) -> offset for a group without members, which that makes be there.

        Tried until ``timeout_s`` is over: a cluster that has just begun has no coordinators yet.
        """
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "log_level": 0})
        parts = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                consumer.commit(offsets=parts, asynchronous=False)
                break
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
        consumer.close()

    def load(self, client_version: str = CLIENT) -> KafkaLoad:
        """Return a starter of real clients for this cluster; ``librdkafka`` is a client version, too."""
        load = KafkaLoad(self.bootstrap, client_version, self.directory)
        self._loads.append(load)
        self._undo.callback(load.stop)
        return load

    def stop(self) -> None:
        """Stop clients, then brokers, the controller last; delete all files. Stopping twice does nothing."""
        self._undo.close()

    @property
    def processes(self) -> tuple[ManagedProcess, ...]:
        """Everything it ever started: brokers, clients."""
        clients = (process for load in self._loads for process in load.processes)
        return (*(broker.process for broker in self.brokers), *clients)

    def _start_all(self) -> None:
        for broker in self.brokers:
            broker.process.start()
        for broker in self.brokers:
            broker.await_ready()

    def _prepare(self, number: int, port: int, rack: Sequence[str], settings: Mapping[str, str]) -> KafkaBroker:
        home = self.directory / f"broker-{number}"
        home.mkdir()
        lines = {**self._settings(number, port), **({"broker.rack": rack[0]} if rack else {}), **settings}
        (home / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        self._format(home)
        argv = [*self._java_command(), "kafka.Kafka", "server.properties"]
        return KafkaBroker(number, f"127.0.0.1:{port}", ManagedProcess(f"broker-{number}", argv, home))

    def _settings(self, number: int, port: int) -> dict[str, str]:
        """Each broker has four ports: clients, controller, clients with account, clients with account and TLS."""
        is_controller = number == 1
        listeners = {"PLAINTEXT": f"127.0.0.1:{port}"}
        if self.guard:
            listeners |= {name: f"127.0.0.1:{port + offset}" for name, offset in self.guard.offsets.items()}
        own = {"CONTROLLER": self._controller} if is_controller else {}
        return {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": str(number),
            "controller.quorum.voters": f"1@{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(f"{name}://{address}" for name, address in {**listeners, **own}.items()),
            "advertised.listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
            "listener.security.protocol.map": ",".join(
                ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in listeners)]
            ),
            "log.dirs": "data",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "2",
            "log.cleaner.dedupe.buffer.size": "2097152",  # its default takes 128 MiB of the heap
            "auto.create.topics.enable": "false",
            "num.network.threads": "2",
            "num.io.threads": "2",
            **(self.guard.settings if self.guard else {}),
        }

    def _format(self, home: Path) -> None:
        command = [*self._java_command(), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
        command += ["-c", "server.properties", *(self.guard.format_arguments if self.guard else ())]
        run = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise StartFailedError(f"formatting {home.name} ended with {run.returncode}\n{run.stdout}{run.stderr}")

    def _java_command(self) -> list[str]:
        return [self._java, *_JVM, *self._jvm_options, *_QUIET, "-cp", os.pathsep.join(map(str, self._jars))]


def _archived(version: str, jars: Sequence[Path]) -> tuple[str, ...]:
    def run(option: str) -> None:
        with KafkaCluster(version, jvm_options=(option,))._started() as cluster:
            with contextlib.suppress(KafkaException):  # what a busy machine does not come to is not archived
                cluster.create_topic("archived")
                cluster.produce("archived", {0: 1})
                cluster.commit("archived", {("archived", 0): 1})
            cluster.brokers[0].process.stop(ARCHIVED_S)

    return archive_options("kafka.Kafka", jars, run)


def done(futures: Mapping[Any, "Future[Any]"]) -> None:
    """Wait for every request of an admin call; the first that failed raises."""
    for future in futures.values():
        future.result(timeout=REQUEST_S)


def _lists(address: str, number: int) -> bool:
    try:
        client = AdminClient({"bootstrap.servers": address, "log_level": 0})
        return number in client.list_topics(timeout=10).brokers
    except KafkaException:  # not yet: the caller's time limit decides
        return False


def _has_topic(broker: KafkaBroker, topic: str, partitions: int) -> bool:
    leaders = _leaders(broker, topic)
    return leaders is not None and len(leaders) == partitions and min(leaders) > 0


def _leaders(broker: KafkaBroker, topic: str) -> tuple[int, ...] | None:
    """Return the leader of each partition as this broker knows it, none for no such topic, ``None`` for no answer.

    The library asks whichever broker it likes.
    """
    body = wire.int32(1) + wire.text(topic) + wire.int8(0)  # the topic is not to be made
    try:
        with Connection(Address.parse(broker.address), KafkaSettings(), REQUEST_S) as link:
            return link.ask(_METADATA, body)
    except PlannerError:
        return None


def _read_leaders(reader: Reader, _: int) -> tuple[int, ...]:
    """Read the answer to a request for the metadata of one topic, version 4."""
    reader.int32()  # how long we were held back
    reader.array(lambda: (reader.int32(), reader.text(), reader.int32(), reader.text()))  # brokers
    reader.text()  # the cluster's id
    reader.int32()  # the controller
    found = reader.array(lambda: (reader.int16(), reader.text(), reader.int8(), reader.array(lambda: _leader(reader))))
    return tuple(leader for *_, leaders in found for leader in leaders)


def _leader(reader: Reader) -> int:
    _, _, leader = reader.int16(), reader.int32(), reader.int32()
    for _ in ("replicas", "those in sync"):
        reader.array(reader.int32)
    return leader


_METADATA = Api("Metadata", 3, (4, 4), 9, _read_leaders)


def _lease(undo: contextlib.ExitStack) -> int:
    """Return the first of four ports that are given back when ``undo`` unwinds."""
    lease = lease_block()
    undo.callback(lease.release)
    return lease.first
