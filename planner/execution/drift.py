"""Plan against a fresh observation: whatever differs is a refusal with a code and a sentence; what is unknown, a hold.

``before_start`` says whether the plan still fits before anything was changed, ``before_later_effect`` before each later
effect.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from planner.execution.codes import Code, Differences
from planner.execution.group_drift import group_before_later_effect, group_before_start, in_use, missing_victims
from planner.execution.moves import Reconcile
from planner.execution.observation import DeploymentObservation, Rival
from planner.execution.plan_targets import (
    created_deployments,
    deployment_of,
    deployments,
    has_effect,
    offsets_group,
    replicas_after,
    with_kind,
)
from planner.execution.progress import Refusal
from planner.execution.scalers import autoscaler_drift
from planner.rollout.bounds import from_the_future, outside_policy
from planner.rollout.steps import CloneOffsets, MarkVictims, ResetOffsets, StopConsumers, UpdateTemplate, Victim

MAX_SNAPSHOT_AGE: Final = timedelta(hours=1)
"""A plan that is valid for longer must still not rest on an older snapshot: load and members have other times."""


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs, and what is unknown; both empty means that the plan fits."""

    refusals: tuple[Refusal, ...]
    unknowns: tuple[str, ...]


def before_start(reconcile: Reconcile) -> Drift:
    """Return all that differs from what the plan rests on. Right before the first effect, and only then."""
    return _sort(
        [
            *_times(reconcile),
            *_policy(reconcile),
            *_other_policies(reconcile),
            *_deployments(reconcile),
            *_autoscalers(reconcile),
            *_others(reconcile),
            *group_before_start(reconcile),
            *_victims(reconcile),
            *_offset_groups(reconcile),
        ]
    )


def before_later_effect(reconcile: Reconcile) -> Drift:
    """Return what no longer fits before a later effect: what this plan has changed itself is no difference."""
    return _sort(
        [
            *_policy(reconcile),
            *_other_policies(reconcile),
            *_autoscalers(reconcile),
            *_others(reconcile),
            *group_before_later_effect(reconcile),
            *_busy(reconcile),
            *_lost_marks(reconcile),
        ]
    )


def _sort(differences: Iterable[Refusal | str]) -> Drift:
    listed = list(dict.fromkeys(differences))
    return Drift(
        tuple(difference for difference in listed if isinstance(difference, Refusal)),
        tuple(difference for difference in listed if isinstance(difference, str)),
    )


def _times(reconcile: Reconcile) -> Differences:
    plan, now = reconcile.plan, reconcile.now
    if now >= plan.valid_until:
        yield expiry(reconcile)
    if not reconcile.stored.status.steps:  # once begun, a time ahead is this host's clock that went back
        yield from (Refusal(Code.OUTSIDE_POLICY, why) for why in from_the_future(plan, now))
    age = now - plan.snapshot.at
    if age > MAX_SNAPSHOT_AGE:
        yield Refusal(
            Code.OLD_SNAPSHOT,
            f"the snapshot that the plan rests on is {age.total_seconds() / 60:.0f} min old, "
            f"{MAX_SNAPSHOT_AGE.total_seconds() / 60:.0f} min are allowed",
        )


def expiry(reconcile: Reconcile) -> Refusal:
    """Return the refusal of a plan whose time is over."""
    return Refusal(
        Code.EXPIRED, f"the plan was valid until {reconcile.plan.valid_until:%Y-%m-%d %H:%M:%S %Z}: make a new one"
    )


def digest_differs(reconcile: Reconcile) -> Refusal | None:
    """Return why the approval does not hold for the plan as it stands, ``None`` when it does."""
    approval = reconcile.stored.requests.approval
    if approval is None or approval.digest == reconcile.stored.digest:
        return None
    return Refusal(
        Code.DIGEST_DIFFERS,
        f"the approval names digest {approval.digest}, the plan has {reconcile.stored.digest}: "
        "read and approve it again",
    )


def _policy(reconcile: Reconcile) -> Differences:
    bounds = reconcile.observation.bounds
    if bounds is not None:
        yield from (Refusal(Code.OUTSIDE_POLICY, why) for why in outside_policy(reconcile.plan, bounds))
    made_under, digest = reconcile.stored.policy_digest, reconcile.observation.policy_digest
    if made_under is None:
        return
    if digest is None:
        yield f"policy {reconcile.plan.policy} could not be read"
    elif digest != made_under:
        yield Refusal(
            Code.POLICY_CHANGED,
            f"policy {reconcile.plan.policy} was changed after the plan was made: "
            f"its digest is {digest}, not {made_under}",
        )


def _other_policies(reconcile: Reconcile) -> Differences:
    """Yield which policies of the other groups are no longer those that the plan was made under."""
    digests = dict(reconcile.observation.other_digests)
    for other in reconcile.plan.others or ():
        digest = digests.get(other.policy)
        if digest is None:
            yield f"policy {other.policy} could not be read"
        elif digest != other.policy_digest:
            yield Refusal(Code.POLICY_CHANGED, f"policy {other.policy} was changed after the plan was made")


def _deployments(reconcile: Reconcile) -> Differences:
    new = created_deployments(reconcile.plan)
    for name in deployments(reconcile.plan):
        deployment = reconcile.observation.deployment(name)
        if deployment is None:
            yield f"{with_kind(reconcile.plan, name)} could not be read"
        elif name in new:
            if deployment.facts is not None:
                yield Refusal(
                    Code.NAME_TAKEN, f"the plan creates {with_kind(reconcile.plan, name)}, but there is one already"
                )
        elif deployment.facts is None:
            yield Refusal(Code.DEPLOYMENT_MISSING, f"there is no {with_kind(reconcile.plan, name)}")
        else:
            yield from _counts(reconcile, deployment)


def _counts(reconcile: Reconcile, deployment: DeploymentObservation) -> Differences:
    facts, expected = deployment.facts, replicas_after(reconcile.plan, deployment.name, -1)
    assert facts is not None
    if expected is not None and facts.replicas != expected:
        yield Refusal(
            Code.REPLICAS_CHANGED,
            f"{deployment.title} has {facts.replicas} replicas, the plan expects {expected}",
        )
    yield from _template(reconcile, deployment)
    if facts.scale is not None and facts.scale.busy is not None:
        yield facts.scale.busy
    if deployment.ready is None:
        yield f"the pods of {deployment.title} could not be read"
    elif not facts.is_observed or deployment.ready != facts.replicas:
        yield f"{deployment.ready} of {facts.replicas} pods of {deployment.title} are ready"


def _template(reconcile: Reconcile, deployment: DeploymentObservation) -> Differences:
    updates = [
        s
        for s in reconcile.plan.steps
        if isinstance(s, UpdateTemplate) and deployment_of(reconcile.plan, s) == deployment.name
    ]
    if updates and deployment.facts is not None and deployment.facts.is_paused:
        yield Refusal(Code.ROLLOUT_PAUSED, f"{deployment.title} is paused: a new template would replace no pod")
    if updates and deployment.revision is None:
        yield f"the revision of {deployment.title} could not be read"
    elif updates and deployment.revision != updates[0].from_revision:
        yield Refusal(
            Code.REVISION_CHANGED,
            f"{deployment.title} is at revision {deployment.revision}, the plan expects {updates[0].from_revision}",
        )


def _autoscalers(reconcile: Reconcile) -> Differences:
    for deployment in _existing(reconcile):
        yield from autoscaler_drift(reconcile, deployment)


def _busy(reconcile: Reconcile) -> Differences:
    """Yield what keeps the count of a target of another kind from being changed now, as a canary that has begun."""
    for deployment in _existing(reconcile):
        if deployment.facts is not None and deployment.facts.scale is not None and deployment.facts.scale.busy:
            yield deployment.facts.scale.busy


def _others(reconcile: Reconcile) -> Differences:
    rivals = reconcile.observation.rivals
    if rivals is None:
        yield "whether another plan is under way could not be read"
        return
    for rival in rivals:
        if rival.phase.is_in_progress and _shared_target(reconcile, rival):
            yield Refusal(
                Code.OTHER_PLAN, f"plan {rival.name} is {rival.phase} on the same {_shared_target(reconcile, rival)}"
            )
    for deployment in _existing(reconcile):
        yield from _claims(reconcile, deployment, rivals)


def _claims(reconcile: Reconcile, deployment: DeploymentObservation, rivals: Sequence[Rival]) -> Differences:
    if deployment.claim is None or deployment.claim.plan == reconcile.key:
        return
    holder = next((rival for rival in rivals if rival.plan == deployment.claim.plan), None)
    if holder is None or (holder.phase.is_in_progress and _shared_target(reconcile, holder)):
        return  # the claim of a plan that is over binds no other plan; one in progress was named before
    sentence = f"plan {holder.name} ({holder.phase}) has claimed {deployment.title}"
    yield Refusal(Code.CLAIMED, sentence) if holder.phase.is_in_progress else sentence


def _shared_target(reconcile: Reconcile, rival: Rival) -> str | None:
    for basis in reconcile.plan.bases:
        ref = basis.group
        if rival.group == (ref.system, ref.cluster, ref.group):
            return f"group {ref.group}"
    shared = sorted(set(rival.deployments) & set(deployments(reconcile.plan)))
    return with_kind(reconcile.plan, shared[0]) if shared else None


def _existing(reconcile: Reconcile) -> list[DeploymentObservation]:
    return [
        deployment
        for name in deployments(reconcile.plan)
        if (deployment := reconcile.observation.deployment(name)) and deployment.facts
    ]


def _victims(reconcile: Reconcile) -> Differences:
    for step in reconcile.plan.steps:
        if isinstance(step, MarkVictims):
            yield from missing_victims(reconcile, step, step.victims)
        elif isinstance(step, StopConsumers) and step.stopping is not None:
            yield from missing_victims(reconcile, step, step.stopping)
            yield from _not_highest(reconcile, step, step.stopping)


def _not_highest(reconcile: Reconcile, step: StopConsumers, stopping: Sequence[Victim]) -> Differences:
    """Yield why other pods stop than the step names: a StatefulSet stops its highest numbers, whatever a plan says."""
    deployment = reconcile.observation.deployment(deployment_of(reconcile.plan, step))
    facts = deployment.facts if deployment else None
    if facts is None:
        return
    names = {victim.pod for victim in stopping}
    # As many as the step names: counts alone are an author's, and could be of any size.
    expected = () if facts.ordinals is None else facts.pod_names(step.from_replicas, step.to_replicas)
    if names != set(expected):
        which = ", ".join(expected) or "pods that a ReplicaSet chooses"
        yield Refusal(
            Code.VICTIM_MOVED, f"the stop takes {which}, the plan expects {', '.join(sorted(names))}: plan again"
        )


def _lost_marks(reconcile: Reconcile) -> Differences:
    """Yield why the stop that comes next would take other pods than those that were marked for it."""
    step = reconcile.plan.steps[reconcile.status.step]
    if not isinstance(step, StopConsumers):
        return
    if step.stopping is not None:
        yield from missing_victims(reconcile, step, step.stopping)
        yield from _not_highest(reconcile, step, step.stopping)
    name = deployment_of(reconcile.plan, step)
    for before in reversed(reconcile.plan.steps[: reconcile.status.step]):
        if isinstance(before, StopConsumers) and deployment_of(reconcile.plan, before) == name:
            return  # what was marked before that has stopped
        if isinstance(before, MarkVictims) and deployment_of(reconcile.plan, before) == name:
            yield from missing_victims(reconcile, before, before.victims)


def _offset_groups(reconcile: Reconcile) -> Differences:
    for step in reconcile.plan.steps:
        if isinstance(step, CloneOffsets | ResetOffsets) and offsets_group(step) != reconcile.plan.group.group:
            yield from in_use(reconcile, offsets_group(step))


def is_first_effect(reconcile: Reconcile) -> bool:
    """True while no step that was begun before has an effect: the old state was never left."""
    return not any(has_effect(step) for step in reconcile.plan.steps[: reconcile.status.step])
