"""Kill a broker under real producers that choose the queue: ``python -m tests.conformance.rocketmq.producing FILE 4``.

The number says how many kills; each appends one line of JSON to the file: the request of the forecast, what came into
each surviving queue in the time after, and when the backlog was gone. ``judge FILE`` prints what was seen beside what
is forecast. Inflow and backlog are counted from what consumers log: a message carries the time at which its broker
stored it.
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.inflow import find_inflow
from planner.forecast.rocketmq.membership.scenario import build_scenario
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import Delivery, QueueCurve, read_deliveries

KINDS = 3 * ("round_robin", "keyed")
"""The producers of the topics that one kill is done to; each topic has a group and a producer's client of its own."""
QUEUES, MEMBERS, THREADS, SERVICE_S = 4, 2, 2, 0.045
"""Queues a broker; members, and threads of each, and what one message takes them: 44 messages a second a member."""
RATE, KEYS = 48.0, 32
BACKLOG, BACKLOG_S, CALM_S = 60, 3.0, 12.0
"""Messages that wait in each surviving queue as the broker is killed, and the time in which they are sent, after
a calm one."""
ROUTE_POLL_S, EARLY_S, LATE_S, WATCHED_S, KNOWN_S = 30.0, 5.0, 35.0, 75.0, 55.0
"""How long a kill is watched, from when on every producer and consumer knows the new route, and the return."""
TRIALS = 1000
APART = {"apart-ms": 4_000}
"""How far apart the producers' clients start: each renews its route by a clock of its own."""
SHORT = 20
"""So many messages in all, more than a quarter of a second's, come together on their way and are no new backlog."""
IN_CALLS = MEMBERS * THREADS
"""So many messages are being consumed, and do not wait."""

Document = dict[str, Any]
Queue = tuple[str, int]


class Groups:
    """Some groups on one cluster; their first members are of one process, their second ones of another."""

    def __init__(self, cluster: RocketMQCluster, chance: random.Random) -> None:
        self.cluster, self.chance, self.load = cluster, chance, cluster.load()
        self.kinds = {f"kill-{number}": kind for number, kind in enumerate(KINDS)}
        self.folder = cluster.directory

    def start(self) -> None:
        """Start all clients, each process at its own time."""
        for topic in self.kinds:
            self.cluster.create_topic(topic, QUEUES)
            self.cluster.create_group(topic)
        for member in range(MEMBERS):
            self.load.start_ward(self._line(topic, member) for topic in self.kinds)
            time.sleep(self.chance.uniform(0, ROUTE_POLL_S / 2))
        self.load.start_sender(
            {topic: KEYS * (kind == "keyed") for topic, kind in self.kinds.items()}, RATE, options=APART
        )

    def _line(self, topic: str, member: int) -> dict[str, str | int | float]:
        return {
            "group": topic,
            "topics": topic,
            "instances": f"{topic}-c{member}",
            "threads": THREADS,
            "service-ms": SERVICE_S * 1000,
            "delivery-log": str(self._log(topic, member)),
        }

    def _log(self, topic: str, member: int) -> Path:
        return self.folder / f"{topic}-{member}.tsv"

    def deliveries(self, topic: str) -> list[Delivery]:
        """Return the first delivery of each message so far."""
        found = [one for member in range(MEMBERS) for one in read_deliveries(self._log(topic, member))]
        first = {(one.broker, one.queue, one.offset): one for one in sorted(found, key=lambda one: -one.epoch_ms)}
        return [one for one in first.values() if one.topic == topic]

    def kill(self) -> list[Document]:
        """Return what a broker's death did to each topic."""
        time.sleep(CALM_S)
        dead, alive = self.cluster.brokers[-1], self.cluster.brokers[:-1]
        points = ((0.0, BACKLOG / BACKLOG_S), (BACKLOG_S, BACKLOG / BACKLOG_S))
        filler = self.load.start_producer(
            [
                QueueCurve(topic, one.name, queue, points)
                for topic in self.kinds
                for one in alive
                for queue in range(QUEUES)
            ]
        )
        filled_ms = filler.await_ready()
        filler.wait(60)
        at_ms = time.time() * 1000
        dead.kill()
        time.sleep(WATCHED_S)
        return [self._observation(topic, dead.name, filled_ms, at_ms) for topic in self.kinds]

    def mend(self) -> None:
        """Return once the broker is back and every client knows of it."""
        self.cluster.brokers[-1].start()
        time.sleep(KNOWN_S)

    def _observation(self, topic: str, dead: str, filled_ms: float, at_ms: float) -> Document:
        deliveries = self.deliveries(topic)
        rates = _rates(deliveries, filled_ms - CALM_S * 1000, filled_ms)
        waiting = Counter((one.broker, one.queue) for one in deliveries if one.stored_ms < at_ms < one.epoch_ms)
        alive = [one for one in deliveries if one.broker != dead]
        early = _rates(alive, at_ms + 500, at_ms + EARLY_S * 1000)
        late = _rates(alive, at_ms + LATE_S * 1000, at_ms + (WATCHED_S - 10) * 1000)
        return {
            "request": {
                "system": "rocketmq",
                "versions": {"client": NEW, "broker": NEW},
                "group": topic,
                "strategy": "AVG",
                "queues": [
                    {"topic": topic, "broker": broker, "queue_id": queue, "rate": round(rate, 3)}
                    | {"lag": waiting[broker, queue]}
                    for (broker, queue), rate in sorted(rates.items())
                ],
                "clients": [{"id": f"127.0.0.1@{topic}-c{member}", "threads": THREADS} for member in range(MEMBERS)],
                "service_time_s": SERVICE_S,
                "change": {"kind": "broker_down", "broker": dead},
                "producers": self.kinds[topic],
            },
            "inflow": [
                [broker, queue, round(early.get((broker, queue), 0.0), 3), round(rate, 3)]
                for (broker, queue), rate in sorted(late.items())
            ],
            "backlog": _backlog(alive, at_ms),
        }


def _rates(deliveries: Any, from_ms: float, until_ms: float) -> dict[Queue, float]:
    counts: dict[Queue, int] = {}
    for one in deliveries:
        if from_ms <= one.stored_ms < until_ms:
            counts[one.broker, one.queue] = counts.get((one.broker, one.queue), 0) + 1
    return {queue: 1000 * count / (until_ms - from_ms) for queue, count in counts.items()}


def _backlog(alive: Sequence[Delivery], at_ms: float) -> list[int]:
    """Return how many messages were stored and not yet delivered, at each second after the kill."""
    moments = at_ms + 1000 * np.arange(WATCHED_S - 5)
    stored, delivered = (np.sort([getattr(one, name) for one in alive]) for name in ("stored_ms", "epoch_ms"))
    waiting = np.searchsorted(stored, moments) - np.searchsorted(delivered, moments)
    return [int(count) for count in waiting]


def drained_s(backlog: Sequence[int]) -> float | None:
    """Return the second at which the backlog is gone for good, ``None`` where one is left as the watch ends."""
    last = max((second for second, count in enumerate(backlog) if count > SHORT), default=-1)
    return next((float(second) for second in range(last + 1, len(backlog)) if backlog[second] <= IN_CALLS), None)


def judge(path: Path) -> None:
    """Print each kill beside its forecast: the inflow of each queue that is left, and when the backlog was gone.

    The whole inflow is what came in as all was settled again. Where less had come before the kill, the producers were
    behind (a busy machine), and what they made up for afterwards is in no forecast.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        seen = json.loads(line)
        request, is_behind = offered(seen)
        rates = [round(rate, 1) for *_, rate in seen["inflow"]]
        told, fixed = (
            forecast({**request, "producers": kind})["total"]["drained_s"] for kind in (request["producers"], "fixed")
        )
        print(
            f"{request['producers']:11} inflow {rates} in {inside(seen)} of {len(rates)}; "
            f"drained {drained_s(seen['backlog'])} s, forecast {_range(told)}, as if it stayed {_range(fixed)}"
            f"{'; the producers were behind' if is_behind else ''}",
            flush=True,
        )


def offered(seen: Document) -> tuple[Document, bool]:
    """Return the request at the rate that the producers offered, and whether they were behind it before the kill."""
    request = seen["request"]
    whole = sum(rate for *_, rate in seen["inflow"])
    before = sum(queue["rate"] for queue in request["queues"])
    queues = [{**queue, "rate": queue["rate"] * whole / before} for queue in request["queues"]]
    return {**request, "queues": queues, "trials": TRIALS}, before < 0.9 * whole


def inside(seen: Document) -> int:
    """Return how many of the queues that are left got what is forecast, give or take 5 %."""
    scenario = build_scenario(read_request(offered(seen)[0]))
    count = len(scenario.queues)
    nobody, idle = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=bool)
    inflow = find_inflow(scenario, nobody, np.array([1e6]), idle, np.random.default_rng(1))
    assert inflow is not None
    low, high = np.quantile(inflow.after, [0.05, 0.95], axis=0)
    of = {(queue.broker, queue.queue_id): index for index, queue in enumerate(scenario.queues)}
    return sum(
        0.95 * low[of[broker, queue]] <= rate <= 1.05 * high[of[broker, queue]]
        for broker, queue, _, rate in seen["inflow"]
    )


def _range(told: Document | None) -> str:
    return "never" if told is None else f"{told['p05']:.0f}–{told['p95']:.0f} s"


def main(arguments: Sequence[str]) -> None:
    """Watch so many kills on one cluster and append them to the file, or judge those that it has."""
    if arguments[0] == "judge":
        judge(Path(arguments[1]))
        return
    path, count = Path(arguments[0]), int(arguments[1])
    with RocketMQCluster.start(NEW) as cluster:
        groups = Groups(cluster, random.Random(time.time()))
        groups.start()
        for number in range(count):
            if number:
                groups.mend()
            seen = groups.kill()
            with path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{json.dumps(one)}\n" for one in seen))


if __name__ == "__main__":
    main(sys.argv[1:])
