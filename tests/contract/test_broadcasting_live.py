"""A real broadcasting group of 5.5.0: one member is killed and started again, then its topic gets another queue.

Both stand still while the queue gets its first messages.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.clusters.rocketmq import NEW, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, QueueCurve, RocketMQLoad
from tests.patience import await_steady

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

GROUP, TOPIC, QUEUES, RATE, SERVICE_S, THREADS = "cast", "news", 3, 8.0, 0.1, 20
STAYS, DIES = "b1", "b2"
MOST_S, WITHIN_S, DRAWS, UNKNOWN = 3_600.0, 600.0, 100, 20
CALM_S = 6.0
"""Longer than an offset waits for its file (``persistConsumerOffsetInterval``)."""
TICK = "rocketmq.client.rebalance.waitInterval"
TIMERS = {"pollNameServerInterval": 2_000, TICK: 2_000}

Queue = tuple[str, int]


class Group:
    """Two members, each in a process of its own, whose offsets lie in a folder that it finds again."""

    def __init__(self, load: RocketMQLoad, folder: Path) -> None:
        self.load, self.folder = load, folder
        self.processes: dict[str, list[ConsumerProcess]] = defaultdict(list)

    def start(self, member: str) -> None:
        process = self.load.start_consumer(
            group=GROUP,
            topics=[TOPIC],
            instance=member,
            threads=THREADS,
            service_ms=SERVICE_S * 1000,
            watched=True,
            consume_from="CONSUME_FROM_LAST_OFFSET",
            options={"broadcast": "true", "poll-ms": TIMERS["pollNameServerInterval"]},
            java_properties={"rocketmq.client.localOffsetStoreDir": str(self.folder / member), TICK: TIMERS[TICK]},
        )
        self.processes[member].append(process)

    def offsets(self, member: str) -> dict[Queue, list[int]]:
        """Return by queue the offsets that were delivered to a member, in the order of its deliveries."""
        found: dict[Queue, list[int]] = defaultdict(list)
        for process in self.processes[member]:
            for one in process.deliveries():
                found[one.broker, one.queue].append(one.offset)
        return found

    def stored(self, member: str) -> set[Queue]:
        """Return the queues whose offset stands in a member's file: JSON with maps as keys, which no parser reads."""
        files = (self.folder / member).rglob("offsets.json")
        text = "".join(file.read_text() for file in files)
        found = re.findall(rf'"brokerName":\s*"([^"]+)",\s*"queueId":\s*(\d+),\s*"topic":\s*"{TOPIC}"', text)
        return {(broker, int(queue)) for broker, queue in found}

    def gets(self, member: str, queue: Queue, more_than: int) -> bool:
        return len(self.offsets(member)[queue]) > more_than


@dataclass(frozen=True)
class Watched:
    """Offsets by member and queue, the ``new`` queue, and for how long the killed member was away."""

    queues: Mapping[str, Mapping[Queue, list[int]]]
    new: Queue
    down_s: float


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The group after both changes."""
    with RocketMQCluster.start(NEW) as cluster:
        cluster.create_topic(TOPIC, QUEUES)
        cluster.create_group(GROUP, consumeBroadcastEnable=True)
        load, names = cluster.load(), [broker.name for broker in cluster.brokers]
        group = Group(load, tmp_path_factory.mktemp("offsets"))
        for member in (STAYS, DIES):
            group.start(member)
        curves = [QueueCurve(TOPIC, name, queue, ((0.0, RATE), (MOST_S, RATE))) for name in names for queue in range(3)]
        load.start_producer(curves)
        await_all(group, dict.fromkeys([(name, queue) for name in names for queue in range(QUEUES)], 10 * RATE))
        # Whose file lacks a queue begins it by consumeFromWhere, as a new member does; the first write comes late.
        await_steady(lambda: len(group.stored(DIES)) == len(names) * QUEUES, 0.5, WITHIN_S)
        killed = time.monotonic()
        group.processes[DIES][0].kill()
        group.start(DIES)
        down_s = time.monotonic() - killed
        here = {queue: len(found) for queue, found in group.offsets(DIES).items()}
        await_all(group, {queue: count + 2 * RATE * CALM_S for queue, count in here.items()})
        new = (names[0], QUEUES)
        running = [processes[-1] for processes in group.processes.values()]
        for process in running:
            process.freeze()  # so that nobody knows of the queue when its first messages come
        cluster.create_topic(TOPIC, per_broker={names[0]: QueueCounts(QUEUES + 1, QUEUES + 1)})
        load.start_producer([QueueCurve(TOPIC, *new, ((0.0, RATE), (MOST_S, RATE)))])
        await_steady(lambda: cluster.produced(TOPIC).get(new, 0) >= UNKNOWN, 0.5, WITHIN_S)
        for process in running:
            process.resume()
        await_all(group, {new: RATE * CALM_S})
        yield Watched({member: group.offsets(member) for member in (STAYS, DIES)}, new, down_s)


def await_all(group: Group, wanted: Mapping[Queue, float]) -> None:
    """Return when both members got so much of each queue."""

    def is_there() -> bool:
        return all(group.gets(member, queue, int(count)) for member in (STAYS, DIES) for queue, count in wanted.items())

    await_steady(is_there, 0.5, WITHIN_S)


def request(watched: Watched, change: dict[str, Any]) -> dict[str, Any]:
    places = sorted(queue for queue in watched.queues[STAYS] if queue != watched.new)
    return {
        "system": "rocketmq",
        "versions": {"client": NEW, "broker": NEW},
        "group": GROUP,
        "strategy": "AVG",
        "queues": [
            {"topic": TOPIC, "broker": broker, "queue_id": queue, "rate": RATE, "lag": 0} for broker, queue in places
        ],
        "clients": [{"id": f"127.0.0.1@{member}", "threads": THREADS} for member in (STAYS, DIES)],
        "service_time_s": SERVICE_S,
        "settings": {"messageModel": "BROADCASTING", **TIMERS},
        "change": change,
    }


def test_who_was_killed_gets_again_what_its_file_lacks_and_nothing_is_lost(watched: Watched) -> None:
    """Within all that the forecast draws: one draw in ten lies outside of its interval."""
    change = {"kind": "restart", "clients": [f"127.0.0.1@{DIES}"], "how": "crash", "interval_s": watched.down_s}
    drawn = [
        forecast({**request(watched, change), "trials": 1, "seed": seed})["total"]["duplicates"]["p50"]
        for seed in range(DRAWS)
    ]
    again = 0
    for queue, offsets in watched.queues[DIES].items():
        counts = Counter(offsets)
        assert max(counts.values()) <= 2
        if queue != watched.new:
            assert sorted(counts) == list(range(min(counts), max(counts) + 1))
        again += sum(counts.values()) - len(counts)
    assert min(drawn) <= again <= max(drawn), (min(drawn), again, max(drawn))


def test_nobody_else_gets_anything_again_or_less(watched: Watched) -> None:
    for queue, offsets in watched.queues[STAYS].items():
        assert len(set(offsets)) == len(offsets), queue
        assert sorted(offsets) == list(range(min(offsets), max(offsets) + 1)), queue


def test_each_member_misses_what_came_to_a_new_queue_before_it_knew(watched: Watched) -> None:
    change = {"kind": "queues", "topic": TOPIC, "broker": watched.new[0], "read_queues": QUEUES + 1}
    answer = forecast(request(watched, change))
    assert [word for word in answer["warnings"] if "never gets, unless its consumeFromWhere" in word]
    assert all(len(queues) == len(watched.queues[STAYS]) for queues in answer["after"].values())
    firsts = {member: min(watched.queues[member][watched.new]) for member in (STAYS, DIES)}
    assert all(first >= UNKNOWN for first in firsts.values()), firsts
