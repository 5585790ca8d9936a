"""The count whose consumer time, changes and lateness cost least over possible futures: a receding horizon.

For each first action the cost over all futures is the mean of what each future costs with the best later actions
(hindsight optimisation: Chong, Givan, Chang 2000). Only the first action is taken; then the group is observed again.

The state is a count and a backlog. The backlog is the group's, in consumer-seconds, as if spread like the load, so that
a change of the count leaves it as it is: the busiest of ``n`` consumers has its share ``s(n)`` of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HorizonSettings:
    """How the horizon counts.

    ``bins_min`` are the lengths of its stretches in minutes. ``pace`` is the part of a consumer's capacity that is
    counted on; a message is late ``late_margin`` of the objective's wait. ``reaction`` is what part of the period between
    two observations a later rise waits in addition to the pods' start.
    """

    bins_min: tuple[int, ...] = (1, 1, 1, 1, 2, 2, 3, 4, 5, 10, 10, 20, 20, 20, 20)
    pace: float = 0.97
    late_margin: float = 2 / 3
    reaction: float = 0.5
    levels: tuple[float, ...] = (0, 3, 8, 15, 25, 40, 60, 90, 150, 300, 900, 3600)
    """Backlogs that values are kept for, in seconds of the level's load."""


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as it is: consumers that run, those ordered (with them), when the next are ready, and the backlog.

    ``backlog`` is in consumer-seconds of the whole group.
    """

    running: int
    ordered: int
    ready_in_s: float
    backlog: float


@dataclass(frozen=True, slots=True)
class Costs:
    """Prices and objective: consumer-seconds of one change and of one late minute, and the wait that is late."""

    change: float
    late_minute: float
    late_after_s: float
    pod_start_s: float
    every_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Bill:
    """Expected cost of every first action, in consumer-seconds over the horizon; ``chosen`` is the cheapest."""

    counts: tuple[int, ...]
    costs: Floats
    chosen: int


def horizon_bins(settings: HorizonSettings, pod_start_s: float) -> tuple[int, ...]:
    """Return the bins in minutes, none shorter than a pod's start, of about the same length in all."""
    least = max(1, -int(-pod_start_s // 60))
    if least == 1:
        return settings.bins_min
    total, bins = sum(settings.bins_min), []
    lengths = iter(settings.bins_min)
    while sum(bins) < total:
        bins.append(max(least, next(lengths, least)))
    return tuple(bins)


def choose_count(
    counts: Sequence[int],
    shares: Floats,
    futures: Floats,
    bins_min: Sequence[int],
    state: GroupState,
    costs: Costs,
    settings: HorizonSettings,
) -> Bill:
    """Return the bill of every first action and the cheapest one.

    ``counts`` are ascending and hold ``state.running`` and ``state.ordered``; ``shares`` has the busiest consumer's share
    of the load for each. ``futures`` are loads in consumers, shape (paths, bins); bins as ``horizon_bins`` returns them.
    """
    model = _Model(np.asarray(counts, dtype=float), shares, futures, costs, settings)
    seconds = 60.0 * np.asarray(bins_min, dtype=float)
    value = model.end_value()
    for index in range(len(seconds) - 1, 0, -1):
        value = model.earlier(value, futures[:, index], float(seconds[index]))
    first = model.first(value, futures[:, 0], float(seconds[0]), state, list(counts))
    means = first.mean(axis=0)
    return Bill(tuple(counts), means, int(counts[int(means.argmin())]))


class _Model:
    """The arrays that all bins share: paths × counts × backlog levels."""

    def __init__(
        self, counts: Floats, shares: Floats, futures: Floats, costs: Costs, settings: HorizonSettings
    ) -> None:
        self._counts, self._shares = counts, shares
        self._costs, self._pace = costs, settings.pace
        self._drain = settings.pace / shares
        self._late_after = settings.late_margin * costs.late_after_s
        self._delay = costs.pod_start_s + settings.reaction * costs.every_s
        scale = max(float(futures[:, : min(4, futures.shape[1])].mean()), 0.1)
        self._levels = np.asarray(settings.levels) * scale
        self._rises = counts[None, :] > counts[:, None]
        self._change = costs.change * (counts[None, :] != counts[:, None])

    def end_value(self) -> Floats:
        """Return the value at the horizon's end: what is late then stays late for as long as it waits."""
        wait = self._levels * self._shares[:, None]
        late = np.maximum(wait - self._late_after, 0.0) / 60.0 * self._costs.late_minute
        return late[None, :, :]

    def earlier(self, value: Floats, load: Floats, seconds: float) -> Floats:
        """Return the value one bin earlier: shape (paths, counts, levels)."""
        delay = min(self._delay, seconds)
        load = load[:, None, None]
        whole = self._stretch(value, load, seconds)
        rest = self._stretch(value, load, seconds - delay) if delay < seconds else value
        # Going up: the first part runs with the old share, then the new count's value takes over.
        between, late = self._grow(self._levels, load, self._drain[:, None], self._shares[:, None], delay)
        index, weight = self._locate(between)
        paths = np.arange(len(load))[:, None, None, None]
        targets = np.arange(len(self._counts))[None, None, :, None]
        index, weight = index[:, :, None, :], weight[:, :, None, :]
        rest = np.broadcast_to(rest, whole.shape)
        up = rest[paths, targets, index]
        up = up + weight * (rest[paths, targets, index + 1] - up)
        up += (late + self._start_cost(delay))[:, :, None, :]
        options = np.where(self._rises[None, :, :, None], up, whole[:, None, :, :])
        options += self._change[None, :, :, None]
        return np.asarray(options.min(axis=2))

    def first(self, value: Floats, load: Floats, seconds: float, state: GroupState, counts: list[int]) -> Floats:
        """Return the cost of each first action on each path; shape (paths, counts)."""
        columns = [self._first(value, load, seconds, state, target, counts) for target in counts]
        return np.stack(columns, axis=1)

    def _first(
        self, value: Floats, load: Floats, seconds: float, state: GroupState, target: int, counts: list[int]
    ) -> Floats:
        """Play the first bin with one target: what runs now, what is ordered already, then the target."""
        backlog, total = np.full(len(load), state.backlog), np.zeros(len(load))
        left = seconds
        for span, count in _stretches(state, target, self._costs.pod_start_s):
            span = min(span, left)
            index = counts.index(count)
            backlog, late = self._grow(backlog, load, self._drain[index], self._shares[index], span)
            total += count * span + late
            left -= span
        index = counts.index(target)
        backlog, late = self._grow(backlog, load, self._drain[index], self._shares[index], left)
        total += target * left + late
        total += self._costs.change * _changes(state, target)
        values = np.broadcast_to(value, (len(load), *value.shape[1:]))[:, index, :]
        place, weight = self._locate(backlog)
        rows = np.arange(len(load))
        low = values[rows, place]
        return np.asarray(total + low + weight * (values[rows, place + 1] - low))

    def _stretch(self, value: Floats, load: Floats, seconds: float) -> Floats:
        """Return for each count the cost of running it for so long, with the value behind it, by backlog level."""
        after, late = self._grow(self._levels, load, self._drain[:, None], self._shares[:, None], seconds)
        index, weight = self._locate(after)
        value = np.broadcast_to(value, after.shape)
        low = np.take_along_axis(value, index, axis=2)
        high = np.take_along_axis(value, index + 1, axis=2)
        return np.asarray(low + weight * (high - low) + late + self._counts[:, None] * seconds)

    def _start_cost(self, delay: float) -> Floats:
        """Pods are paid once they are ready: until then the old count is."""
        return np.asarray(self._counts[None, :, None] * delay)

    def _grow(
        self, backlog: Floats, load: Floats, drain: Floats, share: Floats, seconds: float
    ) -> tuple[Floats, Floats]:
        """Return the backlog after a stretch, and the price of the part of it in which messages are late."""
        change = load - drain
        after = np.maximum(backlog + change * seconds, 0.0)
        if seconds <= 0:
            return after, np.zeros_like(after)
        limit = self._late_after * np.maximum(self._pace, load * share) / share
        slope = np.where(np.abs(change) < 1e-9, 1e-9, change)
        crossing = (limit - backlog) / slope
        late_s = np.where(backlog > limit, np.where(change < 0, crossing, seconds), np.where(change > 0, seconds - crossing, 0))
        price = self._costs.late_minute / 60.0
        return after, np.clip(late_s, 0.0, seconds) * price

    def _locate(self, backlog: Floats) -> "tuple[NDArray[np.intp], Floats]":
        """Return between which two levels each backlog lies, and how far; beyond the last the line goes on."""
        index = np.searchsorted(self._levels, backlog, side="right") - 1
        index = np.clip(index, 0, len(self._levels) - 2)
        low, high = self._levels[index], self._levels[index + 1]
        return index, (backlog - low) / (high - low)


def _stretches(state: GroupState, target: int, pod_start_s: float) -> list[tuple[float, int]]:
    """Return how long which counts run before the target does: a stop is at once, a start takes its time."""
    if target <= state.running:
        return []
    if target <= state.ordered:
        return [(state.ready_in_s, state.running)]
    if state.ordered == state.running:
        return [(pod_start_s, state.running)]
    ready_s = min(state.ready_in_s, pod_start_s)
    return [(ready_s, state.running), (pod_start_s - ready_s, state.ordered)]


def _changes(state: GroupState, target: int) -> int:
    """Return how many rebalances an order for the target means, those that are under way included."""
    if target == state.ordered:
        return int(state.ordered != state.running)
    if target > state.ordered:
        return 1 + int(state.ordered != state.running)
    return int(target != state.running)
