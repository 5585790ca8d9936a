"""Groups' past out of a Prometheus server, as commands ask for it: which groups, which series, how far back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.console import errors
from planner.errors import BadInputError, OutOfReachError, PlannerError
from planner.model.systems import SYSTEMS

if TYPE_CHECKING:
    from planner.model.points import MetricHistory
    from planner.sources.prometheus import GroupQuery, Prometheus

SystemOption = Annotated[str | None, typer.Option(help="Only groups of rocketmq, or of kafka.", show_default=False)]
MatchOption = Annotated[
    list[str] | None,
    typer.Option(help="label=value that every series must have; may be repeated.", show_default=False),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        help="role=label where the server renames cluster, group, topic, partition or broker.", show_default=False
    ),
]
BearerOption = Annotated[Path | None, typer.Option(help="Holds a token.", show_default=False)]
BasicAuthOption = Annotated[Path | None, typer.Option(help="Holds user:password.", show_default=False)]
AuthoritiesOption = Annotated[Path | None, typer.Option(help="Authorities to trust (PEM).", show_default=False)]

PastStepOption = Annotated[
    float, typer.Option("--step", min=60, max=3600, help="With --prometheus: seconds between two readings.")
]
QueuesEachOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        help="With --prometheus: queues of each topic, where metrics show topics alone.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Span:
    """The time that is read, and the seconds between two readings."""

    since: datetime
    until: datetime
    step_s: float

    def __str__(self) -> str:
        return f"{self.since:%Y-%m-%d %H:%M} and {self.until:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class Readings:
    """What was read, by system and group; ``unread`` holds groups with the reason why nothing of them was read."""

    span: Span
    histories: "list[MetricHistory]" = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)


def queries(system: str | None, matchers: dict[str, str], labels: dict[str, str]) -> "tuple[GroupQuery, ...]":
    """Return what is asked of each system, without a group."""
    from planner.sources.prometheus import GroupQuery

    if system not in (None, *SYSTEMS):
        raise BadInputError(f"option --system: found {system!r}, expected {' or '.join(SYSTEMS)}")
    return tuple(GroupQuery(name, "", labels=labels, matchers=matchers) for name in SYSTEMS if system in (None, name))


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return name -> value of texts like ``name=value``; raise ``BadInputError`` that names the option for another."""
    parsed = [text.partition("=") for text in texts or ()]
    for name, sign, value in parsed:
        if not name or not sign or not value:
            raise BadInputError(f"option {option}: found {name + sign + value!r}, expected name=value")
    return {name: value for name, _, value in parsed}


def read_groups(server: "Prometheus", asked: "Sequence[GroupQuery]", names: Sequence[str], span: Span) -> Readings:
    """Read every group that was asked for; raises what prevents the reading of all."""
    readings, last = Readings(span), None
    for query, metric_history in each_group(server, asked, names, span):
        if isinstance(metric_history, PlannerError):
            readings.unread.append((query.group, str(metric_history)))
            last = metric_history
        else:
            readings.histories.append(metric_history)
    if last is not None and not readings.histories:
        raise last
    return readings


def each_group(
    server: "Prometheus", asked: "Sequence[GroupQuery]", names: Sequence[str], span: Span
) -> "Iterator[tuple[GroupQuery, MetricHistory | PlannerError]]":
    """Yield each group that was asked for with its past or why it has none, one in memory at a time.

    Raises what prevents the reading of all, and the error of a group that is the only one.
    """
    from planner.sources.prometheus import history as history_of

    with errors.status(f"asking {server.url} which groups there are") as status:
        groups = group_queries(server, asked, names, span)
        for number, query in enumerate(groups, start=1):
            status.update(f"reading group {query.group}, {number} of {len(groups)}")
            try:
                yield query, history_of(server, query, span.since, span.until, span.step_s)
            except PlannerError as error:
                # What is below this error, the server has answered: another group may be better off.
                if len(groups) == 1 or type(error) is OutOfReachError:
                    raise
                yield query, error


def group_queries(
    server: "Prometheus", asked: "Sequence[GroupQuery]", names: Sequence[str], span: Span
) -> "list[GroupQuery]":
    """Return what to read of each group. Raises ``UnknownNameError`` for one that no metrics know."""
    from planner.errors import UnknownNameError
    from planner.sources.prometheus import list_groups

    if all(query.group for query in asked):
        return list(asked)
    known = [
        replace(query, group=name)
        for query in asked
        for name in sorted(
            {name for _, listed in list_groups(server, query, span.since, span.until) for name in listed}
        )
    ]
    if not known:
        systems = " or ".join(query.system for query in asked)
        raise UnknownNameError(
            f"Prometheus {server.url} has no metrics of {systems} groups between {span}: see whether it scrapes your "
            "brokers or an exporter, and whether labels are renamed (docs/connect-prometheus.md)"
        )
    for name in names:
        if name not in {query.group for query in known}:
            known_names = sorted({query.group for query in known})
            shown = ", ".join(known_names[:10]) + (f" and {len(known_names) - 10} more" if known_names[10:] else "")
            raise UnknownNameError(f"Prometheus {server.url} knows no group {name}, but {shown}: check the spelling")
    return [query for query in known if not names or query.group in names]
