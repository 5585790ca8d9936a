"""What a wave of groups runs on: a cluster that stays, and client processes of one version that are started anew."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from tests.clusters.errors import StartFailedError
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import ClientProcess, Delivery, Event
from tests.clusters.network import Apart, apart
from tests.clusters.processes import ManagedProcess
from tests.conformance.kafka.lateness import Lateness
from tests.conformance.kafka.logs import GrowingLog

BROKER_SETTINGS: Mapping[str, str] = {
    # So that the crash of a KIP-848 member need not take 45 s; each group says what it wants.
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
POLL_S = 0.2

Answer = TypeVar("Answer")


@dataclass
class Stage:
    """The cluster and its processes: producers, members that stay (``home``), victims of a crash or freeze.

    ``renewed``: members that come again by another release. ``network``: that of the victims alone.
    """

    cluster: KafkaCluster
    producers: ClientProcess
    home: GrowingLog
    victims: GrowingLog | None
    renewed: GrowingLog | None
    network: Apart | None
    lateness: Lateness
    _awake: threading.Event = field(default_factory=threading.Event)

    def process_of(self, *, is_victim: bool = False, is_renewed: bool = False) -> ClientProcess:
        """Return where such a member is started."""
        log = self.victims if is_victim else self.renewed if is_renewed else self.home
        assert log is not None, "this stage has no process for such members"
        return log.process

    def deliveries(self, topic: str) -> list[Delivery]:
        """Return all deliveries of a topic, oldest first."""
        return sorted((one for log in self._logs for one in log.deliveries(topic)), key=_time)

    def events(self, group: str) -> list[Event]:
        """Return what happened to the members of a group; their names begin with the group's."""
        return [one for log in self._logs for one in log.process.events() if one.client.startswith(f"{group}-")]

    def ask_to_stop(self, member: str) -> None:
        """Tell a member to close, wherever it runs; nothing happens where it does not."""
        for log in self._logs:
            begun = [one.kind for one in log.process.events() if one.client == member]
            if log.process.process.running and begun[-1:] != ["stopped"] and begun:
                log.process.ask_to_stop(member)

    def kill(self) -> int:
        """Crash the victims and return when."""
        at_ms = _now_ms()
        self.process_of(is_victim=True).kill()
        return at_ms

    def freeze(self, for_s: float) -> int:
        """Suspend the victims for so long, and return at once when."""
        process = self.process_of(is_victim=True)
        return self._away(process.freeze, process.resume, for_s)

    def cut(self, for_s: float) -> int:
        """Drop all packets from and to the victims for so long, and return at once when."""
        assert self.network is not None, "this stage has no network of its victims' own"
        return self._away(self.network.cut, self.network.heal, for_s)

    def _away(self, go: Callable[[], None], come: Callable[[], None], for_s: float) -> int:
        at_ms = _now_ms()
        go()

        def back() -> None:
            come()
            self._awake.set()

        threading.Timer(for_s, back).start()
        return at_ms

    def await_awake(self) -> None:
        """Return when frozen victims go on."""
        self._awake.wait()

    @property
    def _logs(self) -> list[GrowingLog]:
        return [log for log in (self.home, self.victims, self.renewed) if log is not None]


@contextmanager
def stage(
    cluster: KafkaCluster, client: str, *, with_victims: bool, release: str = "", is_cut: bool = False
) -> Iterator[Stage]:
    """Yield fresh client processes of one version, and of ``release`` if any; all are killed at the block's end.

    ``is_cut``: the victims' network can be cut.
    """
    processes: list[ManagedProcess] = []

    def started(version: str, prefix: Sequence[str] = ()) -> ClientProcess:
        process = cluster.load(version).start(prefix)
        processes.append(process.process)
        return process

    undo = ExitStack()
    try:
        network = undo.enter_context(apart()) if is_cut else None
        producers, home = started(CLIENT), GrowingLog(started(client))
        victims = GrowingLog(started(client, network.prefix if network else ())) if with_victims else None
        renewed = GrowingLog(started(release)) if release else None
        with Lateness() as lateness:
            yield Stage(cluster, producers, home, victims, renewed, network, lateness)
    finally:
        for process in processes:
            process.kill()
        undo.close()


def await_true(what: str, probe: Callable[[], Answer | None], timeout_s: float, every_s: float = POLL_S) -> Answer:
    """Return the first true answer of ``probe``; raise StartFailedError naming ``what`` when none comes in time."""
    deadline = time.monotonic() + timeout_s
    while not (answer := probe()):
        if time.monotonic() > deadline:
            raise StartFailedError(f"no {what} within {timeout_s:g} s")
        time.sleep(every_s)
    return answer


def _time(delivery: Delivery) -> int:
    return delivery.epoch_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
