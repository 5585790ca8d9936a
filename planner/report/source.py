"""From what lies on disk to a case: find the decision, the snapshot it rests on, and simulate again."""

import json
import logging
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from planner.decision.decision import Decision
from planner.documents.data import SNAPSHOT
from planner.documents.plan import DECISION, PLAN, read_plan_or_decision
from planner.documents.yaml import MOST_PLAN_TEXT, load_yaml
from planner.errors import BadInputError, DocumentError
from planner.model.snapshot import GroupSnapshot
from planner.pipeline import simulate_candidates
from planner.report.case import Case
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.simulation.candidates import can_simulate, strategies_to_compare
from planner.simulation.outcome import CandidateOutcome
from planner.text.printable import one_line
from planner.text.words import and_list

log = logging.getLogger(__name__)

Answer = RolloutPlan | DecisionRecord

MAKE_PLAN = "make one with planner plan"


def read_case(source: Path, max_utilisation: float | None = None) -> Case:
    """Return the case that ``source`` names: a run's folder, a plan or decision file, or a snapshot beside one.

    Outcomes are simulated again, which gives what the decision saw. Raises ``BadInputError``, also for a migration: it
    carries out no decision on a count, so there is nothing that the page could show.
    """
    if not source.exists():
        raise BadInputError(f"{source} does not exist: name a run folder, a plan, a decision or a snapshot")
    if source.is_dir():
        answers = _single_answer(_folder(source), source)
        snapshot = _find_snapshot(answers[0][0], answers[0][1])
    elif source.suffix == ".json":
        snapshot = SNAPSHOT.read(source)
        answers = _answers_on(SNAPSHOT.digest(snapshot), source)
    else:
        answers = _with_companions(source, _on_a_count(source, read_plan_or_decision(source)))
        snapshot = _find_snapshot(*answers[0])
    documents = [answer for _, answer in answers]
    plan = next((answer for answer in documents if isinstance(answer, RolloutPlan)), None)
    record = next((answer for answer in documents if isinstance(answer, DecisionRecord)), None) or _record(plan)
    outcomes = repeat_outcomes(snapshot, record.decision, record.snapshot.digest)
    file = next((path.name for path, answer in answers if answer is plan), "plan.yaml")
    return Case(snapshot, outcomes, record, plan, max_utilisation, plan_file=file)


def repeat_outcomes(snapshot: GroupSnapshot, decision: Decision, digest: str) -> tuple[CandidateOutcome, ...]:
    """Return the outcomes of the decision's counts; none for a group that cannot be simulated.

    ``digest`` is the one that the decision names its snapshot by.
    """
    if not can_simulate(snapshot):
        return ()
    counts = {decision.current, decision.target, *(rejection.count for rejection in decision.rejected)} - {0}
    candidates = ((name, count) for name in strategies_to_compare(snapshot) for count in sorted(counts))
    return simulate_candidates(snapshot, candidates, digest)


def _record(plan: RolloutPlan | None) -> DecisionRecord:
    """Return the decision that a plan carries out."""
    if plan is None:
        raise ValueError("neither plan nor decision: the caller found one of them")
    decision = Decision(
        group=plan.group.group,
        decided_at=plan.made_at,
        strategy=plan.preconditions.strategy,
        current=plan.preconditions.replicas,
        target=plan.final_replicas,
        reason=plan.reason,
        rejected=plan.rejected,
        bill=plan.bill,
    )
    names = and_list(list(plan.replicas_before))
    return DecisionRecord(plan.policy, plan.group, names, plan.snapshot, decision, plan.second_lever)


def _folder(source: Path) -> Path:
    """Return the folder that holds the answers: ``source``, or its only subfolder that has some."""
    if next(_answers_in(source), None):
        return source
    below = [folder for folder in sorted(source.iterdir()) if folder.is_dir() and next(_answers_in(folder), None)]
    if len(below) == 1:
        return below[0]
    if below:
        names = ", ".join(folder.name for folder in below)
        raise BadInputError(f"{source} holds the decisions of several policies ({names}): name one of these folders")
    _refuse_migrations(source)
    raise BadInputError(f"{source} holds neither a plan nor a decision: {MAKE_PLAN}")


def _on_a_count(path: Path, answer: Answer) -> Answer:
    """Return the answer unless it is a migration. Raises ``BadInputError``."""
    if _is_migration(answer):
        raise BadInputError(f"{path} is a migration, and the page is about a count: planner explain shows its steps")
    return answer


def _is_migration(answer: Answer) -> bool:
    return isinstance(answer, RolloutPlan) and answer.migration is not None


def _refuse_migrations(folder: Path, digest: str | None = None) -> None:
    """Raise ``BadInputError`` when a migration lies in the folder, one that rests on this snapshot where given."""
    for path, answer in _all_answers_in(folder):
        if digest in (None, answer.snapshot.digest):
            _on_a_count(path, answer)


def _answers_in(folder: Path) -> Iterator[tuple[Path, Answer]]:
    """Yield decisions on a count and plans that carry them out, by file name.

    Migrations are passed over: one made as of the same moment would be taken for the plan of the decision beside it.
    """
    return ((path, answer) for path, answer in _all_answers_in(folder) if not _is_migration(answer))


def _all_answers_in(folder: Path) -> Iterator[tuple[Path, Answer]]:
    """Yield plans and decisions in the folder, by file name; other YAML files are left out.

    A broken one is named in a warning and stops no other report.
    """
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        if _kind(path) in (PLAN.kind, DECISION.kind):
            try:
                yield path, read_plan_or_decision(path)
            except BadInputError as error:
                log.warning("%s is passed over: %s", one_line(path.name), error)


def _kind(path: Path) -> object:
    try:
        document = load_yaml(path.read_text(encoding="utf-8"), str(path), MOST_PLAN_TEXT)
    except (DocumentError, UnicodeDecodeError, OSError):
        return None
    return document.get("kind") if isinstance(document, dict) else None


def _single_answer(folder: Path, source: Path) -> list[tuple[Path, Answer]]:
    """Return the folder's one decision, with its plan where there is one."""
    answers = sorted(_answers_in(folder), key=lambda pair: _identity(pair[1]))
    decisions = [list(pairs) for _, pairs in groupby(answers, key=lambda pair: _identity(pair[1]))]
    if len(decisions) > 1:
        names = ", ".join(path.name for path, _ in answers)
        raise BadInputError(f"{source} holds several decisions ({names}): name the file of one")
    return decisions[0]


def _with_companions(path: Path, answer: Answer) -> list[tuple[Path, Answer]]:
    """Return the answer and what belongs to it: the decision beside a plan, the plan beside a decision."""
    beside = [pair for pair in _answers_in(path.parent) if pair[0] != path and _identity(pair[1]) == _identity(answer)]
    return [(path, answer), *beside]


def _identity(answer: Answer) -> tuple[str, str]:
    """Return what a plan and the decision it carries out have in common."""
    at = answer.made_at if isinstance(answer, RolloutPlan) else answer.decision.decided_at
    return answer.snapshot.digest, at.isoformat()


def _answers_on(digest: str, snapshot_file: Path) -> list[tuple[Path, Answer]]:
    pairs = [pair for pair in _answers_in(snapshot_file.parent) if pair[1].snapshot.digest == digest]
    if not pairs:
        _refuse_migrations(snapshot_file.parent, digest)
        raise BadInputError(f"no plan or decision beside {snapshot_file} rests on this snapshot: {MAKE_PLAN}")
    newest = max(_identity(answer) for _, answer in pairs)
    return [pair for pair in pairs if _identity(pair[1]) == newest]


def _find_snapshot(path: Path, answer: Answer) -> GroupSnapshot:
    """Return the snapshot beside ``path`` that the answer rests on."""
    digest = answer.snapshot.digest
    broken: BadInputError | None = None
    for candidate in _snapshot_files(path.parent, digest):
        try:
            return SNAPSHOT.read(candidate)
        except BadInputError as error:
            broken = error  # a copy beside it may be whole
    if broken is not None:
        raise broken
    raise BadInputError(f"no snapshot with digest {digest} lies beside {path}: put the GroupSnapshot file there")


def _snapshot_files(folder: Path, digest: str) -> Sequence[Path]:
    """Return the JSON files that say they are this snapshot; whether they are is checked on reading."""
    return [path for path in sorted(folder.glob("*.json")) if _claims(path) == (SNAPSHOT.kind, digest)]


def _claims(path: Path) -> tuple[object, object] | None:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return (document.get("kind"), document.get("digest")) if isinstance(document, dict) else None
