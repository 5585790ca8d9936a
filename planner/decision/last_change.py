"""How long a group has been left alone, as far as its snapshot shows."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from planner.model.pods import Pod
from planner.model.snapshot import GroupSnapshot, SeriesPoint


def last_change(snapshot: GroupSnapshot) -> datetime | None:
    """Return when the group's members last changed, ``None`` when nothing in the snapshot tells of a change.

    A queue that got another owner, another number of consumers, a pod that was started, became ready or is ending: each
    is a change. How long ago the last plan ended is among them, as a plan that did something moved queues.
    """
    return max(_changes(snapshot), default=None)


def known_since(snapshot: GroupSnapshot) -> datetime | None:
    """Return from when on no change can have been missed, ``None`` where even the latest sample shows nothing."""
    known = None
    for point in reversed(snapshot.recent):
        if not _is_known(point):
            break
        known = point.at - timedelta(seconds=point.seconds)
    return known


def _changes(snapshot: GroupSnapshot) -> Iterator[datetime]:
    yield from (point.at for point in snapshot.recent if point.moved)
    for before, after in pairwise(snapshot.recent):
        if before.consumers and after.consumers and before.consumers != after.consumers:
            yield after.at
    deployment = snapshot.deployment
    for pod in (deployment.pods if deployment else None) or ():
        yield from _changes_of(pod, snapshot.at)


def _changes_of(pod: Pod, at: datetime) -> Iterator[datetime]:
    yield from (time for time in (pod.created_at, pod.started_at, pod.ready_at) if time is not None)
    if pod.is_ending:
        yield at


def _is_known(point: SeriesPoint) -> bool:
    """Metrics may not tell of owners, and members that did not answer are no consumers."""
    return not point.is_gap and point.moved is not None and bool(point.consumers)
