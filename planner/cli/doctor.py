"""``planner doctor``: what is wrong with one group or all of them, what it costs, what to do."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.cli.console import Output, OutputForm, errors, print_json, text_console

if TYPE_CHECKING:
    from planner.diagnosis.finding import Diagnosis, DoctorReport, Finding
    from planner.diagnosis.picture import Picture
    from planner.sources.survey import Survey

WATCH_S = 10.0
TOP = 20
COLOURS = {"error": "bold red", "warning": "yellow", "notice": "cyan"}


def doctor(
    policy: Annotated[
        Path | None, typer.Option("--policy", "-p", help="ConsumerScalingPolicy YAML: its group.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All groups of the installation.")] = False,
    name_server: Annotated[
        str | None,
        typer.Option("--name-server", "-n", help="RocketMQ name servers, host:port;host:port.", show_default=False),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only this RocketMQ cluster.", show_default=False)] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", "-g", help="A group by name; may be repeated.", show_default=False)
    ] = None,
    capture: Annotated[
        Path | None, typer.Option(help="Read a recorded capture folder instead of a live cluster.", show_default=False)
    ] = None,
    sample: Annotated[
        list[Path] | None, typer.Option(help="Read sample files instead; may be repeated.", show_default=False)
    ] = None,
    watch: Annotated[
        float,
        typer.Option(min=0, max=86_400, help="Seconds to watch, a look every 5 s, two at least; 60 shows trends."),
    ] = WATCH_S,
    top: Annotated[int, typer.Option(min=1, help="Findings printed as text; json and the page hold all.")] = TOP,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures, too.", show_default=False)] = None,
    output: Output = OutputForm.TEXT,
) -> None:
    """Read groups and say what is wrong with them: evidence, what it costs, what to do. Only reads.

    Exit code 1 when a finding is an error, 3 when something that was asked for could not be read, else 0.
    """
    from planner.diagnosis.finding import Severity
    from planner.documents.diagnosis import DOCTOR_REPORT

    pictures, taken = _pictures(policy, everything, name_server, cluster, group or [], capture, sample or [], watch)
    report = _report(pictures, taken)
    if html is not None:
        from planner.report.doctor import write_doctor_page

        write_doctor_page(html, report, pictures)
    if output is OutputForm.JSON:
        print_json(DOCTOR_REPORT.document(report))
    else:
        tell(text_console(), report, top)
        if html is not None:
            typer.echo(f"Page written to {html}")
    if report.worst is Severity.ERROR:
        raise typer.Exit(1)
    if report.unread:
        raise typer.Exit(3)


def _pictures(
    policy: Path | None,
    everything: bool,
    name_server: str | None,
    cluster: str | None,
    groups: Sequence[str],
    capture: Path | None,
    samples: Sequence[Path],
    watch_s: float,
) -> "tuple[list[Picture], Survey]":
    from planner.errors import BadInputError

    ways = [policy is not None, name_server is not None, capture is not None, bool(samples)]
    if sum(ways) != 1:
        raise BadInputError(
            f"planner doctor: found {sum(ways)} of --policy, --name-server, --capture, --sample, expected one of them: "
            "planner doctor --all -n HOST:PORT is the quickest"
        )
    if policy is not None:
        return _of_policy(policy, watch_s)
    if name_server is not None:
        if everything == bool(groups):
            raise BadInputError("planner doctor: say either --all or --group NAME beside --name-server")
        return _of_cluster(name_server, cluster, groups, watch_s)
    return _of_records(capture, samples, groups)


def _of_policy(path: Path, watch_s: float) -> "tuple[list[Picture], Survey]":
    from planner.diagnosis.picture import Picture
    from planner.documents.policy import read_policy
    from planner.sources.live import SAMPLE_EVERY_S, watch
    from planner.sources.survey import Survey

    wanted = read_policy(path)
    source = wanted.spec.source
    samples = []
    with errors.status(f"reading group {source.group}") as status:
        for taken in watch(source, max(watch_s, SAMPLE_EVERY_S)):
            samples.append(taken)
            status.update(f"watching group {source.group}: {len(samples)} looks")
    picture = Picture(
        tuple(samples), SAMPLE_EVERY_S, wanted.snapshot_settings.strategy, wanted.objective.oldest_message_s
    )
    return [picture], Survey({source.group: samples})


def _of_cluster(
    name_server: str, cluster: str | None, groups: Sequence[str], watch_s: float
) -> "tuple[list[Picture], Survey]":
    from planner.diagnosis.picture import Picture
    from planner.errors import BadInputError
    from planner.sources.live import SAMPLE_EVERY_S
    from planner.sources.rocketmq import RocketMQAdmin
    from planner.sources.survey import group_names, rocketmq_look, survey

    with RocketMQAdmin(name_server) as admin, errors.status("asking the name server") as status:
        wanted = tuple(dict.fromkeys(groups)) or group_names(admin, cluster)
        if not wanted:
            raise BadInputError(f"{name_server} knows no consumer group yet: start a consumer, or check the cluster")
        taken = survey(rocketmq_look(admin, cluster), wanted, watch_s, status.update, named=bool(groups))
    if not taken.samples and taken.failures:
        raise next(iter(taken.failures.values()))
    return [Picture(tuple(samples), SAMPLE_EVERY_S) for samples in taken.samples.values()], taken


def _of_records(capture: Path | None, files: Sequence[Path], groups: Sequence[str]) -> "tuple[list[Picture], Survey]":
    from planner.diagnosis.picture import Picture
    from planner.documents.data import SAMPLE
    from planner.errors import UnknownNameError
    from planner.sources.capture import open_capture
    from planner.sources.survey import Survey

    taken = Survey()
    every_s = 5.0
    if capture is not None:
        opened = open_capture(capture)
        every_s = opened.header.sample_every_s
        of_groups = opened.samples()
    else:
        of_groups = iter(sorted((SAMPLE.read(path) for path in files), key=lambda one: one.at))
    for one in of_groups:
        taken.samples.setdefault(one.group, []).append(one)
    missing = [name for name in groups if name not in taken.samples]
    if missing:
        raise UnknownNameError(f"group {missing[0]} is not in these samples, which hold {', '.join(taken.samples)}")
    chosen = {name: samples for name, samples in taken.samples.items() if not groups or name in groups}
    return [Picture(tuple(samples), every_s) for samples in chosen.values()], Survey(chosen)


def _report(pictures: "Iterable[Picture]", taken: "Survey") -> "DoctorReport":
    from planner.diagnosis.diagnose import examine
    from planner.diagnosis.finding import DoctorReport, Severity, Unread

    examined = [examine(picture) for picture in pictures]
    ranks = {severity: severity.rank for severity in Severity}
    return DoctorReport(
        at=max((one.at for one in examined), default=datetime.now(UTC)),
        groups=tuple(sorted(examined, key=lambda one: (ranks[one.worst] if one.worst else len(ranks), one.group))),
        unread=tuple(Unread(group, str(error)) for group, error in sorted(taken.unread.items())),
        unused=len(taken.unused),
    )


def tell(console: Console, report: "DoctorReport", top: int) -> None:
    """Print the round for people: the sum, the worst ``top`` findings, what was not read and not checked."""
    console.print(_headline(report))
    findings = report.findings
    for finding in findings[:top]:
        console.print()
        _tell_finding(console, finding)
    if len(findings) > top:
        rest = Counter(finding.code for finding in findings[top:])
        named = ", ".join(f"{code} {count}" for code, count in rest.most_common())
        console.print(
            f"\n{len(findings) - top} more findings ({named}): --top {len(findings)}, -o json or --html FILE shows all",
            markup=False,
        )
    _tell_rest(console, report)


def _headline(report: "DoctorReport") -> Text:
    from planner.diagnosis.finding import Severity

    names = {Severity.ERROR: "with errors", Severity.WARNING: "with warnings", Severity.NOTICE: "with notices"}
    parts = [
        (f"{report.count(severity)} {words}", COLOURS[severity])
        for severity, words in names.items()
        if report.count(severity)
    ]
    healthy = report.count(None)
    total = len(report.groups)
    watched = max((one.watched_s for one in report.groups), default=0.0)
    text = Text(f"{total} {'group' if total == 1 else 'groups'}, watched for {watched:.0f} s: ", style="bold")
    if healthy:
        parts.append((f"{healthy} healthy", "green"))
    for number, (words, style) in enumerate(parts):
        text.append(", " if number else "")
        text.append(words, style=style)
    text.append(".")
    return text


def _tell_finding(console: Console, finding: "Finding") -> None:
    head = Text()
    head.append(f"{finding.severity.upper():<8}", style=COLOURS[finding.severity])
    head.append(f"{finding.group}  ", style="bold")
    head.append(finding.title)
    head.append(f"  [{finding.code}]", style="dim")
    console.print(head)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for number, line in enumerate(finding.evidence):
        grid.add_row("" if number else "seen", Text(line))
    grid.add_row("costs", Text(finding.consequence))
    grid.add_row("do", Text(finding.advice))
    console.print(Padding(grid, (0, 0, 0, 8)))


def _tell_rest(console: Console, report: "DoctorReport") -> None:
    for one in report.unread[:10]:
        console.print(f"\nNot read: {one.group}: {one.reason}", style="red", markup=False)
    if len(report.unread) > 10:
        console.print(f"Not read: {len(report.unread) - 10} more groups", style="red", markup=False)
    gaps = _gaps(report.groups)
    if gaps:
        console.print("\nNot checked:", style="dim")
        for line in gaps[:12]:
            console.print(f"  {line}", style="dim", markup=False)
        if len(gaps) > 12:
            console.print(f"  and {len(gaps) - 12} more reasons: -o json has all", style="dim", markup=False)
    if report.unused:
        console.print(
            f"\n{report.unused} more groups have settings at the brokers, but no members and no commits.", style="dim"
        )


def _gaps(groups: "Sequence[Diagnosis]") -> list[str]:
    """Return the gaps, equal reasons of several groups as one line."""
    found: dict[tuple[str, str], list[str]] = {}
    for diagnosis in groups:
        for gap in diagnosis.unchecked:
            found.setdefault((gap.code, gap.reason), []).append(diagnosis.group)
    lines: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (code, reason), names in found.items():
        lines.setdefault((reason, tuple(names)), []).append(code)
    return [
        f"{', '.join(codes)} of {names[0] if len(names) == 1 else f'{len(names)} groups'}: {reason}"
        for (reason, names), codes in sorted(lines.items(), key=lambda entry: -len(entry[0][1]))
    ]
