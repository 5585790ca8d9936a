"""A group's past as a scenario to play, and what that past cost as it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

import numpy as np
from numpy.typing import NDArray

from planner.backtest.scenario import SECONDS_AN_HOUR, STEP_S, Floats, Prices, Scenario
from planner.backtest.tracks import GroupTracks, QueueTrack, tracks_of_metrics
from planner.model.points import MetricHistory
from planner.model.systems import system_named

LEAST_KNOWN = 0.9
"""Less of the arrivals or of the members known, and a comparison would rest on what nobody saw."""
DROWNS_S = 60.0
"""More waits in a queue than is consumed of it in a minute: its consumer has work all the time."""
LEAST_DROWNED = 3
"""So many readings of a group that drowns show what its consumers can do: a single one may be a restart."""
TENTH = 10
"""Of readings that show topics alone the highest tenth counts."""
COMMIT_S = 5.0
"""What was consumed and is not yet committed counts as waiting for up to so many seconds (both systems' default)."""
MARKERS = 1
"""Messages that may wait for ever in a queue: the marker that ends a transaction is never consumed."""
DEFAULT_PRICES = Prices(rebalance_h=0.25, late_minute_h=1.0)
DEFAULT_STRATEGIES = {"kafka": "range", "rocketmq": "AVG"}
"""What clients of each system run unless they are set otherwise; metrics do not show it."""


@dataclass(frozen=True, slots=True)
class PlaySettings:
    """What a past does not show: ``capacity`` (messages per second and consumer) where it is stated, and the rest.

    ``queues_each`` is how many queues each topic has, for metrics that show topics alone. ``strategy`` is what members
    allocate queues by, ``None`` for the clients' default; ``highest`` is the most consumers, ``None`` for one a queue.
    ``assumed_capacity`` counts where none is stated and the past shows none.
    """

    capacity: float | None = None
    queues_each: int | None = None
    pod_start_s: float = 30.0
    late_after_s: float = 60.0
    every_s: float = 60.0
    prices: Prices = DEFAULT_PRICES
    strategy: str | None = None
    lowest: int = 1
    highest: int | None = None
    assumed_capacity: float | None = None


@dataclass(frozen=True, slots=True)
class AsItWas:
    """What metrics show of the members: consumer-hours, changes of their number, counts, and late minutes.

    ``rebalances`` are at least so many, as what changed back between two readings is in no metric.
    """

    hours: float
    rebalances: int
    late_minutes: int
    fewest: int
    most: int

    def cost_h(self, prices: Prices) -> float:
        """Return consumer-hours, with rebalances and late minutes at their prices."""
        return self.hours + prices.rebalance_h * self.rebalances + prices.late_minute_h * self.late_minutes


@dataclass(frozen=True, slots=True)
class RecordedGroup:
    """A group that can be played. ``capacity_source`` says where the capacity comes from, ``known`` how much is known.

    ``known`` is the share of the arrivals' readings (0 to 1); the others keep the rate before them.
    """

    group: str
    scenario: Scenario
    past: AsItWas
    capacity_source: str
    known: float


@dataclass(frozen=True, slots=True)
class NotPlayable:
    """A group whose past cannot be played, and why: a sentence without its full stop that ends in what helps."""

    group: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Grid:
    """Readings by row (queue or topic) and column (time); NaN is unknown. Rates in messages per second."""

    arrival: Floats
    consumption: Floats
    lag: Floats


def recorded_group(
    history: MetricHistory, since: datetime, until: datetime, settings: PlaySettings
) -> RecordedGroup | NotPlayable:
    """Return the past that metrics show between the two times as a scenario, or why there is none."""
    tracks = tracks_of_metrics(history, settings.queues_each)
    if isinstance(tracks, str):
        return NotPlayable(history.group, tracks)
    return recorded_load(tracks, since, until, settings)


def recorded_load(
    tracks: GroupTracks, since: datetime, until: datetime, settings: PlaySettings
) -> RecordedGroup | NotPlayable:
    """Return the group's past between the two times as a scenario, or why there is none."""
    step_s = STEP_S * ceil(max(tracks.period_s, 60.0) / STEP_S)
    columns = int((until - since).total_seconds() // step_s)
    middles: Floats = np.array([since.timestamp() + step_s * (column + 0.5) for column in range(columns)])
    grid = _grid(tracks.queues, middles)
    counted = tracks.members
    members = _on_grid(counted.ends, counted.seconds, counted.members, middles)
    if reason := _unknown(grid, members, system_named(tracks.system).memberless_metrics):
        return NotPlayable(tracks.group, reason)
    queues = [queue for track in tracks.queues for queue in track.queues]
    capacity, source = _capacity(grid, members, tracks.queues, settings)
    if capacity is None:
        return NotPlayable(tracks.group, source)
    whole_members = _carried(members[None, :])[0]
    lowest, highest = settings.lowest, max(settings.highest or len(queues), settings.lowest)
    scenario = Scenario(
        queues=queues,
        messages=_messages(grid, tracks.queues, step_s),
        interval_s=step_s,
        history_s=0.0,
        system=tracks.system,
        strategy=settings.strategy or DEFAULT_STRATEGIES[tracks.system],
        capacity=capacity,
        pod_start_s=settings.pod_start_s,
        lowest=lowest,
        highest=highest,
        start=int(np.clip(whole_members[0], lowest, highest)),
        late_after_s=settings.late_after_s,
        prices=settings.prices,
        every_s=settings.every_s,
        seed=1,
    )
    past = _as_it_was(grid, whole_members, step_s, settings.late_after_s)
    return RecordedGroup(tracks.group, scenario, past, source, float(np.isfinite(grid.arrival).mean()))


def _grid(tracks: Sequence[QueueTrack], middles: Floats) -> _Grid:
    def of(name: str) -> Floats:
        rows = [_on_grid(track.ends, track.seconds, getattr(track, name), middles) for track in tracks]
        return np.array(rows).reshape(len(tracks), len(middles))

    return _Grid(of("arrival"), of("consumption"), of("lag"))


def _on_grid(ends: Floats, seconds: Floats, values: Floats, middles: Floats) -> Floats:
    """Return the figure of the span around each time, NaN where none is or it is unknown."""
    if not len(ends):
        return np.full(len(middles), np.nan)
    index = np.minimum(np.searchsorted(ends, middles), len(ends) - 1)
    inside = (middles <= ends[index]) & (middles > ends[index] - seconds[index])
    return np.where(inside, values[index], np.nan)


def _unknown(grid: _Grid, members: Floats, memberless: str | None) -> str:
    """Return why too little is known to play the past, empty where enough is.

    ``memberless`` says which metrics tell no members, where the system has such.
    """
    if not members.size:
        return "the time between two readings is longer than the time that was asked for: ask for more --days"
    other_days = "ask for other --days"
    facts = (
        ("what arrives", grid.arrival, other_days),
        ("how many members there are", members, other_days if np.isfinite(members).any() else memberless or other_days),
    )
    for name, values, remedy in facts:
        known = float(np.isfinite(values).mean()) if values.size else 0.0
        if known < LEAST_KNOWN:
            return f"{name} is known for {known:.0%} of the time, {LEAST_KNOWN:.0%} are needed: {remedy}"
    if not np.nansum(grid.arrival) > 0:
        return "nothing arrived in all that time"
    return ""


def _capacity(
    grid: _Grid, members: Floats, tracks: Sequence[QueueTrack], settings: PlaySettings
) -> tuple[float | None, str]:
    """Return what one consumer can do in messages per second, with where that comes from, or why it is unknown.

    Where metrics show a topic alone, most readings in which it is behind may be of its last queues, when others have
    nothing left to do: the highest ones come nearest to what all can do.
    """
    if settings.capacity is not None:
        return settings.capacity, "stated"
    active = np.nan_to_num(grid.arrival) > 0
    waits = _waits_always(grid) | ~active
    drowned = waits.all(axis=0) & active.any(axis=0) & (members > 0)
    drowned[1:] &= members[1:] == members[:-1]
    queues = sum(len(track.queues) for track in tracks)
    rates = np.sort(np.nansum(grid.consumption, axis=0)[drowned] / np.minimum(members[drowned], queues))
    if len(rates) < LEAST_DROWNED or not np.median(rates) > 0:
        if settings.assumed_capacity is not None:
            return settings.assumed_capacity, "stated for groups whose past shows none"
        return None, (
            "it was never behind with all of its queues, so that nothing shows what one consumer can do: state "
            "--capacity GROUP=MESSAGES_PER_SECOND"
        )
    if all(len(track.queues) == 1 for track in tracks):
        return float(np.median(rates)), f"the median of {len(rates)} readings in which all queues were far behind"
    highest = max(LEAST_DROWNED, len(rates) // TENTH)
    return float(np.median(rates[-highest:])), (
        f"the median of the {highest} highest of {len(rates)} readings in which all topics were far behind; it may be "
        "more, as no metric shows queues"
    )


def _waits_always(grid: _Grid) -> NDArray[np.bool_]:
    """Return where at both ends of a reading more than a minute's consumption waited."""
    before = np.concatenate([np.full((len(grid.lag), 1), np.nan), grid.lag[:, :-1]], axis=1)
    return np.asarray((np.fmin(before, grid.lag) > DROWNS_S * grid.consumption) & np.isfinite(before), dtype=np.bool_)


def _messages(grid: _Grid, tracks: Sequence[QueueTrack], step_s: float) -> Floats:
    """Return messages by reading and queue; a topic's are spread evenly over its queues."""
    arrived = _carried(grid.arrival) * step_s
    sizes = [len(track.queues) for track in tracks]
    columns = [np.repeat(arrived[[row]].T / size, size, axis=1) for row, size in enumerate(sizes)]
    return np.concatenate(columns, axis=1)


def _carried(values: Floats) -> Floats:
    """Return the rows, each unknown value replaced by the one before it, at the begin by the first one; 0 if none."""
    columns = np.arange(values.shape[1])
    last = np.maximum.accumulate(np.where(np.isfinite(values), columns, -1), axis=1)
    first = np.argmax(np.isfinite(values), axis=1)[:, None]
    filled = np.take_along_axis(values, np.where(last < 0, first, last), axis=1)
    return np.asarray(np.nan_to_num(filled))


def _as_it_was(grid: _Grid, members: Floats, step_s: float, late_after_s: float) -> AsItWas:
    """Return what the past cost.

    A message waits too long where more waits than came in within the allowed time: what is consumed first came first.
    """
    limit = np.nan_to_num(grid.arrival) * (late_after_s + COMMIT_S) + MARKERS
    late = (np.nan_to_num(grid.lag) > limit).any(axis=0)
    return AsItWas(
        hours=float(members.sum() * step_s / SECONDS_AN_HOUR),
        rebalances=int(np.count_nonzero(np.diff(members))),
        late_minutes=round(float(late.sum()) * step_s / 60.0),
        fewest=int(members.min()),
        most=int(members.max()),
    )
