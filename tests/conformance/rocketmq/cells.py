"""The matrix of RocketMQ transitions: series of changes, each done to one living group.

A series starts a group and changes it step by step, so that a process that started for one step is there for the next.
Series take turns through the versions; all else of a series follows from its number, so a list never changes when it
grows.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
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
BACKLOGS = (1000, 2000)
"""Messages that wait in each queue when the group starts: two members with few threads take one or two minutes."""
BACKLOGGED_LOAD, BACKLOGGED_THREADS = (5.0, 0.05), 4
SETTINGS: tuple[Mapping[str, int], ...] = (
    {"persistConsumerOffsetInterval": 500},
    {"persistConsumerOffsetInterval": 30_000},
    {"awaitTerminationMillisWhenShutdown": 5000},
    {"rocketmq.client.rebalance.waitInterval": 4000},
)
BATCHES: tuple[Mapping[str, int], ...] = (
    {},
    {},
    {"pullBatchSize": 4},
    {"consumeMessageBatchMaxSize": 4},
)
DRAWN = {"settings": SETTINGS, "backlog": BATCHES}
"""Settings of which groups of a kind draw one set."""

_CAME_LATER = ("backlog", "consumer")

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Config:
    """One group as it begins. ``queues`` are those of each of two brokers; ``settings`` by the client's own names.

    ``service_s`` is spent on each message; ``backlog`` messages wait in each queue when the members start;
    ``consumer`` is the request's option of that name, push where it is empty.
    """

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
    backlog: int = 0
    consumer: str = ""

    @property
    def call_s(self) -> float:
        """How long a listener call takes: where messages wait its batch is full, else it is one message."""
        return self.service_s * (self.settings.get("consumeMessageBatchMaxSize", 1) if self.backlog else 1)

    def document(self) -> dict[str, Any]:
        """Return what tells it from others; a field that came later counts only where it says something."""
        return {name: value for name, value in asdict(self).items() if value or name not in _CAME_LATER}


@dataclass(frozen=True, slots=True)
class Series:
    """Changes done one after the other to one group; ``number`` seeds all that is drawn while it runs."""

    kind: str
    number: int
    config: Config
    steps: tuple[Step, ...]

    def ids(self) -> list[str]:
        """Return the id of each step's transition."""
        cell = {"kind": self.kind, "config": self.config.document(), "steps": list(self.steps)}
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


def broker(happens: str) -> Step:
    """A broker is killed (``down``), or the one that was is started again (``up``)."""
    return {"kind": f"broker_{happens}"}


def absence(kind: str, for_s: float) -> Step:
    """One member stands still (``freeze``), or is cut off from everybody (``partition``), for so long."""
    return {"kind": kind, "for_s": for_s}


def upgrade(to: str, interval_s: float) -> Step:
    """All members get another release, one after the other."""
    return {"kind": "upgrade", "to": to, "interval_s": interval_s}


def blue_green(clone_s: float) -> Step:
    """All members stop, and as many of another group take over from offsets that are copied so much later."""
    return {"kind": "blue_green", "clone_s": clone_s}


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
ALLOCATED: tuple[tuple[Step, ...], ...] = (
    (leave("crash"), join(), leave("graceful"), join(2, 1.5), leave("crash", 2)),
    (leave("graceful"), join(), restart("graceful", 4.0), leave("crash"), join()),
)
"""Chains of groups whose queues the broker allocates, by the two strategies that it knows."""
LITE_PULL: tuple[tuple[Step, ...], ...] = (
    (join(), leave("crash"), join(), leave("graceful")),
    (leave("graceful"), join(), leave("crash"), join()),
)
"""Chains of groups whose applications poll, by one thread each."""
POLLED_VERSIONS = (("4.9.8", "4.9.7"), ("5.5.0", "5.5.0"), ("4.9.8", "5.5.0"), ("5.5.0", "5.5.0"))
"""A lite pull client of 5.0+ gets nothing of a broker of 4.9: seen of 5.5.0 on 4.9.7, and refused since."""
POLLED_LOADS = ((8.0, 0.002), (5.0, 0.005), (12.0, 0.002))
POLLED_SETTINGS: tuple[Mapping[str, int], ...] = (
    {},
    {},
    {"autoCommitIntervalMillis": 1000},
    {"persistConsumerOffsetInterval": 1000},
)
SILENT: tuple[tuple[Step, ...], ...] = (
    (leave("silent"),),
    (join(), leave("silent")),
)
BROKERS: tuple[tuple[Step, ...], ...] = ((broker("down"), broker("up")),)
BACKLOG: tuple[tuple[Step, ...], ...] = (
    (join(), leave("crash")),
    (leave("crash"), join()),
    (leave("graceful"), join()),
)
CHANGED: tuple[tuple[Step, ...], ...] = (
    (leave("crash"), join(), leave("graceful")),
    (leave("graceful"), join(), restart("crash", 4.0)),
)
ABSENCES_S = ((40.0, 10.0), (70.0, 10.0))
"""How long members are away in a chain: brokers drop them, or wait for them."""
PATIENCE: tuple[Mapping[str, int], ...] = (
    {"heartbeatBrokerInterval": 10_000, "serverChannelMaxIdleTimeSeconds": 25},
    {"heartbeatBrokerInterval": 10_000, "serverChannelMaxIdleTimeSeconds": 30},
)
"""Brokers that wait for 120 s would be watched for minutes; they wait for more than two heartbeats, as they do."""
UPGRADES: tuple[tuple[str, str], ...] = (("4.9.8", "5.5.0"), ("5.1.4", "5.5.0"), ("4.9.8", "5.1.4"))
POLLED_AWAY = {"polled_freezes": "freeze", "polled_cuts": "partition"}
"""Series of lite pull consumers of whom one is away, by kind."""
POLLED_MEMBERS = 3
"""So many that queues of the other broker change hands, too, when one dies."""
FETCHED: tuple[Step, ...] = (absence("freeze", 40.0), absence("partition", 40.0), broker("down"), broker("up"))
SELDOM = {"backlog": BACKLOG, "settings": CHANGED, "brokers": BROKERS, "silent": SILENT}
"""Chains of the kinds that come once a round: brokers need a cluster of their own, silence takes two minutes."""
GROWN = ("members", "settings", "backlog")
"""Kinds that begin with one member more where the first step is no join."""


def series(kind: str, chains: tuple[tuple[Step, ...], ...], number: int) -> Series:
    """Return one series; its number alone says what it is."""
    drawn = random.Random(f"{kind} {number}")
    client, broker = VERSIONS[number % len(VERSIONS)]
    strategy, options = drawn.choice(STRATEGIES) if kind != "switches" else STRATEGIES[0]
    rate, service_s = drawn.choice(LOADS)
    settings = _settings(kind, drawn)
    # The chain turns more slowly than the versions: every chain meets every pair of versions.
    steps = chains[number // len(VERSIONS) % len(chains)]
    # Series of members go by another chain than theirs: so they began, and their ids rest on it.
    first = chains[number % len(chains)][0] if kind == "members" else steps[0]
    members = drawn.choice((2, 3)) + (kind in GROWN and first["kind"] != "join")
    config = Config(
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
    )
    return Series(kind, number, _backlogged(config, drawn) if kind == "backlog" else config, steps)


def allocated(number: int) -> Series:
    """Return one series of a group whose members let the broker allocate: clients and brokers of 5.5.0."""
    drawn = random.Random(f"allocated {number}")
    strategy, options = drawn.choice(STRATEGIES[1:3])
    rate, service_s = drawn.choice(LOADS)
    members, queues = drawn.choice((3, 4)), drawn.choice((4, 4, 6))
    settings = {"clientRebalance": False}
    config = Config("5.5.0", "5.5.0", strategy, options, members, queues, rate, service_s, settings=settings)
    return Series("allocated", number, config, ALLOCATED[number % len(ALLOCATED)])


def lite_pull(number: int) -> Series:
    """Return one series of a group of lite pull consumers: clients 4.9.8 and 5.5.0, which differ in their looks."""
    drawn = random.Random(f"lite_pull {number}")
    client, broker = POLLED_VERSIONS[number % len(POLLED_VERSIONS)]
    rate, service_s = drawn.choice(POLLED_LOADS)
    config = Config(
        client,
        broker,
        "AVG",
        {},
        drawn.choice((3, 4)),
        drawn.choice((4, 4, 6)),
        rate,
        service_s,
        threads=1,
        settings=drawn.choice(POLLED_SETTINGS),
        consumer="lite_pull",
    )
    return Series("lite_pull", number, config, LITE_PULL[number // len(POLLED_VERSIONS) % len(LITE_PULL)])


def absent(kind: str, number: int) -> Series:
    """Return one series of ``freezes`` or ``cuts``: one member is away for a while, twice."""
    drawn = random.Random(f"{kind} {number}")
    client, broker = VERSIONS[number % len(VERSIONS)]
    config = Config(client, broker, "AVG", {}, drawn.choice((2, 3)), 4, 8.0, 0.05, settings=drawn.choice(PATIENCE))
    step = {"freezes": "freeze", "cuts": "partition"}[kind]
    away_s = ABSENCES_S[number // len(VERSIONS) % len(ABSENCES_S)]
    return Series(kind, number, config, tuple(absence(step, for_s) for for_s in away_s))


def polled(kind: str, number: int) -> Series:
    """Return one series of lite pull consumers of whom one is away, twice, or whose brokers die and come back."""
    drawn = random.Random(f"{kind} {number}")
    client, broker = POLLED_VERSIONS[number % len(POLLED_VERSIONS)]
    rate, service_s = drawn.choice(POLLED_LOADS)
    config = Config(
        client,
        broker,
        "AVG",
        {},
        POLLED_MEMBERS,
        drawn.choice((4, 4, 6)),
        rate,
        service_s,
        threads=1,
        settings=drawn.choice(PATIENCE) if kind in POLLED_AWAY else {},
        consumer="lite_pull",
    )
    if kind not in POLLED_AWAY:
        return Series(kind, number, config, BROKERS[0])
    away_s = ABSENCES_S[number // len(POLLED_VERSIONS) % len(ABSENCES_S)]
    return Series(kind, number, config, tuple(absence(POLLED_AWAY[kind], for_s) for for_s in away_s))


def fetched(number: int) -> Series:
    """Return one series of pull consumers, of whom the forecast tells which queues move and nothing else."""
    drawn = random.Random(f"fetched {number}")
    client, broker = POLLED_VERSIONS[number % len(POLLED_VERSIONS)]
    config = Config(
        client,
        broker,
        "AVG",
        {},
        POLLED_MEMBERS,
        4,
        8.0,
        0.0,
        threads=1,
        settings=drawn.choice(PATIENCE),
        consumer="pull",
    )
    return Series("fetched", number, config, FETCHED)


def upgraded(number: int) -> Series:
    """Return one series of a group whose clients get another release."""
    drawn = random.Random(f"upgrades {number}")
    old, new = UPGRADES[number % len(UPGRADES)]
    rate, service_s = drawn.choice(LOADS)
    broker = drawn.choice(("4.9.7", "5.5.0"))
    config = Config(old, broker, "AVG", {}, drawn.choice((2, 3)), 4, rate, service_s)
    return Series("upgrades", number, config, (upgrade(new, drawn.choice((4.0, 8.0))),))


def succeeded(number: int) -> Series:
    """Return one series of a group that others take over from, twice."""
    drawn = random.Random(f"blue_green {number}")
    client, broker = VERSIONS[number % len(VERSIONS)]
    rate, service_s = drawn.choice(LOADS)
    config = Config(client, broker, "AVG", {}, drawn.choice((2, 3)), 4, rate, service_s)
    return Series("blue_green", number, config, (blue_green(1.0), blue_green(2.0)))


def _settings(kind: str, drawn: random.Random) -> Mapping[str, int]:
    if kind == "members":
        return {"awaitTerminationMillisWhenShutdown": 5000} if drawn.random() < 0.2 else {}
    return drawn.choice(DRAWN[kind]) if kind in DRAWN else {}


def _backlogged(config: Config, drawn: random.Random) -> Config:
    rate, service_s = BACKLOGGED_LOAD
    return replace(config, rate=rate, service_s=service_s, threads=BACKLOGGED_THREADS, backlog=drawn.choice(BACKLOGS))


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
        for kind, chains in SELDOM.items():
            yield series(kind, chains, turn)
        yield allocated(turn)
        yield lite_pull(turn)
        yield absent("freezes", turn)
        yield absent("cuts", turn)
        yield upgraded(turn)
        yield succeeded(turn)
        for kind in (*POLLED_AWAY, "polled_brokers"):
            yield polled(kind, turn)
        yield fetched(turn)
