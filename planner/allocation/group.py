"""Ownership in a whole group: all topics, every client's answer, as index arrays until names are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.allocation.custom import CheckedStrategy
from planner.allocation.ordering import java_sorted, sorted_queues, topic_slices
from planner.allocation.strategy import (
    Holdings,
    NamingStrategy,
    Owners,
    Strategy,
    holdings_of,
    owners_from_holdings,
)
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True, eq=False)
class GroupAllocation:
    """What every client of one group computes for itself.

    ``queues`` and ``clients`` are sorted as the clients sort them; an id that occurs twice stands twice in
    ``clients`` and holds its queues at the first index. ``holdings`` lists every (client, queue) pair, ordered by
    client and, within one, as its class returns the queues. ``problems`` are sentences about a user's own strategy.
    """

    strategy: Strategy
    queues: Sequence[MessageQueue]
    clients: Sequence[str]
    holdings: Holdings
    problems: tuple[str, ...] = ()

    @property
    def owners(self) -> Owners:
        """Return the first owner of each queue as an index into ``clients``, -1 for nobody."""
        return owners_from_holdings(self.holdings, len(self.queues))

    @property
    def owner_counts(self) -> NDArray[np.intp]:
        """Return by how many client ids each queue is owned; 0 is an orphan."""
        return np.bincount(self.holdings.picks, minlength=len(self.queues))

    @property
    def unowned(self) -> list[MessageQueue]:
        """Return the queues that no client consumes."""
        return [self.queues[pick] for pick in np.flatnonzero(self.owner_counts == 0).tolist()]

    def answer(self) -> dict[str, list[MessageQueue]]:
        """Return what each client's class answers, by client in sorted order, topic after topic."""
        if isinstance(self.strategy, NamingStrategy):
            return self.strategy.answer(self.queues, self.clients)
        answers: dict[str, list[MessageQueue]] = {client: [] for client in self.clients}
        bounds = np.searchsorted(self.holdings.holders, np.arange(len(self.clients) + 1)).tolist()
        picks = self.holdings.picks.tolist()
        for slot, client in enumerate(self.clients):
            answers[client] += [self.queues[pick] for pick in picks[bounds[slot] : bounds[slot + 1]]]
        return answers


def allocate_group(
    strategy: Strategy,
    queues: Sequence[MessageQueue],
    clients: Sequence[str],
    group: str = "",
    *,
    is_sorted: bool = False,
) -> GroupAllocation:
    """Return the ownership, topic by topic as the clients compute it; ``is_sorted`` skips sorting both lists again.

    A user's own strategy may fail for one client; that stands in ``problems`` with group and client, and the others
    are answered.
    """
    if not is_sorted:
        queues, clients = sorted_queues(queues), java_sorted(clients)
    by_topic: list[Holdings] = []
    problems: list[str] = []
    for topic, topic_slice in topic_slices(queues):
        if isinstance(strategy, CheckedStrategy):
            holdings, complaints = strategy.examine(queues[topic_slice], clients)
            problems += [f"group {group}, topic {topic}: {complaint}" for complaint in complaints]
        else:
            holdings = holdings_of(strategy, queues[topic_slice], clients)
        by_topic.append(Holdings(holdings.holders, holdings.picks + topic_slice.start))
    return GroupAllocation(strategy, queues, clients, _join_topics(by_topic), tuple(problems))


def _join_topics(by_topic: Sequence[Holdings]) -> Holdings:
    """Return all topics' pairs, ordered by client, topics in order within one."""
    if not by_topic:
        nothing = np.empty(0, dtype=np.intp)
        return Holdings(nothing, nothing)
    holders = np.concatenate([holdings.holders for holdings in by_topic])
    picks = np.concatenate([holdings.picks for holdings in by_topic])
    order = np.argsort(holders, kind="stable")
    return Holdings(holders[order], picks[order])
