"""The simulated group, for several runs at once: a fluid of messages in steps of five seconds.

Every consumer works off its queues in proportion to what waits in each, up to its capacity. Pods are ready (and paid)
``pod_start_s`` after the order; they leave at once. A change of members is one rebalance: moved queues pause and repeat
what their old owner had not committed. Lag is what brokers show: end offset minus committed offset.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import NOBODY
from planner.backtest.arrivals import Arrivals
from planner.backtest.owners import GroupOwners
from planner.backtest.scenario import SECONDS_AN_HOUR, STEP_S, Floats, Ints, Prices, Scenario

Flags = NDArray[np.bool_]

COMMIT_INTERVAL_S = 5.0
"""Clients commit by a timer: ``persistConsumerOffsetInterval`` (RocketMQ), ``auto.commit.interval.ms`` (Kafka)."""
PAUSES_S = {("rocketmq", True): (0.1, 1.6), ("rocketmq", False): (0.2, 1.0), ("kafka", True): (0.1, 3.1)}
PAUSES_S["kafka", False] = PAUSES_S["kafka", True]
"""(system, is a join) -> shortest and longest pause of a moved queue; a heartbeat (3 s) notifies Kafka's members."""
MINUTE_STEPS = round(60 / STEP_S)
MOST_STRETCHES = 600
"""Into so many equal stretches a play is cut for its longest waits; a shorter one into minutes."""
_DRAWN_AGES = 4099


@dataclass
class Totals:
    """What one run has cost so far; ``changes`` are (second, count) of what was ordered."""

    seconds: float = 0.0
    rebalances: int = 0
    moved: int = 0
    duplicates: float = 0.0
    late_minutes: int = 0
    worst_wait_s: float = 0.0

    @property
    def hours(self) -> float:
        """Consumer-hours paid."""
        return self.seconds / SECONDS_AN_HOUR

    def cost_h(self, prices: Prices) -> float:
        """Return consumer-hours, with rebalances and late minutes at their prices."""
        return self.hours + prices.rebalance_h * self.rebalances + prices.late_minute_h * self.late_minutes


class Members:
    """The pods of one run: those that run, and those that are ordered, with the second at which each is ready."""

    def __init__(self, names: list[str], running: int) -> None:
        self._names = names
        self._next = running
        self.running = list(range(running))
        self.starting: list[float] = []

    @property
    def ordered(self) -> int:
        """How many there will be once all that are ordered run."""
        return len(self.running) + len(self.starting)

    def order(self, count: int, ready_at: float) -> int:
        """Start or cancel pods so that ``count`` are ordered; return how many running ones have to leave."""
        missing = count - self.ordered
        if missing > 0:
            self.starting += [ready_at] * missing
            return 0
        cancelled = min(-missing, len(self.starting))
        del self.starting[len(self.starting) - cancelled :]
        return -missing - cancelled

    def start_ready(self, now_s: float) -> int:
        """Let the pods that are ready by now join; return how many did."""
        ready = sum(at <= now_s for at in self.starting)
        if ready:
            self.starting = self.starting[ready:]
            self.running += range(self._next, self._next + ready)
            self._next += ready
        return ready

    def stop_youngest(self, count: int) -> None:
        """Stop the youngest pods, as a ReplicaSet does between pods that are alike."""
        del self.running[len(self.running) - count :]

    def sorted_names(self) -> list[str]:
        """Return the names of those that run, as the clients sort them."""
        return sorted(self.name(pod) for pod in self.running)

    def name(self, pod: int) -> str:
        """Return a pod's name; names follow no order, so that newcomers stand anywhere among the others."""
        return self._names[pod % len(self._names)] + f"-{pod:06d}"


class SimulatedGroup:
    """All runs of one scenario side by side; arrays have one row a run.

    ``backlog`` counts messages by queue, ``owners`` each queue's owner as a rank among the sorted names of the run's
    members, ``served`` what was worked off in the last step. ``longest_waits`` has the longest wait of each stretch
    of the play, in seconds.
    """

    def __init__(self, scenario: Scenario, runs: int) -> None:
        self.scenario, self.runs = scenario, runs
        self.arrivals = Arrivals(scenario)
        self.allocation = GroupOwners(scenario)
        queues = len(scenario.queues)
        names = [f"{key:08x}" for key in np.random.default_rng(scenario.seed).integers(0, 2**32, 997).tolist()]
        self.members = [Members(names, scenario.start) for _ in range(runs)]
        self.totals = [Totals() for _ in range(runs)]
        self._random = [np.random.default_rng([scenario.seed, 1]) for _ in range(runs)]
        self._width = scenario.highest + 1  # the last rank owns what nobody owns, and does nothing
        self.backlog: Floats = np.zeros((runs, queues))
        self.served: Floats = np.zeros((runs, queues))
        self.arrived: Floats = np.zeros(queues)
        self.owners = np.zeros((runs, queues), dtype=np.intp)
        self._flat = np.zeros(runs * queues, dtype=np.intp)
        self._limits: Floats = np.zeros((runs, self._width))
        self._reduced: set[int] = set()
        self._worked: Floats = np.zeros((runs, self._width))
        self._worked_since = np.zeros(runs)
        self._paid_until = np.zeros(runs)
        self._next_ready_s = math.inf
        self._late = np.zeros(runs, dtype=np.bool_)
        self.longest_waits: Floats = np.zeros((runs, max(1, min(MOST_STRETCHES, scenario.steps // MINUTE_STEPS))))
        self._ages = np.random.default_rng([scenario.seed, 2]).uniform(0, COMMIT_INTERVAL_S, _DRAWN_AGES)
        self.step = 0
        for run in range(runs):
            self._allocate(run, None)
            self._reset_capacity(run)

    @property
    def now_s(self) -> float:
        """Seconds since the begin of the played part."""
        return self.step * STEP_S

    def order(self, run: int, count: int) -> None:
        """Order that ``count`` consumers run: new ones are ready after the pod's start time, others leave now."""
        leaving = self.members[run].order(count, self.now_s + self.scenario.pod_start_s)
        if leaving:
            self._stop(run, leaving)
        self._note_ready()

    def committed_lag(self) -> Floats:
        """Return the lag that brokers show now: what waits, and what was done since the last commit."""
        ages = self._ages[(self.step * 7 + 31 * np.minimum(self.owners, self._width)) % _DRAWN_AGES]
        return np.asarray(self.backlog + self.served * (ages / STEP_S))

    def take_busy(self, run: int) -> Floats:
        """Return the share of time in which each consumer of a run worked, since the last call or rebalance."""
        span = self.now_s - self._worked_since[run]
        count = len(self.members[run].running)
        busy = self._worked[run, :count] / max(self.scenario.capacity * span, 1e-9)
        self._worked[run] = 0.0
        self._worked_since[run] = self.now_s
        return np.asarray(np.minimum(busy, 1.0))

    def advance(self, arrived: Floats) -> None:
        """Play one step in which so many messages of each queue come."""
        self._start_ready()
        backlog, shape = self.backlog, (self.runs, self._width)
        backlog += arrived
        self.arrived += arrived
        loads = np.bincount(self._flat, weights=backlog.ravel(), minlength=self.runs * self._width).reshape(shape)
        done = np.minimum(loads, self._limits)
        shares = done / np.maximum(loads, 1e-9)
        self.served = backlog * shares.ravel()[self._flat].reshape(backlog.shape)
        backlog -= self.served
        # Rounding may take a little too much, which the next step would multiply.
        np.maximum(backlog, 0.0, out=backlog)
        self._worked += done
        self.step += 1
        self._restore_capacity()
        self._count_waits()

    def totals_by_now(self) -> list[Totals]:
        """Return each run's totals as of now, as they stay: a minute that is not over is not in them."""
        for run in range(self.runs):
            self._pay(run)
        return [replace(totals) for totals in self.totals]

    def finish(self) -> None:
        """Bring the totals up to date; call it once, behind the last step."""
        for run, totals in enumerate(self.totals):
            self._pay(run)
            totals.worst_wait_s = float(self.longest_waits[run].max())
        self._close_minute()

    def _note_ready(self) -> None:
        self._next_ready_s = min((it.starting[0] for it in self.members if it.starting), default=math.inf)

    def _start_ready(self) -> None:
        if self._next_ready_s > self.now_s:
            return
        for run, members in enumerate(self.members):
            if members.starting and members.starting[0] <= self.now_s:
                self._pay(run)
                before = members.sorted_names()
                members.start_ready(self.now_s)
                self._move(run, before, is_join=True)
        self._note_ready()

    def _stop(self, run: int, leaving: int) -> None:
        self._pay(run)
        before = self.members[run].sorted_names()
        self.members[run].stop_youngest(leaving)
        self._move(run, before, is_join=False)

    def _pay(self, run: int) -> None:
        """Pay for what ran since the last change of members."""
        totals = self.totals[run]
        totals.seconds += len(self.members[run].running) * (self.now_s - self._paid_until[run])
        self._paid_until[run] = self.now_s

    def _move(self, run: int, before: list[str], *, is_join: bool) -> None:
        """Allocate anew after a change of members: moved queues pause and repeat what was not committed."""
        names = self.members[run].sorted_names()
        ranks = {name: rank for rank, name in enumerate(names)}
        renamed = np.array([*(ranks.get(name, NOBODY) for name in before), NOBODY], dtype=np.intp)
        old = np.where(self.owners[run] < len(before), self.owners[run], len(before))
        owned_before = renamed[old]
        self._allocate(run, owned_before)
        moved = (self.owners[run] != owned_before) & (old < len(before))
        self._count_move(run, moved)
        self._reset_capacity(run)
        self._pause(run, moved, is_join=is_join)

    def _allocate(self, run: int, owned_before: Ints | None) -> None:
        names = self.members[run].sorted_names()
        owners = self.allocation.of_members(names, owned_before)
        self.owners[run] = np.where(owners == NOBODY, self._width - 1, owners)
        self._flat = (self.owners + self._width * np.arange(self.runs)[:, None]).ravel()

    def _count_move(self, run: int, moved: Flags) -> None:
        ages = self._random[run].uniform(0, COMMIT_INTERVAL_S, len(moved))
        repeated = np.where(moved, self.served[run] * ages / STEP_S, 0.0)
        self.backlog[run] += repeated
        totals = self.totals[run]
        totals.rebalances += 1
        totals.moved += int(moved.sum())
        totals.duplicates += float(repeated.sum())

    def _reset_capacity(self, run: int) -> None:
        self._limits[run] = 0.0
        self._limits[run, : len(self.members[run].running)] = self.scenario.capacity * STEP_S
        self._worked[run] = 0.0
        self._worked_since[run] = self.now_s

    def _pause(self, run: int, moved: Flags, *, is_join: bool) -> None:
        """Take from each consumer the time in which none of its queues delivers; others use what one queue leaves."""
        shortest, longest = PAUSES_S[self.scenario.system, is_join]
        pauses = self._random[run].uniform(shortest, longest, len(moved))
        pauses = pauses if self.allocation.stops_all else np.where(moved, pauses, 0.0)
        idle = np.full(self._width, STEP_S)
        np.minimum.at(idle, self.owners[run], pauses)
        self._limits[run] *= 1 - np.where(idle < STEP_S, idle, 0.0) / STEP_S
        self._reduced.add(run)

    def _restore_capacity(self) -> None:
        for run in self._reduced:
            count = len(self.members[run].running)
            self._limits[run, :count] = self.scenario.capacity * STEP_S
        self._reduced.clear()

    def _count_waits(self) -> None:
        if self.backlog.any():
            rows, queues = np.nonzero(self.backlog > 1e-6)
            if len(rows):
                positions = self.arrived[queues] - self.backlog[rows, queues]
                ages = self.arrivals.ages(self.now_s, positions, queues)
                waits = np.zeros(self.runs)
                np.maximum.at(waits, rows, ages)
                longest = self.longest_waits[:, self._stretch()]
                np.maximum(longest, waits, out=longest)
                self._late |= waits > self.scenario.late_after_s
        if self.step % MINUTE_STEPS == 0:
            self._close_minute()

    def _stretch(self) -> int:
        """Return the stretch in which the step that was just played lies."""
        return (self.step - 1) * len(self.longest_waits[0]) // self.scenario.steps

    def _close_minute(self) -> None:
        for run in np.flatnonzero(self._late).tolist():
            self.totals[run].late_minutes += 1
        self._late[:] = False
