"""``planner demand``: what a group's load may be, and how such forecasts did."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from planner.cli.console import FormatOption, Output, answering, errors, parse_time, text_console
from planner.cli.metric_reading import (
    AuthoritiesOption,
    BasicAuthOption,
    BearerOption,
    LabelOption,
    MatchOption,
    Span,
    SystemOption,
    pairs,
    queries,
    read_groups,
)
from planner.errors import BadInputError
from planner.text.words import UNKNOWN, duration, per_second, percent, rate

if TYPE_CHECKING:
    from planner.demand.events import Event
    from planner.demand.outlook import Outlook, Stretch
    from planner.demand.recent import Span as Observed
    from planner.model.past_load import PastLoad
    from planner.model.snapshot import GroupSnapshot
    from planner.sources.prometheus import Access, GroupQuery

STEP_S = 60.0
"""The load is taken by minute: readings further apart would hide what a minute is like."""


@dataclass(frozen=True, slots=True)
class ObservedLoad:
    """A group's load as observed up to ``until``; ``origin`` names where from, ``more`` what gives more of it.

    ``events`` are those of the policy, none where no policy was read. ``past`` is what a snapshot knows of the days
    before ``spans``.
    """

    group: str
    until: datetime
    spans: "Sequence[Observed]"
    origin: str
    more: str
    events: "Sequence[Event]" = ()
    past: "PastLoad | None" = None


def demand(
    snapshot: Annotated[
        Path | None, typer.Argument(help="Snapshot file of planner snapshot.", show_default=False)
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="Watch the group of this ConsumerScalingPolicy.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="With --policy: data folder of planner sample or planner run to look back at.", show_default=False
        ),
    ] = None,
    observe_seconds: Annotated[
        int | None,
        typer.Option(min=120, max=3600, help="With --policy: how long to watch.", show_default="the policy's window"),
    ] = None,
    prometheus: Annotated[
        str | None, typer.Option(help="Read the past here alone: http://host:9090.", show_default=False)
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="With --prometheus: the group.", show_default=False)
    ] = None,
    days: Annotated[float, typer.Option(min=0.01, max=60, help="With --prometheus: how far back.")] = 7.0,
    until: Annotated[
        str | None, typer.Option(help="With --prometheus: as of this time (ISO 8601).", show_default="now")
    ] = None,
    system: SystemOption = None,
    match: MatchOption = None,
    label: LabelOption = None,
    bearer_token_file: BearerOption = None,
    basic_auth_file: BasicAuthOption = None,
    ca_file: AuthoritiesOption = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the picture, too.", show_default=False)] = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Say what the group's load may be in the next two hours, and how earlier forecasts of it did.

    The load comes from a snapshot file, from the brokers (--policy, with --data also from before the watch, and from
    the Prometheus server that the policy names), or from a Prometheus server alone. Events of the policy are minded
    with --policy.
    """
    from planner.demand.outlook import outlook_of
    from planner.demand.recent import minute_load

    _check(snapshot, policy, prometheus, group, data=data, observe_seconds=observe_seconds)
    if html is not None:
        from planner.report.doctor import check_page

        check_page(html)
    if prometheus is not None:
        from planner.sources.prometheus import Access

        access = Access(prometheus, bearer_token_file, basic_auth_file, ca_file)
        asked = queries(system, pairs(match, "--match"), pairs(label, "--label"))
        end = parse_time(until, "--until") if until else datetime.now(UTC)
        load = _of_metrics(access, asked, group or "", Span(end - timedelta(days=days), end, STEP_S))
    elif policy is not None:
        load = _watched(policy, data, observe_seconds)
    else:
        assert snapshot is not None
        load = _of_file(snapshot)
    loads = outlook_of(minute_load(load.spans, load.until, load.past), load.until, load.events)
    if loads is None:
        raise BadInputError(
            f"{load.origin}: found no minute of load up to {load.until.isoformat()}, expected at least one: {load.more}"
        )
    if html is not None:
        from planner.report.demand import write_demand_page

        write_demand_page(html, load.group, load.until, load.spans, loads)
        errors.print(f"planner: page written to {html}")
    with answering(form, output) as answer:
        if answer.is_text:
            _print(load, loads)
        else:
            answer.write("Demand", {"group": load.group, **asdict(loads)})


def _check(
    snapshot: Path | None,
    policy: Path | None,
    prometheus: str | None,
    group: str | None,
    *,
    data: Path | None,
    observe_seconds: int | None,
) -> None:
    """Raise ``BadInputError`` unless exactly one source of the load is named, with what belongs to it."""
    given = [value for value in (snapshot, policy, prometheus) if value is not None]
    if len(given) != 1:
        raise BadInputError(
            f"planner demand: found {len(given)} sources of the load, expected one of SNAPSHOT, --policy FILE and "
            "--prometheus URL"
        )
    if (prometheus is None) != (group is None):
        raise BadInputError("planner demand: --prometheus URL and --group NAME go together")
    if policy is None and (data or observe_seconds):
        raise BadInputError("planner demand: --data and --observe-seconds go with --policy")


def _of_file(path: Path) -> ObservedLoad:
    from planner.documents.data import SNAPSHOT

    more = "watch the group for two minutes with planner snapshot --observe-seconds 120"
    return _of_snapshot(SNAPSHOT.read(path), str(path), more)


def _of_snapshot(taken: "GroupSnapshot", origin: str, more: str) -> ObservedLoad:
    return ObservedLoad(taken.group, taken.at, taken.recent, origin, more, past=taken.past_load)


def _watched(policy: Path, data: Path | None, observe_seconds: int | None) -> ObservedLoad:
    from planner.cli.policy_reading import read_policy
    from planner.cli.snapshot import take_live

    parsed = read_policy(policy)
    taken = take_live(parsed, observe_seconds, data)
    load = _of_snapshot(taken, f"group {taken.group}", "watch it longer: --observe-seconds 300")
    return replace(load, events=parsed.objective.events)


def _of_metrics(access: "Access", asked: "Sequence[GroupQuery]", group: str, span: Span) -> ObservedLoad:
    from planner.sources.prometheus import Prometheus

    with Prometheus(access) as server:
        readings = read_groups(server, asked, (group,), span)
    past, *others = readings.histories
    if others:
        raise BadInputError(f"planner demand: both systems have a group {group}: name one with --system")
    newest = past.newest_at or span.until
    return ObservedLoad(group, newest, past.points, f"group {group}", "see planner history for what is known of it")


def _print(load: ObservedLoad, loads: "Outlook") -> None:
    from planner.demand.events import describe_events
    from planner.demand.outlook import describe_widening

    console = text_console()
    known = duration(60.0 * loads.minutes)
    console.print(f"Group {load.group}: the level is {rate(loads.level)}, by the last {known}.")
    made = f"the errors of forecasts in the last {known}" if loads.rests_on_errors else "the level alone, spread wider"
    table = Table(title=f"Possible loads, messages/s, out of {made}")
    for heading in (
        "from now",
        "low (1 in 10)",
        "middle",
        "high (1 in 10)",
        "so far inside",
        "level's usual miss",
    ):
        table.add_column(heading, justify="right")
    for stretch in loads.stretches:
        table.add_row(*_row(stretch))
    console.print(table)
    if events := describe_events(load.events, load.until, 60.0 * loads.stretches[-1].to_minutes):
        console.print(f"Known beforehand: {events}.")
        console.print("A stretch has the highest load of its minutes, and the level is the usual load.")
    if note := describe_widening(loads.stretches):
        console.print(note)


def _row(stretch: "Stretch") -> tuple[str, ...]:
    return (
        f"{stretch.from_minutes}–{stretch.to_minutes} min",
        per_second(stretch.low),
        per_second(stretch.middle),
        per_second(stretch.high),
        f"{stretch.inside} of {stretch.forecasts}" if stretch.forecasts else UNKNOWN,
        percent(stretch.level_miss),
    )
