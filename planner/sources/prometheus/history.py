"""``history``: a group's past out of metrics, in one go."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import numpy as np

from planner.errors import BadInputError
from planner.history.intervals import queue_intervals
from planner.model.intervals import QueueInterval
from planner.model.points import GroupPoint, MetricHistory
from planner.model.queues import TopicPartition
from planner.model.routes import RouteTable
from planner.model.samples import GroupSample, QueueOffsets
from planner.sources.prometheus.choice import Choice, Wanted, choose
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.families import Metric
from planner.sources.prometheus.figures import Sheets, group_points, moment
from planner.sources.prometheus.sheet import Sheet, period_of, read_sheet

STEP_S: Final = 60.0
_NAMED: Final = 5


def history(
    prometheus: Prometheus, wanted: Wanted, since: datetime, until: datetime, step_s: float = STEP_S
) -> MetricHistory:
    """Return what the server knows of the group between ``since`` and ``until``, read every ``step_s`` seconds.

    A step below the family's refresh time is raised to it, since values in between only repeat. Raises
    ``BadInputError`` for an empty span, ``UnknownNameError`` for a group or topic that is not there,
    ``AmbiguousSeriesError`` when figures contradict each other, and what ``Prometheus.range`` raises.
    """
    if not since < until or step_s <= 0:
        raise BadInputError(
            f"history from {since.isoformat()} to {until.isoformat()} every {step_s:g} s is empty: correct the span"
        )
    choice = choose(prometheus, wanted, since, until)
    sheets = read_sheets(prometheus, choice, since, until, max(step_s, choice.family.refresh_s))
    return MetricHistory(
        system=wanted.system,
        cluster=choice.cluster,
        group=wanted.group,
        source=f"prometheus/{choice.family.name}",
        period_s=sheets.period_s,
        refresh_s=choice.family.refresh_s,
        newest_at=sheets.newest_at,
        intervals=_intervals(choice, sheets),
        points=group_points(sheets, choice.topics),
        by_topic=_by_topic(choice, sheets),
        problems=(*choice.problems, *gaps_in_knowledge(choice, sheets)),
    )


def read_sheets(prometheus: Prometheus, choice: Choice, since: datetime, until: datetime, step_s: float) -> Sheets:
    """Return all of the family's metrics of the group over time."""
    family = choice.family

    def read(metric: Metric, *, is_timed: bool = True) -> Sheet:
        found = read_sheet(
            prometheus, family, metric, choice.selectors(metric), since, until, step_s, is_timed=is_timed
        )
        return found.of_topics(choice.topics) if "topic" in metric.dimensions else found

    arrived = read(family.arrived)
    # Offsets of partitions are there whenever lag is, and have its times; counters come with the first message only.
    lag = read(family.lag, is_timed=not (family.is_by_queue and arrived.keys))
    return Sheets(
        arrived=arrived,
        consumed=read(family.consumed) if family.consumed else None,
        lag=lag,
        lag_time=read(family.lag_time, is_timed=False) if family.lag_time else None,
        members=read(family.members, is_timed=False) if family.members else None,
        members_metric=family.members,
        period_s=period_of((arrived, lag), step_s),
    )


def partition_offsets(sheets: Sheets) -> Iterator[tuple[datetime, tuple[QueueOffsets, ...]]]:
    """Yield, for each column with a new scrape, its time and the offsets of every partition that it shows.

    The consumer offset of a partition that nobody committed is ``None``.
    """
    arrived, consumed = sheets.arrived, sheets.consumed
    committed = dict(zip(partitions(consumed), consumed.values, strict=True)) if consumed is not None else {}
    nothing = np.full(len(arrived.grid), np.nan)
    rows = [(one, arrived.values[row], committed.get(one, nothing)) for row, one in enumerate(partitions(arrived))]
    times = np.fmax.reduce(arrived.times, axis=0) if rows else nothing
    newest = -np.inf
    for column in np.flatnonzero(np.isfinite(times)):
        if times[column] > newest:
            newest = times[column]
            offsets = (
                QueueOffsets(partition, int(ends[column]), _offset(commits[column]))
                for partition, ends, commits in rows
                if np.isfinite(ends[column])
            )
            yield moment(newest), tuple(offsets)


def gaps_in_knowledge(choice: Choice, sheets: Sheets) -> Iterator[str]:
    """Yield what these metrics cannot tell of this group."""
    family = choice.family
    if not family.is_by_queue:
        yield f"metrics of {family.name} tell topics and brokers, not single queues: rates of queues are unknown"
    if not sheets.arrived.keys:
        yield f"no series {family.arrived.names[0]} of topics {', '.join(choice.topics)}: what arrives is unknown"
    if not sheets.lag.keys:
        yield f"no series {family.lag.names[0]} of group {choice.wanted.group}: its lag is unknown"
    if family.is_by_queue:
        yield from _never_committed(sheets)


def _never_committed(sheets: Sheets) -> Iterator[str]:
    committed = set(partitions(sheets.consumed)) if sheets.consumed is not None else set()
    silent = sorted(set(partitions(sheets.arrived)) - committed)
    if silent:
        shown = ", ".join(map(str, silent[:_NAMED])) + (f" and {len(silent) - _NAMED} more" if silent[_NAMED:] else "")
        yield f"nothing was ever committed on {shown}: their lag is unknown and not in the group's"


def _by_topic(choice: Choice, sheets: Sheets) -> tuple[GroupPoint, ...]:
    if choice.family.is_by_queue:
        return ()
    return tuple(point for topic in choice.topics for point in group_points(sheets, choice.topics, topic))


def _intervals(choice: Choice, sheets: Sheets) -> tuple[QueueInterval, ...]:
    if not choice.family.is_by_queue:
        return ()
    samples = (
        GroupSample("kafka", choice.cluster, choice.wanted.group, at, 0.0, RouteTable(), (), offsets)
        for at, offsets in partition_offsets(sheets)
    )
    return queue_intervals(samples, sheets.period_s)


def partitions(sheet: Sheet) -> tuple[TopicPartition, ...]:
    """Return the partition of each row. Raises ``BadInputError`` when the label holds no number."""
    numbers = sheet.column("partition")
    for number in numbers:
        if not number.isdecimal():
            raise BadInputError(f"the partition label holds {number!r}, which is no number: name the label that does")
    return tuple(TopicPartition(topic, int(one)) for topic, one in zip(sheet.column("topic"), numbers, strict=True))


def _offset(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None
