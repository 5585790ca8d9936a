"""The cells that are tried, most wanted kinds first."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.clusters.kafka import CLIENT, OLD_CLIENT
from tests.clusters.kafka_load import LIBRDKAFKA
from tests.conformance.kafka.cells import AUTO, SYNC, Case, Cell

Change = Mapping[str, Any]

SESSION_MS = "8000"
"""The default, 45 s, would make every crash last as long."""
METADATA_AGE_S = 10
"""For growing topics; the default, 300 s, would make each of them last as long."""

REPETITIONS = 3
COMMON_REPETITIONS = range(REPETITIONS, REPETITIONS + 8)
"""How often the common kinds are done beyond that: each is to have 20 cases in the check half."""
JAVA = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
# librdkafka has no eager sticky assignor.
OF_EACH_PROTOCOL = ("range", "cooperative-sticky", "uniform")
OTHERS = ("range", "roundrobin", "cooperative-sticky")

JOIN: Change = {"kind": "join", "count": 1}
JOIN_TWO: Change = {"kind": "join", "count": 2}
JOIN_LATER: Change = {"kind": "join", "count": 2, "stagger_s": 4}
LEAVE: Change = {"kind": "leave", "how": "graceful", "count": 1}
LEAVE_TWO: Change = {"kind": "leave", "how": "graceful", "count": 2}
CRASH: Change = {"kind": "leave", "how": "crash", "count": 1}
RESTART: Change = {"kind": "restart", "how": "graceful", "count": 1, "interval_s": 5}
ROLL: Change = {"kind": "restart", "how": "graceful", "count": 3, "interval_s": 4}
COME_BACK: Change = {"kind": "restart", "how": "crash", "count": 1, "interval_s": 3}
FREEZE: Change = {"kind": "freeze", "count": 1, "for_s": 14}
GROW: Change = {"kind": "queues", "to": 12}

SWITCHES = (
    ("range", "cooperative-sticky"),
    ("range", "roundrobin"),
    ("sticky", "cooperative-sticky"),
    ("roundrobin", "sticky"),
    ("cooperative-sticky", "range"),
)
CONVERSIONS: tuple[Change, ...] = (
    {"kind": "strategy", "to": "uniform", "interval_s": 8, "count": 3},
    {"kind": "strategy", "to": "uniform", "interval_s": 15, "count": 3},
    {"kind": "rolling_update", "to": "uniform", "ready_s": 10, "count": 3},
)
"""Rolls from the classic to the consumer protocol: members that restart in turn, and new pods before old ones go."""
CONVERSION_REPETITIONS = 8
UPGRADES: tuple[Change, ...] = (
    {"kind": "upgrade", "to": CLIENT, "interval_s": 8, "count": 3},
    {"kind": "upgrade", "to": CLIENT, "interval_s": 15, "count": 3},
)
SUCCESSIONS: tuple[Change, ...] = (
    {"kind": "blue_green", "clone_s": 1, "count": 3},
    {"kind": "blue_green", "clone_s": 3, "count": 3},
    {"kind": "blue_green", "clone_s": 0, "stop_s": 3, "count": 3},
)
"""Another group takes over: from offsets that are copied after the stop, and from some of three seconds before."""
SUCCESSION_REPETITIONS = 4
CUTS: tuple[Change, ...] = tuple({"kind": "partition", "count": 1, "for_s": for_s} for for_s in (4, 14, 40))
"""A member is out of reach for less than its session, for longer, and for longer than its requests wait (30 s)."""
CUTS_OUT: tuple[Change, ...] = tuple({"kind": "partition", "count": 1, "for_s": for_s} for for_s in (11, 20))
"""Longer than a short session: others take over."""
CUT_REPETITIONS = 3
CRASH_REPETITIONS = range(COMMON_REPETITIONS.stop, COMMON_REPETITIONS.stop + 4)
"""Crashes that nobody had seen when the age of a commit was mended (23 November 2026)."""

SIMPLE = (JOIN, LEAVE, CRASH)
COMMON = (JOIN, LEAVE, RESTART, CRASH)
CHANGES = (CRASH, JOIN, LEAVE, RESTART, FREEZE, COME_BACK, GROW, JOIN_TWO, LEAVE_TWO, JOIN_LATER, ROLL)


def cases() -> Iterator[Case]:
    """Yield every case in the order in which they are wanted: all kinds before any is repeated, common ones first."""
    for repetitions, some in (
        (COMMON_REPETITIONS, common_cells),
        (range(REPETITIONS), cells),
        (range(CONVERSION_REPETITIONS), conversions),
        (range(SUCCESSION_REPETITIONS), successions),
        (range(CUT_REPETITIONS), cuts),
        (CRASH_REPETITIONS, crashes),
    ):
        for repetition in repetitions:
            yield from (Case(cell, repetition) for cell in some())


def conversions() -> Iterator[Cell]:
    """Yield the plain cells of rolls to the consumer protocol."""
    yield from _of(CONVERSIONS, ("range", "cooperative-sticky"))


def successions() -> Iterator[Cell]:
    """Yield the plain cells of upgrades and of groups that another one takes over from."""
    yield from _of(UPGRADES, OF_EACH_PROTOCOL[:2], client=OLD_CLIENT)
    yield from _of(SUCCESSIONS, OF_EACH_PROTOCOL)
    yield from _of(SUCCESSIONS, OF_EACH_PROTOCOL[:1], client=OLD_CLIENT)
    yield from _of(SUCCESSIONS, OF_EACH_PROTOCOL[:1], client=LIBRDKAFKA)


def cuts() -> Iterator[Cell]:
    """Yield the plain cells of members whose network is cut."""
    yield from _of(CUTS, OF_EACH_PROTOCOL)
    yield from _of(CUTS, OF_EACH_PROTOCOL[:1], client=OLD_CLIENT)
    yield from _of(CUTS, OF_EACH_PROTOCOL[:1], client=LIBRDKAFKA)
    yield from _of(CUTS_OUT, OF_EACH_PROTOCOL)
    yield from _of(CUTS_OUT, OF_EACH_PROTOCOL[:1], client=LIBRDKAFKA)


def crashes() -> Iterator[Cell]:
    """Yield the plain cells of crashes, for each protocol that each client has."""
    yield from (cell for cell in common_cells() if cell.blow[0] == "kill")


def common_cells() -> Iterator[Cell]:
    """Yield the plain cells of the common kinds, for each protocol that each client has."""
    yield from _of(COMMON, OF_EACH_PROTOCOL)
    yield from _of(COMMON, OF_EACH_PROTOCOL[:2], client=LIBRDKAFKA)
    yield from _of(COMMON, OF_EACH_PROTOCOL[:2], client=OLD_CLIENT)


def cells() -> Iterator[Cell]:
    """Yield all cells, the plain ones first."""
    yield from _of(CHANGES, JAVA)
    for before, after in SWITCHES:
        yield from _of([{"kind": "strategy", "to": after, "interval_s": 6, "count": 3}], [before])
    for assignor in JAVA:
        yield from _of(SIMPLE, [assignor], rate=5.0, service_ms=20.0, commit=SYNC)
        yield from _of(SIMPLE, [assignor], rate=30.0, service_ms=2.0, interval_ms=5000)
    yield from _of((RESTART, CRASH, FREEZE), OF_EACH_PROTOCOL, is_static=True)
    # A second process of a KIP-848 instance dies of UnreleasedInstanceIdException while the first one's session lasts.
    yield from _of([COME_BACK], OF_EACH_PROTOCOL[:2], is_static=True)
    yield from _of(COMMON, OTHERS, client=LIBRDKAFKA)
    yield from _of(COMMON, JAVA[:4], client=OLD_CLIENT)
    yield from _of(COMMON, ["uniform"], client=LIBRDKAFKA)
    yield from _of([CRASH], OF_EACH_PROTOCOL, session_ms="20000")
    # A slow poll loop: a batch takes seconds, and a member rejoins between two only.
    yield from _of(SIMPLE, OF_EACH_PROTOCOL, rate=1.5, service_ms=100.0)
    yield from _of(SIMPLE, OF_EACH_PROTOCOL, rate=10.0, service_ms=10.0, backlog=300)


def _of(changes: Iterable[Change], assignors: Iterable[str], **figures: Any) -> Iterator[Cell]:
    for change, assignor in itertools.product(changes, assignors):
        yield _cell(assignor, change, **figures)


def _cell(
    assignor: str,
    change: Change,
    *,
    client: str = CLIENT,
    rate: float = 10.0,
    service_ms: float = 5.0,
    commit: str = AUTO,
    interval_ms: int = 1000,
    backlog: int = 0,
    is_static: bool = False,
    session_ms: str = SESSION_MS,
) -> Cell:
    settings = {"auto.commit.interval.ms": str(interval_ms)} if commit == AUTO else {}
    group: dict[str, str] = {}
    is_awaited = change["kind"] == "freeze" or change.get("how") == "crash" or change in CUTS_OUT
    if is_awaited and assignor == "uniform":
        group["consumer.session.timeout.ms"] = session_ms
    elif is_awaited:
        settings["session.timeout.ms"] = session_ms
    if change is GROW:
        name = "topic.metadata.refresh.interval.ms" if client == LIBRDKAFKA else "metadata.max.age.ms"
        settings[name] = f"{METADATA_AGE_S}000"
    return Cell(
        assignor,
        change,
        client=client,
        rate=rate,
        service_ms=service_ms,
        backlog=backlog,
        commit=commit,
        is_static=is_static,
        settings=settings,
        group=group,
    )
