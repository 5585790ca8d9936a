"""The matrix of RocketMQ transitions: series of changes, each done to one living group.

A series starts a group and changes it step by step, so that a process that started for one step is there for the next.
Series take turns through the versions; all else of a series follows from its number, so a list never changes when it
grows.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.conformance.record import record_id

SYSTEM = "rocketmq"
VERSIONS = tuple((client, broker) for broker in ("4.9.7", "5.5.0") for client in ("4.9.8", "5.1.4", "5.5.0"))
STRATEGIES: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("AVG", {}),
    ("AVG", {}),
    ("AVG_BY_CIRCLE", {}),
    ("CONSISTENT_HASH", {"virtual_nodes": 10}),
)
LOADS = ((8.0, 0.05), (12.0, 0.02), (5.0, 0.2), (6.0, 0.1))
"""Messages per second and queue, seconds a message; 20 threads of one member are enough for all queues."""

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Config:
    """One group as it begins. ``queues`` are those of each of two brokers; ``settings`` by the client's own names."""

    client: str
    broker: str
    strategy: str
    options: Mapping[str, int]
    members: int
    queues: int
    rate: float
    service_s: float
    threads: int = 20
    orderly: bool = False
    settings: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """Changes done one after the other to one group; ``number`` seeds all that is drawn while it runs."""

    kind: str
    number: int
    config: Config
    steps: tuple[Step, ...]

    def ids(self) -> list[str]:
        """Return the id of each step's transition."""
        cell = {"kind": self.kind, "config": asdict(self.config), "steps": list(self.steps)}
        return [record_id(SYSTEM, {**cell, "step": index}, self.number) for index in range(len(self.steps))]


def join(count: int = 1, stagger_s: float = 0.0) -> Step:
    """Newcomers start, ``stagger_s`` one after the other."""
    return {"kind": "join", "count": count, "stagger_s": stagger_s}


def leave(how: str, count: int = 1) -> Step:
    """Members end, all at once."""
    return {"kind": "leave", "how": how, "count": count}


def restart(how: str, interval_s: float) -> Step:
    """One member ends and starts again."""
    return {"kind": "restart", "how": how, "interval_s": interval_s}


def switch(to: str, options: Mapping[str, int], interval_s: float) -> Step:
    """All members change their strategy, one after the other."""
    return {"kind": "strategy", "to": to, "options": dict(options), "interval_s": interval_s}


MEMBERS: tuple[tuple[Step, ...], ...] = (
    (join(), leave("crash"), join(), leave("graceful"), restart("graceful", 4.0), leave("crash")),
    (leave("graceful"), join(), leave("crash"), join(2), leave("graceful", 2)),
    (leave("crash"), join(), restart("graceful", 3.0), leave("graceful"), join(), leave("graceful")),
    (restart("graceful", 6.0), leave("crash"), join(2, 1.5), leave("crash", 2), join()),
)
SWITCHES: tuple[tuple[Step, ...], ...] = (
    (switch("AVG_BY_CIRCLE", {}, 4.0), switch("AVG", {}, 2.0), leave("crash")),
    (switch("CONSISTENT_HASH", {"virtual_nodes": 10}, 3.0), switch("AVG", {}, 5.0), leave("graceful")),
)
ORDERLY: tuple[tuple[Step, ...], ...] = (
    (join(), leave("graceful"), join(), leave("crash")),
    (leave("graceful"), join(), restart("graceful", 4.0), leave("crash")),
)
QUEUES: tuple[tuple[Step, ...], ...] = (
    ({"kind": "queues", "by": 2}, {"kind": "queues", "by": -2}),
    ({"kind": "queues", "by": 4}, {"kind": "queues", "by": -5}),
)


def series(kind: str, chains: tuple[tuple[Step, ...], ...], number: int) -> Series:
    """Return one series; its number alone says what it is."""
    drawn = random.Random(f"{kind} {number}")
    client, broker = VERSIONS[number % len(VERSIONS)]
    strategy, options = drawn.choice(STRATEGIES) if kind != "switches" else STRATEGIES[0]
    rate, service_s = drawn.choice(LOADS)
    patient = kind == "members" and drawn.random() < 0.2
    settings = {"awaitTerminationMillisWhenShutdown": 5000} if patient else {}
    members = drawn.choice((2, 3)) + (kind == "members" and chains[number % len(chains)][0]["kind"] != "join")
    return Series(
        kind,
        number,
        Config(
            client,
            broker,
            strategy,
            options,
            members,
            drawn.choice((4, 4, 6)),
            rate,
            0.02 if kind == "orderly" else service_s,
            orderly=kind == "orderly",
            settings=settings,
        ),
        # The chain turns more slowly than the versions: every chain meets every pair of versions.
        chains[number // len(VERSIONS) % len(chains)],
    )


def matrix(rounds: int = 40) -> Iterator[Series]:
    """Yield all series, the most common changes first; each round goes once through all pairs of versions."""
    for turn in range(rounds):
        for place in range(len(VERSIONS)):
            yield series("members", MEMBERS, turn * len(VERSIONS) + place)
            number = turn // 2 * len(VERSIONS) + place
            if turn % 2 == 0:
                yield series("switches", SWITCHES, number)
                yield series("queues", QUEUES, number)
            else:
                yield series("orderly", ORDERLY, number)
