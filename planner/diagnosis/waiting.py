"""How many messages wait, where a lag may be unknown: without a commit it is unknown where consumption will begin."""

from collections.abc import Sequence

from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import verb
from planner.model.queues import Queue
from planner.text.words import counted


def waiting(evidence: GroupEvidence, queues: Sequence[Queue]) -> str:
    """Return how many messages wait in these queues: those behind the commits, or all where nobody ever committed."""
    entries = [evidence.offsets[queue] for queue in queues if queue in evidence.offsets]
    behind = sum(entry.lag for entry in entries if entry.lag is not None)
    bare = [entry.queue for entry in entries if entry.lag is None]
    without_offsets = len(queues) - len(entries)
    in_bare = sum(uncommitted(evidence, queue) for queue in bare)
    clauses = (
        [f"{counted(behind, 'message')} {verb(behind, 'waits', 'wait')} there"]
        if len(bare) + without_offsets < len(queues)
        else []
    )
    if bare:
        clauses.append(
            f"{counted(len(bare), 'queue')} without any commit {verb(len(bare), 'holds', 'hold')} up to "
            f"{counted(in_bare, 'message')}"
        )
    if without_offsets:
        clauses.append(f"of {counted(without_offsets, 'queue')} it is not known how many wait")
    return ", ".join(clauses) or "nothing waits there"


def uncommitted(evidence: GroupEvidence, queue: Queue) -> int:
    """Return how many messages of a queue nobody of the group has committed, all that it holds without any commit."""
    entry = evidence.offsets.get(queue)
    if entry is None:
        return 0
    return entry.lag if entry.lag is not None else entry.broker_offset - (entry.first_offset or 0)
