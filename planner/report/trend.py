"""The course of the group: what was measured, and the forecast that goes on from there. Pure data for the charts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from planner.model.snapshot import SeriesPoint
from planner.report import words
from planner.report.case import Case
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad

SHORTEST_S = 300.0
"""How much future is drawn at least."""

LEAST_SHARE = 0.2
"""How much future is drawn at least, as a share of the past that is drawn."""

MOST_S = 86_400.0
"""How much future is drawn at most where that is more than the past: a day."""

BEYOND = 1.2
"""So far beyond the backlog's end, which the headline names, the future is drawn."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured point; a figure of ``None`` breaks its line."""

    at: datetime
    arrival: float | None
    consumption: float | None
    lag: int | None
    consumers: int | None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Messages that would wait at a time."""

    at: datetime
    lag: float


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Queues that changed owner around a time."""

    at: datetime
    moved: int


@dataclass(frozen=True, slots=True)
class Trend:
    """Past, present and forecast under the decision (``chosen``) and, where it differs, without it (``staying``).

    Both are empty when nothing could be simulated.
    """

    now: datetime
    until: datetime
    measured: tuple[Measured, ...]
    gaps: tuple[tuple[datetime, datetime], ...]
    rebalances: tuple[Rebalance, ...]
    chosen: tuple[Foreseen, ...]
    staying: tuple[Foreseen, ...]
    upper_rate: float | None
    count_now: int
    count_then: int
    noun: str = "queue"

    @property
    def begins(self) -> datetime:
        """The left end of the charts."""
        return min((point.at for point in self.measured), default=self.now)

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to draw."""
        return not self.measured and not self.chosen


def trend(case: Case) -> Trend:
    """Return what the charts show."""
    recent, now = case.snapshot.recent, case.snapshot.at
    past_s = (now - recent[0].at).total_seconds() + recent[0].seconds if recent else 0.0
    ahead_s = horizon_s(past_s, case.chosen)
    decision = case.record.decision
    rates = [state.upper_arrival_rate for state in case.snapshot.data_queues]
    known = [rate for rate in rates if rate is not None]
    return Trend(
        now=now,
        until=now + timedelta(seconds=ahead_s),
        measured=tuple(measured(recent)),
        gaps=tuple((p.at - timedelta(seconds=p.seconds), p.at) for p in recent if p.is_gap),
        rebalances=tuple(rebalances(recent)),
        chosen=foreseen(case.chosen, now, ahead_s),
        staying=foreseen(case.staying, now, ahead_s) if not case.is_hold else (),
        upper_rate=sum(known) if known and len(known) == len(rates) else None,
        count_now=decision.current * decision.members_per_pod,
        count_then=decision.target * decision.members_per_pod,
        noun=words.queue_noun(case.snapshot.system),
    )


def horizon_s(past_s: float, outcome: CandidateOutcome | None) -> float:
    """Return how many seconds of future are drawn: until the backlog is gone, a day or the past's length at most."""
    drain_s = (outcome.drain_s or 0.0) if outcome else 0.0
    return max(SHORTEST_S, LEAST_SHARE * past_s, min(BEYOND * drain_s, max(MOST_S, past_s)))


def rebalances(recent: Sequence[SeriesPoint]) -> Iterator[Rebalance]:
    """Yield the spans in which queues moved; points that follow each other are one rebalance settling."""
    for is_moving, points in groupby(recent, key=lambda point: bool(point.moved)):
        if is_moving:
            settling = list(points)
            yield Rebalance(settling[0].at, sum(point.moved or 0 for point in settling))


def measured(recent: Sequence[SeriesPoint]) -> Iterator[Measured]:
    """Yield the points; an empty one stands in every gap, so that no line runs across it."""
    for point in recent:
        if point.is_gap:
            yield Measured(point.at - timedelta(seconds=point.seconds / 2), None, None, None, None)
        yield Measured(point.at, point.arrival_rate, point.consumption_rate, point.lag, point.consumers)


def foreseen(outcome: CandidateOutcome | None, now: datetime, ahead_s: float) -> tuple[Foreseen, ...]:
    """Return the backlog under ``outcome`` from ``now`` on: a line with a bend where a consumer has caught up.

    Nothing when the outcome is missing or its loads are unknown.
    """
    if outcome is None or outcome.keeps_up is None or outcome.lag is None:
        return ()
    bends = {load.drain_s for load in outcome.loads if load.drain_s is not None and 0 < load.drain_s < ahead_s}
    times = [0.0, *sorted(bends), ahead_s]
    return tuple(
        Foreseen(now + timedelta(seconds=after), sum(waiting(load, after) for load in outcome.loads)) for after in times
    )


def waiting(load: ConsumerLoad, after_s: float) -> float:
    """Return how many messages wait at one consumer after that many seconds at the upper rate.

    With ``drain_s`` the lag falls evenly to 0; without, it grows by what the consumer cannot do:
    120 messages/s at a utilisation of 1.2 leave 20 more every second.
    """
    if load.lag is None:
        raise ValueError(f"lag of {load.client} is unknown: nothing can be drawn")
    if load.drain_s is not None:
        return load.lag * max(0.0, 1.0 - after_s / load.drain_s) if load.drain_s > 0 else 0.0
    if not load.utilisation or load.arrival_rate is None:
        return float(load.lag)
    return load.lag + (load.arrival_rate - load.arrival_rate / load.utilisation) * after_s


def describe_trend(trend: Trend) -> str:
    """Return what the charts show in words, for those who do not see them."""
    return " ".join([*_describe_past(trend), *_describe_forecast(trend)])


def _describe_past(trend: Trend) -> Iterator[str]:
    lags = [(point.lag, point.at) for point in trend.measured if point.lag is not None]
    if not lags:
        yield "Nothing was measured before."
        return
    most, when = max(lags, key=lambda pair: pair[0])
    yield (
        f"From {words.clock(trend.begins)} to {words.clock(trend.now)} UTC the lag was at most "
        f"{words.messages(most)} (at {words.clock(when)}) and ended at {words.messages(lags[-1][0])}."
    )
    arrivals = [point.arrival for point in trend.measured if point.arrival is not None]
    if arrivals:
        yield f"Arrival ran between {words.rate(min(arrivals))} and {words.rate(max(arrivals))}."
    moved = sum(rebalance.moved for rebalance in trend.rebalances)
    if moved:
        times = "once" if len(trend.rebalances) == 1 else f"{len(trend.rebalances)} times"
        yield f"{trend.noun.capitalize()}s changed owner {times}, {words.number(moved)} in all."
    if trend.gaps:
        spans = "one span" if len(trend.gaps) == 1 else f"{len(trend.gaps)} spans"
        yield f"Samples are missing in {spans}, shown hatched."


def _describe_forecast(trend: Trend) -> Iterator[str]:
    later = words.duration((trend.until - trend.now).total_seconds())
    lines = ((trend.chosen, trend.count_then), (trend.staying, trend.count_now))
    forecasts = [
        f"{words.messages(round(line[-1].lag))} with {words.consumers(count)}" for line, count in lines if line
    ]
    if forecasts:
        yield f"Forecast of what waits {later} later: {', '.join(forecasts)}."
