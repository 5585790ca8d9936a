"""``planner plan``: decide, and write the plan."""

from planner.cli.console import PolicyFile, errors, text_console
from planner.cli.making import At, Forecasts, PlanOutput, SnapshotFile, approval, made_at, read_pair, write_plan


def plan(
    snapshot: SnapshotFile, policy: PolicyFile, output: PlanOutput, at: At = "now", data: Forecasts = None
) -> None:
    """Decide on the group's consumer count; write a rollout plan, or the decision when the answer is hold.

    A hold is an answer: exit code 0. Old snapshots hold, so --at snapshot replays a past decision.
    """
    from planner import pipeline
    from planner.calibration import read_track
    from planner.documents.plan import DECISION, PLAN, document_name

    taken, wanted = read_pair(snapshot, policy)
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
    if not write_plan(document, PLAN.text(document) if made else DECISION.text(document), output):
        for doubt in doubts:
            errors.print(f"planner: doubt this: {doubt}", markup=False)
        return
    console = text_console()
    console.print(record.decision.reason, style="bold", markup=False)
    console.print(f"{'Plan' if made else 'Decision'} written to {output}", markup=False, soft_wrap=True)
    if made:
        console.print(approval(pipeline.why_no_approval(made, wanted, doubts)), markup=False, soft_wrap=True)
    for line in track.lines if track else ():
        console.print(line, markup=False, soft_wrap=True)
