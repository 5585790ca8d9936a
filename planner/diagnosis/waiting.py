"""How many messages wait, where a lag may be unknown: without a commit nobody knows where consumption will begin."""

from collections.abc import Sequence

from planner.diagnosis.phrases import verb
from planner.diagnosis.picture import Picture
from planner.model.queues import Queue
from planner.words import counted


def waiting(picture: Picture, queues: Sequence[Queue]) -> str:
    """Return how many messages wait in these queues: those behind the commits, or all where nobody ever committed."""
    entries = [picture.offsets[queue] for queue in queues if queue in picture.offsets]
    behind = sum(entry.lag for entry in entries if entry.lag is not None)
    bare = [entry.queue for entry in entries if entry.lag is None]
    untold = len(queues) - len(entries)
    in_bare = sum(held(picture, queue) for queue in bare)
    parts = (
        [f"{counted(behind, 'message')} {verb(behind, 'waits', 'wait')} there"]
        if len(bare) + untold < len(queues)
        else []
    )
    if bare:
        parts.append(
            f"{counted(len(bare), 'queue')} without any commit {verb(len(bare), 'holds', 'hold')} up to "
            f"{counted(in_bare, 'message')}"
        )
    if untold:
        parts.append(f"of {counted(untold, 'queue')} it is not known how many wait")
    return ", ".join(parts) or "nothing waits there"


def held(picture: Picture, queue: Queue) -> int:
    """Return how many messages of a queue nobody of the group has committed, all that it holds without any commit."""
    entry = picture.offsets.get(queue)
    if entry is None:
        return 0
    return entry.lag if entry.lag is not None else entry.broker_offset - (entry.first_offset or 0)
