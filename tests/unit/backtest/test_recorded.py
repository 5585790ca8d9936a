"""A group's past out of metrics: what can be played, what it cost as it was, and what cannot be known."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from planner.backtest.compare import compare
from planner.backtest.recorded import NotPlayable, PlaySettings, RecordedGroup, recorded_group
from planner.backtest.review import REVIEWED, Review
from planner.model.intervals import QueueInterval
from planner.model.points import GroupPoint, MetricHistory
from planner.model.queues import TopicPartition

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
MINUTES = 120
CAPACITY = 100.0
"""What one of these consumers can do: 3 of them do 300 messages a second, as long as so many wait."""


def load(minute: int) -> float:
    """Messages a second: 150, and 400 for twenty minutes."""
    return 400.0 if 40 <= minute < 60 else 150.0


def past(members: Sequence[int | None] = (3,) * MINUTES, partitions: int = 6) -> MetricHistory:
    """Return two hours of a Kafka group whose members work at their capacity while messages wait."""
    waiting, intervals, points = 0.0, [], []
    for minute in range(MINUTES):
        at = BEGIN + timedelta(minutes=minute + 1)
        can = CAPACITY * (members[minute] or 0)
        consumed = min(waiting / 60 + load(minute), can)
        waiting += 60 * (load(minute) - consumed)
        for number in range(partitions):
            arrived = round(60 * load(minute) / partitions)
            intervals.append(
                QueueInterval(
                    queue=TopicPartition("t", number), started_at=at - timedelta(minutes=1), ended_at=at, seconds=60.0,
                    broker_offset=0, consumer_offset=0, lag=round(waiting / partitions), arrived=arrived,
                    consumed=round(60 * consumed / partitions), is_gap=False, commit_age_s=None, owners=(),
                )
            )  # fmt: skip
        points.append(GroupPoint(at, 60.0, load(minute), consumed, round(waiting), None, members[minute], False))
    return MetricHistory("kafka", "c", "g", "prometheus/test", 60.0, 0.0, at, tuple(intervals), tuple(points), (), ())


def read(history: MetricHistory, settings: PlaySettings | None = None) -> RecordedGroup | NotPlayable:
    return recorded_group(history, BEGIN, BEGIN + timedelta(minutes=MINUTES), settings or PlaySettings())


def playable(history: MetricHistory, settings: PlaySettings | None = None) -> RecordedGroup:
    recorded = read(history, settings)
    assert isinstance(recorded, RecordedGroup), recorded
    return recorded


def test_a_past_is_told_as_it_was() -> None:
    """20 minutes too much for 3 consumers: 120,000 wait, which go at 150 a second. Red when lag is no wait.

    More than 65 s of arrivals wait from the fifth heavy minute on, and for twelve more minutes behind the last.
    """
    recorded = playable(past())
    was = recorded.past
    assert (was.hours, was.rebalances, was.fewest, was.most) == (pytest.approx(6.0), 0, 3, 3)
    assert was.late_minutes == 16 + 12
    assert was.cost_h(recorded.scenario.prices) == pytest.approx(6.0 + 28.0)


def test_what_a_consumer_can_do_is_seen_while_all_queues_are_behind() -> None:
    recorded = playable(past())
    assert recorded.scenario.capacity == pytest.approx(CAPACITY, rel=0.02)
    assert "far behind" in recorded.capacity_source
    scenario = recorded.scenario
    assert (len(scenario.queues), scenario.start, scenario.strategy) == (6, 3, "range")
    assert scenario.messages.sum() == pytest.approx(60 * sum(map(load, range(MINUTES))), rel=1e-6)


def test_changes_of_the_count_are_counted_and_paid() -> None:
    was = playable(past((3,) * 60 + (6,) * 60)).past
    assert (was.rebalances, was.fewest, was.most, was.hours) == (1, 3, 6, pytest.approx(9.0))


def test_the_planner_saves_what_a_fixed_count_cost() -> None:
    """Six consumers all the time, where two do for all but twenty minutes: 100 messages/s each, as stated."""
    recorded = playable(past((6,) * MINUTES), PlaySettings(capacity=CAPACITY))
    it = Review(recorded, *compare(recorded.scenario, REVIEWED))
    assert it.recorded.past.late_minutes == 0
    assert it.recorded.capacity_source == "stated"
    assert it.planner.totals.hours < 7.0
    assert it.planner.totals.late_minutes <= 3
    assert it.saved_h(it.planner) > 3.0
    assert it.keda.tuning.endswith("best of 24")


@pytest.mark.parametrize(
    ("history", "words"),
    [
        (past((None,) * MINUTES), "is known for 0% of the time, 90% are needed: kafka_exporter shows none of groups"),
        (past((6,) * 9 + (None,) * (MINUTES - 9)), "is known for 8% of the time, 90% are needed: ask for other --days"),
        (past((6,) * MINUTES), "state --capacity GROUP=MESSAGES_PER_SECOND"),
        (replace(past(), intervals=()), "no metric shows what arrives"),
        (replace(past(), intervals=(), by_topic=past().points), "state --queues-each N"),
        (replace(past(), intervals=past().intervals[: 3 * MINUTES]), "what arrives is known for 50%"),
    ],
)
def test_what_cannot_be_told_is_named_with_what_helps(history: MetricHistory, words: str) -> None:
    """Red when a figure is made up where no metric shows it."""
    answer = read(history)
    assert isinstance(answer, NotPlayable)
    assert words in answer.reason


def test_topics_count_as_even_over_the_queues_that_are_stated() -> None:
    topics = tuple(replace(point, topic="t") for point in past().points)
    recorded = playable(replace(past(), intervals=(), by_topic=topics), PlaySettings(queues_each=4))
    assert recorded.scenario.messages[0].tolist() == [pytest.approx(60 * 150 / 4)] * 4


def test_a_topic_whose_last_queues_are_worked_off_by_few_shows_no_less_than_all_can_do() -> None:
    """Red when the long end, in which one of three consumers has work, counts as what all three do."""
    topics = [
        replace(point, topic="t", consumption_rate=110.0, lag=30_000)
        if 46 <= minute < 80
        else replace(point, topic="t")
        for minute, point in enumerate(past().points)
    ]
    recorded = playable(replace(past(), intervals=(), by_topic=tuple(topics)), PlaySettings(queues_each=4))
    assert recorded.scenario.capacity == pytest.approx(CAPACITY, rel=0.02)
    assert "highest" in recorded.capacity_source
    assert "may be more" in recorded.capacity_source


def test_a_capacity_for_all_counts_where_the_past_shows_none() -> None:
    settings = PlaySettings(assumed_capacity=70.0)
    assumed = playable(past((6,) * MINUTES), settings)
    assert (assumed.scenario.capacity, assumed.capacity_source) == (70.0, "stated for groups whose past shows none")
    assert playable(past(), settings).scenario.capacity == pytest.approx(CAPACITY, rel=0.02)
    assert playable(past(), replace(settings, capacity=50.0)).scenario.capacity == 50.0


def test_metrics_of_queues_without_any_point_of_the_group_are_no_members_and_no_crash() -> None:
    found = read(replace(past(), points=()))
    assert isinstance(found, NotPlayable)
    assert found.reason.startswith("how many members there are is known for 0%")
