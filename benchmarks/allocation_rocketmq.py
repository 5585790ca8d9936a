"""RocketMQ allocation: ours against the real classes in the same run, and what trying every count costs.

The classes' side is what the group's clients really do: each one sorts both lists and calls its class, one after the
other in one warmed JVM with one thread. Ours starts from the same unsorted lists and ends with every queue's owner.
Both sides count processor time of the working thread, so that a busy machine favours neither; Java's collector runs in
a thread of its own and is not counted.
"""

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from benchmarks.join_ranges import join_range
from benchmarks.queue_weights import Topic, largest_loads, undominated_counts
from planner.allocation.ordering import java_sorted, sorted_queues
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq.consistent_hash import client_points
from planner.allocation.strategy import Owners, Strategy
from planner.documents.allocation import read_rocketmq
from planner.model.queues import MessageQueue
from planner.simulation.rocketmq.positions import departures
from tests.oracles.rocketmq import CLIENT_VERSIONS, RocketMQOracle

QUEUES, CLIENTS, ROOMS = 10_000, 1_000, 4
GROUPS = 10_000
OUR_ROUNDS, JAVA_ROUNDS = 7, 8
MEASURED_CLIENTS, HASHING_CLIENTS = 250, 10
"""Clients measured a round, the second under consistent hashing; all do the same, so the figure is scaled to all."""

Document = dict[str, Any]


def main() -> None:
    """Print the ratios for each strategy, then the cost of many counts and groups."""
    print(f"{QUEUES} queues, {CLIENTS} clients, whole group; milliseconds of processor time, best round of each side")
    print(f"{'strategy':22} {'classes: sort':>13} {'allocate':>9} {'ours: sort':>11} {'allocate':>9} {'ratio':>7}")
    with RocketMQOracle(CLIENT_VERSIONS[-1]) as oracle:
        for request in _requests():
            _compare(request, oracle)
    _counts_of_one_group()
    _counts_of_many_groups()
    _moves_of_one_group()


def _requests() -> list[Document]:
    random = Random(1)  # noqa: S311 - shuffles lists
    brokers = [f"r{number % ROOMS}@broker-{number}" for number in range(QUEUES // 100)]
    queues = [{"topic": "orders", "broker": broker, "queue_id": number} for broker in brokers for number in range(100)]
    clients = [
        f"10.0.{number // 250}.{number % 250}@{random.randrange(99)}#{random.randrange(10**14)}"
        for number in range(CLIENTS)
    ]
    random.shuffle(queues)
    random.shuffle(clients)
    rooms = {
        "brokers": {broker: broker.split("@")[0] for broker in brokers},
        "clients": {client: f"r{number % ROOMS}" for number, client in enumerate(clients)},
        "inner": "AVG",
    }
    options: dict[str, Document] = {
        "AVG": {},
        "AVG_BY_CIRCLE": {},
        "CONFIG": {"config": {client: queues[10 * place : 10 * place + 10] for place, client in enumerate(clients)}},
        "MACHINE_ROOM": {"consumer_rooms": ["r0", "r1", "r2"]},
        "MACHINE_ROOM_NEARBY": {"machine_rooms": rooms},
        "CONSISTENT_HASH": {},
    }
    base = {"system": "rocketmq", "group": "g", "queues": queues, "clients": clients}
    return [{**base, "strategy": name, "options": chosen} for name, chosen in options.items()]


def _compare(request: Document, oracle: RocketMQOracle) -> None:
    measured = HASHING_CLIENTS if request["strategy"] == "CONSISTENT_HASH" else MEASURED_CLIENTS
    found = oracle.answer({**request, "bench": JAVA_ROUNDS, "measured_clients": measured})
    scale = CLIENTS / measured / 1e6
    sorting, allocating = (min(found[part][1:]) * scale for part in ("sorting_ns", "allocating_ns"))
    read = read_rocketmq(request)
    whole = _best(lambda: _whole_group(read.strategy, read.queues, read.clients), OUR_ROUNDS) * 1e3
    queues, clients = sorted_queues(read.queues), java_sorted(read.clients)
    alone = _best(lambda: _allocate(read.strategy, queues, clients), OUR_ROUNDS) * 1e3
    print(
        f"{request['strategy']:22} {sorting:13.0f} {allocating:9.1f} {whole - alone:11.1f} {alone:9.2f} "
        f"{(sorting + allocating) / whole:6.0f}x",
        flush=True,
    )


def _whole_group(strategy: Strategy, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
    return _allocate(strategy, sorted_queues(queues), java_sorted(clients))


def _allocate(strategy: Strategy, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
    """Allocate with nothing remembered from the round before."""
    client_points.cache_clear()
    return strategy.owners(queues, clients)


def _counts_of_one_group() -> None:
    topics = [_topic(f"t{number}", size, number) for number, size in enumerate((128, 64, 64))]
    clients = [f"10.0.0.{number}@1#{number * 7919}" for number in range(256)]
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        strategy = find_strategy(name)
        took = _median(lambda strategy=strategy: _useful(strategy, topics, 256, clients), 15) * 1e3
        print(f"useful counts of 256, 256 queues in 3 weighted topics, {name}: {took:.1f} ms")


def _counts_of_many_groups() -> None:
    clients = [f"10.0.0.{number}@1#{number * 7919}" for number in range(32)]
    groups = [[_topic("t", 32, number)] for number in range(100)]
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        strategy = find_strategy(name)
        started = time.thread_time()
        for number in range(GROUPS):
            _useful(strategy, groups[number % len(groups)], 32, clients)
        print(f"useful counts of {GROUPS} groups with 32 queues each, {name}: {time.thread_time() - started:.1f} s")
    print(f"largest memory of this process so far: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _moves_of_one_group() -> None:
    queues = [[MessageQueue("t", "b", number) for number in range(256)]]
    clients = [f"c{number:04}" for number in range(64)]
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        strategy = find_strategy(name)
        joins = _median(lambda strategy=strategy: join_range(strategy, queues, clients), 5) * 1e3
        leaves = _median(lambda strategy=strategy: departures(strategy, queues, clients), 5) * 1e3
        print(f"256 queues, 64 clients, {name}: every join {joins:.1f} ms, every departure {leaves:.1f} ms")


def _useful(strategy: Strategy, topics: list[Topic], highest: int, clients: list[str]) -> tuple[int, ...]:
    return undominated_counts(range(1, highest + 1), largest_loads(strategy, topics, highest, clients))


def _topic(name: str, size: int, seed: int) -> Topic:
    weights = np.random.default_rng(seed).random(size)
    return [MessageQueue(name, "broker-a", number) for number in range(size)], weights


def _times(run: Callable[[], object], rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        started = time.thread_time()
        run()
        found.append(time.thread_time() - started)
    return found


def _best(run: Callable[[], object], rounds: int) -> float:
    return min(_times(run, rounds))


def _median(run: Callable[[], object], rounds: int) -> float:
    return statistics.median(_times(run, rounds))
