"""POP: clients share queues, and what they do not acknowledge comes again.

``PopMessageProcessor``, ``PopReviveService`` and ``ConsumeMessagePopConcurrentlyService`` (5.5.0). The broker hands
each message to one of the clients that wait for it and keeps no offset of a client's: a client that goes takes nothing
along but the calls that it has not acknowledged. Their messages come again some seconds after ``popInvisibleTime`` is
over.
"""

from dataclasses import dataclass

import numpy as np

from planner.allocation.rocketmq import PopSharing
from planner.forecast.common.changes import FREEZE, SILENT
from planner.forecast.common.delay_ranges import draw_evenly, draw_tailed
from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.offsets import Deliveries
from planner.forecast.rocketmq.handover.outcome import Observed, find_longest_gaps, find_pauses
from planner.forecast.rocketmq.handover.pop_absences import find_absence
from planner.forecast.rocketmq.handover.pop_backlogs import find_popped_at_end
from planner.forecast.rocketmq.handover.tenures import NOBODY, Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, has_backlog
from planner.forecast.rocketmq.membership.ownership import Owners, state_matrix
from planner.forecast.rocketmq.membership.process_times import ProcessTimes
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.membership.unknown_ids import Names
from planner.forecast.rocketmq.request.changes import CUT, BlueGreen
from planner.forecast.rocketmq.timing import LEAST_SERVICE_S, POP_THRESHOLD, Calibration

_RARE = 0.05
"""Such a share of the trials decides no end of an interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Redelivery:
    """What comes again because of the change, by trial.

    ``late``: messages that were popped and never handed to a listener, so that they come once, but late;
    ``redelivered_s``: when the last message that is redelivered or comes late does so, NaN where none does. ``lost``:
    messages that come again to a group that has nobody left, and to no other. ``is_known``: False where these figures
    are unknown: of a broker that starts and gives other shares at first, and of members whose threads are behind by
    ``popInvisibleTime`` or more, or fall ever further behind, so that what they have popped comes again and again.
    """

    late: Floats
    redelivered_s: Floats
    lost: Floats
    is_known: bool


def find_shared_owners(scenario: Scenario, names: Names, before: Booleans) -> Owners:
    """Return for each queue one of the clients that share it: one that stays wherever one does.

    So a queue moves where nobody who had it has it afterwards.
    """
    clients = np.array([process.client for process in scenario.processes], dtype=np.intp)
    had = _by_client(scenario, before, clients)
    has = [  # in each placement of unknown ids
        _by_client(scenario, state_matrix(scenario, names, AFTER, scenario.final, number), clients)
        for number in range(len(names.placements))
    ]
    shown = had & has[0]
    old = np.where(shown.any(axis=0), shown.argmax(axis=0), _first(had))
    after = np.stack([np.where((had & now).any(axis=0), old, _first(now)) for now in has])
    return Owners(old, after[names.of_trial], after[0])


def find_shared_rates(scenario: Scenario, before: Booleans, after: Booleans) -> Rates:
    """Return the rates of queues whose holders' threads work on them together, each evenly on all that it owns."""
    request = scenario.request
    service_s = max(request.service_time_s, LEAST_SERVICE_S)
    batch = request.settings.value("consumeMessageBatchMaxSize")
    per_process = np.array([process.threads for process in scenario.processes], dtype=float) * batch / service_s
    could, can = ((_evenly(owned) * per_process[:, None]).sum(axis=0) for owned in (before, after))
    rate_of = dict(zip(request.queues, request.rates, strict=True))
    arriving = np.maximum(scenario.rates, [rate_of.get(queue, 0.0) for queue in scenario.queues])
    consumed = np.where(has_backlog(scenario, service_s), could, np.minimum(arriving, could))
    return Rates(service_s, consumed, can, per_process, np.full(len(scenario.queues), NOBODY))


def find_popped_deliveries(
    scenario: Scenario,
    times: ProcessTimes,
    tenures: Tenures,
    starts: Starts,
    rates: Rates,
    before: Booleans,
    calibration: Calibration,
    random: np.random.Generator,
) -> tuple[Deliveries, Redelivery]:
    """Return what is redelivered, and what late: the calls that run in a tenure as it ends, and what it had popped.

    A queue that is dropped acknowledges nothing any more (``ConsumeRequest#run``); a shutdown waits for no popped
    message, and its calls run on until it closes the connections (``DefaultMQPushConsumerImpl#shutdown``). A client
    that is back before popInvisibleTime is over acknowledges its calls after all.
    """
    shape, request = tenures.process.shape, scenario.request
    # A queue that is no longer there is popped no more, whichever client drops it when.
    ended_s = np.where(
        scenario.present[tenures.queues][None, :, None], tenures.dropped, np.minimum(tenures.dropped, 0.0)
    )
    delivers = (tenures.process != NOBODY) & (starts.first < ended_s)
    ends = delivers & np.isfinite(ended_s) & ~_on_dead_broker(scenario, tenures)
    share, absence = _shares(tenures, before), find_absence(scenario, times, tenures, calibration, random)
    odds = share * absence.unacknowledged
    redelivered = np.where(ends, _unacknowledged(times, tenures, rates, odds, calibration, random), 0.0)
    late = np.where(ends, _never_started(scenario, tenures, rates, share, calibration, random), 0.0)
    is_known, drained_s = not request.shares_anew, np.zeros((request.trials, 1, 1))
    if request.shares_anew and isinstance(request.change, BlueGreen):
        popped = find_popped_at_end(scenario, request.change, tenures, starts, rates)
        dropped = ends & ~tenures.dies
        longer = random.uniform(*calibration.overtaking, shape)
        redelivered = np.where(dropped, np.floor(popped.running * longer + random.random(shape)), redelivered)
        late = np.where(dropped, np.floor(popped.unbegun + random.random(shape)) + popped.asks, late)
        spare = rates.per_process[list(scenario.final)].sum() - scenario.rates.sum()
        expires = (popped.behind_s >= request.settings.seconds("popInvisibleTime")) | (spare <= 0)
        is_known = bool(expires.mean() < _RARE)
        redeliveries = np.where(dropped, redelivered + late, 0.0).sum(axis=(1, 2), keepdims=True)
        drained_s = redeliveries / max(spare, LEAST_SERVICE_S)  # all at once, beside what arrives
    # A client that is cut off works off what it had popped, whether it can acknowledge that or not.
    called = np.where(
        _is_cut(scenario, tenures) & has_backlog(scenario, rates.service_s)[tenures.queues][None, :, None], late, 0
    )
    redelivered, late = redelivered + np.round(called * absence.unacknowledged), late - called
    lost, causes = np.zeros(shape), dict[str, Floats]()
    if isinstance(request.change, BlueGreen):
        is_left = scenario.groups[np.maximum(tenures.process, 0)] == BEFORE
        lost = np.where(is_left, redelivered + late, 0.0)
        redelivered, late = np.where(is_left, 0.0, redelivered), np.where(is_left, 0.0, late)
        causes = {"clone": _popped_after_copy(request.change, tenures, rates, random)}
    visible_s = ended_s + request.settings.seconds("popInvisibleTime") - rates.service_s * random.random(shape)
    redelivered_at = visible_s + _revival(scenario, tenures, calibration, random) + drained_s
    late_s = np.where(absence.reads, absence.reads_s, redelivered_at)
    last = np.maximum(np.where(redelivered > 0, redelivered_at, -np.inf), np.where(late > 0, late_s, -np.inf))
    last = last.max(axis=(1, 2), initial=-np.inf)
    causes = {"in_flight": redelivered.sum(axis=2), **causes}
    return (
        Deliveries(np.sum(list(causes.values()), axis=0), causes, np.zeros(shape), delivers),
        Redelivery(late.sum(axis=(1, 2)), np.where(np.isfinite(last), last, np.nan), lost.sum(axis=(1, 2)), is_known),
    )


def _unacknowledged(
    times: ProcessTimes,
    tenures: Tenures,
    rates: Rates,
    odds: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return how many calls run in each tenure as it ends and are not acknowledged; ``odds``: for each of the
    queue's."""
    shape = tenures.process.shape
    age_s = rates.service_s * random.uniform(*calibration.overtaking, shape) + draw_evenly(
        random, calibration.ack_s, shape
    )
    graceful = times.of_holders(times.graceful, tenures.process) & tenures.dies
    open_s = np.where(graceful, draw_tailed(random, calibration.pop_closing_s, shape), 0.0)
    left = np.where(age_s > 0, np.clip((age_s - open_s) / age_s, 0.0, 1.0), 0.0)
    running = np.floor(rates.consumed[tenures.queues][None, :, None] * age_s + random.random(shape))
    calls: Floats = random.binomial(running.astype(np.intp), odds * left).astype(float)
    return calls


def _popped_after_copy(change: BlueGreen, tenures: Tenures, rates: Rates, random: np.random.Generator) -> Floats:
    """Return what the group pops after the copy of its offsets, and the other one again.

    A broker counts a message as consumed as soon as it is popped (``PopMessageProcessor#appendCheckPoint``).
    """
    popped = rates.consumed[tenures.queues] * max(change.stop_s - change.clone_s, 0.0)
    messages: Floats = np.floor(popped + random.random(tenures.process.shape[:2]))
    return messages


def _is_cut(scenario: Scenario, tenures: Tenures) -> Booleans:
    is_cut = np.array([process.how == CUT for process in scenario.processes]) | scenario.partitioned.any(axis=1)
    result: Booleans = is_cut[np.maximum(tenures.process, 0)] & tenures.dies
    return result


def _on_dead_broker(scenario: Scenario, tenures: Tenures) -> Booleans:
    """Return which tenures are of a broker that dies: it gives nothing again until it is back."""
    dead = [scenario.brokers.index(scenario.queues[pick].broker) == scenario.down for pick in tenures.queues.tolist()]
    return np.array(dead, dtype=bool)[None, :, None]


def observe_shared(
    scenario: Scenario, owners: Owners, tenures: Tenures, starts: Starts, deliveries: Deliveries, after: Booleans
) -> Observed:
    """Return what an observer would see: a queue pauses only while none of those who share it delivers."""
    trials, count = scenario.request.trials, len(scenario.queues)
    client = np.array([*(process.client for process in scenario.processes), NOBODY])[tenures.process]
    moves = owners.moves[:, tenures.queues]
    gaps = find_longest_gaps(tenures, starts, deliveries)
    stays = owners.before[tenures.queues] == owners.after[:, tenures.queues]
    owned_before = np.isneginf(tenures.taken)
    is_final = np.isposinf(tenures.dropped) & (client != NOBODY)
    between = find_pauses(owned_before, _of_final_owners(scenario, client, is_final), tenures, starts, deliveries)
    pauses = np.where(owners.before == owners.after, 0.0, np.full((trials, count), np.nan))
    pauses[:, tenures.queues] = np.where(moves, between, np.where(stays, gaps, np.nan))
    pauses[:, owners.before == NOBODY] = np.nan
    first = np.where(deliveries.delivers & is_final, starts.first, np.inf).min(axis=2, initial=np.inf)
    settled = np.where(np.isfinite(first), np.maximum(np.where(np.isfinite(first), first, 0.0), 0.0), 0.0)
    duplicates, burst = np.zeros((trials, count)), np.zeros((trials, count))
    duplicates[:, tenures.queues] = deliveries.duplicates
    due = scenario.lags[tenures.queues] + scenario.rates[tenures.queues] * np.nan_to_num(between)
    burst[:, tenures.queues] = np.where(moves, np.round(due), 0.0)
    return Observed(
        pauses,
        duplicates,
        burst,
        settled.max(axis=1, initial=0.0),
        _find_drain_times(scenario, after, trials),
        gaps.max(axis=1, initial=0.0),
    )


def _of_final_owners(scenario: Scenario, client: Indexes, is_final: Booleans) -> Booleans:
    """Return which tenures are of clients that have the queue in the end; where shares come anew, earlier ones count.

    Who has it with a whole broker at first, and with its share in the end, is its new owner all along.
    """
    if not scenario.request.shares_anew:
        return is_final
    owns = np.zeros((*client.shape[:2], len(scenario.clients)), dtype=bool)
    trial, column, _ = np.nonzero(is_final)
    owns[trial, column, client[is_final]] = True
    mine = np.take_along_axis(owns, np.maximum(client, 0), axis=2)
    result: Booleans = mine & (client != NOBODY)
    return result


def _never_started(
    scenario: Scenario,
    tenures: Tenures,
    rates: Rates,
    share: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Floats:
    """Return how many messages a tenure has popped and not begun as it ends.

    With a backlog a client pops on until ``popThresholdForQueue`` wait. A client that drops a queue, falls silent,
    stands still or is cut off leaves a request with the broker, which answers it with the next message, to nobody. What
    is on its way to a process that dies is lost with it.
    """
    waits = has_backlog(scenario, rates.service_s)[tenures.queues][None, :, None]
    threshold = POP_THRESHOLD * random.random(tenures.process.shape)
    cached = np.minimum(scenario.lags[tenures.queues][None, :, None] * share, threshold)
    sends_nothing = np.array(
        [process.how in (SILENT, FREEZE, CUT) for process in scenario.processes]
    ) | scenario.partitioned.any(axis=1)
    is_silent = sends_nothing[np.maximum(tenures.process, 0)] & tenures.dies
    asks = (is_silent | ~tenures.dies) & ((scenario.rates > 0)[tenures.queues] & _asked(scenario, tenures))[
        None, :, None
    ]
    unnoticed_s = draw_tailed(random, calibration.popped_unread_s, tenures.process.shape)
    lost = np.where(tenures.dies & ~is_silent, rates.consumed[tenures.queues][None, :, None] * share * unnoticed_s, 0.0)
    messages: Floats = np.where(waits, np.round(cached), asks + random.poisson(lost))
    return messages


def _revival(scenario: Scenario, tenures: Tenures, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return how long after it is visible what each tenure had comes again: a broker gives back all of it in one go."""
    of_broker = draw_evenly(random, calibration.revive_s, (len(tenures.process), len(scenario.brokers)))
    brokers = [scenario.brokers.index(scenario.queues[pick].broker) for pick in tenures.queues.tolist()]
    revived_s: Floats = of_broker[:, brokers, None]
    return revived_s


def _asked(scenario: Scenario, tenures: Tenures) -> Booleans:
    """Return for which queues a client has requests of their own: one a broker where everybody takes everything."""
    sharing = scenario.request.strategy
    if not isinstance(sharing, PopSharing) or not sharing.shares_all(len(scenario.initial)):
        return np.ones(len(tenures.queues), dtype=bool)
    locations = [scenario.queues[pick].place for pick in tenures.queues.tolist()]
    return np.array([location not in locations[:number] for number, location in enumerate(locations)], dtype=bool)


def _shares(tenures: Tenures, before: Booleans) -> Floats:
    """Return which share of its queue's messages each tenure gets: the client that waits longest gets the next, so all
    get alike."""
    sharing = np.maximum(before.sum(axis=0), 1)[tenures.queues][None, :, None]
    shares: Floats = np.broadcast_to(1.0 / sharing, tenures.process.shape)
    return shares


def _find_drain_times(scenario: Scenario, after: Booleans, trials: int) -> Floats:
    """Return when the backlog is gone, all members that own anything being one pool; NaN where it never is."""
    batch = scenario.request.settings.value("consumeMessageBatchMaxSize")
    service_s = max(scenario.request.service_time_s, LEAST_SERVICE_S)
    members = np.flatnonzero(after.any(axis=1)).tolist()
    threads = sum(scenario.processes[process].threads for process in members)
    spare, lag = threads * batch / service_s - float(scenario.rates.sum()), float(scenario.lags.sum())
    gone = np.nan if spare < 0 or (spare == 0 and lag) else lag / spare if lag else 0.0
    return np.full(trials, gone)


def _evenly(owned: Booleans) -> Floats:
    """Return by process and queue which part of the process's threads works on the queue."""
    shares: Floats = owned / np.maximum(owned.sum(axis=1, keepdims=True), 1)
    return shares


def _by_client(scenario: Scenario, owned: Booleans, clients: Indexes) -> Booleans:
    """Return by client and queue who has it, in whichever of its processes."""
    owned_by_client = np.zeros((len(scenario.clients), owned.shape[1]), dtype=bool)
    np.logical_or.at(owned_by_client, clients, owned)
    return owned_by_client


def _first(owned: Booleans) -> Indexes:
    return np.where(owned.any(axis=0), owned.argmax(axis=0), NOBODY)
