"""Kafka assignment: ours against the warmed assignor classes in the same run.

The classes' side is one call of ``assign`` by a group leader (clients) or the coordinator (server), everything they are
given ready in memory. Ours starts from the group as numbers, topics and tables made anew each time, and ends with the
owner of every partition as an array. Both sides count processor time of the working thread, median of many calls, so
that a busy machine favours neither; Java's collector and compiler run in threads of their own and are not counted.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.allocation.kafka import ASSIGNORS, Topics, equal_group, find_assignor, mixed_group
from planner.allocation.kafka.group import NOBODY, IntArray
from tests.allocations import assign
from tests.oracles.kafka.oracle import NEWEST, KafkaOracle

TOPICS, PARTITIONS, MEMBERS = 10, 1_000, 1_000
FEWEST_CALLS, SECONDS = 7, 0.3
EQUAL_LIMIT, MIXED_LIMIT = 1.0, 10.0
"""Our time over Java's that we promise to stay under, by kind of subscription."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One measurement: ``owners`` is what is owned before, None for a fresh start."""

    name: str
    strategy: str
    owners: IntArray | None = None
    is_mixed: bool = False
    options: tuple[tuple[str, str], ...] = ()


def main() -> None:
    """Print both times and the ratio for each case, then what a whole request document costs."""
    print(f"{TOPICS} x {PARTITIONS} partitions, {MEMBERS} members, Kafka {NEWEST}; milliseconds, ratio = ours / Java")
    print(f"{'case':44} {'Java':>9} {'ours':>9} {'ratio':>7} {'limit':>6}")
    behind = []
    with KafkaOracle(NEWEST, with_server=True) as oracle:
        for case in _cases():
            java = oracle.nanoseconds(_document(case)) / 1e6
            ours = _milliseconds(_ours(case))
            limit = MIXED_LIMIT if case.is_mixed else EQUAL_LIMIT
            behind += [case.name] if ours > limit * java else []
            print(f"{case.name:44} {java:9.3f} {ours:9.3f} {ours / java:7.2f} {limit:6.0f}", flush=True)
    print(f"over the limit: {', '.join(behind) or 'none'}")
    document = _document(Case("", "sticky"))
    print(f"whole document, fresh sticky, names and lists included: {_milliseconds(lambda: assign(document)):.1f}")


def _cases() -> Iterator[Case]:
    joined, left = _before("sticky", MEMBERS - 1), _before("sticky", MEMBERS + 1)
    left[left == MEMBERS] = NOBODY
    yield Case("range", "range")
    yield Case("roundrobin", "roundrobin")
    yield Case("sticky, fresh", "sticky")
    yield Case("sticky, one joined", "sticky", joined)
    yield Case("sticky, one left", "sticky", left)
    first = (("cooperative_round", "first"),)
    yield Case("cooperative-sticky, one joined, first round", "cooperative-sticky", joined, options=first)
    yield Case("cooperative-sticky, one joined, both rounds", "cooperative-sticky", joined)
    yield Case("uniform, fresh", "uniform")
    yield Case("uniform, one joined", "uniform", _before("uniform", MEMBERS - 1))
    yield Case("range-server", "range-server")
    for strategy in ("range", "roundrobin", "sticky", "uniform", "range-server"):
        yield Case(f"mixed: {strategy}, fresh", strategy, is_mixed=True)
    for strategy in ("sticky", "uniform"):
        yield Case(f"mixed: {strategy}, as before", strategy, _mixed_before(strategy, MEMBERS), is_mixed=True)
        yield Case(f"mixed: {strategy}, one joined", strategy, _mixed_before(strategy, MEMBERS - 1), is_mixed=True)


def _before(strategy: str, members: int) -> IntArray:
    return ASSIGNORS[strategy](equal_group(_topics(), members)).owners


def _mixed_before(strategy: str, members: int) -> IntArray:
    return ASSIGNORS[strategy](mixed_group(_topics(), _subscribers(members), members)).owners


def _topics() -> Topics:
    return Topics((PARTITIONS,) * TOPICS)


def _subscribers(members: int) -> list[IntArray]:
    """Return who subscribes to what in the mixed group: member m leaves out topic m mod 10, every third topic 9 too."""
    return [
        np.array([m for m in range(members) if topic in _subscription(m)], dtype=np.intp) for topic in range(TOPICS)
    ]


def _subscription(member: int) -> set[int]:
    left_out = {member % TOPICS} | ({TOPICS - 1} if member % 3 == 0 else set())
    return set(range(TOPICS)) - left_out


def _ours(case: Case) -> Callable[[], object]:
    assignor = find_assignor(case.strategy, dict(case.options))
    if case.is_mixed:
        subscribers = _subscribers(MEMBERS)
        return lambda: assignor(mixed_group(_topics(), subscribers, MEMBERS, case.owners))
    return lambda: assignor(equal_group(_topics(), MEMBERS, case.owners))


def _document(case: Case) -> Document:
    owned: list[list[list[Any]]] = [[] for _ in range(MEMBERS)]
    for partition, owner in enumerate([] if case.owners is None else case.owners.tolist()):
        if owner != NOBODY:
            owned[owner].append([f"t{partition // PARTITIONS}", partition % PARTITIONS])
    members = [
        {
            "id": f"consumer-{member:04}",
            "topics": [f"t{topic}" for topic in sorted(_subscription(member) if case.is_mixed else range(TOPICS))],
            "owned": owned[member],
            "generation": None if case.owners is None else 1,
        }
        for member in range(MEMBERS)
    ]
    return {
        "system": "kafka",
        "strategy": case.strategy,
        "partitions": {f"t{topic}": PARTITIONS for topic in range(TOPICS)},
        "members": members,
        "options": dict(case.options),
    }


def _milliseconds(call: Callable[[], object]) -> float:
    """Return the median processor time of a call once it is warm."""
    call()
    spent: list[float] = []
    while len(spent) < FEWEST_CALLS or sum(spent) < SECONDS:
        start = time.thread_time()
        call()
        spent.append(time.thread_time() - start)
    return statistics.median(spent) * 1e3


if __name__ == "__main__":
    main()
