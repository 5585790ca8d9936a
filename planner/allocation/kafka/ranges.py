"""``RangeAssignor`` of the clients (3.5 and later, with racks) and of the server (KIP-848, 4.0 and later)."""

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from planner.allocation.kafka.group import NO_RACK, NOBODY, Group, IntArray, Outcome, Racks, nobody
from planner.allocation.kafka.racks import racks_matter

MayHave = Callable[[int, int], bool]


def range_owners(group: Group) -> Outcome:
    """Return each topic in contiguous blocks over its subscribers in ring order, racks matched where that is free.

    7 partitions over 3 members: 0 1 2 | 3 4 | 5 6.
    """
    racks = group.racks
    if racks is not None:
        topics = [_TopicRange(group, racks, topic) for topic in range(len(group.topics.sizes))]
        if any(topic.needs_racks for topic in topics):
            return Outcome(_with_racks(group, topics))
    return range_server(group)


def range_server(group: Group) -> Outcome:
    """Return each topic in contiguous blocks over its subscribers in ring order; racks and history count nothing."""
    owners = nobody(group.topics.partition_count)
    positions = _ring_positions(group)
    for topic, size in enumerate(group.topics.sizes):
        members = group.subscribers[topic]
        if len(members):
            owners[group.topics.block(topic)] = np.repeat(
                _in_ring(group, members, positions), _blocks(size, len(members))
            )
    return Outcome(owners)


def _blocks(size: int, count: int) -> IntArray:
    share, larger = divmod(size, count)
    blocks = np.full(count, share, dtype=np.intp)
    blocks[:larger] += 1
    return blocks


def _ring_positions(group: Group) -> IntArray:
    """Return each member's position in the ring."""
    positions = np.empty(group.member_count, dtype=np.intp)
    positions[group.ring] = np.arange(group.member_count)
    return positions


def _in_ring(group: Group, members: IntArray, positions: IntArray) -> IntArray:
    if len(members) == group.member_count:
        return group.ring
    return members[np.argsort(positions[members])]


class _TopicRange:
    """One topic while its blocks are handed out: what is left, and how much room each subscriber has."""

    def __init__(self, group: Group, racks: Racks, topic: int) -> None:
        self.members: list[int] = _in_ring(group, group.subscribers[topic], _ring_positions(group)).tolist()
        self.start = int(group.topics.starts[topic])
        self.size = group.topics.sizes[topic]
        self.owners: list[int] = [NOBODY] * self.size
        self._racks = racks
        self._share, self._extras = divmod(self.size, len(self.members)) if self.members else (0, 0)
        self._given = dict.fromkeys(self.members, 0)
        homes = {racks.of_member[member] for member in self.members} - {NO_RACK}
        self.has_racks = bool(homes)
        self.needs_racks = racks_matter(homes, racks.of_partition[self.start : self.start + self.size])

    @property
    def kind(self) -> tuple[tuple[int, ...], int]:
        """Topics of one kind are co-partitioned: the same subscribers, the same count of partitions with racks."""
        return tuple(self.members), self.size if self.has_racks else 0

    def room(self, member: int) -> int:
        return max(0, self._share + (1 if self._extras > 0 else 0) - self._given[member])

    def matches(self, member: int, number: int) -> bool:
        home = self._racks.of_member[member]
        return home == NO_RACK or home in self._racks.of_partition[self.start + number]

    def give(self, member: int, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.owners[number] = member
        self._given[member] += len(numbers)
        if self._given[member] > self._share:
            self._extras -= 1

    def give_blocks(self, may_have: MayHave) -> None:
        """Give each member in turn the first free partitions that it may have, up to its room."""
        free = [number for number in range(self.size) if self.owners[number] == NOBODY]
        for member in self.members:
            room = self.room(member)
            taken = list(islice((number for number in free if may_have(member, number)), room))
            if taken:
                self.give(member, taken)
                gone = set(taken)
                free = [number for number in free if number not in gone]


def _with_racks(group: Group, topics: Sequence[_TopicRange]) -> IntArray:
    kinds: dict[tuple[tuple[int, ...], int], list[_TopicRange]] = {}
    for topic in topics:
        kinds.setdefault(topic.kind, []).append(topic)
    for (members, size), alike in kinds.items():
        if len(alike) > 1:
            _give_alike(members, size, alike)
        elif alike[0].needs_racks:
            alike[0].give_blocks(alike[0].matches)
    owners = nobody(group.topics.partition_count)
    for topic in topics:
        topic.give_blocks(lambda member, number: True)  # noqa: ARG005
        owners[topic.start : topic.start + topic.size] = topic.owners
    return owners


def _give_alike(members: Sequence[int], size: int, topics: Sequence[_TopicRange]) -> None:
    """Give partition p of all these topics to one member that matches racks in all and has room in all."""
    remaining = list(members)
    for number in range(size):
        taker = next(
            (m for m in remaining if all(topic.matches(m, number) and topic.room(m) > 0 for topic in topics)), None
        )
        if taker is None:
            continue
        for topic in topics:
            topic.give(taker, (number,))
        if all(topic.room(taker) == 0 for topic in topics):
            remaining.remove(taker)
            if not remaining:
                break
