"""Strategies that go by client ids, with the ids of all members drawn: what holds after the next rollout, too.

What the present ids come to is luck: each rollout makes new ones. A strategy is therefore judged by many sets of ids in
the form of the present ones; a smaller group has the first clients of a larger one, so that counts meet the same luck.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.allocation.rocketmq import ConsistentHash, MachineRoomNearby
from planner.allocation.strategy import Strategy
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.draws import interval
from planner.simulation.outcome import DrawnAnew
from planner.simulation.rocketmq.client_ids import DRAWS, Draw, draw_clients
from planner.simulation.rocketmq.newcomer_draws import Draws, group_with, weigh
from planner.simulation.rocketmq.topics import topics_of

_MOST_POINTS = 400_000
"""Points on rings that one count may cost: of many virtual nodes fewer draws are taken."""

_FEWEST_DRAWS = 20

Future = tuple[GroupSnapshot, int]
"""A group as it may be, and how many members it has then."""


def draw_anew(snapshot: GroupSnapshot, strategy: Strategy, futures: Sequence[Future]) -> tuple[DrawnAnew, ...]:
    """Return what each of the futures means with ids that are all drawn; queues move from those of the first one."""
    most = max(members for _, members in futures)
    drawn = draw_clients(snapshot, most, draws_of(strategy, most))
    percentile = snapshot.new_pods.ids_percentile
    weighed = [_weigh(future, strategy, [clients[:members] for clients in drawn]) for future, members in futures]
    queues = [_queues(future) for future, _ in futures]
    before = _owner_names(weighed[0])
    return tuple(
        _summary(draws, percentile, _moved(queues[0], before, of_future, _owner_names(draws)))
        for of_future, draws in zip(queues, weighed, strict=True)
    )


def draws_of(strategy: Strategy, members: int) -> int:
    """Return how many sets of ids are drawn: fewer where one set alone costs a large ring."""
    inner = strategy.inner if isinstance(strategy, MachineRoomNearby) else strategy
    if not isinstance(inner, ConsistentHash):
        return DRAWS
    return int(np.clip(_MOST_POINTS // max(inner.virtual_nodes * members, 1), _FEWEST_DRAWS, DRAWS))


def _weigh(snapshot: GroupSnapshot, strategy: Strategy, drawn: Sequence[Draw]) -> Draws:
    topics = topics_of(snapshot)
    groups = [group_with(snapshot, strategy, clients) for clients in drawn]
    rates = [np.array([state.upper_arrival_rate or 0.0 for state in states]) for states in topics.states]
    return weigh(groups, topics.queues, rates, [""] * sum(topics.sizes))


def _queues(snapshot: GroupSnapshot) -> list[Queue]:
    return [state.queue for states in topics_of(snapshot).states for state in states]


def _owner_names(draws: Draws) -> list[NDArray[np.object_]]:
    """Return for each draw the owner of every queue: ``NOBODY``, the last index, has the empty name."""
    return [
        np.array([*group.clients, ""], dtype=object)[np.concatenate([*owners, np.empty(0, dtype=np.intp)])]
        for group, owners in zip(draws.groups, draws.owners, strict=True)
    ]


def _moved(
    queues_before: Sequence[Queue],
    before: Sequence[NDArray[np.object_]],
    queues_after: Sequence[Queue],
    after: Sequence[NDArray[np.object_]],
) -> NDArray[np.intp]:
    """Return for each draw how many of the queues that are in both groups have another owner."""
    index_of = {queue: index for index, queue in enumerate(queues_before)}
    positions = np.array([index_of[queue] for queue in queues_after], dtype=np.intp)
    return np.array(
        [int(((old[positions] != "") & (old[positions] != new)).sum()) for old, new in zip(before, after, strict=True)],
        dtype=np.intp,
    )


def _summary(draws: Draws, percentile: float, moved: NDArray[np.intp]) -> DrawnAnew:
    at = draws.at(percentile)
    return DrawnAnew(float(draws.loads[at]), int(draws.shares[at]), interval(moved), round(float(moved.mean()), 6))
