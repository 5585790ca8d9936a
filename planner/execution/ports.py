"""The few interfaces through which the engine touches the outside, and the plan as it is stored there."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from planner.errors import OutOfReachError
from planner.execution.effects import Effect
from planner.execution.observation import Observation
from planner.execution.progress import Approval, RolloutStatus
from planner.rollout.plan import RolloutPlan


class ConflictError(OutOfReachError):
    """What was to be changed is not as it was observed (409): observe again, then decide again."""


class DeniedError(OutOfReachError):
    """The server has answered, and does not do it: a right, a quota or an admission rule stands against it."""

    can_retry = False


class ImpossibleError(DeniedError):
    """What an effect needs is gone, so that no later reconcile can have it either."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What people ask of a plan at present.

    ``answered`` are the indexes of the steps that a person let continue, ``confirmed`` the phrases that were typed.
    ``is_deleted``: the plan's deletion was asked for, and waits until the plan is at an end.
    """

    approval: Approval | None = None
    pause: bool = False
    abort: bool = False
    is_deleted: bool = False
    answered: tuple[int, ...] = ()
    confirmed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan as the store has it. ``digest`` is that of the spec as it stands, computed when it was read.

    ``policy_digest`` is the digest of the policy that it was made under; ``None`` where the plan does not say.
    ``has_finalizer`` says that a deletion waits until the plan is at an end. ``author`` is the account that created it,
    by the name that the API server knows; ``None`` where it was not recorded.
    """

    name: str
    uid: str
    plan: RolloutPlan
    digest: str
    resource_version: str
    status: RolloutStatus = field(default_factory=RolloutStatus)
    requests: Requests = field(default_factory=Requests)
    generation: int | None = None
    policy_digest: str | None = None
    has_finalizer: bool = False
    author: str | None = None

    @property
    def key(self) -> str:
        """Its name in claims: the uid distinguishes it from an earlier plan of the same name."""
        return f"{self.name}/{self.uid}"


@dataclass(frozen=True, slots=True)
class Lease:
    """The executor that may drive plans of one group, and until when. ``transitions`` counts changes of the holder."""

    holder: str | None
    renewed_at: datetime
    duration_s: int
    transitions: int
    resource_version: str


class PlanStore(Protocol):
    """Where plans and their status live. All raise ``OutOfReachError`` when the store does not answer."""

    def read(self, name: str) -> StoredPlan | None:
        """Return the plan, ``None`` when there is none."""

    def write_status(self, stored: StoredPlan, status: RolloutStatus) -> None:
        """Write the status, unless the plan has changed since it was read: then ``ConflictError``."""

    def add_finalizer(self, name: str) -> None:
        """Put the finalizer in, so that a deletion waits until the plan is at an end; one that is over gets none."""

    def remove_finalizer(self, stored: StoredPlan) -> None:
        """Take the finalizer away, so that a deleted plan really goes; nothing to do where there is none.

        A plan that is in progress by then keeps it: there is something to undo.
        """


class Cluster(Protocol):
    """Deployments, pods, groups and offsets."""

    def observe(self, stored: StoredPlan, now: datetime) -> Observation:
        """Return the present state; what cannot be read is unknown, and never raises."""

    def perform(self, effect: Effect) -> None:
        """Make it so, or raise ``ConflictError`` or ``DeniedError`` (nothing done).

        Any other ``OutOfReachError``: there was no answer, so perhaps it is done, perhaps not.
        """


class Leases(Protocol):
    """Leases by name (``coordination.k8s.io/v1``)."""

    def read(self, name: str) -> Lease | None:
        """Return the lease, ``None`` when there is none."""

    def write(self, name: str, lease: Lease | None, holder: str | None, now: datetime) -> Lease:
        """Write the holder and ``now``, unless it changed since it was read as ``lease``: then ``ConflictError``.

        Returns the lease as written; the holder ``None`` gives it back.
        """


class Events(Protocol):
    """What people read."""

    def record(self, stored: StoredPlan, reason: str, sentence: str) -> None:
        """Record one sentence about a plan; ``reason`` is one word in CamelCase. Never raises."""
