"""Who gets what in a round: the assignors themselves, each different round computed once.

A *state* is who owns which partition by which assignor; states are numbered as they are met. Number 0 is the one before
the change.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.kafka.assignment import ASSIGNORS
from planner.allocation.kafka.sticky import cooperative_first, librdkafka_first
from planner.forecast.kafka.handover.member_sets import Rosters
from planner.forecast.kafka.membership.scenario import AFTER, BEFORE, NOBODY, Booleans, Indexes, World
from planner.forecast.kafka.membership.unknown_ids import Names
from planner.forecast.kafka.request.request import COOPERATIVE, OF_PROTOCOL
from planner.forecast.kafka.request.settings import CONSUMER

MOST_ROUNDS = 20
_TIES = ("sticky", "range", "roundrobin", COOPERATIVE)
"""Equal votes are settled by hash order (``ClassicGroup#selectProtocol``, 3.3)."""
_REMEMBERED = frozenset({"sticky", *OF_PROTOCOL[CONSUMER]})
"""Whose answers the sticky assignor remembers (``StickyAssignor#onAssignment``): its own, and the server's, which
hosted members are given under the first name of their own list (``classicGroupJoinToConsumerGroup``, 4.3)."""
_CLAIM_SENDERS = frozenset({"sticky", COOPERATIVE, "uniform", "range-server"})


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of a classic group, or one new target of a consumer group, decides.

    ``state``: the number of the state after it; ``revokers``: lives that lose a partition and must come again.
    """

    state: int
    revokers: frozenset[int]


class Assignments:
    """The states that the trials of one world run through."""

    def __init__(self, world: World, names: Names) -> None:
        self._world, self._rosters = world, Rosters(world, names)
        self._place = {partition: index for index, partition in enumerate(world.partitions)}
        self._states: list[Indexes] = []
        self._assignors: list[str] = []
        self._numbers: dict[tuple[bytes, str], int] = {}
        self._rounds: dict[tuple[int, bytes, int, int], Round] = {}
        self._votes: dict[tuple[int, ...], str] = {}
        self._is_cooperative = np.array([*(life.is_cooperative for life in world.lives), False], dtype=bool)
        self.is_determined = True
        self._number(self._before(), world.request.strategy)

    def owners(self, state: int) -> Indexes:
        """Return the life that owns each partition in a state, NOBODY for none."""
        return self._states[state]

    def owners_in(self, states: Indexes) -> Indexes:
        """Return the owners in each of these states, one row a state."""
        return np.array([self._states[state] for state in states.tolist()])

    def play(self, states: Indexes, inside: Booleans, placement: Indexes, side: Indexes) -> tuple[Indexes, Booleans]:
        """Return by trial the state after a round of those inside, and which lives must revoke and come again."""
        keys = np.column_stack([states, placement, side, np.packbits(inside, axis=1)]).astype(np.int64)
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        after, revokes = np.zeros(len(first), dtype=np.intp), np.zeros((len(first), inside.shape[1]), dtype=bool)
        for number, trial in enumerate(first.tolist()):
            round_ = self.next(int(states[trial]), inside[trial], int(placement[trial]), int(side[trial]))
            after[number] = round_.state
            revokes[number, list(round_.revokers)] = True
        which = which.reshape(-1)
        return after[which], revokes[which]

    def unheard(self, before: Indexes, after: Indexes, deaf: Booleans) -> Indexes:
        """Return by trial the state after a round of which some lives did not hear: they keep what they have."""
        found = after.copy()
        for trial in np.flatnonzero(deaf.any(axis=1)).tolist():
            old, new = self._states[before[trial]], self._states[after[trial]]
            is_deaf = np.append(deaf[trial], False)  # NOBODY's
            gets = np.where(is_deaf[new] & (old != new), NOBODY, new)
            found[trial] = self._number(np.where(is_deaf[old], old, gets), self._assignors[after[trial]])
        return found

    def forgotten(self, states: Indexes, loses: Booleans) -> Indexes:
        """Return by trial the state in which those who lose all they have claim nothing.

        The sticky assignor remembers what it has been told, whatever its member has lost.
        """
        found = states.copy()
        for trial in np.flatnonzero((loses & self._is_cooperative[:-1]).any(axis=1)).tolist():
            owners = self._states[states[trial]]
            lost = np.append(loses[trial], False) & self._is_cooperative
            found[trial] = self._number(np.where(lost[owners], NOBODY, owners), self._assignors[states[trial]])
        return found

    def succeeded(self, states: Indexes, old: int, new: int) -> Indexes:
        """Return by trial the state in which one life owns what another one had."""
        found = {
            state: self._number(np.where(self._states[state] == old, new, self._states[state]), self._assignors[state])
            for state in np.unique(states).tolist()
        }
        return np.array([found[state] for state in states.tolist()], dtype=np.intp)

    def keeps_assignor(self, states: Indexes, inside: Booleans) -> Booleans:
        """Return by trial whether those inside choose the assignor by which they own what they own."""
        groups, which = np.unique(inside, axis=0, return_inverse=True)
        chosen = [self._voted(tuple(np.flatnonzero(row).tolist())) for row in groups]
        pairs = zip(states.tolist(), which.reshape(-1).tolist(), strict=True)
        return np.array([self._assignors[state] == chosen[row] for state, row in pairs])

    def next(self, state: int, inside: Booleans, placement: int, side: int) -> Round:
        """Return the round that leads on from a state with these lives in the group."""
        key = (state, inside.tobytes(), placement, side)
        if key not in self._rounds:
            self._rounds[key] = self._round(state, tuple(np.flatnonzero(inside).tolist()), placement, side)
        return self._rounds[key]

    def settled(self, lives: Sequence[int], placement: int, side: int) -> Indexes:
        """Return the owners when these lives went on from the first state until nobody revokes any more."""
        inside = np.zeros(len(self._world.lives), dtype=bool)
        inside[list(lives)] = True
        state = 0
        for _ in range(MOST_ROUNDS):
            round_ = self.next(state, inside, placement, side)
            state = round_.state
            if not round_.revokers:
                break
        return self._states[state]

    def _number(self, owners: Indexes, assignor: str) -> int:
        key = owners.tobytes(), assignor
        if key not in self._numbers:
            self._numbers[key] = len(self._states)
            self._states.append(owners)
            self._assignors.append(assignor)
        return self._numbers[key]

    def _before(self) -> Indexes:
        """Return what members own by their own word; where none says it, what the assignor gives a fresh group."""
        world = self._world
        owners = np.full(len(world.partitions), NOBODY, dtype=np.intp)
        claims = [(index, member.owned) for index, member in enumerate(world.request.members) if member.owned]
        for index, owned in claims:
            for claim in owned or ():
                if claim in self._place:
                    owners[self._place[claim]] = index
        if claims or not world.initial:
            return owners
        return self._assign(owners, world.initial, world.request.strategy, 0, BEFORE)

    def _round(self, state: int, lives: tuple[int, ...], placement: int, side: int) -> Round:
        owners, last = self._states[state], self._assignors[state]
        if not lives:
            return Round(self._number(np.full_like(owners, NOBODY), last), frozenset())
        strategy = self._voted(lives)
        claimed = np.full_like(owners, NOBODY) if strategy == "sticky" and last not in _REMEMBERED else owners
        after = self._assign(claimed, lives, strategy, placement, side)
        # Only who keeps its partitions in a round has something to revoke at its end (``onJoinComplete``).
        losers = set(owners[(owners != after) & self._is_cooperative[owners]].tolist())
        return Round(self._number(after, strategy), frozenset(losers.intersection(lives)))

    def _voted(self, lives: tuple[int, ...]) -> str:
        if lives not in self._votes:
            self._votes[lives] = self._vote(lives)
        return self._votes[lives]

    def _vote(self, lives: Sequence[int]) -> str:
        """Return the assignor that all know and most prefer (``ClassicGroup#selectProtocol``).

        Members of the consumer protocol alone have a say: a classic one cannot ask for the server's assignor.
        """
        by_server = [life for life in lives if self._world.lives[life].is_server_side]
        lists = [self._world.lives[life].assignors for life in by_server or lives]
        if len(set(lists)) == 1:
            return lists[0][0]
        common = set(lists[0]).intersection(*lists)
        votes = Counter(next((name for name in names if name in common), names[0]) for names in lists)
        most = max(votes.values())
        return min(
            (name for name, count in votes.items() if count == most), key=lambda name: (*_TIES, name).index(name)
        )

    def _assign(self, owners: Indexes, lives: Sequence[int], strategy: str, placement: int, side: int) -> Indexes:
        """Return the owners by one run of the assignor; what a cooperative leader withholds is nobody's."""
        found = np.full(len(self._world.partitions), NOBODY, dtype=np.intp)
        if not any(self._world.counts[side].values()):
            return found
        roster = self._rosters.find(lives, placement, side)
        run = ASSIGNORS[strategy]
        if strategy == COOPERATIVE:
            run = cooperative_first if self._world.request.is_java else librdkafka_first
        outcome = run(roster.claiming(self._claimed(owners, strategy)) if strategy in _CLAIM_SENDERS else roster.group)
        self.is_determined = self.is_determined and outcome.is_determined
        found[roster.places] = roster.lives[outcome.owners]
        return found

    def _claimed(self, owners: Indexes, strategy: str) -> Indexes:
        """Return the life that says it owns each partition: an eager one has none left when it joins."""
        return np.where(self._is_cooperative[owners], owners, NOBODY) if strategy == COOPERATIVE else owners


def first_side(world: World) -> int:
    """Return which partition counts hold at first: those of before."""
    return BEFORE if world.expands else AFTER
