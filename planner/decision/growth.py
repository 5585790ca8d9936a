"""Whether the group's last growth helped: more consumers that do no more work share a limit that is not theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import mean

from planner.decision.pace import DROWNS_S
from planner.model.snapshot import GroupSnapshot, SeriesPoint
from planner.text.words import duration, per_second, rate

SETTLING = timedelta(seconds=120)
"""So long after the growth, and while pods start one by one, what the group does is no measure of what it can do."""
LEAST_S = 180.0
"""The work before and after must have been observed for so long each."""
LAST_S = 600.0
"""The work after the growth is that of the last minutes: what limited the group at first may be gone."""
HELPED = 0.25
"""A growth helped if it brought at least this part of what equal consumers would bring."""


@dataclass(frozen=True, slots=True)
class VainGrowth:
    """A growth of ``before`` to ``after`` consumers at ``at`` that did not help; work in messages per second."""

    before: int
    after: int
    at: datetime
    work_before: float
    work_after: float

    def describe(self, now: datetime) -> str:
        """Return in a sentence why another growth would not help either."""
        ago = duration((now - self.at).total_seconds())
        return (
            f"the last growth did not help: {self.before} consumers did {rate(self.work_before)}, the {self.after} "
            f"since {ago} ago do {per_second(self.work_after)}, while messages waited all the time: something that "
            "all of them share limits them, such as a database"
        )


def vain_growth(snapshot: GroupSnapshot) -> VainGrowth | None:
    """Return the group's last change in the snapshot's recent past if it was a growth that did not help, else ``None``.

    ``None`` also where nobody can say: the work before or after was not observed, the consumers did not have work all
    the time, or some queue stands still.
    """
    points = [point for point in snapshot.recent if not point.is_gap and point.consumers]
    present = len(snapshot.clients)
    since = _plateau(points, len(points), present)
    growing = _growing(points, since, present)
    if since >= len(points) or not growing or snapshot.standing_queues:
        return None
    at = points[since].at
    before_count = points[growing - 1].consumers or 0
    before = points[_plateau(points, growing, before_count) : growing]
    settled = [point for point in points[since:] if point.at > at + SETTLING]
    after = [point for point in settled if (snapshot.at - point.at).total_seconds() < LAST_S]
    work_before, work_after = _work(before), _work(after)
    if not 0 < before_count < present or work_before is None or work_after is None:
        return None
    expected = work_before * (1 + HELPED * (present - before_count) / before_count)
    return VainGrowth(before_count, present, at, work_before, work_after) if work_after < expected else None


def _plateau(points: Sequence[SeriesPoint], end: int, count: int) -> int:
    """Return the index of the first of the points right before ``end`` that all have this count."""
    first = end
    while first > 0 and points[first - 1].consumers == count:
        first -= 1
    return first


def _growing(points: Sequence[SeriesPoint], since: int, present: int) -> int:
    """Return the index behind the last point before the growth began; pods that start one by one are one growth."""
    index = since
    while index > 1 and points[since - 1].at - points[index - 2].at < SETTLING:
        count, earlier = points[index - 1].consumers or 0, points[index - 2].consumers or 0
        if not earlier < count < present:
            break
        index -= 1
    return index


def _work(points: Sequence[SeriesPoint]) -> float | None:
    """Return what the group did while it had work all the time, ``None`` where that is not known."""
    work = [point.consumption_rate for point in points]
    known = [rate for rate in work if rate is not None]
    if len(known) < len(points) or sum(point.seconds for point in points) < LEAST_S:
        return None
    has_work = all((point.lag or 0) > DROWNS_S * (point.consumption_rate or 0.0) for point in points)
    return mean(known) if has_work and min(known) > 0 else None
