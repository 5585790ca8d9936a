"""How far a step is, as far as can be observed."""

from dataclasses import dataclass

from planner.execution.progress import StepProgress


@dataclass(frozen=True, slots=True)
class Finished:
    """The step is done; ``deviation`` is what went otherwise than planned."""

    message: str
    deviation: str | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The step is not known to be done, for the reason ``why``. ``progress`` is what to remember of it."""

    why: str
    progress: StepProgress | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """The step's effect is not in."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """The step cannot be done any more."""

    why: str


State = Finished | Unfinished | Missing | Impossible
