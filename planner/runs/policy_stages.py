"""One policy's share of the stages between observing and planning, on the files of its run.

The Spark apps call these for many policies side by side, ``planner.runs.local_run`` for one after the other.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from planner import pipeline
from planner.demand.past import ClockMinutes, continue_past, past_before, past_of
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.plan import DECISION, document_name, read_plan_or_decision
from planner.documents.policy import ConsumerScalingPolicy, read_policy
from planner.documents.policy_folder import target_key
from planner.errors import BadInputError, DocumentError, UnknownNameError
from planner.model.intervals import QueueInterval
from planner.model.past_load import LONGEST_PAST
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.pipeline import GroupCase
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.simulation.outcome import CandidateOutcome
from planner.snapshot.settings import RECENT
from planner.sources.past import group_past_or_problem, past_or_problem
from planner.storage.files import remove_file, write_atomically
from planner.storage.layout import RunFolder


def give_up(run: RunFolder, policy: str, reason: object) -> str:
    """Return the sentence that says why the policy has no decision, and see to it that the run's files say so alone.

    Without its snapshot the later stages pass the policy over.
    """
    sentence = f"No decision for policy {policy}: {str(reason).rstrip('.')}."
    files = run.policy(policy)
    remove_file(run.snapshot(policy))
    files.forget_results()
    write_atomically(files.no_decision, sentence + "\n")
    return sentence


def snapshot_of_history(
    policy: ConsumerScalingPolicy,
    newest: GroupSample | None,
    intervals: Sequence[QueueInterval],
    at: datetime,
    former: GroupSnapshot | None = None,
    days: ClockMinutes | None = None,
) -> GroupSnapshot:
    """Return the snapshot as of ``at`` from the lag history; its ``former`` one tells the load of the days before.

    Without a former one ``days`` do: the minutes that the history has of the group. Raises ``UnknownNameError`` without
    a sample.
    """
    if newest is None:
        source = policy.spec.source
        raise UnknownNameError(
            f"group {source.group} of cluster {source.cluster} has no sample up to {at.isoformat()}, observe it first"
        )
    snapshot = pipeline.snapshot_from(newest, intervals, policy, at)
    if former is not None or not days:
        return _with_former(snapshot, former)
    return replace(snapshot, past_load=past_before(days, snapshot))


def snapshot_of_samples(
    policy: ConsumerScalingPolicy,
    samples: Sequence[GroupSample],
    sample_every_s: float,
    at: datetime,
    former: GroupSnapshot | None = None,
) -> GroupSnapshot:
    """Return the snapshot as of ``at`` from samples, and from metrics where the policy names a server.

    The load of the days before comes from the group's ``former`` snapshot, or from that server. A server that fails is
    among the snapshot's problems. Raises ``UnknownNameError`` without a sample.
    """
    past, problems = past_or_problem(policy, at - RECENT, at)
    snapshot = pipeline.take_snapshot(samples, sample_every_s, policy, at, past)
    snapshot = replace(snapshot, problems=(*snapshot.problems, *problems))
    if former is not None or past is None:
        return _with_former(snapshot, former)
    days, problems = group_past_or_problem(policy, at - LONGEST_PAST, at)
    return replace(snapshot, past_load=past_of(days, snapshot), problems=(*snapshot.problems, *problems))


def _with_former(snapshot: GroupSnapshot, former: GroupSnapshot | None) -> GroupSnapshot:
    return snapshot if former is None else replace(snapshot, past_load=continue_past(former, snapshot))


def write_snapshot(run: RunFolder, policy: str, snapshot: GroupSnapshot) -> None:
    """Write the policy's snapshot; an earlier try's reason for none goes."""
    write_atomically(run.snapshot(policy), SNAPSHOT.dump(snapshot))
    remove_file(run.policy(policy).no_decision)


def write_decision(
    run: RunFolder, policy: ConsumerScalingPolicy, snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome]
) -> DecisionRecord:
    """Decide on the snapshot, and write the decision with the outcomes that it rests on; return it.

    Where the pods serve other groups, what this one would get alone is written beside it: the plan stage decides.
    """
    record, files = pipeline.decide(snapshot, outcomes, policy), run.policy(policy.metadata.name)
    if policy.shared_with:
        own = pipeline.decide_alone(snapshot, outcomes, policy)
        write_atomically(files.own_decision, DECISION.dump(own, document_name(own)))
    else:
        remove_file(files.own_decision)
    write_atomically(files.outcomes, OUTCOMES.dump(tuple(outcomes)))
    write_atomically(files.decision, DECISION.dump(record, document_name(record)))
    return record


def read_decision(path: Path) -> DecisionRecord:
    """Return the decision in the file. Raises ``BadInputError`` when it is missing or something else."""
    record = read_plan_or_decision(path)
    if isinstance(record, RolloutPlan):
        raise DocumentError(f"{path}: found a plan, expected a decision: run the decide stage again")
    return record


def read_other_cases(run: RunFolder, policy: ConsumerScalingPolicy) -> tuple[GroupCase, ...]:
    """Return the other groups that the target's pods serve, as this run read them, by their policies' names.

    Raises ``BadInputError`` where one of them is not known in this run: without it nobody knows what suits all.
    """
    others = tuple(_read_other(run, policy, name) for name in policy.shared_with)
    groups = [each.spec.source.group for each in (policy, *(case.policy for case in others))]
    if len(set(groups)) < len(groups):
        raise BadInputError("groups of one name on several clusters in the same pods are not planned for")
    return others


def _read_other(run: RunFolder, policy: ConsumerScalingPolicy, name: str) -> GroupCase:
    path, own = run.policies / f"{name}.yaml", run.policy(name).own_decision
    if not path.exists():
        raise BadInputError(f"policy {name}, which spec.scaleTargetRef.sharedWith names, is not one of this run's")
    other = read_policy(path)
    expected = sorted({policy.metadata.name, *policy.shared_with} - {name})
    if target_key(other) != target_key(policy) or sorted(other.shared_with) != expected:
        raise BadInputError(
            f"policy {name}, which spec.scaleTargetRef.sharedWith names, has to have the same target and to name "
            f"{', '.join(expected)}"
        )
    if not own.exists():
        raise BadInputError(f"policy {name}, whose group the same pods serve, has no decision in this run")
    return GroupCase(other, SNAPSHOT.read(run.snapshot(name)), read_decision(own))
