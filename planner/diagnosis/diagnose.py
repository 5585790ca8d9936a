"""Run all checks over one picture."""

from collections.abc import Iterable, Sequence

from planner.diagnosis.checks import CHECKS, Check
from planner.diagnosis.finding import Diagnosis, Finding, Gap, Symptom, Unchecked
from planner.diagnosis.picture import Picture


def diagnose(picture: Picture) -> tuple[Finding, ...]:
    """Return the group's findings, worst first; none for a healthy group."""
    return examine(picture).findings


def examine(picture: Picture) -> Diagnosis:
    """Return the group's findings, worst first, and what could not be judged for lack of data."""
    seen = [(check, tuple(check.look(picture))) for check in CHECKS]
    findings = [
        _finding(check, picture.group, one) for check, found in seen for one in found if isinstance(one, Symptom)
    ]
    newest = picture.newest
    return Diagnosis(
        system=newest.system,
        cluster=newest.cluster,
        group=newest.group,
        at=newest.at,
        watched_s=picture.watched_s,
        looks=len(picture.samples),
        members=len(picture.members),
        queues=len(picture.queues),
        lag=picture.lag,
        findings=worst_first(_without_effects(findings)),
        unchecked=tuple(
            Unchecked(check.code, one.reason) for check, found in seen for one in found if isinstance(one, Gap)
        ),
        problems=newest.problems,
    )


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings by severity, group and the order of the checks."""
    places = {check.code: place for place, check in enumerate(CHECKS)}
    return tuple(sorted(findings, key=lambda one: (one.severity.rank, one.group, places[one.code])))


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
    """Leave out findings that others explain, so that one cause is told once."""
    causes = {check.code: check.explained_by for check in CHECKS}
    explained = {
        code: {name for one in findings if one.code in of_code for name in one.about}
        for code, of_code in causes.items()
        if of_code
    }
    return [one for one in findings if not one.about or not set(one.about) <= explained.get(one.code, set())]
