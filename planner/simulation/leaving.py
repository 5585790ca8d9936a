"""What moves when some members stop, for many choices of members at once: by the group's own strategy, exactly.

A queue moves when the one who owned it does not own it afterwards. Each class answers for one kind of strategy. A
choice is a row of ``stays``: one flag for each of ``members``, true for those who stay.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import NOBODY, Owners, Strategy
from planner.model.queues import MessageQueue
from planner.simulation.moves import MoveRange, common_queues, move_range

Stays = NDArray[np.bool_]
Counts = NDArray[np.intp]


class Leaving(ABC):
    """The leaves of one group: ``owned`` is how many queues each of its ``members`` owns now.

    ``most_choices`` is how many choices can be weighed in a fraction of a second.
    """

    members: tuple[str, ...]
    owned: Counts
    most_choices: ClassVar[int]

    @abstractmethod
    def moved(self, stays: Stays) -> Counts:
        """Return for each choice, a row of ``stays``, how many queues move."""

    @abstractmethod
    def cheapest(self, count: int) -> Stays | None:
        """Return one choice of ``count`` stayers; none moves fewer queues. ``None`` where only trying shows it."""

    def range_of(self, staying: Collection[str]) -> MoveRange:
        """Return what moves when exactly these stay, with their positions."""
        stays = np.array([[member in staying for member in self.members]])
        moved, positions = int(self.moved(stays)[0]), tuple(np.flatnonzero(stays[0]).tolist())
        return MoveRange(moved, moved, positions, positions)


@dataclass(frozen=True, slots=True, eq=False)
class ByPosition(Leaving):
    """Strategies that count by the position among members (AVG, AVG_BY_CIRCLE, MACHINE_ROOM, range, roundrobin).

    ``before`` and what ``after`` returns for so many members are each topic's owners, by position.
    """

    most_choices: ClassVar[int] = 20_000

    members: tuple[str, ...]
    owned: Counts
    before: Sequence[Owners]
    after: Callable[[int], Sequence[Owners]]

    def moved(self, stays: Stays) -> Counts:
        """Return for each choice how many queues move."""
        counts = stays.sum(axis=1)
        moved = np.full(len(stays), int(self.owned.sum()), dtype=np.intp)
        for count in np.unique(counts[counts > 0]).tolist():
            rows = stays[counts == count]
            positions = np.maximum(np.cumsum(rows, axis=1) - 1, 0)
            common = self._common(count)[np.arange(len(self.members)), positions]
            moved[counts == count] -= np.where(rows, common, 0).sum(axis=1)
        return moved

    def cheapest(self, count: int) -> Stays:
        """Return the choice that dynamic programming over all of them finds."""
        stays = np.zeros(len(self.members), dtype=np.bool_)
        if count:
            stays[list(move_range(self._common(count), int(self.owned.sum())).fewest_stay)] = True
        return stays

    def _common(self, count: int) -> Counts:
        return common_queues(list(self.before), list(self.after(count)), len(self.members), count)


@dataclass(frozen=True, slots=True, eq=False)
class ByShare(Leaving):
    """Strategies that leave alone what stayers own: CONSISTENT_HASH, sticky assignors, the server's ``uniform``.

    With ``has_quota`` nobody keeps more than an even share: of P partitions and m stayers each keeps P div m at most,
    and P mod m of them one more (``AbstractStickyAssignor#constrainedAssign``, Kafka 4.3).
    """

    most_choices: ClassVar[int] = 20_000

    members: tuple[str, ...]
    owned: Counts
    queues: int
    has_quota: bool

    def moved(self, stays: Stays) -> Counts:
        """Return for each choice how many queues move."""
        kept = np.where(stays, self.owned, 0)
        total = int(self.owned.sum())
        if not self.has_quota:
            return np.asarray(total - kept.sum(axis=1), dtype=np.intp)
        stayers = np.maximum(stays.sum(axis=1), 1)
        share, more = self.queues // stayers, self.queues % stayers
        within = np.minimum(kept, share[:, None]).sum(axis=1)
        return np.asarray(total - within - np.minimum((kept > share[:, None]).sum(axis=1), more), dtype=np.intp)

    def cheapest(self, count: int) -> Stays:
        """Return the choice where those who own most stay: nobody keeps more than they."""
        stays = np.zeros(len(self.members), dtype=np.bool_)
        stays[np.argsort(self.owned, kind="stable")[len(self.members) - count :]] = True
        return stays


@dataclass(frozen=True, slots=True, eq=False)
class ByName(Leaving):
    """Strategies that go by the members' names: each choice is allocated anew."""

    most_choices: ClassVar[int] = 500

    members: tuple[str, ...]
    owned: Counts
    strategy: Strategy
    topics: Sequence[Sequence[MessageQueue]]
    before: Sequence[Owners]

    def moved(self, stays: Stays) -> Counts:
        """Return for each choice how many queues move."""
        return np.array([self._moved(row) for row in stays], dtype=np.intp)

    def cheapest(self, count: int) -> None:  # noqa: ARG002 - there is no order among names to find it by
        """Return ``None``."""
        return

    def _moved(self, stays: Stays) -> int:
        staying = [member for member, stays_here in zip(self.members, stays.tolist(), strict=True) if stays_here]
        # One entry more: what nobody owned has the last index, -1.
        positions = np.append(np.where(stays, np.cumsum(stays) - 1, NOBODY), NOBODY)
        moved = 0
        for queues, before in zip(self.topics, self.before, strict=True):
            after = self.strategy.owners(queues, staying)
            moved += int(((before != NOBODY) & ((positions[before] == NOBODY) | (positions[before] != after))).sum())
        return moved


def count_owned(before: Sequence[Owners], members: int) -> Counts:
    """Return how many queues each member owns, topics added up."""
    owners = np.concatenate([*before, np.empty(0, dtype=np.intp)])
    return np.bincount(owners[owners != NOBODY], minlength=members)
