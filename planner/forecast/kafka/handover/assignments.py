"""Which partitions each member gets in a round: the assignors themselves, each different round computed once.

A *state* is who owns which partition by which assignor; states are numbered as they are met. Number 0 is the one before
the change.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.kafka.assignment import ASSIGNORS, Assignor, find_assignor
from planner.allocation.kafka.own import OwnAssignor
from planner.allocation.kafka.sticky import cooperative_first, librdkafka_first
from planner.forecast.kafka.handover.member_sets import MemberSets
from planner.forecast.kafka.membership.scenario import AFTER, BEFORE, NOBODY, Booleans, Indexes, Scenario
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

    ``state``: the number of the state after it; ``revokers``: processes that lose a partition and must come again.
    """

    state: int
    revokers: frozenset[int]


class Assignments:
    """The states that the trials of one scenario run through."""

    def __init__(self, scenario: Scenario, names: Names) -> None:
        self._scenario, self._member_sets = scenario, MemberSets(scenario, names)
        self._index = {partition: index for index, partition in enumerate(scenario.partitions)}
        self._states: list[Indexes] = []
        self._assignors: list[str] = []
        self._numbers: dict[tuple[bytes, str], int] = {}
        self._rounds: dict[tuple[int, bytes, int, int], Round] = {}
        self._own: dict[str, Assignor] = {}
        self._votes: dict[tuple[int, ...], str] = {}
        self._is_cooperative = np.array(
            [*(process.is_cooperative for process in scenario.processes), False], dtype=bool
        )
        self.is_determined = True
        self._number(self._before(), scenario.request.strategy)

    def owners(self, state: int) -> Indexes:
        """Return the process that owns each partition in a state, NOBODY for none."""
        return self._states[state]

    def owners_in(self, states: Indexes) -> Indexes:
        """Return the owners in each of these states, one row a state."""
        return np.array([self._states[state] for state in states.tolist()])

    def play(self, states: Indexes, inside: Booleans, placement: Indexes, side: Indexes) -> tuple[Indexes, Booleans]:
        """Return by trial the state after a round of those inside, and which processes must revoke and come again."""
        keys = np.column_stack([states, placement, side, np.packbits(inside, axis=1)]).astype(np.int64)
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        after, revokes = np.zeros(len(first), dtype=np.intp), np.zeros((len(first), inside.shape[1]), dtype=bool)
        for number, trial in enumerate(first.tolist()):
            round_ = self.next(int(states[trial]), inside[trial], int(placement[trial]), int(side[trial]))
            after[number] = round_.state
            revokes[number, list(round_.revokers)] = True
        which = which.reshape(-1)
        return after[which], revokes[which]

    def without_sync(self, before: Indexes, after: Indexes, missed_sync: Booleans) -> Indexes:
        """Return by trial the state after a round of which some processes did not hear: they keep what they have."""
        states = after.copy()
        for trial in np.flatnonzero(missed_sync.any(axis=1)).tolist():
            old, new = self._states[before[trial]], self._states[after[trial]]
            has_missed_sync = np.append(missed_sync[trial], False)  # NOBODY's
            gets = np.where(has_missed_sync[new] & (old != new), NOBODY, new)
            states[trial] = self._number(np.where(has_missed_sync[old], old, gets), self._assignors[after[trial]])
        return states

    def forgotten(self, states: Indexes, fenced: Booleans) -> Indexes:
        """Return by trial the state in which those who lose all they have claim nothing.

        The sticky assignor remembers the assignment it got, whatever its member has lost.
        """
        result = states.copy()
        for trial in np.flatnonzero((fenced & self._is_cooperative[:-1]).any(axis=1)).tolist():
            owners = self._states[states[trial]]
            lost = np.append(fenced[trial], False) & self._is_cooperative
            result[trial] = self._number(np.where(lost[owners], NOBODY, owners), self._assignors[states[trial]])
        return result

    def succeeded(self, states: Indexes, old: int, new: int) -> Indexes:
        """Return by trial the state in which one process owns what another one had."""
        successors = {
            state: self._number(np.where(self._states[state] == old, new, self._states[state]), self._assignors[state])
            for state in np.unique(states).tolist()
        }
        return np.array([successors[state] for state in states.tolist()], dtype=np.intp)

    def keeps_assignor(self, states: Indexes, inside: Booleans) -> Booleans:
        """Return by trial whether those inside choose the assignor by which they own what they own."""
        groups, which = np.unique(inside, axis=0, return_inverse=True)
        chosen = [self._voted(tuple(np.flatnonzero(row).tolist())) for row in groups]
        pairs = zip(states.tolist(), which.reshape(-1).tolist(), strict=True)
        return np.array([self._assignors[state] == chosen[row] for state, row in pairs])

    def next(self, state: int, inside: Booleans, placement: int, side: int) -> Round:
        """Return the round that leads on from a state with these processes in the group."""
        key = (state, inside.tobytes(), placement, side)
        if key not in self._rounds:
            self._rounds[key] = self._round(state, tuple(np.flatnonzero(inside).tolist()), placement, side)
        return self._rounds[key]

    def settled(self, processes: Sequence[int], placement: int, side: int) -> Indexes:
        """Return the owners when these processes went on from the first state until nobody revokes any more."""
        inside = np.zeros(len(self._scenario.processes), dtype=bool)
        inside[list(processes)] = True
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
        scenario = self._scenario
        owners = np.full(len(scenario.partitions), NOBODY, dtype=np.intp)
        claims = [(index, member.owned) for index, member in enumerate(scenario.request.members) if member.owned]
        for index, owned in claims:
            for claim in owned or ():
                if claim in self._index:
                    owners[self._index[claim]] = index
        if claims or not scenario.initial:
            return owners
        return self._assign(owners, scenario.initial, scenario.request.strategy, 0, BEFORE)

    def _round(self, state: int, processes: tuple[int, ...], placement: int, side: int) -> Round:
        owners, last = self._states[state], self._assignors[state]
        if not processes:
            return Round(self._number(np.full_like(owners, NOBODY), last), frozenset())
        strategy = self._voted(processes)
        claimed = owners if self._remembers(strategy, last) else np.full_like(owners, NOBODY)
        after = self._assign(claimed, processes, strategy, placement, side)
        # Only who keeps its partitions in a round has something to revoke at its end (``onJoinComplete``).
        losers = set(owners[(owners != after) & self._is_cooperative[owners]].tolist())
        return Round(self._number(after, strategy), frozenset(losers.intersection(processes)))

    def _voted(self, processes: tuple[int, ...]) -> str:
        if processes not in self._votes:
            self._votes[processes] = self._vote(processes)
        return self._votes[processes]

    def _vote(self, processes: Sequence[int]) -> str:
        """Return the assignor that all know and most prefer (``ClassicGroup#selectProtocol``).

        Members of the consumer protocol alone have a say: a classic one cannot ask for the server's assignor.
        """
        by_server = [process for process in processes if self._scenario.processes[process].is_server_side]
        lists = [self._scenario.processes[process].assignors for process in by_server or processes]
        if len(set(lists)) == 1:
            return lists[0][0]
        common = set(lists[0]).intersection(*lists)
        votes = Counter(next((name for name in names if name in common), names[0]) for names in lists)
        most = max(votes.values())
        return min(
            (name for name, count in votes.items() if count == most), key=lambda name: (*_TIES, name).index(name)
        )

    def _assign(self, owners: Indexes, processes: Sequence[int], strategy: str, placement: int, side: int) -> Indexes:
        """Return the owners by one run of the assignor; what a cooperative leader withholds is nobody's."""
        assigned = np.full(len(self._scenario.partitions), NOBODY, dtype=np.intp)
        if not any(self._scenario.counts[side].values()):
            return assigned
        member_set = self._member_sets.find(processes, placement, side)
        run = self._runs(strategy)
        sends_claims = run.is_sticky if isinstance(run, OwnAssignor) else strategy in _CLAIM_SENDERS
        outcome = run(member_set.claiming(self._claimed(owners, strategy)) if sends_claims else member_set.group)
        self.is_determined = self.is_determined and outcome.is_determined
        assigned[member_set.indexes] = member_set.processes[outcome.owners]
        return assigned

    def _runs(self, strategy: str) -> Assignor:
        """Return the assignor of that name; a user's own is looked up once."""
        if strategy == COOPERATIVE:
            return cooperative_first if self._scenario.request.is_java else librdkafka_first
        if strategy in ASSIGNORS:
            return ASSIGNORS[strategy]
        if strategy not in self._own:
            request = self._scenario.request
            options = request.assignor_options if strategy == request.strategy else {}
            self._own[strategy] = find_assignor(strategy, options)
        return self._own[strategy]

    def _remembers(self, strategy: str, last: str) -> bool:
        """Return whether members claim what the last assignor gave them: user data holds what its own assignor gave."""
        if strategy == "sticky":
            return last in _REMEMBERED
        return strategy in ASSIGNORS or last == strategy

    def _claimed(self, owners: Indexes, strategy: str) -> Indexes:
        """Return the process that says it owns each partition: an eager one has none left when it joins."""
        return np.where(self._is_cooperative[owners], owners, NOBODY) if strategy == COOPERATIVE else owners


def first_side(scenario: Scenario) -> int:
    """Return which partition counts hold at first: those of before."""
    return BEFORE if scenario.expands else AFTER
