"""Groups that pop: a broker hands each message to whichever member asks, so that members share messages, not queues.

With ``popShareQueueNum`` 0 or less, the brokers' default (-1), every member is given every queue
(``QueryAssignmentProcessor#allocate4Pop``, 5.0.0 to 5.5.0). So is every gRPC client of a group that does not consume in
order (``RouteActivity#queryAssignment``, 5.5.0). Then no queue moves, no queue is hot, and one more member relieves all
the others.
"""

from collections.abc import Sequence

from planner.allocation.registry import runnable_strategy
from planner.allocation.rocketmq import PopSharing
from planner.model.snapshot import POP, GroupSnapshot
from planner.simulation.load import DECIMALS, load_of, sum_known, sum_of_known_lags
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad
from planner.simulation.shared_outcome import shared_outcome, sharing_clients, unknown_of_shared

_ASSUMED = (
    "how many queues the brokers let a member share (popShareQueueNum): taken to be all of them, which is the default"
)

MOST_CACHED = 1_024 + 32
"""Messages that a gRPC client holds without an acknowledgement at most: its cache (``maxCacheMessageCount``) and one
batch (rocketmq-client-java 5.0.8)."""

_UNACKNOWLEDGED = (
    "how many messages the members hold and have not acknowledged (0 to {:,}, by the clients' default cache): the lag "
    "is of those that are ready"
)


def shares_messages(snapshot: GroupSnapshot) -> bool:
    """Return whether every member of the group is given every queue, at every count of members."""
    if snapshot.strategy is None or not snapshot.data_queues:
        return False
    if snapshot.strategy == POP:
        return snapshot.orderly is False
    strategy = runnable_strategy(snapshot.strategy, snapshot.strategy_options)
    is_shared = snapshot.shared_queues == len(snapshot.data_queues)
    return is_shared and isinstance(strategy, PopSharing) and strategy.share_queues <= 0


def simulate_shared(snapshot: GroupSnapshot, count: int, staying: Sequence[str] | None = None) -> CandidateOutcome:
    """Return what ``count`` members mean: each takes as much as the others.

    ``staying`` names those who are left, where that is known; ``shares_messages`` must hold.
    """
    loads = _loads(snapshot, sharing_clients(snapshot, count, staying))
    assumed = _UNACKNOWLEDGED.format(len(snapshot.clients) * MOST_CACHED) if snapshot.strategy == POP else _ASSUMED
    unknowns = (assumed, *unknown_of_shared(snapshot, count, staying))
    return shared_outcome(snapshot, loads, unknowns, most_queues=len(snapshot.data_queues), is_useful=True)


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
