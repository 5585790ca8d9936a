"""The plan: what will be done, why, and what is expected of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from planner.decision.decision import Decision, DecisionBill, Rejection
from planner.model.deployments import APPS, DEPLOYMENT, STATEFUL_SET, TargetReplicas, check_target_kind
from planner.model.systems import SYSTEMS
from planner.model.times import check_time
from planner.rollout.queue_ranges import MOST_QUEUES, count_queues
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    MovedQueues,
    ResetOffsets,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)
from planner.simulation.outcome import Messages, Seconds
from planner.text.words import and_list

LEAST_TTL_S: Final = 60
MOST_TARGETS: Final = 8
"""Deployments that one group's pods are split over."""
MOST_OTHERS: Final = 15
"""Groups beside the plan's own that the same pods serve."""
MOST_TTL_S: Final = 31_536_000
"""A year: whoever wants a plan to stay leaves it out."""
MIGRATION_STEPS = (CreateDeployment, UpdateTemplate, DeleteDeployment, CloneOffsets, ResetOffsets)
"""What only a migration does: a plan without one scales, marks, waits, checks and handles its autoscaler."""


@dataclass(frozen=True, slots=True)
class GroupRef:
    """The consumer group that the plan is about."""

    system: str
    cluster: str
    group: str

    def __post_init__(self) -> None:
        if self.system not in SYSTEMS:
            raise ValueError(f"a system of {', '.join(SYSTEMS)}, not {self.system!r}")


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """The snapshot that the plan rests on; ``digest`` names its exact content."""

    digest: str
    at: datetime

    def __post_init__(self) -> None:
        check_time("the plan's snapshot", self.at)


@dataclass(frozen=True, slots=True)
class OwnedQueues:
    """What one consumer owns: one entry a topic and broker, ``orders/broker-a/0-3,6``."""

    consumer: str
    queues: tuple[str, ...]

    def __post_init__(self) -> None:
        owned = count_queues(self.queues)
        if owned > MOST_QUEUES:
            raise ValueError(f"a consumer to own {MOST_QUEUES} queues at most, not {owned}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the change itself costs, as the middle 90 % of many trials: ``Transition`` in the plan's words.

    ``pause_seconds`` is the longest pause of a queue that moves, ``stall_seconds`` of one that stays;
    ``settle_seconds`` is when every queue is delivered by its final owner, ``drained_seconds`` when no backlog is
    left. What is ``None`` cannot be told, or never comes.
    """

    pause_seconds: Seconds | None = None
    stall_seconds: Seconds | None = None
    duplicates: Messages
    burst_messages: Messages
    settle_seconds: Seconds | None = None
    drained_seconds: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is expected once all steps are done, at the recent upper rate.

    ``utilisation`` is the busiest consumer's, 1 is all it can do; ``wait_seconds`` how long a new message
    waits, ``drain_seconds`` how long until the backlog is gone. ``unknowns`` are sentences. ``cost`` is ``None``
    where it is not known, and in plans of versions that did not forecast it.
    """

    moved_queues: MovedQueues
    utilisation: float | None = None
    wait_seconds: float | None = None
    drain_seconds: float | None = None
    owners_before: tuple[OwnedQueues, ...]
    owners_after: tuple[OwnedQueues, ...]
    unknowns: tuple[str, ...]
    cost: Cost | None = None

    def __post_init__(self) -> None:
        for owned in (self.owners_before, self.owners_after):
            queues = sum(count_queues(consumer.queues) for consumer in owned)
            if queues > MOST_QUEUES:
                raise ValueError(f"a forecast to name {MOST_QUEUES} queues at most, not {queues}")


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must still be true when the first step begins."""

    replicas: int
    members: tuple[str, ...]
    strategy: str
    queues: int


@dataclass(frozen=True, slots=True)
class OtherGroup:
    """Another group that the same pods serve: what the plan rests on there, and what it does to it.

    ``policy`` decides on that group, ``reason`` is what it would have decided alone, ``policy_digest`` its content.
    """

    policy: str
    group: GroupRef
    snapshot: SnapshotRef
    reason: str
    preconditions: Preconditions
    forecast: Forecast
    policy_digest: str | None = None


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """Ordered steps from ``preconditions.replicas`` to the decision's target; never empty, as hold needs no plan.

    ``migration`` says what kind of migration it is, ``None`` for a plan that only changes the count. Only a migration
    has ``MIGRATION_STEPS`` or steps that name a Deployment or a group. ``policy_digest`` names the policy's content
    that the plan was made under, ``target_replicas`` how many replicas ``deployment`` has in the end. ``ways`` say in
    sentences why it is carried out this way and not another. ``bill`` is what the count was weighed by, ``None`` for a
    migration and for a policy that does not weigh. ``ttl_seconds_after_finished`` is after how many seconds
    at its end the controller removes the plan object, ``None`` for never. ``deployment`` is the name of a Deployment
    unless ``target_kind`` says another kind, of ``target_api_version`` where that is not ``apps/v1``: no pod of a
    StatefulSet is marked, as it stops its highest numbers.
    ``idempotent`` is what the policy states of the consumers, ``None`` where it does not. ``others`` are the other
    groups that the same pods serve, ``None`` where there are none; no two groups of a plan have one name. ``targets``
    are all Deployments that run the group, with their replicas before, ``None`` where ``deployment`` does alone:
    ``preconditions.replicas`` and ``target_replicas`` are then of all together, and steps name each one's own.
    ``second_lever`` says in a sentence what would do instead of more pods, ``None`` where the plan adds none.
    """

    policy: str
    group: GroupRef
    deployment: str
    snapshot: SnapshotRef
    made_at: datetime
    valid_until: datetime
    reason: str
    rejected: tuple[Rejection, ...]
    preconditions: Preconditions
    forecast: Forecast
    steps: tuple[Step, ...]
    migration: str | None = None
    policy_digest: str | None = None
    target_replicas: int | None = None
    ways: tuple[str, ...] = ()
    ttl_seconds_after_finished: int | None = None
    bill: DecisionBill | None = None
    target_kind: str | None = None
    idempotent: bool | None = None
    others: tuple[OtherGroup, ...] | None = None
    targets: tuple[TargetReplicas, ...] | None = None
    second_lever: str | None = None
    target_api_version: str | None = None

    def __post_init__(self) -> None:
        ttl_s = self.ttl_seconds_after_finished
        if ttl_s is not None and not LEAST_TTL_S <= ttl_s <= MOST_TTL_S:
            raise ValueError(f"ttlSecondsAfterFinished from {LEAST_TTL_S} to {MOST_TTL_S}, not {ttl_s}")
        if not self.steps:
            raise ValueError(f"plan for group {self.group.group} has no steps: hold is a decision, not a plan")
        check_time(f"plan for group {self.group.group}", self.made_at)
        check_time(f"the end of the plan for group {self.group.group}", self.valid_until)
        if self.valid_until <= self.made_at:
            raise ValueError(f"plan for group {self.group.group} ends before it begins")
        if self.confirmations and not self.migration:
            raise ValueError(f"plan for group {self.group.group} writes offsets: only a migration may")
        self._check_others()
        if not self.migration:
            self._check_only_scales()
        self._check_target()
        if any(isinstance(step, CloneOffsets) and step.to_group == self.group.group for step in self.steps):
            raise ValueError(f"plan for group {self.group.group} clones its offsets onto themselves")

    def _check_only_scales(self) -> None:
        if self.migration is not None:
            raise ValueError(f"plan for group {self.group.group} to name its migration or to have none, not ''")
        own = () if self.targets is None else tuple(self.replicas_before)
        for number, step in enumerate(self.steps, start=1):
            if isinstance(step, MIGRATION_STEPS):
                raise ValueError(
                    f"plan for group {self.group.group} has step {number}, {step.kind}: only a migration may"
                )
            names_other = isinstance(step, AwaitSettled) and step.group in self._names_of_others
            if getattr(step, "deployment", None) not in (None, *own) or (
                getattr(step, "group", None) is not None and not names_other
            ):
                raise ValueError(f"step {number} names its Deployment or group: only a migration's may")

    def _check_targets(self, targets: tuple[TargetReplicas, ...]) -> None:
        names, replicas = [target.name for target in targets], sum(target.replicas for target in targets)
        awaited = [step for step in self.steps if isinstance(step, StartConsumers | StopConsumers | AwaitReady)]
        marking = [step for step in self.steps if isinstance(step, MarkVictims)]
        if not 2 <= len(names) <= MOST_TARGETS or len(set(names)) < len(names) or names[0] != self.deployment:
            raise ValueError(f"targets to name 2 to {MOST_TARGETS} Deployments once each, {self.deployment} first")
        if self.migration is not None or self.target_kind is not None or self.others:
            raise ValueError(f"plan for group {self.group.group} to only scale Deployments of one group, as of several")
        if min(target.replicas for target in targets) < 0 or self.preconditions.replicas != replicas:
            raise ValueError(
                f"targets to have the {self.preconditions.replicas} replicas of the preconditions together"
            )
        if {step.deployment for step in awaited} != set(names) or any(step.deployment is None for step in marking):
            raise ValueError("each of the targets to be scaled or awaited, by steps that name it")

    @property
    def replicas_before(self) -> dict[str, int]:
        """The replicas of each of the plan's own Deployments before its first step, by name."""
        if self.targets is None:
            return {self.deployment: self.preconditions.replicas}
        return {target.name: target.replicas for target in self.targets}

    @property
    def _names_of_others(self) -> tuple[str, ...]:
        return tuple(other.group.group for other in self.others or ())

    def _check_others(self) -> None:
        names = (self.group.group, *self._names_of_others)
        if len(set(names)) < len(names):
            raise ValueError(f"plan for group {self.group.group} to name each group once")
        if self.others and len(self.others) > MOST_OTHERS:
            raise ValueError(f"plan for group {self.group.group} to name {MOST_OTHERS} other groups at most")
        awaited = {step.group for step in self.steps if isinstance(step, AwaitSettled)}
        if missing := set(self._names_of_others) - awaited:
            raise ValueError(f"plan for group {self.group.group} to await {', '.join(sorted(missing))} as well")

    @property
    def bases(self) -> "tuple[RolloutPlan | OtherGroup, ...]":
        """What the plan rests on, and expects, for each group: itself, and the other groups of the same pods."""
        return (self, *(self.others or ()))

    def _check_target(self) -> None:
        if self.targets is not None:
            self._check_targets(self.targets)
        if self.target_kind is None and self.target_api_version is None:
            return
        check_target_kind(self.kind_of_target, self.api_version_of_target)
        if self.migration is not None:
            raise ValueError(f"plan for group {self.group.group} to change templates of Deployments only")
        is_stateful = (self.kind_of_target, self.api_version_of_target) == (STATEFUL_SET, APPS)
        if is_stateful and any(isinstance(step, MarkVictims) for step in self.steps):
            raise ValueError(
                f"plan for group {self.group.group} to mark no pods: a StatefulSet stops those with the highest numbers"
            )

    @property
    def target(self) -> str:
        """The target with its kind: ``Deployment orders``, ``Deployments orders and orders-next``."""
        return f"{self.kind_of_target}{'s' if self.targets else ''} {and_list(list(self.replicas_before))}"

    @property
    def kind_of_target(self) -> str:
        """The kind of what is scaled."""
        return self.target_kind or DEPLOYMENT

    @property
    def api_version_of_target(self) -> str:
        """The API version of that kind."""
        return self.target_api_version or APPS

    @property
    def members_per_pod(self) -> int:
        """How many consumers each pod runs: a plan is made of whole pods alone."""
        return max(len(self.preconditions.members) // max(self.preconditions.replicas, 1), 1)

    @property
    def confirmations(self) -> tuple[str, ...]:
        """The phrases that a person types: to have no consumer run for a while, and for each offset step, in order."""
        offsets = (step.confirmation for step in self.steps if isinstance(step, CloneOffsets | ResetOffsets))
        return (*((f"stop all consumers of {self.group.group}",) if self.stands_still else ()), *offsets)

    @property
    def stands_still(self) -> bool:
        """True for a migration that stops the last consumer of all its Deployments, whatever it starts afterwards."""
        replicas = {self.deployment: self.preconditions.replicas}
        for step in self.steps:
            if isinstance(step, StartConsumers | StopConsumers):
                replicas[step.deployment or self.deployment] = step.to_replicas
            if isinstance(step, StopConsumers) and not sum(replicas.values()):
                return self.migration is not None
        return False

    @property
    def final_replicas(self) -> int:
        """How many replicas all Deployments that the plan changes have together after the last step."""
        replicas = self.replicas_before
        for step in self.steps:
            if isinstance(step, StartConsumers | StopConsumers):
                replicas[step.deployment or self.deployment] = step.to_replicas
        return sum(replicas.values())


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision with the ground it stands on, as a document of its own: what is written when the answer is hold.

    ``second_lever`` says in a sentence what would do instead of more pods, ``None`` where none are needed.
    """

    policy: str
    group: GroupRef
    deployment: str
    snapshot: SnapshotRef
    decision: Decision
    second_lever: str | None = None
