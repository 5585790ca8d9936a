"""What each broker's member table lists at any time, and which members it notifies when it changes.

``ConsumerManager`` and ``ConsumerGroupInfo`` (4.9.8, 5.5.0): a table a broker, an entry a channel. A new channel, an
unregistration and a closed channel notify all members of that table; the scan for silent ones notifies nobody.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.forecast.common.bisection import first_after
from planner.forecast.common.changes import FREEZE, SILENT
from planner.forecast.common.delay_ranges import draw_evenly, draw_tailed
from planner.forecast.rocketmq.membership.ownership import state_matrix
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, ProcessTimes
from planner.forecast.rocketmq.membership.processes import BEFORE
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.membership.unknown_ids import Names
from planner.forecast.rocketmq.request.changes import CUT
from planner.forecast.rocketmq.timing import (
    ANSWERED_S,
    BATCHED_NOTIFICATION_S,
    CHANNEL_SCAN_S,
    LONG_POLL_S,
    NETWORK_TIMEOUT_S,
    Calibration,
)


@dataclass(frozen=True, slots=True, eq=False)
class Registrations:
    """Seconds since the change, by trial, process and broker: ``entered`` and ``left`` the table.

    ``reentered``: enters once more, after it was cut off from that broker for a while (else NEVER).
    ``notifies_entering`` and ``notifies_leaving`` are false where an entry is added or removed without notifying
    anybody. The entry of a process that stood still becomes that of the one that resumes it, unless the broker has
    removed it by then.
    """

    entered: Floats
    left: Floats
    notifies_entering: Booleans
    notifies_leaving: Booleans
    reentered: Floats

    def sums(
        self, weights: NDArray[np.uint64], trials: Indexes, brokers: Indexes, at: Floats
    ) -> tuple[NDArray[np.uint64], Indexes]:
        """Return the weight and the count of the processes that the tables of these brokers list then in these trials.

        ``weights``: one a process, 0 for those that do not count; sums go round at 2^64. The other three are as long.
        """
        counted = np.flatnonzero(weights)
        entered, left, reentered = (moments[:, counted] for moments in (self.entered, self.left, self.reentered))
        stays = reentered <= left
        left, reentered = np.where(stays, NEVER, left), np.where(stays, NEVER, reentered)
        is_present = entered < left
        times = np.concatenate(
            [np.where(is_present, entered, NEVER), np.where(is_present, left, NEVER), reentered], axis=1
        )
        of_event = np.concatenate([weights[counted], -weights[counted], weights[counted]])
        steps = np.repeat(np.array([1, -1, 1]), len(counted))
        order = np.moveaxis(times, 1, 2).argsort(axis=2)
        rows = np.take_along_axis(np.moveaxis(times, 1, 2), order, axis=2)
        row = trials * rows.shape[1] + brokers
        index = row * (rows.shape[2] + 1) + first_after(
            rows.reshape(rows.shape[0] * rows.shape[1], rows.shape[2]), row, at
        )

        def summed(values: NDArray[Any]) -> NDArray[Any]:
            sums = np.zeros((*rows.shape[:2], rows.shape[2] + 1), dtype=values.dtype)
            np.cumsum(values[order], axis=2, out=sums[:, :, 1:])
            summed_at: NDArray[Any] = sums.ravel().take(index)
            return summed_at

        return summed(of_event), summed(steps)

    def listed(self, trials: Indexes, brokers: Indexes, at: Floats) -> Booleans:
        """Return which processes the tables of these brokers list at these times of these trials, by time and
        process."""
        entered, left, reentered = (
            moments[trials, :, brokers] for moments in (self.entered, self.left, self.reentered)
        )
        is_listed: Booleans = (entered <= at[:, None]) & (at[:, None] < left) | (reentered <= at[:, None])
        return is_listed

    @property
    def last_change(self) -> Floats:
        """Return for each trial when the last table changes; 0 where none does."""
        times = np.concatenate([self.entered, self.left, self.reentered], axis=1)
        finite = np.where(np.isfinite(times), times, 0.0)
        last: Floats = np.maximum(finite.max(axis=(1, 2), initial=0.0), 0.0)
        return last


def member_registrations(
    scenario: Scenario, times: ProcessTimes, calibration: Calibration, random: np.random.Generator
) -> Registrations:
    """Return the tables that follow from starts and ends; brokers that die or start are not in it yet."""
    shape = (scenario.request.trials, len(scenario.processes), len(scenario.brokers))
    entered, left = np.full(shape, ALWAYS), np.full(shape, NEVER)
    registrations = Registrations(
        entered, left, np.ones(shape, dtype=bool), np.ones(shape, dtype=bool), np.full(shape, NEVER)
    )
    for index, process in enumerate(scenario.processes):
        if process.resumes is not None:
            _resume(scenario, times, registrations, index, calibration, random)
        elif process.starts_s is not None:
            steps = _in_sequence(calibration.register_step_s, shape, random)
            entered[:, index] = times.heartbeat[:, index, None] + steps
        if process.how in (SILENT, FREEZE, CUT):
            left[:, index], registrations.notifies_leaving[:, index] = _expiry(
                scenario, index, times.ended[:, index], random
            )
        elif process.how is not None:
            left[:, index] = _noticed(times, index, calibration, shape, random)
    for index in np.flatnonzero(scenario.partitioned.any(axis=1)).tolist():
        _cut_off(scenario, times, registrations, index, calibration, random)
    if scenario.down is not None:
        left[:, :, scenario.down] = np.minimum(left[:, :, scenario.down], 0.0)
        registrations.notifies_leaving[:, :, scenario.down] = False
    return registrations


def _cut_off(
    scenario: Scenario,
    times: ProcessTimes,
    registrations: Registrations,
    index: int,
    calibration: Calibration,
    random: np.random.Generator,
) -> None:
    """Fill in the entries of a client that is cut off from some brokers: they drop it, and it registers again."""
    expires, notifies = _expiry(scenario, index, np.zeros(scenario.request.trials), random)
    back, lost = times.reached[:, index, None], scenario.partitioned[index]
    # Pulls try for a connection nearly all along: what comes in between waits for the rest of their attempt.
    late_s = _late_s(scenario, times, index, scenario.partitioned_s, lost, NETWORK_TIMEOUT_S / 2)
    reentered = back + _until_heartbeat(scenario, late_s, calibration, random)
    forgotten = _forgotten(times.closed[:, index, None], scenario.partitioned_s, expires.shape, random)
    is_expired = expires < back
    is_dropped = lost & (is_expired | (forgotten < reentered))
    goes = np.where(is_expired, expires, forgotten)
    registrations.left[:, index] = np.where(is_dropped, goes, registrations.left[:, index])
    registrations.notifies_leaving[:, index] = np.where(
        is_dropped & is_expired, notifies, registrations.notifies_leaving[:, index]
    )
    registrations.reentered[:, index] = np.where(is_dropped, reentered, NEVER)


def _resume(
    scenario: Scenario,
    times: ProcessTimes,
    registrations: Registrations,
    index: int,
    calibration: Calibration,
    random: np.random.Generator,
) -> None:
    """Fill in the entries of a process that stood still or was cut off: it keeps those that no broker has removed."""
    old = scenario.processes[index].resumes or 0
    resumed, expires = times.heartbeat[:, index, None], registrations.left[:, old]
    # Brokers that gave it up closed its connections: it opens the second one as a process that starts does.
    steps = _in_sequence(calibration.register_step_s, registrations.left.shape, random)
    back_s = scenario.processes[index].starts_s or 0.0
    late_s: Floats | float = back_s
    if scenario.processes[old].how == CUT:
        late_s = _late_s(scenario, times, old, back_s, np.ones(len(scenario.brokers), dtype=bool), NETWORK_TIMEOUT_S)
    reentered = resumed + _until_heartbeat(scenario, late_s, calibration, random)
    reentered = (
        reentered + draw_evenly(random, calibration.query_s, resumed.shape) + steps - steps.min(axis=1, keepdims=True)
    )
    forgotten = _forgotten(times.closed[:, old, None], back_s, reentered.shape, random)
    removed = expires < resumed
    late = ~removed & (forgotten < reentered)
    goes = np.where(late, forgotten, np.minimum(expires, resumed))
    registrations.entered[:, index] = np.where(removed | late, reentered, resumed)
    registrations.notifies_entering[:, index] = removed | late
    registrations.notifies_leaving[:, old] = registrations.notifies_leaving[:, old] & removed | late
    registrations.left[:, old] = goes


def _forgotten(closed: Floats, back_s: float, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return when brokers hear that a client has closed the connections that it had before it was cut off.

    TCP retransmits, after waits that are about as long as it has tried already. Brokers remove the
    client then, unless a heartbeat has come by a new connection (``ConsumerManager#doChannelCloseEvent``).
    """
    tried_s = np.where(np.isfinite(closed), back_s - np.where(np.isfinite(closed), closed, 0.0), NEVER)
    return back_s + random.random(shape) * tried_s


def _until_heartbeat(
    scenario: Scenario, late_s: Floats | float, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how long after waking a process sends a heartbeat: at once if one was due, or as it connects (5.2+).

    ``late_s``: how late its timers are; those of one that was only cut off went on, but may be late by then.
    """
    request = scenario.request
    at_once = draw_evenly(random, calibration.resumed_timer_s, (request.trials, 1))
    if request.generation.registers_on_connect and request.settings.is_on("enableHeartbeatChannelEventListener"):
        return at_once
    due = random.uniform(0, request.settings.seconds("heartbeatBrokerInterval"), at_once.shape)
    seconds: Floats = at_once + np.maximum(due - late_s, 0.0)
    return seconds


def _late_s(
    scenario: Scenario, times: ProcessTimes, process: int, cut_s: float, lost: Booleans, each_s: float
) -> Floats:
    """Return by trial how late the timers of a client are after a cut from these brokers: one thread has them all.

    Up to 5.1 each offset, heartbeat and route waits (``each_s``) for a connection there, once the first heartbeat has
    timed out and closed the old one (``NettyRemotingClient#createChannel``,
    ``RemoteBrokerOffsetStore#persistAll``). Name servers are lost with the last broker. What is due more often than it
    is done falls behind, and is made up for at once when the network is back.
    """
    settings = scenario.request.settings
    broker_of = np.array([scenario.brokers.index(queue.broker) for queue in scenario.queues], dtype=np.intp)
    often = {
        "persistConsumerOffsetInterval": (_owned(scenario)[process] & lost[broker_of]).sum(),
        "heartbeatBrokerInterval": lost.sum(),
        "pollNameServerInterval": len(scenario.topics) * lost.all(),
    }
    busy = each_s * sum(count / settings.seconds(name) for name, count in often.items())
    lasted = np.maximum(cut_s - times.closed[:, process, None], 0.0)
    late_s: Floats = lasted * (1 - 1 / max(busy, 1.0))
    return late_s


def _noticed(
    times: ProcessTimes, index: int, calibration: Calibration, shape: tuple[int, ...], random: np.random.Generator
) -> Floats:
    """Return when each broker is notified of an end, or sees the connection of a process that was killed close."""
    graceful, noticed_at = times.graceful[:, index, None], np.full((shape[0], shape[2]), NEVER)
    if graceful.any():
        noticed_at = times.saved[:, index, None] + _in_sequence(calibration.unregister_step_s, shape, random)
    if graceful.all():
        return noticed_at
    closed = draw_evenly(random, calibration.reset_noticed_s, (shape[0], 1))
    closed = times.stopped[:, index, None] + closed + draw_tailed(random, calibration.reset_step_s, noticed_at.shape)
    return np.where(graceful, noticed_at, closed)


def _in_sequence(step: tuple[float, float], shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return when each broker's turn comes, brokers in any order: a client serves its hash map of brokers in turn."""
    trials, _, brokers = shape
    delays = np.cumsum(draw_tailed(random, step, (trials, brokers)), axis=1)
    order = random.random((trials, brokers)).argsort(axis=1)
    return np.take_along_axis(delays, order, axis=1)


def _expiry(scenario: Scenario, index: int, died: Floats, random: np.random.Generator) -> tuple[Floats, Booleans]:
    """Return when each broker removes a silent member, and whether it notifies: the scan does not, the idle close
    does."""
    settings = scenario.request.settings
    shape = (len(died), len(scenario.brokers))
    heartbeat_age = random.uniform(0, settings.seconds("heartbeatBrokerInterval"), (len(died), 1))
    wait_for_scan = random.uniform(0, CHANNEL_SCAN_S, shape)
    scanned = settings.seconds("channelExpiredTimeout") - heartbeat_age + wait_for_scan
    # Pulls keep a channel busy to the end, and the broker still answers those that it has: longest where the member
    # has the broker's retry queue, to which nothing comes and which only push consumers subscribe. Where it pulls
    # nothing, the last to come was a heartbeat, or a question for the members.
    quiet = random.uniform(0, settings.seconds("rocketmq.client.rebalance.waitInterval"), shape)
    waits = (random.random(shape) * len(scenario.initial) < 1) & (not scenario.request.polls)
    answered = np.where(waits, random.uniform(0, LONG_POLL_S, shape), draw_tailed(random, ANSWERED_S, shape))
    last = np.where(_pulls(scenario)[index] | waits, answered, -np.minimum(quiet, heartbeat_age))
    idle = settings.value("serverChannelMaxIdleTimeSeconds") + last
    return died[:, None] + np.maximum(np.minimum(scanned, idle), 0.0), idle < scanned


def _pulls(scenario: Scenario) -> Booleans:
    """Return by process and broker whether messages come, before the change, that the process pulls from there."""
    owned = _owned(scenario) & (scenario.rates + scenario.lags > 0)
    brokers = np.array([scenario.brokers.index(queue.broker) for queue in scenario.queues], dtype=np.intp)
    return np.stack([owned[:, brokers == number].any(axis=1) for number in range(len(scenario.brokers))], axis=1)


def _owned(scenario: Scenario) -> Booleans:
    """Return by process and queue who owns what before the change."""
    ids = tuple(client.id or "" for client in scenario.clients)
    names = Names((ids,), np.zeros(scenario.request.trials, dtype=np.intp), ids)
    return state_matrix(scenario, names, BEFORE, scenario.initial)


def notifications(
    scenario: Scenario, registrations: Registrations, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return when each process is notified, sorted: trials, processes, notifications (NEVER where there are fewer)."""
    trials, processes, _ = registrations.entered.shape
    if not scenario.request.settings.is_on("notifyConsumerIdsChangedEnable"):
        return np.full((trials, processes, 0), NEVER)
    entered, left = (
        np.where(registrations.notifies_entering, registrations.entered, NEVER),
        np.where(registrations.notifies_leaving, registrations.left, NEVER),
    )
    events = np.concatenate([entered, left, registrations.reentered], axis=1)
    happen = np.argwhere(np.isfinite(events).any(axis=0)).tolist()
    groups = scenario.groups
    all_notified = [
        np.where(groups == groups[which % processes], _notified(registrations, events[:, which, broker], broker), NEVER)
        for which, broker in happen
    ]
    if not all_notified:
        return np.full((trials, processes, 0), NEVER)
    notified_at = np.stack(all_notified, axis=2)
    if not scenario.request.settings.is_on("realTimeNotifyConsumerChange"):
        phase = random.uniform(0, BATCHED_NOTIFICATION_S, (trials, 1, 1))
        notified_at = phase + np.ceil((notified_at - phase) / BATCHED_NOTIFICATION_S) * BATCHED_NOTIFICATION_S
    notified_at = notified_at + draw_evenly(random, calibration.notified_s, notified_at.shape)
    if calibration.notification_lost:
        notified_at = np.where(random.random(notified_at.shape) < calibration.notification_lost, NEVER, notified_at)
    notified_at.sort(axis=2)
    return notified_at


def _notified(registrations: Registrations, at: Floats, broker: int) -> Floats:
    """Return the time for every process that stands in the table then, NEVER for the others."""
    at = np.where(np.isfinite(at), at, NEVER)
    stands = (registrations.entered[:, :, broker] <= at[:, None]) & (at[:, None] < registrations.left[:, :, broker])
    stands |= registrations.reentered[:, :, broker] <= at[:, None]
    return np.where(stands, at[:, None], NEVER)
