"""Real lite pull and pull consumers on a 5.5.0 cluster: one stands still, then a broker dies and comes back.

Two groups consume one topic at once. Brokers give up who is silent for 20 s instead of 120, so that minutes are enough.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.clusters.rocketmq import NEW, Broker, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve
from tests.conftest import TOLD
from tests.patience import await_steady

pytestmark = pytest.mark.cluster

TOPIC, QUEUES, RATE, SERVICE_S = "orders", 4, 8.0, 0.002
MEMBERS = ("c1", "c2", "c3")
SLEEPER, DYING = "127.0.0.1@c2", "broker-b"
LITE_PULL, PULL = "lite_pull", "pull"
IDLE_S, HEARTBEAT_MS = 20, 8_000
"""Brokers must wait for more than two heartbeats, as theirs of 120 s do."""
OLDEST_S = 10.0
"""Who is away had committed 5 s before its last store at most, and stored 5 s before it went."""
STEADY_S, COME_S, MOST_S = 12.0, 600.0, 3_600.0

Queue = tuple[str, int]


@dataclass(frozen=True)
class Change:
    """One change as it was seen: the forecast of it, and who owned what before and after."""

    answer: Mapping[str, Any]
    before: Mapping[Queue, str]
    after: Mapping[Queue, str]


@dataclass(frozen=True)
class Handover:
    """One queue of the member that stood still: what it was given until then, and the first that its deputy was given.

    ``longest_gap_s``: how long the member was given nothing at most while it was there; a poll as late commits as late.
    """

    last: int
    first: int
    longest_gap_s: float


class Group:
    """One group of three members, a process each."""

    def __init__(self, cluster: RocketMQCluster, consumer: str) -> None:
        self.cluster, self.consumer = cluster, consumer
        cluster.create_group(consumer)
        load = cluster.load()
        self.processes: dict[str, ConsumerProcess] = {}
        for member in MEMBERS:
            process = load.start_consumer(
                group=consumer,
                topics=[TOPIC],
                instance=member,
                service_ms=SERVICE_S * 1000,
                watched=True,
                polls=consumer == LITE_PULL,
                fetches=consumer == PULL,
                options={"heartbeat-ms": HEARTBEAT_MS},
                wait_ready=False,
            )
            self.processes[process.client_id] = process

    def forecast(self, change: Mapping[str, Any]) -> dict[str, Any]:
        return forecast(
            {
                "system": "rocketmq",
                "versions": {"client": NEW, "broker": NEW},
                "group": self.consumer,
                "strategy": "AVG",
                "options": {"consumer": self.consumer},
                "queues": [
                    {"topic": TOPIC, "broker": broker.name, "queue_id": queue, "rate": RATE, "lag": 0}
                    for broker in self.cluster.brokers
                    for queue in range(QUEUES)
                ],
                "clients": [{"id": client} for client in sorted(self.processes)],
                "service_time_s": SERVICE_S,
                "settings": {"heartbeatBrokerInterval": HEARTBEAT_MS, "serverChannelMaxIdleTimeSeconds": IDLE_S},
                "change": dict(change),
                "trials": 200,
                "seed": 1,
            }
        )

    def owners(self, away: str = "") -> dict[Queue, str]:
        """Who owns each queue by the last looks of all but one; a queue with two owners has neither."""
        found: dict[Queue, str] = {}
        for client, process in self.processes.items():
            for look in process.looks()[-1:] if client != away else ():
                for queue in look.queues:
                    found[queue] = client if queue not in found else "several"
        return found

    def offsets(self, client: str, queue: Queue, since_s: float = 0.0) -> list[Delivery]:
        """What a client was given of a queue, in its order, since a moment: it may have owned it before, too."""
        found = self.processes[client].deliveries()
        return [one for one in found if (one.broker, one.queue) == queue and one.epoch_ms >= since_s * 1000]

    def settle(self, expected: Mapping[Queue, str]) -> dict[Queue, str]:
        """Return who owns what once it has been as expected for a while, or when time is over."""
        until(lambda: self.owners() == expected, COME_S)
        return self.owners()


def expected(answer: Mapping[str, Any], side: str) -> dict[Queue, str]:
    """Who has what by the forecast, as looks write it."""
    return {(broker, queue): client for client, owned in answer[side].items() for _, broker, queue in owned}


def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until that holds, at most so long: what follows says what is wrong."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.25)


def stand_still(group: Group) -> tuple[Change, dict[Queue, Handover]]:
    """Freeze one member until the others have its queues and are given their messages, and let it go on."""
    start = expected(group.forecast({"kind": "freeze", "clients": [SLEEPER], "for_s": 1}), "before")
    await_steady(lambda: group.owners() == start, STEADY_S, COME_S)
    mine = [queue for queue, owner in start.items() if owner == SLEEPER]
    sleeper, begun = group.processes[SLEEPER], time.time()
    sleeper.freeze()
    until(lambda: group.owners(away=SLEEPER).keys() == start.keys(), COME_S)
    meanwhile = group.owners(away=SLEEPER)
    until(lambda: all(queue in meanwhile and group.offsets(meanwhile[queue], queue, begun) for queue in mine), COME_S)
    handovers = {
        queue: Handover(
            max(one.offset for one in group.offsets(SLEEPER, queue)),
            group.offsets(meanwhile[queue], queue, begun)[0].offset,
            longest_gap_s(group.processes[SLEEPER].deliveries()),
        )
        for queue in mine
    }
    sleeper.resume()
    answer = group.forecast({"kind": "freeze", "clients": [SLEEPER], "for_s": round(time.time() - begun, 3)})
    # Who wakes may keep its queues or give them up and take them back: the first looks after it are not the last.
    until(lambda: group.owners() == expected(answer, "after"), COME_S)
    await_steady(lambda: group.owners() == expected(answer, "after"), STEADY_S, COME_S)
    return Change(answer, start, group.owners()), handovers


def longest_gap_s(deliveries: list[Delivery]) -> float:
    """The longest time in which nothing was delivered, between the first delivery and the last one."""
    at_ms = sorted(one.epoch_ms for one in deliveries)
    return max(late - early for early, late in pairwise(at_ms)) / 1000


@dataclass(frozen=True)
class Watched:
    """What was seen of each consumer's changes, its handovers, all its deliveries, and how many messages there were."""

    changes: Mapping[str, Mapping[str, Change]]
    handovers: Mapping[str, Mapping[Queue, Handover]]
    messages: Mapping[str, set[tuple[str, int, int]]]
    produced: int


@pytest.fixture(scope="module", name="seen")
def _seen() -> Iterator[Watched]:
    with RocketMQCluster.start(NEW, settings={"serverChannelMaxIdleTimeSeconds": str(IDLE_S)}) as cluster:
        cluster.create_topic(TOPIC, QUEUES)
        groups = [Group(cluster, consumer) for consumer in (LITE_PULL, PULL)]
        curves = [
            QueueCurve(TOPIC, broker.name, queue, ((0.0, RATE), (MOST_S, RATE)))
            for broker in cluster.brokers
            for queue in range(QUEUES)
        ]
        for group in groups:
            for process in group.processes.values():
                process.await_ready()
        producer = cluster.load().start_producer(curves, options={"poll-ms": 1000})
        with ThreadPoolExecutor(len(groups)) as pool:
            frozen = list(pool.map(stand_still, groups))
        brokers = lose_and_regain(cluster.broker(DYING), groups)
        producer.stop()
        produced = sum(cluster.produced(TOPIC).values())
        until(lambda: all(len(messages(group)) >= produced for group in groups), COME_S)
        names = [group.consumer for group in groups]
        yield Watched(
            {name: {"freeze": one, **brokers[name]} for name, (one, _) in zip(names, frozen, strict=True)},
            {name: handovers for name, (_, handovers) in zip(names, frozen, strict=True)},
            {group.consumer: messages(group) for group in groups},
            produced,
        )
        for group in groups:
            for process in group.processes.values():
                process.kill()  # nothing is left to be seen; brokers wait for graceful ones


def lose_and_regain(broker: Broker, groups: list[Group]) -> dict[str, dict[str, Change]]:
    """Kill a broker, start it again once everybody has forgotten it; return by consumer what was seen of both."""
    found: dict[str, dict[str, Change]] = {group.consumer: {} for group in groups}
    for kind, act in (("broker_down", broker.kill), ("broker_up", broker.process.start)):
        answers = {group.consumer: group.forecast({"kind": kind, "broker": broker.name}) for group in groups}
        starts = [expected(answers[group.consumer], "before") for group in groups]
        # A machine that stands still for 12 s makes brokers give up somebody: what follows begins when all are back.
        await_steady(lambda starts=starts: [one.owners() for one in groups] == starts, STEADY_S, COME_S)  # type: ignore[misc]
        before = {group.consumer: group.owners() for group in groups}
        act()
        for group in groups:
            after = group.settle(expected(answers[group.consumer], "after"))
            found[group.consumer][kind] = Change(answers[group.consumer], before[group.consumer], after)
    return found


def messages(group: Group) -> set[tuple[str, int, int]]:
    return {(one.broker, one.queue, one.offset) for two in group.processes.values() for one in two.deliveries()}


@pytest.mark.parametrize("consumer", [LITE_PULL, PULL])
@pytest.mark.parametrize("kind", ["freeze", "broker_down", "broker_up"])
def test_the_forecast_queues_move(seen: Watched, consumer: str, kind: str) -> None:
    change = seen.changes[consumer][kind]
    assert change.before == expected(change.answer, "before")
    assert change.after == expected(change.answer, "after")
    both = change.before.keys() & change.after.keys()
    moved = {queue for queue in both if change.before[queue] != change.after[queue]}
    assert moved == {(broker, queue) for _, broker, queue in change.answer["moved"]}
    assert bool(moved) == (kind != "freeze")


def test_who_takes_over_begins_where_the_one_that_stood_still_had_stored(
    seen: Watched, record_property: Callable[[str, object], None]
) -> None:
    """What was polled is committed every 5 s into memory, and stored from there every 5 s: nothing else is."""
    handovers = seen.handovers[LITE_PULL]
    assert handovers
    again = {queue: one.last + 1 - one.first for queue, one in handovers.items()}
    for queue, one in handovers.items():
        assert 0 <= again[queue] <= RATE * (OLDEST_S + one.longest_gap_s) + 1, queue
    assert sum(again.values()) > 0
    told = seen.changes[LITE_PULL]["freeze"].answer["total"]["duplicates"]
    record_property(TOLD, f"lite pull, freeze: {again} of its last messages come again; forecast of all: {told}")


@pytest.mark.parametrize("consumer", [LITE_PULL, PULL])
def test_every_message_is_delivered(seen: Watched, consumer: str) -> None:
    assert len(seen.messages[consumer]) == seen.produced > 0


@pytest.mark.parametrize("kind", ["freeze", "broker_down", "broker_up"])
def test_what_a_pull_consumer_s_application_decides_is_not_told(seen: Watched, kind: str) -> None:
    total = seen.changes[PULL][kind].answer["total"]
    assert [total[name] for name in ("pause_s", "duplicates", "settle_s")] == [None] * 3
