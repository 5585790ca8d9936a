"""``planner advise --prometheus``: groups' last days as they were, and what other rules would have made of them."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from planner.cli.console import Format, errors, parse_time, print_json, text_console
from planner.cli.metric_reading import Span, each_group, pairs, queries
from planner.cli.stated_capacity import capacities
from planner.errors import PlannerError
from planner.text.words import counted, hours, number

if TYPE_CHECKING:
    from planner.backtest.play import Run
    from planner.backtest.recorded import NotPlayable, PlaySettings, RecordedGroup
    from planner.backtest.review import Review
    from planner.backtest.scenario import Scenario
    from planner.sources.prometheus import Access

STEP_S = 300.0
"""Between two readings: of two weeks of many partitions a minute's would be millions of rows."""
OF_GROUP = "--capacity GROUP=MESSAGES_PER_SECOND"
OF_GROUP_OR_ALL = f"{OF_GROUP}, or --capacity MESSAGES_PER_SECOND for all such groups"


@dataclass(frozen=True, slots=True)
class PastRequest:
    """What is asked of the server; no ``group`` is every group.

    ``capacities`` are in messages per second by group; that of ``None`` is of all whose past shows none.
    """

    access: "Access"
    group: str | None
    system: str | None
    matchers: dict[str, str]
    labels: dict[str, str]
    days: float
    step_s: float
    until: datetime
    capacities: Mapping[str | None, float]
    queues_each: int | None

    @property
    def span(self) -> Span:
        """The time that is read."""
        return Span(self.until - timedelta(days=self.days), self.until, self.step_s)

    def settings(self, group: str) -> "PlaySettings":
        """Return what is stated of a group."""
        from planner.backtest.recorded import PlaySettings

        assumed = self.capacities.get(None)
        return PlaySettings(self.capacities.get(group), self.queues_each, assumed_capacity=assumed)


def past_request(
    access: tuple[str, Path | None, Path | None, Path | None],
    group: str | None,
    series: tuple[str | None, list[str] | None, list[str] | None],
    span: tuple[float, float, str | None],
    stated: tuple[list[str] | None, int | None],
) -> PastRequest:
    """Return what the options of a command ask of the server: its address with what opens it, series, span, figures."""
    from planner.sources.prometheus import Access

    (system, match, label), (days, step_s, until), (capacity, queues_each) = series, span, stated
    return PastRequest(
        access=Access(*access),
        group=group,
        system=system,
        matchers=pairs(match, "--match"),
        labels=pairs(label, "--label"),
        days=days,
        step_s=step_s,
        until=parse_time(until, "--until") if until else datetime.now(UTC),
        capacities=capacities(capacity),
        queues_each=queues_each,
    )


def review_past(request: PastRequest, jobs: int) -> "tuple[list[Review], list[NotPlayable]]":
    """Return the groups' reviews, what the planner saves most first, and the groups that cannot be played, by name.

    Policies are played in ``jobs`` processes, while the next groups are read. Raises what prevents the reading of all,
    and ``UnknownNameError`` for a group that no metric knows.
    """
    from planner.backtest.recorded import NotPlayable
    from planner.backtest.review import REVIEWED, Review, most_saved_first
    from planner.cli.plays import play_policy
    from planner.runs.processes import KilledError, in_processes

    reviews: list[Review] = []
    others: list[NotPlayable] = []
    waiting: deque[RecordedGroup] = deque()

    def plays() -> "Iterator[tuple[Scenario, str]]":
        for recorded in recorded_groups(request):
            if isinstance(recorded, NotPlayable):
                others.append(replace(recorded, reason=recorded.reason.replace(OF_GROUP, OF_GROUP_OR_ALL)))
                continue
            waiting.append(recorded)
            yield from ((recorded.scenario, name) for name in REVIEWED)

    runs = in_processes(play_policy, plays(), jobs)
    for planner, keda in zip(runs, runs, strict=False):
        recorded = waiting.popleft()
        if errors.is_terminal:
            errors.print(f"planner: group {recorded.group} played", style="dim")
        if isinstance(planner, KilledError) or isinstance(keda, KilledError):
            others.append(NotPlayable(recorded.group, str(planner if isinstance(planner, KilledError) else keda)))
        else:
            reviews.append(Review(recorded, planner, keda))
    return most_saved_first(reviews), sorted(others, key=lambda it: it.group)


def recorded_groups(request: PastRequest) -> "Iterator[RecordedGroup | NotPlayable]":
    """Yield each group that was asked for as it can be played, or why it cannot; raises as ``review_past`` does."""
    from planner.backtest.recorded import NotPlayable, recorded_group
    from planner.sources.prometheus import Prometheus

    asked = queries(request.system, request.matchers, request.labels)
    names, span = ((request.group,) if request.group else ()), request.span
    with Prometheus(request.access) as server:
        for query, metrics in each_group(server, asked, names, span):
            if isinstance(metrics, PlannerError):
                yield NotPlayable(query.group, str(metrics))
            else:
                yield recorded_group(metrics, span.since, span.until, request.settings(query.group))


def print_past(
    reviews: "Sequence[Review]", others: "Sequence[NotPlayable]", span: Span, price: float | None, form: Format
) -> None:
    """Print the answer; ``price`` is of one consumer for an hour, in any currency."""
    if form is not Format.TEXT:
        _print_document(past_document(reviews, others, span, price), form)
        return
    console = text_console()
    for group in others:
        console.print(f"Cannot be compared: group {group.group}: {group.reason}.", style="yellow", soft_wrap=True)
    if not reviews:
        return
    table = Table(title=f"Between {span}: consumer-hours; rebalances; late minutes", title_justify="left")
    table.add_column("group")
    for heading in ("as it was", "planner", "KEDA, tuned", "planner saves"):
        table.add_column(heading, justify="right")
    for it in reviews:
        table.add_row(
            it.recorded.group,
            *(_figures(consumed, rebalances, late) for consumed, rebalances, late in _three(it)),
            _worth(it.saved_h(it.planner), price),
        )
    console.print(table)
    for it in reviews:
        for risk in it.risks:
            console.print(f"At risk: group {it.recorded.group}: {risk}.", style="yellow", soft_wrap=True)
    console.print(
        f"{counted(len(reviews), 'group')}: the planner saves "
        f"{_worth(sum(it.saved_h(it.planner) for it in reviews), price)} in all, by its own simulation. "
        "Saved: hours, 0.25 h a rebalance and 1 h a late minute together.",
        soft_wrap=True,
    )


def _three(it: "Review") -> tuple[tuple[float, int, int], ...]:
    past = it.recorded.past
    runs = ((run.totals.hours, run.totals.rebalances, run.totals.late_minutes) for run in (it.planner, it.keda))
    return ((past.hours, past.rebalances, past.late_minutes), *runs)


def _figures(consumed: float, rebalances: int, late_minutes: int) -> str:
    return f"{hours(consumed)}; {number(rebalances)}; {number(late_minutes)}"


def _worth(saved_h: float, price: float | None) -> str:
    money = "" if price is None else f" ({saved_h * price:,.2f})"
    return f"{hours(saved_h)} h{money}"


def past_document(
    reviews: "Sequence[Review]", others: "Sequence[NotPlayable]", span: Span, price: float | None
) -> dict[str, Any]:
    """Return the answer as plain values; hours are consumer-hours, money is hours times ``price``."""
    from planner.documents.format import API_VERSION

    return {
        "apiVersion": API_VERSION,
        "kind": "PastAdvice",
        "since": span.since.isoformat(),
        "until": span.until.isoformat(),
        "stepSeconds": span.step_s,
        "consumerHourPrice": price,
        "groups": [_entry(it, price) for it in reviews],
        "unknown": [{"group": group.group, "reason": group.reason} for group in others],
    }


def _entry(it: "Review", price: float | None) -> dict[str, Any]:
    recorded, past = it.recorded, it.recorded.past
    saved_h = it.saved_h(it.planner)
    return {
        "group": recorded.group,
        "system": recorded.scenario.system,
        "strategyAssumed": recorded.scenario.strategy,
        "queues": len(recorded.scenario.queues),
        "capacity": round(recorded.scenario.capacity, 3),
        "capacitySource": recorded.capacity_source,
        "known": round(recorded.known, 4),
        "asItWas": {
            "fewest": past.fewest,
            "most": past.most,
            **_totals(past.hours, past.rebalances, past.late_minutes, it.past_cost_h),
        },
        "planner": _run(it.planner, it),
        "keda": {"tuning": it.keda.tuning, **_run(it.keda, it)},
        "risks": list(it.risks),
        "savedHours": round(saved_h, 3),
        "savedMoney": None if price is None else round(saved_h * price, 2),
    }


def _run(run: "Run", it: "Review") -> dict[str, Any]:
    totals = run.totals
    cost_h = run.cost_h(it.recorded.scenario.prices)
    return _totals(totals.hours, totals.rebalances, totals.late_minutes, cost_h)


def _totals(hours: float, rebalances: int, late_minutes: int, cost_h: float) -> dict[str, Any]:
    return {
        "hours": round(hours, 3),
        "rebalances": rebalances,
        "lateMinutes": late_minutes,
        "costHours": round(cost_h, 3),
    }


def _print_document(value: dict[str, Any], form: Format) -> None:
    if form is Format.JSON:
        print_json(value)
        return
    from planner.documents.yaml import dump_yaml

    text_console().print(dump_yaml(value), end="")


def write_past_page(
    path: Path, reviews: "Sequence[Review]", others: "Sequence[NotPlayable]", span: Span, price: float | None
) -> None:
    """Write the page that the answer is passed on as; raises as ``planner.report.doctor.check_page`` does."""
    from planner.report.past_advice import write_past_advice_page

    write_past_advice_page(path, reviews, others, (span.since, span.until, span.step_s), price)
    errors.print(f"planner: page written to {path}")
