"""The groups whose subscription changes, and what is read of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Barrier
from typing import Any

from planner.documents.forecast import forecast

Document = dict[str, Any]
Queue = tuple[Any, ...]

RATE = 10.0
QUEUES = 4
STEP_S = 16.0
"""No multiple of a heartbeat's 3 s, so that members restart at any time between two of them, and longer than a group
takes to come to rest after one member's restart: two heartbeats of the consumer protocol."""
SEEN_S = 3.5 / RATE
"""A queue is unread where so much time is between two deliveries; it has ten messages a second."""
MOST_S = 3_600.0
SETTLED_S = 300.0
CALM_S = 7.0


class Turns:
    """Groups that begin one after the other, spread over a step, so that no two of them restart a member at a time."""

    def __init__(self, groups: int) -> None:
        self.groups, self._all = groups, Barrier(groups)

    def sleep_s(self, index: int) -> float:
        """Return how long a group waits after all have come to rest."""
        self._all.wait(2 * SETTLED_S)
        return CALM_S + index * STEP_S / self.groups


@dataclass(frozen=True)
class KafkaCase:
    """A group whose members come back with ``after`` instead of ``before``: letters of its topics.

    ``pattern``: the topic is created that its pattern matches, which ``client`` or ``broker`` evaluates.
    """

    name: str
    assignor: str
    before: str
    after: str
    members: int = 2
    pattern: str = ""
    client: str = ""
    queues: int = QUEUES

    @property
    def protocol(self) -> str:
        """The group's protocol."""
        return "consumer" if self.assignor in ("uniform", "range-server") else "classic"


@dataclass(frozen=True)
class RocketMQCase:
    """A group whose clients come back with ``after`` instead of ``before``: tags by letter of its topics."""

    name: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    members: int = 2
    strategy: str = "AVG"
    version: str = ""


KAFKA = (
    *(
        KafkaCase(f"{assignor}-{what}", assignor, before, after, members)
        for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
        for what, before, after, members in (("adds", "a", "ab", 2), ("removes", "ab", "a", 3), ("swaps", "a", "b", 2))
    ),
    KafkaCase("range-pattern", "range", "a", "ab", 2, "client"),
    KafkaCase("cooperative-pattern", "cooperative-sticky", "a", "ab", 3, "client"),
    KafkaCase("uniform-pattern", "uniform", "a", "ab", 2, "broker"),
)
ALL = "*"
ROCKETMQ = (
    RocketMQCase("tags-wider", {"a": "x"}, {"a": "x || y"}),
    RocketMQCase("tags-narrower", {"a": "x || y"}, {"a": "x"}),
    RocketMQCase("tags-swap", {"a": "x"}, {"a": "y"}, 3),
    RocketMQCase("tags-from-all", {"a": ALL}, {"a": "x"}),
    RocketMQCase("tags-wider-4.9", {"a": "x"}, {"a": "x || y"}, version="4.9.8"),
    RocketMQCase("topic-added", {"a": ALL}, {"a": ALL, "b": ALL}),
    RocketMQCase("topic-removed", {"a": ALL, "b": ALL}, {"a": ALL}),
    RocketMQCase("topics-swapped", {"a": ALL}, {"b": ALL}),
    RocketMQCase("topic-added-by-circle", {"a": ALL}, {"a": ALL, "b": ALL}, 3, "AVG_BY_CIRCLE"),
)


@dataclass(frozen=True)
class Read:
    """One delivery: when, to which client, and which message of its queue; ``tag`` where messages have some."""

    at_s: float
    client: str
    queue: Queue
    offset: int
    tag: str = ""


@dataclass(frozen=True)
class Outcome:
    """What was seen of a case: its request, deliveries by seconds since the change, and owners after each step.

    ``filtered``: messages of the mixed time that nobody got, by tag. ``winners``: what brokers had as the group's
    subscription while old and new were mixed: tags or topics, and how often each was read.
    """

    name: str
    request: Document
    reads: Sequence[Read]
    owners: Sequence[Mapping[Queue, str]]
    until_s: float
    filtered: Mapping[str, int] = field(default_factory=dict)
    winners: Mapping[str, int] = field(default_factory=dict)

    def answer(self) -> Document:
        """Return the forecast."""
        return forecast(self.request)

    def unread_s(self, queue: Queue) -> float:
        """Return for how long in sum nobody read a queue, from the change to the end of the watch (inf: to its end)."""
        times = sorted(read.at_s for read in self.reads if read.queue == queue and read.at_s >= 0)
        before = [read.at_s for read in self.reads if read.queue == queue and read.at_s < 0]
        if not times or self.until_s - times[-1] > STEP_S / 2:
            return math.inf
        marks = [max(before) if before else 0.0, *times]
        gaps = [later - earlier for earlier, later in pairwise(marks)]
        return sum(gap - 1 / RATE for gap in gaps if gap > SEEN_S)

    def duplicates(self) -> int:
        """Return the deliveries beyond the first of each message since a little before the change."""
        recent = [(read.queue, read.offset) for read in self.reads]
        return len(recent) - len(set(recent))


@dataclass(frozen=True)
class Figure:
    """One figure beside its interval; ``None`` as bound: never again."""

    name: str
    seen: float
    low: float
    high: float

    @property
    def is_inside(self) -> bool:
        """Return whether the interval has it; a sum of gaps is as coarse as the time between two messages."""
        return self.low - SEEN_S <= self.seen <= self.high + SEEN_S


def figures(outcome: Outcome) -> list[Figure]:
    """Return the figures of a case: by topic how long its worst queue was unread; duplicates.

    A topic whose tags have nothing in common has no first figure: what is filtered away looks as if nobody read it.
    """
    answer, found = outcome.answer(), []
    silent = {one["topic"] for one in answer["subscription"].get("filters", ()) if not _common(one)}
    for topic in answer["subscription"]["topics"]:
        if topic["topic"] in silent:
            continue
        queues = {tuple(queue["queue"]) for step in answer["subscription"]["steps"] for queue in step["owners"]}
        queues = queues or {read.queue for read in outcome.reads}
        mine = [outcome.unread_s(queue) for queue in sorted(queues) if queue[0] == topic["topic"]]
        bounds = topic["unread_s"] or {"p05": math.inf, "p95": math.inf}
        found.append(Figure(f"unread {topic['change']}", max(mine), bounds["p05"], bounds["p95"]))
    total = answer["total"]["duplicates"]
    return [*found, Figure("duplicates", outcome.duplicates(), total["p05"], total["p95"])]


def _common(filtered: Document) -> bool:
    before, after = set(filtered["before"]), set(filtered["after"])
    return bool(before & after) or ALL in before | after


def owners_agree(outcome: Outcome) -> list[bool]:
    """Return for each step whether all owners are as forecast; where ids are made up, how many each topic's have."""
    answer = outcome.answer()
    return [_agrees(step, owners) for step, owners in zip(answer["subscription"]["steps"], outcome.owners, strict=True)]


def _agrees(step: Document, owners: Mapping[Queue, str]) -> bool:
    expected = {tuple(owner["queue"]): owner["owner"] for owner in step["owners"] if owner["owner"] is not None}
    if expected == owners:
        return True
    is_sure = all("share" not in owner for owner in step["owners"])
    return not is_sure and _shape(expected) == _shape(owners)


def _shape(owners: Mapping[Queue, str]) -> list[tuple[str, list[int]]]:
    """Return by topic how many queues its owners have, in order."""
    return [
        (
            topic,
            sorted(
                sum(queue[0] == topic and owner == client for queue, owner in owners.items())
                for client in {owner for queue, owner in owners.items() if queue[0] == topic}
            ),
        )
        for topic in sorted({str(queue[0]) for queue in owners})
    ]
