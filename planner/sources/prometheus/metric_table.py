"""One metric over time as a table: a row for each figure, a column for each step; what is not known is NaN.

Series of one figure are merged (labels churn), series that contradict each other are refused, and each value keeps the
time of its scrape: what Prometheus answers for a step may be up to five minutes old.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.sources.prometheus.answers import Floats, Series
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.errors import AmbiguousSeriesError, AnswerError
from planner.sources.prometheus.families import Family, Metric

GAP_FACTOR: Final = 1.75
"""As in ``planner.history.intervals``: longer than so many periods, and a scrape is missing."""
GONE_S: Final = 3600.0
"""A row that has been missing for so long is gone (a broker was removed); before, it is missing and a sum unknown."""
_OVERLAP: Final = 3
"""Columns in which two series of one figure may meet: a pod was replaced. More, and they are two figures."""
_READING: Final = "planner_reads"
_SHOWN: Final = 120
"""Characters of the labels that a message shows: they are a server's text, of any length."""
_VALUE, _TIME, _LOWEST, _RESETS = "value", "time", "lowest", "resets"

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MetricTable:
    """Rows ``keys`` (the metric's dimensions in order) by columns ``grid`` (seconds since 1970).

    ``values`` and ``times`` (of the scrapes) are NaN where nothing was there. ``lowest`` is the smallest value since
    the column before: below the value there, and a counter has begun anew in between. It is -inf where the server
    observed that.
    """

    dimensions: tuple[str, ...]
    keys: tuple[Key, ...]
    grid: Floats
    values: Floats
    times: Floats
    lowest: Floats

    def column(self, dimension: str) -> tuple[str, ...]:
        """Return each row's value of one dimension."""
        index = self.dimensions.index(dimension)
        return tuple(key[index] for key in self.keys)

    def rows(self, chosen: Sequence[int]) -> "MetricTable":
        """Return some of the rows."""
        pick = list(chosen)
        return MetricTable(
            self.dimensions,
            tuple(self.keys[row] for row in pick),
            self.grid,
            self.values[pick],
            self.times[pick],
            self.lowest[pick],
        )

    def of_topics(self, topics: Collection[str]) -> "MetricTable":
        """Return the rows of some topics."""
        return self.rows([row for row, name in enumerate(self.column("topic")) if name in topics])

    def onto(self, dimensions: Sequence[str]) -> "MetricTable":
        """Return a row for each value of some of the dimensions: counters of one scrape, added up.

        A counter that is not there counts 0, since exporters show it from its first event on.
        """
        indexes = [self.dimensions.index(dimension) for dimension in dimensions]
        members: dict[Key, list[int]] = {}
        for row, key in enumerate(self.keys):
            members.setdefault(tuple(key[index] for index in indexes), []).append(row)
        shape = (len(members), len(self.grid))
        values, times, lowest = (np.full(shape, np.nan) for _ in range(3))
        for number, rows in enumerate(members.values()):
            known = np.isfinite(self.values[rows]).any(axis=0)
            values[number][known] = np.nansum(self.values[rows], axis=0)[known]
            lowest[number] = np.nansum(self.lowest[rows], axis=0)
            times[number] = np.fmax.reduce(self.times[rows], axis=0)
        lowest[~np.isfinite(values)] = np.nan
        return MetricTable(tuple(dimensions), tuple(members), self.grid, values, times, lowest)


def read_table(
    prometheus: Prometheus,
    family: Family,
    metric: Metric,
    selectors: Sequence[str],
    since: datetime,
    until: datetime,
    step_s: float,
    *,
    is_timed: bool = True,
) -> MetricTable:
    """Return the metric over time. One query a selector reads values, their times and, of what only grows, the lowest
    since the column before: all as of one moment.

    Asking for times costs a server ten times as much as asking for values; without ``is_timed`` they stay unknown.
    Raises what ``Prometheus.range`` raises, and ``AmbiguousSeriesError``.
    """
    points = int(max(0.0, (until - since).total_seconds()) / step_s) + 1
    grid: Floats = since.timestamp() + np.arange(points, dtype=np.float64) * step_s
    readings_by_labels: dict[tuple[tuple[str, str], ...], dict[str, Series]] = {}
    for selector in selectors:
        for series in prometheus.range(_readings(selector, step_s, metric, is_timed=is_timed), since, until, step_s):
            labels = {k: v for k, v in series.labels.items() if k not in (_READING, "__name__")}
            readings_by_labels.setdefault(tuple(sorted(labels.items())), {})[series.labels.get(_READING, "")] = series
    least = np.nextafter(0, 1) if metric.zero_is_unknown else 0.0
    for pairs, readings in readings_by_labels.items():
        _check_scrapes(dict(pairs), readings.get(_TIME), step_s)
    lines = [_dense(dict(pairs), readings, grid, step_s) for pairs, readings in readings_by_labels.items()]
    runs = [known for line in lines if (known := _drop_unknown(line, least, is_timed=is_timed)) is not None]
    return _table(family, metric, runs, grid, step_s)


def _check_scrapes(labels: Mapping[str, str], scrapes: Series | None, step_s: float) -> None:
    """Raise ``AnswerError`` unless each scrape is of about the time at which its value stood.

    A server shows a value for its lookback delta, 5 minutes unless it is set otherwise.
    """
    if scrapes is None:
        return
    age_s = scrapes.times - scrapes.values
    if (strange := np.isfinite(scrapes.values) & ~((age_s >= -step_s) & (age_s <= GONE_S))).any():
        first = np.flatnonzero(strange)[0]
        series = ", ".join(f"{name}={value}" for name, value in labels.items())
        shown = series if len(series) <= _SHOWN else f"{series[:_SHOWN]}..."
        raise AnswerError(
            f"{shown or 'its series'}: at {scrapes.times[first]:.3f} the server shows a scrape of time "
            f"{scrapes.values[first]:.3f}, expected one of the {GONE_S:.0f} s before: check its clock and what stands "
            "before it"
        )


def _readings(selector: str, step_s: float, metric: Metric, *, is_timed: bool) -> str:
    queries = {_VALUE: selector}
    if is_timed:
        queries[_TIME] = f"timestamp({selector})"
    if metric.only_grows:
        since = f"{selector}[{max(1, round(1000 * step_s))}ms]"
        queries |= {_LOWEST: f"min_over_time({since})", _RESETS: f"resets({since})"}
    return " or ".join(f'label_replace({query},"{_READING}","{name}","","")' for name, query in queries.items())


@dataclass(frozen=True, slots=True, eq=False)
class _Dense:
    labels: Mapping[str, str]
    values: Floats
    times: Floats
    lowest: Floats


def _dense(labels: dict[str, str], readings: Mapping[str, Series], grid: Floats, step_s: float) -> _Dense:
    every = (_VALUE, _TIME, _LOWEST, _RESETS)
    values, times, lowest, resets = (_on_grid(readings.get(name), grid, step_s) for name in every)
    # Between scrapes a value is only repeated, and nothing lies in the step to be the lowest.
    lowest = np.where(np.isnan(lowest), values, np.where(resets > 0, -np.inf, lowest))
    return _Dense(labels, values, times, lowest)


def _drop_unknown(run: _Dense, least: float, *, is_timed: bool) -> _Dense | None:
    """Return the run without what is no figure; ``None`` when nothing remains.

    kafka_exporter shows -1 for what was never committed, kafka-lag-exporter NaN.
    """
    known = np.isfinite(run.values) & (run.values >= least) & (np.isfinite(run.times) | (not is_timed))
    if not known.any():
        return None
    return _Dense(run.labels, np.where(known, run.values, np.nan), np.where(known, run.times, np.nan), run.lowest)


def _on_grid(series: Series | None, grid: Floats, step_s: float) -> Floats:
    line = np.full(len(grid), np.nan)
    if series is not None:
        line[np.rint((series.times - grid[0]) / step_s).astype(np.int64)] = series.values
    return line


def _table(family: Family, metric: Metric, runs: Sequence[_Dense], grid: Floats, step_s: float) -> MetricTable:
    by_key: dict[Key, list[_Dense]] = {}
    for run in runs:
        key = tuple(run.labels.get(family.label(dimension), "") for dimension in metric.dimensions)
        by_key.setdefault(key, []).append(run)
    keys = tuple(sorted(by_key))
    rows = [_merge(by_key[key], family, step_s) for key in keys]

    def stack(lines: Sequence[Floats]) -> Floats:
        return np.vstack(lines) if lines else np.empty((0, len(grid)))

    return MetricTable(
        metric.dimensions,
        keys,
        grid,
        stack([row.values for row in rows]) * metric.unit,
        stack([row.times for row in rows]),
        stack([row.lowest for row in rows]) * metric.unit,
    )


def _merge(runs: Sequence[_Dense], family: Family, step_s: float) -> _Dense:
    """Return one line: where series meet, the one that appeared last is the current one."""
    pieces = sorted((piece for run in runs for piece in _pieces(run)), key=lambda piece: piece[1].start)
    values, times, lowest = (np.full_like(runs[0].values, np.nan) for _ in range(3))
    owner = np.full(len(values), -1)
    for number, (run, where) in enumerate(pieces):
        met = int(np.count_nonzero(owner[where] >= 0))
        if met > _OVERLAP + family.refresh_s / step_s:
            _refuse_twins(run, pieces, owner[where], family)
        values[where], times[where], lowest[where] = run.values[where], run.times[where], run.lowest[where]
        owner[where] = number
    return _Dense(runs[0].labels, values, times, lowest)


def _pieces(run: _Dense) -> list[tuple[_Dense, slice]]:
    """Return the run's stretches without a hole."""
    known = np.flatnonzero(np.isfinite(run.values))
    stretches = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
    return [(run, slice(int(columns[0]), int(columns[-1]) + 1)) for columns in stretches]


def _refuse_twins(
    run: _Dense, pieces: Sequence[tuple[_Dense, slice]], owners: NDArray[np.int64], family: Family
) -> None:
    for number in sorted({int(each) for each in owners if each >= 0}):
        other = pieces[number][0].labels
        differing = sorted(
            label for label in run.labels.keys() | other.keys() if run.labels.get(label) != other.get(label)
        )
        conflicting = [label for label in differing if label not in family.churning]
        if conflicting:
            shown = "; ".join(
                f"{each} is {other.get(each, '')!r} and {run.labels.get(each, '')!r}" for each in conflicting[:3]
            )
            raise AmbiguousSeriesError(
                f"metrics of {family.name} give one figure twice at the same time: {shown}. Name the one that is meant "
                f"by a matcher, for example {conflicting[0]}={run.labels.get(conflicting[0], '')!r}"
            )


# From values to rates and levels of the group.


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """A rate for each row and column (NaN: unknown), and the columns that lie in a gap."""

    by_row: Floats
    is_gap: NDArray[np.bool_]


def rates(table: MetricTable, period_s: float) -> Rates:
    """Return units per second: each row's difference over the time between its own scrapes.

    NaN across a reset, and before the second scrape. A column without a new scrape has the rate of the span around it.
    """
    by_row = np.full_like(table.values, np.nan)
    is_gap = np.zeros(by_row.shape, dtype=np.bool_)
    for row in range(len(table.keys)):
        fresh = _fresh(table.times[row])
        value, time = table.values[row][fresh], table.times[row][fresh]
        seconds = np.diff(time)
        has_reset = _resets(table.values[row], table.lowest[row], fresh)
        rate = np.where(has_reset, np.nan, np.diff(value) / seconds)
        spans = np.diff(fresh)
        where = np.arange(len(by_row[row]))[fresh[0] + 1 : fresh[-1] + 1] if len(fresh) else np.empty(0, dtype=np.int64)
        by_row[row][where] = np.repeat(rate, spans)
        is_gap[row][where] = np.repeat(seconds > GAP_FACTOR * period_s, spans)
    return Rates(by_row, is_gap)


def _fresh(times: Floats) -> NDArray[np.int64]:
    """Return the columns in which a new scrape shows."""
    known = np.flatnonzero(np.isfinite(times))
    return known[np.diff(times[known], prepend=-np.inf) > 0]


def _resets(values: Floats, lowest: Floats, fresh: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each pair of neighbouring fresh columns whether the counter began anew between them."""
    if len(fresh) < 2:
        return np.empty(0, dtype=np.bool_)
    least = np.fmin.reduceat(lowest[: fresh[-1] + 1], fresh[:-1] + 1)
    return (np.diff(values[fresh]) < 0) | (least < values[fresh[:-1]])


def total(lines: Floats, expected: NDArray[np.bool_]) -> Floats:
    """Return the sum of the rows for each column, NaN where an expected row is unknown or none is expected."""
    is_whole = expected.any(axis=0) & ~(expected & ~np.isfinite(lines)).any(axis=0)
    return np.where(is_whole, np.where(expected, np.nan_to_num(lines), 0.0).sum(axis=0), np.nan)


def expected_rows(table: MetricTable) -> NDArray[np.bool_]:
    """Return, by row and column, whether the row should be there: since its first value, until long after its last."""
    expected = np.zeros(table.values.shape, dtype=np.bool_)
    for row, line in enumerate(table.values):
        known = np.flatnonzero(np.isfinite(line))
        if len(known):
            expected[row] = (table.grid >= table.grid[known[0]]) & (table.grid <= table.grid[known[-1]] + GONE_S)
    return expected


def period_of(tables: Sequence[MetricTable], step_s: float) -> float:
    """Return the time between readings: the median between fresh scrapes, at least the step."""
    gaps = [np.diff(line[_fresh(line)]) for table in tables for line in table.times]
    known = np.concatenate(gaps) if gaps else np.empty(0)
    return max(step_s, float(np.median(known))) if len(known) else step_s
