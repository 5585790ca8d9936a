"""Queues with two owners or none, by the members' own reports."""

from collections.abc import Iterator, Sequence

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import ADOPTS_ROUTES_S, GroupEvidence, tuning_property
from planner.diagnosis.phrases import MOVING, WATCH_LONGER, some, verb
from planner.diagnosis.split_ownership import doubled_queues, split_ownership
from planner.diagnosis.waiting import uncommitted, waiting
from planner.model.queues import Queue
from planner.text.words import counted, duration


def several_owners(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Data queues that two members consume at the same time, by the members' own reports."""
    if not evidence.has_owners:
        return
    doubled = doubled_queues(evidence.owners)
    if not doubled:
        return
    if evidence.is_moving:
        yield Gap(f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'has', 'have')} two owners now, but {MOVING}")
        return
    lasts = _lasts(evidence, [set(doubled_queues(sample.owners)) for sample in evidence.recent])
    split = split_ownership(evidence, doubled, ())
    yield Symptom(
        severity=Severity.ERROR if lasts else Severity.WARNING,
        title=f"{counted(len(doubled), 'queue')} {verb(len(doubled), 'has', 'have')} more than one owner",
        evidence=(*split.evidence, _observation_span(evidence)),
        consequence=split.consequence,
        advice="look at what these members see differently: strategy, members, queues, subscription, configured lists"
        if lasts
        else WATCH_LONGER,
        about=split.about,
    )


def without_owner(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Data queues that no member consumes although the group has members."""
    if not evidence.has_owners:
        return
    orphans = [queue for queue in evidence.queues if not evidence.owners.get(queue)]
    if not orphans:
        return
    if evidence.silent:
        yield Gap(
            f"{counted(len(evidence.silent), 'member')} did not report what they own, and one of them may own the "
            f"{counted(len(orphans), 'queue')} that no other has: {some(evidence.silent)}"
        )
        return
    if evidence.is_moving:
        yield Gap(f"{counted(len(orphans), 'queue')} {verb(len(orphans), 'has', 'have')} no owner now, but {MOVING}")
        return
    lasts = _lasts(evidence, [set(evidence.queues) - set(sample.owners) for sample in evidence.recent])
    split = split_ownership(evidence, {}, orphans)
    yield Symptom(
        severity=Severity.ERROR if lasts else Severity.WARNING,
        title=f"{counted(len(orphans), 'queue')} {verb(len(orphans), 'has', 'have')} no owner",
        evidence=(*split.evidence, _observation_span(evidence)),
        consequence=split.consequence,
        advice="see whether every member subscribes to this topic and reaches the broker, and restart one that does not"
        if lasts
        else WATCH_LONGER,
        about=split.about,
    )


def retry_without_owner(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Retry queues that nobody consumes: failed messages never come again (CONFIG that does not list them).

    A retry topic reaches its members only by a later route poll, so that only an old group is judged. Pull consumers
    have no retry topic at all.
    """
    if not evidence.has_owners or evidence.silent or not _is_old(evidence):
        return
    if all(tuning_property(member, "PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY" for member in evidence.rocketmq_members):
        return
    orphans = [queue for queue in evidence.retry_queues if not evidence.owners.get(queue)]
    if not orphans or any(sample.owners.get(queue) for sample in evidence.recent for queue in orphans):
        return
    stuck = sum(uncommitted(evidence, queue) for queue in orphans)
    yield Symptom(
        severity=Severity.ERROR if stuck else Severity.WARNING,
        title=f"{counted(len(orphans), 'retry queue')} {verb(len(orphans), 'has', 'have')} no owner",
        evidence=(some(orphans), f"allocation strategy: {evidence.strategy_name or 'unknown'}"),
        consequence=f"messages that failed are not consumed again: {waiting(evidence, orphans)}",
        advice="with strategy CONFIG list the group's %RETRY% queues, too; else see whether members reach that broker",
        about=tuple(map(str, orphans)),
    )


def _is_old(evidence: GroupEvidence) -> bool:
    """Return whether every member has had time to adopt all routes."""
    return evidence.is_steady and max(evidence.watched_s, evidence.youngest_s or 0.0) >= ADOPTS_ROUTES_S


def _lasts(evidence: GroupEvidence, split_queues: Sequence[set[Queue]]) -> bool:
    """Return whether one queue was split in every sample of a group that has settled."""
    return evidence.has_settled and bool(set.intersection(*split_queues))


def _observation_span(evidence: GroupEvidence) -> str:
    return f"seen in the last of {len(evidence.recent)} samples within {duration(evidence.recent_s)}"
