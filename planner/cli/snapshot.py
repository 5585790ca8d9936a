"""``planner snapshot``: read one group once and write what is true."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planner.cli.console import Answer, Format, FormatOption, PolicyFile, errors, parse_time, print_next, text_console
from planner.cli.making import destination_of, write_document
from planner.text.words import counted, duration, pods, queues, some

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.samples import GroupSample
    from planner.model.snapshot import GroupSnapshot
    from planner.sources.live import Pace

LONGEST_S: Final = 3600

WITH_METRICS_S: Final = 15
"""Three samples: rates come out of the metrics."""


def snapshot(
    policy: PolicyFile,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Snapshot file to write (JSON); - or json prints the snapshot on standard output instead.",
            show_default=False,
        ),
    ],
    capture: Annotated[
        Path | None, typer.Option(help="Read a recorded capture folder instead of the live cluster.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="With --capture: as of this time (ISO 8601). Default: its end.")
    ] = None,
    observe_seconds: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LONGEST_S,
            help="Live: how long to watch, a sample every 5 s. 0 gives no rates.",
            show_default="the policy's window, or its stabilisation where that is longer",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Live: data folder of planner sample or planner run to look back at; one sample is taken where the "
            "sampler has read enough of the group.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = None,
) -> None:
    """Read the group's brokers, live or from a capture, and write a snapshot.

    Rates need time: a live snapshot knows what it watched and what --data has, and planner plan holds while that is too
    little of the policy's window. A watch that is too short for the policy says so at once.
    """
    from planner.advice.next_command import PolicyCommands
    from planner.cli.policy_reading import read_policy, spelt
    from planner.documents.data import SNAPSHOT
    from planner.errors import BadInputError

    to = destination_of(output, form, Format.JSON)
    if at is not None and capture is None:
        raise BadInputError("option --at goes with --capture: a live cluster is read as of now")
    if data is not None and capture is not None:
        raise BadInputError("options --data and --capture contradict each other: a capture has its own past")
    parsed_policy = read_policy(policy)
    taken = _from_capture(capture, parsed_policy, at) if capture else take_live(parsed_policy, observe_seconds, data)
    write_document(SNAPSHOT.document(taken), SNAPSHOT.dump(taken), to)
    if to.answer is not None:
        # A recording is old by nature: its plan is made as of its end, or the planner holds.
        step = PolicyCommands(spelt(policy), str(to.file or "snap.json")).decide + (" --at snapshot" if capture else "")
        _print(taken, step, to.file, to.answer)


def watch_seconds(policy: "ConsumerScalingPolicy", stated: int | None) -> int:
    """Return how long to watch, in seconds: as long as stated, else as long as the policy's own times ask for.

    Those are the window and the rest of stabilisation, an hour at most; where a metrics server has the past, the watch
    needs to give owners and offsets alone. A stated watch that is too short is named before it begins;
    0 asks for no rates at all.
    """
    spec = policy.spec
    if spec.source.prometheus is not None:
        return WITH_METRICS_S if stated is None else stated
    quiet_s = spec.stabilisation.seconds if spec.stabilisation else 0
    if stated is None:
        return min(max(spec.window.seconds, quiet_s), LONGEST_S)
    least = math.ceil(spec.window.seconds * spec.freshness.min_completeness)
    if 0 < stated < least:
        errors.print(
            f"planner: a watch of {stated} s is too short for the policy's window of {spec.window.seconds} s: planner "
            f"plan holds on it (IncompleteData); {least} s are enough, and without --observe-seconds it watches "
            f"{spec.window.seconds} s",
        )
    return stated


def _from_capture(folder: Path, policy: "ConsumerScalingPolicy", at: str | None) -> "GroupSnapshot":
    from planner import pipeline
    from planner.sources.capture import open_capture

    capture = open_capture(folder)
    until = parse_time(at, "--at") if at else capture.header.ended_at
    samples = pipeline.observe_capture(
        capture, policy.spec.source.group, capture.header.started_at, until + timedelta(microseconds=1)
    )
    return pipeline.take_snapshot(samples, capture.header.sample_every_s, policy, until)


def take_live(
    policy: "ConsumerScalingPolicy", observe_seconds: int | None, data: Path | None = None
) -> "GroupSnapshot":
    """Return the snapshot of the policy's group after a watch, or one read where ``planner sample`` covers it in
    ``data``; raises what ``watch`` and ``watch_seconds`` do.
    """
    from planner.runs.coverage import gaps_judged_by, needs_single_read, read_coverage
    from planner.runs.past_runs import former_samples, former_snapshot, gap_period_s
    from planner.runs.policy_stages import snapshot_of_samples
    from planner.sources.live import Pace
    from planner.sources.past import check_past

    check_past(policy)
    pace, now, coverage = Pace(), datetime.now(UTC), None if data is None else read_coverage(data)
    reads_once = needs_single_read(coverage, [policy], now)
    samples = _watch(policy, 0 if reads_once else watch_seconds(policy, observe_seconds), pace)
    at = samples[-1].at
    if data is None:
        return snapshot_of_samples(policy, samples, pace.sample_every_s, at)
    period_s = gap_period_s(data, policy, at, gaps_judged_by(coverage, [policy], now, pace.sample_every_s))
    watched = (*former_samples(data, policy, at), *samples)
    return snapshot_of_samples(policy, watched, period_s, at, former_snapshot(data, policy, at))


def _watch(policy: "ConsumerScalingPolicy", observe_seconds: int, pace: "Pace") -> "Sequence[GroupSample]":
    """Return the samples of one watch, at least one."""
    from planner.sources.live import watch

    group = policy.spec.source.group
    samples: list[GroupSample] = []
    with errors.status(f"reading group {group}") as status:
        for sample in watch(policy, observe_seconds, pace):
            samples.append(sample)
            elapsed_s = (sample.at - samples[0].at).total_seconds()
            seen = f"{duration(elapsed_s)} of {duration(observe_seconds)}"
            status.update(f"watching group {group}: {_progress(sample)}; {seen}")
    return samples


def _progress(sample: "GroupSample") -> str:
    """Return members and known lag of a sample."""
    lags = [entry.lag for entry in sample.offsets if entry.lag is not None and not entry.queue.is_retry]
    return f"{counted(len(sample.members), 'member')}, {counted(sum(lags), 'message')} waiting"


def _consumers(taken: "GroupSnapshot") -> str:
    """Return how many consumers there are, or that nobody knows."""
    count = len(taken.clients)
    if taken.unlisted_consumers is None:
        return pods(taken.count, count) if count else "0 consumers"
    return f"{f'{count} consumers listed, others' if count else 'members'} unknown ({taken.unlisted_consumers})"


def _print(taken: "GroupSnapshot", step: str, file: Path | None, answer: Answer) -> None:
    """Print what the snapshot holds, in short, and the command that decides on it."""
    if answer.is_text:
        _print_text(taken, file)
        print_next(step)
    else:
        answer.write("SnapshotSummary", {**summary(taken), "file": None if file is None else str(file), "next": step})


def summary(taken: "GroupSnapshot") -> dict[str, Any]:
    """Return what the snapshot holds, in short; what is unknown is ``None``.

    ``members`` counts those that are listed, and ``unlistedMembers`` says why there are others that nobody can count.
    """
    capacity = taken.capacity
    return {
        "system": taken.system,
        "cluster": taken.cluster,
        "group": taken.group,
        "at": taken.at.isoformat(),
        "windowSeconds": taken.window_s,
        "members": len(taken.clients),
        "membersPerPod": taken.members_per_pod,
        "unevenPods": list(taken.uneven_pods),
        "unlistedMembers": taken.unlisted_consumers,
        "queues": len(taken.data_queues),
        "lag": None if taken.unknown_lag else taken.lag,
        "strategy": taken.strategy,
        "capacityPerSecond": capacity.messages_per_s if capacity else None,
        "parts": [
            {
                "name": section.name,
                "completeness": section.completeness,
                "ageSeconds": section.age_s,
                "note": section.note,
            }
            for section in taken.parts
        ],
        "problems": list(taken.problems),
    }


def _behind(taken: "GroupSnapshot") -> str:
    """Return how many messages wait, and that nobody knows it of some queues."""
    waiting = f"{counted(taken.lag, 'message')} behind"
    if not taken.unknown_lag:
        return waiting
    return f"at least {waiting} (unknown for {some(taken.unknown_lag)})"


def _print_text(taken: "GroupSnapshot", file: Path | None) -> None:
    console = text_console()
    console.print(
        f"Group {taken.group} at {taken.at:%Y-%m-%d %H:%M:%S %Z}: {_consumers(taken)}, "
        f"{queues(len(taken.data_queues), taken.system)}, {_behind(taken)}, "
        f"strategy {taken.strategy or f'unknown ({taken.strategy_source})'}."
    )
    for section in taken.parts:
        note = f" ({section.note})" if section.note else ""
        console.print(f"  {section.name}: {section.completeness:.0%} complete, {duration(section.age_s)} old{note}")
    if taken.members_per_pod is None or taken.uneven_pods:
        console.print(f"  members of each pod: {taken.members_per_pod_source}", style="yellow")
    for problem in taken.problems:
        console.print(f"  problem: {problem}", style="yellow")
    if file is not None:
        console.print(f"Written to {file}", soft_wrap=True)
