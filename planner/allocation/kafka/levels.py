"""Filling members level by level: each next partition goes to the least loaded, ties to the first."""

import numpy as np

from planner.allocation.kafka.group import IntArray


def fill(loads: IntArray, count: int) -> IntArray:
    """Return the indexes that the next ``count`` partitions go to, in order, each to the lowest (load, index).

    Loads 2 0 1 and 4 partitions: 1, then 1 and 2 (both at 1), then 0 (all at 2).
    """
    if count == 0 or len(loads) == 0:
        return np.empty(0, dtype=np.intp)
    level, rest = _water_level(loads, count)
    gaps = np.maximum(level - loads, 0)
    indexes = np.repeat(np.arange(len(loads), dtype=np.intp), gaps)
    firsts = np.repeat(np.cumsum(gaps) - gaps, gaps)
    reached = loads[indexes] + np.arange(len(indexes)) - firsts
    order = np.argsort(reached, kind="stable")
    extras = np.flatnonzero(loads <= level)[:rest]
    return np.concatenate((indexes[order], extras)).astype(np.intp)


def _water_level(loads: IntArray, count: int) -> tuple[int, int]:
    """Return the level that ``count`` units lift the lowest to, and how many units are left over above it."""
    rising = np.sort(loads)
    below = np.cumsum(rising) - rising
    reach = rising * np.arange(len(rising)) - below
    lifted = int(np.searchsorted(reach, count, side="right"))
    filled = int(below[lifted - 1] + rising[lifted - 1])
    level, rest = divmod(count + filled, lifted)
    return level, rest


def deal_out(members: IntArray, gaps: IntArray) -> IntArray:
    """Return the member that gets each partition when members take one each, round by round, until each gap is filled.

    Members a b c with gaps 1 3 2: a b c, b c, b.
    """
    if len(members) == 0:
        return members
    least = int(gaps.min())
    rounds = np.tile(members, least)
    left = gaps - least
    if not left.any():
        return rounds
    indexes = np.repeat(np.arange(len(members), dtype=np.intp), left)
    round_of_each = np.arange(len(indexes)) - np.repeat(np.cumsum(left) - left, left)
    return np.concatenate((rounds, members[indexes[np.argsort(round_of_each, kind="stable")]]))
