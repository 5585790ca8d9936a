"""What was observed of one RocketMQ group at one time: its members, its queues, and which queues each member says it
owns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from planner.allocation.ordering import java_sorted, sorted_queues, topic_slices
from planner.allocation.rocketmq.pop import WHOLE_BROKER
from planner.allocation.strategy import first_slots
from planner.model.membership import Member, rocketmq_members
from planner.model.queues import MessageQueue, message_queues
from planner.model.samples import GroupSample

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

SETTLED_AFTER = timedelta(seconds=25)
"""An ownership that has not changed for so long is no rebalance under way: clients rebalance every 20 s."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation of one group: the queues of all its topics' routes, and its members in any order.

    Of a member count its ``client_id``, what it says it owns (``owned``, ``None`` when it did not report it), the class
    of its strategy (``tuning``) and its topics (``subscriptions``; ``None`` stands for all).
    """

    queues: tuple[MessageQueue, ...]
    members: tuple[Member, ...]


def observation_of(sample: GroupSample) -> Observation:
    """Return what the sample of a RocketMQ group says of routes and ownership."""
    queues = message_queues(sample.routes.read_queues)
    return Observation(queues, rocketmq_members(sample.members))


def settled_observations(samples: Iterable[GroupSample], most: int) -> tuple[Observation, ...]:
    """Return up to ``most`` different situations that the samples show at rest, the newest first.

    A situation is a membership with its routes and ownership; it is at rest when samples over ``SETTLED_AFTER`` or
    longer say the same. What lies between two situations is a rebalance and speaks for no strategy.
    """
    situations: dict[object, Observation] = {}
    run: list[GroupSample] = []
    for sample in sorted(samples, key=lambda each: each.at, reverse=True):
        if len(situations) == most:
            break
        if run and _situation(run[0]) != _situation(sample):
            run = []
        run.append(sample)
        if run[0].at - sample.at >= SETTLED_AFTER:
            situations.setdefault(_situation(run[0]), observation_of(run[0]))
    return tuple(situations.values())


def _situation(sample: GroupSample) -> object:
    owned = tuple(
        (member.identity, None if member.owned is None else frozenset(member.owned)) for member in sample.members
    )
    return sample.routes, owned


@dataclass(frozen=True, slots=True, eq=False)
class OwnershipView:
    """One topic at one time, or a subview of it, as the clients allocate it: both lists sorted.

    ``owned`` says for each client (row) and queue (column) whether the client says it owns the queue; ``known`` which
    rows say anything (the others are empty: silent clients, and those that do not subscribe to the topic). An id that
    occurs twice has both processes' queues in its first row, and an unknown second one, as the classes find
    themselves in their first row. ``is_complete`` says that every member has reported.
    """

    snapshot: int
    queues: Sequence[MessageQueue]
    clients: Sequence[str]
    owned: BoolArray
    known: BoolArray
    is_complete: bool

    @property
    def all_known(self) -> bool:
        """True when there are clients and every row is known: a queue that nobody owns is then left to nobody."""
        return bool(len(self.clients)) and bool(self.known.all())

    @property
    def observed(self) -> BoolArray:
        """For each queue whether it is known which client owns it, or that nobody does."""
        is_known = self.is_complete and bool(self.known.any())
        is_owned = np.asarray(self.owned.any(axis=0), dtype=np.bool_)
        return np.ones_like(is_owned) if is_known else is_owned

    def subview(self, picks: IntArray, slots: IntArray) -> "OwnershipView | None":
        """Return the view of these queues and clients alone; ``None`` when another client owns one of the queues."""
        outside = np.ones(len(self.clients), dtype=np.bool_)
        outside[slots] = False
        if self.owned[np.ix_(outside, picks)].any():
            return None
        queues = [self.queues[pick] for pick in picks.tolist()]
        clients = [self.clients[slot] for slot in slots.tolist()]
        return replace(
            self, queues=queues, clients=clients, owned=self.owned[np.ix_(slots, picks)], known=self.known[slots]
        )


def views_of(observations: Sequence[Observation]) -> tuple[OwnershipView, ...]:
    """Return the views of all topics of all observations, in order."""
    return tuple(view for number, observation in enumerate(observations) for view in _views(number, observation))


def _views(number: int, observation: Observation) -> Iterable[OwnershipView]:
    clients = java_sorted(member.client_id for member in observation.members)
    queues = sorted_queues(observation.queues)
    for topic, slots in topic_slices(queues):
        yield _view(number, observation.members, clients, queues[slots], topic)


def _view(
    number: int, members: Sequence[Member], clients: Sequence[str], queues: Sequence[MessageQueue], topic: str
) -> OwnershipView:
    owned = np.zeros((len(clients), len(queues)), dtype=np.bool_)
    known = np.zeros(len(clients), dtype=np.bool_)
    column = {queue: index for index, queue in enumerate(queues)}
    row = {client: index for index, client in reversed(list(enumerate(clients)))}
    is_complete = True
    for member in members:
        index = row[member.client_id]
        if member.owned is None:
            is_complete = False
            continue
        known[index] = _subscribes(member, topic)
        owned[index, [column[q] for q in _spelled_out(member.owned, queues) if q in column]] = True
    silent = {member.client_id for member in members if member.owned is None}
    known[[row[client] for client in silent]] = False
    owned[~known] = False
    return OwnershipView(number, queues, clients, owned, known & _first_rows(clients), is_complete)


def _subscribes(member: Member, topic: str) -> bool:
    return member.subscriptions is None or any(subscription.topic == topic for subscription in member.subscriptions)


def _spelled_out(owned: Sequence[MessageQueue], queues: Sequence[MessageQueue]) -> Iterable[MessageQueue]:
    """Return the queues with POP's id -1 replaced by all queues of that broker."""
    whole = {(queue.topic, queue.broker) for queue in owned if queue.queue_id == WHOLE_BROKER}
    return (*owned, *(queue for queue in queues if (queue.topic, queue.broker) in whole)) if whole else owned


def _first_rows(clients: Sequence[str]) -> BoolArray:
    first = first_slots(clients)
    return np.ones(len(clients), dtype=np.bool_) if first is None else first == np.arange(len(clients))
