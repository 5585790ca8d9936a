"""How many queues change their owner, exactly, while the newcomers' position in the order is not known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import NOBODY, Owners


@dataclass(frozen=True, slots=True)
class MoveRange:
    """Fewest and most queues that change owner, over every order that can come about.

    ``fewest_stay`` and ``most_stay`` are positions in the larger of the two client lists that the members of
    the smaller one hold in those cases: for a leave, the positions of the survivors.
    """

    fewest: int
    most: int
    fewest_stay: tuple[int, ...]
    most_stay: tuple[int, ...]


def common_queues(
    before: list[Owners], after: list[Owners], clients_before: int, clients_after: int
) -> NDArray[np.intp]:
    """Return, for each pair of positions (before, after), how many queues both own; topics are added up."""
    table = np.zeros((clients_before, clients_after), dtype=np.intp)
    for old, new in zip(before, after, strict=True):
        owned = (old != NOBODY) & (new != NOBODY)
        np.add.at(table, (old[owned], new[owned]), 1)
    return table


def move_range(common: NDArray[np.intp], queues: int) -> MoveRange:
    """Return the range of moved queues for a positional strategy, exact over all positions.

    Clients keep their order among themselves (they are sorted by id), so a change of membership is an
    increasing choice of positions in the larger list. ``common`` is what ``common_queues`` returns, ``queues``
    the number of queues owned before. The best and the worst choice come from dynamic programming over
    (members placed, positions used), so no position is guessed and none is left out.
    """
    gains = common if common.shape[0] <= common.shape[1] else common.T
    most_kept, fewest_stay = _extreme(gains)
    least_kept, most_stay = _extreme(-gains)
    return MoveRange(queues - most_kept, queues + least_kept, fewest_stay, most_stay)


def moves_at(common: NDArray[np.intp], queues: int, positions: tuple[int, ...]) -> MoveRange:
    """Return what moves where the present clients' ``positions`` in the larger list are known, else as ``move_range``.

    Worked out for newcomers of known id: the range is one number.
    """
    kept = int(sum(common[present, position] for present, position in enumerate(positions)))
    return MoveRange(queues - kept, queues - kept, positions, positions)


def _extreme(gains: NDArray[np.intp]) -> tuple[int, tuple[int, ...]]:
    """Return the largest sum over increasing choices of one column for each row, and the columns chosen."""
    rows, columns = gains.shape
    unreachable = np.iinfo(np.intp).min // 2
    best = np.full((rows + 1, columns + 1), unreachable, dtype=np.intp)
    best[0] = 0
    for row in range(1, rows + 1):
        taken = best[row - 1, :-1] + gains[row - 1]
        best[row, 1:] = np.maximum.accumulate(taken)
    return int(best[rows, columns]), _trace(best, gains)


def _trace(best: NDArray[np.intp], gains: NDArray[np.intp]) -> tuple[int, ...]:
    chosen = []
    column = gains.shape[1]
    for row in range(gains.shape[0], 0, -1):
        while best[row, column] == best[row, column - 1]:
            column -= 1
        column -= 1
        chosen.append(column)
    return tuple(reversed(chosen))
