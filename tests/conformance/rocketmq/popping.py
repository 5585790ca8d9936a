"""Watch real groups that pop while things change: ``python -m tests.conformance.rocketmq.popping absences``.

Prints what was seen beside what is forecast. Not kept as observations: those know a message by its offset, and what
comes again has another one, and a queue has one owner there. Here a message is known by its id.

- ``absences``: one member of four stands still or is cut off for 4, 15 and 50 s; brokers wait 30 s for it.
- ``cuts``: the same member is cut off from one of two brokers only, for 4, 15, 40 and 55 s.
- ``brokers``: one of two dies and is started again; a topic gets more queues on the other one, and fewer.
- ``successions``: three members get another strategy in turn; then another group takes over.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from planner.documents.forecast import forecast
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.network import Apart, apart
from tests.clusters.rocketmq import NEW, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve

TOPIC, QUEUES, RATE, SERVICE_S, THREADS = "orders", 2, 8.0, 0.4, 20
INVISIBLE_S, MOST_S = 8.0, 3_600.0
SETTINGS = {"clientRebalance": False, "popInvisibleTime": int(INVISIBLE_S * 1000)}
TIMERS = {"heartbeatBrokerInterval": 10_000, "serverChannelMaxIdleTimeSeconds": 30}
"""Brokers that wait for 120 s would be watched for minutes."""
LETS_POP = {"timerWheelEnable": "true", "maxMessageSize": str(256 * 1024)}
"""See ``tests/contract/test_broker_allocation_live.py``."""
SHARES: Mapping[str, int] = {"everything": -1, "two-shares": 1}
MEMBERS, ABSENT = ("c1", "c2", "c4"), "c3"
ABSENCES = (("freeze", 4.0), ("freeze", 15.0), ("partition", 4.0), ("partition", 15.0))
LONG_ABSENCES = (("freeze", 50.0), ("partition", 50.0))
CUTS_S = (4.0, 15.0, 40.0, 55.0)
WARM_S, AFTERWARDS_S, ROUTE_S, APART_S = 45.0, 25.0, 75.0, 20.0
WAITED_S = 3.0
"""No message waits so long unless its member was away: not even after the shortest absence of ours."""
FORGOTTEN_S = 5.0
"""What was delivered so long before a change and comes again because of it: not what a broker forgot as it died."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one change: second deliveries, first ones that came late, and when the last of them did."""

    twice: int
    late: int
    last_s: float | None


@dataclass
class Group:
    """One group, the processes that it ever had, and the members that it has now."""

    cluster: RocketMQCluster
    name: str
    share: int
    processes: list[ConsumerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster.create_group(self.name)
        for broker in self.cluster.brokers:
            remoting.pop(broker.address, TOPIC, self.name, self.share)

    def start(
        self, *instances: str, prefix: Sequence[str] = (), strategy: str = "AVG", on_order: bool = False
    ) -> ConsumerProcess:
        process = self.cluster.load().start_consumer(
            group=self.name,
            topics=[TOPIC],
            instance=instances,
            strategy=strategy,
            threads=THREADS,
            service_ms=SERVICE_S * 1000,
            watched=True,
            tells_messages=True,
            properties=SETTINGS,
            options={"heartbeat-ms": TIMERS["heartbeatBrokerInterval"]},
            prefix=prefix,
            on_order=on_order,
            wait_ready=False,
        )
        self.processes.append(process)
        return process

    @property
    def members(self) -> list[str]:
        """The ids of those that are up, once each: a successor that waits for its turn has the id of who goes."""
        return sorted({member for process in self.processes if process.running for member in process.client_ids})

    def deliveries(self) -> list[Delivery]:
        found = [one for process in self.processes for one in process.deliveries()]
        return sorted(found, key=lambda one: one.epoch_ms)

    def request(self, change: Document, counts: Mapping[str, int]) -> Document:
        return {
            "system": "rocketmq",
            "versions": {"client": NEW, "broker": NEW},
            "group": self.name,
            "strategy": "AVG",
            "options": {"pop_share_queues": self.share},
            "queues": [
                {"topic": TOPIC, "broker": broker, "queue_id": queue, "rate": RATE if queue < QUEUES else 0, "lag": 0}
                for broker, count in counts.items()
                for queue in range(count)
            ],
            "clients": [{"id": member, "threads": THREADS} for member in self.members],
            "service_time_s": SERVICE_S,
            "settings": {**SETTINGS, **TIMERS},
            "change": change,
        }

    def given_again(self) -> int:
        """Return how many messages brokers ever gave again to the group: those of its POP retry topic."""
        retries = f"%RETRY%{self.name}_{TOPIC}"
        return sum(remoting.max_offset(broker.address, retries, 0) for broker in self.cluster.brokers)

    def seen(self, since_ms: float, until_ms: float) -> Seen:
        """Return what came of a change at that moment, looked at until the other one."""
        first: dict[str, Delivery] = {}
        found: list[Delivery] = []
        twice = late = 0
        for one in self.deliveries():
            earlier = first.setdefault(one.message, one)
            if not since_ms <= one.epoch_ms < until_ms or earlier.epoch_ms < since_ms - FORGOTTEN_S * 1000:
                continue
            comes_twice = earlier is not one
            comes_late = not comes_twice and (one.came_back > 0 or self._waited(one))
            twice, late = twice + comes_twice, late + comes_late
            found += [one] if comes_twice or comes_late else []
        return Seen(twice, late, (found[-1].epoch_ms - since_ms) / 1000 if found else None)

    def _waited(self, one: Delivery) -> bool:
        """True where a member that was away called late what had waited for it."""
        return one.client_id.endswith(ABSENT) and one.epoch_ms - one.stored_ms > 1000 * WAITED_S


class Watch:
    """One run on one cluster: changes are done to all groups at once, and told group by group when they are over."""

    def __init__(self, cluster: RocketMQCluster) -> None:
        self.cluster = cluster
        self.counts = {broker.name: QUEUES for broker in cluster.brokers}
        self._changes: list[tuple[float, dict[str, tuple[Group, Document]]]] = []
        self.more: list[str] = []

    def warm(self, groups: Sequence[Group]) -> None:
        """Return when messages come to members that all are there."""
        for process in [process for group in groups for process in group.processes]:
            process.await_ready()
        places = [(broker, queue) for broker in self.counts for queue in range(QUEUES)]
        curves = [QueueCurve(TOPIC, *place, ((0.0, RATE), (MOST_S, RATE))) for place in places]
        self.cluster.load().start_producer(curves, options={"poll-ms": 1000})
        time.sleep(WARM_S)

    def begin(self, groups: Sequence[Group], change: Callable[[Group], Document]) -> None:
        """Note a change of these groups that happens now."""
        now_ms = time.time() * 1000
        asked = {group.name: (group, group.request(change(group), self.counts)) for group in groups}
        self._changes.append((now_ms, asked))

    def told(self) -> Iterator[str]:
        """Yield a line for each change and group."""
        ends = [at_ms for at_ms, _ in self._changes[1:]] + [time.time() * 1000]
        for (at_ms, asked), until_ms in zip(self._changes, ends, strict=True):
            for name, (group, request) in asked.items():
                seen, answer = group.seen(at_ms, until_ms), forecast(request)
                change = {key: value for key, value in request["change"].items() if key != "clients"}
                yield (
                    f"{name} {change}: twice {_beside(seen.twice, answer['total']['duplicates'])}, "
                    f"late {_beside(seen.late, answer['late_messages'])}, "
                    f"the last after {_beside(seen.last_s, answer['redelivered_s'])}"
                )
        yield from self.more


def _beside(seen: float | None, told: Document | None) -> str:
    return f"{'none' if seen is None else format(seen, '.3g')} {_told(told)}"


def _told(told: Document | None) -> str:
    return "(forecast none)" if told is None else f"(forecast {told['p05']:.3g}–{told['p95']:.3g})"


@contextmanager
def parted(watch: Watch) -> Iterator[tuple[list[Group], dict[str, Apart]]]:
    """Give groups of four, of whom one has a network that can be cut."""
    with ExitStack() as undo:
        groups = [Group(watch.cluster, name, share) for name, share in SHARES.items()]
        networks: dict[str, Apart] = {group.name: undo.enter_context(apart()) for group in groups}
        for group in groups:
            group.start(*MEMBERS)
            group.start(ABSENT, prefix=networks[group.name].prefix)
        watch.warm(groups)
        yield groups, networks


def absences(watch: Watch) -> None:
    """One member of each group is away, and comes back as it was."""
    with parted(watch) as (groups, networks):
        for kind, for_s in (*ABSENCES, *LONG_ABSENCES):
            change = {"kind": kind, "for_s": for_s, "clients": [f"127.0.0.1@{ABSENT}"]}
            watch.begin(groups, lambda _, change=change: change)
            for group in groups:
                group.processes[1].freeze() if kind == "freeze" else networks[group.name].cut()
            time.sleep(for_s)
            for group in groups:
                group.processes[1].resume() if kind == "freeze" else networks[group.name].heal()
            time.sleep(AFTERWARDS_S)


def cuts(watch: Watch) -> None:
    """One member of each group is cut off from one of two brokers."""
    lost = watch.cluster.brokers[1]
    with parted(watch) as (groups, networks):
        for for_s in CUTS_S:
            clients = [f"127.0.0.1@{ABSENT}"]
            change = {"kind": "partition", "for_s": for_s, "clients": clients, "brokers": [lost.name]}
            watch.begin(groups, lambda _, change=change: change)
            for group in groups:
                networks[group.name].cut(lost.address)
            time.sleep(for_s)
            for group in groups:
                networks[group.name].heal()
            time.sleep(AFTERWARDS_S)


def brokers(watch: Watch) -> None:
    """A broker dies and is started; a topic gets more queues on the other one, and fewer."""
    groups = [Group(watch.cluster, name, share) for name, share in SHARES.items()]
    for member in (*MEMBERS, ABSENT):  # each polls routes at its own time
        for group in groups:
            group.start(member)
        time.sleep(APART_S / 3)
    watch.warm(groups)
    staying, victim = watch.cluster.brokers
    for kind, act in (("broker_down", victim.kill), ("broker_up", victim.start)):
        watch.begin(groups, lambda _, kind=kind: {"kind": kind, "broker": victim.name})
        act()
        time.sleep(ROUTE_S)
    for count in (QUEUES + 2, QUEUES - 1):
        change = {"kind": "queues", "topic": TOPIC, "broker": staying.name, "read_queues": count}
        watch.begin(groups, lambda _, change=change: change)
        remoting.update_topic(staying.address, TOPIC, QueueCounts(count, count))
        watch.counts[staying.name] = count
        time.sleep(ROUTE_S)


def successions(watch: Watch) -> None:
    """Members get another strategy in turn; then as many of another group take over from copied offsets."""
    groups = [Group(watch.cluster, name, share) for name, share in SHARES.items()]
    for group in groups:
        for member in MEMBERS:
            group.start(member)
    watch.warm(groups)
    for group in groups:
        for member in MEMBERS:
            group.start(member, strategy="AVG_BY_CIRCLE", on_order=True)
    clients = [f"127.0.0.1@{member}" for member in MEMBERS]
    change = {"kind": "strategy", "to": "AVG_BY_CIRCLE", "clients": clients, "interval_s": APART_S}
    watch.begin(groups, lambda _: change)
    for place in range(len(MEMBERS)):
        for group in groups:
            group.processes[place].stop()
            group.processes[place + len(MEMBERS)].begin()
        time.sleep(APART_S)
    time.sleep(AFTERWARDS_S)
    _take_over(watch, groups[0])  # those who share queues have no forecast of it


def _take_over(watch: Watch, group: Group) -> None:
    """Stop a group, copy its offsets to another one, start that, and note what nobody but the old one is given."""
    heir = Group(watch.cluster, f"{group.name}-v2", group.share)
    successors = [heir.start(member, on_order=True) for member in MEMBERS]
    clients = [{"id": f"127.0.0.2@{member}"} for member in MEMBERS]
    change = {"kind": "blue_green", "to_group": heir.name, "clients": clients, "clone_s": 1.0}
    answer, earlier = forecast(group.request(change, watch.counts)), group.given_again()
    old = {one.message for one in group.deliveries()}
    for process in group.processes[len(MEMBERS) :]:
        process.process.ask_to_stop()
    time.sleep(1.0)
    offsets = watch.cluster.committed(group.name, TOPIC)
    watch.cluster.commit(heir.name, TOPIC, {place: offset for place, offset in offsets.items() if offset is not None})
    for successor in successors:
        successor.begin()
    time.sleep(AFTERWARDS_S)
    twice = len(old & {one.message for one in heir.deliveries()})
    (told,) = (word for word in answer["warnings"] if "never come to" in word)
    watch.more.append(
        f"{group.name} blue_green: {group.given_again() - earlier} given again to it alone "
        f"(forecast: {told.split(' messages')[0]}), {twice} of its messages came to {heir.name}, too "
        f"{_told(answer['total']['duplicates'])}"
    )


RUNS = {run.__name__: run for run in (absences, cuts, brokers, successions)}


def main(names: Sequence[str]) -> None:
    """Run these, all where none is named."""
    patience = {"serverChannelMaxIdleTimeSeconds": str(TIMERS["serverChannelMaxIdleTimeSeconds"])}
    for name in names or RUNS:
        with RocketMQCluster.start(NEW, settings={**LETS_POP, **patience}) as cluster:
            cluster.create_topic(TOPIC, QUEUES)
            watch = Watch(cluster)
            RUNS[name](watch)
            for line in watch.told():
                print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
