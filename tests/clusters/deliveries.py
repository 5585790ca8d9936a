"""What consumers in pods were given: one log a pod, read together; what was lost, came twice and stood still."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

Lane = tuple[str, ...]
"""A queue as its parts: topic, broker, number of RocketMQ's, topic and number of Kafka's."""

_LOGGED = 7
"""Columns of RocketMQ's load program; two more where it tells the messages' ids."""


@dataclass(frozen=True)
class Given:
    """One message handed to a consumer at ``at_s`` by the machine's clock; the broker had it since ``came_s``.

    ``message`` is its own id, where RocketMQ's load program was asked for it.
    """

    at_s: float
    client: str
    lane: Lane
    offset: int
    came_s: float
    message: str = ""


def read_given(folder: Path) -> list[Given]:
    """Return all that consumers logged in the folder's ``*.tsv``, oldest first; half a line is dropped."""
    lines = (line for log in sorted(folder.glob("*.tsv")) for line in _whole_lines(log))
    return sorted(map(_given, lines), key=lambda one: one.at_s)


def _whole_lines(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


def _given(line: str) -> Given:
    fields = line.split("\t")
    told, message = (fields[:_LOGGED], fields[_LOGGED]) if len(fields) > _LOGGED else (fields, "")
    epoch_ms, client, *lane, offset, came_ms = told
    return Given(int(epoch_ms) / 1000, client, tuple(lane), int(offset), int(came_ms) / 1000, message)


def lost(produced: Mapping[Lane, int], given: Iterable[Given]) -> dict[Lane, list[int]]:
    """Return by queue the offsets below ``produced`` that nobody was given; queues without any are left out."""
    seen: dict[Lane, set[int]] = {}
    for one in given:
        seen.setdefault(one.lane, set()).add(one.offset)
    missing = {lane: sorted(set(range(count)) - seen.get(lane, set())) for lane, count in produced.items()}
    return {lane: offsets for lane, offsets in missing.items() if offsets}


@dataclass(frozen=True)
class Course:
    """All deliveries of a group, and a span of time in which something was changed, in epoch seconds."""

    given: Sequence[Given]
    since_s: float
    until_s: float

    def twice(self) -> int:
        """Return how many deliveries within the span were of messages that had been delivered before."""
        return len(self.repeated())

    def repeated(self) -> list[Given]:
        """Return the last delivery before each one within the span that was not its message's first."""
        seen: dict[tuple[Lane, int], Given] = {}
        before = []
        for one in self.given:
            key = (one.lane, one.offset)
            if key in seen and self.since_s <= one.at_s <= self.until_s:
                before.append(seen[key])
            seen[key] = one
        return before

    def longest_s(self, lanes: Iterable[Lane]) -> float:
        """Return the longest that messages of one of the queues waited within the span while none was delivered."""
        wanted = set(lanes)
        waits = [
            later.at_s - max(earlier.at_s, later.came_s)
            for lane, of_lane in self._by_lane().items()
            if lane in wanted
            for earlier, later in pairwise(of_lane)
            if self.since_s <= later.at_s and earlier.at_s <= self.until_s
        ]
        return max(waits, default=0.0)

    def first_s(self, lane: Lane, client: str, since_s: float) -> float:
        """Return when a queue was first delivered by that client from then on, in epoch seconds."""
        return next(one.at_s for one in self.given if (one.lane, one.client) == (lane, client) and one.at_s >= since_s)

    def mean_wait_s(self) -> float:
        """Return how long the messages that came within the span waited for their first delivery, in the mean."""
        first = {(one.lane, one.offset): one for one in reversed(self.given)}
        waits = [one.at_s - one.came_s for one in first.values() if self.since_s <= one.came_s <= self.until_s]
        return sum(waits) / len(waits)

    def _by_lane(self) -> dict[Lane, list[Given]]:
        ordered = sorted(self.given, key=lambda one: (one.lane, one.at_s))
        return {lane: list(of_lane) for lane, of_lane in groupby(ordered, key=lambda one: one.lane)}
