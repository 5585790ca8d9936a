"""Queues that are owned more than once, or by nobody, and what that costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import rate, some, verb
from planner.diagnosis.waiting import waiting
from planner.model.queues import Queue
from planner.text.words import counted


@dataclass(frozen=True, slots=True)
class SplitOwnership:
    """Queues that are owned more than once, and by nobody."""

    doubled: Mapping[Queue, tuple[str, ...]]
    orphans: Sequence[Queue]
    consequence: str

    def __bool__(self) -> bool:
        return bool(self.doubled or self.orphans)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The queues by name."""
        doubled = [f"{queue} ({', '.join(owners)})" for queue, owners in sorted(self.doubled.items(), key=_by_name)]
        return (
            *([f"owned more than once: {some(doubled)}"] if doubled else []),
            *([f"owned by nobody: {some(self.orphans)}"] if self.orphans else []),
        )

    @property
    def about(self) -> tuple[str, ...]:
        """All of them, by name."""
        return tuple(sorted(map(str, {*self.doubled, *self.orphans})))


def _by_name(entry: tuple[Queue, tuple[str, ...]]) -> str:
    return str(entry[0])


def split_ownership(
    evidence: GroupEvidence, doubled: Mapping[Queue, tuple[str, ...]], orphans: Sequence[Queue]
) -> SplitOwnership:
    """Return these queues with what they cost."""
    return SplitOwnership(doubled, tuple(orphans), _cost(evidence, list(doubled), list(orphans)))


def doubled_queues(owners: Mapping[Queue, tuple[str, ...]]) -> dict[Queue, tuple[str, ...]]:
    """Return the data queues with several owners, each with these."""
    return {queue: of_queue for queue, of_queue in owners.items() if len(of_queue) > 1 and not queue.is_retry}


def _cost(evidence: GroupEvidence, doubled: Sequence[Queue], orphans: Sequence[Queue]) -> str:
    clauses = []
    if doubled:
        clauses.append(
            f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'is', 'are')} consumed more than once"
            f"{_flow(evidence, doubled)}: every message comes to each of the owners"
        )
    if orphans:
        clauses.append(
            f"{counted(len(orphans), 'queue')} {verb(len(orphans), 'is', 'are')} consumed by nobody"
            f"{_flow(evidence, orphans)}: {waiting(evidence, orphans)}"
        )
    return "; ".join(clauses) or "no queue has two owners or none now, but the next change of members may bring that"


def _flow(evidence: GroupEvidence, queues: Sequence[Queue]) -> str:
    known = [evidence.arrival_rates[queue] for queue in queues if queue in evidence.arrival_rates]
    return f" ({rate(sum(known))})" if known and len(known) == len(queues) else ""


def split_by_reports(evidence: GroupEvidence) -> SplitOwnership:
    """Return the split ownership by the members' own reports."""
    orphans = [] if evidence.silent else [queue for queue in evidence.queues if not evidence.owners.get(queue)]
    return split_ownership(evidence, doubled_queues(evidence.owners), orphans)
