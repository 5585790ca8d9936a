"""``TrackRecord``: what a group's earlier forecasts came to, figure by figure, and where that speaks against the next.

A verdict mostly knows bounds, so many figures of it are unknown; they count as forecasts that were not missed. So a
doubt is only ever raised by misses that were observed for sure.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from planner.verification.calibration import CalibrationRecord
from planner.verification.verdict import Fit

LAST: Final = 20
"""So many forecasts of a group count: what was long ago was another group, or another planner."""
LEAST: Final = 5
"""With fewer forecasts of a figure nothing is said against it."""
MISSES_ALLOWED: Final = 0.1
"""Forecast intervals are the middle 90 % of trials, so that one of ten may miss."""
BY_CHANCE: Final = 0.01
"""Misses that a true interval would bring about more seldom than this are no chance. Six figures are judged, so
at most six of a hundred groups whose forecasts are right are doubted at a time."""
NO_INTERVALS: Final = ("busiest consumer", "wait of a new message")
"""Forecast at the upper rate, with no share in which that holds: misses are reported, and never doubted."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How often one figure was forecast, and how often the observation was ``inside``, ``outside`` or unsure."""

    name: str
    inside: int
    outside: int
    unknown: int

    @property
    def forecasts(self) -> int:
        """How often it was forecast."""
        return self.inside + self.outside + self.unknown

    @property
    def chance(self) -> float:
        """How likely so many misses or more are where every interval holds nine times of ten (binomial).

        Changes of one group are taken to miss independently of each other.
        """
        least, most, share = self.outside, self.forecasts, MISSES_ALLOWED
        return math.fsum(
            math.comb(most, missed) * share**missed * (1 - share) ** (most - missed)
            for missed in range(least, most + 1)
        )

    @property
    def is_doubtful(self) -> bool:
        """True with more misses than chance brings about, once there are ``LEAST`` forecasts."""
        return self.name not in NO_INTERVALS and self.forecasts >= LEAST and self.chance < BY_CHANCE


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """What the last ``forecasts`` forecasts of a group came to, judged from ``since`` to ``until``."""

    group: str
    forecasts: int
    since: datetime | None
    until: datetime | None
    tallies: tuple[Tally, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """What it comes to, in sentences for people."""
        return tuple(self._lines())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Half a sentence for each figure that was missed too often for its intervals to be right; most have none."""
        return tuple(_doubt(tally, self.group) for tally in self.tallies if tally.is_doubtful)

    def _lines(self) -> Iterator[str]:
        if self.since is None or self.until is None:
            yield f"No forecast of group {self.group} was judged yet."
            return
        tallies = "; ".join(_tally_text(tally) for tally in self.tallies) or "no figure was forecast"
        days = dict.fromkeys(f"{at:%Y-%m-%d}" for at in (self.since, self.until))
        last = "last forecast" if self.forecasts == 1 else f"last {self.forecasts} forecasts"
        yield f"Of the {last} of group {self.group} ({' to '.join(days)}): {tallies}."
        yield from (f"Doubt this: {doubt}." for doubt in self.doubts)


def track_record(group: str, records: Sequence[CalibrationRecord]) -> TrackRecord:
    """Return what the last of a group's ``records``, oldest first, come to; figures in the order of the newest ones."""
    last = records[-LAST:]
    fits: dict[str, list[Fit]] = {}
    for record in reversed(last):
        for miss in record.misses:
            if miss.width is not None:  # else it was not forecast
                fits.setdefault(miss.name, []).append(miss.fit)
    tallies = tuple(
        Tally(name, *(fits_of_figure.count(fit) for fit in (Fit.INSIDE, Fit.OUTSIDE, Fit.UNKNOWN)))
        for name, fits_of_figure in fits.items()
    )
    since, until = (last[0].judged_at, last[-1].judged_at) if last else (None, None)
    return TrackRecord(group, len(last), since, until, tallies)


def _tally_text(tally: Tally) -> str:
    missed = f", outside {tally.outside}" if tally.outside else ""
    unseen = f", unknown {tally.unknown}" if tally.unknown else ""
    return f"{tally.name} inside {tally.inside} of {tally.forecasts}{missed}{unseen}"


def _doubt(tally: Tally, group: str) -> str:
    often = f"once in {count:,}" if (count := round(1 / tally.chance)) < 1_000_000 else "never"
    return (
        f"{tally.name} was missed in {tally.outside} of {tally.forecasts} forecasts of group {group}, which intervals "
        f"that hold nine times of ten come to {often}"
    )
