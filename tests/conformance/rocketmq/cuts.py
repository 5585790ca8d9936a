"""Cut one member of real groups off from one of two brokers: ``python -m tests.conformance.rocketmq.cuts``.

Prints what was seen beside what is forecast. Each argument names a group of ``GROUPS``, all where none is named;
``again FILE`` forecasts anew what an earlier run has written to its file (``CUTS_LOG``, cuts.jsonl unless set). Not
kept as observations: the collector's absences are of members that are cut off from everybody.
"""

import json
import math
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.documents.forecast import forecast
from tests.clusters.network import Apart, apart
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve
from tests.conformance.measure import Delivered, Hold, Log, NotSettledError, Queue, measure, owners_of, parts
from tests.patience import await_steady

TOPIC, QUEUES, RATE, MOST_S = "orders", 4, 8.0, 3_600.0
STAYING, CUT_OFF = ("c1", "c3"), "c2"
LOST = "broker-b"
HEARTBEAT_S, IDLE_S = 10.0, 30.0
BROKER = {"serverChannelMaxIdleTimeSeconds": str(int(IDLE_S))}
TIMERS = {"heartbeatBrokerInterval": int(HEARTBEAT_S * 1000), "serverChannelMaxIdleTimeSeconds": int(IDLE_S)}
"""Brokers that wait for 120 s would be watched for minutes; they wait for more than two heartbeats, as theirs do."""
API_TIMEOUT_MS = 3_000
"""What clients have by default: a look that asks a broker out of reach takes as long."""
LOCKS = {"rocketmq.client.rebalance.lockInterval": 10_000, "rocketmq.client.rebalance.lockMaxLiveTime": 15_000}
LOCKED = {"rocketmq.broker.rebalance.lockMaxLiveTime": 30_000}
"""Half of the defaults, all three."""
CUTS_S = (45.0, 6.0, 25.0, 60.0, 12.0, 40.0)
STEADY_S, COME_S, AFTERWARDS_S = 4.0, 90.0, 24.0
BEFORE_S = 6.0

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a group's clients are; ``settings`` and ``options`` are the request's."""

    client: str = NEW
    service_s: float = 0.05
    threads: int = 20
    orderly: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def consumer(self) -> str:
        """Return the option of that name."""
        return str(self.options.get("consumer", "push"))


LITE_PULL: Mapping[str, Any] = {"consumer": "lite_pull"}
GROUPS: Mapping[str, Kind] = {
    "push": Kind(),
    "push-old": Kind("4.9.8"),
    "lite-pull": Kind(service_s=0.002, threads=1, options=LITE_PULL),
    "lite-pull-old": Kind("4.9.8", service_s=0.002, threads=1, options=LITE_PULL),
    "pull": Kind(service_s=0.002, threads=1, options={"consumer": "pull"}),
    "pull-old": Kind("4.9.8", service_s=0.002, threads=1, options={"consumer": "pull"}),
    "orderly": Kind(service_s=0.02, orderly=True, settings=LOCKS),
    "orderly-old": Kind("4.9.8", service_s=0.02, orderly=True, settings=LOCKS),
    "by-broker": Kind(settings={"clientRebalance": False}),
}


class Group:
    """One group: the one that is cut off in a process of its own, push consumers that stay in one together."""

    def __init__(self, cluster: RocketMQCluster, name: str, network: Apart, timers: Mapping[str, int] = TIMERS) -> None:
        self.cluster, self.name, self.network, self.kind, self.timers = cluster, name, network, GROUPS[name], timers
        cluster.create_group(name)
        staying = [STAYING] if self.kind.consumer == "push" else [(one,) for one in STAYING]
        self.processes = [self._start(one, ()) for one in staying]
        self.processes.append(self._start((CUT_OFF,), network.prefix))

    def _start(self, instances: Sequence[str], prefix: Sequence[str]) -> ConsumerProcess:
        kind = self.kind
        return self.cluster.load(kind.client).start_consumer(
            group=self.name,
            topics=[TOPIC],
            instance=instances if len(instances) > 1 else instances[0],
            threads=kind.threads,
            service_ms=kind.service_s * 1000,
            orderly=kind.orderly,
            options={"heartbeat-ms": self.timers["heartbeatBrokerInterval"], "api-timeout-ms": API_TIMEOUT_MS},
            properties={name: value for name, value in kind.settings.items() if name == "clientRebalance"},
            java_properties={name: value for name, value in kind.settings.items() if name in LOCKS},
            watched=True,
            polls=kind.consumer == "lite_pull",
            fetches=kind.consumer == "pull",
            prefix=prefix,
            wait_ready=False,
        )

    def request(self, for_s: float) -> Document:
        """Return the forecast request of a cut as long."""
        return {
            "system": "rocketmq",
            "versions": {"client": self.kind.client, "broker": NEW},
            "group": self.name,
            "strategy": "AVG",
            "options": dict(self.kind.options),
            "queues": [
                {"topic": TOPIC, "broker": broker.name, "queue_id": queue, "rate": RATE, "lag": 0}
                for broker in self.cluster.brokers
                for queue in range(QUEUES)
            ],
            "clients": [
                {"id": member, "threads": self.kind.threads, "orderly": self.kind.orderly} for member in self.members
            ],
            "service_time_s": self.kind.service_s,
            "settings": {**self.kind.settings, **self.timers, **(LOCKED if self.kind.orderly else {})},
            "change": {
                "kind": "partition",
                "clients": [f"127.0.0.1@{CUT_OFF}"],
                "brokers": [LOST],
                "for_s": round(for_s, 3),
            },
        }

    @property
    def members(self) -> list[str]:
        """Return the ids of all three."""
        return sorted(member for process in self.processes for member in process.client_ids)

    def deliveries(self) -> list[Delivery]:
        """Return all that members were given, the oldest first."""
        found = [one for process in self.processes for one in process.deliveries()]
        return sorted(found, key=lambda one: one.epoch_ms)

    def owners(self) -> dict[Queue, set[str]]:
        """Return who owns each queue by everybody's last look."""
        found: dict[Queue, set[str]] = {}
        for hold in self.holds(0.0):
            if math.isinf(hold.dropped_s):
                found.setdefault(hold.queue, set()).add(hold.member)
        return found

    def holds(self, at_ms: float) -> list[Hold]:
        """Return all holds by what looks show, in seconds since a moment."""
        found: list[Hold] = []
        gained: dict[tuple[str, Queue], float] = {}
        for look in (one for process in self.processes for one in process.looks() if one.topic == TOPIC):
            now_s, mine = (look.epoch_ms - at_ms) / 1000, {(TOPIC, *queue) for queue in look.queues}
            for member, queue in [key for key in gained if key[0] == look.client_id and key[1] not in mine]:
                found.append(Hold(member, queue, gained.pop((member, queue)), now_s))
            for queue in mine:
                gained.setdefault((look.client_id, queue), now_s)
        return [*found, *(Hold(member, queue, at_s) for (member, queue), at_s in gained.items())]

    def log(self, at_ms: float, for_s: float) -> Log:
        """Return what was logged around a cut; who is cut off holds nothing of that broker meanwhile."""
        since_ms = at_ms - 1000 * BEFORE_S
        deliveries = [
            Delivered(
                (one.epoch_ms - at_ms) / 1000,
                one.client_id,
                (one.topic, one.broker, one.queue),
                one.offset,
                (one.stored_ms - at_ms) / 1000,
            )
            for one in self.deliveries()
            if one.epoch_ms >= since_ms
        ]
        holds = [part for hold in self.holds(at_ms) for part in self._reached(hold, for_s)]
        return Log(deliveries, holds, -BEFORE_S, time.time() - at_ms / 1000 - 0.2)

    def _reached(self, hold: Hold, for_s: float) -> list[Hold]:
        is_lost = hold.queue[1] == LOST and hold.member.endswith(CUT_OFF)
        return list(parts(hold, [(0.0, for_s)])) if is_lost else [hold]


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut of one group: from when on, in epoch milliseconds, and for how long."""

    at_ms: float
    for_s: float


def watch(names: Sequence[str], out: Path) -> None:
    """Cut one member of each of these groups off again and again, and print what came of it."""
    with RocketMQCluster.start(NEW, settings=BROKER, java_properties=_java(LOCKED)) as cluster, ExitStack() as undo:
        cluster.create_topic(TOPIC, QUEUES)
        groups = [Group(cluster, name, undo.enter_context(apart())) for name in names]
        for process in [process for group in groups for process in group.processes]:
            process.await_ready()
        places = [(broker.name, queue) for broker in cluster.brokers for queue in range(QUEUES)]
        curves = [QueueCurve(TOPIC, *place, ((0.0, RATE), (MOST_S, RATE))) for place in places]
        cluster.load().start_producer(curves, options={"poll-ms": 1000})
        for for_s in CUTS_S:
            await_rest(groups)
            time.sleep(random.uniform(0, HEARTBEAT_S))
            cuts = cut_off(groups, for_s)
            time.sleep(AFTERWARDS_S)
            await_rest(groups)
            for group, cut in zip(groups, cuts, strict=True):
                tell(seen(group, cut), out)


def await_rest(groups: Sequence[Group]) -> None:
    """Return once all queues have had their owners for a while; say so where that takes too long."""
    wanted = [owners_of(forecast({**group.request(1.0), "change": _STILL})["before"]) for group in groups]
    try:
        await_steady(lambda: [group.owners() for group in groups] == wanted, STEADY_S, COME_S)
    except AssertionError:
        restless = [group.name for group, owners in zip(groups, wanted, strict=True) if group.owners() != owners]
        print(f"not at rest: {', '.join(restless)}", flush=True)


_STILL = {"kind": "freeze", "clients": [f"127.0.0.1@{CUT_OFF}"], "for_s": 1.0}


def cut_off(groups: Sequence[Group], for_s: float) -> list[Cut]:
    """Cut one member of each group off from one broker, one group after the other."""
    address = groups[0].cluster.broker(LOST).address
    begun_ms = []
    for group in groups:
        group.network.cut(address)
        begun_ms.append(time.time() * 1000)
    time.sleep(for_s)
    cuts = []
    for group, at_ms in zip(groups, begun_ms, strict=True):
        cuts.append(Cut(at_ms, time.time() - at_ms / 1000))
        group.network.heal()
    return cuts


def seen(group: Group, cut: Cut) -> Document:
    """Return the request of a cut and what was seen of it."""
    record: Document = {"name": group.name, "request": group.request(cut.for_s), "load": os.getloadavg()[0]}
    try:
        return {**record, "observed": measure(group.log(cut.at_ms, cut.for_s))}
    except NotSettledError as error:
        return {**record, "not_settled": str(error)}


def tell(record: Document, out: Path | None = None) -> None:
    """Print what was seen beside what is forecast, and write it down."""
    if out is not None:
        with out.open("a") as file:
            file.write(f"{json.dumps(record)}\n")
    for_s, load = record["request"]["change"]["for_s"], record["load"]
    if "observed" not in record:
        print(f"{record['name']} {for_s:.1f} s (load {load:.1f}): {record['not_settled']}", flush=True)
        return
    total, answer = record["observed"]["total"], forecast(record["request"])
    figures = ", ".join(
        f"{name} {_beside(total[name], answer['total'][name])}"
        for name in ("moved_queues", "duplicates", "settle_s", "stall_s")
    )
    print(f"{record['name']} {for_s:.1f} s (load {load:.1f}): {figures}", flush=True)


def _beside(value: float | None, told: Document | None) -> str:
    shown = "none" if value is None else format(value, ".4g")
    if told is None or value is None:
        return f"{shown} (not told)"
    is_within = told["p05"] - 5e-4 <= value <= told["p95"] + 5e-4
    return f"{shown} ({told['p05']:.4g}–{told['p95']:.4g}){'' if is_within else ' MISSED'}"


def _java(settings: Mapping[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def main(words: Sequence[str]) -> None:
    """Watch the groups of these names, or forecast an earlier run anew."""
    if words[:1] == ["again"]:
        for line in Path(words[1]).read_text().splitlines():
            tell(json.loads(line))
        return
    watch(words or list(GROUPS), Path(os.environ.get("CUTS_LOG", "cuts.jsonl")))


if __name__ == "__main__":
    main(sys.argv[1:])
