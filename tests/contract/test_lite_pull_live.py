"""Groups of real lite pull consumers on a 5.5.0 cluster, while one member is killed and another one shuts down.

Two groups consume one topic at once: ``usual`` commits every 5 s, as the class does, ``seldom`` every 10 minutes.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from planner.documents.forecast import forecast
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.simulation.candidates import simulate_candidate
from planner.simulation.transition import transition_requests
from planner.snapshot.setups import client_setups
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests import builders
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve
from tests.conftest import TOLD
from tests.patience import PATIENT, await_steady

pytestmark = pytest.mark.cluster

TOPIC, QUEUES, RATE, SERVICE_S = "orders", 4, 10.0, 0.002
MEMBERS = ("c1", "c2", "c3")
KILLED, STOPPED = "127.0.0.1@c3", "127.0.0.1@c2"
USUAL, SELDOM = "usual", "seldom"
COMMITS_MS = {USUAL: 5_000, SELDOM: 600_000}
STEADY_S = 12.0
"""A client stores its offsets for the first time 10 s after its start, and what it has not stored comes once more."""
COME_S, MOST_S = 600.0, 3_600.0
OLDEST_S = {"graceful": 5.0, "crash": 10.0}
"""Who leaves in order stores the last commit. Who dies does not, and may have committed 5 s before its last store."""

Queue = tuple[str, int]


@dataclass(frozen=True)
class Change:
    """One change as it was seen: who owned what before and after, and what was delivered from it to the next one."""

    answer: Mapping[str, Any]
    before: Mapping[Queue, str]
    after: Mapping[Queue, str]
    earlier: list[Delivery]
    deliveries: list[Delivery]

    @property
    def moved(self) -> set[Queue]:
        """The queues that another member has afterwards."""
        return {queue for queue, owner in self.after.items() if self.before[queue] != owner}

    @property
    def twice(self) -> int:
        """How many deliveries were of messages that had been delivered before."""
        seen = {(one.broker, one.queue, one.offset) for one in self.earlier}
        again = 0
        for one in self.deliveries:
            message = (one.broker, one.queue, one.offset)
            again += message in seen
            seen.add(message)
        return again

    @property
    def longest_gap_s(self) -> float:
        """The longest time in which one that gave up queues was given nothing: a poll as late commits as late."""
        longest_ms = 0
        for client in {self.before[queue] for queue in self.moved}:
            at_ms = sorted(one.epoch_ms for one in (*self.earlier, *self.deliveries) if one.client_id == client)
            longest_ms = max(longest_ms, *(late - early for early, late in pairwise(at_ms)))
        return longest_ms / 1000


class Group:
    """One group of three members, a process each."""

    def __init__(self, cluster: RocketMQCluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        cluster.create_group(name)
        load = cluster.load()
        self.processes: dict[str, ConsumerProcess] = {}
        for member in MEMBERS:
            process = load.start_consumer(
                group=name,
                topics=[TOPIC],
                instance=member,
                service_ms=SERVICE_S * 1000,
                watched=True,
                polls=True,
                properties={"autoCommitIntervalMillis": COMMITS_MS[name]},
                wait_ready=False,
            )
            self.processes[process.client_id] = process
        self.running = sorted(self.processes)

    def request(self, change: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "system": "rocketmq",
            "versions": {"client": NEW, "broker": NEW},
            "group": self.name,
            "strategy": "AVG",
            "options": {"consumer": "lite_pull"},
            "queues": [
                {"topic": TOPIC, "broker": broker.name, "queue_id": queue, "rate": RATE, "lag": 0}
                for broker in self.cluster.brokers
                for queue in range(QUEUES)
            ],
            "clients": [{"id": client} for client in self.running],
            "service_time_s": SERVICE_S,
            "settings": {"autoCommitIntervalMillis": COMMITS_MS[self.name]},
            "change": dict(change),
            "trials": 200,
            "seed": 1,
        }

    def owners(self) -> dict[Queue, str]:
        """Who owns each queue by the living members' last looks; a queue with two owners has neither."""
        found: dict[Queue, str] = {}
        for client in self.running:
            for look in self.processes[client].looks()[-1:]:
                for queue in look.queues:
                    found[queue] = client if queue not in found else "several"
        return found

    def deliveries(self) -> list[Delivery]:
        found = [one for process in self.processes.values() for one in process.deliveries()]
        return sorted(found, key=lambda one: one.epoch_ms)

    def last(self, queue: Queue, client: str | None) -> int:
        """The highest offset of a queue that a client was given; -1 if none."""
        process = self.processes.get(client or "")
        return max((one.offset for one in process.deliveries() if _of(one, queue)), default=-1) if process else -1


def expected(answer: Mapping[str, Any], side: str) -> dict[Queue, str]:
    """Who has what by the forecast, as looks write it."""
    return {(broker, queue): client for client, owned in answer[side].items() for _, broker, queue in owned}


def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until that holds, at most so long: what follows says what is wrong."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.25)


def watch(group: Group) -> dict[str, Change]:
    """Kill one member, then shut down another one; return by way what was seen of each."""
    for process in group.processes.values():
        process.await_ready()
    start = expected(forecast(group.request({"kind": "leave", "clients": [KILLED], "how": "crash"})), "before")
    until(lambda: group.owners() == start, COME_S)
    until(lambda: {(one.broker, one.queue) for one in group.deliveries()} >= start.keys(), COME_S)
    return {how: end_one(group, client, how) for how, client in (("crash", KILLED), ("graceful", STOPPED))}


def end_one(group: Group, client: str, how: str) -> Change:
    answer = forecast(group.request({"kind": "leave", "clients": [client], "how": how}))
    await_steady(lambda: group.owners() == expected(answer, "before"), STEADY_S, COME_S)
    before, at_ms = group.owners(), time.time() * 1000
    process = group.processes[client]
    process.kill() if how == "crash" else process.stop()
    group.running.remove(client)
    after = expected(answer, "after")
    until(lambda: group.owners() == after, COME_S)
    moved = {queue: (before.get(queue), owner) for queue, owner in after.items() if before.get(queue) != owner}
    until(lambda: all(group.last(one, new) > group.last(one, old) for one, (old, new) in moved.items()), COME_S)
    seen = group.deliveries()
    return Change(
        answer,
        before,
        group.owners(),
        [one for one in seen if one.epoch_ms <= at_ms],
        [one for one in seen if one.epoch_ms > at_ms],
    )


@dataclass(frozen=True)
class Watched:
    """What was seen of each group's changes, all its deliveries, what was sent, and one sample of the usual one."""

    changes: Mapping[str, Mapping[str, Change]]
    deliveries: Mapping[str, list[Delivery]]
    produced: int
    sample: GroupSample


@pytest.fixture(scope="module", name="seen")
def _seen() -> Iterator[Watched]:
    with RocketMQCluster.start(NEW) as cluster:
        cluster.create_topic(TOPIC, QUEUES)
        groups = [Group(cluster, name) for name in COMMITS_MS]
        curves = [
            QueueCurve(TOPIC, broker.name, queue, ((0.0, RATE), (MOST_S, RATE)))
            for broker in cluster.brokers
            for queue in range(QUEUES)
        ]
        for group in groups:
            for process in group.processes.values():
                process.await_ready()
        producer = cluster.load().start_producer(curves)
        sample = whole_sample(cluster.name_server)
        with ThreadPoolExecutor(len(groups)) as pool:
            changes = dict(zip(COMMITS_MS, pool.map(watch, groups), strict=True))
        producer.stop()

        def produced() -> int:
            """How many messages there are: the producer knows of none whose answer was late."""
            return sum(cluster.produced(TOPIC).values())

        until(lambda: all(len(messages(group.deliveries())) >= produced() for group in groups), COME_S)
        for group in groups:
            for client in group.running:
                group.processes[client].kill()  # nothing is left to be seen; brokers wait for graceful ones
        yield Watched(changes, {group.name: group.deliveries() for group in groups}, produced(), sample)


def whole_sample(name_server: str) -> GroupSample:
    """Return a sample in which every member tells what it is set to."""
    deadline = time.monotonic() + COME_S
    with RocketMQAdmin(name_server, limits=PATIENT) as admin:
        while True:
            found = observe_group(admin, group=USUAL, cluster=None, topics=None, at=datetime.now(UTC))
            told = [member for member in found.members if member.tuning]
            if len(told) == len(MEMBERS) or time.monotonic() > deadline:
                return found
            time.sleep(0.5)


def messages(deliveries: list[Delivery]) -> set[tuple[str, int, int]]:
    return {(one.broker, one.queue, one.offset) for one in deliveries}


@pytest.mark.parametrize("name", COMMITS_MS)
@pytest.mark.parametrize("how", ["crash", "graceful"])
def test_the_forecast_queues_move(seen: Watched, name: str, how: str) -> None:
    change = seen.changes[name][how]
    assert change.before == expected(change.answer, "before")
    assert change.after == expected(change.answer, "after")
    assert change.moved == {(broker, queue) for _, broker, queue in change.answer["moved"]}


@pytest.mark.parametrize("name", COMMITS_MS)
def test_every_message_is_delivered(seen: Watched, name: str) -> None:
    assert len(messages(seen.deliveries[name])) == seen.produced > 0


def test_as_many_come_twice_as_commits_and_stores_leave_out(
    seen: Watched, record_property: Callable[[str, object], None]
) -> None:
    """A push group repeats about one message a queue. Both changes together repeat at least a quarter of a second."""
    found = {}
    for how, change in seen.changes[USUAL].items():
        told = change.answer["total"]["duplicates"]
        found[how] = change.twice
        oldest_s = OLDEST_S[how] + change.longest_gap_s
        most = len(change.moved) * (RATE * oldest_s + 1)
        assert change.twice <= most, how
        assert told["p95"] <= most, how
        record_property(TOLD, f"lite pull, {how}: {change.twice} come twice, forecast {told['p05']} to {told['p95']}")
    assert sum(found.values()) >= 10


@pytest.mark.parametrize("how", ["crash", "graceful"])
def test_where_nothing_was_committed_the_next_owner_begins_where_the_old_one_did(seen: Watched, how: str) -> None:
    """Neither a shutdown nor a queue that is dropped commits anything."""
    change = seen.changes[SELDOM][how]
    assert change.moved
    for queue in change.moved:
        old = [one.offset for one in change.earlier if one.client_id == change.before[queue] and _of(one, queue)]
        new = [one.offset for one in change.deliveries if one.client_id == change.after[queue] and _of(one, queue)]
        assert new[0] == min(old), queue


def test_members_tell_that_they_poll_and_the_pipeline_takes_them_so(seen: Watched) -> None:
    queues = [MessageQueue(TOPIC, "broker-a", number) for number in range(QUEUES)]
    clients = sorted(f"127.0.0.1@{member}" for member in MEMBERS)
    taken = replace(builders.snapshot(queues, clients), setups=client_setups(seen.sample.members))
    for request in transition_requests(simulate_candidate(taken, 2, "AVG"), taken, "sha256:0"):
        assert request.consumer == "lite_pull"
        assert str(request.client) == NEW
        told = {
            name: request.settings.given.get(name)
            for name in ("autoCommit", "autoCommitIntervalMillis", "pullBatchSize")
        }
        assert told == {"autoCommit": True, "autoCommitIntervalMillis": COMMITS_MS[USUAL], "pullBatchSize": 10}


def _of(one: Delivery, queue: Queue) -> bool:
    return (one.broker, one.queue) == queue
