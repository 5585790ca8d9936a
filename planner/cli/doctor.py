"""``planner doctor``: what is wrong with one group or all of them, what it costs, what to do."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from planner.cli.address import ProxyOption, workload_of
from planner.cli.console import FormatOption, Output, answering, text_console
from planner.errors import BadInputError
from planner.text.words import duration

if TYPE_CHECKING:
    from planner.cli.doctor_reading import Read
    from planner.diagnosis.finding import Diagnosis, DoctorReport, Finding

WATCH_S = 10.0
LISTED = 12
INDENT = 15
PIPE_WIDTH = 120
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
    kafka: Annotated[
        str | None, typer.Option(help="Kafka bootstrap servers, host:port,host:port.", show_default=False)
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
    deployment: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="The Deployment that runs the group: adds what its pods report.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(help="The namespace of a Deployment named without one.", show_default="default"),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How to reach its API server.", show_default="kubectl's own")
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(
            help="The account's file: accessKey and secretKey, or Kafka client properties.", show_default=False
        ),
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="RocketMQ: talk TLS, with the system's authorities.")] = False,
    ca_file: Annotated[
        Path | None,
        typer.Option(help="RocketMQ: talk TLS, and trust the authorities in this file (PEM).", show_default=False),
    ] = None,
    proxy: ProxyOption = None,
    watch: Annotated[
        float,
        typer.Option(min=0, max=86_400, help="Seconds to watch, a sample every 5 s, two at least; 60 shows trends."),
    ] = WATCH_S,
    top: Annotated[int, typer.Option(min=1, help="Findings printed as text; json and the page hold all.")] = TOP,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures, too.", show_default=False)] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Read groups and say what is wrong with them: evidence, what it costs, what to do. Only reads.

    Exit code 1 when a finding is an error, 3 when something that was asked for could not be read, else 0.
    """
    from planner.cli.doctor_reading import DoctorOptions, read
    from planner.diagnosis.finding import Severity
    from planner.documents.diagnosis import DOCTOR_REPORT

    name, inside = _named(deployment, namespace)
    options = DoctorOptions(
        policy=policy,
        everything=everything,
        name_server=name_server,
        kafka=kafka,
        cluster=cluster,
        groups=tuple(group or ()),
        capture=capture,
        samples=tuple(sample or ()),
        watch_s=watch,
        deployment=name,
        namespace=inside,
        kubeconfig=kubeconfig,
        credentials=credentials,
        tls=tls,
        ca_file=ca_file,
        proxies=tuple(proxy or ()),
    )
    if html is not None:
        from planner.report.doctor import check_page

        check_page(html)  # before anybody waits for the watch
    with answering(form, output) as answer:
        taken = read(options)
        report = _report(taken)
        if html is not None:
            from planner.report.doctor import write_doctor_page

            write_doctor_page(html, report, taken.pictures)
        if not answer.is_text:
            answer.write_plain(DOCTOR_REPORT.document(report))
        else:
            print_report(text_console(), report, top)
            if html is not None:
                typer.echo(f"Page written to {html}")
        if report.worst is Severity.ERROR:
            raise typer.Exit(1)
        if report.unread:
            raise typer.Exit(3)


def _named(deployment: str | None, namespace: str | None) -> tuple[str | None, str | None]:
    """Return name and namespace of the Deployment; raises ``BadInputError`` for two namespaces."""
    workload = workload_of(deployment, "doctor")
    if workload is None or deployment is None or "/" not in deployment:
        return deployment, namespace
    if namespace not in (None, workload[0]):
        raise BadInputError(
            f"planner doctor: --deployment {deployment} and --namespace {namespace} contradict each other"
        )
    return workload[1], workload[0]


def _report(taken: "Read") -> "DoctorReport":
    from planner.diagnosis.diagnose import examine
    from planner.diagnosis.finding import DoctorReport, Severity, Unread

    examined = [examine(evidence) for evidence in taken.pictures]
    ranks = {severity: severity.rank for severity in Severity}
    return DoctorReport(
        at=max((diagnosis.at for diagnosis in examined), default=datetime.now(UTC)),
        groups=tuple(
            sorted(
                examined,
                key=lambda diagnosis: (ranks[diagnosis.worst] if diagnosis.worst else len(ranks), diagnosis.group),
            )
        ),
        unread=(
            *(Unread(group, _reason(taken, group)) for group in sorted(taken.survey.failures)),
            *(Unread(group, problem) for group, problem in taken.survey.problems),
        ),
        unused=len(taken.survey.unused),
    )


def _reason(taken: "Read", group: str) -> str:
    """Return why a group could not be read, and where only the last read failed, that the rest is older."""
    reason = str(taken.survey.failures[group])
    return f"the last sample failed, what follows is older: {reason}" if group in taken.survey.samples else reason


def print_report(console: Console, report: "DoctorReport", top: int) -> None:
    """Print the report for people: the sum, the worst ``top`` findings, what was not read and not checked."""
    console.print(_headline(report), soft_wrap=True)
    findings = report.findings
    for finding in findings[:top]:
        console.print()
        _print_finding(console, finding)
    if len(findings) > top:
        rest = Counter(finding.code for finding in findings[top:])
        named = ", ".join(f"{code} {count}" for code, count in rest.most_common())
        console.print(
            f"{len(findings) - top} more findings ({named}): --top {len(findings)}, -o json or --html FILE shows all",
            soft_wrap=True,
        )
    _print_rest(console, report)


def _headline(report: "DoctorReport") -> Text:
    from planner.diagnosis.finding import Severity

    names = {Severity.ERROR: "with errors", Severity.WARNING: "with warnings", Severity.NOTICE: "with notices"}
    counts = [
        (f"{report.count(severity)} {words}", COLOURS[severity])
        for severity, words in names.items()
        if report.count(severity)
    ]
    undecided = report.undecided
    healthy = report.count(None) - undecided
    total = len(report.groups)
    watched = max((diagnosis.watched_s for diagnosis in report.groups), default=0.0)
    text = Text(f"{total} {'group' if total == 1 else 'groups'}, watched for {duration(watched)}: ", style="bold")
    if healthy:
        counts.append((f"{healthy} healthy", "green"))
    if undecided:
        counts.append(
            (f"{undecided} without a finding yet, watched too briefly to know whether it makes progress", "cyan")
        )
    for number, (words, style) in enumerate(counts):
        text.append(", " if number else "")
        text.append(words, style=style)
    text.append(".")
    return text


def _print_finding(console: Console, finding: "Finding") -> None:
    head = Text()
    head.append(f"{finding.severity.upper():<8}", style=COLOURS[finding.severity])
    head.append(f"{finding.group}  ", style="bold")
    head.append(finding.title)
    head.append(f"  [{finding.code}]", style="dim")
    console.print(head, soft_wrap=True)
    for number, line in enumerate(finding.evidence):
        _print_line(console, "" if number else "seen", line)
    _print_line(console, "costs", finding.consequence)
    _print_line(console, "do", finding.advice)


def _print_line(console: Console, label: str, line: str) -> None:
    """Print one labelled line, wrapped below itself; without trailing blanks, so that pipes get plain text."""
    width = console.width if console.is_terminal else PIPE_WIDTH
    wrapped = textwrap.wrap(line, max(40, width - INDENT), break_long_words=False, break_on_hyphens=False)
    for number, segment in enumerate(wrapped):
        text = Text(" " * 8)
        text.append(f"{'' if number else label:<7}", style="dim")
        text.append(segment)
        console.print(text, soft_wrap=True)


def _print_rest(console: Console, report: "DoctorReport") -> None:
    from planner.sources.survey import ANY_GROUP

    unread = [entry.reason if entry.group == ANY_GROUP else f"{entry.group}: {entry.reason}" for entry in report.unread]
    _print_list(console, "Not read:", unread, "red")
    if len(report.groups) == 1:
        _print_list(console, "Seen while reading:", report.groups[0].problems, "dim")
    _print_list(console, "Not checked:", _gaps(report.groups), "dim")
    if report.unused:
        console.print(
            f"{report.unused} more groups have settings at the brokers, but no members and no commits.", style="dim"
        )


def _print_list(console: Console, title: str, lines: Sequence[str], style: str) -> None:
    """Print a title and its first lines; nothing at all without lines."""
    if not lines:
        return
    more = [f"and {len(lines) - LISTED} more: -o json has all"] if len(lines) > LISTED else []
    console.print()
    console.print(title, style=style)
    for line in (*lines[:LISTED], *more):
        console.print(f"  {line}", style=style, soft_wrap=True)


def _gaps(groups: "Sequence[Diagnosis]") -> list[str]:
    """Return the gaps, equal reasons of several groups as one line."""
    groups_of_gap: dict[tuple[str, str], list[str]] = {}
    for diagnosis in groups:
        for gap in diagnosis.unchecked:
            groups_of_gap.setdefault((gap.code, gap.reason), []).append(diagnosis.group)
    lines: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (code, reason), names in groups_of_gap.items():
        lines.setdefault((reason, tuple(names)), []).append(code)
    return [
        f"{', '.join(codes)} of {names[0] if len(names) == 1 else f'{len(names)} groups'}: {reason}"
        for (reason, names), codes in sorted(lines.items(), key=lambda entry: -len(entry[0][1]))
    ]
