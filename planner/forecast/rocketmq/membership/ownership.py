"""Which client owns what when all see the same members: before the change, after it, and under any one view."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.allocation.group import allocate_group
from planner.allocation.ordering import java_sorted
from planner.allocation.strategy import Holdings
from planner.errors import BadInputError
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import Booleans, Indexes, Scenario, Topic
from planner.forecast.rocketmq.membership.unknown_ids import Names

NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """Clients that own each queue before, and after in each trial; NOBODY where none does.

    ``shown``: those after the change where unknown ids sort last, as the answer shows it.
    """

    before: Indexes
    after: Indexes
    shown: Indexes

    @property
    def moves(self) -> Booleans:
        """Return by trial and queue whether it goes from one owner to another."""
        moves: Booleans = (self.before != self.after) & (self.before != NOBODY) & (self.after != NOBODY)
        return moves


def find_owners(scenario: Scenario, names: Names, before: Booleans) -> Owners:
    """Return the owning clients of all queues, before, and after in every trial's placement of unknown ids."""
    client = np.array([*(process.client for process in scenario.processes), NOBODY])
    placements = np.arange(len(names.placements))
    after = client[first_process(_state_matrices(scenario, names, AFTER, scenario.final, placements))]
    return Owners(client[first_process(before)], after[names.of_trial], after[0])


def state_matrix(
    scenario: Scenario, names: Names, route: int, members: tuple[int, ...], placement: int = 0
) -> Booleans:
    """Return by process and queue who owns what when everybody sees these members, each under its own strategy."""
    owned: Booleans = _state_matrices(scenario, names, route, members, np.array([placement]))[0]
    return owned


def _state_matrices(
    scenario: Scenario, names: Names, route: int, members: tuple[int, ...], placements: Indexes
) -> Booleans:
    """Return the state matrix under each of these placements."""
    owned = np.zeros((len(placements), len(scenario.processes), len(scenario.queues)), dtype=bool)
    listed = np.zeros((len(placements), len(scenario.processes)), dtype=bool)
    listed[:, list(members)] = True
    everywhere = np.full(len(placements), route, dtype=np.intp)
    for strategy in {scenario.processes[member].strategy for member in members}:
        mine = [member for member in members if scenario.processes[member].strategy == strategy]
        side = np.full(len(placements), strategy, dtype=np.intp)
        for topic in scenario.topics:
            owned_of_topic = ownership_matrices(
                scenario, names, topic, AllocationInputs(everywhere, side, placements, listed)
            )
            owned[:, mine] |= owned_of_topic[:, mine]
    return owned


@dataclass(frozen=True, slots=True, eq=False)
class AllocationInputs:
    """What views show, one in each row: the route, the strategy, the placement of unknown ids, which processes are
    listed.

    The first three are indexes, by view; ``listed`` is by view and process.
    """

    route: Indexes
    strategy: Indexes
    placement: Indexes
    listed: Booleans


def ownership_matrices(scenario: Scenario, names: Names, topic: Topic, inputs: AllocationInputs) -> Booleans:
    """Return by view, process and queue who owns what when everybody allocates over the members that the view lists.

    A member that does not subscribe to the topic leaves its share to nobody.
    """
    owned = np.zeros((*inputs.listed.shape, len(scenario.queues)), dtype=bool)
    first = _first_processes(scenario)
    order, is_doubled = _sorted_members(scenario, names, inputs)
    counts = inputs.listed.sum(axis=1)
    kinds, kind = np.unique(
        np.column_stack([inputs.route, inputs.strategy, counts, is_doubled]), axis=0, return_inverse=True
    )
    for number, (route, strategy, count, doubled) in enumerate(kinds.tolist()):
        rows = np.flatnonzero(kind.ravel() == number)
        queues = topic.queues[route]
        # Where only positions count, all rows of a kind share one answer.
        is_shared = scenario.strategies[strategy].is_positional and not doubled
        for some in (rows,) if is_shared else rows[:, None]:
            members = first[order[some, :count]]
            ids = names.placements[inputs.placement[some[0]]]
            listed = [ids[scenario.processes[member].client] for member in members[0].tolist()]
            holdings = _holdings(scenario, topic, route, strategy, listed)
            owned[some[:, None], members[:, holdings.holders], queues[holdings.picks]] = True
    return owned[:, first] & scenario.subscribes if scenario.resubscribes else owned[:, first]


def _sorted_members(scenario: Scenario, names: Names, inputs: AllocationInputs) -> tuple[Indexes, Booleans]:
    """Return by view the listed processes as their ids sort in Java, all others after them; and whether ids are
    doubled."""
    used, row = np.unique(inputs.placement, return_inverse=True)
    ranks = np.array([_ranks(scenario, names.placements[placement]) for placement in used.tolist()], dtype=np.intp)
    keys = np.where(
        inputs.listed, ranks.reshape(len(used), len(scenario.processes))[row.ravel()], len(scenario.clients)
    )
    order = np.argsort(keys, axis=1, kind="stable")
    keys = np.take_along_axis(keys, order, axis=1)
    is_doubled: Booleans = ((keys[:, 1:] == keys[:, :-1]) & (keys[:, 1:] < len(scenario.clients))).any(axis=1)
    return order, is_doubled


def _ranks(scenario: Scenario, ids: tuple[str, ...]) -> list[int]:
    """Return the position of each process's id among all ids in Java's order."""
    rank = {name: position for position, name in enumerate(java_sorted(set(ids)))}
    return [rank[ids[process.client]] for process in scenario.processes]


def _first_processes(scenario: Scenario) -> Indexes:
    """Return for each process the first one of the same client: that one stands for all of them."""
    first: dict[int, int] = {}
    return np.array(
        [first.setdefault(process.client, index) for index, process in enumerate(scenario.processes)], dtype=np.intp
    )


def _holdings(scenario: Scenario, topic: Topic, route: int, strategy: int, listed: Sequence[str]) -> Holdings:
    """Return which of them owns what among sorted ids; where only positions count, the answer for so many serves all of
    them."""
    rule = scenario.strategies[strategy]
    key = (strategy, topic.name, route, len(listed))
    only_positions_count = rule.is_positional and len(set(listed)) == len(listed)
    if only_positions_count and key in scenario.known:
        return scenario.known[key]
    queues = [scenario.queues[pick] for pick in topic.queues[route].tolist()]
    holdings = allocate_group(rule, queues, listed, scenario.request.group, is_sorted=True).holdings
    if only_positions_count:
        scenario.known[key] = holdings
    return holdings


def first_process(owned: Booleans) -> Indexes:
    """Return the first process that owns each queue, NOBODY where none does; processes are the last axis but one."""
    return np.where(owned.any(axis=-2), owned.argmax(axis=-2), NOBODY)


def refuse_doubled(scenario: Scenario, before: Booleans) -> None:
    """Refuse a group whose queues have several owners already: its duplicates would have no end."""
    doubled = np.flatnonzero(before.sum(axis=0) > 1)
    if len(doubled):
        raise BadInputError(
            f"strategy: gives {scenario.queues[doubled[0]]} to several clients before the change already, "
            f"so every message comes more than once; expected a strategy with one owner a queue"
        )
