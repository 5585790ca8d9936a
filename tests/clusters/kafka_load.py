"""Real Kafka clients under load: many consumers and producers in one process, Java's or librdkafka's."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.clusters.artifacts import Coordinate, class_path, find_program
from tests.clusters.errors import StartFailedError
from tests.clusters.java_programs import archive_options, program_jars
from tests.clusters.processes import ManagedProcess, stop_together
from tests.clusters.workspace import workspace

READY_S = 300.0
ARCHIVED_S = 5.0
"""After so long a consumer that reaches nobody has loaded what there is to load."""
GROUP_ID = "org.apache.kafka"
LIBRDKAFKA = "librdkafka"

_LOAD = Path(__file__).parents[1] / "load"
_SOURCES = (*sorted((_LOAD / "kafka").rglob("*.java")), *sorted((_LOAD / "src").rglob("RateCurve.java")))
_SHARE_SOURCES = (*_SOURCES, *sorted((_LOAD / "kafka-share").rglob("*.java")))
"""Clients before 4.2 have no consumer of share groups, and do not compile it."""
_PYTHON_CONSUMERS = _LOAD / "kafka" / "librdkafka_consumers.py"
_MAIN = "KafkaMain"
_JSON = Coordinate("com.fasterxml.jackson.core", "jackson-databind", "2.19.2")
_LOGGING = Coordinate("org.slf4j", "slf4j-simple", "1.7.36")
_JVM = ("-Xmx256m", "-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
_BYTES = "org.apache.kafka.common.serialization.ByteArray"

Partition = tuple[str, int]


@dataclass(frozen=True)
class PartitionCurve:
    """Records per second to one partition: straight lines between ``points`` of (seconds, records per second)."""

    topic: str
    partition: int
    points: tuple[tuple[float, float], ...]

    def line(self) -> str:
        """The curve as the load program reads it."""
        points = " ".join(f"{float(seconds)}:{float(rate)}" for seconds, rate in self.points)
        return f"{self.topic} {self.partition} {points}"


@dataclass(frozen=True)
class Delivery:
    """One record handed to a consumer's loop, at ``epoch_ms`` by its clock; it was made at ``made_ms``."""

    epoch_ms: int
    client: str
    topic: str
    partition: int
    offset: int
    made_ms: int


@dataclass(frozen=True)
class Event:
    """Something that happened to a client: ``started``, ``assigned``, ``revoked``, ``lost``, ``failed``, ``stopped``.

    ``worked``: how many records it worked on, and for how many nanoseconds in all. ``refused`` is a commit amid a
    rebalance. ``detail`` holds the partitions as ``topic/0,topic/1``, or the reason.
    """

    epoch_ms: int
    client: str
    kind: str
    detail: str

    @property
    def partitions(self) -> frozenset[Partition]:
        """The partitions that the event is about."""
        pairs = (one.rpartition("/") for one in self.detail.split(",") if one)
        return frozenset((topic, int(number)) for topic, _, number in pairs)


@dataclass
class ClientProcess:
    """One process with any number of clients that share its fate; each client has a name, its ``client.id``."""

    bootstrap: str
    process: ManagedProcess = field(repr=False)
    delivery_log: Path = field(repr=False)
    is_java: bool

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    def start_consumer(
        self,
        client: str,
        *,
        group: str,
        topics: Sequence[str],
        config: Mapping[str, str] | None = None,
        service_ms: float = 0.0,
        commit: str = "auto",
        extra: Mapping[str, int] | None = None,
    ) -> None:
        """Start a consumer and return at once; ``await_owned`` waits for what it gets.

        ``config`` holds the client's own settings (class names for Java's assignors). ``service_ms`` is spent on each
        record. ``commit`` is ``auto`` (every second), ``sync`` (after each poll), ``each`` (after each record) or
        ``never``. One topic that begins with ``^`` is a pattern. ``extra``: ``stuck`` is a partition number whose
        record number ``stuck_after`` is never done, ``batch`` how many records librdkafka's poll may return (else 1).
        """
        own = {
            "bootstrap.servers": self.bootstrap,
            **(_serializers("Deserializer", "deserializer") if self.is_java else {}),
            **(config or {}),
        }
        order = _start_order(client, group=group, topics=topics, config=own, service_ms=service_ms, commit=commit)
        self.process.tell(json.dumps({**order, **(extra or {})}))

    def stop_consumer(self, client: str, timeout_s: float = READY_S) -> None:
        """Close one consumer gracefully and wait until it is closed."""
        self._tell("stop", client)
        self.await_event(client, "stopped", timeout_s)

    def ask_to_stop(self, client: str) -> None:
        """Tell one consumer or producer to close and return at once."""
        self._tell("stop", client)

    def hang(self, client: str) -> None:
        """Let one consumer poll no more; its heartbeats go on until ``max.poll.interval.ms`` is over."""
        self._tell("hang", client)

    def subscribe(self, client: str, topics: Sequence[str]) -> None:
        """Change what one consumer subscribes to."""
        self._tell("subscribe", client, topics=list(topics))

    def produce(self, name: str, curves: Iterable[PartitionCurve], config: Mapping[str, str] | None = None) -> None:
        """Start sending along ``curves``, evenly paced; it ends with the last point (Java only)."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            **_serializers("Serializer", "serializer"),
            "linger.ms": "0",
            **(config or {}),
        }
        self._tell("produce", name, lanes=[curve.line() for curve in curves], config=settings)

    def sent(self, name: str, timeout_s: float) -> dict[Partition, tuple[int, int]]:
        """Return partition -> (acknowledged, failed) once the producer is done."""
        self.await_event(name, "stopped", timeout_s)
        rows = [one.detail.split() for one in self.events() if one.client == name and one.kind == "sent"]
        return {(t.rpartition("/")[0], int(t.rpartition("/")[2])): (int(ok), int(bad)) for t, ok, bad in rows}

    def events(self) -> list[Event]:
        """What has happened so far, oldest first."""
        rows = re.findall(r"(?m)^EVENT (\d+) (\S+) (\S+) ?(.*)\n", self.process.output())
        return [Event(int(epoch_ms), client, kind, detail) for epoch_ms, client, kind, detail in rows]

    def await_event(self, client: str, kind: str, timeout_s: float = READY_S) -> Event:
        """Return the client's last event of ``kind``; raise StartFailedError when it does not come in time."""

        def found() -> Event | None:
            return next((one for one in reversed(self.events()) if (one.client, one.kind) == (client, kind)), None)

        return self.process.wait_until(f"event {kind} of {client}", found, timeout_s)

    def deliveries(self) -> list[Delivery]:
        """What was delivered so far, oldest first; the half line that a crash leaves behind is dropped."""
        return self.deliveries_since(0)[0]

    def deliveries_since(self, position: int) -> tuple[list[Delivery], int]:
        """Return what was logged from ``position`` on, and the position to go on from."""
        if not self.delivery_log.exists():
            return [], position
        with self.delivery_log.open("rb") as log:
            log.seek(position)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        return [_delivery(line) for line in whole.decode().splitlines()], position + len(whole)

    def stop(self, grace_s: float = READY_S) -> None:
        """Close all clients gracefully and wait."""
        self.process.stop(grace_s)

    def kill(self) -> None:
        """Crash it (SIGKILL): nobody commits or leaves the group."""
        self.process.kill()

    def freeze(self) -> None:
        """Suspend it (SIGSTOP); its connections stay open and the broker notices only by time-out."""
        self.process.freeze()

    def resume(self) -> None:
        """Let it go on after ``freeze``."""
        self.process.resume()

    def _tell(self, verb: str, client: str, **fields: object) -> None:
        self.process.tell(json.dumps({"do": verb, "id": client, **fields}))


class KafkaLoad:
    """Starts client processes of one version against a bootstrap address; ``stop`` ends all that still run."""

    def __init__(self, bootstrap: str, client_version: str, directory: Path) -> None:
        self.bootstrap = bootstrap
        self.client_version = client_version
        self._directory = directory
        self._argv = _python_argv() if client_version == LIBRDKAFKA else _java_argv(client_version)
        self.processes: list[ManagedProcess] = []

    def start(self, prefix: Sequence[str] = ()) -> ClientProcess:
        """Return a running process without clients yet; ``prefix`` are words before its command."""
        directory = Path(tempfile.mkdtemp(prefix=f"load-{self.client_version}-", dir=self._directory))
        log = directory / "deliveries.tsv"
        process = ManagedProcess(
            f"clients-{self.client_version}", [*prefix, *self._argv, str(log)], directory, takes_orders=True
        )
        self.processes.append(process)
        process.start()
        process.wait_for_line(r"(?m)^READY$", READY_S)
        return ClientProcess(self.bootstrap, process, log, self.client_version != LIBRDKAFKA)

    def stop(self) -> None:
        """Stop every process that still runs, all at the same time."""
        stop_together(self.processes)


def java_consumer(
    bootstrap: str,
    client: str,
    *,
    client_version: str,
    group: str,
    topic: str,
    delivery_log: str,
    config: Mapping[str, str],
    service_ms: float = 0.0,
) -> list[str]:
    """Return the command of a process that is one Java consumer, and closes it on SIGTERM; see ``start_consumer``.

    Several names in ``client``, with commas, are several consumers in the process.
    """
    own = {"bootstrap.servers": bootstrap, **_serializers("Deserializer", "deserializer"), **config}
    orders = (
        _start_order(name, group=group, topics=[topic], config=own, service_ms=service_ms, commit="auto")
        for name in client.split(",")
    )
    return [*_java_argv(client_version), delivery_log, "\n".join(map(json.dumps, orders))]


def java_share_consumer(
    bootstrap: str,
    client: str,
    *,
    client_version: str,
    group: str,
    topic: str,
    delivery_log: str,
    service_ms: float = 0.0,
    end: str = "batch",
) -> list[str]:
    """Return the command of a process that is one Java consumer of a share group with the client's defaults.

    On SIGTERM it closes: at once (``at-once``), after its batch, or once it has acknowledged that, too (``commit``).
    """
    settings = {"bootstrap.servers": bootstrap, **_serializers("Deserializer", "deserializer")}
    settings |= {"group.id": group, "client.id": client}
    argv = _java_argv(client_version, _SHARE_SOURCES, "ShareMain")
    return [*argv, delivery_log, client, topic, json.dumps(settings), str(round(service_ms * 1000)), end]


def _start_order(
    client: str, *, group: str, topics: Sequence[str], config: Mapping[str, str], service_ms: float, commit: str
) -> dict[str, object]:
    """Return the load programs' order to start a consumer."""
    settings = {
        "group.id": group,
        "client.id": client,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": str(commit == "auto").lower(),
        "auto.commit.interval.ms": "1000",
        **config,
    }
    service_us = round(service_ms * 1000)
    order = {"do": "start", "id": client, "topics": list(topics), "config": settings}
    return {**order, "service_us": service_us, "commit": commit}


def _delivery(line: str) -> Delivery:
    epoch_ms, client, topic, partition, offset, made_ms = line.split("\t")
    return Delivery(int(epoch_ms), client, topic, int(partition), int(offset), int(made_ms))


def _serializers(class_suffix: str, setting: str) -> dict[str, str]:
    return dict.fromkeys((f"key.{setting}", f"value.{setting}"), f"{_BYTES}{class_suffix}")


def _python_argv() -> list[str]:
    return [sys.executable, str(_PYTHON_CONSUMERS)]


def _java_argv(client_version: str, sources: Sequence[Path] = _SOURCES, main: str = _MAIN) -> list[str]:
    clients = class_path("kafka-client", [Coordinate(GROUP_ID, "kafka-clients", client_version), _JSON, _LOGGING])
    jars = program_jars("program-kafka", sources, clients)
    program = f"dev.consumerplanner.load.kafka.{main}"

    def command(*options: str) -> list[str]:
        return [find_program("java"), *_JVM, *options, *_QUIET, "-cp", os.pathsep.join(map(str, jars)), program]

    return command(*archive_options(program, jars, lambda option: _try(command(option), main)))


def _try(command: Sequence[str], main: str) -> None:
    """Let a consumer that reaches nobody load what consumers load, and end."""
    settings = {"bootstrap.servers": "127.0.0.1:1", **_serializers("Deserializer", "deserializer")}
    order = _start_order("archived", group="g", topics=["t"], config=settings, service_ms=0.0, commit="auto")
    words = [json.dumps(order)] if main == _MAIN else ["c", "t", json.dumps(settings | {"group.id": "g"}), "0", "batch"]
    with workspace("archive") as folder:
        process = ManagedProcess("archived", [*command, "deliveries.tsv", *words], folder)
        process.start()
        with suppress(StartFailedError):
            process.wait_until("its first steps", lambda: not process.running, ARCHIVED_S)
        process.stop(READY_S)
