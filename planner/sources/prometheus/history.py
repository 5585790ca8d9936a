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
from planner.sources.prometheus.choice import Choice, GroupQuery, choose
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.families import Metric
from planner.sources.prometheus.figures import GroupMetrics, group_points, moment
from planner.sources.prometheus.metric_table import MetricTable, period_of, read_table

STEP_S: Final = 60.0
_NAMED: Final = 5


def history(
    prometheus: Prometheus, query: GroupQuery, since: datetime, until: datetime, step_s: float = STEP_S
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
    choice = choose(prometheus, query, since, until)
    metrics = read_metrics(prometheus, choice, since, until, max(step_s, choice.family.refresh_s))
    return MetricHistory(
        system=query.system,
        cluster=choice.cluster,
        group=query.group,
        source=f"prometheus/{choice.family.name}",
        period_s=metrics.period_s,
        refresh_s=choice.family.refresh_s,
        newest_at=metrics.newest_at,
        intervals=_intervals(choice, metrics),
        points=group_points(metrics, choice.topics),
        by_topic=_by_topic(choice, metrics),
        problems=(*choice.problems, *gaps_in_knowledge(choice, metrics)),
    )


def group_history(
    prometheus: Prometheus, query: GroupQuery, since: datetime, until: datetime
) -> tuple[GroupPoint, ...]:
    """Return the ``points`` of ``history`` alone: days of a group of many queues take no more than its points do."""
    choice = choose(prometheus, query, since, until)
    metrics = read_metrics(prometheus, choice, since, until, max(STEP_S, choice.family.refresh_s))
    return group_points(metrics, choice.topics)


def read_metrics(
    prometheus: Prometheus, choice: Choice, since: datetime, until: datetime, step_s: float
) -> GroupMetrics:
    """Return all of the family's metrics of the group over time."""
    family = choice.family

    def read(metric: Metric, *, is_timed: bool = True) -> MetricTable:
        table = read_table(
            prometheus, family, metric, choice.selectors(metric), since, until, step_s, is_timed=is_timed
        )
        return table.of_topics(choice.topics) if "topic" in metric.dimensions else table

    arrived = read(family.arrived)
    # Offsets of partitions are there whenever lag is, and have its times; counters come with the first message only.
    lag = read(family.lag, is_timed=not (family.is_by_queue and arrived.keys))
    return GroupMetrics(
        arrived=arrived,
        consumed=read(family.consumed) if family.consumed else None,
        lag=lag,
        lag_time=read(family.lag_time, is_timed=False) if family.lag_time else None,
        members=read(family.members, is_timed=False) if family.members else None,
        members_metric=family.members,
        period_s=period_of((arrived, lag), step_s),
    )


def partition_offsets(metrics: GroupMetrics) -> Iterator[tuple[datetime, tuple[QueueOffsets, ...]]]:
    """Yield, for each column with a new scrape, its time and the offsets of every partition that it shows.

    The consumer offset of a partition without a commit is ``None``.
    """
    arrived, consumed = metrics.arrived, metrics.consumed
    committed = dict(zip(partitions(consumed), consumed.values, strict=True)) if consumed is not None else {}
    nothing = np.full(len(arrived.grid), np.nan)
    rows = [
        (partition, arrived.values[row], committed.get(partition, nothing))
        for row, partition in enumerate(partitions(arrived))
    ]
    times = np.fmax.reduce(arrived.times, axis=0) if rows else nothing
    newest = -np.inf
    for column in np.flatnonzero(np.isfinite(times)):
        if times[column] > newest:
            newest = times[column]
            offsets = (
                QueueOffsets(partition, int(end_offsets[column]), _offset(commits[column]))
                for partition, end_offsets, commits in rows
                if np.isfinite(end_offsets[column])
            )
            yield moment(newest), tuple(offsets)


def gaps_in_knowledge(choice: Choice, metrics: GroupMetrics) -> Iterator[str]:
    """Yield what these metrics cannot show of this group."""
    family = choice.family
    if not family.is_by_queue:
        yield f"metrics of {family.name} distinguish topics and brokers, not single queues: rates of queues are unknown"
    if not metrics.arrived.keys:
        yield f"no series {family.arrived.names[0]} of topics {', '.join(choice.topics)}: what arrives is unknown"
    if not metrics.lag.keys:
        yield f"no series {family.lag.names[0]} of group {choice.query.group}: its lag is unknown"
    if family.is_by_queue:
        yield from _never_committed(metrics)


def _never_committed(metrics: GroupMetrics) -> Iterator[str]:
    committed = set(partitions(metrics.consumed)) if metrics.consumed is not None else set()
    silent = sorted(set(partitions(metrics.arrived)) - committed)
    if silent:
        shown = ", ".join(map(str, silent[:_NAMED])) + (f" and {len(silent) - _NAMED} more" if silent[_NAMED:] else "")
        yield f"nothing was ever committed on {shown}: their lag is unknown and not in the group's"


def _by_topic(choice: Choice, metrics: GroupMetrics) -> tuple[GroupPoint, ...]:
    if choice.family.is_by_queue:
        return ()
    return tuple(point for topic in choice.topics for point in group_points(metrics, choice.topics, topic))


def _intervals(choice: Choice, metrics: GroupMetrics) -> tuple[QueueInterval, ...]:
    if not choice.family.is_by_queue:
        return ()
    samples = (
        GroupSample("kafka", choice.cluster, choice.query.group, at, 0.0, RouteTable(), (), offsets)
        for at, offsets in partition_offsets(metrics)
    )
    return queue_intervals(samples, metrics.period_s)


def partitions(table: MetricTable) -> tuple[TopicPartition, ...]:
    """Return the partition of each row. Raises ``BadInputError`` when the label holds no number."""
    numbers = table.column("partition")
    for number in numbers:
        if not number.isdecimal():
            raise BadInputError(f"the partition label holds {number!r}, which is no number: name the label that does")
    return tuple(TopicPartition(topic, int(value)) for topic, value in zip(table.column("topic"), numbers, strict=True))


def _offset(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None
