"""``planner history``: what a Prometheus server tells of groups' past, for those who have metrics only."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from planner.cli.console import FormatOption, Output, answering, errors, parse_time, seconds, text_console
from planner.errors import BadInputError, OutOfReachError, PlannerError
from planner.words import counted

if TYPE_CHECKING:
    from planner.model.points import GroupPoint, MetricHistory
    from planner.sources.prometheus import Access, Prometheus, Wanted

SYSTEMS = ("rocketmq", "kafka")
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
    system: Annotated[
        str | None, typer.Option(help="Only groups of rocketmq, or of kafka.", show_default=False)
    ] = None,
    days: Annotated[float, typer.Option(min=0.001, max=3660, help="How far back.")] = 14.0,
    until: Annotated[str | None, typer.Option(help="Up to when (ISO 8601).", show_default="now")] = None,
    step: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds between readings.", show_default=f"what gives {POINTS}, 60 at least"),
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(help="label=value that every series must have; may be repeated.", show_default=False),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="role=label where the server renames cluster, group, topic, partition or broker.", show_default=False
        ),
    ] = None,
    bearer_token_file: Annotated[Path | None, typer.Option(help="Holds a token.", show_default=False)] = None,
    basic_auth_file: Annotated[Path | None, typer.Option(help="Holds user:password.", show_default=False)] = None,
    ca_file: Annotated[Path | None, typer.Option(help="Authorities to trust (PEM).", show_default=False)] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say what metrics tell of groups: what arrives, what waits, who is there, now and over the last days.

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
        asked = _wanted(system, _pairs(match, "--match"), _pairs(label, "--label"))
        names = _names(prometheus, group or (), everything)
        access = Access(prometheus or "", bearer_token_file, basic_auth_file, ca_file)
    with answering(form, output) as answer:
        with Prometheus(access) as server:
            told = _read(server, asked, names, span)
        if answer.is_text:
            _tell(text_console(), told)
        else:
            answer.write("GroupHistories", _document(told))
        if told.unread:
            raise typer.Exit(3)


@dataclass(frozen=True)
class Span:
    """The time that is read, and the seconds between two readings."""

    since: datetime
    until: datetime
    step_s: float

    def __str__(self) -> str:
        return f"{self.since:%Y-%m-%d %H:%M} and {self.until:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class Told:
    """What was read, by system and group; ``unread`` holds groups with the reason why there is nothing of them."""

    span: Span
    histories: "list[MetricHistory]" = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)


def _of_policy(path: Path, others: Sequence[str]) -> "tuple[Access, tuple[Wanted, ...]]":
    """Return the server of a policy and its group."""
    from planner.cli.policy_reading import read_policy
    from planner.sources.prometheus import Access, Wanted

    if others:
        raise BadInputError(f"planner history: --policy names group and server: leave {' and '.join(others)} out")
    source = read_policy(path).spec.source
    server = source.prometheus
    if server is None:
        raise BadInputError(f"{path} names no Prometheus server: write its url under spec.source.prometheus")
    access = Access(server.url, server.bearer_token_file, server.basic_auth_file, server.ca_file)
    return access, (Wanted(source.system, source.group, None, source.topics, server.labels, server.matchers),)


def _names(prometheus: str | None, groups: Sequence[str], everything: bool) -> Sequence[str]:
    """Return the groups that are named, none for all of them. Raises ``BadInputError``."""
    if prometheus is None:
        raise BadInputError("planner history: found neither --prometheus URL nor --policy FILE, expected one of them")
    if everything == bool(groups):
        raise BadInputError("planner history: --prometheus goes with either --all or --group NAME: say one of them")
    return groups


def _wanted(system: str | None, matchers: dict[str, str], labels: dict[str, str]) -> "tuple[Wanted, ...]":
    """Return what is asked of each system, without a group."""
    from planner.sources.prometheus import Wanted

    if system not in (None, *SYSTEMS):
        raise BadInputError(f"option --system: found {system!r}, expected {' or '.join(SYSTEMS)}")
    return tuple(Wanted(one, "", labels=labels, matchers=matchers) for one in SYSTEMS if system in (None, one))


def _pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts or ()]
    for name, sign, value in pairs:
        if not name or not sign or not value:
            raise BadInputError(f"option {option}: found {name + sign + value!r}, expected name=value")
    return {name: value for name, _, value in pairs}


def _read(server: "Prometheus", asked: "Sequence[Wanted]", names: Sequence[str], span: Span) -> Told:
    """Read every group that is wanted; raises what stands in the way of all of them."""
    from planner.sources.prometheus import history as history_of

    told, last = Told(span), None
    with errors.status(f"asking {server.url} which groups there are") as status:
        wanted = _groups(server, asked, names, span)
        for number, one in enumerate(wanted, start=1):
            status.update(f"reading group {one.group}, {number} of {len(wanted)}")
            try:
                told.histories.append(history_of(server, one, span.since, span.until, span.step_s))
            except PlannerError as error:
                # What is below this error, the server has answered: another group may be better off.
                if len(wanted) == 1 or type(error) is OutOfReachError:
                    raise
                told.unread.append((one.group, str(error)))
                last = error
    if last is not None and not told.histories:
        raise last
    return told


def _groups(server: "Prometheus", asked: "Sequence[Wanted]", names: Sequence[str], span: Span) -> "list[Wanted]":
    """Return what to read of each group. Raises ``UnknownNameError`` for one that no metrics know."""
    from planner.errors import UnknownNameError
    from planner.sources.prometheus import list_groups

    if all(one.group for one in asked):
        return list(asked)
    known = [
        replace(one, group=name)
        for one in asked
        for name in sorted({name for _, found in list_groups(server, one, span.since, span.until) for name in found})
    ]
    if not known:
        systems = " or ".join(one.system for one in asked)
        raise UnknownNameError(
            f"Prometheus {server.url} has no metrics of {systems} groups between {span}: see whether it scrapes your "
            "brokers or an exporter, and whether labels are renamed (docs/connect-prometheus.md)"
        )
    for name in names:
        if name not in {one.group for one in known}:
            there = sorted({one.group for one in known})
            shown = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if there[10:] else "")
            raise UnknownNameError(f"Prometheus {server.url} knows no group {name}, but {shown}: check the spelling")
    return [one for one in known if not names or one.group in names]


def _document(told: Told) -> dict[str, Any]:
    from planner.documents.data import METRIC_HISTORY

    return {
        "since": told.span.since.isoformat(),
        "until": told.span.until.isoformat(),
        "groups": [METRIC_HISTORY.body(one) for one in told.histories],
        "unread": [{"group": group, "reason": reason} for group, reason in told.unread],
    }


def _tell(console: Console, told: Told) -> None:
    """Print one group in full, several as a table of a line each."""
    if len(told.histories) == 1:
        _tell_one(console, told.histories[0], told.span)
    else:
        _tell_all(console, told)
    for group, reason in told.unread:
        console.print(f"not read: group {group}: {reason}", style="yellow", soft_wrap=True)


def _tell_one(console: Console, one: "MetricHistory", span: Span) -> None:
    from planner.history.summary import stretches

    console.print(_title(one), style="bold", soft_wrap=True)
    console.print(_now(one, span.until), soft_wrap=True)
    headings = ("from (UTC)", "arrive\nper s", "most\nper s", "consumed\nper s", "most\nbehind", "longest\nwait")
    table = _table(f"Every {one.period_s:g} s since {span.since:%Y-%m-%d %H:%M}", (*headings, "members", "known"))
    for row in stretches(one.points, span.since, span.until, ROWS):
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
    for problem in one.problems:
        console.print(f"problem: {problem}", style="yellow", soft_wrap=True)


def _title(one: "MetricHistory") -> str:
    where = f" of cluster {one.cluster}" if one.cluster else ""
    return f"{one.system} group {one.group}{where}, by {one.source}"


def _now(one: "MetricHistory", until: datetime) -> str:
    """Return how the group is by its newest point, or since when there is none."""
    if one.newest_at is None:
        return "  there is no figure of it in this time"

    last = _newest(one, until)
    if last is None and until - one.newest_at <= _old(one):
        return "  there is one reading of it yet, which makes no rate: take a shorter --step"
    if last is None:
        return f"  its metrics ended at {one.newest_at:%Y-%m-%d %H:%M:%S} UTC: how it is now is not known"
    behind = "nobody knows how far behind" if last.lag is None else f"{last.lag:,} messages behind"
    wait = "" if last.lag_s is None else f", the oldest waits for {last.lag_s:.0f} s"
    members = "members are not counted" if last.members is None else counted(last.members, "member")
    return f"  now: {behind}{wait}, {members}, {_figure(last.arrival_rate)} messages/s arrive"


def _newest(one: "MetricHistory", until: datetime) -> "GroupPoint | None":
    """Return the newest point where it tells how the group is now, else ``None``."""
    return one.points[-1] if one.points and until - one.points[-1].at <= _old(one) else None


def _old(one: "MetricHistory") -> timedelta:
    """Return up to which age a figure tells how the group is now."""
    return max(RECENT, timedelta(seconds=2 * one.period_s))


def _tell_all(console: Console, told: Told) -> None:
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
    table = _table(f"{len(told.histories)} groups since {told.span.since:%Y-%m-%d %H:%M} UTC", headings)
    for one in told.histories:
        row, now = stretch(one.points, told.span.since, told.span.until), _newest(one, told.span.until)
        table.add_row(
            one.group,
            one.system,
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
