"""A snapshot filled from metrics."""

from dataclasses import replace
from datetime import timedelta

from planner.history.intervals import queue_intervals
from planner.model.points import GroupPoint, MetricHistory
from planner.model.snapshot import GroupSnapshot, SnapshotSection
from planner.snapshot.build import build_snapshot
from planner.snapshot.metrics import with_metrics
from planner.snapshot.settings import SnapshotSettings
from tests.sample_builders import START, steady, watch

SETTINGS = SnapshotSettings(window_s=120.0)
AT = START + timedelta(seconds=600)
SOURCE = "prometheus/kafka-exporter"


def just_begun() -> GroupSnapshot:
    """Return a snapshot of two live samples, five seconds apart: 4 % of the window."""
    samples = [replace(one, at=one.at + timedelta(seconds=595)) for one in watch(2, steady(50, 40))]
    return build_snapshot(samples[-1], queue_intervals(samples, 5.0), AT, SETTINGS)


def past(*, has_queues: bool = True) -> MetricHistory:
    """Return ten minutes of metrics, one reading every 30 s: 20 messages a second arrive at each queue."""
    samples = watch(21, steady(600, 600), every_s=30.0)
    return MetricHistory(
        system="rocketmq",
        cluster="DefaultCluster",
        group="shop",
        source=SOURCE,
        period_s=30.0,
        refresh_s=15.0,
        newest_at=AT,
        intervals=queue_intervals(samples, 30.0) if has_queues else (),
        points=tuple(
            GroupPoint(START + timedelta(seconds=30 * n), 30.0, 440.0, 440.0, 7, None, None, False)
            for n in range(1, 21)
        ),
        by_topic=(),
        problems=("metrics cannot tell everything",),
    )


def rates_part(snapshot: GroupSnapshot) -> SnapshotSection:
    (part,) = [part for part in snapshot.parts if part.name == "rates"]
    return part


def test_metrics_that_cover_more_give_the_rates_and_say_so() -> None:
    filled = with_metrics(just_begun(), past(), SETTINGS)
    assert {state.arrival_rate for state in just_begun().data_queues} == {10.0}
    assert {(one.arrival_rate, one.consumption_rate, one.upper_arrival_rate) for one in filled.data_queues} == {
        (20.0, 20.0, 20.0)
    }
    part = rates_part(filled)
    assert (part.completeness, part.age_s) == (1.0, 15.0)
    assert part.note == f"from {SOURCE}, as live samples cover 4% of the window of 2 min"


def test_offsets_and_owners_stay_the_live_ones() -> None:
    before, after = just_begun(), with_metrics(just_begun(), past(), SETTINGS)
    assert [(one.queue, one.broker_offset, one.lag, one.owner) for one in after.queues] == [
        (one.queue, one.broker_offset, one.lag, one.owner) for one in before.queues
    ]
    assert [part.name for part in after.parts] == [part.name for part in before.parts]


def test_live_samples_that_cover_the_window_stay() -> None:
    samples = [replace(one, at=one.at + timedelta(seconds=475)) for one in watch(26, steady(50, 40))]
    complete = build_snapshot(samples[-1], queue_intervals(samples, 5.0), AT, SETTINGS)
    filled = with_metrics(complete, past(), SETTINGS)
    assert (filled.queues, filled.parts) == (complete.queues, complete.parts)


def test_topic_metrics_leave_rates_of_queues_as_they_are() -> None:
    filled = with_metrics(just_begun(), past(has_queues=False), SETTINGS)
    assert (filled.queues, filled.parts) == (just_begun().queues, just_begun().parts)
    assert filled.problems[-1] == "metrics cannot tell everything"


def test_the_past_comes_before_the_live_points_and_moves_are_unknown() -> None:
    live, filled = just_begun().recent, with_metrics(just_begun(), past(), SETTINGS).recent
    assert filled[-len(live) :] == live
    earlier = filled[: -len(live)]
    assert [(one.at - START).total_seconds() for one in earlier] == [30.0 * n for n in range(1, 20)]
    assert {(one.moved, one.consumers, one.lag, one.arrival_rate) for one in earlier} == {(None, None, 7, 440.0)}


def test_a_group_without_live_points_has_those_of_the_metrics() -> None:
    silent = replace(just_begun(), recent=())
    assert len(with_metrics(silent, past(), SETTINGS).recent) == 20
