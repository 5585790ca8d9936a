"""A run's plans: one file for each decision to scale."""

import logging
from collections.abc import Sequence
from pathlib import Path

from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.documents.plan import DECISION, PLAN, document_name
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import PlannerError
from planner.policies.fleet import read_problems
from planner.runs.cases import Case, served
from planner.runs.policy_stages import give_up
from planner.storage.files import remove_file, write_atomically
from planner.storage.run import Decided, Run, RunFiles, read_results
from planner.text.printable import one_line

log = logging.getLogger(__name__)


def plan_policy(run: RunFiles, policy: ConsumerScalingPolicy) -> Decided:
    """Write the plan of a decision to scale, and the snapshot beside it; return what came of the policy.

    A hold has no plan: one of an earlier try of the same run is removed.
    """
    result = served(run, "plan", _plan_case, policy)
    return _undecided(policy.metadata.name, str(result)) if isinstance(result, PlannerError) else result


def results_of(run: Run, failure: str | None) -> Sequence[Decided]:
    """Return what the Spark app's stage plan left; where the app failed, the reason why each policy has no decision.

    ``failure`` is the sentence of the failed app, ``None`` where none is known. Nothing of an earlier try stays: pages
    and offers would take it for this run's.
    """
    if failure is None and run.folder.results.exists():
        return read_results(run.folder)
    reason = failure or "Spark ended without a word: the log of the task spark has more"
    problems = read_problems(run.folder)
    names = sorted(path.stem for path in run.policies.glob("*.yaml"))
    return [_undecided(name, give_up(run.folder, name, problems.get(name, reason))) for name in names]


def _undecided(policy: str, reason: str) -> Decided:
    return {"policy": policy, "from": None, "to": None, "hold": None, "reason": reason, "plan": None}


def _plan_case(case: Case) -> Decided:
    decision, path = case.record.decision, _write_plan(case)
    if case.policy.shared_with:
        write_atomically(case.files.decision, DECISION.dump(case.record, document_name(case.record)))
    log.info("policy %s: %s", case.policy.metadata.name, one_line(decision.reason))
    return {
        "policy": case.policy.metadata.name,
        "from": decision.current,
        "to": decision.target,
        "hold": decision.hold_cause,
        "reason": decision.reason,
        "plan": None if path is None else str(path),
    }


def _write_plan(case: Case) -> Path | None:
    write_atomically(case.files.snapshot, SNAPSHOT.dump(case.snapshot))
    made = case.plan
    if made is None:
        remove_file(case.files.plan)
        return None
    for doubt in case.track.doubts:
        log.warning("policy %s: %s", case.policy.metadata.name, one_line(doubt))
    document = pipeline.plan_document(made, case.record, case.policy, case.track.doubts)
    return write_atomically(case.files.plan, PLAN.text(document))
