"""The verdict's shape: one line for each figure that was forecast."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from planner.model.times import check_time


class Fit(StrEnum):
    """Whether a figure was observed where it was forecast. ``UNKNOWN``: it was not forecast, or not observed."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: forecast from ``low`` to ``high``, observed from ``seen_low`` to ``seen_high``.

    ``unit`` is ``queues``, ``seconds``, ``messages`` or ``share``. Both observed bounds are the same where it was
    observed exactly. ``None`` is unknown. ``sentence`` says it all for people.
    """

    name: str
    unit: str
    low: float | None
    high: float | None
    seen_low: float | None
    seen_high: float | None
    fit: Fit
    sentence: str


@dataclass(frozen=True, slots=True)
class OtherVerdict:
    """How the forecast did for another group of the same pods."""

    group: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a forecast did. ``figures`` has every figure, known or not, always in the same order.

    ``others`` are those of the other groups that the same pods serve; ``None`` where there are none.
    """

    judged_at: datetime
    figures: tuple[Figure, ...]
    others: tuple[OtherVerdict, ...] | None = None

    def __post_init__(self) -> None:
        check_time("a verdict", self.judged_at)

    @property
    def all_figures(self) -> tuple[tuple[str | None, Figure], ...]:
        """Every figure, with its group where that is not the plan's own."""
        others = [(other.group, figure) for other in self.others or () for figure in other.figures]
        return (*((None, figure) for figure in self.figures), *others)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One line a figure, with its group where that is not the plan's own: ``inside: moved queues: …``."""
        return tuple(f"{figure.fit}: {_of_group(group, figure)}" for group, figure in self.all_figures)

    @property
    def misses(self) -> tuple[str, ...]:
        """A sentence for each figure that was observed outside of its forecast."""
        return tuple(_of_group(group, figure) for group, figure in self.all_figures if figure.fit is Fit.OUTSIDE)

    @property
    def fit(self) -> Fit:
        """``OUTSIDE`` with any miss, ``INSIDE`` when at least one figure was met and none missed, else ``UNKNOWN``."""
        fits = {figure.fit for _, figure in self.all_figures}
        return next((fit for fit in (Fit.OUTSIDE, Fit.INSIDE) if fit in fits), Fit.UNKNOWN)


def _of_group(group: str | None, figure: Figure) -> str:
    return figure.sentence if group is None else f"group {group}: {figure.sentence}"
