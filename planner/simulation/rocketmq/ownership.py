"""Owners of queues when the members of one group do not have the same view: split brain, as pure computation.

Every RocketMQ client allocates alone, from its own strategy, route, member list and subscription. Where those differ,
a queue can have several owners (every message is consumed several times) or none (nobody reads it).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.allocation.group import allocate_group
from planner.allocation.ordering import sorted_queues
from planner.allocation.strategy import Strategy
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class MemberView:
    """What one process of the group computes its queues from.

    ``queues`` are the queues that it sees of the topics that **it** subscribes; ``members`` is the member list that the
    broker gave it, which is the whole group's whatever the others subscribe. A process that does not find its own id
    in that list owns nothing. Two processes with one id are two views with that ``client``.
    """

    client: str
    strategy: Strategy
    queues: tuple[MessageQueue, ...]
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owners of every queue that anybody sees, queues sorted.

    ``owners`` names one client for each process that consumes the queue, so an id that runs twice stands there twice.
    """

    owners: dict[MessageQueue, tuple[str, ...]]

    @property
    def orphans(self) -> tuple[MessageQueue, ...]:
        """The queues that nobody consumes."""
        return tuple(queue for queue, clients in self.owners.items() if not clients)

    @property
    def doubled(self) -> tuple[MessageQueue, ...]:
        """The queues that more than one process consumes."""
        return tuple(queue for queue, clients in self.owners.items() if len(clients) > 1)

    @property
    def is_whole(self) -> bool:
        """True when every queue has exactly one owner."""
        return all(len(clients) == 1 for clients in self.owners.values())


def ownership(views: Iterable[MemberView]) -> Ownership:
    """Return each queue's owners when every process follows its own view.

    8 queues, c0 with AVG and c1 with AVG_BY_CIRCLE: c0 owns 0 1 2 3, c1 owns 1 3 5 7; 1 and 3 are doubled, 4 and 6
    orphans.
    """
    views = list(views)
    known_queues = sorted_queues({queue for view in views for queue in view.queues})
    owners: dict[MessageQueue, tuple[str, ...]] = dict.fromkeys(known_queues, ())
    answers: dict[tuple[int, tuple[MessageQueue, ...], tuple[str, ...]], dict[str, list[MessageQueue]]] = {}
    for view in views:
        key = (id(view.strategy), view.queues, view.members)
        if key not in answers:
            answers[key] = allocate_group(view.strategy, view.queues, view.members).answer()
        for queue in dict.fromkeys(answers[key].get(view.client, ())):
            if queue in owners:
                owners[queue] = (*owners[queue], view.client)
    return Ownership(owners)


def views_with(strategies: Sequence[tuple[str, Strategy]], queues: Sequence[MessageQueue]) -> list[MemberView]:
    """Return the views of a group whose members differ in strategy only: (client, strategy) pairs."""
    members = tuple(client for client, _ in strategies)
    return [MemberView(client, strategy, tuple(queues), members) for client, strategy in strategies]
