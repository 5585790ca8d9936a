"""Plan against a fresh look: whatever differs is a refusal with a code and a sentence; what is unknown, a hold.

``before_start`` says whether the plan still fits before anything was changed, ``under_way`` before each later effect.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from planner.execution.course import (
    created,
    deployment_of,
    deployments,
    has_effect,
    offsets_group,
    replicas_after,
)
from planner.execution.look import DeploymentLook, GroupLook, Look, Rival
from planner.execution.moves import Turn
from planner.execution.progress import Refusal
from planner.model.queues import Queue
from planner.rollout.plan import OwnedQueues
from planner.rollout.steps import AwaitSettled, CloneOffsets, MarkVictims, ResetOffsets, UpdateTemplate

MAX_SNAPSHOT_AGE: Final = timedelta(hours=1)
"""A plan that is valid for longer must still not rest on an older snapshot: load and members have other times."""
MAX_LOOK_AGE: Final = timedelta(seconds=60)
"""A group seen longer ago than this is unknown."""
_NAMED: Final = 5


class Code(StrEnum):
    """What differs. One word each, to count by and to look up in docs/execution.md."""

    WITHDRAWN = "Withdrawn"
    EXPIRED = "Expired"
    OLD_SNAPSHOT = "OldSnapshot"
    DIGEST_DIFFERS = "DigestDiffers"
    POLICY_CHANGED = "PolicyChanged"
    DEPLOYMENT_MISSING = "DeploymentMissing"
    NAME_TAKEN = "NameTaken"
    REPLICAS_CHANGED = "ReplicasChanged"
    ROLLOUT_PAUSED = "RolloutPaused"
    REVISION_CHANGED = "RevisionChanged"
    AUTOSCALED = "Autoscaled"
    CLAIMED = "Claimed"
    OTHER_PLAN = "OtherPlan"
    SERVES_OTHER_GROUP = "ServesOtherGroup"
    MEMBERS_CHANGED = "MembersChanged"
    QUEUES_CHANGED = "QueuesChanged"
    OWNERS_CHANGED = "OwnersChanged"
    STRATEGY_CHANGED = "StrategyChanged"
    NOT_SETTLED = "NotSettled"
    VICTIM_GONE = "VictimGone"
    VICTIM_MOVED = "VictimMoved"
    GROUP_IN_USE = "GroupInUse"


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs, and what nobody knows; both empty means that the plan fits."""

    refusals: tuple[Refusal, ...]
    unknowns: tuple[str, ...]


Found = Iterator[Refusal | str]
"""A refusal, or a sentence on what is unknown."""


def before_start(turn: Turn) -> Drift:
    """Return all that differs from what the plan rests on. Right before the first effect, and only then."""
    return _sorted(
        [
            *_times(turn),
            *_policy(turn),
            *_deployments(turn),
            *_autoscalers(turn),
            *_others(turn),
            *_group(turn),
            *_victims(turn),
            *_offset_groups(turn),
        ]
    )


def under_way(turn: Turn) -> Drift:
    """Return what no longer fits before a later effect: what this plan has changed itself is no difference."""
    return _sorted([*_policy(turn), *_autoscalers(turn), *_others(turn), *_group_under_way(turn)])


def _sorted(found: Iterable[Refusal | str]) -> Drift:
    listed = list(dict.fromkeys(found))
    return Drift(
        tuple(one for one in listed if isinstance(one, Refusal)), tuple(one for one in listed if isinstance(one, str))
    )


def _times(turn: Turn) -> Found:
    plan, now = turn.plan, turn.now
    if now >= plan.valid_until:
        yield expired(turn)
    age = now - plan.snapshot.at
    if age > MAX_SNAPSHOT_AGE:
        yield Refusal(
            Code.OLD_SNAPSHOT,
            f"the snapshot that the plan rests on is {age.total_seconds() / 60:.0f} min old, "
            f"{MAX_SNAPSHOT_AGE.total_seconds() / 60:.0f} min are allowed",
        )


def expired(turn: Turn) -> Refusal:
    """Return the refusal of a plan whose time is over."""
    return Refusal(
        Code.EXPIRED, f"the plan was valid until {turn.plan.valid_until:%Y-%m-%d %H:%M:%S %Z}: make a new one"
    )


def digest_differs(turn: Turn) -> Refusal | None:
    """Return why the approval does not hold for the plan as it stands, ``None`` when it does."""
    approval = turn.stored.requests.approval
    if approval is None or approval.digest == turn.stored.digest:
        return None
    return Refusal(
        Code.DIGEST_DIFFERS,
        f"the approval names digest {approval.digest}, the plan has {turn.stored.digest}: read and approve it again",
    )


def _policy(turn: Turn) -> Found:
    made_under, found = turn.stored.policy_digest, turn.look.policy_digest
    if made_under is None:
        return
    if found is None:
        yield f"policy {turn.plan.policy} could not be read"
    elif found != made_under:
        yield Refusal(
            Code.POLICY_CHANGED,
            f"policy {turn.plan.policy} was changed after the plan was made: its digest is {found}, not {made_under}",
        )


def _deployments(turn: Turn) -> Found:
    new = created(turn.plan)
    for name in deployments(turn.plan):
        found = turn.look.deployment(name)
        if found is None:
            yield f"Deployment {name} could not be read"
        elif name in new:
            if found.facts is not None:
                yield Refusal(Code.NAME_TAKEN, f"the plan creates Deployment {name}, but there is one already")
        elif found.facts is None:
            yield Refusal(Code.DEPLOYMENT_MISSING, f"there is no Deployment {name}")
        else:
            yield from _counts(turn, found)


def _counts(turn: Turn, found: DeploymentLook) -> Found:
    facts, expected = found.facts, replicas_after(turn.plan, found.name, -1)
    assert facts is not None
    if expected is not None and facts.replicas != expected:
        yield Refusal(
            Code.REPLICAS_CHANGED, f"Deployment {found.name} has {facts.replicas} replicas, the plan expects {expected}"
        )
    yield from _template(turn, found)
    if found.ready is None:
        yield f"the pods of Deployment {found.name} could not be read"
    elif not facts.is_observed or found.ready != facts.replicas:
        yield f"{found.ready} of {facts.replicas} pods of Deployment {found.name} are ready"


def _template(turn: Turn, found: DeploymentLook) -> Found:
    updates = [
        s for s in turn.plan.steps if isinstance(s, UpdateTemplate) and deployment_of(turn.plan, s) == found.name
    ]
    if updates and found.facts is not None and found.facts.is_paused:
        yield Refusal(Code.ROLLOUT_PAUSED, f"Deployment {found.name} is paused: a new template would replace no pod")
    if updates and found.revision is None:
        yield f"the revision of Deployment {found.name} could not be read"
    elif updates and found.revision != updates[0].from_revision:
        yield Refusal(
            Code.REVISION_CHANGED,
            f"Deployment {found.name} is at revision {found.revision}, the plan expects {updates[0].from_revision}",
        )


def _autoscalers(turn: Turn) -> Found:
    for found in _there(turn):
        assert found.facts is not None
        scalers = found.facts.active_autoscalers
        if scalers is None:
            yield f"whether an autoscaler owns Deployment {found.name} could not be read"
        for scaler in scalers or ():
            yield Refusal(
                Code.AUTOSCALED,
                f"{scaler.kind} {scaler.name} sets the replicas of Deployment {found.name}: it would undo the plan",
            )


def _others(turn: Turn) -> Found:
    rivals = turn.look.rivals
    if rivals is None:
        yield "whether another plan is under way could not be read"
        return
    for rival in rivals:
        if rival.phase.is_under_way and _same_ground(turn, rival):
            yield Refusal(
                Code.OTHER_PLAN, f"plan {rival.name} is {rival.phase} on the same {_same_ground(turn, rival)}"
            )
    for found in _there(turn):
        yield from _claims(turn, found, rivals)


def _claims(turn: Turn, found: DeploymentLook, rivals: Sequence[Rival]) -> Found:
    if found.claim is None or found.claim.plan == turn.key:
        return
    holder = next((rival for rival in rivals if rival.plan == found.claim.plan), None)
    if holder is None or (holder.phase.is_under_way and _same_ground(turn, holder)):
        return  # the claim of a plan that is over binds nobody; one that is under way was named before
    sentence = f"plan {holder.name} ({holder.phase}) has claimed Deployment {found.name}"
    yield Refusal(Code.CLAIMED, sentence) if holder.phase.is_under_way else sentence


def _same_ground(turn: Turn, rival: Rival) -> str | None:
    ref = turn.plan.group
    if rival.group == (ref.system, ref.cluster, ref.group):
        return f"group {ref.group}"
    shared = sorted(set(rival.deployments) & set(deployments(turn.plan)))
    return f"Deployment {shared[0]}" if shared else None


def _there(turn: Turn) -> list[DeploymentLook]:
    return [found for name in deployments(turn.plan) if (found := turn.look.deployment(name)) and found.facts]


def _group(turn: Turn) -> Found:
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


def _group_under_way(turn: Turn) -> Found:
    """A group that a step has emptied shows no strategy, and its members change with every step."""
    group = seen_group(turn.look, turn.plan.group.group)
    if group is None or group.members is None:
        yield f"group {turn.plan.group.group} could not be read"
        return
    yield from _queues(turn, group)
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


def _queues(turn: Turn, group: GroupLook) -> Found:
    if group.queues is None:
        yield f"the routes of group {group.name} could not be read"
        return
    planned, now = set(_spelt(turn.plan.forecast.owners_before)), {str(queue) for queue in group.queues}
    if len(group.queues) != turn.plan.preconditions.queues:
        yield Refusal(
            Code.QUEUES_CHANGED,
            f"group {group.name} has {len(group.queues)} queues, the plan expects {turn.plan.preconditions.queues}"
            f"{_difference(planned, now)}",
        )
    elif planned - now:
        yield Refusal(
            Code.QUEUES_CHANGED, f"group {group.name} has other queues than planned{_difference(planned, now)}"
        )


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
        yield Refusal(
            Code.NOT_SETTLED, f"{group.misplaced} queues of group {group.name} are not owned as {group.strategy} says"
        )


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
        yield Refusal(
            Code.OWNERS_CHANGED, f"{len(moved)} queues of group {group.name} changed owner since: {_some(moved)}"
        )


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


def _victims(turn: Turn) -> Found:
    for step in turn.plan.steps:
        if isinstance(step, MarkVictims):
            yield from missing_victims(turn, step)


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


def _offset_groups(turn: Turn) -> Found:
    for step in turn.plan.steps:
        if isinstance(step, CloneOffsets | ResetOffsets) and offsets_group(step) != turn.plan.group.group:
            yield from in_use(turn, offsets_group(step))


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


def is_first_effect(turn: Turn) -> bool:
    """True while no step that was begun before has an effect: the old state was never left."""
    return not any(has_effect(step) for step in turn.plan.steps[: turn.status.step])


def _spelt(owned: Sequence[OwnedQueues]) -> dict[str, str]:
    """Return queue as text -> owner, out of the plan's ranges: ``orders/broker-a/0-3,6`` is five queues."""
    spelt = {}
    for entry in owned:
        for place in entry.queues:
            head, _, ranges = place.rpartition("/")
            for part in ranges.split(","):
                first, _, last = part.partition("-")
                spelt.update(
                    dict.fromkeys((f"{head}/{n}" for n in range(int(first), int(last or first) + 1)), entry.consumer)
                )
    return spelt


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")
