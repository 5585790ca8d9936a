"""Membership that does not rest: who comes and goes, and what each change moves."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import percent, some
from planner.model.samples import GroupSample
from planner.text.words import counted, duration

REBALANCES = 3


PER_HOUR = 4.0
"""Rebalances observed at least, and per hour, before they are called frequent: a rolling update is one, not a habit."""


SAME_CHANGE_S = 120.0
"""Starts within this time of each other count as one change: a Deployment's pods do not start at the same second."""


_KAFKA_MEMBER = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A Kafka member id: the client id and a UUID."""


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of membership or ownership between two samples."""

    joined: frozenset[str]
    left: frozenset[str]
    moved: int


def frequent_rebalances(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Membership that does not rest: changes observed between samples, and the members' own start times.

    Moves of queues in the samples after a change of members belong to it. Starts more than ``SAME_CHANGE_S`` apart are
    changes of their own.
    """
    if not evidence.members:
        return
    changes = _changes(evidence)
    per_hour = len(changes) * 3600 / evidence.watched_s if evidence.watched_s else 0.0
    if len(changes) >= REBALANCES and per_hour >= PER_HOUR:
        yield _restless(evidence, changes, per_hour)
        return
    starts = _start_times(evidence)
    bursts = 1 + sum(later - earlier > SAME_CHANGE_S for earlier, later in pairwise(starts)) if starts else 0
    if bursts >= REBALANCES + 1:
        yield Symptom(
            severity=Severity.WARNING,
            title=f"Members started at {bursts} different times within the last hour",
            evidence=(f"{counted(len(starts), 'member')} started {some(_ago(evidence, starts))} ago",),
            consequence=f"each start, and the stop before it, is a rebalance: at least {bursts} in this hour, and each "
            f"moves about {_share_of_member(evidence)}",
            advice="see why consumers restart (crash loop, liveness probe, an autoscaler that flaps): "
            "kubectl get pods shows their restarts",
            about=tuple(sorted(member.identity for member in evidence.members)),
        )


def _changes(evidence: GroupEvidence) -> list[_Change]:
    """Return the observed rebalances: each change of members is one, with the moves of queues that follow it."""
    changes: list[_Change] = []
    may_follow = False
    for before, after in pairwise(evidence.samples):
        change = _change_between(before, after)
        if change is not None and may_follow and not (change.joined or change.left):
            last = changes.pop()
            change = _Change(last.joined, last.left, last.moved + change.moved)
        if change is not None:
            changes.append(change)
        may_follow = change is not None
    return changes


def _change_between(before: GroupSample, after: GroupSample) -> _Change | None:
    old = frozenset(member.identity for member in before.members)
    new = frozenset(member.identity for member in after.members)
    owned_before, owned_after = before.owners, after.owners
    moved = sum(
        bool(owned_after.get(queue)) and set(owned_after[queue]) != set(owners)
        for queue, owners in owned_before.items()
        if not queue.is_retry
    )
    return _Change(new - old, old - new, moved) if old != new or moved else None


def _restless(evidence: GroupEvidence, changes: Sequence[_Change], per_hour: float) -> Symptom:
    came = Counter(_origin_of(client) for change in changes for client in change.joined)
    went = Counter(_origin_of(client) for change in changes for client in change.left)
    moved = sum(change.moved for change in changes)
    clients = sorted({client for change in changes for client in change.joined | change.left})
    origins = sorted({*came, *went}, key=lambda origin: (-came[origin] - went[origin], origin))
    sentences = [_comings_and_goings(origin, came[origin], went[origin], clients) for origin in origins[:5]]
    return Symptom(
        severity=Severity.WARNING,
        title=f"The group rebalances {per_hour:.0f} times an hour",
        evidence=(
            f"{counted(len(changes), 'rebalance')} within {duration(evidence.watched_s)}, "
            f"{counted(moved, evidence.queue_noun)} moved",
            *(sentences or ["the same members all the time: their subscriptions change, or what there is to share"]),
        ),
        consequence=f"about {moved * 3600 / evidence.watched_s:.0f} moves of a {evidence.queue_noun} an hour, "
        "each with a pause and messages that come twice",
        advice="see what makes these members come and go (crash loop, probe, autoscaler that flaps), "
        "and whether all of them subscribe to the same",
        about=tuple(clients),
    )


def _comings_and_goings(origin: str, came: int, went: int, clients: Sequence[str]) -> str:
    """Return how often members of one origin came and went; of several ids there it gives the number.

    Each restart brings a new id. It is not said that these are restarts: processes may share an address or client id.
    """
    here = [client for client in clients if _origin_of(client) == origin]
    counts = " and ".join(f"{did} {_times(count)}" for did, count in (("came", came), ("went", went)) if count)
    return f"{here[0]} {counts}" if len(here) == 1 else f"{origin} {counts}, under {len(here)} ids"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _origin_of(client: str) -> str:
    """Return what a member keeps at a restart: ``10.0.0.7`` of ``10.0.0.7@4711#123``, a Kafka member's client id."""
    member = _KAFKA_MEMBER.fullmatch(client)
    return member[1] if member else client.partition("@")[0]


def _start_times(evidence: GroupEvidence) -> list[float]:
    """Return when members started within the last hour, seconds ago, ascending by time."""
    now = evidence.newest.at.timestamp()
    started_ms = [member.tuning.started_at_ms for member in evidence.members if member.tuning]
    return sorted(start / 1000 for start in started_ms if start is not None and 0 <= now - start / 1000 <= 3600)


def _ago(evidence: GroupEvidence, starts: Sequence[float]) -> list[str]:
    now = evidence.newest.at.timestamp()
    return [duration(now - start) for start in reversed(starts)]


def _share_of_member(evidence: GroupEvidence) -> str:
    share = len(evidence.queues) / max(1, len(evidence.members))
    return f"{counted(max(1, round(share)), evidence.queue_noun)} ({percent(1 / max(1, len(evidence.members)))})"
