"""Which client reads each queue from when to when, in every trial: what owns what after a step, what is unread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.forecast.trials import Document, Floats, interval

Indexes = NDArray[np.intp]

NOBODY = -1
MOST_STEP_CELLS = 20_000
"""Steps times queues of which an answer lists the owners; a larger change has the topics' figures alone."""
_DIGITS = 2
_BEFORE_S = 1e-6
"""So long before the next step begins the owners after one are taken."""

ADDED, REMOVED, KEPT, FILTERED = "added", "removed", "kept", "filtered otherwise"
"""What a change of subscription does to a topic."""


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """By trial, queue and stretch, in the order of time: ``client`` owns it from ``taken`` and reads it from ``first``.

    Both are -inf where it did all along; ``until`` is inf for good. ``client`` is NOBODY where there is no such
    stretch, ``first`` is inf where the client reads nothing in it.
    """

    client: Indexes
    taken: Floats
    first: Floats
    until: Floats

    def owners_at(self, at_s: float) -> Indexes:
        """Return by trial and queue the client that owns it at a moment (inf: for good), NOBODY where none does."""
        open_ = (self.client != NOBODY) & (self.taken <= at_s)
        open_ &= np.isposinf(self.until) if np.isposinf(at_s) else self.until > at_s
        latest = np.where(open_, np.arange(self.client.shape[2]), -1).max(axis=2, initial=-1)
        owners = np.take_along_axis(self.client, np.maximum(latest, 0)[:, :, None], axis=2)[:, :, 0]
        return np.where(latest < 0, NOBODY, owners)


@dataclass(frozen=True, slots=True, eq=False)
class Unread:
    """By trial and queue: ``total_s``, for how long nobody reads it from the change on (inf: never again), from
    ``begins`` (NaN: always read) to ``ends`` (inf: never again)."""

    total_s: Floats
    begins: Floats
    ends: Floats


def find_unread(readings: Readings) -> Unread:
    """Return for how long nobody reads each queue, counted from the change; pauses between two owners count, too."""
    shape = readings.client.shape[:2]
    reached, total, ends = np.zeros(shape), np.zeros(shape), np.full(shape, np.nan)
    begins = np.full(shape, np.nan)
    for number in range(readings.client.shape[2]):
        first, until = readings.first[:, :, number], readings.until[:, :, number]
        reads = (readings.client[:, :, number] != NOBODY) & (first < until)
        gap = reads & (first > reached)
        total = np.where(gap, total + first - np.where(gap, reached, 0.0), total)
        begins = np.where(gap & np.isnan(begins), reached, begins)
        ends = np.where(gap, first, ends)
        reached = np.where(reads, np.maximum(reached, until), reached)
    lost = np.isfinite(reached)
    begins = np.where(lost & np.isnan(begins), reached, begins)
    return Unread(np.where(lost, np.inf, total), begins, np.where(lost, np.inf, ends))


def describe_steps(
    readings: Readings,
    queues: Sequence[list[Any]],
    labels: Sequence[str | None],
    clients: Sequence[str],
    interval_s: float,
) -> list[Document] | None:
    """Return after each client's restart who owns each queue, just before the next one; ``None`` for too much to list.

    ``labels`` are the clients' names and at the end ``None``. An owner is that of most trials, ``share`` of them, which
    is left out where it is all.
    """
    if about_steps(len(clients), len(queues)):
        return None
    steps = []
    for number, client in enumerate(clients):
        last = number == len(clients) - 1
        owners = readings.owners_at(np.inf if last else (number + 1) * interval_s - _BEFORE_S)
        listed = [_owner(queue, owners[:, column], labels) for column, queue in enumerate(queues)]
        steps.append(
            {
                "step": number + 1,
                "client": client,
                "at_s": number * interval_s,
                "owners": listed,
                "unread": [owner["queue"] for owner in listed if owner["owner"] is None],
            }
        )
    return steps


def about_steps(clients: int, queues: int) -> list[str]:
    """Return in a sentence that the owners after each step are not listed, nothing where they are."""
    if clients * queues <= MOST_STEP_CELLS:
        return []
    return [
        f"who owns what after each step is left out: {clients} steps and {queues} queues are more than the "
        f"{MOST_STEP_CELLS} owners that an answer lists"
    ]


def _owner(queue: list[Any], owners: Indexes, labels: Sequence[str | None]) -> Document:
    numbers, counts = np.unique(owners, return_counts=True)
    share = float(counts.max() / len(owners))
    document = {"queue": queue, "owner": labels[int(numbers[counts.argmax()])]}
    return document if share == 1.0 else {**document, "share": round(share, _DIGITS)}


def describe_topics(
    readings: Readings, queues: Sequence[list[Any]], rates: Floats, kinds: Mapping[str, str]
) -> list[Document]:
    """Return by topic how long its worst queue is unread, from when to when, and what comes in that time.

    ``kinds`` says what the change does to each topic. Seconds are ``null`` without an end, and where all queues are
    read all along they are 0; ``unread_messages`` is ``null`` where a queue is never read again.
    """
    unread = find_unread(readings)
    return [_topic(topic, kind, queues, unread, rates) for topic, kind in kinds.items()]


def _topic(topic: str, kind: str, queues: Sequence[list[Any]], unread: Unread, rates: Floats) -> Document:
    mine = np.array([queue[0] == topic for queue in queues])
    total, begins, ends = unread.total_s[:, mine], unread.begins[:, mine], unread.ends[:, mine]
    is_lost = bool(np.isposinf(total).any())
    messages = (np.where(np.isposinf(total), 0.0, total) * rates[mine]).sum(axis=1)
    return {
        "topic": topic,
        "change": kind,
        "queues": int(mine.sum()),
        "unread_s": None if is_lost else interval(total.max(axis=1, initial=0.0)),
        "unread_from_s": _interval(begins, np.fmin.reduce),
        "read_again_s": None if is_lost else _interval(ends, np.fmax.reduce),
        "unread_messages": None if is_lost else interval(np.round(messages)),
        "queues_unread_for_good": int(np.isposinf(total).mean(axis=0).round().sum()),
    }


def _interval(values: Floats, over_queues: Any) -> Any:
    """Return the interval of one figure of each trial's queues, ``None`` where no trial has it."""
    return interval(over_queues(values, axis=1)) if values.shape[1] else None
