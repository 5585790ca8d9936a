"""Groups whose queues the brokers of a real 5.5.0 cluster give out, by pull and by POP.

One member dies. Where members pop it stands still before, until what it worked on has come again to the others.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier, Lock
from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve
from tests.conftest import TOLD
from tests.patience import await_steady

pytestmark = pytest.mark.cluster

TOPIC, QUEUES, RATE, SERVICE_S = "orders", 2, 8.0, 1.0
INVISIBLE_MS = 20_000
"""A message of a member that is late by this comes again, rightly: on a busy machine one may be by some seconds."""
LETS_POP = {"timerWheelEnable": "true", "maxMessageSize": str(256 * 1024)}
"""A broker without a timer wheel lets nobody pop. Each of its threads that stores anything, and eight more do so where
messages are popped, has a buffer for the largest message, by default of 4 MiB of memory that these brokers do not have:
without it they give nothing again."""
STAYING, DYING = ("c1", "c2", "c4"), "c3"
GROUPS: Mapping[str, Mapping[str, int]] = {
    "by-pull": {},
    "by-pop": {"pop_share_queues": -1},
    "by-pop-of-two": {"pop_share_queues": 1},
}
POPPING = tuple(name for name, options in GROUPS.items() if options)
ALLOCATED_S, COME_S, MOST_S = 600.0, 600.0, 3_600.0
STEADY_S = 4 * SERVICE_S
"""Until then as many calls run as ever."""


@dataclass(frozen=True)
class Stood:
    """What was seen while a member stood still: the ids of messages whose calls surely ran as it began, and its end.

    ``owners``: what each member was given last, as it ended.
    """

    began_ms: float
    ended_ms: float
    ran: set[str]
    owners: Mapping[str, set[tuple[str, int]]]
    answer: Mapping[str, Any]


@dataclass(frozen=True)
class Watched:
    """What was seen of a group: its owners by client before and after, all deliveries, and what was forecast.

    ``ran``: the ids of messages whose calls surely ran as one member died; ``stood``: where it stood still before.
    """

    before: Mapping[str, set[tuple[str, int]]]
    after: Mapping[str, set[tuple[str, int]]]
    deliveries: list[Delivery]
    died_ms: float
    ran: set[str]
    answer: Mapping[str, Any]
    produced: int
    stood: Stood | None

    @property
    def twice(self) -> set[str]:
        """The ids of messages that were handed to listeners more than once."""
        return {message for message, count in Counter(one.message for one in self.deliveries).items() if count > 1}

    @property
    def of_dead(self) -> set[str]:
        """The ids of messages that were handed to the member that died."""
        return {one.message for one in self.deliveries if one.client_id.endswith(DYING)}


class Group:
    """One group of four members: three in one process, and one that dies in another."""

    def __init__(self, cluster: RocketMQCluster, name: str) -> None:
        self.cluster, self.name, self.options = cluster, name, GROUPS[name]
        cluster.create_group(name)
        for broker in cluster.brokers if self.options else ():
            remoting.pop(broker.address, TOPIC, name, self.options["pop_share_queues"])
        load = cluster.load()
        self.processes: list[ConsumerProcess] = [
            load.start_consumer(
                group=name,
                topics=[TOPIC],
                instance=instances,
                threads=20,
                service_ms=SERVICE_S * 1000,
                watched=True,
                tells_messages=True,
                properties={"clientRebalance": False, "popInvisibleTime": INVISIBLE_MS},
            )
            for instances in (STAYING, (DYING,))
        ]

    def request(self, **change: Any) -> dict[str, Any]:
        return {
            "system": "rocketmq",
            "versions": {"client": NEW, "broker": NEW},
            "group": self.name,
            "strategy": "AVG",
            "options": dict(self.options),
            "queues": [
                {"topic": TOPIC, "broker": broker.name, "queue_id": queue, "rate": RATE, "lag": 0}
                for broker in self.cluster.brokers
                for queue in range(QUEUES)
            ],
            "clients": [{"id": f"127.0.0.1@{one}", "threads": 20} for one in sorted((*STAYING, DYING))],
            "service_time_s": SERVICE_S,
            "settings": {"clientRebalance": False, "popInvisibleTime": INVISIBLE_MS},
            "change": {**change, "clients": [f"127.0.0.1@{DYING}"]},
            "trials": 200,
            "seed": 1,
        }

    def owners(self) -> dict[str, set[tuple[str, int]]]:
        """What each living member was given last."""
        return {
            look.client_id: set(look.queues)
            for process in self.processes
            if process.running
            for look in process.looks()
            if look.topic == TOPIC
        }

    def deliveries(self) -> list[Delivery]:
        found = [one for process in self.processes for one in process.deliveries()]
        return sorted(found, key=lambda one: one.epoch_ms)


def expected(answer: Mapping[str, Any], side: str) -> dict[str, set[tuple[str, int]]]:
    """Who has what by the forecast, as looks write it."""
    return {client: {(broker, queue) for _, broker, queue in owned} for client, owned in answer[side].items()}


def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until that holds, at most so long: what follows says what is wrong."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.25)


def watch(group: Group, produced: Callable[[], int], all_dead: Barrier) -> Watched:
    """Let one member die as soon as all have what they are to have, and wait for all that comes of it.

    Nobody may ask for what was produced before one member of each group is dead.
    """
    answer = forecast(group.request(kind="leave", how="crash"))
    until(lambda: {one.client_id for one in group.deliveries()} >= set(answer["before"]), ALLOCATED_S)
    await_steady(lambda: group.owners() == expected(answer, "before"), STEADY_S, ALLOCATED_S)
    before = group.owners()
    stood = stand_still(group) if group.options else None
    ran, died_ms = kill_at_work(group)
    all_dead.wait()
    until(lambda: group.owners() == expected(answer, "after"), ALLOCATED_S)
    until(lambda: ran <= counted_twice(group), COME_S)
    until(lambda: len({one.message for one in group.deliveries()}) >= produced(), COME_S)
    return Watched(before, group.owners(), group.deliveries(), died_ms, ran, answer, produced(), stood)


def stand_still(group: Group) -> Stood:
    """Freeze the member that is to die until what it worked on has come again, and wait until it works again."""
    ran, began_ms = freeze_at_work(group)
    until(lambda: ran <= counted_twice(group), COME_S)
    owners, ended_ms = group.owners(), time.time() * 1000
    group.processes[1].resume()
    until(lambda: group.processes[1].deliveries()[-1].epoch_ms > ended_ms, COME_S)
    answer = forecast(group.request(kind="freeze", for_s=(ended_ms - began_ms) / 1000))
    return Stood(began_ms, ended_ms, ran, owners, answer)


def kill_at_work(group: Group) -> tuple[set[str], float]:
    """Kill the member that is to die while calls of it run; return the ids of their messages, and when it died."""
    found = freeze_at_work(group)
    group.processes[1].kill()
    return found


def freeze_at_work(group: Group) -> tuple[set[str], float]:
    """Freeze the member that is to die while calls of it run; return the ids of their messages, and when.

    A call that began in the half of the service time before it surely stood still had not ended.
    """
    dying, deadline = group.processes[1], time.monotonic() + ALLOCATED_S
    while True:
        dying.freeze()
        froze_ms = time.time() * 1000
        ran = {one.message for one in dying.deliveries() if one.epoch_ms > froze_ms - SERVICE_S * 500}
        if ran or time.monotonic() > deadline:
            return ran, froze_ms
        dying.resume()
        time.sleep(SERVICE_S / 4)


def counted_twice(group: Group) -> set[str]:
    return {message for message, count in Counter(one.message for one in group.deliveries()).items() if count > 1}


@pytest.fixture(scope="module", name="seen")
def _seen() -> Iterator[Mapping[str, Watched]]:
    with RocketMQCluster.start(NEW, settings=LETS_POP) as cluster:
        cluster.create_topic(TOPIC, QUEUES)
        groups = [Group(cluster, name) for name in GROUPS]
        curves = [
            QueueCurve(TOPIC, broker.name, queue, ((0.0, RATE), (MOST_S, RATE)))
            for broker in cluster.brokers
            for queue in range(QUEUES)
        ]
        producer = cluster.load().start_producer(curves)
        asking = Lock()

        def produced() -> int:
            """How many messages there are once no more come: the producer knows of none whose answer was late."""
            with asking:
                if producer.running:
                    producer.stop()
            return sum(cluster.produced(TOPIC).values())

        with ThreadPoolExecutor(len(groups)) as pool:
            all_dead = Barrier(len(groups))
            running = pool.map(lambda group: watch(group, produced, all_dead), groups)
            yield dict(zip(GROUPS, running, strict=True))


@pytest.mark.parametrize("name", GROUPS)
def test_brokers_give_what_is_forecast(seen: Mapping[str, Watched], name: str) -> None:
    watched = seen[name]
    assert watched.before == expected(watched.answer, "before")
    assert watched.after == expected(watched.answer, "after")


@pytest.mark.parametrize("name", GROUPS)
def test_every_message_is_delivered(seen: Mapping[str, Watched], name: str) -> None:
    assert len({one.message for one in seen[name].deliveries}) == seen[name].produced > 0


@pytest.mark.parametrize("name", POPPING)
def test_what_the_dead_member_had_not_acknowledged_comes_again(
    seen: Mapping[str, Watched], name: str, record_property: Callable[[str, object], None]
) -> None:
    watched = seen[name]
    ran = watched.ran
    assert ran, "the member that died had nothing to do"
    assert ran <= watched.twice
    total, again = watched.answer["total"], watched.answer["redelivered_s"]
    late = [one.epoch_ms - watched.died_ms for one in watched.deliveries if one.came_back and one.message in ran]
    record_property(
        TOLD,
        f"{name}: duplicates {len(watched.twice)}, forecast {total['duplicates']['p05']} to "
        f"{total['duplicates']['p95']}; the last one after {max(late) / 1000:.1f} s, "
        f"forecast {again['p05']} to {again['p95']}",
    )


@pytest.mark.parametrize("name", POPPING)
def test_what_a_member_that_stands_still_had_not_acknowledged_comes_again_to_others(
    seen: Mapping[str, Watched], name: str, record_property: Callable[[str, object], None]
) -> None:
    stood = seen[name].stood
    assert stood is not None
    assert stood.ran, "the member that stood still had nothing to do"
    assert stood.owners == expected(stood.answer, "after")
    meanwhile = [one for one in seen[name].deliveries if stood.began_ms < one.epoch_ms < stood.ended_ms]
    again = {one.message: one.epoch_ms for one in reversed(meanwhile) if one.came_back}
    assert stood.ran <= again.keys()
    assert not [one for one in meanwhile if one.client_id.endswith(DYING)]
    assert [one for one in seen[name].deliveries if one.client_id.endswith(DYING) and one.epoch_ms > stood.ended_ms]
    earlier = {one.message for one in seen[name].deliveries if one.epoch_ms <= stood.began_ms}
    told, last = stood.answer["total"]["duplicates"], stood.answer["redelivered_s"]
    record_property(
        TOLD,
        f"{name}: a member stood still for {(stood.ended_ms - stood.began_ms) / 1000:.0f} s, "
        f"duplicates {len(again.keys() & earlier)}, forecast {told['p05']} to {told['p95']}; the last one after "
        f"{(max(again.values()) - stood.began_ms) / 1000:.1f} s, forecast {last['p05']} to {last['p95']}",
    )


def test_where_everybody_takes_everything_only_the_dead_member_s_calls_come_again(seen: Mapping[str, Watched]) -> None:
    watched = seen["by-pop"]
    assert watched.twice <= watched.of_dead
    assert {one.message for one in watched.deliveries if one.came_back} >= watched.twice


def test_the_offsets_of_a_popped_message_that_comes_again_are_others(seen: Mapping[str, Watched]) -> None:
    first = {one.message: (one.broker, one.queue, one.offset) for one in reversed(seen["by-pop"].deliveries)}
    again = [one for one in seen["by-pop"].deliveries if one.came_back]
    assert again
    assert {one.queue for one in again} == {0}
    assert {one.broker for one in again} == {first[one.message][0] for one in again}
