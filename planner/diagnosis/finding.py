"""What a diagnosis says: findings, and what could not be judged."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

PROGRESS = frozenset({"stalled", "too-few-consumers", "never-commits"})
"""The checks that say whether a group gets on: without them it is unknown whether it is healthy."""


class Severity(StrEnum):
    """How bad a finding is.

    ``error``: right now messages are lost, consumed twice or not consumed at all. ``warning``: capacity is wasted, or
    the next change will cost more than it has to. ``notice``: a fact that forecasts and people should know.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Symptom:
    """What one check yields: a finding before it knows its code and group.

    ``evidence`` are sentences, ``consequence`` says in numbers what it costs, ``advice`` what to do next. ``about``
    names queues (``topic/broker/id``, ``topic/partition``) and client ids.
    """

    severity: Severity
    title: str
    evidence: tuple[str, ...]
    consequence: str
    advice: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Why a check could not judge all of the group: ``reason`` completes "not checked: ..."."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one group; fields as in ``Symptom``, ``code`` is listed in docs/doctor.md."""

    code: str
    severity: Severity
    group: str
    title: str
    evidence: tuple[str, ...]
    consequence: str
    advice: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that could not judge all of the group, and why."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that can be said of one group from ``looks`` samples within ``watched_s`` seconds, the last one at ``at``.

    ``findings`` are sorted, worst first. ``lag`` is messages behind over the data queues, ``None`` as soon as one is
    unknown. ``problems`` are the newest sample's own sentences: what could not be read.
    """

    system: str
    cluster: str
    group: str
    at: datetime
    watched_s: float
    looks: int
    members: int
    queues: int
    lag: int | None
    findings: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...]
    problems: tuple[str, ...] = ()

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding, ``None`` for a group without any."""
        return self.findings[0].severity if self.findings else None

    @property
    def is_undecided(self) -> bool:
        """True for a group without a finding whose progress the watch was too short to judge: not yet healthy."""
        return not self.findings and any(gap.code in PROGRESS for gap in self.unchecked)


@dataclass(frozen=True, slots=True)
class Unread:
    """A group that was asked for and could not be read, with the reason as a sentence."""

    group: str
    reason: str


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """One round over one or many groups; ``groups`` are sorted, the worst first.

    ``unused`` counts the groups that exist by their settings only: no members, no commits. ``unread`` are those that
    could not be read; where there are some, the round is partial.
    """

    at: datetime
    groups: tuple[Diagnosis, ...]
    unread: tuple[Unread, ...] = ()
    unused: int = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, worst first."""
        findings = [finding for diagnosis in self.groups for finding in diagnosis.findings]
        return tuple(sorted(findings, key=lambda finding: finding.severity.rank))

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding, ``None`` without any."""
        return min((finding.severity for finding in self.findings), key=lambda severity: severity.rank, default=None)

    def count(self, severity: Severity | None) -> int:
        """Return how many groups have this severity as their worst; ``None`` counts those without a finding."""
        return sum(diagnosis.worst == severity for diagnosis in self.groups)

    @property
    def undecided(self) -> int:
        """How many groups have no finding yet, as the watch was too short to judge their progress."""
        return sum(diagnosis.is_undecided for diagnosis in self.groups)
