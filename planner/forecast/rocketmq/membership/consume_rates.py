"""How fast a queue can be consumed by its owner, and how much of it is being worked on."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, World
from planner.forecast.rocketmq.timing import LEAST_SERVICE_S

NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Messages per second: ``consumed`` before the change by the owner, ``limit`` what the final owner can do a queue.

    ``service_s`` is one listener call; ``per_life`` what each process can do in all; ``owners`` the lives that own the
    queues before the change.
    """

    service_s: float
    consumed: Floats
    limit: Floats
    per_life: Floats
    owners: Indexes


def find_rates(world: World, owners_before: Indexes, owners_after: Indexes) -> Rates:
    """Return the rates; owners are indexes of lives for each queue, -1 for nobody.

    A process's threads are one pool over all its queues (``ConsumeMessageConcurrentlyService``); an orderly queue is
    worked on by one thread at a time.
    """
    request = world.request
    service_s = max(request.service_time_s, LEAST_SERVICE_S)
    batch = request.settings.value("consumeMessageBatchMaxSize")
    per_life = np.array([life.threads for life in world.lives], dtype=float) * batch / service_s
    most = batch / service_s if request.orderly else np.inf
    limit = np.minimum(_shares(world, owners_after, per_life, np.full(len(world.queues), True)), most)
    backlogged = has_backlog(world, service_s)
    share = np.minimum(_shares(world, owners_before, per_life, backlogged), most)
    consumed = np.where(backlogged, share, np.minimum(world.rates, share))
    return Rates(service_s, consumed, limit, per_life, owners_before)


def has_backlog(world: World, service_s: float) -> Booleans:
    """Return by queue whether more waits than what is being worked on: a lag of that is none."""
    waits: Booleans = world.lags > np.ceil(world.rates * service_s)
    return waits


def cached_messages(world: World, rates: Rates, at_s: float) -> Floats:
    """Return how many messages of each queue its owner has cached so long after the change, backlogs being worked off.

    0 where nobody owns it.
    """
    left = world.lags - np.maximum(rates.consumed - world.rates, 0.0) * at_s
    cached = np.clip(left, 0.0, world.request.settings.value("pullThresholdForQueue"))
    found: Floats = np.where(rates.owners == NOBODY, 0.0, cached)
    return found


def by_life(world: World, rates: Rates, values: Floats) -> Floats:
    """Return the sum of the queues' values for each process that owned them before the change."""
    return _sums(values, rates.owners, len(world.lives))


def polls_apart_s(world: World, rates: Rates) -> Floats:
    """Return by process how far the polls of its application lie apart: it works on a batch, or waits for one."""
    settings, arriving = world.request.settings, by_life(world, rates, rates.consumed)
    longest = settings.seconds("pollTimeoutMillis")
    waits_s = np.minimum(1 / np.maximum(arriving, 1e-9), longest)
    backlogs = by_life(world, rates, has_backlog(world, rates.service_s).astype(float))
    batch = np.where(backlogs > 0, settings.value("pullBatchSize"), 1)
    found: Floats = np.maximum(waits_s * batch, rates.service_s)
    return found


def _shares(world: World, owners: Indexes, per_life: Floats, hungry: Booleans) -> Floats:
    """Return what each queue may get of its owner: its arrivals, and an even part of what is spare if it is hungry."""
    count = len(world.lives)
    arriving = _sums(world.rates, owners, count)
    mouths = np.maximum(_sums(hungry.astype(float), owners, count), 1)
    spare = per_life - arriving
    of_queue = np.maximum(owners, 0)
    scale = np.where(spare < 0, per_life / np.maximum(arriving, 1e-12), 1.0)
    share = world.rates * scale[of_queue] + np.where(hungry, np.maximum(spare, 0)[of_queue] / mouths[of_queue], 0.0)
    return np.where(owners == NOBODY, world.rates, share)


def _sums(values: Floats, owners: Indexes, count: int) -> Floats:
    owned = owners != NOBODY
    return np.bincount(owners[owned], weights=values[owned], minlength=count).astype(float)
