"""What a group's load may be from here, and how earlier forecasts of the same kind did."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

import numpy as np

from planner.demand.events import Event, event_load, usual_rates, with_events
from planner.demand.futures import futures, has_errors
from planner.demand.recent import MinuteLoad, minute_load
from planner.demand.series import Floats, LoadSeries
from planner.model.snapshot import GroupSnapshot

BINS_MIN = (5, 10, 15, 30, 60)
"""Stretches that follow each other: up to 5 minutes ahead, then up to 15, 30, 60 and 120."""
Band = tuple[float, float]

BAND: Band = (10.0, 90.0)
"""Percentiles of the possible loads: four of five should come to lie between them."""
LATELY = 432
"""Bands of three days say how wide one has to be: of fewer, one bad night would count for half."""
LEAST_OVER = 12
"""Bands that have to be over before they say so."""
LEAST_TO_NARROW = 108
"""Bands that have to be over before they make one narrower."""
MOST_EXCESS = 4.0
"""A band that missed by more counts for this much: a load that stops is no measure for those that go on."""
LEARNING_RATE = 0.01
MOST_RAISED = 0.5
"""Part of what a band does not promise by which its level rises at the most: 80 % to 90 %."""
SHOWN_WIDENING = 1.005
"""A smaller factor is not mentioned."""
LEAST_RATE = 1e-9
EVERY_MIN = 10
"""Earlier forecasts are looked at again so many minutes apart."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of the time ahead, in minutes from now; loads in messages per second.

    Of ``forecasts`` of this stretch in the last three days that are over, ``inside`` lay between ``low`` and ``high``;
    ``level_miss`` is by how much the level alone missed, as a share of it in the median, ``None`` without any.
    ``widened`` is the factor by which the band was made wider on each side, because earlier ones were too narrow; below
    1 it is narrower, because they were too wide. Earlier bands count as they were then, by what was known to be over.
    """

    from_minutes: int
    to_minutes: int
    low: float
    middle: float
    high: float
    forecasts: int
    inside: int
    level_miss: float | None
    widened: float = 1.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """The level in messages per second, how many minutes of load it rests on, and what may come.

    ``rests_on_errors`` says whether the possible loads have the errors of earlier forecasts in them; else they go
    around the level, as far as that missed so far or wider.
    """

    level: float
    minutes: int
    rests_on_errors: bool
    stretches: tuple[Stretch, ...]


def describe_widening(stretches: Sequence[Stretch]) -> str:
    """Return what earlier bands made of these, for people; empty where they are as the possible loads are."""
    widest, narrowest = (pick(stretch.widened for stretch in stretches) for pick in (max, min))
    wider = f"up to {widest:.2f} times wider on each side" if widest > SHOWN_WIDENING else ""
    narrower = f"up to {1 / narrowest:.2f} times narrower on each side" if narrowest * SHOWN_WIDENING < 1 else ""
    if wider and narrower:
        return f"Earlier bands of some stretches were too narrow, of others too wide: these are {wider} or {narrower}."
    if wider:
        return f"Earlier bands were too narrow, so that these are {wider}."
    return f"Earlier bands were too wide, so that these are {narrower}." if narrower else ""


@dataclass(slots=True)
class _Record:
    """How the earlier forecasts of one stretch did, in order of time.

    A band is made as wide as it had to be for the share of the bands of late that it promises to hold what came
    (conformal prediction: Romano, Patterson, Candès 2019), for a larger share while fewer bands held it than promised,
    a smaller one while more did (Gibbs, Candès 2021). What was not over yet when a forecast was made is not in its
    widening.
    """

    promised: float
    ends: list[int] = field(default_factory=list)
    excesses: list[float] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    level_misses: list[float] = field(default_factory=list)
    missing: float = 0.0
    learned: int = 0

    def add(self, known: int, end: int, band: tuple[float, float, float], level: float, actual: float) -> None:
        """Add a forecast made after ``known`` minutes of a stretch that was over after ``end``."""
        low, _, high = widened_band(band, self.widening(known))
        excess = max(band[0] / max(actual, LEAST_RATE), actual / max(band[2], LEAST_RATE))
        self.ends.append(end)
        self.excesses.append(min(excess, MOST_EXCESS))
        self.inside.append(low <= actual <= high)
        self.level_misses.append(abs(actual / level - 1))

    def widening(self, minutes: int) -> float:
        """Return the factor for a band that is made after so many minutes, which do not become fewer.

        1 where too few bands are over.
        """
        over = bisect_right(self.ends, minutes)
        self.missing += LEARNING_RATE * sum(self.promised - inside for inside in self.inside[self.learned : over])
        self.learned = over
        if over < LEAST_OVER:
            return 1.0
        most = self.promised + MOST_RAISED * (1.0 - self.promised)
        factor = float(np.quantile(self.excesses[:over], min(max(self.promised + self.missing, 0.0), most)))
        return factor if over >= LEAST_TO_NARROW else max(1.0, factor)


def outlook(snapshot: GroupSnapshot) -> Outlook | None:
    """Return what the group's load may be, ``None`` where the snapshot has no minute of it up to its own time."""
    return outlook_of(minute_load(snapshot.recent, snapshot.at, snapshot.past_load), snapshot.at)


def outlook_of(load: MinuteLoad, until: datetime, events: Sequence[Event] = (), band: Band = BAND) -> Outlook | None:
    """Return what a load may be, ``None`` without any minute of it.

    The last minute ends at ``until``; ``band`` are the percentiles of the possible loads that are low and high. Within
    a known event a stretch has the highest load of its minutes; the level and how earlier forecasts did are those of
    the load without the events' factors.
    """
    if not load.rates:
        return None
    series = LoadSeries(load=usual_rates(load.rates, events, until), averaged=load.averaged)
    paths = futures(series, BINS_MIN)
    if events:
        paths = with_events(paths, BINS_MIN, event_load(events, until, sum(BINS_MIN)))
    records = _records(series, band)
    ends = np.cumsum(BINS_MIN).tolist()
    return Outlook(
        level=float(series.level[-1]),
        minutes=len(series),
        rests_on_errors=has_errors(len(series), BINS_MIN),
        stretches=tuple(
            _stretch(end - length, end, loads, record, len(series))
            for end, length, loads, record in zip(ends, BINS_MIN, _bands(paths, band), records, strict=True)
        ),
    )


def _stretch(first: int, end: int, band: tuple[float, float, float], record: _Record, minutes: int) -> Stretch:
    widened = record.widening(minutes)
    low, middle, high = widened_band(band, widened)
    miss = float(np.median(record.level_misses)) if record.level_misses else None
    inside = sum(record.inside)
    return Stretch(first, end, low, middle, high, len(record.inside), inside, miss, widened)


def widened_band(band: tuple[float, float, float], factor: float) -> tuple[float, float, float]:
    """Return the band with both sides further from its middle by the factor, nearer to it by one below 1."""
    low, middle, high = band
    return min(low / factor, middle), middle, max(high * factor, middle)


def _bands(paths: Floats, band: Band) -> list[tuple[float, float, float]]:
    low, high = band
    return [tuple(column) for column in np.percentile(paths, (low, 50.0, high), axis=0).T.tolist()]


def _records(whole: LoadSeries, band: Band) -> list[_Record]:
    """Return for each stretch how the ``LATELY`` last forecasts did, made anew from what was known then."""
    records = [_Record((band[1] - band[0]) / 100) for _ in BINS_MIN]
    skipped = max((len(whole) - 1) // EVERY_MIN - LATELY, 0)
    for known in range(EVERY_MIN * (skipped + 1), len(whole), EVERY_MIN):
        series = whole.known_after(known)
        bands, level = _bands(futures(series, BINS_MIN), band), float(series.level[-1])
        edges = known + np.concatenate(([0], np.cumsum(BINS_MIN)))
        for record, loads, (first, last) in zip(records, bands, pairwise(edges.tolist()), strict=True):
            if last > len(whole) or level <= 0:
                break
            actual = float(whole.summed[last] - whole.summed[first]) / float(last - first)
            record.add(known, last, loads, level, actual)
    return records
