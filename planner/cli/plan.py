"""``planner plan``: decide, and write the plan."""

from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.console import PolicyFile, errors, text_console
from planner.cli.making import (
    At,
    Forecasts,
    PlanOutput,
    SnapshotFile,
    approval,
    is_file,
    made_at,
    read_pair,
    snapshot_beside,
    write_plan,
)

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.snapshot import GroupSnapshot


def plan(
    snapshot: SnapshotFile, policy: PolicyFile, output: PlanOutput, at: At = "now", data: Forecasts = None
) -> None:
    """Decide on the group's consumer count; write a rollout plan, or the decision when the answer is hold.

    The policy of today counts: capacity, strategy, timing, window and bounds, also for a snapshot that was taken
    before. A hold is an answer: exit code 0. Old snapshots hold, so --at snapshot replays a past decision.
    """
    from planner import pipeline
    from planner.advice.next_step import PolicyCommands, next_step
    from planner.calibration import read_track
    from planner.documents.plan import DECISION, PLAN, document_name

    original, wanted = read_pair(snapshot, policy)
    taken = _of_today(original, wanted, output)
    outcomes = pipeline.simulate(taken, wanted)
    record = pipeline.decide(taken, outcomes, wanted, made_at(at, taken.at))
    track = read_track(data, record.group, record.decision.decided_at) if data else None
    doubts = track.doubts if track else ()
    made = pipeline.plan(taken, record, wanted, outcomes)
    document = (
        pipeline.plan_document(made, record, wanted, doubts)
        if made
        else DECISION.document(record, document_name(record))
    )
    step = next_step(record.decision.hold_cause, PolicyCommands(str(policy), str(snapshot), output))
    if not write_plan(document, PLAN.text(document) if made else DECISION.text(document), output):
        for doubt in doubts:
            errors.print(f"planner: doubt this: {doubt}")
        if made is None:
            errors.print(f"planner: next: {step}")
        return
    console = text_console()
    console.print(record.decision.reason, style="bold")
    console.print(f"{'Plan' if made else 'Decision'} written to {output}", soft_wrap=True)
    if made:
        console.print(approval(pipeline.why_no_approval(made, wanted, doubts)), soft_wrap=True)
    for line in track.lines if track else ():
        console.print(line, soft_wrap=True)
    if made is None:
        console.print(f"Next: {step}", soft_wrap=True)


def _of_today(original: "GroupSnapshot", policy: "ConsumerScalingPolicy", output: str) -> "GroupSnapshot":
    """Return the snapshot under the policy of today, and say in what it differs from the file.

    The plan names its snapshot by the digest, so that a snapshot that differs is written beside the plan: reports and
    replays look for it there.
    """
    from planner.documents.data import SNAPSHOT
    from planner.snapshot.today import differences, under_policy
    from planner.storage.files import write_atomically

    taken = under_policy(original, policy.snapshot_settings)
    if taken == original:
        return original
    for difference in differences(original, taken):
        errors.print(f"planner: by the policy of today, {difference}")
    if is_file(output):
        path = snapshot_beside(Path(output))
        write_atomically(path, SNAPSHOT.dump(taken))
        errors.print(f"planner: the plan rests on the snapshot as {path} has it")
    return taken
