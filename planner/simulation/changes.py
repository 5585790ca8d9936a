"""What changes between two allocations, by name: queues that move, come and go."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Q = TypeVar("Q", bound=Any)
Assignments = Mapping[str, Iterable[Q]]
"""Client to its queues, as the clients' classes answer; a queue may stand under several clients."""


@dataclass(frozen=True, slots=True)
class Move(Generic[Q]):
    """One queue with its owners before and after; nobody, one, or several that share it."""

    queue: Q
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes(Generic[Q]):
    """What two allocations of one group differ in.

    ``moved`` are queues that are there before and after with other owners; ``appeared`` and ``vanished`` those
    that only one side owns at all. ``kept`` counts the queues whose owners stay.
    """

    moved: tuple[Move[Q], ...]
    appeared: tuple[Move[Q], ...]
    vanished: tuple[Move[Q], ...]
    kept: int

    @property
    def all(self) -> tuple[Move[Q], ...]:
        """Every queue whose owners change."""
        return (*self.moved, *self.appeared, *self.vanished)


def changes(before: Assignments[Q], after: Assignments[Q]) -> Changes[Q]:
    """Return what changes, queues in order (they must compare with each other)."""
    old, new = owners_by_queue(before), owners_by_queue(after)
    moves = [Move(queue, old.get(queue, ()), new.get(queue, ())) for queue in sorted({**old, **new})]
    differing = [move for move in moves if set(move.before) != set(move.after)]
    return Changes(
        moved=tuple(move for move in differing if move.before and move.after),
        appeared=tuple(move for move in differing if not move.before),
        vanished=tuple(move for move in differing if not move.after),
        kept=len(moves) - len(differing),
    )


def owners_by_queue(assignments: Assignments[Q]) -> dict[Q, tuple[str, ...]]:
    """Return the clients that hold each queue."""
    owners: dict[Q, tuple[str, ...]] = {}
    for client, queues in assignments.items():
        for queue in dict.fromkeys(queues):
            owners[queue] = (*owners.get(queue, ()), client)
    return owners


def net_counts(moves: Sequence[Move[Q]]) -> dict[str, tuple[int, int]]:
    """Return for each client how many of these queues it loses and gains."""
    lost: dict[str, int] = {}
    gained: dict[str, int] = {}
    for move in moves:
        for client in set(move.before) - set(move.after):
            lost[client] = lost.get(client, 0) + 1
        for client in set(move.after) - set(move.before):
            gained[client] = gained.get(client, 0) + 1
    return {client: (lost.get(client, 0), gained.get(client, 0)) for client in sorted({*lost, *gained})}
