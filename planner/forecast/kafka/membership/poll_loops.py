"""The poll loop of each process: how much it does, and how long it may be before it polls again."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.membership.scenario import NOBODY, Floats, Indexes, Scenario
from planner.forecast.kafka.timing import LEAST_SERVICE_S, POLL_TIMEOUT_S

_BUSIEST = 0.98


@dataclass(frozen=True, slots=True, eq=False)
class PollLoops:
    """``capacity``: records a second that one process can do; ``consumed``: records a second of each partition before
    the change. By process: ``batch_s``, the time between two polls; ``busy``, which part of it goes into records;
    ``idle_s``, the longest that a poll waits for records. A member that is behind gets large batches until
    ``behind_until_s``; ``calm_s`` and ``calm_busy`` are its figures from then on.
    """

    capacity: float
    consumed: Floats
    batch_s: Floats
    busy: Floats
    idle_s: Floats
    behind_until_s: Floats
    calm_s: Floats
    calm_busy: Floats

    def until_poll(self, random: np.random.Generator, at: Floats) -> Floats:
        """Return how long it takes from a moment to the next poll; ``at`` and the answer by trial and process."""
        return self._left(random, at, self.idle_s)

    def in_hand(self, random: np.random.Generator, at: Floats) -> Floats:
        """Return how long it goes on with the records it has at a moment, 0 where it waits for some."""
        return self._left(random, at, np.zeros_like(self.idle_s))

    def _left(self, random: np.random.Generator, at: Floats, idle_s: Floats) -> Floats:
        is_behind, within = at < self.behind_until_s, random.random(at.shape)
        is_busy = random.random(at.shape) < np.where(is_behind, self.busy, self.calm_busy)
        return within * np.where(is_busy, np.where(is_behind, self.batch_s, self.calm_s), idle_s)


def find_poll_loops(scenario: Scenario, owners: Indexes) -> PollLoops:
    """Return the loops of a group whose partitions have these owners.

    A loop gets at most ``max.poll.records`` at once, and works them off before it polls again: it rejoins a group, and
    commits, only in ``poll`` (``KafkaConsumer#poll``). librdkafka's gets one record a time.
    """
    request, processes = scenario.request, len(scenario.processes)
    service_s = max(request.service_time_s, LEAST_SERVICE_S)
    records = request.settings.value("max.poll.records") if request.is_java else 1
    owned = owners != NOBODY
    rate, waiting = (_sums(owners[owned], of[owned], processes) for of in (scenario.rates, scenario.lags))
    busy = rate * service_s
    behind = waiting > np.maximum(2 * rate * service_s, 1.0)
    calm_s = np.minimum(service_s / (1 - np.minimum(busy, _BUSIEST)), records * service_s)
    is_late = behind | (busy >= 1)
    batch_s = np.where(is_late, np.minimum(records, np.maximum(waiting, 1.0)) * service_s, calm_s)
    capacity = 1 / service_s
    spare = np.maximum(capacity - rate, 0.0)
    until_s = np.where(is_late, np.divide(waiting, spare, out=np.full_like(rate, np.inf), where=spare > 0), 0.0)
    idle_s = np.minimum(1 / np.maximum(rate, 1e-9), POLL_TIMEOUT_S)
    calm_busy = np.minimum(busy, 1.0)
    busy = np.where(behind, 1.0, calm_busy)
    consumed = _consumed(scenario, owners, rate, capacity)
    return PollLoops(capacity, consumed, batch_s, busy, idle_s, until_s, calm_s, calm_busy)


def _sums(owners: Indexes, weights: Floats, processes: int) -> Floats:
    return np.bincount(owners, weights=weights, minlength=processes).astype(np.float64)


def _consumed(scenario: Scenario, owners: Indexes, rate: Floats, capacity: float) -> Floats:
    """Return what is consumed of each partition: what comes, and an even part of what is spare where records wait."""
    hungry = (scenario.lags > 0) & (owners != NOBODY)
    sharing = np.bincount(owners[hungry], minlength=len(rate))
    spare = np.maximum(capacity - rate, 0.0) / np.maximum(sharing, 1)
    cut = np.minimum(capacity / np.maximum(rate, 1e-9), 1.0)
    owner = np.where(owners == NOBODY, 0, owners)
    return np.where(owners == NOBODY, 0.0, scenario.rates * cut[owner] + np.where(hungry, spare[owner], 0.0))
