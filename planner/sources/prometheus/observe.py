"""``observe_group``: one look at one group through metrics, and what metrics cannot tell named."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from planner.model.routes import PartitionRoute, RouteTable
from planner.model.samples import GroupSample
from planner.sources.prometheus.choice import Choice, Wanted, choose
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.figures import Sheets, latest_levels
from planner.sources.prometheus.history import gaps_in_knowledge, partition_offsets, partitions, read_sheets
from planner.sources.prometheus.sheet import read_sheet

SEEN_WITHIN = timedelta(days=1)
"""A group that has been without any series for longer is not known."""
_STEP_S = 60.0
_OLD_S = 120.0


def observe_group(prometheus: Prometheus, wanted: Wanted, at: datetime) -> GroupSample:
    """Return what metrics said of the group at ``at``; the sample's own time is that of the newest scrape.

    Members and ownership are unknown (``members=()`` and a problem); RocketMQ's metrics tell neither queues nor routes,
    so both are empty, and the group's lag stands in a problem. A group whose series have ended comes back with that as
    a problem. Raises what ``history`` raises.
    """
    start = time.monotonic()
    choice = choose(prometheus, wanted, at - SEEN_WITHIN, at)
    sheets = read_sheets(prometheus, choice, at, at, _STEP_S)
    offsets = [found for _, found in partition_offsets(sheets)] if choice.family.is_by_queue else []
    return GroupSample(
        system=wanted.system,
        cluster=choice.cluster,
        group=wanted.group,
        at=sheets.newest_at or at,
        took_s=time.monotonic() - start,
        routes=_routes(prometheus, choice, sheets, at),
        members=(),
        offsets=tuple(sorted(offsets[0], key=lambda one: one.queue)) if offsets else (),
        problems=(*choice.problems, *_problems(choice, sheets, at), *gaps_in_knowledge(choice, sheets)),
    )


def _routes(prometheus: Prometheus, choice: Choice, sheets: Sheets, at: datetime) -> RouteTable:
    if not choice.family.is_by_queue:
        return RouteTable()
    leaders = {}
    if (metric := choice.family.leader) is not None:
        sheet = read_sheet(prometheus, choice.family, metric, choice.selectors(metric), at, at, _STEP_S)
        leaders = dict(zip(partitions(sheet), sheet.values[:, 0], strict=True))
    found = sorted(partitions(sheets.arrived))
    return RouteTable(partitions=tuple(PartitionRoute(one, _leader(leaders.get(one))) for one in found))


def _leader(value: float | None) -> int | None:
    return int(value) if value is not None and np.isfinite(value) else None


def _problems(choice: Choice, sheets: Sheets, at: datetime) -> Iterator[str]:
    family, group = choice.family, choice.wanted.group
    if sheets.newest_at is None:
        yield f"group {group} has no series at {at:%H:%M:%S} UTC: its metrics ended within the last day"
        return
    levels = latest_levels(sheets)
    counted = "" if levels.members is None else f" ({levels.members} of them are counted)"
    yield f"metrics of {family.name} do not tell who the members are{counted}, nor what they own"
    if levels.members == 0 or not sheets.lag.keys:
        yield f"group {group} is offline, or what measures its lag is not scraped: no lag is known"
    elif not family.is_by_queue:
        waits = "" if levels.lag_s is None else f", the oldest message waits for {levels.lag_s:.1f} s"
        yield f"group {group} is {levels.lag} messages behind over all its topics{waits}"
    if family.is_by_queue and family.leader is None:
        yield f"metrics of {family.name} do not tell which broker leads a partition"
    age_s = (at - sheets.newest_at).total_seconds() + family.refresh_s
    if age_s > _OLD_S:
        yield f"the newest figures may be {age_s:.0f} s old: {family.name} is scraped or refreshed too rarely"
