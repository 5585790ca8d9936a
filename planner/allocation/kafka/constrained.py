"""The sticky algorithm for equal subscriptions, clients 3.7.2 and later.

``AbstractStickyAssignor.ConstrainedAssignmentBuilder``.

Every member gets ``lo`` = partitions div members, and as many as there are left over get one more (``hi``).
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.kafka.claims import Resolved
from planner.allocation.kafka.group import NO_RACK, NOBODY, BoolArray, Group, IntArray, Outcome, grouped, ranks_within
from planner.allocation.kafka.levels import deal_out
from planner.allocation.kafka.racks import RackTable


@dataclass(frozen=True)
class _Kept:
    """What stays with its owner: owners after keeping, the members that lose the rest, and those that may still take.

    ``under`` are members below ``lo``, ``exact`` those at ``lo`` that may get one more, both in id order;
    ``larger`` is how many members may still become larger than ``lo``.
    """

    owners: IntArray
    taken_from: IntArray
    under: IntArray
    exact: IntArray
    larger: int
    is_determined: bool


def constrained(group: Group, resolved: Resolved, racks: RackTable | None) -> Outcome:
    """Return the balanced answer that keeps the most; ``withheld`` marks what one member hands to another."""
    low, extras = divmod(group.topics.partition_count, group.member_count)
    kept = _keep(group, resolved, racks, low, extras)
    owners = kept.owners.copy()
    free = np.flatnonzero(owners == NOBODY)
    if racks is None:
        gaps = low - np.bincount(_owned(owners), minlength=group.member_count)
        owners[free] = _takers(kept.under, gaps, kept.exact, len(free))
    else:
        _fill_with_racks(owners, racks.by_neighbours(free.tolist()), _Filling(kept, racks, low, group.member_count))
    return Outcome(
        owners,
        kept.is_determined and resolved.contested_is_determined,
        _withheld(owners, kept, resolved.contested),
    )


def _owned(owners: IntArray) -> IntArray:
    owned: IntArray = owners[owners != NOBODY]
    return owned


def _keep(group: Group, resolved: Resolved, racks: RackTable | None, low: int, extras: int) -> _Kept:
    own = np.where(resolved.contested, NOBODY, resolved.owners)
    taken_from = np.full(len(own), NOBODY, dtype=np.intp)
    if racks is not None:
        for partition in np.flatnonzero(own != NOBODY).tolist():
            if racks.mismatch(int(own[partition]), partition):
                taken_from[partition] = own[partition]
                own[partition] = NOBODY
    counts = np.bincount(_owned(own), minlength=group.member_count)
    large = group.walk[counts[group.walk] > low] if extras else group.walk[:0]
    quotas = np.full(group.member_count, low, dtype=np.intp)
    quotas[large[:extras]] += 1
    owners = _first_of_each(group, own, counts, quotas)
    lost = (owners == NOBODY) & (own != NOBODY)
    taken_from[lost] = own[lost]
    larger = extras - min(extras, len(large))
    exact = np.flatnonzero((counts >= low) & (quotas == low)) if larger else large[:0]
    return _Kept(owners, taken_from, np.flatnonzero(counts < low), exact, larger, len(large) <= extras)


def _first_of_each(group: Group, own: IntArray, counts: IntArray, quotas: IntArray) -> IntArray:
    """Return the owners with only each member's first partitions, by number then topic, up to its quota."""
    if (counts <= quotas).all():
        return own
    order = group.topics.by_number
    order = order[own[order] != NOBODY]
    order = order[grouped(own[order], group.member_count)]
    holders = own[order]
    lost = order[ranks_within(holders, group.member_count) >= quotas[holders]]
    owners = own.copy()
    owners[lost] = NOBODY
    return owners


def _takers(under: IntArray, gaps: IntArray, exact: IntArray, count: int) -> IntArray:
    """Return the member that takes each of ``count`` free partitions.

    Those below ``lo`` in turns until each has its gap filled; then one each to those that were at ``lo``, and to those
    that have reached it since, first come first served.
    """
    finished = under[np.argsort(gaps[under], kind="stable")]
    return np.concatenate((deal_out(under, gaps[under]), exact, finished))[:count]


def _withheld(owners: IntArray, kept: _Kept, contested: BoolArray) -> BoolArray:
    """Return what goes to another member than it is taken from, and what two members claim."""
    passed_on: BoolArray = (kept.taken_from != NOBODY) & (kept.taken_from != owners)
    return passed_on | contested


class _Filling:
    """Members that may still take partitions, found by rack.

    Members below ``lo`` are asked in a circle from a pointer on; those at ``lo`` in the order in which they got there.
    """

    def __init__(self, kept: _Kept, racks: RackTable, low: int, member_count: int) -> None:
        self.low = low
        self.larger = kept.larger
        self.counts = np.bincount(_owned(kept.owners), minlength=member_count).tolist()
        self.under: list[int] = kept.under.tolist()
        self.exact: dict[int, None] = dict.fromkeys(kept.exact.tolist())
        self._racks = racks
        self._under_by_rack: dict[int, list[int]] = {}
        self._exact_by_rack: dict[int, deque[tuple[int, int]]] = {}
        self._arrivals = 0
        self._pointer = 0
        for member in self.under:
            insort(self._under_by_rack.setdefault(racks.of_member[member], []), member)
        for member in self.exact:
            self._queue(member)

    def take(self, partition: int) -> int:
        """Return the member in a replica's rack that takes the partition, ``NOBODY`` for none."""
        homes = self._racks.of_partition[partition]
        member = self._next_under(homes)
        if member != NOBODY:
            self._pointer = member + 1
            self._lift(member)
            return member
        return self._next_exact(homes)

    def _next_under(self, homes: frozenset[int]) -> int:
        """Return the first member at or after the pointer in these racks, going round once."""
        ahead, behind = [], []
        for home in homes:
            members = self._under_by_rack.get(home, [])
            index = bisect_left(members, self._pointer)
            ahead += members[index : index + 1]
            behind += members[:1]
        return min(ahead or behind, default=NOBODY)

    def _lift(self, member: int) -> None:
        self.counts[member] += 1
        if self.counts[member] < self.low:
            return
        self.under.pop(bisect_left(self.under, member))
        near = self._under_by_rack[self._racks.of_member[member]]
        near.pop(bisect_left(near, member))
        if self.larger > 0:
            self.exact[member] = None
            self._queue(member)

    def _queue(self, member: int) -> None:
        home = self._racks.of_member[member]
        if home != NO_RACK:
            self._exact_by_rack.setdefault(home, deque()).append((self._arrivals, member))
        self._arrivals += 1

    def _next_exact(self, homes: frozenset[int]) -> int:
        waiting = [self._exact_by_rack[home] for home in homes if self._exact_by_rack.get(home)]
        if not waiting:
            return NOBODY
        _, member = min(waiting, key=lambda queue: queue[0]).popleft()
        del self.exact[member]
        self.counts[member] += 1
        self.larger -= 1
        if self.larger == 0:
            self.exact.clear()
            self._exact_by_rack.clear()
        return member


def _fill_with_racks(owners: IntArray, free: Sequence[int], filling: _Filling) -> None:
    """Give the free partitions out in this order, to members in a replica's rack first, then the rest to any member."""
    rest = []
    for partition in free:
        owners[partition] = filling.take(partition)
        if owners[partition] == NOBODY:
            rest.append(partition)
    under = np.array(filling.under, dtype=np.intp)
    gaps = filling.low - np.array(filling.counts, dtype=np.intp)
    owners[rest] = _takers(under, gaps, np.array([*filling.exact], dtype=np.intp), len(rest))
