"""How far a step is, as far as can be seen."""

from dataclasses import dataclass

from planner.execution.progress import StepProgress


@dataclass(frozen=True, slots=True)
class Finished:
    """The step is done; ``surprise`` is what went otherwise than planned."""

    message: str
    surprise: str | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The step is not done yet, or nobody can see it; ``why`` tells. ``progress`` is what to remember of this look."""

    why: str
    progress: StepProgress | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """The step's effect is not in."""


@dataclass(frozen=True, slots=True)
class Hopeless:
    """The step cannot be done any more."""

    why: str


State = Finished | Unfinished | Missing | Hopeless
