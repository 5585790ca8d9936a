"""How fast a queue can be consumed by its owner, and how much of it is being worked on."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.timing import LEAST_SERVICE_S

NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Messages per second: ``consumed`` before the change by the owner, ``limit`` what the final owner can do a queue.

    ``service_s`` is one listener call; ``per_process`` what each process can do in all; ``owners`` the processes that
    own the queues before the change.
    """

    service_s: float
    consumed: Floats
    limit: Floats
    per_process: Floats
    owners: Indexes


def find_rates(scenario: Scenario, owners_before: Indexes, owners_after: Indexes) -> Rates:
    """Return the rates; owners are indexes of processes for each queue, -1 for nobody.

    A process's threads are one pool over all its queues (``ConsumeMessageConcurrentlyService``); an orderly queue is
    worked on by one thread at a time.
    """
    request = scenario.request
    service_s = max(request.service_time_s, LEAST_SERVICE_S)
    batch = request.settings.value("consumeMessageBatchMaxSize")
    per_process = np.array([process.threads for process in scenario.processes], dtype=float) * batch / service_s
    most = min(batch / service_s if request.orderly else np.inf, most_pulled(scenario))
    limit = np.minimum(_shares(scenario, owners_after, per_process, np.full(len(scenario.queues), True)), most)
    backlogged = has_backlog(scenario, service_s)
    share = np.minimum(_shares(scenario, owners_before, per_process, backlogged), most)
    consumed = np.where(backlogged, share, np.minimum(scenario.rates, share))
    return Rates(service_s, consumed, limit, per_process, owners_before)


def has_backlog(scenario: Scenario, service_s: float) -> Booleans:
    """Return by queue whether more waits than what is being worked on: a lag of that is none."""
    waits: Booleans = scenario.lags > np.ceil(scenario.rates * service_s)
    return waits


def cached_messages(scenario: Scenario, rates: Rates, at_s: float) -> Floats:
    """Return how many messages of each queue its owner has cached so long after the change, backlogs being worked off.

    0 where nobody owns it.
    """
    left = scenario.lags - np.maximum(rates.consumed - scenario.rates, 0.0) * at_s
    cached = np.clip(left, 0.0, cache_thresholds(scenario, rates.owners))
    messages: Floats = np.where(rates.owners == NOBODY, 0.0, cached)
    return messages


def cache_thresholds(scenario: Scenario, owners: Indexes) -> Floats:
    """Return by queue how many messages its owner caches before it stops to pull (``DefaultMQPushConsumerImpl``).

    ``pullThresholdForTopic`` is divided by all queues of the process, over ``pullThresholdForQueue``
    (``RebalancePushImpl#messageQueueChanged``, 4.9.8 to 5.5.0). Concurrent ones stop at a span of
    ``consumeConcurrentlyMaxSpan`` offsets, too, which of a backlog is as many messages.
    """
    settings = scenario.request.settings
    most = np.full(len(scenario.queues), float(settings.value("pullThresholdForQueue")))
    of_topic = settings.value("pullThresholdForTopic")
    if of_topic > 0:
        owned = _sums(np.ones(len(owners)), owners, len(scenario.processes))[np.maximum(owners, 0)]
        most = np.maximum(np.floor(of_topic / np.maximum(owned, 1)), 1.0)
    span = np.inf if scenario.request.orderly else settings.value("consumeConcurrentlyMaxSpan")
    thresholds: Floats = np.minimum(most, span)
    return thresholds


def most_pulled(scenario: Scenario) -> float:
    """Return how many messages of one queue a client gets in a second: one pull every ``pullInterval``.

    ``DefaultMQPushConsumerImpl#pullMessage`` pulls again so long after a pull has brought messages; members that pop
    have no such pause.
    """
    settings = scenario.request.settings
    interval_s = settings.seconds("pullInterval")
    return settings.value("pullBatchSize") / interval_s if interval_s > 0 and not scenario.request.polls else np.inf


def by_process(scenario: Scenario, rates: Rates, values: Floats) -> Floats:
    """Return the sum of the queues' values for each process that owned them before the change."""
    return _sums(values, rates.owners, len(scenario.processes))


def polls_apart_s(scenario: Scenario, rates: Rates) -> Floats:
    """Return by process how far the polls of its application lie apart: it works on a batch, or waits for one."""
    settings, arriving = scenario.request.settings, by_process(scenario, rates, rates.consumed)
    longest = settings.seconds("pollTimeoutMillis")
    waits_s = np.minimum(1 / np.maximum(arriving, 1e-9), longest)
    backlogs = by_process(scenario, rates, has_backlog(scenario, rates.service_s).astype(float))
    batch = np.where(backlogs > 0, settings.value("pullBatchSize"), 1)
    seconds: Floats = np.maximum(waits_s * batch, rates.service_s)
    return seconds


def _shares(scenario: Scenario, owners: Indexes, per_process: Floats, hungry: Booleans) -> Floats:
    """Return what each queue may get of its owner: its arrivals, and an even part of what is spare if it is hungry."""
    count = len(scenario.processes)
    arriving = _sums(scenario.rates, owners, count)
    mouths = np.maximum(_sums(hungry.astype(float), owners, count), 1)
    spare = per_process - arriving
    of_queue = np.maximum(owners, 0)
    scale = np.where(spare < 0, per_process / np.maximum(arriving, 1e-12), 1.0)
    share = scenario.rates * scale[of_queue] + np.where(hungry, np.maximum(spare, 0)[of_queue] / mouths[of_queue], 0.0)
    return np.where(owners == NOBODY, scenario.rates, share)


def _sums(values: Floats, owners: Indexes, count: int) -> Floats:
    owned = owners != NOBODY
    return np.bincount(owners[owned], weights=values[owned], minlength=count).astype(float)
