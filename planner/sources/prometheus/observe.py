"""``observe_group``: one sample of one group through metrics, and what metrics cannot show named."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample
from planner.sources.prometheus.choice import Choice, GroupQuery, choose
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.figures import GroupMetrics, latest_levels
from planner.sources.prometheus.history import gaps_in_knowledge, partition_offsets, partitions, read_metrics
from planner.sources.prometheus.metric_table import read_table
from planner.text.words import duration

WITHIN = timedelta(days=1)
"""A group that has been without any series for longer is not known."""
_STEP_S = 60.0
_OLD_S = 120.0


def observe_group(prometheus: Prometheus, query: GroupQuery, at: datetime) -> GroupSample:
    """Return what metrics showed of the group at ``at``; the sample's own time is that of the newest scrape.

    Members and ownership are unknown (``members=()`` and a problem); RocketMQ's metrics show neither queues nor routes,
    so both are empty, and the group's lag stands in a problem. A group whose series have ended comes back with that as
    a problem. Raises what ``history`` raises.
    """
    start = time.monotonic()
    choice = choose(prometheus, query, at - WITHIN, at)
    metrics = read_metrics(prometheus, choice, at, at, _STEP_S)
    offsets = [known for _, known in partition_offsets(metrics)] if choice.family.is_by_queue else []
    return GroupSample(
        system=query.system,
        cluster=choice.cluster,
        group=query.group,
        at=metrics.newest_at or at,
        took_s=time.monotonic() - start,
        routes=_routes(prometheus, choice, metrics, at),
        members=(),
        offsets=tuple(sorted(offsets[0], key=lambda entry: entry.queue)) if offsets else (),
        problems=(*choice.problems, *_problems(choice, metrics, at), *gaps_in_knowledge(choice, metrics)),
    )


def _routes(prometheus: Prometheus, choice: Choice, metrics: GroupMetrics, at: datetime) -> RouteTable:
    if not choice.family.is_by_queue:
        return RouteTable()
    leaders = {}
    if (metric := choice.family.leader) is not None:
        table = read_table(prometheus, choice.family, metric, choice.selectors(metric), at, at, _STEP_S)
        leaders = dict(zip(partitions(table), table.values[:, 0], strict=True))
    known = sorted(partitions(metrics.arrived))
    return RouteTable(
        partitions=tuple(PartitionRoute(partition, _leader(leaders.get(partition))) for partition in known)
    )


def _leader(value: float | None) -> int | None:
    return int(value) if value is not None and np.isfinite(value) else None


def _problems(choice: Choice, metrics: GroupMetrics, at: datetime) -> Iterator[str]:
    family, group = choice.family, choice.query.group
    if metrics.newest_at is None:
        yield f"group {group} has no series at {at:%H:%M:%S} UTC: its metrics ended within the last day"
        return
    levels = latest_levels(metrics)
    counted = "" if levels.members is None else f" ({levels.members} of them are counted)"
    yield f"metrics of {family.name} do not say who the members are{counted}, nor what they own"
    if levels.members == 0 or not metrics.lag.keys:
        yield f"group {group} is offline, or what measures its lag is not scraped: no lag is known"
    elif not family.is_by_queue:
        waits = "" if levels.lag_s is None else f", the oldest message waits for {duration(levels.lag_s)}"
        yield f"group {group} is {levels.lag} messages behind over all its topics{waits}"
    if family.is_by_queue and family.leader is None:
        yield f"metrics of {family.name} do not say which broker leads a partition"
    age_s = (at - metrics.newest_at).total_seconds() + family.refresh_s
    if age_s > _OLD_S:
        yield f"the newest figures may be {duration(age_s)} old: {family.name} is scraped or refreshed too rarely"
