"""What moves when whole pods stop: a pod's members leave together, so that only some choices of members can come."""

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from planner.model.snapshot import GroupSnapshot
from planner.simulation.leaving import Leaving
from planner.simulation.moves import MoveRange

_ROWS = 4_096
"""Choices that are weighed at once, so that memory stays bounded."""


def pod_leave_range(snapshot: GroupSnapshot, leaving: Leaving, count: int) -> MoveRange | None:
    """Return what moves when all pods but ``count`` stop, exact over every choice of pods.

    ``None`` where some member's pod is not known, and where there are more choices than can be weighed.
    """
    pod_of = {link.client: link.pod for link in snapshot.pods}
    if any(member not in pod_of for member in leaving.members):
        return None
    names = sorted({pod_of[member] for member in leaving.members})
    if not 0 < count < len(names) or comb(len(names), count) > leaving.most_choices:
        return None
    index = np.array([names.index(pod_of[member]) for member in leaving.members], dtype=np.intp)
    best: tuple[int, tuple[int, ...]] | None = None
    worst: tuple[int, tuple[int, ...]] | None = None
    for stays in _choices(len(names), count):
        members = stays[:, index]
        moved = leaving.moved(members)
        least, most = int(moved.argmin()), int(moved.argmax())
        if best is None or moved[least] < best[0]:
            best = int(moved[least]), tuple(np.flatnonzero(members[least]).tolist())
        if worst is None or moved[most] > worst[0]:
            worst = int(moved[most]), tuple(np.flatnonzero(members[most]).tolist())
    assert best is not None
    assert worst is not None
    return MoveRange(best[0], worst[0], best[1], worst[1])


def _choices(pods: int, count: int) -> Iterator[NDArray[np.bool_]]:
    """Yield every choice of ``count`` pods that stay, a row each, some rows at a time."""
    every = combinations(range(pods), count)
    while block := list(islice(every, _ROWS)):
        stays = np.zeros((len(block), pods), dtype=np.bool_)
        stays[np.arange(len(block))[:, None], np.array(block)] = True
        yield stays
