"""``Observation``: the cluster in one reconcile. ``None`` is unknown everywhere, and then nothing is done."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from planner.execution.phases import Phase
from planner.model.deployments import DEPLOYMENT, Deployment
from planner.model.pods import Pod
from planner.model.queues import Queue
from planner.model.samples import QueueOffsets
from planner.model.snapshot import Capacity
from planner.rollout.bounds import PolicyBounds
from planner.verification.observed_change import ObservedChange

_DIGITS: Final = 6
"""Of a step's number in a claim; an annotation may hold thousands."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A plan's claim on a Deployment, the annotation ``consumerplanner.dev/rollout``.

    Every effect on a Deployment writes the claim in the same request, so that the two are true together: ``mark`` is
    the index of the last of the plan's steps that had its effect here, -1 before the first. With ``is_undoing`` it is
    the last one whose effect was taken back.
    """

    plan: str
    mark: int = -1
    is_undoing: bool = False

    def __str__(self) -> str:
        return f"{self.plan}/{'undo-' if self.is_undoing else ''}{self.mark}"

    @classmethod
    def parse(cls, text: str) -> "Claim":
        """Return the claim that ``str`` wrote; any other text is a claim by what it names, nothing done yet."""
        plan, slash, mark = text.rpartition("/")
        number = mark.removeprefix("undo-")
        digits = number.removeprefix("-")
        if not slash or not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            return cls(text)
        return cls(plan, int(number), mark.startswith("undo-"))

    def has_done(self, step: int) -> bool:
        """True when that step's effect is in and was not taken back."""
        return not self.is_undoing and self.mark >= step

    def has_undone(self, step: int) -> bool:
        """True when that step's effect was taken back, or can come no more."""
        return self.is_undoing and self.mark <= step


@dataclass(frozen=True, slots=True)
class DeploymentObservation:
    """One Deployment that the plan names. ``facts`` is ``None`` when there is no such Deployment.

    ``revision`` is that of its template (``deployment.kubernetes.io/revision``), where it was read.
    """

    name: str
    facts: Deployment | None
    claim: Claim | None = None
    revision: int | None = None

    @property
    def title(self) -> str:
        """Its kind and name: ``Deployment orders``."""
        return f"{DEPLOYMENT} {self.name}" if self.facts is None else self.facts.title

    @property
    def live_pods(self) -> tuple[Pod, ...] | None:
        """Its pods that neither ended nor are about to; ``None`` where they could not be read."""
        if self.facts is None:
            return ()
        pods = self.facts.pods
        return None if pods is None else tuple(pod for pod in pods if not pod.is_ending and not pod.has_finished)

    @property
    def ready(self) -> int | None:
        """How many of its pods are ready and stay."""
        return None if self.live_pods is None else sum(pod.is_ready for pod in self.live_pods)


@dataclass(frozen=True, slots=True)
class GroupObservation:
    """One consumer group. ``name`` is the group's; ``queues`` leave the ``%RETRY%`` ones out.

    ``owners`` has each queue with all members that report to own it. ``misplaced`` counts the queues that are not owned
    as ``strategy`` gives them to the present members. ``epoch`` is the generation that the broker counts, where it
    does. ``lag_messages`` and ``lag_seconds`` are over all queues; the latter is the longest that the oldest message
    can have waited. ``reported_strategies`` are those that the members say they run: the planner's names, or the Java
    class of a user's own. ``pods`` is member -> pod, where that is known. ``offsets`` are those of the ``queues``,
    ``capacity`` says what one consumer can do. ``shares_messages``: no queue has an owner, and one member may get
    ``busiest_fraction`` of all that comes then, ``None`` where each gets the same.
    """

    name: str
    at: datetime
    members: tuple[str, ...] | None
    queues: tuple[Queue, ...] | None
    owners: tuple[tuple[Queue, tuple[str, ...]], ...] | None
    strategy: str | None
    misplaced: int | None
    is_rebalancing: bool | None
    epoch: int | None = None
    lag_messages: int | None = None
    lag_seconds: float | None = None
    pods: tuple[tuple[str, str], ...] = ()
    offsets: tuple[QueueOffsets, ...] = ()
    capacity: Capacity | None = None
    reported_strategies: tuple[str, ...] = ()
    shares_messages: bool = False
    busiest_fraction: float | None = None

    @property
    def is_calm(self) -> bool:
        """True when every queue is known to have one owner, the strategy's, and no rebalance to be under way."""
        has_single_owners = self.owners is not None and all(len(owners) == 1 for _, owners in self.owners)
        return bool(self.members) and has_single_owners and self.misplaced == 0 and self.is_rebalancing is False


@dataclass(frozen=True, slots=True)
class Rival:
    """Another plan that is not at its end, or stuck."""

    plan: str
    name: str
    phase: Phase
    group: tuple[str, str, str]
    deployments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """All that is observed in one reconcile; what could not be read is ``None`` or missing, and ``problems`` says why.

    ``deployments`` are those that the plan names and that could be asked for, ``groups`` likewise. ``rivals`` are the
    other plans. ``offsets_set`` says, while a step sets offsets, whether they are its target, and
    ``offsets_fingerprint`` is a fingerprint of what they are. ``policy_digest`` and ``bounds`` are the policy's of now.
    ``change`` is what is known of the change itself so far. ``other_changes`` are those of the other groups that the
    same pods serve, by group, as far as known; ``other_digests`` are the digests of their policies of now, by policy.
    """

    at: datetime
    deployments: tuple[DeploymentObservation, ...] = ()
    groups: tuple[GroupObservation, ...] = ()
    rivals: tuple[Rival, ...] | None = None
    offsets_set: bool | None = None
    offsets_fingerprint: str | None = None
    policy_digest: str | None = None
    bounds: PolicyBounds | None = None
    change: ObservedChange | None = None
    other_changes: tuple[tuple[str, ObservedChange], ...] = ()
    other_digests: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()

    def deployment(self, name: str) -> DeploymentObservation | None:
        """Return what is known of a Deployment, ``None`` where nothing is."""
        return next((deployment for deployment in self.deployments if deployment.name == name), None)

    def group(self, name: str) -> GroupObservation | None:
        """Return what is known of a group, ``None`` where nothing is."""
        return next((group for group in self.groups if group.name == name), None)
