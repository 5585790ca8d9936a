"""One group as its snapshot shows it, made ready to be weighed: load by minute, busiest shares, backlog, prices."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.decision.horizon import Costs, GroupState
from planner.decision.objective import WaitObjective
from planner.decision.prices import change_price
from planner.decision.weighing import COMMIT_INTERVAL_S, DEFAULT_WEIGHING, LEAST_SHARE, Weighing, useful_counts
from planner.demand.recent import minute_rates
from planner.demand.series import LoadSeries
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.sharing import shares_messages

MOST_OF_A_CONSUMER = 0.95
"""What one queue counts for at most, in consumers: one that takes more is relieved by no count once it is alone."""
ALL_OF_A_CONSUMER = 1.0
"""The largest queue is left out where it takes more: its messages are late with any count, so that none is paid for.

Nor is any consumer taken away beside it, as that one would leave less of a consumer to it.
"""


@dataclass(frozen=True, slots=True, eq=False)
class GroupWeighing:
    """A group ready to be weighed, with the outcome of each of its counts.

    The ``hot`` queue takes more than a consumer and is left out, and so are all counts below the present one.
    """

    weighing: Weighing
    outcomes: Mapping[int, CandidateOutcome]
    hot: Queue | None


def weighing_of(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], wait: WaitObjective
) -> GroupWeighing | None:
    """Return the group with the given outcomes, the present one among them; ``None`` where load or capacity is unknown.

    Backlog that another count does not help is left out: that of blocked queues, of slow members, and of queues that
    alone are too much for one consumer.
    """
    rates = {state.queue: state.arrival_rate for state in snapshot.data_queues}
    known = {queue: rate for queue, rate in rates.items() if rate is not None}
    capacity = snapshot.capacity.sure_messages_per_s if snapshot.capacity else 0.0
    if len(known) < len(rates) or capacity <= 0:
        return None
    is_shared = shares_messages(snapshot)
    hot = None if is_shared else _hot_queue(known, capacity)
    most = float("inf") if is_shared else MOST_OF_A_CONSUMER * capacity
    served = {queue: 0.0 if queue == hot else min(rate, most) for queue, rate in known.items()}
    current = snapshot.count
    fewest = 1 if hot is None else current
    by_count = {outcome.count: outcome for outcome in sorted(outcomes, key=lambda outcome: outcome.count)}
    by_count = {count: outcome for count, outcome in by_count.items() if count >= fewest}
    shares = {
        count: 1 / outcome.members if is_shared else _busiest_share(outcome, served)
        for count, outcome in by_count.items()
    }
    useful = useful_counts(shares.items(), {current})
    chosen = {count: by_count[count] for count in useful}
    return GroupWeighing(
        Weighing(
            _series(snapshot, known, served, capacity),
            tuple(useful),
            np.array(list(useful.values())),
            GroupState(current, current, 0.0, _backlog(snapshot, served, hot, useful[current], is_shared)),
            _costs(chosen, current, wait),
            DEFAULT_WEIGHING,
        ),
        chosen,
        hot,
    )


def _hot_queue(rates: Mapping[Queue, float], capacity: float) -> Queue | None:
    """Return the largest queue if it alone is too much for a consumer."""
    largest = max(rates, key=lambda queue: rates[queue])
    return largest if rates[largest] > ALL_OF_A_CONSUMER * capacity else None


def _busiest_share(outcome: CandidateOutcome, rates: Mapping[Queue, float]) -> float:
    """Return the part of the load that the busiest consumer has; queues without owner count as one of their own."""
    loads: defaultdict[str | None, float] = defaultdict(float)
    for owned in outcome.owners:
        loads[owned.owner] += rates.get(owned.queue, 0.0)
    total = sum(loads.values())
    return max(loads.values()) / total if total > 0 else 1 / outcome.members


def _series(
    snapshot: GroupSnapshot, rates: Mapping[Queue, float], served: Mapping[Queue, float], capacity: float
) -> LoadSeries:
    """Return the load in consumers by minute; where no minute is known, the mean of the window stands for one."""
    total = sum(rates.values())
    served_share = sum(served.values()) / total if total > 0 else 1.0
    minutes = minute_rates(snapshot.recent, snapshot.at) or [total]
    return LoadSeries(load=[rate * served_share / capacity for rate in minutes])


def _backlog(
    snapshot: GroupSnapshot, rates: Mapping[Queue, float], hot: Queue | None, share: float, is_shared: bool
) -> float:
    """Return the backlog in consumer-seconds of the whole group, as the busiest consumer has it.

    Of the lag, half a commit interval of arrivals has been worked off.
    """
    assert snapshot.capacity is not None
    capacity, slow = snapshot.capacity.sure_messages_per_s, snapshot.capacity.slow_clients
    helpless = frozenset((*snapshot.standing_queues, hot))
    waiting: defaultdict[str | None, float] = defaultdict(float)
    for state in snapshot.data_queues:
        if state.queue not in helpless and state.owner not in slow:
            waiting[state.owner] += max((state.lag or 0) - rates[state.queue] * COMMIT_INTERVAL_S / 2, 0.0)
    if is_shared:
        return sum(waiting.values()) / capacity
    return max(waiting.values(), default=0.0) / capacity / max(share, LEAST_SHARE)


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
