"""Recordings of real exporters, played back by a real Prometheus, against what brokers said at the same time."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from planner.model.points import GroupPoint, MetricHistory
from planner.model.queues import TopicPartition
from planner.sources.prometheus import Access, GroupQuery, Prometheus, history, list_groups, observe_group
from tests.clusters.prometheus import PrometheusServer

pytestmark = pytest.mark.cluster

RECORDINGS = Path(__file__).with_name("recordings")


def looks(name: str) -> list[dict[str, Any]]:
    """Return what the brokers said, oldest first."""
    return list(json.loads((RECORDINGS / f"{name}.truth.json").read_text())["looks"])


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def total(points: list[GroupPoint], rate: str) -> float:
    """Return the messages that the points' rates amount to."""
    return sum((getattr(one, rate) or 0.0) * one.seconds for one in points)


# kafka_exporter.

KAFKA = looks("kafka_exporter")
BEGIN, END = moment(KAFKA[0]["at"]), moment(KAFKA[-1]["at"])


@pytest.fixture(scope="module")
def kafka() -> Iterator[Prometheus]:
    with PrometheusServer(blocks=RECORDINGS / "kafka_exporter.om") as server, Prometheus(Access(server.url)) as client:
        yield client


def of_kafka(client: Prometheus, group: str, step_s: float = 10.0) -> MetricHistory:
    return history(client, GroupQuery("kafka", group, topics=("orders",)), BEGIN, END, step_s)


@pytest.mark.parametrize("group", ["shop", "modern"])
def test_every_offset_lies_between_what_the_broker_said_before_and_after(kafka: Prometheus, group: str) -> None:
    told = of_kafka(kafka, group)
    assert told.source == "prometheus/kafka-exporter"
    checked = 0
    for before, after in pairwise(KAFKA):
        for one in told.intervals:
            if moment(before["at"]) <= one.ended_at <= moment(after["at"]):
                place = one.queue.number
                assert before["ends"][place] <= one.broker_offset <= after["ends"][place], one
                if before[group][place] is not None:
                    assert one.consumer_offset is not None
                    assert before[group][place] <= one.consumer_offset <= after[group][place], one
                checked += 1
    assert checked >= 4 * 10


def test_a_partition_without_commits_has_no_consumer_offset(kafka: Prometheus) -> None:
    told = of_kafka(kafka, "shop")
    silent = [one for one in told.intervals if one.queue == TopicPartition("orders", 3)]
    assert silent
    assert {(one.consumer_offset, one.consumed) for one in silent} == {(None, None)}
    assert any("orders/3" in problem for problem in told.problems)


def test_rates_are_the_producers(kafka: Prometheus) -> None:
    told = of_kafka(kafka, "shop")
    busy = [one for one in told.intervals if one.queue.number == 1 and one.ended_at < moment(KAFKA[-6]["at"])]
    assert sum(one.arrived for one in busy) / sum(one.seconds for one in busy) == pytest.approx(20, rel=0.05)


def test_points_count_what_intervals_count(kafka: Prometheus) -> None:
    told = of_kafka(kafka, "shop")
    assert round(total(list(told.points), "arrival_rate")) == sum(one.arrived for one in told.intervals)


def test_a_kip_848_group_has_members_that_the_exporter_does_not_see(kafka: Prometheus) -> None:
    # One member consumed all the time, and the exporter said 0 all the time.
    assert {one.members for one in of_kafka(kafka, "modern").points} == {None}
    assert {one.members for one in of_kafka(kafka, "shop").points} - {None} == {2}


def test_a_group_that_left_keeps_its_offsets(kafka: Prometheus) -> None:
    sample = observe_group(kafka, GroupQuery("kafka", "left"), END)
    assert [(str(one.queue), one.broker_offset, one.consumer_offset) for one in sample.offsets] == [
        ("returns/0", 50, 50),
        ("returns/1", 0, 0),
    ]
    assert [one.leader for one in sample.routes.partitions] == [1, 1]


def test_kafka_groups_are_listed(kafka: Prometheus) -> None:
    listed = list_groups(kafka, GroupQuery("kafka", ""), BEGIN, END)
    assert listed == (("kafka-exporter", ("left", "modern", "shop")),)


# rocketmq-exporter.

ROCKETMQ = looks("rocketmq_exporter")
REFRESH_S = 60.0


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[MetricHistory]:
    blocks = RECORDINGS / "rocketmq_exporter.om"
    with PrometheusServer(blocks=blocks) as server, Prometheus(Access(server.url)) as client:
        yield history(
            client, GroupQuery("rocketmq", "shop"), moment(ROCKETMQ[0]["at"]), moment(ROCKETMQ[-1]["at"]), step_s=15.0
        )


def around(at: datetime, what: str) -> tuple[int, int]:
    """Return the least and most that a value can be that was fetched within the last refresh before ``at``."""
    oldest = at - timedelta(seconds=REFRESH_S + 10)
    seen = [look[what] for look in ROCKETMQ if oldest <= moment(look["at"]) <= at + timedelta(seconds=10)]
    return min(seen), max(seen)


def test_the_step_is_raised_to_the_exporters_own_pace(rocketmq: MetricHistory) -> None:
    assert (rocketmq.source, rocketmq.cluster) == ("prometheus/rocketmq-exporter", "DefaultCluster")
    assert (rocketmq.period_s, rocketmq.refresh_s) == (pytest.approx(60, abs=0.1), 60.0)


def test_lag_is_one_that_the_brokers_had_within_the_last_minute(rocketmq: MetricHistory) -> None:
    known = [one for one in rocketmq.points if one.lag is not None]
    assert len(known) >= 5
    for point in known:
        produced, committed = around(point.at, "produced"), around(point.at, "committed")
        assert max(0, produced[0] - committed[1]) <= point.lag <= produced[1] - committed[0], point
    assert max(one.lag for one in known) > 1000


def test_what_arrived_and_was_consumed_adds_up(rocketmq: MetricHistory) -> None:
    points = list(rocketmq.points)
    first = points[0].at - timedelta(seconds=points[0].seconds)
    for rate, what in (("arrival_rate", "produced"), ("consumption_rate", "committed")):
        least, most = around(first, what)
        assert 19_800 - most - 1 <= total(points, rate) <= 19_800 - least + 1, rate


def test_one_member_works_at_its_service_time(rocketmq: MetricHistory) -> None:
    alone = [one for one in rocketmq.points if one.members == 1 and one.lag]
    assert [round(one.arrival_rate) for one in alone] == [pytest.approx(60, rel=0.05)] * len(alone)
    # Two threads at 40 ms: 50 a second at most.
    assert all(44 <= one.consumption_rate <= 51 for one in alone)
    assert len(alone) >= 2


def test_members_follow_the_label_that_churns_down_to_none(rocketmq: MetricHistory) -> None:
    counts = [count for count, _ in groupby(one.members for one in rocketmq.points)]
    assert counts == [1, 2, 0]


def test_a_group_without_members_still_has_its_lag(rocketmq: MetricHistory) -> None:
    assert {one.lag for one in rocketmq.points if one.members == 0} == {0}  # they had caught up
