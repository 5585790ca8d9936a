"""Run series of transitions on real clusters, several at once, and keep what was seen."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil

from planner.documents.forecast import forecast
from tests.clusters.errors import StartFailedError
from tests.clusters.network import Apart, apart
from tests.clusters.rocketmq import RocketMQCluster
from tests.clusters.rocketmq_load import RocketMQLoad
from tests.conformance.measure import NotSettledError, Queue, measure, owners_of
from tests.conformance.record import Record
from tests.conformance.rocketmq.cells import SYSTEM, Series, Step
from tests.conformance.rocketmq.changes import Change, Resize, resize, resized_curves, resizes
from tests.conformance.rocketmq.group import OF_BROKER, LiveGroup
from tests.conformance.rocketmq.performing import LASTING, perform
from tests.conformance.store import Store

WARM_S = 12.0
ROUTE_POLL_S = 30.0
SPREAD_S = dict.fromkeys(("queues", "brokers", "polled_brokers", "fetched", "silent"), ROUTE_POLL_S)
"""Within which time the first members start, by kind of series; at once where a timer of theirs decides nothing."""
PHASES_S = {
    "orderly": 20.0,
    "brokers": ROUTE_POLL_S,
    "polled_brokers": ROUTE_POLL_S,
    "fetched": ROUTE_POLL_S,
    "silent": ROUTE_POLL_S,
    **dict.fromkeys(("lite_pull", "polled_freezes", "polled_cuts"), 5.0),
}
SHORT_PHASES_S = 3.0
"""Within which time a change begins after the one before has settled: any phase of the clock that decides."""
CUT = ("cuts", "polled_cuts", "fetched")
"""Kinds of series whose members have a network each, which can be cut."""
ALONE = (*CUT, "brokers", "freezes", "polled_brokers", "polled_freezes")
"""Kinds of series whose clusters nobody else uses: brokers die, or have settings of their own."""
AFTERWARDS_S = 4.0
MOST_SETTLE_S = 160.0
QUIET_S = 2.5
"""For so long after a change nobody else begins one, nor starts a process: delays would be the machine's."""
SAMPLE_S = 0.5
PRESSURE = Path("/proc/pressure/cpu")
CALM, MOST_CALM_S = 0.5, 20.0
"""A change waits until somebody waits for a processor in no more of the time, for 20 seconds at most."""
HIGHEST_PRESSURE, HIGHEST_AT_STARTS, LATEST_S = 0.95, 0.6, 3.0
"""A transition in whose first seconds more was waited is the machine's more than the group's: it is not kept.

A start takes seconds of a processor, whoever else wants it; what running processes do for each other takes none.
"""


class Machine:
    """How busy the machine is, and whose turn it is to disturb it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._seen: list[tuple[float, float, float]] = []
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def turn(self, then_s: float = 0.0) -> Iterator[None]:
        """Have the machine to oneself, and for ``then_s`` afterwards."""
        with self._turn:
            yield
            time.sleep(then_s)

    def busy(self, since: float, until: float) -> float:
        """Return the busy share of all processors between two epoch seconds, of those that do not give way."""
        return self._mean(1, since, until)

    def pressure(self, since: float, until: float) -> float:
        """Return in which share of the time somebody waited for a processor (Linux's pressure stall information)."""
        return self._mean(2, since, until)

    def await_calm(self, most_s: float = MOST_CALM_S) -> None:
        """Return when the machine was calm for a second, does not become so, or does not tell."""
        deadline = time.time() + most_s
        time.sleep(1.0)
        while self._seen and time.time() < deadline and self.pressure(time.time() - 1.2, time.time()) > CALM:
            time.sleep(0.25)

    def _mean(self, which: int, since: float, until: float) -> float:
        found = [one[which] for one in self._seen if since <= one[0] <= until + SAMPLE_S]
        return sum(found) / len(found) if found else 1.0

    def _watch(self) -> None:
        if not PRESSURE.exists():  # then it counts as busy
            return
        waited_s = _waited_s()
        while True:
            spent = psutil.cpu_times_percent(SAMPLE_S)
            busy = (100 - spent.idle - spent.iowait - spent.nice) / 100  # those with a nice value give way
            before_s, waited_s = waited_s, _waited_s()
            pressure = min((waited_s - before_s) / SAMPLE_S, 1.0)
            self._seen = [*self._seen[-2000:], (time.time(), busy, pressure)]


def _waited_s() -> float:
    """Return for how many seconds since the boot somebody has waited for a processor."""
    return int(PRESSURE.read_text().split("total=")[1].split()[0]) / 1e6


class Collector:
    """Clusters and clients of every version, started when first needed."""

    def __init__(self, store: Store, deadline: float, tell: bool = True) -> None:
        self._store = store
        self._deadline = deadline
        self._machine = Machine()
        self._lock = threading.Lock()
        self._undo = ExitStack()
        self._clusters: dict[str, RocketMQCluster] = {}
        self._loads: dict[tuple[str, str], RocketMQLoad] = {}
        self._tell = tell

    def __enter__(self) -> "Collector":
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def run(self, wanted: list[Series], slots: int) -> None:
        """Run these series, ``slots`` at once, until all are done or the time is over.

        A series of which anything is there is left alone: its later steps would not follow from the same group.
        """
        there = self._store.ids()
        missing = iter([series for series in wanted if there.isdisjoint(series.ids())])
        with ThreadPoolExecutor(slots) as pool:
            for done in [pool.submit(self._work, missing) for _ in range(slots)]:
                done.result()

    def _work(self, missing: Iterator[Series]) -> None:
        while time.time() < self._deadline:
            with self._lock:
                series = next(missing, None)
            if series is None:
                return
            try:
                self._series(series)
            except (StartFailedError, OSError) as error:
                print(f"{series.kind} {series.number}: {error}", flush=True)

    def _series(self, series: Series) -> None:
        with ExitStack() as undo:
            cluster, load = self._alone(series, undo) if series.kind in ALONE else self._started(series)
            network = (lambda: undo.enter_context(apart())) if series.kind in CUT else None
            self._change_all(series, cluster, load, network)

    def _change_all(
        self, series: Series, cluster: RocketMQCluster, load: RocketMQLoad, network: Callable[[], Apart] | None
    ) -> None:
        drawn = random.Random(f"{series.kind} {series.number} run")
        name = f"{series.kind[:2]}{series.number}-{int(time.time()) % 1_000_000}"  # short: it stands in every record
        group = LiveGroup(series.config, cluster, load, name, drawn, apart=network)
        try:
            plan = resizes(group, series.steps) if series.kind == "queues" else []
            curves = resized_curves(group, plan) if plan else group.flat_curves()
            if series.kind in SPREAD_S:
                group.start(curves, SPREAD_S[series.kind])
            else:
                with self._machine.turn():
                    group.start(curves)
            time.sleep(WARM_S)
            for index, step in enumerate(series.steps):
                if time.time() > self._deadline:
                    return
                time.sleep(drawn.uniform(0, PHASES_S.get(series.kind, SHORT_PHASES_S)))
                change = self._change(group, step, plan[index] if plan else None)
                if not self._keep(series, index, group, change):
                    return
        finally:
            group.stop()

    def _change(self, group: LiveGroup, step: Step, plan: Resize | None) -> Change:
        if plan is not None:
            return resize(group, plan)
        if step["kind"] in LASTING:
            return perform(group, step, self._machine.await_calm)
        with self._machine.turn(QUIET_S):
            return perform(group, step, self._machine.await_calm)

    def _started(self, series: Series) -> tuple[RocketMQCluster, RocketMQLoad]:
        """Return cluster and clients of the series' versions, started if they are the first of their kind."""
        with self._lock:
            broker, client = series.config.broker, series.config.client
            if broker not in self._clusters:
                with self._machine.turn():
                    self._clusters[broker] = self._undo.enter_context(RocketMQCluster.start(broker))
            if (broker, client) not in self._loads:
                self._loads[broker, client] = self._clusters[broker].load(client)
            return self._clusters[broker], self._loads[broker, client]

    def _alone(self, series: Series, undo: ExitStack) -> tuple[RocketMQCluster, RocketMQLoad]:
        """Return a cluster and clients of the series' versions that nobody else uses."""
        settings = {name: str(value) for name, value in series.config.settings.items() if name in OF_BROKER}
        with self._machine.turn():
            cluster = undo.enter_context(RocketMQCluster.start(series.config.broker, settings=settings))
        return cluster, cluster.load(series.config.client)

    def _keep(self, series: Series, index: int, group: LiveGroup, change: Change) -> bool:
        """Keep what was seen of a change; False where the group is not as forecast and may not go on.

        A group that was not at rest when it began tells nothing: minutes may lie between a look and the change.
        """
        answer = forecast(change.request)
        if group.owners(change.at_ms) != owners_of(answer["before"]):
            print(f"{series.kind} {series.number}.{index}: not kept: the group was not at rest before", flush=True)
            return False
        settled = await_settled(group, change, owners_of(answer["after"]))
        if not all(life.process.running for life in group.members):
            print(f"{series.kind} {series.number}.{index}: not kept: a member has died", flush=True)
            return False
        label = f"{series.kind} {series.number}.{index} {series.config.client} on {series.config.broker}"
        try:
            seen = measure(group.log(change.at_ms, change.before_s))
        except NotSettledError as error:
            print(f"{label}: not kept: {error}", flush=True)
            return False
        since = change.at_ms / 1000
        busy, pressure = (look(since, since + LATEST_S) for look in (self._machine.busy, self._machine.pressure))
        setup = {
            "client": series.config.client,
            "broker": series.config.broker,
            "when": datetime.fromtimestamp(change.at_ms / 1000, UTC).isoformat(timespec="seconds"),
            "busy": round(busy, 2),
            "pressure": round(pressure, 2),
            **({"starts_s": list(change.starts_s)} if change.starts_s else {}),
            "series": f"{series.kind} {series.number}.{index}",
        }
        record = Record(series.ids()[index], SYSTEM, change.request, seen, setup)
        with self._lock:
            if pressure <= highest_pressure(change) and record.id not in self._store.ids():
                self._store.add([record])
        print(f"{label}: {record.kind} pressure {pressure:.0%} {seen['total']}", flush=True)
        return settled


def highest_pressure(change: Change) -> float:
    """Return in which share of its first seconds somebody may wait for a processor, if a change is to tell anything."""
    return HIGHEST_AT_STARTS if change.starts_s else HIGHEST_PRESSURE


def await_settled(group: LiveGroup, change: Change, expected: dict[Queue, set[str]]) -> bool:
    """Return True some seconds after every queue has the expected owner and is delivered; False when time is over."""
    deadline = change.at_ms / 1000 + MOST_SETTLE_S
    while group.owners() != expected:
        if time.time() > deadline:
            return False
        time.sleep(0.25)
    while time.time() < deadline:
        time.sleep(AFTERWARDS_S)
        try:
            measure(group.log(change.at_ms, change.before_s))
        except NotSettledError:
            continue
        return True
    return False
