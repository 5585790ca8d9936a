"""Steps that create, change and delete Deployments."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from planner.rollout.steps.moves import MovedQueues
from planner.rollout.steps.sense import check_limit, check_names
from planner.rollout.steps.words import named, of, pods
from planner.rollout.template import TemplateChange


@dataclass(frozen=True, slots=True)
class CreateDeployment:
    """Create ``deployment`` as ``origin`` is, with the change, its own selector and no replicas.

    Starting its consumers is a step of its own, so this one moves no queue.
    """

    is_final: ClassVar[bool] = False

    deployment: str
    time_limit_seconds: int
    change: TemplateChange | None = None
    origin: str | None = None
    kind: Literal["createDeployment"] = "createDeployment"

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "deployment", [self.deployment])
        if self.deployment == self.origin:
            raise ValueError(f"{self.kind} to give the new Deployment another name than {self.origin}")

    @property
    def action(self) -> str:
        """What it does."""
        change = f" with {self.change}" if self.change else ""
        return f"create Deployment {self.deployment} as {named(self.origin)} is{change}, without consumers"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"{named(self.origin)} is there, and no Deployment {self.deployment}"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"Deployment {self.deployment} is there with 0 replicas and was made by this plan"

    @property
    def undo(self) -> str:
        """What takes it back."""
        return f"delete Deployment {self.deployment}"


@dataclass(frozen=True, slots=True)
class UpdateTemplate:
    """Change the pod template; the Deployment then replaces all its pods, at most so many at once.

    ``max_surge`` pods are started above ``replicas`` and ``max_unavailable`` may be missing below it: the batch of each
    turn. ``from_revision`` is the Deployment's revision before (``deployment.kubernetes.io/revision``), undo goes back
    to its template. Awaiting the new pods is a step of its own.
    """

    is_final: ClassVar[bool] = False

    change: TemplateChange
    replicas: int
    max_surge: int
    max_unavailable: int
    from_revision: int
    time_limit_seconds: int
    forecast: MovedQueues
    kind: Literal["updateTemplate"] = "updateTemplate"
    deployment: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        if self.replicas < 1 or self.from_revision < 1:
            raise ValueError(f"{self.kind} to rest on 1 replica and revision 1 at least")
        if self.max_surge < 0 or not 0 <= self.max_unavailable < self.replicas:
            raise ValueError(
                f"{self.kind} to surge by 0 or more and leave one of {self.replicas} replicas, "
                f"not surge {self.max_surge}, unavailable {self.max_unavailable}"
            )
        if self.max_surge == self.max_unavailable == 0:
            raise ValueError(f"{self.kind} to let a pod be started before or stopped after: both limits are 0")

    @property
    def action(self) -> str:
        """What it does."""
        return (
            f"give all {pods(self.replicas)}{of(self.deployment)} {self.change}; at once up to {self.max_surge} are "
            f"started above and {self.max_unavailable} missing below {self.replicas}"
        )

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"{named(self.deployment)} has {self.replicas} replicas at revision {self.from_revision}"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"{named(self.deployment)} has the new template with {self.change}"

    @property
    def undo(self) -> str:
        """What takes it back."""
        return f"put the template of revision {self.from_revision} back"


@dataclass(frozen=True, slots=True)
class DeleteDeployment:
    """Delete a Deployment that runs nothing any more. Never the plan's own, and there is no way back."""

    is_final: ClassVar[bool] = True
    undo: ClassVar[None] = None

    deployment: str
    time_limit_seconds: int
    kind: Literal["deleteDeployment"] = "deleteDeployment"

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "deployment", [self.deployment])

    @property
    def action(self) -> str:
        """What it does."""
        return f"delete Deployment {self.deployment}, which runs nothing any more"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"Deployment {self.deployment} has 0 replicas and no pod"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"there is no Deployment {self.deployment}"
