"""The planner's own rule: receding horizon over futures of the load (``planner.decision.horizon``)."""

from collections import deque
from dataclasses import replace
from datetime import timedelta

import numpy as np

from planner.backtest.observation import Observation
from planner.backtest.owners import GroupOwners, busiest_share
from planner.backtest.scenario import SECONDS_AN_HOUR, Floats, Scenario
from planner.decision.horizon import Costs, GroupState, horizon_periods
from planner.decision.weighing import (
    DEFAULT_WEIGHING,
    UNCOMMITTED_S,
    Weighing,
    WeighingSettings,
    backlog_ratios,
    leave_out_hot_queue,
    useful_counts,
)
from planner.demand.events import EventLoad, event_load
from planner.demand.series import DEFAULT_LEVEL, MINUTE_S, LevelSettings, LoadSeries
from planner.history.shares import QueueShares

KNOWN_MINUTES = 1440
"""Of so many minutes of the known history the queues' shares are learned."""


class Planner:
    """One decision each period."""

    name = "planner"
    reads_busy = False

    def __init__(
        self,
        scenario: Scenario,
        settings: WeighingSettings = DEFAULT_WEIGHING,
        level: LevelSettings = DEFAULT_LEVEL,
    ) -> None:
        self.every_s = scenario.every_s
        self._scenario, self._settings = scenario, settings
        self._owners = GroupOwners(scenario)
        self._events = known_events(scenario, settings)
        load = minutes(scenario) / scenario.capacity
        self._series = LoadSeries(level, load / self._events.factors[: len(load)] if self._events else load)
        self._costs = Costs(
            change=scenario.prices.rebalance_h * SECONDS_AN_HOUR,
            late_minute=scenario.prices.late_minute_h * SECONDS_AN_HOUR,
            late_after_s=scenario.late_after_s,
            pod_start_s=scenario.pod_start_s,
            every_s=scenario.every_s,
        )
        self._shares = learn_shares(scenario)
        self._observed: deque[tuple[float, Floats]] = deque(maxlen=2)
        self._minute: Floats = np.zeros(len(scenario.queues))
        self._minute_s = 0.0

    @property
    def tuning(self) -> str:
        """The same setting for every scenario."""
        return f"one setting for all, every {self.every_s:g} s"

    def decide(self, observation: Observation) -> int | None:
        """Return the count with the least expected cost, ``None`` while nothing is known of the load."""
        self.learn(observation)
        if not len(self._series):
            return None
        shares = self._shares.expected
        now = len(self._series)
        loads = shares * float(self._series.level[-1]) * self._factor(now - 1)
        served, hot = leave_out_hot_queue(loads)
        fraction = float(served.sum() / loads.sum()) if (served < loads).any() else 1.0
        useful = self._useful(served if served.any() else shares, observation, hot)
        weighing = Weighing(
            self._series.scaled(fraction) if fraction < 1.0 else self._series,
            tuple(useful),
            np.array(list(useful.values())),
            self._state(observation, useful, hot, served),
            self._costs,
            self._settings,
        )
        if self._events is not None:
            weighing = replace(weighing, events=self._coming(now, sum(weighing.bins_min), fraction))
        return weighing.bill().chosen

    def _factor(self, minute: int) -> float:
        """Return the factor of the events in a minute of the series."""
        return 1.0 if self._events is None else float(self._events.factors[minute])

    def _coming(self, minute: int, minutes: int, fraction: float) -> EventLoad:
        """Return the events of so many minutes from this one on, floors in consumers of the ``part`` that is served."""
        assert self._events is not None
        ahead = slice(minute, minute + minutes)
        return EventLoad(self._events.factors[ahead], self._events.floors[ahead] * fraction / self._scenario.capacity)

    def learn(self, observation: Observation) -> None:
        """Add what came since the last observation to the series, spread evenly over the minutes between."""
        now, arrived = observation.second, observation.arrived
        before_s, before = self._observed[-1] if self._observed else (0.0, np.zeros_like(arrived))
        self._observed.append((now, arrived))
        span = now - before_s
        if span <= 0:
            return
        rates = (arrived - before) / span
        whole = 0
        while span > 0:
            taken = min(span, MINUTE_S - self._minute_s)
            whole += taken == MINUTE_S
            self._minute += rates * taken
            self._minute_s += taken
            span -= taken
            if self._minute_s >= MINUTE_S - 1e-9:
                load = float(self._minute.sum()) / MINUTE_S / self._scenario.capacity
                is_averaged = taken == MINUTE_S and whole > 1
                self._series.extend([load / self._factor(len(self._series))], [is_averaged])
                self._shares.append(self._minute)
                self._minute, self._minute_s = np.zeros_like(arrived), 0.0

    def _useful(self, weights: Floats, observation: Observation, hot: int | None) -> dict[int, float]:
        """Return the counts worth considering and the busiest consumer's share under each; no fewer beside ``hot``."""
        shares = weights / weights.sum()
        fewest = self._scenario.lowest if hot is None else min(observation.running, observation.ordered)
        counts = range(fewest, self._scenario.highest + 1)
        busiest = ((count, busiest_share(self._owners.of_count(count), shares, count)) for count in counts)
        return useful_counts(busiest, {observation.running, observation.ordered})

    def _state(
        self, observation: Observation, busiest: dict[int, float], hot: int | None, served: Floats
    ) -> GroupState:
        """Return the group's state without what waits in ``hot``; half a commit interval's arrivals are worked off."""
        waiting = np.maximum(observation.lag - self._rates() * UNCOMMITTED_S, 0.0)
        if hot is not None:
            waiting[hot] = 0.0
        count = observation.running
        owners = np.minimum(observation.owners, count)
        worst = float(np.bincount(owners, weights=waiting, minlength=count).max())
        work = waiting / self._scenario.capacity + served * UNCOMMITTED_S
        shares = {each: busiest_share(self._owners.of_count(each), work, each) for each in busiest}
        return GroupState(
            running=count,
            ordered=observation.ordered,
            ready_in_s=observation.next_ready_s or 0.0,
            backlog=worst / self._scenario.capacity / busiest[count],
            backlog_ratios=backlog_ratios(shares.values(), shares[count]) if work.any() else None,
        )

    def _rates(self) -> Floats:
        """Return messages per second of each queue since the observation before this one."""
        if len(self._observed) < 2:
            return np.zeros(len(self._scenario.queues))
        (before_s, before), (now_s, now) = self._observed[-2], self._observed[-1]
        return np.asarray((now - before) / (now_s - before_s))


def known_events(scenario: Scenario, settings: WeighingSettings = DEFAULT_WEIGHING) -> EventLoad | None:
    """Return what the scenario's events do to each minute of its series and of the horizon behind it, if there are any.

    Floors are in messages per second.
    """
    if not scenario.events or scenario.begins_at is None:
        return None
    known = int(scenario.history_s // MINUTE_S)
    played = int(len(scenario.played) * scenario.interval_s // MINUTE_S) + 1
    ahead = sum(map(sum, horizon_periods(settings.horizon, max(scenario.pod_start_s, scenario.every_s))))
    return event_load(scenario.events, scenario.begins_at - timedelta(minutes=known), known + played + ahead)


def minutes(scenario: Scenario) -> Floats:
    """Return the known history as messages per second, by minute; the last minute ends where the play begins."""
    totals = scenario.history.sum(axis=1)
    summed = np.concatenate(([0.0], np.cumsum(totals)))
    whole = int(scenario.history_s // MINUTE_S)
    edges = scenario.history_s - MINUTE_S * np.arange(whole, -1, -1)
    return np.asarray(np.diff(np.interp(edges / scenario.interval_s, np.arange(len(summed)), summed)) / MINUTE_S)


def learn_shares(scenario: Scenario) -> QueueShares:
    """Return what the known history says of the queues' shares."""
    per_minute = scenario.interval_s / MINUTE_S
    known_minutes = min(int(scenario.history_s // MINUTE_S), KNOWN_MINUTES)
    summed = np.concatenate([np.zeros((1, len(scenario.queues))), np.cumsum(scenario.history, axis=0)])
    edges = (scenario.history_s / MINUTE_S - np.arange(known_minutes, -1, -1)) / per_minute
    below = np.clip(edges.astype(np.intp), 0, max(len(summed) - 2, 0))
    fraction = (edges - below)[:, None]
    at_edges = summed[below] * (1 - fraction) + summed[np.minimum(below + 1, len(summed) - 1)] * fraction
    rows = np.diff(at_edges, axis=0)
    shares = QueueShares(rows[0] if len(rows) else np.zeros(len(scenario.queues)))
    for row in rows[1:]:
        shares.append(row)
    return shares
