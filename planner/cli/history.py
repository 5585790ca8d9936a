"""``planner history``: what a Prometheus server has of groups' past, for those who have metrics only."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from planner.cli.console import FormatOption, Output, answering, parse_time, seconds, text_console
from planner.cli.metric_reading import (
    AuthoritiesOption,
    BasicAuthOption,
    BearerOption,
    LabelOption,
    MatchOption,
    Readings,
    Span,
    SystemOption,
    pairs,
    queries,
    read_groups,
)
from planner.errors import BadInputError
from planner.text.words import counted, duration

if TYPE_CHECKING:
    from planner.model.points import GroupPoint, MetricHistory
    from planner.sources.prometheus import Access, GroupQuery

POINTS = 2000
"""Wanted of a span: more cost the server time, and no table shows them."""

ROWS = 16
RECENT = timedelta(minutes=10)


def history(
    prometheus: Annotated[
        str | None, typer.Option(help="The server: http://host:9090 or https://host/prefix.", show_default=False)
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="ConsumerScalingPolicy YAML: its group and server.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All groups that the server knows.")] = False,
    group: Annotated[
        list[str] | None, typer.Option("--group", "-g", help="A group by name; may be repeated.", show_default=False)
    ] = None,
    system: SystemOption = None,
    days: Annotated[float, typer.Option(min=0.001, max=3660, help="How far back.")] = 14.0,
    until: Annotated[str | None, typer.Option(help="Up to when (ISO 8601).", show_default="now")] = None,
    step: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds between readings.", show_default=f"what gives {POINTS}, 60 at least"),
    ] = None,
    match: MatchOption = None,
    label: LabelOption = None,
    bearer_token_file: BearerOption = None,
    basic_auth_file: BasicAuthOption = None,
    ca_file: AuthoritiesOption = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say what metrics report of groups: what arrives, what waits, who is there, now and over the last days.

    Asks a Prometheus server alone, no broker. Who the members are and what they own stands in no metrics: planner
    doctor reads that from the brokers. Exit code 3 when a group could not be read, else 0.
    """
    from planner.sources.prometheus import Access, Prometheus

    end = parse_time(until, "--until") if until else datetime.now(UTC)
    span = Span(end - timedelta(days=days), end, step or max(60.0, days * 86400 / POINTS))
    if policy is not None:
        others = {
            "--prometheus": prometheus,
            "--all": everything,
            "--group": group,
            "--system": system,
            "--match": match,
            "--label": label,
            "--bearer-token-file": bearer_token_file,
            "--basic-auth-file": basic_auth_file,
            "--ca-file": ca_file,
        }
        access, asked = _of_policy(policy, [name for name, value in others.items() if value])
        names: Sequence[str] = ()
    else:
        asked = queries(system, pairs(match, "--match"), pairs(label, "--label"))
        names = _names(prometheus, group or (), everything)
        access = Access(prometheus or "", bearer_token_file, basic_auth_file, ca_file)
    with answering(form, output) as answer:
        with Prometheus(access) as server:
            readings = read_groups(server, asked, names, span)
        if answer.is_text:
            _print(text_console(), readings)
        else:
            answer.write("GroupHistories", _document(readings))
        if readings.unread:
            raise typer.Exit(3)


def _of_policy(path: Path, others: Sequence[str]) -> "tuple[Access, tuple[GroupQuery, ...]]":
    """Return the server of a policy and its group."""
    from planner.cli.policy_reading import read_policy
    from planner.sources.prometheus import Access, GroupQuery

    if others:
        raise BadInputError(f"planner history: --policy names group and server: leave {' and '.join(others)} out")
    source = read_policy(path).spec.source
    server = source.prometheus
    if server is None:
        raise BadInputError(f"{path} names no Prometheus server: write its url under spec.source.prometheus")
    access = Access(server.url, server.bearer_token_file, server.basic_auth_file, server.ca_file)
    return access, (GroupQuery(source.system, source.group, None, source.topics, server.labels, server.matchers),)


def _names(prometheus: str | None, groups: Sequence[str], everything: bool) -> Sequence[str]:
    """Return the groups that are named, none for all of them. Raises ``BadInputError``."""
    if prometheus is None:
        raise BadInputError("planner history: found neither --prometheus URL nor --policy FILE, expected one of them")
    if everything == bool(groups):
        raise BadInputError("planner history: --prometheus goes with either --all or --group NAME: say one of them")
    return groups


def _document(readings: Readings) -> dict[str, Any]:
    from planner.documents.data import METRIC_HISTORY

    return {
        "since": readings.span.since.isoformat(),
        "until": readings.span.until.isoformat(),
        "groups": [METRIC_HISTORY.body(metric_history) for metric_history in readings.histories],
        "unread": [{"group": group, "reason": reason} for group, reason in readings.unread],
    }


def _print(console: Console, readings: Readings) -> None:
    """Print one group in full, several as a table of a line each."""
    if len(readings.histories) == 1:
        _print_group(console, readings.histories[0], readings.span)
    else:
        _print_table(console, readings)
    for group, reason in readings.unread:
        console.print(f"not read: group {group}: {reason}", style="yellow", soft_wrap=True)


def _print_group(console: Console, group: "MetricHistory", span: Span) -> None:
    from planner.history.summary import stretches

    console.print(_title(group), style="bold", soft_wrap=True)
    console.print(_now(group, span.until), soft_wrap=True)
    headings = ("from (UTC)", "arrive\nper s", "most\nper s", "consumed\nper s", "most\nbehind", "longest\nwait")
    title = f"Every {duration(group.period_s)} since {span.since:%Y-%m-%d %H:%M}"
    table = _table(title, (*headings, "members", "known"))
    for row in stretches(group.points, span.since, span.until, ROWS):
        table.add_row(
            f"{row.since:%m-%d %H:%M}",
            _figure(row.arrival_rate),
            _figure(row.most_arrival_rate),
            _figure(row.consumption_rate),
            _figure(row.most_lag),
            seconds(row.most_lag_s),
            _range(row.fewest_members, row.most_members),
            f"{row.known:.0%}",
        )
    if table.row_count:
        console.print(table)
    for problem in group.problems:
        console.print(f"problem: {problem}", style="yellow", soft_wrap=True)


def _title(group: "MetricHistory") -> str:
    where = f" of cluster {group.cluster}" if group.cluster else ""
    return f"{group.system} group {group.group}{where}, by {group.source}"


def _now(group: "MetricHistory", until: datetime) -> str:
    """Return how the group is by its newest point, or since when there is none."""
    if group.newest_at is None:
        return "  there is no figure of it in this time"

    last = _newest(group, until)
    if last is None and until - group.newest_at <= _old(group):
        return "  there is one reading of it yet, which makes no rate: take a shorter --step"
    if last is None:
        return f"  its metrics ended at {group.newest_at:%Y-%m-%d %H:%M:%S} UTC: how it is now is not known"
    behind = "nobody knows how far behind" if last.lag is None else f"{last.lag:,} messages behind"
    wait = "" if last.lag_s is None else f", the oldest waits for {duration(last.lag_s)}"
    members = "members are not counted" if last.members is None else counted(last.members, "member")
    return f"  now: {behind}{wait}, {members}, {_figure(last.arrival_rate)} messages/s arrive"


def _newest(group: "MetricHistory", until: datetime) -> "GroupPoint | None":
    """Return the newest point where it shows how the group is now, else ``None``."""
    return group.points[-1] if group.points and until - group.points[-1].at <= _old(group) else None


def _old(group: "MetricHistory") -> timedelta:
    """Return up to which age a figure shows how the group is now."""
    return max(RECENT, timedelta(seconds=2 * group.period_s))


def _print_table(console: Console, readings: Readings) -> None:
    from planner.history.summary import stretch

    headings = (
        "group",
        "system",
        "arrive\nper s",
        "most\nper s",
        "behind\nnow",
        "most\nbehind",
        "longest\nwait",
        "members",
    )
    table = _table(f"{len(readings.histories)} groups since {readings.span.since:%Y-%m-%d %H:%M} UTC", headings)
    for group in readings.histories:
        row, now = stretch(group.points, readings.span.since, readings.span.until), _newest(group, readings.span.until)
        table.add_row(
            group.group,
            group.system,
            _figure(row.arrival_rate),
            _figure(row.most_arrival_rate),
            _figure(now.lag if now else None),
            _figure(row.most_lag),
            seconds(row.most_lag_s),
            _range(row.fewest_members, row.most_members),
        )
    console.print(table)


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 10 else f"{value:.2g}"


def _range(fewest: int | None, most: int | None) -> str:
    if fewest is None or most is None:
        return "unknown"
    return str(most) if fewest == most else f"{fewest}–{most}"
