"""What a doctor and a plan may say of the same samples without contradicting each other."""

import re
from collections.abc import Iterable, Iterator

from planner.decision.decision import Decision, HoldCause
from planner.diagnosis.finding import Finding, Severity

LOAD = frozenset({"stalled", "too-few-consumers", "slow-member", "hot-queue", "rewinding"})
"""Findings that say why a group is behind, or what another count would not mend."""

CAUSES = {
    "stalled": HoldCause.BLOCKED_QUEUES,
    "slow-member": HoldCause.SLOW_MEMBERS,
    "rewinding": HoldCause.COMMITS_WENT_BACK,
}
"""What a plan holds for where the doctor finds this."""


UNKNOWN = (HoldCause.UNKNOWN_CAPACITY, HoldCause.UNSETTLED, HoldCause.INCOMPLETE_DATA)
"""A watch that is too short for a plan may be long enough for a doctor."""


def contradictions(findings: Iterable[Finding], decision: Decision, *, is_undecided: bool = False) -> Iterator[str]:
    """Yield a sentence for each thing in which the decision contradicts the findings, or they it.

    ``is_undecided``: the doctor itself asks for a longer watch.
    """
    named = [finding for finding in findings if finding.code in LOAD]
    codes = {finding.code for finding in named}
    for code, hold in CAUSES.items():
        if decision.hold_cause is hold and code not in codes:
            yield f"the plan holds by {hold}, and the doctor finds no {code}"
    yield from (f"the doctor finds {finding.code}" for finding in named if not _answers(decision, finding))
    if decision.target < decision.current and codes:
        yield f"the doctor finds {sorted(codes)}, and the plan takes consumers away"
    if not codes and not is_undecided:
        yield from _of_a_healthy_group(decision)


def _of_a_healthy_group(decision: Decision) -> Iterator[str]:
    """Yield what a decision may not say where the doctor is sure that nothing is wrong."""
    cause, grows = decision.hold_cause, decision.target > decision.current
    if cause is HoldCause.NO_COUNT_MEETS or (grows and not only_for_headroom(decision)):
        yield "the doctor finds nothing, and the plan lacks consumers"
    if cause not in (None, HoldCause.RIGHT_ALREADY, HoldCause.NO_COUNT_MEETS, *UNKNOWN):
        yield f"the doctor finds nothing, and the plan holds by {cause}"


def _answers(decision: Decision, finding: Finding) -> bool:
    """Return whether a decision is one that a finding of what keeps the group back allows."""
    cause, grows = decision.hold_cause, decision.target > decision.current
    if finding.code == "stalled":
        is_young = finding.severity is Severity.WARNING and cause in UNKNOWN  # suspected, and nobody acts yet
        return is_young or (finding.about[0] in decision.reason and (grows or cause is HoldCause.BLOCKED_QUEUES))
    if finding.code == "too-few-consumers":
        return grows or cause in (HoldCause.NO_COUNT_MEETS, *CAUSES.values())
    if finding.code == "hot-queue":
        return grows or finding.about[0] in decision.reason
    return cause in CAUSES.values()


def only_for_headroom(decision: Decision) -> bool:
    """Return whether the present count keeps up, and the policy alone asks for more: a bound of 80 %, a time to drain.

    Five in a hundred are what the upper rate of the window lies above what came in.
    """
    (present,) = (rejected for rejected in decision.rejected if rejected.count == decision.current)
    used = [int(percent) for reason in present.reasons for percent in re.findall(r"used at (\d+)%", reason)]
    return all(percent <= 105 for percent in used) and "never be gone" not in " ".join(present.reasons)
