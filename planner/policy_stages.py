"""One policy's share of the stages between observing and planning, on the files of its run.

The Spark apps call these for many policies side by side, ``planner.local_run`` for one after the other.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from planner import pipeline
from planner.documents.data import OUTCOMES, SAMPLE, SNAPSHOT
from planner.documents.plan import DECISION, document_name
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import UnknownNameError
from planner.model.intervals import QueueInterval
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.rollout.plan import DecisionRecord
from planner.simulation.outcome import CandidateOutcome
from planner.snapshot.build import RECENT
from planner.sources.past import past_or_problem
from planner.storage.files import remove_file, write_atomically
from planner.storage.layout import RunFolder, time_name


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


def newest_sample(folder: Path, at: datetime) -> GroupSample | None:
    """Return the newest sample of a group taken up to ``at``, ``None`` when there is none."""
    # Names have the time to the millisecond only, so the sample itself has the last word.
    names = sorted((path for path in folder.glob("*.json") if path.stem <= time_name(at)), reverse=True)
    return next((sample for sample in map(SAMPLE.read, names) if sample.at <= at), None)


def snapshot_of_history(
    policy: ConsumerScalingPolicy, newest: GroupSample | None, intervals: Sequence[QueueInterval], at: datetime
) -> GroupSnapshot:
    """Return the snapshot as of ``at`` from the lag history. Raises ``UnknownNameError`` without a sample."""
    if newest is None:
        source = policy.spec.source
        raise UnknownNameError(
            f"group {source.group} of cluster {source.cluster} has no sample up to {at.isoformat()}, observe it first"
        )
    return pipeline.snapshot_from(newest, intervals, policy, at)


def snapshot_of_samples(
    policy: ConsumerScalingPolicy, samples: Sequence[GroupSample], sample_every_s: float, at: datetime
) -> GroupSnapshot:
    """Return the snapshot as of ``at`` from samples, and from metrics where the policy names a server.

    A server that fails is among the snapshot's problems. Raises ``UnknownNameError`` without a sample.
    """
    past, problems = past_or_problem(policy, at - RECENT, at)
    snapshot = pipeline.take_snapshot(samples, sample_every_s, policy, at, past)
    return replace(snapshot, problems=(*snapshot.problems, *problems))


def write_snapshot(run: RunFolder, policy: str, snapshot: GroupSnapshot) -> None:
    """Write the policy's snapshot; an earlier try's reason for none goes."""
    write_atomically(run.snapshot(policy), SNAPSHOT.dump(snapshot))
    remove_file(run.policy(policy).no_decision)


def write_decision(
    run: RunFolder, policy: ConsumerScalingPolicy, snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome]
) -> DecisionRecord:
    """Decide on the snapshot, and write the decision with the outcomes that it rests on; return it."""
    record, files = pipeline.decide(snapshot, outcomes, policy), run.policy(policy.metadata.name)
    write_atomically(files.outcomes, OUTCOMES.dump(tuple(outcomes)))
    write_atomically(files.decision, DECISION.dump(record, document_name(record)))
    return record
