"""A group against what the plan rests on: its members, queues, strategy and owners."""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Final

from planner.execution.codes import Code, Differences
from planner.execution.moves import Reconcile
from planner.execution.observation import GroupObservation, Observation
from planner.execution.plan_targets import Basis, basis_of, deployment_of, group_of, with_kind
from planner.execution.progress import Refusal
from planner.model.queues import Queue
from planner.rollout.migrations.expand import KIND as EXPAND
from planner.rollout.migrations.shrink import KIND as SHRINK
from planner.rollout.migrations.subscription import KIND as SUBSCRIPTION
from planner.rollout.plan import OwnedQueues
from planner.rollout.queue_ranges import queues_named
from planner.rollout.steps import (
    AwaitLag,
    AwaitSettled,
    MarkVictims,
    PauseForPerson,
    StartConsumers,
    StopConsumers,
    UpdateTemplate,
    Victim,
)
from planner.text.words import queue_nouns, queues

MAX_OBSERVATION_AGE: Final = timedelta(seconds=60)
"""A group that was observed longer ago than this is unknown."""
_NAMED: Final = 5


def group_before_start(reconcile: Reconcile) -> Differences:
    """Yield all that differs from what the plan rests on, for every group that its pods serve."""
    for basis in reconcile.plan.bases:
        yield from _before_start(reconcile, basis)


def _before_start(reconcile: Reconcile, basis: Basis) -> Differences:
    group = fresh_group(reconcile.observation, basis.group.group)
    if group is None:
        yield f"group {basis.group.group} could not be read"
        return
    yield from _members(basis, group)
    yield from _queues(basis, group)
    if not basis.preconditions.members:
        return  # nobody owns a queue or reports a strategy
    yield from _strategy(group, {basis.preconditions.strategy})
    yield from _rebalance_drift(group, basis.group.system)
    yield from _owners(basis, group)
    yield from _pods_drift(reconcile, group)


def group_before_later_effect(reconcile: Reconcile) -> Differences:
    """Yield what no longer fits before a later step. Members change with every step; an empty group has no strategy."""
    for basis in reconcile.plan.bases:
        yield from _before_later_effect(reconcile, basis)


def _before_later_effect(reconcile: Reconcile, basis: Basis) -> Differences:
    group = fresh_group(reconcile.observation, basis.group.group)
    if group is None or group.members is None:
        yield f"group {basis.group.group} could not be read"
        return
    yield from _queues(basis, group, _may_have_more(reconcile), _may_be_gone(reconcile, basis, group))
    if group.members:
        waits = (step for step in reconcile.plan.steps if isinstance(step, AwaitSettled))
        strategies = {step.strategy for step in waits if group_of(reconcile.plan, step) == group.name}
        yield from _strategy(group, {basis.preconditions.strategy, *strategies})


def fresh_group(observation: Observation, name: str) -> GroupObservation | None:
    """Return what is known of a group, ``None`` where that is nothing or too old."""
    group = observation.group(name)
    return group if group is not None and abs(observation.at - group.at) <= MAX_OBSERVATION_AGE else None


def _members(basis: Basis, group: GroupObservation) -> Differences:
    if group.members is None:
        yield f"the members of group {group.name} could not be read"
        return
    before, now = set(basis.preconditions.members), set(group.members)
    if before != now:
        changes = [
            *([f"{_join_some(before - now)} left"] if before - now else []),
            *([f"{_join_some(now - before)} joined"] if now - before else []),
        ]
        yield Refusal(Code.MEMBERS_CHANGED, f"group {group.name} has other members than planned: {', '.join(changes)}")


def _may_have_more(reconcile: Reconcile) -> bool:
    """True once the plan has asked a person to give a topic more queues, or lets members come with other topics."""
    begun = (reconcile.plan.steps[progress.index] for progress in reconcile.status.steps)
    asked = reconcile.plan.migration == EXPAND and any(isinstance(step, PauseForPerson) for step in begun)
    return asked or _has_resubscribed(reconcile)


def _has_resubscribed(reconcile: Reconcile) -> bool:
    """True once the plan has let members start that may subscribe to other topics."""
    begun = (reconcile.plan.steps[progress.index] for progress in reconcile.status.steps)
    return reconcile.plan.migration == SUBSCRIPTION and any(
        isinstance(step, UpdateTemplate | StartConsumers) for step in begun
    )


def _may_be_gone(reconcile: Reconcile, basis: Basis, group: GroupObservation) -> set[str]:
    """Return the queues that the plan has asked a person to take away: what waited in them is worked off by then.

    Of a group that has come with other topics, all queues of the topics that it has none of any more.
    """
    if _has_resubscribed(reconcile):
        topics = {queue.topic for queue in group.queues or ()}
        planned = _owner_by_queue(basis.forecast.owners_before)
        return {queue for queue in planned if queue.partition("/")[0] not in topics}
    if reconcile.plan.migration != SHRINK:
        return set()
    last = max((progress.index for progress in reconcile.status.steps), default=0)
    done = (step for step in reconcile.plan.steps[:last] if isinstance(step, AwaitLag))
    return {queue for step in done for queue in queues_named(step.queues or ())}


def _queues(
    basis: Basis, group: GroupObservation, may_have_more: bool = False, may_be_gone: Collection[str] = ()
) -> Differences:
    if group.queues is None:
        yield f"the routes of group {group.name} could not be read"
        return
    planned, now = set(_owner_by_queue(basis.forecast.owners_before)), {str(queue) for queue in group.queues}
    gone = set(may_be_gone) - now
    planned -= gone
    system, expected = basis.group.system, basis.preconditions.queues - len(gone)
    has_more = len(group.queues) > expected
    if len(group.queues) != expected and not (has_more and may_have_more):
        yield Refusal(
            Code.QUEUES_CHANGED,
            f"group {group.name} has {queues(len(group.queues), system)}, "
            f"the plan expects {expected}{_difference(planned, now)}",
        )
    elif planned - now:
        yield Refusal(
            Code.QUEUES_CHANGED,
            f"group {group.name} has other {queue_nouns(system)} than planned{_difference(planned, now)}",
        )


def missing_queues(reconcile: Reconcile, group: GroupObservation) -> str | None:
    """Return in a sentence which of the plan's queues are in no route, ``None`` when of all.

    A RocketMQ name server forgets a broker that dies at once, so that its queues are in no route until it is back.
    """
    basis = basis_of(reconcile.plan, group.name)
    if basis is None or group.queues is None:
        return None
    present = {str(queue) for queue in group.queues}
    gone = set(_owner_by_queue(basis.forecast.owners_before)) - present - _may_be_gone(reconcile, basis, group)
    if not gone:
        return None
    verb = "is" if len(gone) == 1 else "are"
    subject = f"{queues(len(gone), basis.group.system)} of group {group.name}"
    return f"{subject} {verb} in no route: {_join_some(gone)}: is their broker up?"


def _difference(planned: set[str], now: set[str]) -> str:
    changes = [
        *([f"{_join_some(planned - now)} gone"] if planned - now else []),
        *([f"{_join_some(now - planned)} new"] if planned and now - planned else []),
    ]
    return f": {', '.join(changes)}" if changes else ""


def _strategy(group: GroupObservation, allowed: set[str]) -> Differences:
    if group.strategy is None:
        yield f"the strategy of group {group.name} is unknown"
    elif group.strategy not in allowed:
        yield Refusal(
            Code.STRATEGY_CHANGED,
            f"group {group.name} allocates by {group.strategy}, the plan expects {' or '.join(sorted(allowed))}",
        )


def _rebalance_drift(group: GroupObservation, system: str) -> Differences:
    if group.is_rebalancing is None or group.misplaced is None or group.owners is None:
        yield f"whether group {group.name} is settled could not be read"
    elif group.is_rebalancing:
        yield Refusal(Code.NOT_SETTLED, f"group {group.name} is rebalancing")
    elif group.misplaced:
        verb = "is" if group.misplaced == 1 else "are"
        subject = f"{queues(group.misplaced, system)} of group {group.name}"
        yield Refusal(Code.NOT_SETTLED, f"{subject} {verb} not owned as {group.strategy} says")


def _owners(basis: Basis, group: GroupObservation) -> Differences:
    if group.owners is None:
        return
    now = {str(queue): owners for queue, owners in group.owners}
    planned = _owner_by_queue(basis.forecast.owners_before)
    moved = [
        f"{queue} from {owner} to {' and '.join(now.get(queue, ())) or 'nobody'}"
        for queue, owner in sorted(planned.items())
        if now.get(queue, ()) != (owner,)
    ]
    if moved:
        noun = queues(len(moved), basis.group.system)
        yield Refusal(Code.OWNERS_CHANGED, f"{noun} of group {group.name} changed owner since: {_join_some(moved)}")


def _pods_drift(reconcile: Reconcile, group: GroupObservation) -> Differences:
    observed = [reconcile.observation.deployment(name) for name in reconcile.plan.replicas_before]
    known = [each.facts.pods for each in observed if each is not None and each.facts and each.facts.pods is not None]
    if not group.pods or len(known) < len(observed):
        return
    own = {pod.name for pods in known for pod in pods}
    others = {pod for _, pod in group.pods}
    if not own & others:
        yield Refusal(
            Code.SERVES_OTHER_GROUP,
            f"no member of group {group.name} runs in {reconcile.plan.target}; they run in {_join_some(others)}",
        )


def missing_victims(reconcile: Reconcile, step: MarkVictims | StopConsumers, victims: Sequence[Victim]) -> Differences:
    """Yield why the pods that are to go cannot be stopped: gone, or running other members than the plan says."""
    name = deployment_of(reconcile.plan, step)
    deployment = reconcile.observation.deployment(name)
    if deployment is None or deployment.live_pods is None:
        yield f"the pods of {with_kind(reconcile.plan, name)} could not be read"
        return
    live = {pod.name for pod in deployment.live_pods}
    group = fresh_group(reconcile.observation, reconcile.plan.group.group)
    pods = dict(group.pods) if group else {}
    for victim in victims:
        if victim.pod not in live:
            yield Refusal(
                Code.VICTIM_GONE,
                f"pod {victim.pod}, which is to stop, is no longer in {with_kind(reconcile.plan, name)}",
            )
        for member in victim.members:
            if pods.get(member, victim.pod) != victim.pod:
                yield Refusal(
                    Code.VICTIM_MOVED, f"member {member} runs in pod {pods[member]}, the plan expects {victim.pod}"
                )


def in_use(reconcile: Reconcile, name: str) -> Differences:
    """Yield why the offsets of a group cannot be set: it has members, which would write their own over them."""
    group = fresh_group(reconcile.observation, name)
    if group is None or group.members is None:
        yield f"whether group {name} has members could not be read"
    elif group.members:
        yield Refusal(Code.GROUP_IN_USE, f"group {name} has members: {_join_some(group.members)}")


def moved_queues(before: Sequence[OwnedQueues], owners: Iterable[tuple[Queue, tuple[str, ...]]]) -> int:
    """Return how many of the queues that had an owner have another one now.

    Forecasts count like that: a new topic's queue does not move, as it had none. Of a group at zero, where none had,
    each that gets its first owner counts (``outcome_around_zero``).
    """
    planned = _owner_by_queue(before)
    if not planned:
        return sum(bool(owned) for _, owned in owners)
    return sum(str(queue) in planned and owned != (planned[str(queue)],) for queue, owned in owners)


def _owner_by_queue(owned: Sequence[OwnedQueues]) -> dict[str, str]:
    """Return queue as text -> owner, out of the plan's ranges: ``orders/broker-a/0-3,6`` is five queues."""
    owner_by_queue: dict[str, str] = {}
    for entry in owned:
        owner_by_queue.update(dict.fromkeys(queues_named(entry.queues), entry.consumer))
    return owner_by_queue


def _join_some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")
