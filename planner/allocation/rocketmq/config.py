"""``AllocateMessageQueueByConfig``: each client takes its configured list (the same in 4.7.1 to 5.5.0)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.allocation.ordering import java_sorted
from planner.allocation.strategy import Holdings, Owners, first_slots, owners_from_holdings
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class Config:
    """``AllocateMessageQueueByConfig``: a client's list verbatim, whatever the route and the membership.

    ``lists`` maps a client id to its queues; a client without a list owns nothing. Nothing is checked: two
    clients with the same list both consume it, queues that no client lists are unowned, new brokers change nothing,
    and a group's ``%RETRY%`` queues are consumed only when they are listed.
    """

    lists: Mapping[str, Sequence[MessageQueue]] = field(default_factory=dict)
    name: str = "CONFIG"
    is_positional: bool = False

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the first client that lists each queue."""
        return owners_from_holdings(self.holdings(queues, clients), len(queues))

    def holdings(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        """Return every pair of a client and a listed queue of this topic, each pair once.

        Listed queues that the topic does not have are left out: the client drops them again at once
        (``RebalanceImpl#truncateMessageQueueNotMyTopic``) or pulls in vain.
        """
        index_of = {queue: index for index, queue in enumerate(queues)}
        first = first_slots(clients)
        pairs = [
            (slot, index_of[queue])
            for slot, client in enumerate(clients)
            if first is None or first[slot] == slot
            for queue in dict.fromkeys(self.lists.get(client, ()))
            if queue in index_of
        ]
        table = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return Holdings(table[:, 0], table[:, 1])

    def answer(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> dict[str, list[MessageQueue]]:
        """Return each client's list as the class returns it: once, unfiltered, in its own order."""
        known = self.lists if queues else {}
        return {client: list(known.get(client, ())) for client in java_sorted(clients)}
