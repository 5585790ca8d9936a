"""``RolloutStatus``: how far a plan has come. All that an executor knows between two reconciles stands here."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from planner.execution.phases import Phase, check_move
from planner.model.times import check_time, check_times
from planner.verification.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval of a digest. ``by`` is the name that the API server knows, ``None`` where it did not name one."""

    digest: str
    by: str | None
    at: datetime

    def __post_init__(self) -> None:
        check_time("an approval", self.at)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plan is not carried out: a code to count by and a sentence that names the difference."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class PodBefore:
    """A pod as it was when a step began."""

    name: str
    deletion_cost: int


@dataclass(frozen=True, slots=True)
class StepProgress:
    """How far one step has come; it is written before the step's effect, so its undo is known from then on.

    ``index`` counts the plan's steps from 0. ``paused_s`` seconds since ``started_at`` count for no time limit.
    ``pods_before`` are the pods that it may stop or that it marks, as they were when it began.
    ``seen`` and ``seen_at`` are of the first of two observations that must agree; where offsets are to be set, ``seen``
    is their fingerprint from before; of a stop ``seen_at`` is when marks were found to be lost. ``undo_since`` is when
    its undo began. ``message`` says what was observed, against the forecast where there is one.
    """

    index: int
    kind: str
    started_at: datetime
    finished_at: datetime | None = None
    undo_since: datetime | None = None
    undone_at: datetime | None = None
    paused_s: float = 0.0
    pods_before: tuple[PodBefore, ...] = ()
    seen: str | None = None
    seen_at: datetime | None = None
    message: str = ""

    def __post_init__(self) -> None:
        times = (self.started_at, self.finished_at, self.undo_since, self.undone_at, self.seen_at)
        check_times(f"step {self.index}", *times)


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is true of a plan or policy or not, as Kubernetes spells it: ``status`` is ``True`` or ``False``.

    ``last_transition_time`` is when the status changed last, ``observed_generation`` the object's generation.
    """

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int | None = None


@dataclass(frozen=True, slots=True)
class RolloutStatus:
    """How far a plan has come.

    ``steps`` are those that have begun, in order. ``message`` is one sentence on what goes on or went wrong, ``held``
    why nothing is done now, ``surprises`` what went otherwise than planned without harm. ``ended`` says which state
    the group was left in: ``nothing`` is the old state that was never left, ``between`` neither. ``executor`` wrote
    this last. ``observed_generation`` is the plan object's that this speaks of. ``kind``, ``progress`` (steps done of
    all, like 3/7) and ``conditions`` follow from the rest, and are written for readers (``with_conditions``).
    """

    phase: Phase = Phase.PENDING
    message: str = "waits for approval"
    phase_since: datetime | None = None
    approval: Approval | None = None
    steps: tuple[StepProgress, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    surprises: tuple[str, ...] = ()
    held: str | None = None
    ended: Literal["nothing", "old", "new", "between"] | None = None
    verdict: Verdict | None = None
    executor: str | None = None
    last_look_at: datetime | None = None
    observed_generation: int | None = None
    kind: str | None = None
    progress: str | None = None
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        check_times("a plan's status", self.phase_since, self.last_look_at)

    @property
    def step(self) -> int:
        """Index of the step that is being done or comes next; the number of steps once all are finished."""
        return sum(step.finished_at is not None for step in self.steps)

    @property
    def current(self) -> StepProgress | None:
        """The step that has begun and is not finished."""
        return self.steps[-1] if self.steps and self.steps[-1].finished_at is None else None

    def enter(self, phase: Phase, message: str, now: datetime) -> "RolloutStatus":
        """Return the status in another phase; raises ``IllegalMoveError`` where that cannot follow this one."""
        check_move(self.phase, phase)
        return replace(self, phase=phase, message=message, phase_since=now, held=None)

    def begin(self, step: StepProgress) -> "RolloutStatus":
        """Return the status with one more step begun. Raises ``ValueError`` unless it is the next step."""
        if step.index != len(self.steps) or self.current is not None:
            raise ValueError(f"step {step.index} cannot begin: {len(self.steps)} have begun, {self.step} are finished")
        return replace(self, steps=(*self.steps, step), held=None)

    def with_step(self, step: StepProgress) -> "RolloutStatus":
        """Return the status with a begun step's progress renewed."""
        return replace(self, steps=(*self.steps[: step.index], step, *self.steps[step.index + 1 :]))
