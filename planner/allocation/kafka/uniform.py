"""``UniformAssignor`` of the server (KIP-848), 4.0.2 and later: the order in which members are met decides much.

``group.walk`` is the order in which the server's map holds the members; topic ids are random on a real broker, so
topics are taken in name order here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.kafka import levels
from planner.allocation.kafka.group import NOBODY, Group, IntArray, Outcome, nobody, ranks_within
from planner.allocation.kafka.java_hash import copied_set_buckets

MOST_SWEEPS = 16


def uniform(group: Group) -> Outcome:
    """Return a balanced answer that keeps what the current target has, as far as balance allows."""
    if group.member_count == 0 or group.topics.partition_count == 0:
        return Outcome(nobody(group.topics.partition_count))
    return _homogeneous(group) if group.is_uniform else _heterogeneous(group)


def _homogeneous(group: Group) -> Outcome:
    """``UniformHomogeneousAssignmentBuilder``: each member keeps up to its quota, then is filled in one go."""
    owners = group.claimed_owners()
    counts = np.bincount(owners + 1, minlength=group.member_count + 1)
    free = np.flatnonzero(owners == NOBODY) if counts[0] else group.walk[:0]
    counts = counts[1:]
    quotas, gaps = _quotas(counts[group.walk], *divmod(len(owners), group.member_count))
    surplus = _surplus(group, owners, counts, quotas)
    if len(surplus):
        free = np.concatenate((free, surplus))
    owners[free] = np.repeat(group.walk, gaps)[: len(free)]
    return Outcome(owners, is_determined=len(free) == 0 or group.member_count == 1)


def _quotas(counts: IntArray, low: int, extras: int) -> tuple[IntArray, IntArray]:
    """Return how many each member may keep and how many more it takes, members as they are met.

    A member that is met while extras are left may keep one more; one that does not use it gives it up again, unless
    all that are still to come must take one.
    """
    if extras == 0:
        return np.full(len(counts), low, dtype=np.intp), np.maximum(low - counts, 0)
    is_large = counts > low
    left = np.maximum(extras - (np.cumsum(is_large) - is_large), 0)
    must_take = (left > 0) & (left >= np.arange(len(counts), 0, -1))
    takes = (left > 0) & (is_large | (np.cumsum(must_take) > 0))
    return low + (left > 0), np.maximum(low + takes - counts, 0)


def _surplus(group: Group, owners: IntArray, counts: IntArray, quotas: IntArray) -> IntArray:
    """Return what members own above their quota: as they are met, topic by topic, numbers in Java's set order."""
    walked = counts[group.walk]
    is_over = walked > quotas
    if not is_over.any():
        return group.walk[:0]
    steps = np.full(group.member_count + 1, NOBODY, dtype=np.intp)
    steps[group.walk[is_over]] = np.flatnonzero(is_over)
    owned = np.flatnonzero((steps >= 0)[owners])
    owned = owned[np.argsort(steps[owners[owned]], kind="stable")]
    owned = owned[_set_order(group, owned, steps[owners[owned]])]
    holders = steps[owners[owned]]
    return owned[ranks_within(holders, group.member_count) >= quotas[holders]]


def _set_order(group: Group, owned: IntArray, holders: IntArray) -> IntArray:
    """Return the indexes that order partitions, sorted by holder, within each holder's topic as its set iterates."""
    topics = group.topics.topics_of(owned)
    changes = (np.diff(holders) != 0) | (np.diff(topics) != 0)
    runs = np.concatenate(([0], np.cumsum(changes)))
    numbers = owned - group.topics.starts[topics]
    return np.lexsort((copied_set_buckets(numbers, np.bincount(runs)[runs]), runs))


def _heterogeneous(group: Group) -> Outcome:
    """``UniformHeterogeneousAssignmentBuilder``: fill level by level, then up to 16 sweeps over the topics."""
    state = _Target(group)
    filled = [state.fill(topic) for topic in state.topic_order]
    moved = _sweep(state, [topic for topic in state.topic_order if len(state.subscribers[topic]) > 1])
    owners = np.where(state.owners == NOBODY, NOBODY, group.walk[state.owners])
    is_alone = all(len(members) < 2 for members in state.subscribers)
    return Outcome(owners, is_determined=is_alone or not (moved or any(filled)))


class _Target:
    """The target assignment while it changes; members are numbered as they are met."""

    def __init__(self, group: Group) -> None:
        self.group = group
        steps = np.empty(group.member_count, dtype=np.intp)
        steps[group.walk] = np.arange(group.member_count)
        self.subscribers = [np.sort(steps[members]) for members in group.subscribers]
        sizes = group.topics.sizes
        self.topic_order = sorted(
            (topic for topic, members in enumerate(self.subscribers) if len(members)),
            key=lambda topic: (-sizes[topic] / len(self.subscribers[topic]), len(self.subscribers[topic]), topic),
        )
        claimed, stays = group.claimed_owners(), nobody(group.topics.partition_count)
        owned = np.flatnonzero(claimed != NOBODY)
        owned = owned[group.may_own(claimed[owned], owned)]
        stays[owned] = steps[claimed[owned]]
        self.owners = stays
        self.loads = np.bincount(stays[owned], minlength=group.member_count)

    def by_load(self, topic: int) -> IntArray:
        """Return the topic's subscribers, least loaded first, equal ones as they are met."""
        members = self.subscribers[topic]
        return members[np.argsort(self.loads[members], kind="stable")]

    def fill(self, topic: int) -> bool:
        """Give out what has no owner of the topic; return whether there was anything."""
        block = self.group.topics.block(topic)
        free = np.flatnonzero(self.owners[block] == NOBODY) + block.start
        if len(free) == 0:
            return False
        members = self.by_load(topic)
        receivers = members[levels.fill(self.loads[members], len(free))]
        self.owners[free] = receivers
        self.loads += np.bincount(receivers, minlength=len(self.loads))
        return True


def _sweep(state: _Target, topics: Sequence[int]) -> bool:
    """Balance topic by topic until a whole sweep moves nothing, at most 16 times; return whether anything moved."""
    last, has_moved = NOBODY, False
    for _ in range(MOST_SWEEPS):
        for position, topic in enumerate(topics):
            if position == last:
                return has_moved
            moved = _balance_topic(state, topic)
            has_moved = has_moved or moved
            if moved or last == NOBODY:
                last = position
    return has_moved


def _balance_topic(state: _Target, topic: int) -> bool:
    """Move the highest numbers from the most to the least loaded subscribers while these differ by more than one."""
    members = state.by_load(topic)
    if state.loads[members[-1]] - state.loads[members[0]] <= 1:
        return False
    block = state.group.topics.block(topic)
    belongings: dict[int, list[int]] = {}
    for number, owner in enumerate(state.owners[block].tolist()):
        belongings.setdefault(owner, []).append(number + block.start)
    ends = _Ends(members.tolist(), state.loads)
    has_moved = False
    while not ends.are_level():
        giver = ends.next_giver(belongings)
        if giver == NOBODY:
            break
        partition = belongings[giver].pop()
        receiver = ends.next_receiver()
        if ends.are_level():
            break
        state.owners[partition] = receiver
        state.loads[giver] -= 1
        state.loads[receiver] += 1
        has_moved = True
    return has_moved


@dataclass
class _Range:
    """A stretch ``start`` to ``end`` of the sorted members that are all at ``level``, and the next member in it."""

    start: int
    end: int
    level: int
    next: int


class _Ends:
    """The least and the most loaded members of one topic, widening towards each other.

    ``MemberAssignmentBalancer``: receivers are taken from the low end upwards, level by level, givers from the high
    end downwards; a giver that has nothing of the topic left is put aside.
    """

    def __init__(self, members: list[int], loads: IntArray) -> None:
        self._members = members
        self._loads = loads
        count = len(members)
        self._low = _Range(0, 0, int(loads[members[0]]) - 1, 0)
        self._high = _Range(count, count, int(loads[members[-1]]) + 1, count - 1)

    def are_level(self) -> bool:
        return self._high.level - self._low.level <= 1

    def next_receiver(self) -> int:
        low = self._low
        if low.next >= low.end:
            low.level += 1
            while low.end < len(self._members) and self._loads[self._members[low.end]] == low.level:
                low.end += 1
            low.next = 0
        low.next += 1
        return self._members[low.next - 1]

    def next_giver(self, belongings: dict[int, list[int]]) -> int:
        """Return the next most loaded member that owns something of the topic, ``NOBODY`` when there is none."""
        while (member := self._step_down()) != NOBODY:
            if belongings.get(member):
                return member
            self._put_aside()
        return NOBODY

    def _step_down(self) -> int:
        high = self._high
        if high.next < high.start:
            if high.end <= high.start and high.start > 0:
                high.level = int(self._loads[self._members[high.start - 1]])
            else:
                high.level -= 1
            while high.start > 0 and self._loads[self._members[high.start - 1]] == high.level:
                high.start -= 1
            high.next = high.end - 1
        if high.next < 0:
            return NOBODY
        high.next -= 1
        return self._members[high.next + 1]

    def _put_aside(self) -> None:
        """Swap the member just asked with the last of the range, and let the range end before it."""
        high, members = self._high, self._members
        asked, last = high.next + 1, high.end - 1
        members[asked], members[last] = members[last], members[asked]
        high.end -= 1
