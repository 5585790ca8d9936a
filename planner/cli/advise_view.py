"""What a person sees of ``planner advise``: the watch as it goes on, and the answer."""

import textwrap
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from planner.advice.answer import fewer_note
from planner.advice.sentences import certainty_sentence, finding_advice, finding_title, labelled_lines, span
from planner.advice.sequential import steady_s
from planner.cli.concluding import group_rates
from planner.cli.console import text_console
from planner.cli.watching import GroupWatch, Watch
from planner.model.snapshot import SHARE
from planner.text import words

if TYPE_CHECKING:
    from planner.advice.answer import Advice
    from planner.decision.decision import Decision
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.snapshot import GroupSnapshot

LINE_EVERY_S = 15.0
"""Where nobody sits at a terminal, a line comes so often."""

PIPE_WIDTH = 120
TABLE_WIDTH = 160
INDENT = 12
LISTED = 12
COLOURS = {"error": "bold red", "warning": "yellow", "notice": "cyan"}


class WatchView:
    """Shows a watch on standard error: redrawn in place on a terminal, a line every ``LINE_EVERY_S`` elsewhere."""

    def __init__(self, console: Console, longest_s: float) -> None:
        self._console = console
        self._longest_s = longest_s
        self._live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None
        self._due_s = 0.0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _t: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, watch: Watch) -> None:
        """Show how far the watch is."""
        if self._live is not None:
            self._live.update(self._draw(watch), refresh=True)
        elif watch.watched_s >= self._due_s:
            self._due_s = watch.watched_s + LINE_EVERY_S
            self._console.print(self._line(watch))

    def _draw(self, watch: Watch) -> Group:
        groups = list(watch.groups.values())
        head = Text(f"Watched for {words.duration(watch.watched_s)} of at most {words.duration(self._longest_s)}")
        head.append(", until the answer is clear. Ctrl-C: answer now.", style="dim")
        return Group(head, _panel(groups[0]) if len(groups) == 1 else _table(groups))

    def _line(self, watch: Watch) -> str:
        groups = list(watch.groups.values())
        head = f"{words.duration(watch.watched_s)}:"
        if len(groups) > 1:
            clear = sum(group.is_clear for group in groups)
            return f"{head} {clear} of {words.counted(len(groups), 'group')} clear"
        group = groups[0]
        if group.snapshot is None:
            return f"{head} reading group {group.group}"
        arrival, consumption = group_rates(group.snapshot)
        members = words.counted(len(group.snapshot.clients), "member")
        rates = (
            members
            if arrival is None and consumption is None
            else f"{words.rate(arrival)} come in, {words.rate(consumption)} are consumed by {members}"
        )
        return f"{head} {rates}, {words.number(group.snapshot.lag)} wait; {_leaning(group)}; {_confidence(group)}"


def _panel(group: GroupWatch) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right")
    table.add_column()
    snapshot = group.snapshot
    if snapshot is None:
        table.add_row("group", group.group)
        return table
    arrival, consumption = group_rates(snapshot)
    table.add_row("group", Text(f"{group.group} on {snapshot.system}", style="bold"))
    table.add_row("comes in", words.rate(arrival))
    members = words.counted(len(snapshot.clients), "member")
    table.add_row("is consumed", f"{words.rate(consumption)} by {members}")
    table.add_row("waits", f"{words.counted(snapshot.lag, 'message')}{_trend(snapshot)}")
    table.add_row("one consumer", _capacity(snapshot))
    table.add_row("leaning", _leaning(group))
    share = group.clarity.share if group.clarity else 0.0
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=1.0, completed=share, width=24), f"{share:.0%}")
    table.add_row("confidence", bar)
    for missing in group.clarity.missing if group.clarity else ():
        table.add_row("", Text(missing, style="dim"))
    if group.failure is not None:
        table.add_row("not read", Text(str(group.failure), style="red"))
    return table


def _table(groups: Sequence[GroupWatch]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("group", "comes in", "is consumed", "waits", "members", "leaning", "confidence"):
        table.add_column(name, justify="left" if name in ("group", "leaning") else "right", no_wrap=True)
    for group in groups[:LISTED]:
        if group.snapshot is None:
            table.add_row(group.group, *[""] * 4, str(group.failure or "reading"), "")
            continue
        arrival, consumption = group_rates(group.snapshot)
        table.add_row(
            group.group,
            f"{words.per_second(arrival)}/s",
            f"{words.per_second(consumption)}/s",
            words.number(group.snapshot.lag),
            str(len(group.snapshot.clients)),
            _leaning(group),
            "clear" if group.is_clear else f"{group.clarity.share if group.clarity else 0.0:.0%}",
        )
    if len(groups) > LISTED:
        table.add_row(Text(f"and {len(groups) - LISTED} more", style="dim"))
    return table


def _trend(snapshot: "GroupSnapshot") -> str:
    lags = [point.lag for point in snapshot.recent if point.lag is not None]
    if len(lags) < 2 or lags[-1] == lags[0]:
        return ""
    change = lags[-1] - lags[0]
    return f", {words.number(abs(change))} {'more' if change > 0 else 'fewer'} than at first"


def _capacity(snapshot: "GroupSnapshot") -> str:
    capacity = snapshot.capacity
    if capacity is None:
        return "can do an unknown amount so far"
    if capacity.is_lower_bound:
        return f"can do at least {words.rate(capacity.messages_per_s)}, perhaps more"
    if capacity.low is None or capacity.high is None:
        return f"can do {words.rate(capacity.messages_per_s)}"
    return f"can do {words.per_second(capacity.low)} to {words.rate(capacity.high)}"


def _leaning(group: GroupWatch) -> str:
    if not group.evaluations:
        return "nothing yet"
    decision = group.evaluations[-1].decision
    since = words.duration(steady_s(group.evaluations))
    if not decision.is_hold:
        return f"scale from {decision.current} to {decision.target} (for {since})"
    return f"hold at {decision.current}: {decision.hold_cause} (for {since})"


def _confidence(group: GroupWatch) -> str:
    now = group.clarity
    if now is None:
        return "confidence 0%"
    missing = f" ({now.missing[0]})" if now.missing else ""
    return f"confidence {now.share:.0%}{missing}"


def print_advice(console: Console, advice: "Advice", policy: "ConsumerScalingPolicy") -> None:
    """Print the answer on one group: decision first, the next command last."""
    for label, line, style in _lines(advice, policy):
        _print_line(console, label, line, style)
    console.print(Text("\nNext: ").append(str(advice.next), style="bold"), soft_wrap=True)


Line = tuple[str, str, str | None]


def _lines(advice: "Advice", policy: "ConsumerScalingPolicy") -> Iterator[Line]:
    yield "", headline(advice), "bold"
    yield "why", _without_head(advice.decision), None
    for label, line in labelled_lines(advice):
        yield label, line, None
    yield "goal", _goal(policy, advice), "dim"
    for finding in advice.findings:
        yield "doctor", finding_title(finding), COLOURS[finding.severity]
        yield "", finding_advice(finding), None
    yield "sure", certainty_sentence(advice), None


def headline(advice: "Advice") -> str:
    """Return the decision in one line: what to do, from how many to how many."""
    decision = advice.decision
    serving = f" ({advice.deployment})" if advice.deployment else ""
    if decision.is_hold:
        return f"HOLD group {advice.group} at {words.counted(decision.current, advice.unit)}{serving}"
    direction = "UP" if decision.target > decision.current else "DOWN"
    return (
        f"SCALE {direction} group {advice.group} from {decision.current} to "
        f"{words.counted(decision.target, advice.unit)}{serving}"
    )


def _without_head(decision: "Decision") -> str:
    """Return the reason without what is in the headline already."""
    head, colon, rest = decision.reason.partition(": ")
    short = rest if colon and head.startswith(("Hold at", "Scale from")) else decision.reason
    return short[:1].upper() + short[1:]


def _goal(policy: "ConsumerScalingPolicy", advice: "Advice") -> str:
    objective = policy.objective
    gone = f", a backlog is gone in {words.duration(objective.backlog_gone_s)}" if objective.backlog_gone_s else ""
    client = None if advice.decision.strategy == SHARE else policy.spec.timing
    timing = f" The price supposes Java clients {client.client_version} with default settings." if client else ""
    return (
        f"The busiest consumer is used at most {words.percent(objective.max_utilisation)}{gone}, with "
        f"{objective.lowest} to {words.counted(objective.highest, advice.unit)} (--max)."
        f"{'' if advice.decision.is_hold else timing}"
    )


def _print_line(console: Console, label: str, line: str, style: str | None) -> None:
    """Print one labelled line, wrapped below itself."""
    if not label and style == "bold":
        console.print(line, style=style, soft_wrap=True)
        return
    width = console.width if console.is_terminal else PIPE_WIDTH
    wrapped = textwrap.wrap(line, max(40, width - INDENT), break_long_words=False, break_on_hyphens=False)
    for number, segment in enumerate(wrapped):
        text = Text("  ").append(f"{'' if number else label:<{INDENT - 2}}", style="dim")
        console.print(text.append(segment, style=style or ""), soft_wrap=True)


def print_advices(console: Console, advices: Sequence["Advice"], unread: Sequence[tuple[str, str]]) -> None:
    """Print one row a group, what is to be gained first."""
    table = Table(box=None, pad_edge=False)
    for name in ("group", "decision", "why", "comes in", "waits", "moved", "sure"):
        is_words = name in ("group", "decision", "why")
        table.add_column(name, justify="left" if is_words else "right", no_wrap=name != "why", overflow="fold")
    for advice in advices:
        table.add_row(*row(advice), style=None if advice.decision.is_hold else "bold")
    console.print(_total(advices), style="bold")
    # Files and pipes have no width of their own, and half a name is no name.
    wide = console if console.is_terminal else text_console(TABLE_WIDTH)
    wide.print(table)
    for group, reason in unread:
        console.print(f"Not read: {group}: {reason}", style="red", soft_wrap=True)
    if advices:
        console.print(Text("\nNext: ").append(str(advices[0].next), style="bold"), soft_wrap=True)


def _total(advices: Sequence["Advice"]) -> str:
    more = sum(max(0, advice.price.pods) for advice in advices)
    fewer = -sum(min(0, advice.price.pods) for advice in advices)
    scaled = sum(not advice.decision.is_hold for advice in advices)
    total = f"{words.counted(len(advices), 'group')}: {scaled} to scale, {more} consumers to add, {fewer} to spare."
    return f"{total} {note}" if (note := fewer_note(advices)) else total


def row(advice: "Advice") -> tuple[str, ...]:
    """Return one group as the cells of a table: group, decision, why, comes in, waits, moved, sure."""
    decision, price = advice.decision, advice.price
    moved = "unknown" if price.fewest is None or price.most is None else span(price.fewest, price.most)
    return (
        advice.group,
        f"hold at {decision.current}" if decision.is_hold else f"{decision.current} → {decision.target}",
        advice.short_reason,
        "unknown" if advice.arrival_rate is None else f"{words.per_second(advice.arrival_rate)}/s",
        "unknown" if advice.lag is None else words.number(advice.lag),
        f"{moved} of {price.queues}",
        "clear" if advice.is_clear else "not yet",
    )
