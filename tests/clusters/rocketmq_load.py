"""Real RocketMQ clients under load: consumers and producers, each in a process of its own."""

import os
import re
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

READY_S = 180.0
"""A limit against hanging only: a busy machine takes its time."""
STARTS = 3
"""How often a consumer is started whose start ended as nothing answered it."""
GROUP_ID = "org.apache.rocketmq"
MAIN = "dev.consumerplanner.load.Main"
ARCHIVED_S = 10.0
"""After so long a consumer that reaches nobody has loaded what there is to load."""
LOOK_LOG = "looks.tsv"
SOURCES = Path(__file__).parents[1] / "load" / "src"

API_TIMEOUT_MS = 30_000
"""How long our clients wait for an answer. By default it is 3 s: they hang up where one comes later.

A member that did is in nobody's list for up to 30 s, so that starts end and groups rebalance by chance.
"""

_NO_ANSWER = re.compile(r"Remoting(Connect|SendRequest|Timeout)Exception")
_JVM = ("-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


@dataclass(frozen=True)
class QueueCurve:
    """Messages per second to one queue: straight lines between ``points`` of (seconds, messages per second).

    Nothing is sent before the first and after the last point. Two points at one second make a jump.
    """

    topic: str
    broker: str
    queue: int
    points: tuple[tuple[float, float], ...]

    @property
    def messages(self) -> float:
        """The area under the curve; the real count differs by less than one message."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return sum((t1 - t0) * (r0 + r1) / 2 for (t0, r0), (t1, r1) in pairs)

    def line(self) -> str:
        """The curve as the load program reads it."""
        points = " ".join(f"{float(seconds)}:{float(rate)}" for seconds, rate in self.points)
        return f"{self.topic} {self.broker} {self.queue} {points}"


@dataclass(frozen=True)
class Delivery:
    """One message handed to a listener at ``epoch_ms`` by the consumer's clock; the broker got it at ``stored_ms``.

    ``message`` is its id, ``came_back`` how often it was given back before and ``tag`` its tag, where its consumer
    ``tells_messages``: a popped message comes again under another offset.
    """

    epoch_ms: int
    client_id: str
    topic: str
    broker: str
    queue: int
    offset: int
    stored_ms: int
    message: str = ""
    came_back: int = 0
    tag: str = ""


@dataclass(frozen=True)
class Look:
    """What a look showed one consumer, where it differs from the look before: the members, and its own queues."""

    epoch_ms: int
    client_id: str
    topic: str
    members: tuple[str, ...]
    queues: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Sent:
    """What became of the messages of a producer: (topic, broker, queue) -> count."""

    acknowledged: Mapping[tuple[str, str, int], int]
    failed: Mapping[tuple[str, str, int], int]

    @property
    def total(self) -> int:
        """How many messages brokers acknowledged."""
        return sum(self.acknowledged.values())


def read_deliveries(log: Path) -> list[Delivery]:
    """Return the deliveries in a log, oldest first; the half line that a crash leaves behind is dropped."""
    return [_delivery(line) for line in _whole_lines(log)]


def read_looks(log: Path) -> list[Look]:
    """Return the looks in a log, oldest first; half a line is dropped."""
    return [_look(line) for line in _whole_lines(log)]


def _whole_lines(log: Path) -> list[str]:
    text = log.read_text() if log.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def _delivery(line: str) -> Delivery:
    epoch_ms, client_id, topic, broker, queue, offset, stored_ms, *told = line.split("\t")
    message, came_back, tag = (*told, *("", "0", "")[len(told) :])
    return Delivery(
        int(epoch_ms), client_id, topic, broker, int(queue), int(offset), int(stored_ms), message, int(came_back), tag
    )


def _java(value: bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _look(line: str) -> Look:
    epoch_ms, client_id, topic, members, queues = line.split("\t")
    owned = (one.rpartition("/") for one in queues.split(",") if one)
    return Look(
        int(epoch_ms),
        client_id,
        topic,
        tuple(members.split(",")),
        tuple((name, int(number)) for name, _, number in owned),
    )


@dataclass
class ConsumerProcess:
    """One JVM with one consumer, or several that share its fate."""

    client_ids: tuple[str, ...]
    process: ManagedProcess = field(repr=False)
    delivery_log: Path = field(repr=False)

    @property
    def client_id(self) -> str:
        """The id of the first consumer in it."""
        return self.client_ids[0]

    @property
    def pid(self) -> int:
        """The id of the java process."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """True until it has ended; also while frozen."""
        return self.process.running

    def await_loaded(self, timeout_s: float = READY_S) -> None:
        """Return once it waits for the order to start."""
        self.process.wait_for_line(r"(?m)^LOADED$", timeout_s)

    def begin(self) -> None:
        """Give the order to start, to a consumer that was told to wait for it."""
        self.process.tell("")

    def moment(self, word: str, timeout_s: float = READY_S) -> int:
        """Return the epoch milliseconds of ``STARTING`` or ``STOPPING``, as soon as it says so."""
        return int(self.process.wait_for_line(rf"(?m)^{word} (\d+)$", timeout_s)[1])

    def await_ready(self, timeout_s: float = READY_S) -> None:
        """Return once every consumer has started; raise StartFailedError with the log tail otherwise.

        One that ended as nothing answered it in time is started again, as its pod would be: machines are busy. Not one
        that began on order: who gave it measures from then on.
        """
        for left in reversed(range(STARTS)):
            try:
                found = self.process.wait_for_line(r"(?m)^READY (.*)$", timeout_s)[1].split()
                break
            except StartFailedError:
                is_late = not self.running and _NO_ANSWER.search(self.process.output())
                if not (left and is_late) or self.process.takes_orders:
                    raise
                self.process.start()
        if tuple(found) != self.client_ids:
            raise StartFailedError(f"expected client ids {self.client_ids}, found {found}")

    def stop(self, grace_s: float = READY_S) -> None:
        """Shut down gracefully and wait; raise StartFailedError when it had to be killed after ``grace_s``."""
        self.process.stop(grace_s)
        if not re.search(r"(?m)^STOPPED ", self.process.output()):
            raise StartFailedError(f"{self.client_id} did not stop gracefully\n{self.process.log_tail()}")

    def kill(self) -> None:
        """Crash it (SIGKILL): nothing is committed or unregistered, up to 200 ms of the delivery log are lost."""
        self.process.kill()

    def freeze(self) -> None:
        """Suspend it (SIGSTOP); its connections stay open and brokers notice only by time-out."""
        self.process.freeze()

    def resume(self) -> None:
        """Let it go on after ``freeze``."""
        self.process.resume()

    def deliveries(self) -> list[Delivery]:
        """What it has logged so far, oldest first."""
        return read_deliveries(self.delivery_log)

    def looks(self) -> list[Look]:
        """What its looks have shown so far, oldest first; only where it was started ``watched``."""
        return read_looks(self.delivery_log.with_name(LOOK_LOG))


@dataclass
class ProducerProcess:
    """One JVM that sends along curves."""

    process: ManagedProcess = field(repr=False)

    @property
    def running(self) -> bool:
        """True until the plan is over or it was stopped."""
        return self.process.running

    def await_ready(self, timeout_s: float = READY_S) -> int:
        """Return the epoch milliseconds of second 0 of the curves, once sending begins."""
        return int(self.process.wait_for_line(r"(?m)^READY (\d+)$", timeout_s)[1])

    def wait(self, timeout_s: float) -> Sent:
        """Return the counts once the plan is over; raise StartFailedError when it is not in time."""
        self.process.wait_for_line(r"(?m)^DONE ", timeout_s)
        return self._sent()

    def stop(self) -> Sent:
        """Stop sending now, wait for answers still on their way, and return the counts."""
        self.process.stop(READY_S)
        return self.wait(timeout_s=1)

    def kill(self) -> None:
        """End it at once, without counts."""
        self.process.kill()

    def _sent(self) -> Sent:
        rows = re.findall(r"(?m)^SENT (\S+) (\S+) (\d+) (\d+) (\d+)$", self.process.output())
        return Sent(
            acknowledged={(topic, broker, int(queue)): int(ok) for topic, broker, queue, ok, _ in rows},
            failed={(topic, broker, int(queue)): int(bad) for topic, broker, queue, _, bad in rows},
        )


class RocketMQLoad:
    """Starts real clients of one version against a name server; ``stop`` ends all that still run."""

    def __init__(self, name_server: str, client_version: str, directory: Path) -> None:
        self.name_server = name_server
        self.client_version = client_version
        self._directory = directory
        self._java = find_program("java")
        self._class_path = compiled(client_version)
        self.processes: list[ManagedProcess] = []

    def start_consumer(
        self,
        *,
        group: str,
        topics: Sequence[str],
        instance: str | Sequence[str],
        client_ip: str = "127.0.0.1",
        strategy: str = "AVG",
        strategy_options: Mapping[str, str | int] | None = None,
        threads: int = 20,
        service_ms: float = 0.0,
        orderly: bool = False,
        consume_from: str = "CONSUME_FROM_FIRST_OFFSET",
        await_termination_ms: int = 0,
        log_deliveries: bool = True,
        options: Mapping[str, str | int] | None = None,
        java_properties: Mapping[str, str | int] | None = None,
        wait_ready: bool = True,
        watched: bool = False,
        on_order: bool = False,
        properties: Mapping[str, bool | int] | None = None,
        tells_messages: bool = False,
        polls: bool = False,
        fetches: bool = False,
        prefix: Sequence[str] = (),
    ) -> ConsumerProcess:
        """Start a consumer with client id ``client_ip@instance``; several instances share one JVM.

        ``strategy`` and its ``strategy_options``: AVG; AVG_BY_CIRCLE; CONSISTENT_HASH (``virtual-nodes``: 10);
        CONFIG (``queues``: "topic/broker/queue,..."); MACHINE_ROOM (``rooms``: "r1,..."); and
        MACHINE_ROOM_NEARBY-AVG and the like (``broker-rooms``: "broker-a=r1,...", ``client-rooms``:
        "127.0.0.1@c1=r1,..."). ``service_ms`` is spent on each message by one of ``threads`` threads.
        ``options``: ``poll-ms``, ``heartbeat-ms``, ``persist-ms``, ``batch``, ``pull-batch``; what is absent stays as
        the client has it. ``api-timeout-ms`` is ``API_TIMEOUT_MS`` where it is absent. With ``wait_ready=False`` it
        returns at once: call ``await_ready`` before relying on it. ``watched`` writes down what its looks show, and
        loses no delivery in a crash. With ``on_order`` it returns when the process is up and waits for ``begin``.
        ``properties`` go by the consumer's own names (``clientRebalance``), and only to a client that has them;
        ``tells_messages`` logs each message's id. With ``polls`` it is a lite pull consumer with one thread that polls,
        and without what only push consumers have (see ``Poller.java``); with ``fetches`` a pull consumer that asks each
        of its queues in turn (``Fetcher.java``). ``prefix``: words before the command, as of a network that can be cut.
        """
        instances = (instance,) if isinstance(instance, str) else tuple(instance)
        name = f"consumer-{group}-{instances[0]}"
        directory = self._own_directory(name)
        log = directory / "deliveries.tsv"
        flags: dict[str, str | int | float] = {
            "name-server": self.name_server,
            "group": group,
            "topics": ",".join(topics),
            "instances": ",".join(instances),
            "client-ip": client_ip,
            "strategy": strategy,
            "threads": threads,
            "service-ms": service_ms,
            "orderly": str(orderly).lower(),
            "consume-from": consume_from,
            "await-termination-ms": await_termination_ms,
            "api-timeout-ms": API_TIMEOUT_MS,
            **({"delivery-log": str(log)} if log_deliveries else {}),
            **({"look-log": str(directory / LOOK_LOG), "flush-each": "true"} if watched else {}),
            **({"on-order": "true"} if on_order else {}),
            **({"tell-messages": "true"} if tells_messages else {}),
            **({"set": ",".join(f"{key}={_java(value)}" for key, value in properties.items())} if properties else {}),
            **(strategy_options or {}),
            **(options or {}),
        }
        mode = "poll" if polls else "fetch" if fetches else "consume"
        process = self._start(name, directory, mode, flags, java_properties or {}, takes_orders=on_order, prefix=prefix)
        consumer = ConsumerProcess(tuple(f"{client_ip}@{one}" for one in instances), process, log)
        if on_order:
            consumer.await_loaded()
        elif wait_ready:
            consumer.await_ready()
        return consumer

    def start_producer(
        self,
        curves: Iterable[QueueCurve],
        *,
        body_bytes: int = 16,
        options: Mapping[str, str | int] | None = None,
        wait_ready: bool = True,
    ) -> ProducerProcess:
        """Start sending along ``curves``, to exactly their queues, evenly paced; it ends with the last point.

        ``options``: ``poll-ms``, after which it knows of a broker that came back; ``tags``, with commas, which a
        queue's messages bear by turns.
        """
        name = f"producer-{len(self.processes)}"
        directory = self._own_directory(name)
        plan = directory / "plan.txt"
        plan.write_text("".join(f"{curve.line()}\n" for curve in curves))
        flags: dict[str, str | int | float] = {
            "name-server": self.name_server,
            "plan": str(plan),
            "body-bytes": body_bytes,
            "api-timeout-ms": API_TIMEOUT_MS,
            **(options or {}),
        }
        producer = ProducerProcess(self._start(name, directory, "produce", flags, {}))
        if wait_ready:
            producer.await_ready()
        return producer

    def start_sender(
        self,
        keys: Mapping[str, int],
        rate: float,
        *,
        avoid_faults: bool = False,
        options: Mapping[str, str | int] | None = None,
    ) -> ManagedProcess:
        """Start a JVM with a client for each topic that chooses the queue: by round robin, or by the hash of some keys.

        ``keys`` says how many keys each topic has, 0 for none. It sends ``rate`` messages a second to each topic until
        it is stopped, synchronously and with the client's defaults (see ``Sender.java``). ``options``: ``poll-ms``;
        ``apart-ms`` between the starts of two clients.
        """
        name = f"sender-{len(self.processes)}"
        flags: dict[str, str | int | float] = {
            "name-server": self.name_server,
            "topics": ",".join(keys),
            "keys": ",".join(map(str, keys.values())),
            "rate": rate,
            "avoid-faults": str(avoid_faults).lower(),
            "api-timeout-ms": API_TIMEOUT_MS,
            **(options or {}),
        }
        process = self._start(name, self._own_directory(name), "send", flags, {})
        process.wait_for_line(r"(?m)^READY (\d+)$", READY_S)
        return process

    def start_ward(
        self, lines: Iterable[Mapping[str, str | int | float]], *, wait_ready: bool = True, heap: str = "512m"
    ) -> ConsumerProcess:
        """Start many groups in one JVM, each line's flags as ``consume`` takes them (see ``Ward.java``).

        Always needed: ``group``, ``topics``, ``instances``. Whatever else is absent is as in ``start_consumer``.
        """
        name = f"ward-{len(self.processes)}"
        directory = self._own_directory(name)
        usual: dict[str, str | int | float] = {
            "name-server": self.name_server,
            "client-ip": "127.0.0.1",
            "consume-from": "CONSUME_FROM_FIRST_OFFSET",
            "api-timeout-ms": API_TIMEOUT_MS,
        }
        wanted = [{**usual, **line} for line in lines]
        plan = directory / "plan.txt"
        plan.write_text("".join(f"{' '.join(f'--{key} {value}' for key, value in line.items())}\n" for line in wanted))
        ids = tuple(f"{line['client-ip']}@{one}" for line in wanted for one in str(line["instances"]).split(","))
        process = self._start(name, directory, "ward", {"plan": str(plan)}, {}, heap=heap)
        ward = ConsumerProcess(ids, process, directory / "deliveries.tsv")
        if wait_ready:
            ward.await_ready()
        return ward

    def stop(self) -> None:
        """Stop every client that still runs, all at the same time."""
        stop_together(self.processes)

    def _own_directory(self, name: str) -> Path:
        """Return a new directory; several loads of one cluster must not meet in it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"load-{name}-", dir=self._directory))

    def _start(
        self,
        name: str,
        directory: Path,
        mode: str,
        flags: Mapping[str, str | int | float],
        properties: Mapping[str, str | int],
        heap: str = "128m",
        takes_orders: bool = False,
        prefix: Sequence[str] = (),
    ) -> ManagedProcess:
        argv = [
            *prefix,
            self._java,
            f"-Xmx{heap}",
            *_JVM,
            *shared_classes(self._class_path),
            f"-Duser.home={directory}",
            *(f"-D{key}={value}" for key, value in properties.items()),
            "-cp",
            os.pathsep.join(map(str, self._class_path)),
            MAIN,
            mode,
            *(word for key, value in flags.items() for word in (f"--{key}", str(value))),
        ]
        process = ManagedProcess(name, argv, directory, takes_orders=takes_orders)
        self.processes.append(process)
        process.start()
        return process


def compiled(client_version: str) -> tuple[Path, ...]:
    """Return the class path of the load program with the real client jars of ``client_version``.

    Raise CannotRunHereError when javac, Maven or the jars are missing, StartFailedError when javac objects.
    """
    clients = class_path("rocketmq-client", [Coordinate(GROUP_ID, "rocketmq-client", client_version)])
    return program_jars("program-rocketmq", sorted(SOURCES.rglob("*.java")), clients)


def shared_classes(jars: Sequence[Path]) -> tuple[str, ...]:
    """Return options by which a JVM with this class path takes its classes from an archive."""
    return archive_options(MAIN, jars, lambda option: _try(jars, option))


def _try(jars: Sequence[Path], option: str) -> None:
    """Let a consumer that reaches nobody load what consumers load, and end."""
    flags = {"name-server": "127.0.0.1:1", "group": "g", "topics": "t", "instances": "i", "client-ip": "127.0.0.1"}
    more = {"strategy": "AVG", "consume-from": "CONSUME_FROM_FIRST_OFFSET", "api-timeout-ms": "1000"}
    words = [word for key, value in (flags | more).items() for word in (f"--{key}", value)]
    with workspace("archive") as folder:
        options = [*_JVM, option, f"-Duser.home={folder}"]
        argv = [find_program("java"), *options, "-cp", os.pathsep.join(map(str, jars)), MAIN, "consume", *words]
        process = ManagedProcess("archived", argv, folder)
        process.start()
        with suppress(StartFailedError):
            process.wait_until("its first steps", lambda: not process.running, ARCHIVED_S)
        process.stop(READY_S)
