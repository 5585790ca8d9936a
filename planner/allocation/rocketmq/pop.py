"""Server-side allocation of 5.x (``QueryAssignmentProcessor``), and POP, where clients share queues.

With ``setClientRebalance(false)`` a concurrent push consumer asks the broker for its queues. In PULL mode the broker
runs the plain strategy: the answer is that of ``AVG`` or ``AVG_BY_CIRCLE``, the only two that it knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.ordering import java_sorted, sorted_queues, topic_slices
from planner.allocation.strategy import (
    Holdings,
    Owners,
    Strategy,
    first_slots,
    holdings_from_owners,
    holdings_of,
    owners_from_holdings,
)
from planner.model.queues import MessageQueue

SERVER_SIDE_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")
WHOLE_BROKER = -1
"""The queue id with which the broker says: all queues of that broker."""


@dataclass(frozen=True, slots=True)
class PopSharing:
    """``QueryAssignmentProcessor#allocate4Pop`` (5.0.0 to 5.5.0): a client also takes the next clients' shares.

    With S = ``share_queues`` (``popShareQueueNum``), m clients and n queues of a topic: S <= 0 or S >= m - 1 lets
    all clients take everything; otherwise, up to n clients, each takes its own share and those of the next S clients
    in cyclic order; with more clients than queues each takes the one queue ``index mod n``.
    ``%RETRY%`` topics are never in POP mode: they are allocated by ``inner`` alone.
    """

    inner: Strategy
    share_queues: int
    is_positional: bool = True

    @property
    def name(self) -> str:
        """The inner name: the client sends it, the mode is the broker's."""
        return self.inner.name

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the first of the clients that share each queue."""
        return owners_from_holdings(self.holdings(queues, clients), len(queues))

    def shares_all(self, client_count: int) -> bool:
        """True when every client takes every queue."""
        return self.share_queues <= 0 or self.share_queues >= client_count - 1

    def holdings(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        """Return every (client, queue) pair of one topic, each pair once."""
        if not queues or not clients or queues[0].is_retry:
            return holdings_of(self.inner, queues, clients)
        slots = _asking_slots(clients)
        if self.shares_all(len(clients)):
            return Holdings(np.repeat(slots, len(queues)), np.tile(np.arange(len(queues)), len(slots)))
        if len(clients) > len(queues):
            return Holdings(slots, slots % len(queues))
        return self._next_shares(queues, clients)

    def _next_shares(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        plain = holdings_from_owners(self.inner.owners(queues, clients))
        first = first_slots(clients)
        asked = np.arange(len(clients)) if first is None else first
        shares = [plain.picks[plain.holders == slot] for slot in range(len(clients))]
        pairs = [
            (slot, pick)
            for slot in _asking_slots(clients).tolist()
            for pick in dict.fromkeys(
                pick
                for step in range(self.share_queues + 1)
                for pick in shares[asked[(slot + step) % len(clients)]].tolist()
            )
        ]
        table = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return Holdings(table[:, 0], table[:, 1])

    def answer(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> dict[str, list[MessageQueue]]:
        """Return what the broker answers: whole brokers as queue id -1 where all clients take everything."""
        clients, queues = java_sorted(clients), sorted_queues(queues)
        answers: dict[str, list[MessageQueue]] = {client: [] for client in clients}
        for _, topic_slice in topic_slices(queues):
            topic_queues = queues[topic_slice]
            if self.shares_all(len(clients)) and not topic_queues[0].is_retry:
                whole = list(dict.fromkeys(MessageQueue(q.topic, q.broker, WHOLE_BROKER) for q in topic_queues))
                for client in answers:
                    answers[client] += whole
                continue
            holdings = self.holdings(topic_queues, clients)
            for holder, pick in zip(holdings.holders.tolist(), holdings.picks.tolist(), strict=True):
                answers[clients[holder]].append(topic_queues[pick])
        return answers


def _asking_slots(clients: Sequence[str]) -> Owners:
    """Return the first slot of each distinct id."""
    first = first_slots(clients)
    return np.arange(len(clients), dtype=np.intp) if first is None else np.unique(first)
