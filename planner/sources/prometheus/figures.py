"""From tables to points: what the whole group, or one topic, did between two columns."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planner.history.rates import DECIMALS
from planner.model.points import GroupPoint
from planner.sources.prometheus.answers import Floats
from planner.sources.prometheus.errors import AnswerError
from planner.sources.prometheus.families import Metric, Total
from planner.sources.prometheus.metric_table import MetricTable, expected_rows, rates, total

_SEPARATE = ("cluster", "broker", "topic", "partition")
"""Dimensions whose values are scraped, or lost, one by one; all others are of one scrape."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupMetrics:
    """All that is read of one group; ``None`` for what the family does not have."""

    arrived: MetricTable
    consumed: MetricTable | None
    lag: MetricTable
    lag_time: MetricTable | None
    members: MetricTable | None
    members_metric: Metric | None
    period_s: float

    @property
    def all(self) -> tuple[MetricTable, ...]:
        """The tables that exist."""
        every = (self.arrived, self.consumed, self.lag, self.lag_time, self.members)
        return tuple(table for table in every if table is not None)

    @property
    def newest_at(self) -> datetime | None:
        """The time of the newest scrape."""
        known = [float(np.fmax.reduce(table.times, axis=None)) for table in self.all if np.isfinite(table.times).any()]
        return moment(max(known)) if known else None


def group_points(metrics: GroupMetrics, topics: Collection[str], topic: str | None = None) -> tuple[GroupPoint, ...]:
    """Return a point for each column in which a new scrape shows, oldest first.

    The first column has no point: nothing is known of what came before. With ``topic`` only that topic counts, and
    members, which read all topics, are unknown.
    """
    chosen = {topic} if topic is not None else set(topics)
    arrived, lag = _separate(metrics.arrived.of_topics(chosen)), metrics.lag.of_topics(chosen)
    consumed = _separate(metrics.consumed.of_topics(chosen)) if metrics.consumed is not None else None
    arriving = rates(arrived, metrics.period_s)
    consuming = rates(consumed, metrics.period_s) if consumed is not None else None
    lines = _Lines(
        arrival=total(arriving.by_row, expected_rows(arrived)),
        consumption=total(consuming.by_row, expected_rows(consumed)) if consuming and consumed else None,
        lag=total(lag.values, expected_rows(lag)),
        lag_s=_largest(metrics.lag_time.of_topics(chosen)) if metrics.lag_time is not None else None,
        members=_members(metrics) if topic is None else None,
        is_gap=_any(arriving.is_gap, consuming.is_gap if consuming else None),
    )
    return lines.points(
        _most(np.vstack([table.times for table in (arrived, consumed, lag) if table is not None])), topic
    )


@dataclass(frozen=True, slots=True)
class Levels:
    """The group at one moment: lag in messages and seconds, members; ``None`` is unknown."""

    lag: int | None
    lag_s: float | None
    members: int | None


def latest_levels(metrics: GroupMetrics) -> Levels:
    """Return the levels in the last column."""
    lag = total(metrics.lag.values, expected_rows(metrics.lag))
    lag_s = _largest(metrics.lag_time) if metrics.lag_time is not None else None
    members = _members(metrics)
    return Levels(
        lag=_count(lag[-1]),
        lag_s=None if lag_s is None else _number(lag_s[-1]),
        members=None if members is None else _count(members[-1]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """A figure for each column; NaN is unknown. ``consumption`` is ``None`` where no metric counts it."""

    arrival: Floats
    consumption: Floats | None
    lag: Floats
    lag_s: Floats | None
    members: Floats | None
    is_gap: NDArray[np.bool_]

    def points(self, times: Floats, topic: str | None) -> tuple[GroupPoint, ...]:
        """Return a point for each pair of neighbouring columns with a newer scrape than any before."""
        columns = np.flatnonzero(np.isfinite(times))
        fresh = columns[np.diff(np.maximum.accumulate(times[columns]), prepend=-np.inf) > 0]
        return tuple(self._point(times, before, column, topic) for before, column in pairwise(fresh))

    def _point(self, times: Floats, before: int, column: int, topic: str | None) -> GroupPoint:
        seconds = float(times[column] - times[before])
        return GroupPoint(
            at=moment(times[column]),
            seconds=round(seconds, 3),
            arrival_rate=_number(self.arrival[column]),
            consumption_rate=_rate(self._consumption(before, column, seconds)),
            lag=_count(self.lag[column]),
            lag_s=None if self.lag_s is None else _number(self.lag_s[column]),
            members=None if self.members is None else _count(self.members[column]),
            is_gap=bool(self.is_gap[before + 1 : column + 1].any()),
            topic=topic,
        )

    def _consumption(self, before: int, column: int, seconds: float) -> float:
        """Return what was counted; else what arrived less what the lag has grown by: both are of one scrape."""
        if self.consumption is not None:
            return float(self.consumption[column])
        return float(self.arrival[column] - (self.lag[column] - self.lag[before]) / seconds)


def moment(seconds: float) -> datetime:
    """Return a time of the server as a time of ours, to the millisecond that it has. Raises ``AnswerError``."""
    try:
        return datetime.fromtimestamp(round(float(seconds), 3), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise AnswerError(
            f"Prometheus says that a value was scraped {float(seconds):g} s after 1970: check the server's clock and "
            "what stands before it"
        ) from error


def _separate(table: MetricTable) -> MetricTable:
    return table.onto([dimension for dimension in table.dimensions if dimension in _SEPARATE])


def _any(first: NDArray[np.bool_], second: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Return the columns in which any row is true."""
    every: NDArray[np.bool_] = np.logical_or.reduce(first if second is None else np.vstack([first, second]), axis=0)
    return every


def _largest(table: MetricTable) -> Floats:
    """Return the largest value of each column, NaN where an expected row is missing."""
    is_whole = np.isfinite(total(table.values, expected_rows(table)))
    return np.where(is_whole, _most(table.values), np.nan)


def _members(metrics: GroupMetrics) -> Floats | None:
    table, metric = metrics.members, metrics.members_metric
    if table is None or metric is None:
        return None
    if metric.total is Total.LARGEST_BROKER:
        table = table.onto(["cluster", "broker"])
    return _most(table.values)


def _most(values: Floats) -> Floats:
    """Return the largest known value of each column, NaN where there is none."""
    most: Floats = np.fmax.reduce(np.vstack([np.full((1, values.shape[1]), np.nan), values]), axis=0)
    return most


def _number(value: float) -> float | None:
    return round(float(value), DECIMALS) if np.isfinite(value) else None


def _rate(value: float) -> float | None:
    """Return a difference over time as a rate: below 0 an offset was set back, and a negative rate means nothing."""
    return _number(value) if value >= 0 else None


def _count(value: float) -> int | None:
    return round(float(value)) if np.isfinite(value) else None
