"""``as_awaited``: a group's ownership, compared with the strategy and the parameters that the plan's own step states.

Brokers and members report a strategy's name and not its parameters, and a policy those from before. So where a plan
brings other parameters, or members of unknown machine rooms, its steps say them, and ownership is compared with
these for the members that really came.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from planner.allocation.group import allocate_group
from planner.allocation.registry import KINDS, NEARBY, find_strategy
from planner.errors import BadInputError
from planner.execution.observation import GroupObservation
from planner.execution.plan_targets import group_of
from planner.execution.ports import StoredPlan
from planner.model.queues import MessageQueue, Queue
from planner.rollout.steps import AwaitSettled
from planner.snapshot.strategy import STRATEGY_OF_CLASS

_CLIENTS_OWN: Final = frozenset(STRATEGY_OF_CLASS.values())
"""Strategies that the client brings along: members report these by name."""


def as_awaited(stored: StoredPlan, group: GroupObservation) -> GroupObservation:
    """Return the observation by the strategy of the last step begun that awaits this group.

    It stays as it is where that step states no parameters, or where members say that they run another strategy.
    ``misplaced`` is ``None`` where the strategy cannot answer for these members.
    """
    step = _last_awaited(stored, group.name)
    if (
        step is None
        or step.options is None
        or not group.members
        or not _may_run(step.strategy, group.reported_strategies)
    ):
        return group
    return replace(group, strategy=step.strategy, misplaced=_count_misplaced(step, group))


def _last_awaited(stored: StoredPlan, group: str) -> AwaitSettled | None:
    begun = [stored.plan.steps[progress.index] for progress in stored.status.steps]
    awaited = [
        progress
        for progress in begun
        if isinstance(progress, AwaitSettled) and group_of(stored.plan, progress) == group
    ]
    return awaited[-1] if awaited else None


def _may_run(strategy: str, names: tuple[str, ...]) -> bool:
    """Return whether the reported names go with the strategy: a user's own class may be any that is not a client's."""
    base = NEARBY if strategy.startswith(NEARBY) else strategy
    return all(name == base or (name not in KINDS and base not in _CLIENTS_OWN) for name in names)


def _count_misplaced(step: AwaitSettled, group: GroupObservation) -> int | None:
    members = group.members or ()
    queues = [queue for queue in group.queues or () if isinstance(queue, MessageQueue)]
    if group.owners is None or len(queues) != len(group.queues or ()):
        return None
    try:
        strategy = find_strategy(step.strategy, step.options_for(members))
        expected = _by_queue(allocate_group(strategy, queues, members, group.name).answer())
    except BadInputError:
        return None
    return sum(set(owners) != expected[queue] for queue, owners in group.owners)


def _by_queue(owned: Mapping[str, list[MessageQueue]]) -> dict[Queue, set[str]]:
    owners: dict[Queue, set[str]] = defaultdict(set)
    for member, queues in owned.items():
        for queue in queues:
            owners[queue].add(member)
    return owners
