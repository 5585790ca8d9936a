"""Is a queue that stands still blocked? Judged by the work of the member that serves it.

Blocked is a queue that its member passes over, and a member that commits nothing for longer than its batches take.
Where the samples span too little time to distinguish a slow cycle from a block, the answer is that it is not known yet.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from statistics import median

from planner.history.work import MemberWork, QueueProgress
from planner.model.queues import Queue

STALLS_S = 10.0
"""Two commit periods of a client (5 s each): a queue that is consumed moves within that."""

SURE_S = 60.0
"""A commit that stands so long while messages wait is no slow batch of a client that commits on a timer."""

POLL_S = 300.0
"""``max.poll.interval.ms`` (Kafka 4): a consumer that works on one batch for longer leaves its group."""

USUAL_GAPS = 3.0
"""A member that commits nothing for so many times the longest gap between its commits is in no usual batch."""

SLOWER = 10.0
"""A member that is not done with what it can have in hand, even if it is so many times slower than its peers, hangs."""


class Verdict(Enum):
    """What the samples show of a queue: ``SUSPECT`` is a block that is likely, not sure."""

    MOVES = "moves"
    UNDECIDED = "undecided"
    SUSPECT = "suspect"
    BLOCKED = "blocked"


class BlockReason(Enum):
    """What a block is recognised by."""

    PASSED_OVER = "its member served its other queues"
    PAST_POLL = "no batch takes that long"
    PAST_GAPS = "its member committed more often before"
    BEHIND_PEERS = "its peers would be done"


def verdict_on(queue: QueueProgress, work: MemberWork, peers: Sequence[float]) -> tuple[Verdict, BlockReason | None]:
    """Return the verdict on one queue, and what a block is recognised by.

    ``peers`` are the paces of the group's other members, in messages per second.
    """
    if not work.has_moved_since(queue.standing_since):
        return _by_gaps(queue, work, peers)
    if not work.passes_over(queue):
        return Verdict.MOVES if queue.standing_s <= work.longest_cycle_s else Verdict.UNDECIDED, None
    return Verdict.BLOCKED if queue.standing_s >= SURE_S else Verdict.SUSPECT, BlockReason.PASSED_OVER


def peer_pace(peers: Sequence[float]) -> float:
    """Return the median pace of the other members, 0 where there are none."""
    return median(peers) if peers else 0.0


def _by_gaps(queue: QueueProgress, work: MemberWork, peers: Sequence[float]) -> tuple[Verdict, BlockReason | None]:
    """Judge a member that commits nothing by the gaps between its commits before, else by the pace of its peers."""
    standing_s, own_s = queue.standing_s, work.longest_gap_s
    if own_s is not None and standing_s <= own_s:
        return Verdict.MOVES, None
    if standing_s >= POLL_S:
        return Verdict.BLOCKED, BlockReason.PAST_POLL
    if own_s is not None and standing_s >= max(SURE_S, USUAL_GAPS * own_s):
        return Verdict.BLOCKED, BlockReason.PAST_GAPS
    pace, in_hand = peer_pace(peers), work.waited_at(queue.standing_since)
    if pace > 0 and standing_s >= max(SURE_S, SLOWER * in_hand / pace):
        return Verdict.SUSPECT, BlockReason.BEHIND_PEERS
    return Verdict.UNDECIDED, None


def blocked_queues(works: Iterable[MemberWork]) -> tuple[Queue, ...]:
    """Return the queues that stand blocked, sorted; those never committed are left out.

    Surely, or suspected for ``SURE_S``: what a member would long be done with at the pace of its peers.
    """
    all_of_them = tuple(works)
    return tuple(
        sorted(
            queue.queue
            for work in all_of_them
            for queue in work.queues
            if not queue.never_committed
            and queue.standing_s >= STALLS_S
            and _is_blocked(verdict_on(queue, work, peers_of(work, all_of_them))[0], queue)
        )
    )


def _is_blocked(verdict: Verdict, queue: QueueProgress) -> bool:
    return verdict is Verdict.BLOCKED or (verdict is Verdict.SUSPECT and queue.standing_s >= SURE_S)


def peers_of(work: MemberWork, works: Iterable[MemberWork]) -> list[float]:
    """Return the paces of the others, in messages per second."""
    return [peer.pace for peer in works if peer != work]
