"""The moves that one reconcile may end with, and the reconcile itself as a value: all that a move is decided by."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from planner.execution.effects import Effect
from planner.execution.observation import DeploymentObservation, Observation
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import Refusal, RolloutStatus, StepProgress
from planner.rollout.plan import RolloutPlan

Leftovers = Mapping[tuple[type[Effect], str], str]
"""What a plan that is over leaves undone: the effect's class and the Deployment's name -> a sentence on why."""


@dataclass(frozen=True, slots=True)
class Perform:
    """Have one effect; the next reconcile observes whether it is in. ``leftovers`` is what the plan leaves already."""

    effect: Effect
    leftovers: Leftovers = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Write:
    """Write the status. ``reason`` is one word for the event that goes with it, ``None`` for no event."""

    status: RolloutStatus
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing in this reconcile; ``until`` is when the wait ends at the latest, ``None`` when a person ends it."""

    why: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The plan is at its end: nothing is done any more."""

    phase: Phase


Move = Perform | Write | Wait | Done


@dataclass(frozen=True)
class Reconcile:
    """One plan, one observation, one time. ``leftovers`` says why claims and marks stay, when they have to."""

    stored: StoredPlan
    observation: Observation
    now: datetime
    leftovers: Leftovers = field(default_factory=dict)

    @property
    def plan(self) -> RolloutPlan:
        """The plan."""
        return self.stored.plan

    @property
    def status(self) -> RolloutStatus:
        """How far it has come."""
        return self.stored.status

    @property
    def key(self) -> str:
        """The plan's name in claims."""
        return self.stored.key

    @property
    def is_to_end(self) -> bool:
        """True when a person wants it to end: by abort, or by deleting the plan."""
        return self.stored.requests.abort or self.stored.requests.is_deleted

    @property
    def edited(self) -> str | None:
        """Why the plan can be carried no further, where its spec is no longer the approved one."""
        approval = self.status.approval
        if approval is not None and approval.digest == self.stored.digest:
            return None
        return "the plan was changed while it was carried out, so that its way back is unknown"

    @property
    def surprises(self) -> tuple[str, ...]:
        """What went otherwise than planned without harm, up to now."""
        return (*self.status.surprises, *self.leftovers.values())

    @cached_property
    def claimed(self) -> Mapping[str, DeploymentObservation]:
        """The Deployments that carry this plan's claim now, by name."""
        ours = [
            deployment
            for deployment in self.observation.deployments
            if deployment.claim and deployment.claim.plan == self.key
        ]
        return {deployment.name: deployment for deployment in ours}

    def enter(self, phase: Phase, message: str) -> Write:
        """Return the move to another phase."""
        return Write(self.status.enter(phase, message, self.now), reason=phase)

    def refuse(self, phase: Phase, refusals: tuple[Refusal, ...]) -> Write:
        """Return the move to a phase that ends the plan before its first step, with the reasons."""
        message = "; ".join(refusal.sentence for refusal in refusals)
        entered = replace(self.status.enter(phase, message, self.now), refusals=refusals, surprises=self.surprises)
        return Write(replace(entered, ended="nothing" if phase.is_final else None), reason=phase)

    def stuck(self, why: str) -> Write:
        """Return the move to ``STUCK``; claims stay, so that no other plan goes on from between two states."""
        entered = self.status.enter(Phase.STUCK, f"{why}: a person must look", self.now)
        return Write(replace(entered, ended="between"), reason=Phase.STUCK)

    def wait(self, why: str, until: datetime | None = None) -> Move:
        """Return the move that waits, and that writes why first where the status does not yet."""
        why = "; ".join([why, *self.observation.problems[:1]])
        if self.status.held != why:
            return Write(replace(self.status, held=why), reason="Held")
        return Wait(why, until)

    def renew(self, step: StepProgress, message: str | None = None) -> Write:
        """Return the move that renews a step's progress."""
        renewed = self.status.with_step(step)
        return Write(renewed if message is None else replace(renewed, message=message))

    def past(self, since: datetime, limit_s: float) -> bool:
        """True once so many seconds have passed since then. A clock that went back counts as no time."""
        return self.now - since >= timedelta(seconds=limit_s)
