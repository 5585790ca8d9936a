"""``planner plan``: decide, and write the plan."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.console import Answer, FormatOption, PolicyFile, errors, print_next, text_console
from planner.cli.making import (
    At,
    Forecasts,
    PlanOutput,
    SnapshotFile,
    approval,
    destination_of,
    made_at,
    read_pair,
    snapshot_beside,
    write_document,
)

if TYPE_CHECKING:
    from planner.advice.next_command import NextCommand
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.snapshot import GroupSnapshot
    from planner.rollout.plan import DecisionRecord, RolloutPlan
    from planner.verification.track import TrackRecord

PLAN_FILE = "plan.yaml"
"""How the next command names the plan where nothing was written."""


@dataclass(frozen=True)
class Planned:
    """The decision on one snapshot with all that a summary of it shows.

    ``plan`` is ``None`` for a hold. ``doubts`` are sentences against the forecast, ``reasons`` say why a
    person has to approve; none where the policy's criteria approve the plan.
    """

    record: "DecisionRecord"
    plan: "RolloutPlan | None"
    document: dict[str, Any]
    text: str
    track: "TrackRecord | None"
    doubts: tuple[str, ...]
    reasons: tuple[str, ...]


def plan(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    output: PlanOutput = None,
    at: At = "now",
    data: Forecasts = None,
    form: FormatOption = None,
) -> None:
    """Decide on the group's consumer count; write a rollout plan, or the decision when the answer is hold.

    The policy of today counts: capacity, strategy, timing, window and bounds, also for a snapshot that was taken
    before. A hold is an answer: exit code 0. Old snapshots hold, so --at snapshot replays a past decision.
    """
    to = destination_of(output, form)
    original, parsed_policy = read_pair(snapshot, policy)
    taken = _of_today(original, parsed_policy, to.file, snapshot)
    planned = _make_plan(taken, parsed_policy, at, data)
    write_document(planned.document, planned.text, to)
    step = _next(planned, policy, snapshot, to.file, at)
    if to.answer is None or not to.answer.is_text:
        for doubt in planned.doubts:
            errors.print(f"planner: doubt this: {doubt}")
    if to.answer is None:
        if planned.plan is None:
            errors.print(f"planner: next: {step}")
    elif to.answer.is_text:
        _print(planned, step, to.file)
    else:
        _write_short(planned, step, len(taken.data_queues), to.file, to.answer)


def _make_plan(taken: "GroupSnapshot", policy: "ConsumerScalingPolicy", at: str, data: Path | None) -> Planned:
    """Return what is decided on the snapshot, at the time that ``--at`` names."""
    from planner import pipeline
    from planner.documents.plan import DECISION, PLAN, document_name
    from planner.storage.track_records import read_track

    outcomes = pipeline.simulate(taken, policy)
    record = pipeline.decide(taken, outcomes, policy, made_at(at, taken.at))
    track = read_track(data, record.group, record.decision.decided_at) if data else None
    doubts = track.doubts if track else ()
    made = pipeline.plan(taken, record, policy, outcomes)
    if made is None:
        document = DECISION.document(record, document_name(record))
        return Planned(record, None, document, DECISION.text(document), track, doubts, ())
    document = pipeline.plan_document(made, record, policy, doubts)
    reasons = pipeline.why_no_approval(made, policy, doubts)
    return Planned(record, made, document, PLAN.text(document), track, doubts, reasons)


def _next(planned: Planned, policy: Path, snapshot: Path, file: Path | None, at: str) -> "NextCommand | str":
    """Return the reader's next command: what ends a hold, writes the plan as of ``at``, approves it or applies it."""
    from planner.advice.next_command import NextCommand, PolicyCommands, command_after_decision
    from planner.cli.policy_reading import spelt
    from planner.rollout.next_command import apply_command, approve_command

    commands = PolicyCommands(spelt(policy), str(snapshot), str(file or PLAN_FILE))
    if planned.plan is None:
        return command_after_decision(planned.record.decision, commands)
    if file is None:
        return NextCommand(commands.decide + ("" if at == "now" else f" --at {shlex.quote(at)}"), "writes the plan")
    return approve_command(planned.plan, str(file)) if planned.reasons else apply_command(str(file))


def _print(planned: Planned, step: "NextCommand | str", file: Path | None) -> None:
    """Print the decision, where it was written, and what comes next, for people."""
    console = text_console()
    console.print(planned.record.decision.reason, style="bold")
    if file is not None:
        console.print(f"{'Plan' if planned.plan else 'Decision'} written to {file}", soft_wrap=True)
    if planned.plan:
        console.print(approval(planned.reasons), soft_wrap=True)
    for line in planned.track.lines if planned.track else ():
        console.print(line, soft_wrap=True)
    print_next(str(step))


def _write_short(planned: Planned, step: "NextCommand | str", queues: int, file: Path | None, answer: Answer) -> None:
    """Print the short form of the answer, as ``planner advise`` has it, and the file that holds the whole."""
    from planner.advice.answer import price_of, short_answer

    short = short_answer(planned.record.decision, price_of(planned.plan, queues), step)
    answer.write("PlanSummary", {**short, "file": None if file is None else str(file)})


def _of_today(
    original: "GroupSnapshot", policy: "ConsumerScalingPolicy", file: Path | None, source: Path
) -> "GroupSnapshot":
    """Return the snapshot under the policy of today, and print in what it differs from the file ``source``.

    The plan names its snapshot by the digest, so that a snapshot with another one is written beside the plan: reports
    and replays look for it there. A file of an earlier release has another one, too, as it lacks later fields.
    """
    from planner.documents.data import SNAPSHOT
    from planner.snapshot.today import differences, under_policy, unknown_settings
    from planner.storage.files import write_atomically

    taken = under_policy(original, policy.snapshot_settings)
    for unknown in unknown_settings(original, policy.snapshot_settings):
        errors.print(f"planner: not compared with the policy of today, {unknown}")
    for difference in differences(original, taken):
        errors.print(f"planner: by the policy of today, {difference}")
    if file is not None and SNAPSHOT.claimed_digest(source) != SNAPSHOT.digest(taken):
        path = snapshot_beside(file)
        write_atomically(path, SNAPSHOT.dump(taken))
        errors.print(f"planner: the plan rests on the snapshot as {path} has it")
    return taken
