"""Watch real groups whose brokers allocate while routes change: ``python -m tests.conformance.rocketmq.routing 2``.

Prints what was seen beside what is forecast; the number says how often one broker gets more queues, and fewer, dies and
is started again. Clients pull. Each starts at its own time, and so do brokers: both renew their routes by their own
clocks. Not kept as observations: what a broker forgets as it dies comes twice, too, and is left out here.
"""

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.documents.forecast import forecast
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import NEW, Broker, QueueCounts, RocketMQCluster
from tests.conformance.measure import Log, NotSettledError, measure, owners_of
from tests.conformance.rocketmq.cells import Config
from tests.conformance.rocketmq.group import LiveGroup

GROUPS, MEMBERS, QUEUES, RATE, SERVICE_S = 2, 3, 4, 8.0, 0.2
MORE = 2
"""So many queues one broker gets, and loses again; nobody writes to them."""
SETTINGS = {"clientRebalance": False}
ROUTE_POLL_S, WARM_S, AFTERWARDS_S, MOST_S = 30.0, 15.0, 45.0, 150.0
FORGOTTEN_S = 5.0
"""What was delivered so long before a change and comes again because of it: not what a broker forgot as it died."""
FIGURES = ("duplicates", "pause_s", "stall_s", "settle_s", "moved_queues")

Document = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change of one group: when, what was asked of the forecast, and what came of it."""

    at_ms: float
    request: Document
    seen: Document

    def told(self) -> str:
        """Return a line with what was seen beside what is forecast."""
        total = forecast(self.request)["total"]
        figures = (f"{name} {self.seen['total'][name]} {_range(total[name])}" for name in FIGURES)
        return f"{self.request['group']} {self.request['change']}: {', '.join(figures)}"


def _range(told: Document | None) -> str:
    return "(forecast none)" if told is None else f"(forecast {told['p05']:.3g}–{told['p95']:.3g})"


class Watch:
    """Some groups on one cluster, each with a topic of its own; every change is one of all of them."""

    def __init__(self, cluster: RocketMQCluster, number: int) -> None:
        self.cluster, self.random = cluster, random.Random(number)
        self.extra = 0
        config = Config(NEW, NEW, "AVG", {}, MEMBERS, QUEUES, RATE, SERVICE_S, settings=SETTINGS)
        names = [f"routed-{number}-{place}" for place in range(GROUPS)]
        self.groups = [LiveGroup(config, cluster, cluster.load(), name, random.Random(name)) for name in names]

    @property
    def resized(self) -> Broker:
        """Return the broker that gets queues; another one dies."""
        return self.cluster.brokers[0]

    def start(self) -> None:
        """Start all members at their own times, and all brokers but one anew: return when messages come."""
        for broker in self.cluster.brokers[1:]:
            time.sleep(self.random.uniform(0, ROUTE_POLL_S))
            broker.restart()
        for group in self.groups:
            group.start(group.flat_curves(), ROUTE_POLL_S)
        time.sleep(WARM_S)

    def course(self) -> Iterator[Change]:
        """Do one change after the other, each as the group is at rest; yield what was seen."""
        name = self.cluster.brokers[-1].name
        place = {"kind": "queues", "broker": self.resized.name, "write_queues": QUEUES}
        yield from self._changed({**place, "read_queues": QUEUES + MORE})
        yield from self._changed({**place, "read_queues": QUEUES})
        yield from self._changed({"kind": "broker_down", "broker": name})
        yield from self._changed({"kind": "broker_up", "broker": name})

    def stop(self) -> None:
        for group in self.groups:
            group.stop()

    def _changed(self, change: Document) -> Iterator[Change]:
        time.sleep(self.random.uniform(0, ROUTE_POLL_S))
        asked = [(group, self._request(group, change)) for group in self.groups]
        at_ms = time.time() * 1000
        self._do(change)
        for group, request in asked:
            after = owners_of(forecast(request)["after"])
            _await_owners(group, after, at_ms)
        time.sleep(AFTERWARDS_S)
        for group, request in asked:
            try:
                yield Change(at_ms, request, measured(group, at_ms))
            except NotSettledError as error:
                print(f"{group.name} {change}: not settled: {error}", flush=True)

    def _request(self, group: LiveGroup, change: Document) -> Document:
        topic = {"topic": group.name} if change["kind"] == "queues" else {}
        members = [life.client_id for life in group.members]
        request = group.request({**change, **topic}, group.strategy, group.options, members, {})
        queues = [
            *request["queues"],
            *(
                {"topic": group.name, "broker": self.resized.name, "queue_id": QUEUES + queue, "rate": 0, "lag": 0}
                for queue in range(self.extra)
            ),
        ]
        return {**request, "queues": queues}

    def _do(self, change: Mapping[str, Any]) -> None:
        match change["kind"]:
            case "queues":
                counts = QueueCounts(change["read_queues"], change["write_queues"])
                for group in self.groups:
                    remoting.update_topic(self.resized.address, group.name, counts)
                self.extra = change["read_queues"] - QUEUES
            case "broker_down":
                self.cluster.broker(change["broker"]).kill()
            case "broker_up":
                self.cluster.broker(change["broker"]).process.start()


def measured(group: LiveGroup, at_ms: float) -> Document:
    """Return what came of a change, of the queues that get messages and without what a broker had forgotten."""
    log = group.log(at_ms, FORGOTTEN_S)
    delivered = {one.queue for one in log.deliveries}
    return measure(Log(log.deliveries, [one for one in log.holds if one.queue in delivered], log.begins_s, log.ends_s))


def _await_owners(group: LiveGroup, expected: Mapping[Any, set[str]], at_ms: float) -> None:
    """Return when they own what is expected, or the time is over: what was seen says what is wrong."""
    while group.owners() != expected and time.time() < at_ms / 1000 + MOST_S:
        time.sleep(0.5)


def main(arguments: Sequence[str]) -> None:
    """Watch so many courses, once where no number is given."""
    for number in range(int(arguments[0]) if arguments else 1):
        with RocketMQCluster.start(NEW) as cluster:
            watch = Watch(cluster, number)
            try:
                watch.start()
                for change in watch.course():
                    print(change.told(), flush=True)
            finally:
                watch.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
