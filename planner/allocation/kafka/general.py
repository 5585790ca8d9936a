"""The sticky algorithm for unequal subscriptions, clients 3.7.2 and later.

``AbstractStickyAssignor.GeneralAssignmentBuilder``.

Steps G1 to G11 of the reference. What Java finds by trying every partition is looked for where it can be: a
partition moves only when its owner has at least two more than the least loaded subscriber of its topic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.kafka import levels
from planner.allocation.kafka.claims import Previous, Resolved, previous_owners
from planner.allocation.kafka.group import NO_RACK, NOBODY, BoolArray, Group, IntArray, Outcome, nobody
from planner.allocation.kafka.movements import Movements
from planner.allocation.kafka.racks import RackTable

MOST_PASSES = 10_000
"""Passes after which an answer is given as it stands; Java would go on. None came near it in our comparisons."""

FIRST_LOOK = 256
"""Partitions looked at before looking further."""

Block = tuple[int, IntArray]
"""A topic and some of its partitions, ascending."""


def general(group: Group, resolved: Resolved, racks: RackTable | None) -> Outcome:
    """Return an answer as balanced as the subscriptions allow, moving what is claimed only for balance."""
    state = _State(group, resolved, racks)
    free = state.blocks(state.owners == NOBODY)
    is_fresh = not bool(state.loads.any())
    if racks is not None:
        state.assign_near(free, racks)
    state.assign(free)
    previous = previous_owners(group)
    rounds = _Balancing(state, previous)
    rounds.run(free, is_fresh=is_fresh)
    # No old claim was asked for when nothing was out of balance: the walk order behind it decided nothing.
    return Outcome(
        state.owners,
        is_determined=(previous.is_determined or not rounds.has_moved) and not rounds.warnings,
        warnings=rounds.warnings,
    )


class _State:
    """Owners and loads while they change."""

    def __init__(self, group: Group, resolved: Resolved, racks: RackTable | None) -> None:
        self.group = group
        self.subscribers = group.subscribers
        sizes = [len(members) for members in self.subscribers]
        self.topic_order = sorted(range(len(sizes)), key=lambda topic: (sizes[topic], topic))
        self.owners, self.must_revoke = _kept(group, resolved, racks)
        self.loads = np.bincount(self.owners[self.owners != NOBODY], minlength=group.member_count)

    def blocks(self, wanted: BoolArray, least_subscribers: int = 1) -> list[Block]:
        """Return the wanted partitions topic by topic: fewest subscribers first, then by name."""
        found = []
        for topic in self.topic_order:
            block = self.group.topics.block(topic)
            partitions = np.flatnonzero(wanted[block]) + block.start
            if len(partitions) and len(self.subscribers[topic]) >= least_subscribers:
                found.append((topic, partitions))
        return found

    def assign_near(self, blocks: Sequence[Block], racks: RackTable) -> None:
        """Give each partition to the least loaded subscriber that has no rack or one of a replica, if there is one."""
        for topic, partitions in blocks:
            members = self.subscribers[topic]
            homes = np.array([racks.of_member[member] for member in members.tolist()])
            near: dict[frozenset[int], IntArray] = {}
            for partition in partitions.tolist():
                replicas = racks.of_partition[partition]
                if replicas not in near:
                    near[replicas] = members[(homes == NO_RACK) | np.isin(homes, list(replicas))]
                if len(near[replicas]):
                    self._give(partition, int(near[replicas][np.argmin(self.loads[near[replicas]])]))

    def assign(self, blocks: Sequence[Block]) -> None:
        """Give each partition that nobody has to the least loaded subscriber, the first id among equals."""
        for topic, partitions in blocks:
            members = self.subscribers[topic]
            rest = partitions[self.owners[partitions] == NOBODY]
            receivers = members[levels.fill(self.loads[members], len(rest))]
            self.owners[rest] = receivers
            self.loads += np.bincount(receivers, minlength=len(self.loads))

    def _give(self, partition: int, member: int) -> None:
        self.owners[partition] = member
        self.loads[member] += 1


def _kept(group: Group, resolved: Resolved, racks: RackTable | None) -> tuple[IntArray, bool]:
    """Return the claims that stand, and whether one fell because of a subscription or a rack."""
    owners = resolved.owners.copy()
    claimed = np.flatnonzero(owners != NOBODY)
    falls = ~group.may_own(owners[claimed], claimed)
    if racks is not None:
        falls |= np.array([racks.mismatch(int(owners[one]), one) for one in claimed.tolist()], dtype=np.bool_)
    owners[claimed[falls]] = NOBODY
    return owners, bool(falls.any())


@dataclass(frozen=True)
class _Strays:
    """Old claims by members that no longer subscribe to the topic: Java may hand them the partition, or fail."""

    owners: IntArray
    is_out_of_play: BoolArray


class _Balancing:
    """Moves until nobody has two partitions more than somebody who could take one."""

    def __init__(self, state: _State, previous: Previous) -> None:
        self.state = state
        self.has_moved = False
        self.warnings: tuple[str, ...] = ()
        self._movements = Movements(state.group.topics)
        self._in_play = _in_play(state)
        self._previous, self._strays = self._split(previous.owners)

    def _split(self, owners: IntArray) -> tuple[IntArray, _Strays | None]:
        """Return the old owners that may own the partition still, and the others apart."""
        known = np.flatnonzero(owners != NOBODY)
        stray = known[~self.state.group.may_own(owners[known], known)]
        if len(stray) == 0:
            return owners, None
        valid, astray = owners.copy(), nobody(len(owners))
        valid[stray], astray[stray] = NOBODY, owners[stray]
        is_out = np.zeros(len(owners), dtype=np.bool_)
        is_out[stray] = ~self._in_play[owners[stray]]
        return valid, _Strays(astray, is_out)

    def run(self, free: Sequence[Block], *, is_fresh: bool) -> None:
        """Balance the newly given partitions, then all; undo everything if that made nothing better."""
        state = self.state
        owners, loads = state.owners.copy(), state.loads.copy()
        movable = [block for block in free if len(state.subscribers[block[0]]) > 1]
        if not state.must_revoke:
            self._balance(movable)
        everything = state.blocks(np.ones(len(owners), dtype=np.bool_), least_subscribers=2)
        if self._balance(everything) and not is_fresh and self._score(state.loads) >= self._score(loads):
            state.owners, state.loads = owners, loads

    def _score(self, loads: IntArray) -> int:
        """Return the sum of load differences over all pairs of members in play."""
        rising = np.sort(loads[self._in_play])
        return int(((2 * np.arange(len(rising)) - len(rising) + 1) * rising).sum())

    def _balance(self, blocks: Sequence[Block]) -> bool:
        """Go through the blocks until a pass moves nothing; return whether anything moved."""
        for passes in range(MOST_PASSES):
            moved = [self._balance_block(topic, partitions) for topic, partitions in blocks]
            if not any(moved):
                self.has_moved |= passes > 0
                return passes > 0
        self.warnings += (f"no balance after {MOST_PASSES} passes: the real assignor may not end on this group",)
        return True

    def _balance_block(self, topic: int, partitions: IntArray) -> bool:
        """Go through one topic's partitions once, moving each from an owner that has two more than a subscriber."""
        members = self.state.subscribers[topic]
        place, has_moved = 0, False
        while place < len(partitions):
            loads = self.state.loads[members]
            lightest = int(np.argmin(loads))
            found = self._next_heavy(partitions, place, int(loads[lightest]) + 1)
            self._look_for_strays(partitions[place : found + 1])
            if found < len(partitions):
                self._move(int(partitions[found]), int(members[lightest]))
                has_moved = True
            place = found + 1
        return has_moved

    def _next_heavy(self, partitions: IntArray, place: int, limit: int) -> int:
        """Return where, from ``place`` on, the first partition is whose owner has more than ``limit``; else the end.

        Looks at a few first, as the next one is mostly near.
        """
        width = FIRST_LOOK
        while place < len(partitions):
            heavy = self.state.loads[self.state.owners[partitions[place : place + width]]] > limit
            step = int(np.argmax(heavy))
            if heavy[step]:
                return place + step
            place += width
            width *= 4
        return len(partitions)

    def _move(self, partition: int, lightest: int) -> None:
        """Move the partition to its old owner where that helps, else to the lightest; or undo an opposite move."""
        state = self.state
        owner, receiver = int(state.owners[partition]), lightest
        old = int(self._previous[partition])
        if old != NOBODY and state.loads[owner] > state.loads[old] + 1:
            receiver = old
        partition = self._movements.instead(partition, owner, receiver)
        owner = int(state.owners[partition])
        self._movements.record(partition, owner, receiver)
        state.loads[owner] -= 1
        state.loads[receiver] += 1
        state.owners[partition] = receiver

    def _look_for_strays(self, partitions: IntArray) -> None:
        """Warn when Java would look at a partition whose old owner no longer subscribes, and act on it."""
        if self._strays is None or self.warnings:
            return
        old = self._strays.owners[partitions]
        loads = self.state.loads
        acts = (old != NOBODY) & (
            self._strays.is_out_of_play[partitions] | (loads[self.state.owners[partitions]] > loads[old] + 1)
        )
        if acts.any() and not self._is_balanced():
            self.warnings += (
                "a member with an old claim no longer subscribes to its topic: the real assignor may hand it the "
                "partition all the same, or fail; this answer keeps to the subscriptions",
            )

    def _is_balanced(self) -> bool:
        """Return whether no partition could move."""
        state = self.state
        for topic, members in enumerate(state.subscribers):
            owners = state.owners[state.group.topics.block(topic)]
            if len(members) > 1 and state.loads[owners].max() > state.loads[members].min() + 1:
                return False
        return True


def _in_play(state: _State) -> BoolArray:
    """Return the members whose partitions can change: they could have more, or share a topic they own of."""
    group = state.group
    most = np.zeros(group.member_count, dtype=np.intp)
    for topic, members in enumerate(group.subscribers):
        most[members] += group.topics.sizes[topic]
    shared = np.array([len(members) > 1 for members in group.subscribers], dtype=np.bool_)
    owns_shared = np.zeros(group.member_count, dtype=np.bool_)
    held = np.flatnonzero(state.owners != NOBODY)
    owns_shared[state.owners[held[shared[group.topics.topic_of[held]]]]] = True
    return np.asarray((state.loads < most) | owns_shared, dtype=np.bool_)
