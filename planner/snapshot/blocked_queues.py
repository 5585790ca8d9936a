"""Queues whose consumer hangs or passes them over, and queues whose commits went back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from planner.history.blocked import SURE_S, blocked_queues
from planner.history.cycles import pool_cycle_s
from planner.history.rewinds import steps_back
from planner.history.work import QueueProgress, member_work
from planner.model.intervals import QueueInterval
from planner.model.membership import Member, rocketmq_members
from planner.model.queues import Queue
from planner.model.samples import GroupSample
from planner.snapshot.delivery import pops
from planner.snapshot.unlisted import is_share_group


def blocked_queues_of(newest: GroupSample, in_window: Mapping[Queue, Sequence[QueueInterval]]) -> tuple[Queue, ...]:
    """Return the queues whose member hangs or passes them over, by its other commits within the window.

    A push client's pool works in the order of arrival over all its queues: what its queues wait for are its own
    figures, which no commits show.
    """
    pulling = {member.identity for member in newest.members if member.commits_each_queue}
    owners = {queue: of_queue for queue, of_queue in newest.owners.items() if pulling.issuperset(of_queue)}
    data = newest.data_queues
    pulled = blocked_queues(member_work(in_window, owners, data))
    pushed = (
        () if pops(newest) else _blocked_in_pools(newest, in_window, [queue for queue in data if queue not in owners])
    )
    return tuple(sorted({*pulled, *pushed}))


def _blocked_in_pools(
    newest: GroupSample, in_window: Mapping[Queue, Sequence[QueueInterval]], queues: Iterable[Queue]
) -> Iterator[Queue]:
    """Yield the queues of push clients that have stood for longer than their owners' pools take to come to them."""
    offsets = {entry.queue: entry for entry in newest.offsets}
    members = {member.identity: member for member in rocketmq_members(newest.members)}
    for queue in queues:
        progress = QueueProgress(queue, tuple(in_window.get(queue, ())))
        owners = [members[owner] for owner in newest.owners.get(queue, ()) if owner in members]
        if not (progress.intervals and owners and all(_has_run_for(owner, newest.at, SURE_S) for owner in owners)):
            continue
        cycle_s = pool_cycle_s(owners, offsets, newest.owners, queue)
        if not progress.never_committed and progress.standing_s >= max(SURE_S, cycle_s):
            yield queue


def _has_run_for(member: Member, at: datetime, seconds: float) -> bool:
    """Return whether a push client reports its figures and started so long ago: its pool is no mystery then."""
    started_ms = member.tuning.started_at_ms if member.tuning else None
    return started_ms is not None and at.timestamp() - started_ms / 1000 >= seconds


def rewound_queues(newest: GroupSample, in_window: Mapping[Queue, Sequence[QueueInterval]]) -> tuple[Queue, ...]:
    """Return the data queues whose commits went back; none where all with commits did, as in a reset."""
    if is_share_group(newest):
        return ()  # it has no commits: its offsets follow from lags, and waver by what comes while these are read
    data = newest.data_queues
    rewound = {step.queue for queue in data for step in steps_back(queue, in_window.get(queue, ()))}
    committed = {entry.queue for entry in newest.offsets if entry.consumer_offset is not None}.intersection(data)
    is_reset = len(rewound) > 1 and committed <= rewound
    return () if is_reset else tuple(sorted(rewound))
