"""A Deployment whose autoscaler sets the replicas: how a plan makes it leave the count alone, and what comes after.

Who owns ``spec.replicas`` is docs/adr/0006-who-owns-spec-replicas.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from planner.errors import RefusedError
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import (
    AutoscalerKind,
    AutoscalerState,
    CheckForecast,
    CreateDeployment,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
)

SET_LIMIT_S = 60
"""How long setting an autoscaler may take: one patch, and KEDA's removal of the HPA that it made."""


@dataclass(frozen=True, slots=True)
class Handling:
    """What the policy says about autoscalers. ``restores``: in the end it is again as it was before the plan."""

    mode: Literal["refuse", "setBounds", "pause"] = "refuse"
    restores: bool = False

    @property
    def is_allowed(self) -> bool:
        """True where a plan may set the Deployment's autoscaler."""
        return self.mode != "refuse"


REFUSE = Handling()
"""What holds where the policy says nothing."""


def why_not_handled(deployment: Deployment, handling: Handling, counts: Sequence[int]) -> RefusedError | None:
    """Return why no plan can bring the Deployment to these counts beside its autoscalers, ``None`` where one can."""
    scalers = deployment.autoscalers
    if scalers is None:
        return refused(Refusal.OTHER_SCALER, f"whether an autoscaler owns {deployment.workload} could not be read")
    if deployment.targets and scalers:
        sentence = f"{scalers[0]} belongs to one of {deployment.workload}: no plan splits a group beside an autoscaler"
        return refused(Refusal.OTHER_SCALER, f"{sentence}; remove it")
    for scaler in scalers:
        if scaler.is_paused and not all(map(scaler.leaves, counts)):
            kept = scaler.paused_at if scaler.paused_at is not None else f"{scaler.minimum} to {scaler.maximum}"
            return refused(
                Refusal.OTHER_SCALER, f"{scaler}, paused as it is, brings {deployment.workload} back to {kept}"
            )
    owners = deployment.replica_owners or ()
    if not owners:
        return None
    named = ", ".join(map(str, owners))
    if not handling.is_allowed:
        return refused(
            Refusal.OTHER_SCALER,
            f"{named} sets the replicas of {deployment.workload} meanwhile: pause it, or say in spec.autoscaler of the "
            "policy how it is to be handled",
        )
    return _why_not_owner(deployment, handling, owners)


def _why_not_owner(deployment: Deployment, handling: Handling, owners: Sequence[Autoscaler]) -> RefusedError | None:
    named = ", ".join(map(str, owners))
    if len(owners) > 1:
        return refused(
            Refusal.OTHER_SCALER, f"{named} work against each other on {deployment.workload}: leave it to one of them"
        )
    owner = owners[0]
    if owner.made_by is not None:
        sentence = f"{owner} was made by {owner.made_by}, which is paused or was not read: see whether KEDA removes it"
        return refused(Refusal.OTHER_SCALER, sentence)
    if owner.idle is not None and handling.mode == "setBounds":
        return refused(
            Refusal.OTHER_SCALER,
            f"{owner} goes down to {owner.idle} replicas while idle, whatever its bounds: say mode pause in "
            "spec.autoscaler of the policy",
        )
    return None


def with_autoscaler(
    steps: tuple[Step, ...], deployment: Deployment | None, before: int, handling: Handling
) -> tuple[Step, ...]:
    """Return the steps between one that makes the Deployment's autoscaler leave it alone and one that ends that.

    ``before`` is the count now. Without an autoscaler that is at work, the steps as they are. Raises ``RefusedError``
    where the plan cannot be carried out beside it.
    """
    if deployment is None:
        return steps
    counts = [before, *_counts(steps)]
    if (why := why_not_handled(deployment, handling, counts)) is not None:
        raise why
    owners = deployment.replica_owners or ()
    if not owners:
        return steps
    if any(isinstance(step, CreateDeployment) for step in steps):
        raise refused(
            Refusal.OTHER_SCALER,
            f"{owners[0]} would stay with {deployment.workload} while another Deployment takes over: remove it first",
        )
    return _between(steps, owners[0], counts, handling)


def _between(steps: tuple[Step, ...], owner: Autoscaler, counts: Sequence[int], handling: Handling) -> tuple[Step, ...]:
    now = AutoscalerState(owner.minimum, owner.maximum, is_paused=False)
    (first, *rest) = (_step(owner, *states) for states in _settings(owner.kind, now, counts, handling))
    # The forecast is checked once nobody holds the autoscaler any more.
    check_index = next((index for index, step in enumerate(steps) if isinstance(step, CheckForecast)), len(steps))
    return (first, *steps[:check_index], *rest, *steps[check_index:])


def expected_settings(
    first: SetAutoscaler, counts: Sequence[int], handling: Handling
) -> list[tuple[AutoscalerState, AutoscalerState]]:
    """Return the states, before and after, of all steps on the autoscaler that a plan with these counts has.

    The autoscaler's own state is the one that the plan's ``first`` step starts from, at work and not paused; whether it
    still is in that state, the executor sees.
    """
    now = replace(first.before, is_paused=False)
    return _settings(first.autoscaler_kind, now, counts, handling)


def _settings(
    kind: str, now: AutoscalerState, counts: Sequence[int], handling: Handling
) -> list[tuple[AutoscalerState, AutoscalerState]]:
    paused = _pause_state(kind, now, counts)
    last = _in_the_end(now, paused, counts[-1], handling)
    return [(now, paused)] if last == paused else [(now, paused), (paused, last)]


def _pause_state(kind: str, now: AutoscalerState, counts: Sequence[int]) -> AutoscalerState:
    """An HPA must have every count of the plan within its bounds, as it brings others back even where it is paused."""
    running = [count for count in counts if count > 0]
    if kind != "HorizontalPodAutoscaler" or not running:
        return replace(now, is_paused=True)
    return AutoscalerState(min(now.minimum, *running), max(now.maximum, *running), is_paused=True)


def _in_the_end(now: AutoscalerState, paused: AutoscalerState, count: int, handling: Handling) -> AutoscalerState:
    if handling.restores:
        return now
    return paused if handling.mode == "pause" else AutoscalerState(count, count, is_paused=False)


def _step(owner: Autoscaler, before: AutoscalerState, after: AutoscalerState) -> SetAutoscaler:
    kind = next(known for known in get_args(AutoscalerKind) if known == owner.kind)
    return SetAutoscaler(owner.name, kind, before, after, SET_LIMIT_S)


def _counts(steps: Sequence[Step]) -> list[int]:
    """Return the counts that the plan gives its own Deployment, in order."""
    scales = [step for step in steps if isinstance(step, StartConsumers | StopConsumers)]
    return [step.to_replicas for step in scales if step.deployment is None]
