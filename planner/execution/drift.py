"""Plan against a fresh look: whatever differs is a refusal with a code and a sentence; what is unknown, a hold.

``before_start`` says whether the plan still fits before anything was changed, ``under_way`` before each later effect.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from planner.execution.codes import Code, Found
from planner.execution.course import (
    created,
    deployment_of,
    deployments,
    has_effect,
    offsets_group,
    replicas_after,
)
from planner.execution.group_drift import group_before_start, group_under_way, in_use, missing_victims
from planner.execution.look import DeploymentLook, Rival
from planner.execution.moves import Turn
from planner.execution.progress import Refusal
from planner.execution.scalers import autoscaler_drift
from planner.rollout.bounds import from_the_future, outside_policy
from planner.rollout.steps import CloneOffsets, MarkVictims, ResetOffsets, StopConsumers, UpdateTemplate

MAX_SNAPSHOT_AGE: Final = timedelta(hours=1)
"""A plan that is valid for longer must still not rest on an older snapshot: load and members have other times."""


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs, and what nobody knows; both empty means that the plan fits."""

    refusals: tuple[Refusal, ...]
    unknowns: tuple[str, ...]


def before_start(turn: Turn) -> Drift:
    """Return all that differs from what the plan rests on. Right before the first effect, and only then."""
    return _sorted(
        [
            *_times(turn),
            *_policy(turn),
            *_deployments(turn),
            *_autoscalers(turn),
            *_others(turn),
            *group_before_start(turn),
            *_victims(turn),
            *_offset_groups(turn),
        ]
    )


def under_way(turn: Turn) -> Drift:
    """Return what no longer fits before a later effect: what this plan has changed itself is no difference."""
    return _sorted([*_policy(turn), *_autoscalers(turn), *_others(turn), *group_under_way(turn), *_marked(turn)])


def _sorted(found: Iterable[Refusal | str]) -> Drift:
    listed = list(dict.fromkeys(found))
    return Drift(
        tuple(one for one in listed if isinstance(one, Refusal)), tuple(one for one in listed if isinstance(one, str))
    )


def _times(turn: Turn) -> Found:
    plan, now = turn.plan, turn.now
    if now >= plan.valid_until:
        yield expired(turn)
    if not turn.stored.status.steps:  # once begun, a time ahead is this host's clock that went back
        yield from (Refusal(Code.OUTSIDE_POLICY, why) for why in from_the_future(plan, now))
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
    bounds = turn.look.bounds
    if bounds is not None:
        yield from (Refusal(Code.OUTSIDE_POLICY, why) for why in outside_policy(turn.plan, bounds))
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
        yield from autoscaler_drift(turn, found)


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


def _victims(turn: Turn) -> Found:
    for step in turn.plan.steps:
        if isinstance(step, MarkVictims):
            yield from missing_victims(turn, step)


def _marked(turn: Turn) -> Found:
    """Yield why the stop that comes next would take other pods than those that were marked for it."""
    step = turn.plan.steps[turn.status.step]
    if not isinstance(step, StopConsumers):
        return
    name = deployment_of(turn.plan, step)
    for before in reversed(turn.plan.steps[: turn.status.step]):
        if isinstance(before, StopConsumers) and deployment_of(turn.plan, before) == name:
            return  # what was marked before that has stopped
        if isinstance(before, MarkVictims) and deployment_of(turn.plan, before) == name:
            yield from missing_victims(turn, before)


def _offset_groups(turn: Turn) -> Found:
    for step in turn.plan.steps:
        if isinstance(step, CloneOffsets | ResetOffsets) and offsets_group(step) != turn.plan.group.group:
            yield from in_use(turn, offsets_group(step))


def is_first_effect(turn: Turn) -> bool:
    """True while no step that was begun before has an effect: the old state was never left."""
    return not any(has_effect(step) for step in turn.plan.steps[: turn.status.step])
