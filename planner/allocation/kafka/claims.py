"""The ownership before the sticky assignors run: the members' claims, conflicts settled by generation.

``AbstractStickyAssignor#allSubscriptionsEqual`` and ``#prepopulateCurrentAssignments``, clients 3.7.2 and later.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.allocation.kafka.group import NOBODY, BoolArray, Group, IntArray, nobody


@dataclass(frozen=True)
class Resolved:
    """The member that keeps each claimed partition.

    ``owners`` has ``NOBODY`` for unclaimed partitions and for those that two members claim in one generation.
    ``contested`` marks partitions that were claimed twice in one generation on the walk, whichever member won later.
    ``contested_is_determined`` is False where the walk through the members decides that mark.
    """

    owners: IntArray
    contested: BoolArray
    contested_is_determined: bool


def resolve(group: Group) -> Resolved:
    """Return the kept claims: the highest generation wins, two members of one generation both lose."""
    owners = group.claimed_owners()
    contested = np.zeros(len(owners), dtype=np.bool_)
    is_determined = True
    for partition, claimants in _conflicts(group):
        generations = [int(group.claims.generations[member]) for member in claimants]
        owner, is_contested = _settle(claimants, generations)
        owners[partition] = owner
        contested[partition] = is_contested
        is_determined = is_determined and not _order_matters(generations)
    return Resolved(owners, contested, is_determined)


def _conflicts(group: Group) -> Iterator[tuple[int, list[int]]]:
    """Yield each partition claimed more than once, with its claimants in the order in which they are walked."""
    claims = group.claims
    if claims.owners is not None:
        return
    counts = np.bincount(claims.partitions, minlength=1)
    if counts.max(initial=0) < 2:
        return
    steps = np.empty(group.member_count, dtype=np.intp)
    steps[group.walk] = np.arange(group.member_count)
    order = np.lexsort((steps[claims.members], claims.partitions))
    partitions, members = claims.partitions[order], claims.members[order]
    for partition in np.flatnonzero(counts > 1).tolist():
        start, end = np.searchsorted(partitions, (partition, partition + 1))
        yield partition, members[start:end].tolist()


def _settle(claimants: list[int], generations: list[int]) -> tuple[int, bool]:
    """Return the member that keeps the partition, and whether two met in one generation; both in walk order."""
    owner, recorded = claimants[0], generations[0]
    is_contested = False
    for member, generation in zip(claimants[1:], generations[1:], strict=True):
        if generation == recorded:
            is_contested, owner = True, NOBODY
        elif generation > recorded:
            owner, recorded = member, generation
    return owner, is_contested


def _order_matters(generations: list[int]) -> bool:
    """Return whether the walk decides: a clear winner that may or may not be preceded by two equal losers."""
    counts = Counter(generations)
    newest = max(counts)
    return counts[newest] == 1 and any(count > 1 for generation, count in counts.items() if generation != newest)


@dataclass(frozen=True)
class Previous:
    """The owner of each partition by an older generation's claim, ``NOBODY`` where there is none."""

    owners: IntArray
    is_determined: bool


def previous_owners(group: Group) -> Previous:
    """Return the newest of the old claims to each partition; of two in one generation the first on the walk.

    Old is what is below the newest generation in the group; a claim without generation is the oldest.
    """
    claims = group.claims
    owners = nobody(group.topics.partition_count)
    old = claims.generations[claims.members] < int(claims.generations.max(initial=NOBODY))
    if not old.any():
        return Previous(owners, True)
    steps = np.empty(group.member_count, dtype=np.intp)
    steps[group.walk] = np.arange(group.member_count)
    members, partitions = claims.members[old], claims.partitions[old]
    generations = claims.generations[members]
    order = np.lexsort((-steps[members], generations, partitions))
    members, partitions, generations = members[order], partitions[order], generations[order]
    owners[partitions] = members
    same = (np.diff(partitions) == 0) & (np.diff(generations) == 0)
    newest = np.append(np.diff(partitions) != 0, True)[1:]
    return Previous(owners, not bool((same & newest).any()))
