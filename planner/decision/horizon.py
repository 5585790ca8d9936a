"""The count whose consumer time, changes and lateness cost least over possible futures: a receding horizon.

For each first action the cost is the mean over all futures of what each one costs under a rule for the later actions
that knows no future: at each step it takes the action of least expected cost, by the load as it is known there
(``planner.decision.expectation``). Only the first action is taken; then the group is observed again.

The state is a count and a backlog. The backlog is the group's, in consumer-seconds, so that a change of the count
leaves it as it is: of ``n`` consumers the one with most of it has ``w(n)`` of it. With an even backlog that is the
busiest one's share of the load, ``s(n)``; what waits in few queues more consumers do not part, and ``w(n)`` says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.decision.expectation import Expectation, Floats, expectations_after

Ints = NDArray[np.intp]
Periods = Sequence[Sequence[int]]
"""Lengths of bins in minutes, those between two decisions together."""


@dataclass(frozen=True, slots=True)
class HorizonSettings:
    """How the horizon counts.

    ``bins_min`` are the lengths of its stretches in minutes, where decisions are no further apart: of one minute each
    for as long as bursts are to be told from a steady load, as a stretch's mean hides what is shorter. ``pace`` is the
    part of a consumer's capacity that is counted on; a message is late from ``late_margin`` of the objective's wait.
    """

    bins_min: tuple[int, ...] = (1,) * 10 + (2,) * 5 + (5, 5, 5, 10, 10, 20, 20, 25)
    pace: float = 0.99
    late_margin: float = 0.85
    levels: tuple[float, ...] = (0, 5, 12, 25, 40, 60, 100, 200, 600, 3600)
    """Backlogs that values are kept for, in seconds of the level's load."""


DEFAULT_HORIZON = HorizonSettings()
UNREACHABLE = 1e15
"""The cost of going where no count is: interpolation takes differences, and infinity less infinity is no number."""


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as it is: consumers that run, those ordered (with them), when the next are ready, and the backlog.

    ``backlog`` is in consumer-seconds of the whole group, as if the running consumer with most of it had its share of
    the load. ``backlog_ratios`` are what the consumer with most of it would have under each count, over what it has
    under the running one; ``None`` where the backlog is spread like the load.
    """

    running: int
    ordered: int
    ready_in_s: float
    backlog: float
    backlog_ratios: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """Prices and objective: consumer-seconds of one change and of one late minute, and the wait that is late.

    A consumer that is started works after ``pod_start_s``, and ``every_s`` is the period between two decisions: nothing
    else can be done within it.

    ``change`` is the price of any change, or that of a change to each of the counts, in their order, whichever count it
    comes from and whenever it comes: a change that were cheaper later would be put off for ever.
    """

    change: float | tuple[float, ...]
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


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """What the cost of every first action is made of, in consumer-seconds; the three add up to the bill's costs.

    ``changes`` are those that the first action means and all later ones, ``late`` is the price of all late minutes.
    """

    consumers: Floats
    changes: Floats
    late: Floats


def horizon_periods(settings: HorizonSettings, shortest_s: float) -> Periods:
    """Return the bins in minutes of each period between two decisions, of about the same length in all.

    No period is shorter than ``shortest_s``: nothing else can be done within a pod's start, nor between two decisions.
    Within a period load and backlog go on from bin to bin, as the mean of a long stretch hides the minutes in which
    messages come too late.
    """
    least, total = max(1, -int(-shortest_s // 60)), sum(settings.bins_min)
    finest = [length for length in settings.bins_min for _ in range(length)]
    lengths, periods, begin = iter(settings.bins_min), [], 0
    while begin < total:
        end = begin + max(least, next(lengths, least))
        bins: list[int] = []
        while begin < end:
            bins.append(min(finest[begin] if begin < total else end - begin, end - begin))
            begin += bins[-1]
        periods.append(tuple(bins))
    return tuple(periods)


class Model:
    """The arrays that all bins share: paths × counts × backlog levels.

    Costs have one axis more in front: whole, or in the parts of ``Items``.
    """

    def __init__(
        self,
        counts: Sequence[int],
        shares: Floats,
        futures: Floats,
        state: GroupState,
        costs: Costs,
        settings: HorizonSettings,
        *,
        parts: int,
    ) -> None:
        self._is_whole = parts == 1
        self._futures, self._state = futures, state
        self._counts, self._costs, self._pace = np.asarray(counts, dtype=float)[:, None], costs, settings.pace
        self._shares = shares[:, None]
        self._backlog_shares = _backlog_shares(counts, shares, state)[:, None]
        self._arriving = self._shares / self._backlog_shares
        self._drain = settings.pace / self._backlog_shares
        self._late_after = settings.late_margin * costs.late_after_s
        self._late_price = costs.late_minute / 60.0
        self._changes = np.broadcast_to(costs.change, len(counts))
        self._delay = costs.pod_start_s
        scale = max(float(futures[:, :4].mean()), 0.1)
        self._levels = np.asarray(settings.levels) * scale
        self._widths = np.diff(self._levels)
        self._paths = np.arange(len(futures))
        self._rows = np.arange(len(counts))[None, :, None]

    def mean_costs(self, periods_min: Periods) -> Floats:
        """Return the mean cost of each first action, whole or in three parts; shape (parts, counts)."""
        begins = np.cumsum([len(period) for period in periods_min[:-1]]).tolist()
        value = self.end_value()
        expectations = expectations_after(self._futures, begins)
        for period, begin, expectation in reversed(list(zip(periods_min[1:], begins, expectations, strict=True))):
            value = self.earlier(value, self._futures[:, begin : begin + len(period)], _seconds(period), expectation)
        now = periods_min[0]
        return np.asarray(self.first(value, self._futures[:, : len(now)], _seconds(now)).mean(axis=1))

    def end_value(self) -> Floats:
        """Return the value at the horizon's end: what is late then stays late for as long as it waits."""
        wait = np.maximum(self._levels * self._backlog_shares - self._late_after, 0.0)
        late = np.broadcast_to(wait * self._late_price, (len(self._paths), *wait.shape))
        return self._cost(late=late)

    def earlier(self, value: Floats, loads: Floats, seconds: Sequence[float], expectation: Expectation) -> Floats:
        """Return the value one period earlier: shape (parts, paths, counts, levels).

        What is done is what was expected to cost least; what it costs is each path's own. A fall takes effect at once.
        A rise is paid and helps after its delay; until then the old count runs.
        """
        delay = min(self._delay, sum(seconds))
        change = self._cost(changes=self._changes[None, :, None])
        stay, rest = self._stretches(value, loads, seconds, delay)
        between, late = self._until(loads, seconds, delay)

        expected_stay = expectation.of(stay.sum(axis=0))
        below, expected_fall = _cheapest_below(expected_stay + self._changes[:, None])
        fall = _taken(stay + change, below)
        above = _cheapest_above(expectation.of(rest.sum(axis=0)) + self._changes[:, None])
        higher = _taken(rest + change, above)
        rise = self._values_at(higher, between) + self._cost(consumers=self._counts * delay, late=late)
        rise[..., -1, :] = UNREACHABLE

        is_fall = expected_fall < expected_stay
        is_rise = expectation.of(rise.sum(axis=0)) < np.minimum(expected_fall, expected_stay)
        return np.asarray(np.where(is_rise, rise, np.where(is_fall, fall, stay)))

    def first(self, value: Floats, loads: Floats, seconds: Sequence[float]) -> Floats:
        """Return the cost of each first action on each path; shape (parts, paths, counts).

        What runs now, then what is ordered, runs until the target's pods are ready.
        """
        state, counts = self._state, self._counts.ravel().astype(int).tolist()
        backlog: Floats = np.full((len(loads), len(counts)), state.backlog)
        total = self._cost(changes=self._changes * np.array([[_changes(state, target) for target in counts]]))
        spans = np.array([_spans(state, target, self._costs.pod_start_s) for target in counts]).T
        never, ordered_at, target_at = np.zeros(len(counts)), spans[0], spans.sum(axis=0)
        phases = (
            (counts.index(state.running), never, ordered_at),
            (counts.index(state.ordered), ordered_at, target_at),
            (slice(None), target_at, np.full(len(counts), np.inf)),
        )
        begin = 0.0
        for load, length in zip(loads.T[:, :, None], seconds, strict=True):
            for row, since, until in phases:
                span = np.maximum(np.minimum(until, begin + length) - np.maximum(since, begin), 0.0)
                if not span.any():
                    continue
                arriving, drain = load * self._arriving[row].ravel(), self._drain[row].ravel()
                backlog, late = self._grow(backlog, arriving, drain, self._limit(load, row), span)
                total = total + self._cost(consumers=self._counts[row].ravel() * span, late=late)
            begin += length
        return np.asarray(total + self._values_at(value, backlog[:, :, None])[..., 0])

    def _cost(
        self, consumers: Floats | float = 0.0, changes: Floats | float = 0.0, late: Floats | float = 0.0
    ) -> Floats:
        """Return a cost whole or in its parts, which are then in front."""
        if self._is_whole:
            return np.asarray(consumers + changes + late)[None]
        return np.stack(np.broadcast_arrays(consumers, changes, late))

    def _stretches(self, value: Floats, loads: Floats, seconds: Sequence[float], delay: float) -> tuple[Floats, Floats]:
        """Return for each count the cost of running it for the whole period, and for all but its first ``delay``."""
        rest, end = value, sum(seconds)
        for index in range(len(seconds) - 1, -1, -1):
            begin = end - seconds[index]
            if begin <= delay < end:
                rest = self._stretch(value, loads[:, index], end - delay)
            value = self._stretch(value, loads[:, index], seconds[index])
            end = begin
        return value, rest

    def _stretch(self, value: Floats, load: Floats, seconds: float) -> Floats:
        """Return for each count the cost of running it for so long, with the value behind it, by backlog level."""
        load = load[:, None, None]
        limit, arriving = self._limit(load, slice(None)), load * self._arriving
        after, late = self._grow(self._levels, arriving, self._drain, limit, seconds)
        return self._values_at(value, after) + self._cost(consumers=self._counts * seconds, late=late)

    def _until(self, loads: Floats, seconds: Sequence[float], end: float) -> tuple[Floats, Floats]:
        """Return the backlog at ``end`` of a period whose count stays until then, and the price of what is late."""
        backlog, late, begin = self._levels, np.zeros((1, 1, 1)), 0.0
        for index, length in enumerate(seconds):
            if begin >= end:
                break
            load = loads[:, index, None, None]
            limit, arriving = self._limit(load, slice(None)), load * self._arriving
            backlog, more = self._grow(backlog, arriving, self._drain, limit, min(length, end - begin))
            late, begin = late + more, begin + length
        return backlog, late

    def _limit(self, load: Floats, row: int | slice) -> Floats:
        """Return the backlog at which the oldest message is late, of all counts (paths, counts, 1) or of one's row.

        It waits for the backlog over the pace at which that came in, which was a consumer's own pace at least.
        """
        shares, backlog_shares = self._shares[row], self._backlog_shares[row]
        if load.ndim < 3:
            shares, backlog_shares = shares.ravel(), backlog_shares.ravel()
        return np.asarray(self._late_after / backlog_shares * np.maximum(self._pace, load * shares))

    def _grow(
        self, backlog: Floats, arriving: Floats, drain: Floats, limit: Floats, seconds: float | Floats
    ) -> tuple[Floats, Floats]:
        """Return the backlog after a stretch, and the price of the part of it in which messages are late."""
        growth = (arriving - drain) * seconds
        after = backlog + growth
        late_share = (np.maximum(backlog, after) - limit) / (np.abs(growth) + 1e-6)
        return np.maximum(after, 0.0), np.minimum(np.maximum(late_share, 0.0), 1.0) * (seconds * self._late_price)

    def _values_at(self, value: Floats, backlog: Floats) -> Floats:
        """Return each path's and count's value at its own backlogs; beyond the last level the line goes on."""
        index = np.searchsorted(self._levels[1:-1], backlog, side="right")
        weight = (backlog - self._levels[index]) / self._widths[index]
        flat = index + len(self._levels) * (len(self._rows[0]) * self._paths[:, None, None] + self._rows)
        line = np.ascontiguousarray(value).reshape(len(value), -1)
        low = line[:, flat]
        return np.asarray(low + weight * (line[:, flat + 1] - low))


def choose_count(
    counts: Sequence[int],
    shares: Floats,
    futures: Floats,
    periods_min: Periods,
    state: GroupState,
    costs: Costs,
    settings: HorizonSettings,
    model: type[Model] = Model,
) -> Bill:
    """Return the bill of every first action and the cheapest one.

    ``counts`` are ascending and hold ``state.running`` and ``state.ordered``; ``shares`` has the busiest consumer's
    share of the load for each. ``futures`` are loads in consumers, shape (paths, bins), in the bins of ``periods_min``
    (``horizon_periods``), all periods behind each other.
    """
    (means,) = model(counts, shares, futures, state, costs, settings, parts=1).mean_costs(periods_min)
    return Bill(tuple(counts), means, int(counts[int(means.argmin())]))


def itemise(
    counts: Sequence[int],
    shares: Floats,
    futures: Floats,
    periods_min: Periods,
    state: GroupState,
    costs: Costs,
    settings: HorizonSettings,
) -> Items:
    """Return what the bill of ``choose_count`` is made of: the same actions, their costs apart."""
    return Items(*Model(counts, shares, futures, state, costs, settings, parts=3).mean_costs(periods_min))


def _seconds(period_min: Sequence[int]) -> tuple[float, ...]:
    return tuple(60.0 * minutes for minutes in period_min)


def _backlog_shares(counts: Sequence[int], shares: Floats, state: GroupState) -> Floats:
    """Return the part of the backlog that the consumer with most of it has, for each count."""
    if state.backlog_ratios is None:
        return shares
    return np.asarray(float(shares[list(counts).index(state.running)]) * np.asarray(state.backlog_ratios))


def _cheapest_below(value: Floats) -> tuple[Ints, Floats]:
    """Return for each count the index of the cheapest smaller one and its value; the smallest has none."""
    least = np.minimum.accumulate(value, axis=1)
    index = np.maximum.accumulate(np.where(value == least, np.arange(value.shape[1])[:, None], 0), axis=1)
    below, its_value = np.zeros_like(index), np.full_like(value, UNREACHABLE)
    below[:, 1:], its_value[:, 1:] = index[:, :-1], least[:, :-1]
    return below, its_value


def _cheapest_above(value: Floats) -> Ints:
    """Return for each count the index of the cheapest larger one; the largest has none, and its own."""
    below, _ = _cheapest_below(value[:, ::-1])
    return np.asarray(value.shape[1] - 1 - below[:, ::-1])


def _taken(cost: Floats, count: Ints) -> Floats:
    """Return each path's own cost, whole or in parts, of the count of that index."""
    return np.take_along_axis(cost, np.broadcast_to(count, cost.shape), axis=2)


def _spans(state: GroupState, target: int, pod_start_s: float) -> tuple[float, float]:
    """Return how long what runs now, and then what is ordered, run before the target does: a stop is at once."""
    if target <= state.running:
        return 0.0, 0.0
    if target <= state.ordered:
        return state.ready_in_s, 0.0
    if state.ordered == state.running:
        return pod_start_s, 0.0
    ready_s = min(state.ready_in_s, pod_start_s)
    return ready_s, pod_start_s - ready_s


def _changes(state: GroupState, target: int) -> int:
    """Return how many rebalances an order for the target means, those that are under way included."""
    if target == state.ordered:
        return int(state.ordered != state.running)
    if target > state.ordered:
        return 1 + int(state.ordered != state.running)
    return int(target != state.running)
