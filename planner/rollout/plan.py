"""The plan: what will be done, why, and what is expected of it."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from planner.decision.decision import Decision, DecisionBill, Rejection
from planner.rollout.steps import (
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MovedQueues,
    ResetOffsets,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
)
from planner.simulation.outcome import Messages, Seconds

MOST_QUEUES: Final = 100_000
"""Of one consumer in a plan, and of all consumers together."""
LEAST_TTL_S: Final = 60
MOST_TTL_S: Final = 31_536_000
"""A year: whoever wants a plan to stay leaves it out."""
_RANGES: Final = re.compile(r"[0-9]{1,10}(-[0-9]{1,10})?(,[0-9]{1,10}(-[0-9]{1,10})?)*")
MIGRATION_STEPS = (CreateDeployment, UpdateTemplate, DeleteDeployment, CloneOffsets, ResetOffsets)
"""What only a migration does: a plan without one scales, marks, waits, checks and handles its autoscaler."""


@dataclass(frozen=True, slots=True)
class GroupRef:
    """The consumer group that the plan is about."""

    system: str
    cluster: str
    group: str


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """The snapshot that the plan rests on; ``digest`` names its exact content."""

    digest: str
    at: datetime


@dataclass(frozen=True, slots=True)
class OwnedQueues:
    """What one consumer owns: one entry a topic and broker, ``orders/broker-a/0-3,6``."""

    consumer: str
    queues: tuple[str, ...]

    def __post_init__(self) -> None:
        owned = sum(last - first + 1 for entry in self.queues for first, last in ranges_of(entry)[1])
        if owned > MOST_QUEUES:
            raise ValueError(f"a consumer to own {MOST_QUEUES} queues at most, not {owned}")


def ranges_of(entry: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return where the queues of one entry are, and the first and last number of each of its ranges.

    Raises ``ValueError`` for what is no such entry: a plan is free text, and its ranges are counted out.
    """
    location, _, ranges = entry.rpartition("/")
    if not location or _RANGES.fullmatch(ranges) is None:
        raise ValueError(f"queues like orders/broker-a/0-3,6, not {entry[:80]!r}")
    bounds = [span.partition("-") for span in ranges.split(",")]
    return location, tuple((int(first), int(last or first)) for first, _, last in bounds)


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
            counts = [ranges_of(entry)[1] for consumer in owned for entry in consumer.queues]
            queues = sum(last - first + 1 for ranges in counts for first, last in ranges)
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
class RolloutPlan:
    """Ordered steps from ``preconditions.replicas`` to the decision's target; never empty, as hold needs no plan.

    ``migration`` says what kind of migration it is, ``None`` for a plan that only changes the count. Only a migration
    has ``MIGRATION_STEPS`` or steps that name a Deployment or a group. ``policy_digest`` names the policy's content
    that the plan was made under, ``target_replicas`` how many replicas ``deployment`` has in the end. ``ways`` say in
    sentences why it is carried out this way and not another. ``bill`` is what the count was weighed by, ``None`` for a
    migration and for a policy that does not weigh. ``ttl_seconds_after_finished`` is after how many seconds
    at its end the controller removes the plan object, ``None`` for never.
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

    def __post_init__(self) -> None:
        ttl_s = self.ttl_seconds_after_finished
        if ttl_s is not None and not LEAST_TTL_S <= ttl_s <= MOST_TTL_S:
            raise ValueError(f"ttlSecondsAfterFinished from {LEAST_TTL_S} to {MOST_TTL_S}, not {ttl_s}")
        if not self.steps:
            raise ValueError(f"plan for group {self.group.group} has no steps: hold is a decision, not a plan")
        if self.valid_until <= self.made_at:
            raise ValueError(f"plan for group {self.group.group} ends before it begins")
        if self.confirmations and not self.migration:
            raise ValueError(f"plan for group {self.group.group} writes offsets: only a migration may")
        if not self.migration:
            self._check_only_scales()
        if any(isinstance(step, CloneOffsets) and step.to_group == self.group.group for step in self.steps):
            raise ValueError(f"plan for group {self.group.group} clones its offsets onto themselves")

    def _check_only_scales(self) -> None:
        if self.migration is not None:
            raise ValueError(f"plan for group {self.group.group} to name its migration or to have none, not ''")
        for number, step in enumerate(self.steps, start=1):
            if isinstance(step, MIGRATION_STEPS):
                raise ValueError(
                    f"plan for group {self.group.group} has step {number}, {step.kind}: only a migration may"
                )
            if getattr(step, "deployment", None) is not None or getattr(step, "group", None) is not None:
                raise ValueError(f"step {number} names its Deployment or group: only a migration's may")

    @property
    def members_per_pod(self) -> int:
        """How many consumers each pod runs: a plan is made of whole pods alone."""
        return max(len(self.preconditions.members) // max(self.preconditions.replicas, 1), 1)

    @property
    def confirmations(self) -> tuple[str, ...]:
        """The phrases that a person types to allow the offset steps, in their order."""
        return tuple(step.confirmation for step in self.steps if isinstance(step, CloneOffsets | ResetOffsets))

    @property
    def final_replicas(self) -> int:
        """How many replicas all Deployments that the plan changes have together after the last step."""
        replicas = {self.deployment: self.preconditions.replicas}
        for step in self.steps:
            if isinstance(step, StartConsumers | StopConsumers):
                replicas[step.deployment or self.deployment] = step.to_replicas
        return sum(replicas.values())


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision with the ground it stands on, as a document of its own: what is written when the answer is hold."""

    policy: str
    group: GroupRef
    deployment: str
    snapshot: SnapshotRef
    decision: Decision
