"""The sticky algorithm for unequal subscriptions, clients 3.7.2 and later.

``AbstractStickyAssignor.GeneralAssignmentBuilder``.

Steps G1 to G11 of the reference. What Java finds by trying every partition is searched where it can be: a
partition moves only when its owner has at least two more than the least loaded subscriber of its topic.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.allocation.kafka import levels
from planner.allocation.kafka.claims import Previous, Resolved, previous_owners
from planner.allocation.kafka.group import NO_RACK, NOBODY, BoolArray, Group, IntArray, Outcome
from planner.allocation.kafka.movements import Movements
from planner.allocation.kafka.racks import RackTable

MOST_PASSES = 10_000
"""Passes after which an answer is given as it stands; Java would go on. None came near it in our comparisons."""

FIRST_WIDTH = 256
"""Partitions that the first step of a search covers."""

Block = tuple[int, IntArray]
"""A topic and some of its partitions, ascending."""


def general(group: Group, resolved: Resolved, racks: RackTable | None, *, lets_stray: bool = False) -> Outcome:
    """Return an answer as balanced as the subscriptions allow, moving what is claimed only for balance.

    An old claim by a member that no longer subscribes is obeyed as the class obeys it, where that ends well. Where
    the class fails on it, or hands a partition to a non-subscriber, the claim is left out, with a warning. With
    ``lets_stray`` the class is followed there too: such an owner is in the answer, a failure raises ClassFailsError.
    """
    previous = previous_owners(group)
    astray = astray_partitions(group, previous.owners)
    if not astray.any():
        return _balance_all(_Balancing(_State(group, resolved, racks), previous.owners), previous)
    try:
        outcome = _balance_all(_Literally(_State(group, resolved, racks), previous.owners), previous)
        if lets_stray or not astray_partitions(group, outcome.owners).any():
            return outcome
    except ClassFailsError:
        if lets_stray:
            raise
    cleaned = np.where(astray, NOBODY, previous.owners)
    outcome = _balance_all(_Balancing(_State(group, resolved, racks), cleaned), previous)
    return replace(outcome, is_determined=False, warnings=(*outcome.warnings, _STRAY))


_STRAY = (
    "a member with an old claim no longer subscribes to its topic: the real assignor hands it the partition all the "
    "same, or fails; this answer keeps to the subscriptions"
)


def _balance_all(rounds: "_Balancing", previous: Previous) -> Outcome:
    rounds.run()
    # No old claim was asked for when nothing was out of balance: the walk order behind it decided nothing.
    is_determined = (previous.is_determined or not rounds.has_moved) and not rounds.warnings
    return Outcome(rounds.state.owners, is_determined, warnings=rounds.warnings)


def astray_partitions(group: Group, owners: IntArray) -> BoolArray:
    """Return the partitions whose owner does not subscribe to them."""
    owned = np.flatnonzero(owners != NOBODY)
    astray = np.zeros(len(owners), dtype=np.bool_)
    astray[owned[~group.may_own(owners[owned], owned)]] = True
    return astray


class _State:
    """Owners and loads while they change; to begin with, what is kept and, level by level, all that has no owner.

    ``free`` is what had no owner, ``is_fresh`` says that nothing had one.
    """

    def __init__(self, group: Group, resolved: Resolved, racks: RackTable | None) -> None:
        self.group = group
        self.subscribers = group.subscribers
        sizes = [len(members) for members in self.subscribers]
        self.topic_order = sorted(range(len(sizes)), key=lambda topic: (sizes[topic], topic))
        self.owners, self.must_revoke = _keep_claims(group, resolved, racks)
        self.loads = np.bincount(self.owners[self.owners != NOBODY], minlength=group.member_count)
        self.is_fresh = not bool(self.loads.any())
        self.free = self.blocks(self.owners == NOBODY)
        if racks is not None:
            self._assign_near(racks)
        self._assign()

    def blocks(self, chosen: BoolArray, least_subscribers: int = 1) -> list[Block]:
        """Return the chosen partitions topic by topic: fewest subscribers first, then by name."""
        blocks = []
        for topic in self.topic_order:
            block = self.group.topics.block(topic)
            partitions = np.flatnonzero(chosen[block]) + block.start
            if len(partitions) and len(self.subscribers[topic]) >= least_subscribers:
                blocks.append((topic, partitions))
        return blocks

    def _assign_near(self, racks: RackTable) -> None:
        """Give each partition to the least loaded subscriber that has no rack or one of a replica, if there is one."""
        for topic, partitions in self.free:
            members = self.subscribers[topic]
            homes = np.array([racks.of_member[member] for member in members.tolist()])
            near: dict[frozenset[int], IntArray] = {}
            for partition in partitions.tolist():
                replicas = racks.of_partition[partition]
                if replicas not in near:
                    near[replicas] = members[(homes == NO_RACK) | np.isin(homes, list(replicas))]
                if len(near[replicas]):
                    self._give(partition, int(near[replicas][np.argmin(self.loads[near[replicas]])]))

    def _assign(self) -> None:
        """Give each partition without an owner to the least loaded subscriber, the first id among equals."""
        for topic, partitions in self.free:
            members = self.subscribers[topic]
            rest = partitions[self.owners[partitions] == NOBODY]
            receivers = members[levels.fill(self.loads[members], len(rest))]
            self.owners[rest] = receivers
            self.loads += np.bincount(receivers, minlength=len(self.loads))

    def _give(self, partition: int, member: int) -> None:
        self.owners[partition] = member
        self.loads[member] += 1


def _keep_claims(group: Group, resolved: Resolved, racks: RackTable | None) -> tuple[IntArray, bool]:
    """Return the claims that stand, and whether one fell because of a subscription or a rack."""
    owners = resolved.owners.copy()
    claimed = np.flatnonzero(owners != NOBODY)
    falls = ~group.may_own(owners[claimed], claimed)
    if racks is not None:
        falls |= np.array(
            [racks.mismatch(int(owners[partition]), partition) for partition in claimed.tolist()], dtype=np.bool_
        )
    owners[claimed[falls]] = NOBODY
    return owners, bool(falls.any())


class _Balancing:
    """Moves until no member has two partitions more than another that could take one."""

    def __init__(self, state: _State, previous: IntArray) -> None:
        self.state = state
        self.has_moved = False
        self.warnings: tuple[str, ...] = ()
        self._previous = previous
        self._movements = Movements(state.group.topics)
        self._most = _most_each(state)
        self._in_play = _in_play(state, self._most)

    def run(self) -> None:
        """Balance the newly given partitions, then all; undo everything if that made nothing better."""
        state = self.state
        owners, loads = state.owners.copy(), state.loads.copy()
        movable = [block for block in state.free if len(state.subscribers[block[0]]) > 1]
        if not state.must_revoke:
            self._balance(movable)
        everything = state.blocks(np.ones(len(owners), dtype=np.bool_), least_subscribers=2)
        if self._balance(everything) and not state.is_fresh and self._score(state.loads) >= self._score(loads):
            state.owners, state.loads = owners, loads

    def _score(self, loads: IntArray) -> int:
        """Return the sum of load differences over all pairs of members in play."""
        rising = np.sort(loads[self._in_play])
        return int(((2 * np.arange(len(rising)) - len(rising) + 1) * rising).sum())

    def _balance(self, blocks: Sequence[Block]) -> bool:
        """Go through the blocks until a pass moves nothing; return whether anything moved."""
        for passes in range(MOST_PASSES):
            if not self._pass(blocks):
                self.has_moved |= passes > 0
                return passes > 0
        self.warnings += (f"no balance after {MOST_PASSES} passes: the real assignor may not end on this group",)
        return True

    def _pass(self, blocks: Sequence[Block]) -> bool:
        """Go through the blocks once; return whether anything moved."""
        moved = [self._balance_block(topic, partitions) for topic, partitions in blocks]
        return any(moved)

    def _balance_block(self, topic: int, partitions: IntArray) -> bool:
        """Go through one topic's partitions once, moving each from an owner that has two more than a subscriber."""
        members = self.state.subscribers[topic]
        position, has_moved = 0, False
        while position < len(partitions):
            loads = self.state.loads[members]
            lightest = int(np.argmin(loads))
            heavy_at = self._next_heavy(partitions, position, int(loads[lightest]) + 1)
            if heavy_at < len(partitions):
                self._move(int(partitions[heavy_at]), int(members[lightest]))
                has_moved = True
            position = heavy_at + 1
        return has_moved

    def _next_heavy(self, partitions: IntArray, position: int, limit: int) -> int:
        """Return where, from ``position`` on, the first partition is whose owner has more than ``limit``; else the end.

        Tries a few first, as the next one is mostly near.
        """
        width = FIRST_WIDTH
        while position < len(partitions):
            heavy = self.state.loads[self.state.owners[partitions[position : position + width]]] > limit
            step = int(np.argmax(heavy))
            if heavy[step]:
                return position + step
            position += width
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


class ClassFailsError(Exception):
    """The real class would raise here, or not end."""


class _Literally(_Balancing):
    """The same, partition by partition as the class does it: needed only when an old claim leads outside the rules.

    Such a claim can move a partition when no other one could, and what it leads to can pass for balanced.
    """

    def _balance(self, blocks: Sequence[Block]) -> bool:
        moved = super()._balance(blocks)
        if self.warnings:
            raise ClassFailsError
        return moved

    def _pass(self, blocks: Sequence[Block]) -> bool:
        has_moved, is_balanced = False, self._is_balanced()
        for topic, partitions in blocks:
            for partition in partitions.tolist():
                if is_balanced:
                    return has_moved
                if self._consider(topic, partition):
                    has_moved, is_balanced = True, self._is_balanced()
        return has_moved

    def _consider(self, topic: int, partition: int) -> bool:
        """Move the partition if it should; return whether something moved."""
        loads, members = self.state.loads, self.state.subscribers[topic]
        old = int(self._previous[partition])
        if old != NOBODY and not self._in_play[old]:
            raise ClassFailsError
        lightest = int(members[np.argmin(loads[members])])
        least = int(loads[lightest] if old == NOBODY else min(loads[lightest], loads[old]))
        if loads[self.state.owners[partition]] <= least + 1:
            return False
        self._move(partition, lightest)
        return True

    def _is_balanced(self) -> bool:
        """Return what the class takes for balanced: a member at its most is passed over, whatever it owns."""
        loads = self.state.loads
        playing = loads[self._in_play]
        if len(playing) == 0 or playing.max() - playing.min() <= 1:
            return True
        for topic, members in enumerate(self.state.subscribers):
            asking = members[self._in_play[members] & (loads[members] != self._most[members])]
            owners = self.state.owners[self.state.group.topics.block(topic)]
            if len(asking) and loads[owners].max() > loads[asking].min() + 1:
                return False
        return True


def _most_each(state: _State) -> IntArray:
    """Return how many partitions each member's topics have."""
    most = np.zeros(state.group.member_count, dtype=np.intp)
    for topic, members in enumerate(state.subscribers):
        most[members] += state.group.topics.sizes[topic]
    return most


def _in_play(state: _State, most: IntArray) -> BoolArray:
    """Return the members whose partitions can change: they could have more, or share a topic they own of."""
    group = state.group
    shared = np.array([len(members) > 1 for members in group.subscribers], dtype=np.bool_)
    owns_shared = np.zeros(group.member_count, dtype=np.bool_)
    owned = np.flatnonzero(state.owners != NOBODY)
    owns_shared[state.owners[owned[shared[group.topics.topic_of[owned]]]]] = True
    return np.asarray((state.loads < most) | owns_shared, dtype=np.bool_)
