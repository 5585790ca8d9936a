"""One group as its snapshot shows it, made ready to be weighed: load by minute, busiest shares, backlog, prices."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.decision.horizon import Costs, GroupState
from planner.decision.objective import WaitObjective
from planner.decision.prices import change_price
from planner.decision.weighing import (
    DEFAULT_WEIGHING,
    LEAST_SHARE,
    UNCOMMITTED_S,
    Weighing,
    backlog_ratios,
    leave_out_hot_queue,
    useful_counts,
)
from planner.demand.events import Event, EventLoad, event_load, usual_rates
from planner.demand.recent import MinuteLoad, minute_load
from planner.demand.series import LoadSeries
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import shares_messages
from planner.simulation.group_model import group_model
from planner.simulation.outcome import CandidateOutcome


@dataclass(frozen=True, slots=True, eq=False)
class GroupWeighing:
    """A group ready to be weighed, with the outcome of each of its counts.

    The ``hot`` queue takes more than a consumer and is left out, and so are all counts below the present one.
    ``served`` has what counts of each queue's messages per second, ``served_share`` its part of all that arrives.
    """

    weighing: Weighing
    outcomes: Mapping[int, CandidateOutcome]
    hot: Queue | None
    served: Mapping[Queue, float]
    served_share: float

    def state_of(self, snapshot: GroupSnapshot) -> GroupState:
        """Return the state of the group by the snapshot's lags; members, owners and strategy are as they were."""
        share = float(self.weighing.shares[self.weighing.counts.index(snapshot.count)])
        return _state(snapshot, self.outcomes, _waiting(snapshot, self.served, self.hot), self.served, share)


def weighing_of(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], wait: WaitObjective, events: Sequence[Event] = ()
) -> GroupWeighing | None:
    """Return the group with the given outcomes, the present one among them; ``None`` where load or capacity is unknown.

    ``events`` are known times with another load.

    Backlog that another count does not help is left out: that of blocked queues, of slow members, and of queues that
    alone are too much for one consumer.
    """
    rates = {state.queue: state.arrival_rate for state in snapshot.data_queues}
    known = {queue: rate for queue, rate in rates.items() if rate is not None}
    capacity = snapshot.capacity.sure_messages_per_s if snapshot.capacity else 0.0
    if len(known) < len(rates) or capacity <= 0:
        return None
    is_shared = shares_messages(snapshot)
    served, hot = (known, None) if is_shared else _served(_expected(snapshot, known), capacity)
    current = snapshot.count
    fewest = 1 if hot is None else current
    by_count = {outcome.count: outcome for outcome in sorted(outcomes, key=lambda outcome: outcome.count)}
    by_count = {count: outcome for count, outcome in by_count.items() if count >= fewest}
    shares = {
        count: _shared_fraction(snapshot, outcome) if is_shared else _busiest_share(outcome, served)
        for count, outcome in by_count.items()
    }
    useful = useful_counts(shares.items(), {current})
    chosen = {count: by_count[count] for count in useful}
    weighing = Weighing(
        _series(snapshot, known, served, capacity, events),
        tuple(useful),
        np.array(list(useful.values())),
        _state(snapshot, chosen, _waiting(snapshot, served, hot), served, useful[current]),
        _costs(chosen, current, wait),
        DEFAULT_WEIGHING,
    )
    if events:
        minutes = sum(weighing.bins_min)
        weighing = replace(weighing, events=_events(snapshot, events, minutes, known, served, capacity))
    return GroupWeighing(weighing, chosen, hot, served, _served_share(known, served))


def _expected(snapshot: GroupSnapshot, rates: Mapping[Queue, float]) -> dict[Queue, float]:
    """Return messages per second of each queue: of what comes in all, the part that is expected of it next."""
    shares = {state.queue: state.expected_share for state in snapshot.data_queues}
    total = sum(rates.values())
    expected = {queue: total * share for queue, share in shares.items() if share is not None}
    return expected if len(expected) == len(shares) else dict(rates)


def _served(rates: Mapping[Queue, float], capacity: float) -> tuple[dict[Queue, float], Queue | None]:
    """Return what counts of each queue's rate, and the queue that alone is too much for a consumer."""
    queues = list(rates)
    served, hot = leave_out_hot_queue(np.array([rates[queue] for queue in queues]) / capacity)
    by_queue = dict(zip(queues, (served * capacity).tolist(), strict=True))
    return by_queue, None if hot is None else queues[hot]


def _shared_fraction(snapshot: GroupSnapshot, outcome: CandidateOutcome) -> float:
    return group_model(snapshot).busiest_fraction(outcome.members) or 1 / outcome.members


def _busiest_share(outcome: CandidateOutcome, rates: Mapping[Queue, float]) -> float:
    """Return the part of the load that the busiest consumer has; queues without owner count as one of their own."""
    loads: defaultdict[str | None, float] = defaultdict(float)
    for owned in outcome.owners:
        loads[owned.owner] += rates.get(owned.queue, 0.0)
    total = sum(loads.values())
    return max(loads.values()) / total if total > 0 else 1 / outcome.members


def _series(
    snapshot: GroupSnapshot,
    rates: Mapping[Queue, float],
    served: Mapping[Queue, float],
    capacity: float,
    events: Sequence[Event],
) -> LoadSeries:
    """Return the load in consumers by minute, without the events' factors.

    Where no minute is known, the mean of the window stands for one.
    """
    served_share = _served_share(rates, served)
    minutes = minute_load(snapshot.recent, snapshot.at, snapshot.past_load)
    if not minutes.rates:
        minutes = MinuteLoad([sum(rates.values())], [False])
    usual = usual_rates(minutes.rates, events, snapshot.at)
    return LoadSeries(load=[rate * served_share / capacity for rate in usual], averaged=minutes.averaged)


def _events(
    snapshot: GroupSnapshot,
    events: Sequence[Event],
    minutes: int,
    rates: Mapping[Queue, float],
    served: Mapping[Queue, float],
    capacity: float,
) -> EventLoad:
    """Return what the events do to each minute ahead, floors in consumers like the series."""
    load = event_load(events, snapshot.at, minutes)
    return replace(load, floors=load.floors * _served_share(rates, served) / capacity)


def _served_share(rates: Mapping[Queue, float], served: Mapping[Queue, float]) -> float:
    total = sum(rates.values())
    return sum(served.values()) / total if total > 0 else 1.0


def _waiting(snapshot: GroupSnapshot, rates: Mapping[Queue, float], hot: Queue | None) -> dict[Queue, float]:
    """Return the messages that wait in each queue and that another count would help.

    Of the lag, half a commit interval of arrivals has been worked off.
    """
    assert snapshot.capacity is not None
    helpless, slow = frozenset((*snapshot.standing_queues, hot)), snapshot.capacity.slow_clients
    return {
        state.queue: max((state.lag or 0) - rates[state.queue] * UNCOMMITTED_S, 0.0)
        for state in snapshot.data_queues
        if state.queue not in helpless and state.owner not in slow
    }


def _state(
    snapshot: GroupSnapshot,
    outcomes: Mapping[int, CandidateOutcome],
    waiting: Mapping[Queue, float],
    rates: Mapping[Queue, float],
    share: float,
) -> GroupState:
    """Return the group's state; ``share`` is the busiest consumer's of the load under the present count."""
    assert snapshot.capacity is not None
    capacity, current = snapshot.capacity.sure_messages_per_s, snapshot.count
    if shares_messages(snapshot):
        return GroupState(current, current, 0.0, sum(waiting.values()) / capacity)
    by_owner: defaultdict[str | None, float] = defaultdict(float)
    for state in snapshot.data_queues:
        by_owner[state.owner] += waiting.get(state.queue, 0.0)
    backlog = max(by_owner.values(), default=0.0) / capacity / max(share, LEAST_SHARE)
    work = {queue: waiting.get(queue, 0.0) + rate * UNCOMMITTED_S for queue, rate in rates.items()}
    if not any(work.values()):
        return GroupState(current, current, 0.0, backlog)
    shares = {count: _busiest_share(outcome, work) for count, outcome in outcomes.items()}
    return GroupState(current, current, 0.0, backlog, backlog_ratios(shares.values(), shares[current]))


def _costs(outcomes: Mapping[int, CandidateOutcome], current: int, wait: WaitObjective) -> Costs:
    """Return the prices: of a change to each count that of its own forecast, of the way back the nearest ones' mean.

    What a change will cost later is not known before, as owners and loads will be others by then: it costs what the
    change to the same count costs now.
    """
    prices = {count: change_price(outcome, current, wait.prices) for count, outcome in outcomes.items()}
    fewer, more = [count for count in prices if count < current], [count for count in prices if count > current]
    near = [prices[count] for count in (*fewer[-1:], *more[:1])]
    back = sum(near) / len(near) if near else 0.0
    return Costs(
        change=tuple(back if count == current else price for count, price in prices.items()),
        late_minute=wait.prices.late_minute_s,
        late_after_s=wait.late_after_s,
        pod_start_s=wait.pod_start_s,
        every_s=wait.decided_every_s,
    )
