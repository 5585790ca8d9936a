"""Kinds of plans, each with what it makes of the world."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.rollout.steps import (
    AutoscalerState,
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    MovedQueues,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
    Victim,
)
from planner.rollout.template import ContainerChange, Setting, TemplateChange
from tests.faults.place import APP, GREEN, Place

LIMIT_S = 300
SCALER, LOWEST, HIGHEST = "scaler", 1, 9
MOVES = MovedQueues(0, 8)
NEW_IMAGE, NEWER_IMAGE = "local:2", "local:3"
_NEW = TemplateChange((ContainerChange("main", image=NEW_IMAGE),))

Count = tuple[int, str]
"""Replicas and image of one Deployment."""
PATCH, CREATE, DELETE = "patch Deployment", "create Deployment", "delete Deployment"
PATCH_POD, PATCH_SCALER = "patch pod", "patch horizontalpodautoscalers"


@dataclass(frozen=True)
class Kind:
    """A kind of plan: its steps for the pods that are there, and the Deployments that it makes of ``before``.

    ``effects`` has how many requests of which words an undisturbed run makes to Deployments, pods and autoscalers,
    ``writes`` about how many writing ones in all: a fault at a later one never comes.
    ``prepare`` makes what is there besides the Deployment of consumers; ``empty`` are Deployments among it.
    ``stops_all``: between two of its steps no consumer runs.
    """

    name: str
    replicas: int
    steps: Callable[[Sequence[str]], tuple[Step, ...]]
    after: dict[str, Count]
    effects: tuple[tuple[str, int], ...]
    writes: int
    prepare: Callable[[Place], None] = lambda _: None
    empty: tuple[str, ...] = ()
    stops_all: bool = False

    @property
    def before(self) -> dict[str, Count]:
        """The Deployments before."""
        return {APP: (self.replicas, "local"), **dict.fromkeys(self.empty, (0, "local"))}

    @property
    def fewest(self) -> int:
        """How many consumers must be ready at every moment; none where the plan stops them all for a while."""
        if self.stops_all:
            return 0
        return min(self.replicas, sum(replicas for replicas, _ in self.after.values()))


def start(before: int, after: int, members: int | None = None, deployment: str | None = None) -> tuple[Step, ...]:
    """Return the steps that start consumers and wait for them."""
    return (
        StartConsumers(before, after, LIMIT_S, MOVES, undo=f"set {before}", deployment=deployment),
        AwaitReady(after, LIMIT_S, deployment=deployment),
        AwaitSettled(members or after, "AVG", LIMIT_S),
    )


def stop(before: int, after: int, members: int, victims: Sequence[str] = ()) -> tuple[Step, ...]:
    """Return the steps that stop consumers and wait for the rest."""
    return (
        StopConsumers(before, after, tuple(victims), LIMIT_S, MOVES, undo=f"set {before}"),
        AwaitReady(after, LIMIT_S),
        AwaitSettled(members, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def down(pods: Sequence[str]) -> tuple[Step, ...]:
    """The first two of the pods are chosen, whichever the ReplicaSet would take."""
    chosen = sorted(pods)[:2]
    marks = MarkVictims(tuple(Victim(pod, (pod,)) for pod in chosen), LIMIT_S)
    return (marks, *stop(len(pods), len(pods) - 2, len(pods) - 2, chosen))


def renewed(
    pods: Sequence[str], change: TemplateChange = _NEW, ready_s: int = LIMIT_S, revision: int = 1
) -> tuple[Step, ...]:
    """A new template in place of that of a revision, one pod more at a time."""
    return (
        UpdateTemplate(change, len(pods), 1, 0, revision, LIMIT_S, MOVES),
        AwaitReady(len(pods), ready_s),
        AwaitSettled(len(pods), "AVG", LIMIT_S),
    )


def renewed_twice(pods: Sequence[str]) -> tuple[Step, ...]:
    """Two templates, one after the other."""
    return (*renewed(pods), *renewed(pods, TemplateChange((ContainerChange("main", image=NEWER_IMAGE),)), revision=2))


def relocated(pods: Sequence[str], change: TemplateChange = _NEW, settled_s: int = LIMIT_S) -> tuple[Step, ...]:
    """Consumers of a second Deployment start, then those of the first stop."""
    count = len(pods)
    return (
        CreateDeployment(GREEN, LIMIT_S, change),
        StartConsumers(0, count, LIMIT_S, MOVES, undo="set 0", deployment=GREEN),
        AwaitReady(count, LIMIT_S, deployment=GREEN),
        AwaitSettled(2 * count, "AVG", settled_s),
        *stop(count, 0, count),
    )


def annotated(name: str, value: str = "true") -> TemplateChange:
    """Return the change that gives new pods an annotation."""
    return TemplateChange(annotations=(Setting(name, value),))


def scaled(_: Sequence[str]) -> tuple[Step, ...]:
    """The Deployment's autoscaler is paused while consumers start, and let go between its own bounds again."""
    free, paused = AutoscalerState(LOWEST, HIGHEST, is_paused=False), AutoscalerState(LOWEST, HIGHEST, is_paused=True)
    return (
        SetAutoscaler(SCALER, "HorizontalPodAutoscaler", free, paused, LIMIT_S),
        *start(2, 3),
        SetAutoscaler(SCALER, "HorizontalPodAutoscaler", paused, free, LIMIT_S),
        CheckForecast(LIMIT_S),
    )


UP = Kind("up", 2, lambda _: (*start(2, 3), *start(3, 4)), {APP: (4, "local")}, ((PATCH, 4),), 46)
DOWN = Kind("down", 4, down, {APP: (2, "local")}, ((PATCH, 3), (PATCH_POD, 2)), 36)
RENEWED = Kind("renewed", 2, renewed, {APP: (2, NEW_IMAGE)}, ((PATCH, 3),), 28)
RENEWED_TWICE = Kind("renewed twice", 2, renewed_twice, {APP: (2, NEWER_IMAGE)}, ((PATCH, 4),), 44)
RELOCATED = Kind("relocated", 2, relocated, {APP: (0, "local"), GREEN: (2, NEW_IMAGE)}, ((PATCH, 5), (CREATE, 1)), 50)
SCALED = Kind(
    "scaled",
    2,
    scaled,
    {APP: (3, "local")},
    ((PATCH, 3), (PATCH_SCALER, 2)),
    40,
    lambda where: where.add_scaler(SCALER),
)
RETIRED = Kind(
    "retired",
    2,
    lambda _: (*start(2, 3), DeleteDeployment(GREEN, LIMIT_S)),
    {APP: (3, "local")},
    ((PATCH, 4), (DELETE, 1)),
    34,
    lambda where: where.add_empty(GREEN),
    (GREEN,),
)
KINDS = (UP, DOWN, RENEWED, RENEWED_TWICE, RELOCATED, SCALED, RETIRED)
