"""Queues as plans spell them: one entry a topic and broker, ``orders/broker-a/0-3,6``."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from planner.model.queues import Queue

MOST_QUEUES: Final = 100_000
"""Of one consumer in a plan, and of all consumers together."""
_RANGES: Final = re.compile(r"[0-9]{1,10}(-[0-9]{1,10})?(,[0-9]{1,10}(-[0-9]{1,10})?)*")


def ranges_of(entry: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return where the queues of one entry are, and the first and last number of each of its ranges.

    Raises ``ValueError`` for what is no such entry: a plan is free text, and its ranges are counted out.
    """
    location, _, ranges = entry.rpartition("/")
    if not location or _RANGES.fullmatch(ranges) is None:
        raise ValueError(f"queues like orders/broker-a/0-3,6, not {entry[:80]!r}")
    bounds = [span.partition("-") for span in ranges.split(",")]
    return location, tuple((int(first), int(last or first)) for first, _, last in bounds)


def count_queues(entries: Iterable[str]) -> int:
    """Return how many queues the entries name. Raises ``ValueError`` for what is no such entry."""
    return sum(last - first + 1 for entry in entries for first, last in ranges_of(entry)[1])


def queues_named(entries: Iterable[str]) -> Iterator[str]:
    """Yield each queue by itself, as text: ``orders/broker-a/0``. Entries are counted before (``count_queues``)."""
    for entry in entries:
        location, ranges = ranges_of(entry)
        for first, last in ranges:
            yield from (f"{location}/{number}" for number in range(first, last + 1))


def compact_queues(queues: Iterable[Queue]) -> tuple[str, ...]:
    """Return one entry for each location with the queue numbers as ranges: ``orders/broker-a/0-3,6``."""
    by_location = groupby(sorted(queues), key=lambda queue: queue.place)
    return tuple(
        f"{'/'.join(location)}/{_ranges([queue.number for queue in queues_at])}" for location, queues_at in by_location
    )


def _ranges(ids: Sequence[int]) -> str:
    runs = groupby(enumerate(ids), key=lambda pair: pair[1] - pair[0])
    bounds = [[queue_id for _, queue_id in run] for _, run in runs]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in bounds)
