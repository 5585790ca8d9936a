"""How many virtual nodes even CONSISTENT_HASH out for a group."""

from collections.abc import Sequence

import numpy as np

from planner.allocation.ordering import java_sorted
from planner.allocation.rocketmq import ConsistentHash
from planner.model.snapshot import GroupSnapshot
from planner.simulation.rocketmq.client_ids import draw_clients
from planner.simulation.rocketmq.member_draws import draws_of
from planner.simulation.rocketmq.topics import Topics, topics_of

HASH = "CONSISTENT_HASH"
VIRTUAL_NODES = (20, 50, 100, 200, 500, 1_000)
"""Numbers that are tried, fewest first."""

MOST_DRAWS = 40

WORTH_IT = 0.98
"""More nodes make every rebalance dearer: they must leave the busiest member at most so much of what fewer leave it."""


def evening_virtual_nodes(snapshot: GroupSnapshot, *, are_ids_known: bool = False) -> int | None:
    """Return the number that evens the group out most; ``None`` where none beats what runs, or else the default.

    Judged by the mean over drawn ids, as each rollout makes new ones; by the present ids where these are known to stay.
    """
    own = snapshot.strategy_options if snapshot.strategy == HASH else {}
    default = ConsistentHash().virtual_nodes
    count = len(snapshot.clients)
    draws = min(draws_of(ConsistentHash(max(VIRTUAL_NODES)), count), MOST_DRAWS)
    drawn = draw_clients(snapshot, count, draws)
    sets = [snapshot.clients] if are_ids_known else [[client.id for client in clients] for clients in drawn]
    topics = topics_of(snapshot)
    best, least = None, _busiest(topics, sets, own.get("virtual_nodes", default))
    for nodes in VIRTUAL_NODES:
        busiest = _busiest(topics, sets, nodes)
        if busiest < WORTH_IT * least:
            best, least = nodes, busiest
    return best


def _busiest(topics: Topics, sets: Sequence[Sequence[str]], nodes: int) -> float:
    """Return what the busiest member has on average, in messages per second, or in queues where no rate is known."""
    rates = np.array([state.upper_arrival_rate or 0.0 for states in topics.states for state in states])
    weights = rates if rates.any() else np.ones(len(rates))
    strategy = ConsistentHash(nodes)
    owners = (np.concatenate(topics.owners(strategy, java_sorted(clients))) for clients in sets)
    return float(np.mean([np.bincount(of_set, weights).max() for of_set in owners]))
