"""What a strategy is: a name, and the owner of every queue of one topic."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from planner.model.queues import MessageQueue

Owners = NDArray[np.intp]
"""One entry a queue: the index of its owner in the client list, -1 for nobody."""

NOBODY = -1


class Strategy(Protocol):
    """An allocation strategy of RocketMQ clients, for one topic at a time.

    Both lists come sorted, as the clients sort them before they allocate (``RebalanceImpl#rebalanceByTopic``).
    ``is_positional`` says that the clients count by their index in the list only, not by their names; what a
    change moves can then be computed before a new client's name is known.
    """

    @property
    def name(self) -> str:
        """The name as the client's ``getName()`` spells it."""
        ...

    @property
    def is_positional(self) -> bool: ...

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue; with no clients every queue is owned by ``NOBODY``.

        An id that occurs twice in ``clients`` is answered at its first index, because the classes find their
        own index with ``indexOf``: both processes take the first slot's queues, none the second slot's.
        A strategy that lets several clients own one queue names the first of them here and all of them in
        ``holdings`` (``SharingStrategy``).
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """Ownership as pairs: client ``holders[k]`` holds queue ``picks[k]`` (indexes into the two lists).

    The pairs of one client stand in the order in which its class returns the queues. A queue may appear
    several times (shared), or never (no client consumes it).
    """

    holders: NDArray[np.intp]
    picks: NDArray[np.intp]


@runtime_checkable
class SharingStrategy(Protocol):
    """A strategy whose answer needs more than one owner a queue, or an order of its own."""

    def holdings(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
        """Return every (client, queue) pair of one topic."""
        ...


@runtime_checkable
class NamingStrategy(Protocol):
    """A strategy that answers in names, because it returns queues that the route does not hold."""

    def answer(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> dict[str, list[MessageQueue]]:
        """Return what each client's class answers for the whole group, all topics."""
        ...


def nobody(queue_count: int) -> Owners:
    """Return owners that leave every queue unowned."""
    return np.full(queue_count, NOBODY, dtype=np.intp)


def holdings_of(strategy: Strategy, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Holdings:
    """Return the holdings of one topic under any strategy."""
    if _shares(type(strategy)):
        return cast("SharingStrategy", strategy).holdings(queues, clients)
    return holdings_from_owners(strategy.owners(queues, clients))


@cache
def _shares(kind: type) -> bool:
    """True for classes of ``SharingStrategy``; looking a protocol up takes longer than allocating some queues."""
    return issubclass(kind, SharingStrategy)


def holdings_from_owners(owners: Owners) -> Holdings:
    """Return single ownership as pairs, in queue order."""
    picks = np.flatnonzero(owners != NOBODY)
    return Holdings(owners[picks], picks)


def owners_from_holdings(holdings: Holdings, queue_count: int) -> Owners:
    """Return the first holder of each queue, the lowest client index where several hold it."""
    owners = nobody(queue_count)
    order = np.argsort(holdings.holders, kind="stable")[::-1]
    owners[holdings.picks[order]] = holdings.holders[order]
    return owners


def first_slots(clients: Sequence[str]) -> NDArray[np.intp] | None:
    """Return for each slot the first index of its client id; ``None`` when no id occurs twice."""
    if len(set(clients)) == len(clients):
        return None
    first: dict[str, int] = {}
    return np.array([first.setdefault(client, index) for index, client in enumerate(clients)], dtype=np.intp)


def without_later_slots(owners: Owners, clients: Sequence[str]) -> Owners:
    """Return the owners with the queues of an id's second slot unowned.

    Clients [a, a, b] and 6 queues under AVG: slot owners 0 0 1 1 2 2 become 0 0 - - 2 2.
    """
    first = first_slots(clients)
    if first is None:
        return owners
    is_first = np.append(first == np.arange(len(clients)), False)
    return np.where(is_first[owners], owners, NOBODY)
