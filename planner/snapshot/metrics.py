"""What metrics know of a group fills a snapshot where live samples show less, and is marked as theirs."""

from dataclasses import replace
from datetime import timedelta

from planner.history.rates import QueueRates, queue_rates
from planner.history.series import MOST_POINTS
from planner.model.intervals import QueueInterval
from planner.model.points import GroupPoint, MetricHistory
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot, QueueState, SeriesPoint, SnapshotSection
from planner.snapshot.settings import RECENT, SnapshotSettings
from planner.text.words import duration

RATES = "rates"
"""The name of a snapshot's part with rates."""


def with_metrics(snapshot: GroupSnapshot, past: MetricHistory, settings: SnapshotSettings) -> GroupSnapshot:
    """Return the snapshot with rates from metrics where these cover more of the window, and with its recent past.

    Rates change only where the metrics distinguish queues; the part ``rates`` then names their source, and its age
    counts how old metrics may be. ``recent`` begins with the metrics' points, up to the first of the live ones.
    """
    with_past = replace(snapshot, recent=_recent(snapshot, past), problems=(*snapshot.problems, *past.problems))
    rates = _rates(snapshot, past, settings)
    covered = _completeness(snapshot, rates, settings)
    live = next((section.completeness for section in snapshot.parts if section.name == RATES), 0.0)
    if covered <= live:
        return with_past
    section = SnapshotSection(
        RATES,
        max(0.0, past.age_s(snapshot.at) or 0.0),
        covered,
        f"from {past.source}, as live samples cover {live:.0%} of the window of {duration(settings.window_s)}",
    )
    return replace(
        with_past,
        queues=tuple(_with_rates(state, rates.get(state.queue)) for state in snapshot.queues),
        parts=(*(earlier for earlier in snapshot.parts if earlier.name != RATES), section),
    )


def _rates(snapshot: GroupSnapshot, past: MetricHistory, settings: SnapshotSettings) -> dict[Queue, QueueRates]:
    by_queue: dict[Queue, list[QueueInterval]] = {}
    for interval in past.intervals:
        by_queue.setdefault(interval.queue, []).append(interval)
    return {
        queue: queue_rates(of_queue, snapshot.at, settings.window_s, settings.percentile)
        for queue, of_queue in by_queue.items()
    }


def _completeness(snapshot: GroupSnapshot, rates: dict[Queue, QueueRates], settings: SnapshotSettings) -> float:
    queues = [state.queue for state in snapshot.data_queues]
    covered = sum(min(rates[queue].covered_s, settings.window_s) for queue in queues if queue in rates)
    return round(covered / (settings.window_s * len(queues)), 4) if queues else 0.0


def _with_rates(state: QueueState, rates: QueueRates | None) -> QueueState:
    if rates is None or rates.arrival is None:
        return state
    return replace(
        state,
        arrival_rate=rates.arrival,
        upper_arrival_rate=rates.upper_arrival,
        consumption_rate=rates.consumption,
    )


def _recent(snapshot: GroupSnapshot, past: MetricHistory) -> tuple[SeriesPoint, ...]:
    live = snapshot.recent
    until = live[0].at - timedelta(seconds=live[0].seconds) if live else snapshot.at
    earlier = [_point(point) for point in past.points if snapshot.at - RECENT < point.at <= until]
    return (*earlier[-MOST_POINTS:], *live)


def _point(point: GroupPoint) -> SeriesPoint:
    return SeriesPoint(
        at=point.at,
        seconds=point.seconds,
        arrival_rate=point.arrival_rate,
        consumption_rate=point.consumption_rate,
        lag=point.lag,
        consumers=point.members,
        moved=None,
        is_gap=point.is_gap,
    )
