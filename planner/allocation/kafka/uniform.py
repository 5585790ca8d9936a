"""``UniformAssignor`` of the server (KIP-848), 4.0.1 and later: which members are met first decides much.

``group.walk`` is the order in which the server's map holds the members; topic ids are random on a real broker, so
topics are taken in name order here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.kafka import levels
from planner.allocation.kafka.group import NOBODY, Group, IntArray, Outcome, nobody
from planner.allocation.kafka.java_hash import copied_set_order

MOST_SWEEPS = 16


def uniform(group: Group) -> Outcome:
    """Return a balanced answer that keeps what the current target has, as far as balance allows."""
    if group.member_count == 0 or group.topics.partition_count == 0:
        return Outcome(nobody(group.topics.partition_count))
    return _homogeneous(group) if group.is_uniform else _heterogeneous(group)


def _homogeneous(group: Group) -> Outcome:
    """``UniformHomogeneousAssignmentBuilder``: each member keeps up to its quota, then is filled in one go."""
    owners = group.claimed_owners()
    free = np.flatnonzero(owners == NOBODY)
    counts = np.bincount(owners[owners != NOBODY], minlength=group.member_count)
    quotas, gaps = _quotas(counts[group.walk], *divmod(len(owners), group.member_count))
    surplus = _surplus(group, owners, counts, quotas)
    if len(surplus):
        free = np.concatenate((free, surplus))
    owners[free] = np.repeat(group.walk, gaps)[: len(free)]
    return Outcome(owners, is_determined=len(free) == 0 or group.member_count == 1)


def _quotas(counts: IntArray, low: int, extras: int) -> tuple[IntArray, IntArray]:
    """Return how many each member may keep and how many more it takes, members as they are met.

    Whoever is met while extras are left may keep one more; who does not use it gives it up again, unless
    all that are still to come must take one.
    """
    if extras == 0:
        return np.full(len(counts), low, dtype=np.intp), np.maximum(low - counts, 0)
    if not counts.any():
        return _fresh_quotas(len(counts), low, extras)
    quotas, gaps = [], []
    to_come = len(counts)
    for count in counts.tolist():
        quota = low + 1 if extras else low
        gap = quota - count
        takes_extra = extras > 0
        if takes_extra and gap > 0 and to_come > extras:
            gap -= 1
            takes_extra = False
        extras -= takes_extra
        to_come -= 1
        quotas.append(quota)
        gaps.append(max(gap, 0))
    return np.array(quotas, dtype=np.intp), np.array(gaps, dtype=np.intp)


def _fresh_quotas(count: int, low: int, extras: int) -> tuple[IntArray, IntArray]:
    """Return the quotas of members that own nothing: the extras go to the last ones met."""
    gaps = np.full(count, low, dtype=np.intp)
    gaps[count - extras :] += 1
    return gaps, gaps


def _surplus(group: Group, owners: IntArray, counts: IntArray, quotas: IntArray) -> IntArray:
    """Return what members own above their quota, as they are met; topic by topic, numbers in Java's set order."""
    found = []
    for step in np.flatnonzero(counts[group.walk] > quotas).tolist():
        held = np.flatnonzero(owners == group.walk[step])
        found.append(_as_java_iterates(group, held, int(quotas[step]))[int(quotas[step]) :])
    return np.concatenate(found) if found else group.walk[:0]


def _as_java_iterates(group: Group, held: IntArray, quota: int) -> IntArray:
    """Return a member's partitions topic by topic; within a topic that is cut, by the set's order."""
    topics = group.topics.topic_of[held]
    ordered, taken = [], 0
    for topic in np.unique(topics).tolist():
        start = int(group.topics.starts[topic])
        numbers = held[topics == topic] - start
        fits = taken + len(numbers) <= quota
        ordered.append(start + (numbers if fits else copied_set_order(numbers)))
        taken += len(numbers)
    return np.concatenate(ordered)


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
        held = np.flatnonzero(claimed != NOBODY)
        held = held[group.may_own(claimed[held], held)]
        stays[held] = steps[claimed[held]]
        self.owners = stays
        self.loads = np.bincount(stays[held], minlength=group.member_count)

    def by_load(self, topic: int) -> IntArray:
        """Return the topic's subscribers, least loaded first, equal ones as they are met."""
        members = self.subscribers[topic]
        return members[np.argsort(self.loads[members], kind="stable")]

    def fill(self, topic: int) -> bool:
        """Give out what nobody has of the topic; return whether there was anything."""
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
        for place, topic in enumerate(topics):
            if place == last:
                return has_moved
            moved = _balance_topic(state, topic)
            has_moved = has_moved or moved
            if moved or last == NOBODY:
                last = place
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
    """A stretch ``start`` to ``end`` of the sorted members that are all at ``level``, and who is next in it."""

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
