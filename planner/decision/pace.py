"""Whether the group as it is keeps up with its load: known without knowing what one consumer can do."""

from collections.abc import Sequence
from dataclasses import replace

from planner.decision.weighing import COMMIT_INTERVAL_S
from planner.model.snapshot import GroupSnapshot, QueueState

KEEPS_UP_S = 15.0
"""What waits is less than so many seconds of arrivals: 5 s until a commit, 5 s until the sample, and some to spare."""

DROWNS_S = 60.0
"""More waits than the group consumes in a minute: no lump of a commit looks like that."""

CLEARLY = 1.02
"""By this factor more comes in than goes out, at least, before a group is said to fall behind."""


def keeps_up(snapshot: GroupSnapshot) -> bool:
    """Return whether nothing but the last seconds of arrivals waited at any sample of the window.

    False where a lag or a rate is unknown.
    """
    arriving = _arrivals(snapshot.data_queues)
    if arriving is None or snapshot.unknown_lag:
        return False
    recent = [point for point in snapshot.recent if (snapshot.at - point.at).total_seconds() < snapshot.window_s]
    lags = [snapshot.lag, *(point.lag for point in recent if point.lag is not None)]
    return max(lags) <= max(arriving * KEEPS_UP_S, 1.0)


def falls_behind(snapshot: GroupSnapshot) -> bool:
    """Return whether more comes in than the group consumes while far more waits than it can have left uncommitted.

    Its consumers then have work all the time, so that what they do is close to what they can do. What waits in a queue
    that stands still does not count: its consumer hangs, and the others may have time to spare.
    """
    return growth(snapshot) > 0 and drowns(snapshot)


def growth(snapshot: GroupSnapshot) -> float:
    """Return by how many messages per second what waits becomes more; what comes into queues that stand still not.

    0 where it is not clear that it does, and where nothing is consumed.
    """
    moving = _moving(snapshot)
    arriving = _arrivals(moving)
    consumed = _consumed(moving)
    if arriving is None or not consumed or arriving <= CLEARLY * consumed:
        return 0.0
    return arriving - consumed


def works_off(snapshot: GroupSnapshot) -> bool:
    """Return whether more waits than is left uncommitted, and the group consumes no less than comes in.

    What waits may then be gone some time later. False where a rate is unknown, and where nothing is consumed.
    """
    moving = _moving(snapshot)
    arriving = _arrivals(moving)
    consumed = _consumed(moving)
    if arriving is None or not consumed or arriving > CLEARLY * consumed:
        return False
    return sum(state.lag or 0 for state in moving) > max(COMMIT_INTERVAL_S * arriving, 1.0)


def worked_off(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return the group once nothing waits any more but in queues that stand still."""
    moving = {state.queue for state in _moving(snapshot)}
    states = tuple(replace(state, lag=0) if state.lag and state.queue in moving else state for state in snapshot.queues)
    return replace(snapshot, queues=states)


def drowns(snapshot: GroupSnapshot) -> bool:
    """Return whether far more waits than the group can have left uncommitted, in queues that do not stand still."""
    moving = _moving(snapshot)
    return sum(state.lag or 0 for state in moving) > DROWNS_S * _consumed(moving)


def _moving(snapshot: GroupSnapshot) -> Sequence[QueueState]:
    standing = frozenset(snapshot.standing_queues)
    return [state for state in snapshot.data_queues if state.queue not in standing]


def _consumed(states: Sequence[QueueState]) -> float:
    return sum(state.consumption_rate or 0.0 for state in states)


def _arrivals(states: Sequence[QueueState]) -> float | None:
    """Messages per second into these queues, ``None`` as soon as one is unknown."""
    rates = [state.arrival_rate for state in states]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None
