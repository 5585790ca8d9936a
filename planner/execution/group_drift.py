"""A group against what the plan rests on: its members, queues, strategy and owners."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from planner.execution.codes import Code, Found
from planner.execution.course import deployment_of
from planner.execution.look import GroupLook, Look
from planner.execution.moves import Turn
from planner.execution.progress import Refusal
from planner.model.queues import Queue
from planner.rollout.migrations.expand import KIND as EXPAND
from planner.rollout.plan import OwnedQueues, ranges_of
from planner.rollout.steps import AwaitSettled, MarkVictims, PauseForPerson

MAX_LOOK_AGE: Final = timedelta(seconds=60)
"""A group seen longer ago than this is unknown."""
_NAMED: Final = 5


def group_before_start(turn: Turn) -> Found:
    """Yield all that differs from what the plan rests on."""
    group = seen_group(turn.look, turn.plan.group.group)
    if group is None:
        yield f"group {turn.plan.group.group} could not be read"
        return
    yield from _members(turn, group)
    yield from _queues(turn, group)
    yield from _strategy(group, {turn.plan.preconditions.strategy})
    yield from _settled(group)
    yield from _owners(turn, group)
    yield from _served_by(turn, group)


def group_under_way(turn: Turn) -> Found:
    """Yield what no longer fits before a later step. Members change with every step; an empty group has no strategy."""
    group = seen_group(turn.look, turn.plan.group.group)
    if group is None or group.members is None:
        yield f"group {turn.plan.group.group} could not be read"
        return
    yield from _queues(turn, group, _asked_for_more(turn))
    if group.members:
        named = {s.strategy for s in turn.plan.steps if isinstance(s, AwaitSettled) and s.group in (None, group.name)}
        yield from _strategy(group, {turn.plan.preconditions.strategy, *named})


def seen_group(look: Look, name: str) -> GroupLook | None:
    """Return what is known of a group, ``None`` where that is nothing or too old."""
    group = look.group(name)
    return group if group is not None and abs(look.at - group.at) <= MAX_LOOK_AGE else None


def _members(turn: Turn, group: GroupLook) -> Found:
    if group.members is None:
        yield f"the members of group {group.name} could not be read"
        return
    before, now = set(turn.plan.preconditions.members), set(group.members)
    if before != now:
        parts = [
            *([f"{_some(before - now)} left"] if before - now else []),
            *([f"{_some(now - before)} joined"] if now - before else []),
        ]
        yield Refusal(Code.MEMBERS_CHANGED, f"group {group.name} has other members than planned: {', '.join(parts)}")


def _asked_for_more(turn: Turn) -> bool:
    """True once the plan has asked a person to give a topic more queues."""
    begun = (turn.plan.steps[progress.index] for progress in turn.status.steps)
    return turn.plan.migration == EXPAND and any(isinstance(step, PauseForPerson) for step in begun)


def _queues(turn: Turn, group: GroupLook, may_have_more: bool = False) -> Found:
    if group.queues is None:
        yield f"the routes of group {group.name} could not be read"
        return
    planned, now = set(_spelt(turn.plan.forecast.owners_before)), {str(queue) for queue in group.queues}
    has_more = len(group.queues) > turn.plan.preconditions.queues
    if len(group.queues) != turn.plan.preconditions.queues and not (has_more and may_have_more):
        yield Refusal(
            Code.QUEUES_CHANGED,
            f"group {group.name} has {len(group.queues)} queues, the plan expects {turn.plan.preconditions.queues}"
            f"{_difference(planned, now)}",
        )
    elif planned - now:
        yield Refusal(
            Code.QUEUES_CHANGED, f"group {group.name} has other queues than planned{_difference(planned, now)}"
        )


def missing_queues(turn: Turn, group: GroupLook) -> str | None:
    """Return in a sentence which of the plan's queues the group's brokers do not tell of, ``None`` when of all.

    A RocketMQ name server forgets a broker that dies at once, so that its queues are in no route until it is back.
    """
    if group.name != turn.plan.group.group or group.queues is None:
        return None
    gone = set(_spelt(turn.plan.forecast.owners_before)) - {str(queue) for queue in group.queues}
    if not gone:
        return None
    verb = "is" if len(gone) == 1 else "are"
    return f"{_counted(len(gone), group.name)} {verb} in no route: {_some(gone)}: is their broker up?"


def _counted(queues: int, group: str) -> str:
    return f"{queues} {'queue' if queues == 1 else 'queues'} of group {group}"


def _difference(planned: set[str], now: set[str]) -> str:
    parts = [
        *([f"{_some(planned - now)} gone"] if planned - now else []),
        *([f"{_some(now - planned)} new"] if planned and now - planned else []),
    ]
    return f": {', '.join(parts)}" if parts else ""


def _strategy(group: GroupLook, allowed: set[str]) -> Found:
    if group.strategy is None:
        yield f"the strategy of group {group.name} is unknown"
    elif group.strategy not in allowed:
        yield Refusal(
            Code.STRATEGY_CHANGED,
            f"group {group.name} allocates by {group.strategy}, the plan expects {' or '.join(sorted(allowed))}",
        )


def _settled(group: GroupLook) -> Found:
    if group.is_rebalancing is None or group.misplaced is None or group.owners is None:
        yield f"whether group {group.name} is settled could not be read"
    elif group.is_rebalancing:
        yield Refusal(Code.NOT_SETTLED, f"group {group.name} is rebalancing")
    elif group.misplaced:
        verb = "is" if group.misplaced == 1 else "are"
        told = f"{_counted(group.misplaced, group.name)} {verb} not owned as {group.strategy} says"
        yield Refusal(Code.NOT_SETTLED, told)


def _owners(turn: Turn, group: GroupLook) -> Found:
    if group.owners is None:
        return
    now = {str(queue): owners for queue, owners in group.owners}
    planned = _spelt(turn.plan.forecast.owners_before)
    moved = [
        f"{queue} from {owner} to {' and '.join(now.get(queue, ())) or 'nobody'}"
        for queue, owner in sorted(planned.items())
        if now.get(queue, ()) != (owner,)
    ]
    if moved:
        told = f"{_counted(len(moved), group.name)} changed owner since: {_some(moved)}"
        yield Refusal(Code.OWNERS_CHANGED, told)


def _served_by(turn: Turn, group: GroupLook) -> Found:
    found = turn.look.deployment(turn.plan.deployment)
    if not group.pods or found is None or found.facts is None or found.facts.pods is None:
        return
    own = {pod.name for pod in found.facts.pods}
    others = {pod for _, pod in group.pods}
    if not own & others:
        yield Refusal(
            Code.SERVES_OTHER_GROUP,
            f"no member of group {group.name} runs in Deployment {found.name}; they run in {_some(others)}",
        )


def missing_victims(turn: Turn, step: MarkVictims) -> Found:
    """Yield why the pods that are to go cannot be marked: gone, or running other members than the plan says."""
    name = deployment_of(turn.plan, step)
    found = turn.look.deployment(name)
    if found is None or found.live_pods is None:
        yield f"the pods of Deployment {name} could not be read"
        return
    live = {pod.name for pod in found.live_pods}
    group = seen_group(turn.look, turn.plan.group.group)
    pods = dict(group.pods) if group else {}
    for victim in step.victims:
        if victim.pod not in live:
            yield Refusal(Code.VICTIM_GONE, f"pod {victim.pod}, which is to stop, is no longer in Deployment {name}")
        for member in victim.members:
            if pods.get(member, victim.pod) != victim.pod:
                yield Refusal(
                    Code.VICTIM_MOVED, f"member {member} runs in pod {pods[member]}, the plan expects {victim.pod}"
                )


def in_use(turn: Turn, name: str) -> Found:
    """Yield why the offsets of a group cannot be set: it has members, who would write their own over them."""
    group = seen_group(turn.look, name)
    if group is None or group.members is None:
        yield f"whether group {name} has members could not be read"
    elif group.members:
        yield Refusal(Code.GROUP_IN_USE, f"group {name} has members: {_some(group.members)}")


def moved_queues(before: Sequence[OwnedQueues], owners: Iterable[tuple[Queue, tuple[str, ...]]]) -> int:
    """Return how many queues have another owner than before."""
    planned = _spelt(before)
    return sum(owned != (planned.get(str(queue)),) for queue, owned in owners)


def _spelt(owned: Sequence[OwnedQueues]) -> dict[str, str]:
    """Return queue as text -> owner, out of the plan's ranges: ``orders/broker-a/0-3,6`` is five queues."""
    spelt: dict[str, str] = {}
    for entry in owned:
        for place in entry.queues:
            head, ranges = ranges_of(place)
            for first, last in ranges:
                spelt.update(dict.fromkeys((f"{head}/{number}" for number in range(first, last + 1)), entry.consumer))
    return spelt


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")
