"""Run all checks over the evidence on one group."""

from collections.abc import Iterable, Sequence

from planner.diagnosis.checks import CHECKS, Check
from planner.diagnosis.finding import Diagnosis, Finding, Gap, Symptom, Unchecked
from planner.diagnosis.group_evidence import GroupEvidence


def diagnose(evidence: GroupEvidence) -> tuple[Finding, ...]:
    """Return the group's findings, worst first; none for a healthy group."""
    return examine(evidence).findings


def examine(evidence: GroupEvidence) -> Diagnosis:
    """Return the group's findings, worst first, and what could not be judged for lack of data."""
    checks = [check for check in CHECKS if check.system in (None, evidence.newest.system)]
    results = [(check, tuple(check.evaluate(evidence))) for check in checks]
    findings = [
        _finding(check, evidence.group, item)
        for check, yielded in results
        for item in yielded
        if isinstance(item, Symptom)
    ]
    newest = evidence.newest
    return Diagnosis(
        system=newest.system,
        cluster=newest.cluster,
        group=newest.group,
        at=newest.at,
        watched_s=evidence.watched_s,
        looks=len(evidence.samples),
        members=len(evidence.members),
        queues=len(evidence.queues),
        lag=evidence.lag,
        findings=worst_first(_without_effects(findings)),
        unchecked=tuple(
            Unchecked(check.code, item.reason)
            for check, yielded in results
            for item in yielded
            if isinstance(item, Gap)
        ),
        problems=newest.problems,
    )


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings by severity, group and the order of the checks."""
    ranks = {check.code: rank for rank, check in enumerate(CHECKS)}
    return tuple(sorted(findings, key=lambda finding: (finding.severity.rank, finding.group, ranks[finding.code])))


def _finding(check: Check, group: str, symptom: Symptom) -> Finding:
    return Finding(
        code=check.code,
        severity=symptom.severity,
        group=group,
        title=symptom.title,
        evidence=symptom.evidence,
        consequence=symptom.consequence,
        advice=symptom.advice,
        about=symptom.about,
    )


def _without_effects(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out findings that others explain, so that one cause is reported once."""
    causes = {check.code: check.explained_by for check in CHECKS}
    explained = {
        code: {name for finding in findings if finding.code in of_code for name in finding.about}
        for code, of_code in causes.items()
        if of_code
    }
    return [
        finding
        for finding in findings
        if not finding.about or not set(finding.about) <= explained.get(finding.code, set())
    ]
