"""What stages after the decision work on: each policy's decision with all that it rests on."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from planner import pipeline
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.errors import BadInputError, PlannerError
from planner.isolation import attempt
from planner.model.snapshot import GroupSnapshot
from planner.pipeline import GroupCase
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.runs.policy_stages import read_decision, read_other_cases
from planner.simulation.outcome import CandidateOutcome
from planner.storage.layout import PolicyFiles
from planner.storage.run import Run, RunFiles
from planner.storage.track_records import read_track
from planner.verification.track import TrackRecord

log = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Case:
    """One decision with all that it rests on, and what the group's earlier forecasts came to (``track``).

    ``others`` are the other groups that the same pods serve: the decision is one for all of them.
    """

    policy: ConsumerScalingPolicy
    files: PolicyFiles
    snapshot: GroupSnapshot
    outcomes: tuple[CandidateOutcome, ...]
    record: DecisionRecord
    track: TrackRecord
    others: tuple[GroupCase, ...] = ()

    @property
    def plan(self) -> RolloutPlan | None:
        """The plan, ``None`` for a hold."""
        return pipeline.plan(self.snapshot, self.record, self.policy, self.outcomes, self.others)


def decided_cases(run: Run) -> Iterator[Case]:
    """Yield every decision of the run, by the policy's name; policies without one are logged with their reason."""
    for policy in read_policies(run.policies):
        case = served(run, "read", lambda case: case, policy)
        if isinstance(case, Case):
            yield case


def served(run: RunFiles, stage: str, work: Callable[[Case], _T], policy: ConsumerScalingPolicy) -> _T | PlannerError:
    """Return what ``work`` makes of the policy's decision, or why it makes nothing of it."""
    name = policy.metadata.name
    result = attempt(name, stage, lambda: work(_case(run, policy)))
    if isinstance(result, PlannerError):
        log.warning("policy %s: %s", name, result)
    return result


def _case(run: RunFiles, policy: ConsumerScalingPolicy) -> Case:
    """Return the policy's decision with what it rests on. Raises ``BadInputError`` where there is none."""
    name = policy.metadata.name
    files = run.folder.policy(name)
    if files.decision.exists():
        record, snapshot = read_decision(files.decision), SNAPSHOT.read(run.folder.snapshot(name))
        track = read_track(run.data, record.group, record.decision.decided_at)
        case = Case(policy, files, snapshot, OUTCOMES.read(files.outcomes), record, track)
        return _with_others(run, case) if policy.shared_with else case
    if files.no_decision.exists():
        raise BadInputError(files.no_decision.read_text(encoding="utf-8").strip())
    raise BadInputError(f"no decision for policy {name}: it came after this run's snapshots, the next run has it")


def _with_others(run: RunFiles, case: Case) -> Case:
    """Return the case with the decision for all groups of the same pods: a hold where one of them is not known."""
    mine = GroupCase(case.policy, case.snapshot, read_decision(case.files.own_decision))
    try:
        others = read_other_cases(run.folder, case.policy)
    except PlannerError as error:
        return replace(case, record=pipeline.keep_count(mine, str(error).rstrip(".")))
    return replace(case, record=pipeline.decide_shared((mine, *others))[mine.name], others=others)
