"""POP: clients share queues, and what they do not acknowledge comes again.

``PopMessageProcessor``, ``PopReviveService`` and ``ConsumeMessagePopConcurrentlyService`` (5.5.0). The broker hands
each message to one of those who wait for it and keeps no offset of a client's: who goes takes nothing along but the
calls that it has not acknowledged. Their messages come again some seconds after ``popInvisibleTime`` is over.
"""

from dataclasses import dataclass

import numpy as np

from planner.allocation.rocketmq import PopSharing
from planner.forecast.common.changes import FREEZE, SILENT
from planner.forecast.common.delay_ranges import spread, tailed
from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.offsets import Deliveries
from planner.forecast.rocketmq.handover.outcome import Observed, between_owners, longest_gap
from planner.forecast.rocketmq.handover.pop_absences import find_absence
from planner.forecast.rocketmq.handover.pop_backlogs import popped_at_end
from planner.forecast.rocketmq.handover.tenures import NOBODY, Holds
from planner.forecast.rocketmq.membership.consume_rates import Rates, has_backlog
from planner.forecast.rocketmq.membership.ownership import Owners, state_matrix
from planner.forecast.rocketmq.membership.process_times import LifeTimes
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, World
from planner.forecast.rocketmq.membership.unknown_ids import Names
from planner.forecast.rocketmq.request.changes import CUT, BlueGreen
from planner.forecast.rocketmq.timing import LEAST_SERVICE_S, POP_THRESHOLD, Calibration

_RARE = 0.05
"""Such a share of the trials decides no end of an interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """What comes again because of the change, by trial.

    ``late``: messages that were popped and never handed to a listener, so that they come once, but late;
    ``redelivered_s``: when the last message that comes twice or late does so, NaN where none does. ``lost``: messages
    that come again to a group that has nobody left, and to no other. ``is_known``: False where nobody can tell these
    figures: of a broker that starts and gives other shares at first, and of members whose threads are behind by
    ``popInvisibleTime`` or more, or fall ever further behind, so that what they have popped comes again and again.
    """

    late: Floats
    redelivered_s: Floats
    lost: Floats
    is_known: bool


def shared_owners(world: World, names: Names, before: Booleans) -> Owners:
    """Return for each queue one of the clients that share it: one that stays wherever one does.

    So a queue moves where nobody who had it has it afterwards.
    """
    clients = np.array([life.client for life in world.lives], dtype=np.intp)
    had = _by_client(world, before, clients)
    has = [  # in each placement of unknown ids
        _by_client(world, state_matrix(world, names, AFTER, world.final, number), clients)
        for number in range(len(names.placements))
    ]
    shown = had & has[0]
    old = np.where(shown.any(axis=0), shown.argmax(axis=0), _first(had))
    after = np.stack([np.where((had & now).any(axis=0), old, _first(now)) for now in has])
    return Owners(old, after[names.of_trial], after[0])


def shared_rates(world: World, before: Booleans, after: Booleans) -> Rates:
    """Return the rates of queues whose holders' threads work on them together, each evenly on all that it holds."""
    request = world.request
    service_s = max(request.service_time_s, LEAST_SERVICE_S)
    batch = request.settings.value("consumeMessageBatchMaxSize")
    per_life = np.array([life.threads for life in world.lives], dtype=float) * batch / service_s
    could, can = ((_evenly(held) * per_life[:, None]).sum(axis=0) for held in (before, after))
    told = dict(zip(request.queues, request.rates, strict=True))
    arriving = np.maximum(world.rates, [told.get(queue, 0.0) for queue in world.queues])
    consumed = np.where(has_backlog(world, service_s), could, np.minimum(arriving, could))
    return Rates(service_s, consumed, can, per_life, np.full(len(world.queues), NOBODY))


def popped_deliveries(
    world: World,
    times: LifeTimes,
    holds: Holds,
    starts: Starts,
    rates: Rates,
    before: Booleans,
    calibration: Calibration,
    random: np.random.Generator,
) -> tuple[Deliveries, Again]:
    """Return what comes twice, and what late: the calls that run in a hold as it ends, and what it had popped.

    A queue that is dropped acknowledges nothing any more (``ConsumeRequest#run``); a shutdown waits for no popped
    message, and its calls run on until it closes the connections (``DefaultMQPushConsumerImpl#shutdown``). Who is back
    before popInvisibleTime is over acknowledges its calls after all.
    """
    shape, request = holds.life.shape, world.request
    # A queue that is no longer there is popped no more, whoever drops it when.
    ended_s = np.where(world.there[holds.queues][None, :, None], holds.dropped, np.minimum(holds.dropped, 0.0))
    delivers = (holds.life != NOBODY) & (starts.first < ended_s)
    ends = delivers & np.isfinite(ended_s) & ~_on_dead_broker(world, holds)
    share, absence = _shares(holds, before), find_absence(world, times, holds, calibration, random)
    odds = share * absence.unacknowledged
    twice = np.where(ends, _unacknowledged(times, holds, rates, odds, calibration, random), 0.0)
    late = np.where(ends, _never_started(world, holds, rates, share, calibration, random), 0.0)
    is_known, drained_s = not request.shares_anew, np.zeros((request.trials, 1, 1))
    if request.shares_anew and isinstance(request.change, BlueGreen):
        popped = popped_at_end(world, request.change, holds, starts, rates)
        dropped = ends & ~holds.dies
        longer = random.uniform(*calibration.overtaking, shape)
        twice = np.where(dropped, np.floor(popped.running * longer + random.random(shape)), twice)
        late = np.where(dropped, np.floor(popped.unbegun + random.random(shape)) + popped.asks, late)
        spare = rates.per_life[list(world.final)].sum() - world.rates.sum()
        expires = (popped.behind_s >= request.settings.seconds("popInvisibleTime")) | (spare <= 0)
        is_known = bool(expires.mean() < _RARE)
        again = np.where(dropped, twice + late, 0.0).sum(axis=(1, 2), keepdims=True)
        drained_s = again / max(spare, LEAST_SERVICE_S)  # all at once, beside what arrives
    # Who is cut off works off what it had popped, whether it can acknowledge that or not.
    called = np.where(_is_cut(world, holds) & has_backlog(world, rates.service_s)[holds.queues][None, :, None], late, 0)
    twice, late = twice + np.round(called * absence.unacknowledged), late - called
    lost, causes = np.zeros(shape), dict[str, Floats]()
    if isinstance(request.change, BlueGreen):
        is_left = world.groups[np.maximum(holds.life, 0)] == BEFORE
        lost = np.where(is_left, twice + late, 0.0)
        twice, late = np.where(is_left, 0.0, twice), np.where(is_left, 0.0, late)
        causes = {"clone": _popped_after_copy(request.change, holds, rates, random)}
    visible_s = ended_s + request.settings.seconds("popInvisibleTime") - rates.service_s * random.random(shape)
    again_s = visible_s + _revival(world, holds, calibration, random) + drained_s
    late_s = np.where(absence.reads, absence.reads_s, again_s)
    last = np.maximum(np.where(twice > 0, again_s, -np.inf), np.where(late > 0, late_s, -np.inf))
    last = last.max(axis=(1, 2), initial=-np.inf)
    causes = {"in_flight": twice.sum(axis=2), **causes}
    return (
        Deliveries(np.sum(list(causes.values()), axis=0), causes, np.zeros(shape), delivers),
        Again(late.sum(axis=(1, 2)), np.where(np.isfinite(last), last, np.nan), lost.sum(axis=(1, 2)), is_known),
    )


def _unacknowledged(
    times: LifeTimes, holds: Holds, rates: Rates, odds: Floats, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how many calls run in each hold as it ends and are not acknowledged; ``odds``: for each of the queue's."""
    shape = holds.life.shape
    age_s = rates.service_s * random.uniform(*calibration.overtaking, shape) + spread(random, calibration.ack_s, shape)
    graceful = times.of_holders(times.graceful, holds.life) & holds.dies
    open_s = np.where(graceful, tailed(random, calibration.pop_closing_s, shape), 0.0)
    left = np.where(age_s > 0, np.clip((age_s - open_s) / age_s, 0.0, 1.0), 0.0)
    running = np.floor(rates.consumed[holds.queues][None, :, None] * age_s + random.random(shape))
    found: Floats = random.binomial(running.astype(np.intp), odds * left).astype(float)
    return found


def _popped_after_copy(change: BlueGreen, holds: Holds, rates: Rates, random: np.random.Generator) -> Floats:
    """Return what the group pops after the copy of its offsets, and the other one again.

    A broker counts a message as consumed as soon as it is popped (``PopMessageProcessor#appendCheckPoint``).
    """
    popped = rates.consumed[holds.queues] * max(change.stop_s - change.clone_s, 0.0)
    found: Floats = np.floor(popped + random.random(holds.life.shape[:2]))
    return found


def _is_cut(world: World, holds: Holds) -> Booleans:
    is_cut = np.array([life.how == CUT for life in world.lives]) | world.severed.any(axis=1)
    found: Booleans = is_cut[np.maximum(holds.life, 0)] & holds.dies
    return found


def _on_dead_broker(world: World, holds: Holds) -> Booleans:
    """Return which holds are of a broker that dies: it gives nothing again until it is back."""
    dead = [world.brokers.index(world.queues[pick].broker) == world.down for pick in holds.queues.tolist()]
    return np.array(dead, dtype=bool)[None, :, None]


def observe_shared(
    world: World, owners: Owners, holds: Holds, starts: Starts, found: Deliveries, after: Booleans
) -> Observed:
    """Return what an observer would see: a queue pauses only while none of those who share it delivers."""
    trials, count = world.request.trials, len(world.queues)
    client = np.array([*(life.client for life in world.lives), NOBODY])[holds.life]
    moves = owners.moves[:, holds.queues]
    gaps = longest_gap(holds, starts, found)
    stays = owners.before[holds.queues] == owners.after[:, holds.queues]
    held_before = np.isneginf(holds.gained)
    is_final = np.isposinf(holds.dropped) & (client != NOBODY)
    between = between_owners(held_before, _of_final_owners(world, client, is_final), holds, starts, found)
    pauses = np.where(owners.before == owners.after, 0.0, np.full((trials, count), np.nan))
    pauses[:, holds.queues] = np.where(moves, between, np.where(stays, gaps, np.nan))
    pauses[:, owners.before == NOBODY] = np.nan
    first = np.where(found.delivers & is_final, starts.first, np.inf).min(axis=2, initial=np.inf)
    settled = np.where(np.isfinite(first), np.maximum(np.where(np.isfinite(first), first, 0.0), 0.0), 0.0)
    duplicates, burst = np.zeros((trials, count)), np.zeros((trials, count))
    duplicates[:, holds.queues] = found.duplicates
    due = world.lags[holds.queues] + world.rates[holds.queues] * np.nan_to_num(between)
    burst[:, holds.queues] = np.where(moves, np.round(due), 0.0)
    return Observed(
        pauses,
        duplicates,
        burst,
        settled.max(axis=1, initial=0.0),
        _drained(world, after, trials),
        gaps.max(axis=1, initial=0.0),
    )


def _of_final_owners(world: World, client: Indexes, is_final: Booleans) -> Booleans:
    """Return which holds are of clients that have the queue in the end; where shares come anew, earlier ones count.

    Who has it with a whole broker at first, and with its share in the end, is its new owner all along.
    """
    if not world.request.shares_anew:
        return is_final
    owns = np.zeros((*client.shape[:2], len(world.clients)), dtype=bool)
    trial, column, _ = np.nonzero(is_final)
    owns[trial, column, client[is_final]] = True
    mine = np.take_along_axis(owns, np.maximum(client, 0), axis=2)
    found: Booleans = mine & (client != NOBODY)
    return found


def _never_started(
    world: World,
    holds: Holds,
    rates: Rates,
    share: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return how many messages a hold has popped and not begun as it ends.

    With a backlog a client pops on until ``popThresholdForQueue`` wait. Who drops a queue, falls silent, stands still
    or is cut off leaves a request with the broker, which answers it with the next message, to nobody. What is on its
    way to a process that dies is lost with it.
    """
    waits = has_backlog(world, rates.service_s)[holds.queues][None, :, None]
    threshold = POP_THRESHOLD * random.random(holds.life.shape)
    cached = np.minimum(world.lags[holds.queues][None, :, None] * share, threshold)
    says_nothing = np.array([life.how in (SILENT, FREEZE, CUT) for life in world.lives]) | world.severed.any(axis=1)
    is_silent = says_nothing[np.maximum(holds.life, 0)] & holds.dies
    asks = (is_silent | ~holds.dies) & ((world.rates > 0)[holds.queues] & _asked(world, holds))[None, :, None]
    unnoticed_s = tailed(random, calibration.popped_unread_s, holds.life.shape)
    lost = np.where(holds.dies & ~is_silent, rates.consumed[holds.queues][None, :, None] * share * unnoticed_s, 0.0)
    found: Floats = np.where(waits, np.round(cached), asks + random.poisson(lost))
    return found


def _revival(world: World, holds: Holds, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return how long after it is visible what each hold had comes again: a broker gives back all of it in one go."""
    of_broker = spread(random, calibration.revive_s, (len(holds.life), len(world.brokers)))
    brokers = [world.brokers.index(world.queues[pick].broker) for pick in holds.queues.tolist()]
    found: Floats = of_broker[:, brokers, None]
    return found


def _asked(world: World, holds: Holds) -> Booleans:
    """Return for which queues a client has requests of their own: one a broker where everybody takes everything."""
    sharing = world.request.strategy
    if not isinstance(sharing, PopSharing) or not sharing.shares_all(len(world.initial)):
        return np.ones(len(holds.queues), dtype=bool)
    places = [world.queues[pick].place for pick in holds.queues.tolist()]
    return np.array([place not in places[:number] for number, place in enumerate(places)], dtype=bool)


def _shares(holds: Holds, before: Booleans) -> Floats:
    """Return which part of its queue's messages each hold gets: who waits longest gets the next, so all get alike."""
    sharing = np.maximum(before.sum(axis=0), 1)[holds.queues][None, :, None]
    found: Floats = np.broadcast_to(1.0 / sharing, holds.life.shape)
    return found


def _drained(world: World, after: Booleans, trials: int) -> Floats:
    """Return when the backlog is gone, all members that hold anything being one pool; NaN where it never is."""
    batch = world.request.settings.value("consumeMessageBatchMaxSize")
    service_s = max(world.request.service_time_s, LEAST_SERVICE_S)
    members = np.flatnonzero(after.any(axis=1)).tolist()
    threads = sum(world.lives[life].threads for life in members)
    spare, lag = threads * batch / service_s - float(world.rates.sum()), float(world.lags.sum())
    gone = np.nan if spare < 0 or (spare == 0 and lag) else lag / spare if lag else 0.0
    return np.full(trials, gone)


def _evenly(held: Booleans) -> Floats:
    """Return by life and queue which part of the life's threads works on the queue."""
    found: Floats = held / np.maximum(held.sum(axis=1, keepdims=True), 1)
    return found


def _by_client(world: World, owned: Booleans, clients: Indexes) -> Booleans:
    """Return by client and queue who has it, in whichever of its lives."""
    found = np.zeros((len(world.clients), owned.shape[1]), dtype=bool)
    np.logical_or.at(found, clients, owned)
    return found


def _first(owned: Booleans) -> Indexes:
    return np.where(owned.any(axis=0), owned.argmax(axis=0), NOBODY)
