"""Groups that pop: a broker hands each message to whichever member asks, so that members share messages, not queues.

With ``popShareQueueNum`` 0 or less, the brokers' default (-1), every member is given every queue
(``QueryAssignmentProcessor#allocate4Pop``, 5.0.0 to 5.5.0). Then no queue moves, no queue is hot, and one more member
relieves all the others.
"""

from collections.abc import Sequence

from planner.allocation.registry import runnable_strategy
from planner.allocation.rocketmq import PopSharing
from planner.model.snapshot import GroupSnapshot
from planner.simulation.load import DECIMALS, load_of, sum_known, sum_of_known_lags
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad, OwnedQueue

_ASSUMED = (
    "how many queues the brokers let a member share (popShareQueueNum): taken to be all of them, which is the default"
)


def shares_messages(snapshot: GroupSnapshot) -> bool:
    """Return whether every member of the group is given every queue, at every count of members."""
    if snapshot.system != "rocketmq" or snapshot.strategy is None or not snapshot.data_queues:
        return False
    strategy = runnable_strategy(snapshot.strategy, snapshot.strategy_options)
    is_shared = snapshot.shared_queues == len(snapshot.data_queues)
    return is_shared and isinstance(strategy, PopSharing) and strategy.share_queues <= 0


def simulate_shared(snapshot: GroupSnapshot, count: int, staying: Sequence[str] | None = None) -> CandidateOutcome:
    """Return what ``count`` members mean: each takes as much as the others.

    ``staying`` names those who are left, where that is known; ``shares_messages`` must hold.
    """
    present = snapshot.clients
    newcomers = (f"new consumer {number}" for number in range(1, count - len(present) + 1))
    clients = (*(staying or present)[:count], *newcomers)
    loads = _loads(snapshot, clients)
    first = loads[0]
    unknowns = [_ASSUMED]
    if count < len(present) and staying is None:
        unknowns.append(f"which {len(present) - count} consumers stop: shown for the last in order")
    if snapshot.capacity is None:
        unknowns.append("what one consumer can do: no utilisation, wait or drain time follows")
    return CandidateOutcome(
        count=count,
        strategy=snapshot.strategy or "",
        is_current=count == len(present),
        is_useful=True,
        largest_share=len(snapshot.data_queues),
        moved_fewest=0,
        moved_most=0,
        utilisation=first.utilisation,
        keeps_up=None if first.utilisation is None else first.utilisation < 1.0,
        wait_s=first.wait_s,
        drain_s=first.drain_s,
        hot_queue=None,
        hot_utilisation=None,
        loads=loads,
        owners=tuple(OwnedQueue(state.queue, None) for state in snapshot.data_queues),
        unknowns=tuple(unknowns),
    )


def _loads(snapshot: GroupSnapshot, clients: Sequence[str]) -> tuple[ConsumerLoad, ...]:
    """Return an equal share of all arrivals and of the whole backlog for each; nobody's is larger than the first's."""
    states = snapshot.data_queues
    rate, lag = sum_known([state.upper_arrival_rate for state in states]), sum_of_known_lags(states)
    each = None if rate is None else round(rate / len(clients), DECIMALS)
    capacity = known.sure_messages_per_s if (known := snapshot.consumer_capacity) else None
    return tuple(
        load_of(client, len(states), each, _backlog_share(lag, number, len(clients)), capacity)
        for number, client in enumerate(clients)
    )


def _backlog_share(lag: int | None, number: int, clients: int) -> int | None:
    if lag is None:
        return None
    whole, rest = divmod(lag, clients)
    return whole + (number < rest)
