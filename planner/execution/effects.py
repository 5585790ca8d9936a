"""What the engine may do to the cluster. Each effect is "make it so", valid only for the state that was observed.

``resource_version`` is the Deployment's as observed: where it has changed since, the adapter raises ``ConflictError``
and nothing is done. ``claim`` is written in the same request as the change, so that a crash right after it is
distinguished from one right before it, and so that a request that comes late finds another version and fails. ``kind``
and ``api_version`` are the target's: those three alone may concern another kind than a Deployment.
"""

from dataclasses import dataclass

from planner.execution.observation import Claim
from planner.model.deployments import APPS, DEPLOYMENT
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import (
    AutoscalerKind,
    AutoscalerState,
    CloneOffsets,
    CreateDeployment,
    OffsetStep,
    UpdateTemplate,
)


@dataclass(frozen=True, slots=True)
class SetClaim:
    """Write the claim and nothing else."""

    deployment: str
    claim: Claim
    resource_version: str
    kind: str = DEPLOYMENT
    api_version: str = APPS


@dataclass(frozen=True, slots=True)
class DropClaim:
    """Take the claim away."""

    deployment: str
    resource_version: str
    kind: str = DEPLOYMENT
    api_version: str = APPS


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Ask for that many replicas."""

    deployment: str
    replicas: int
    claim: Claim
    resource_version: str
    kind: str = DEPLOYMENT
    api_version: str = APPS


@dataclass(frozen=True, slots=True)
class SetTemplate:
    """Change the pod template as the step says."""

    deployment: str
    step: UpdateTemplate
    claim: Claim
    resource_version: str


@dataclass(frozen=True, slots=True)
class RestoreTemplate:
    """Put the template of an earlier revision back."""

    deployment: str
    revision: int
    claim: Claim
    resource_version: str


@dataclass(frozen=True, slots=True)
class SetScaler:
    """Bring an autoscaler into a state. ``resource_version`` is the autoscaler's own, and so is the claim's place."""

    scaler: str
    scaler_kind: AutoscalerKind
    state: AutoscalerState
    claim: Claim
    resource_version: str


@dataclass(frozen=True, slots=True)
class MarkPods:
    """Give pods a deletion cost: (name, uid, cost). A pod that is gone, or another one of that name, is left alone."""

    deployment: str
    pods: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Create:
    """Create a Deployment with the claim; one that is there already is a ``ConflictError``."""

    deployment: str
    step: CreateDeployment
    origin: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete exactly this Deployment: uid and version are preconditions."""

    deployment: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class SetOffsets:
    """Set a group's offsets as the step says; ``origin`` is the group whose offsets a clone takes.

    ``plan`` is the plan's key, ``policy`` the name of the policy that has the brokers' addresses.
    """

    step: OffsetStep
    origin: str
    plan: str
    policy: str


DeploymentEffect = (
    SetClaim | DropClaim | SetReplicas | SetTemplate | RestoreTemplate | SetScaler | MarkPods | Create | Delete
)
"""What changes something in Kubernetes."""
Effect = DeploymentEffect | SetOffsets


def offsets_to_set(plan: RolloutPlan, key: str, step: OffsetStep) -> SetOffsets:
    """Return the effect of an offset step of a plan, ``key`` being the plan's in claims."""
    origin = step.group if isinstance(step, CloneOffsets) else None
    return SetOffsets(step, origin or plan.group.group, key, plan.policy)
