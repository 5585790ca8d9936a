"""Out of the lag history: each minute's load, what it may be, and the week before a group's first snapshot."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planner.demand.outlook import outlook_of
from planner.demand.recent import MinuteLoad
from planner.documents.data import SNAPSHOT
from planner.documents.policy_folder import read_policies
from planner.errors import BadInputError
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.storage.layout import RunFolder, demand_rows, history_folder
from spark_apps.common.folder import Folder
from spark_apps.demand.app import run_demand
from spark_apps.demand.transforms import minute_loads
from spark_apps.history.app import update
from spark_apps.snapshot.app import days_before, due_policies, take_snapshots
from tests.sample_builders import POLICY, START, watch
from tests.spark.worlds import as_group, land

pytestmark = pytest.mark.spark

HOURS = 8
MINUTE = timedelta(minutes=1)
BEGIN = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
FIRST = round(BEGIN.timestamp()) // 60
QUEUES = 22

Interval = tuple[str, float, float, float | None]
"""A topic, when an interval begins and ends in seconds from ``BEGIN``, messages per second."""


def loads(spark: SparkSession, *intervals: Interval) -> dict[int, tuple[float | None, bool]]:
    """Return what came in each minute from ``BEGIN`` on, and whether it is a longer span's."""
    rows = [
        ("rocketmq", "c", "g", topic, BEGIN + timedelta(seconds=begin), BEGIN + timedelta(seconds=end), rate)
        for topic, begin, end, rate in intervals
    ]
    types = "system string, cluster string, group string, topic string, started_at timestamp, ended_at timestamp"
    frame = spark.createDataFrame(rows, f"{types}, arrival_rate double")
    found = minute_loads(frame, BEGIN).collect()
    return {row.minute - FIRST: (row.rate, row.averaged) for row in found}


def test_each_queue_counts_over_its_own_interval(spark: SparkSession) -> None:
    """Two queues each 30 s; one sample misses the second, whose interval is then a minute long."""
    steady = [("t", at, at + 30.0, 4.0) for at in (0.0, 30.0, 60.0, 90.0)]
    missed = [("t", 0.0, 30.0, 6.0), ("t", 30.0, 90.0, 2.0), ("t", 90.0, 120.0, 6.0)]
    assert loads(spark, *steady, *missed) == {0: (4.0 + 4.0, False), 1: (4.0 + 4.0, False)}


def test_messages_that_come_back_are_no_load(spark: SparkSession) -> None:
    assert loads(spark, ("t", 0.0, 60.0, 4.0), ("%RETRY%g", 0.0, 60.0, 9.0)) == {0: (4.0, False)}


def test_what_is_not_known_is_no_zero(spark: SparkSession) -> None:
    """An offset that was reset, and a minute that was seen in part, have no rate."""
    found = loads(
        spark, ("t", 0.0, 60.0, 4.0), ("t", 60.0, 120.0, None), ("t", 120.0, 180.0, 0.0), ("t", 180.0, 210.0, 4.0)
    )
    assert found == {0: (4.0, False), 1: (None, False), 2: (0.0, False), 3: (None, False)}


@pytest.mark.parametrize("rate", [math.inf, math.nan])
def test_what_is_no_finite_number_is_unknown(spark: SparkSession, rate: float) -> None:
    """A damaged file of the history; a finite sum would be a made-up one."""
    found = loads(spark, ("t", 0.0, 60.0, rate), ("t", 0.0, 60.0, 4.0), ("t", 60.0, 120.0, 4.0))
    assert found == {0: (None, False), 1: (4.0, False)}


def test_a_span_of_many_minutes_says_one_thing_of_them(spark: SparkSession) -> None:
    found = loads(spark, ("t", 0.0, 15.0, 8.0), ("t", 15.0, 615.0, 4.0), ("t", 615.0, 660.0, 0.0))
    assert found[0] == (5.0, False)
    assert found[1] == (4.0, False)
    assert [found[minute] for minute in range(2, 10)] == [(4.0, True)] * 8
    assert found[10] == (1.0, False)


def test_a_span_of_more_than_a_week_says_nothing(spark: SparkSession) -> None:
    assert loads(spark, ("t", -8 * 86400.0, 60.0, 4.0)) == {}


def per_second(minute: int) -> int:
    """Return what each queue gets in a minute, in messages a second."""
    return 5 + minute % 7


def growing() -> tuple[GroupSample, ...]:
    """Return a sample a minute over eight hours, all queues alike; 20 messages always wait."""
    sums = [1000]
    for minute in range(60 * HOURS):
        sums.append(sums[-1] + 60 * per_second(minute))

    def offsets(_: MessageQueue, number: int) -> tuple[int, int]:
        return sums[number], sums[number] - 20

    return watch(len(sums), offsets, 60.0)


def laid_out(spark: SparkSession, folder: Path, *groups: str) -> datetime:
    """Lay out a history of group shop, and one policy a group; return the time of the newest sample."""
    samples = growing()
    land(folder, (*samples, *as_group(samples, "elsewhere")))
    update(spark, folder, samples[-1].at, 60.0)
    (folder / "policies").mkdir()
    for group in groups:
        (folder / "policies" / f"{group}.yaml").write_text(POLICY.replace("shop", group), encoding="utf-8")
    return samples[-1].at


def rows_of(spark: SparkSession, folder: Path, at: datetime) -> list[Any]:
    files = sorted(demand_rows(folder, at).glob("*.parquet"))
    assert files
    return spark.read.parquet(*map(str, files)).orderBy("policy", "from_minutes").collect()


def by_hand(minutes: Sequence[int]) -> MinuteLoad:
    return MinuteLoad([float(QUEUES * per_second(minute)) for minute in minutes], [False] * len(minutes))


def test_the_app_says_what_the_planner_says_of_these_minutes(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = laid_out(spark, tmp_path, "shop", "nobody")
    figures = run_demand(spark, tmp_path, read_policies(tmp_path / "policies"), None, str(history_folder(tmp_path)))
    expected = outlook_of(by_hand(range(60 * HOURS)), at)
    assert expected is not None
    nobody, *shop = rows_of(spark, tmp_path, at)
    assert figures.written == {"rows": 1 + len(expected.stretches)}
    assert nobody.low is None
    assert nobody.reason.startswith("the lag history does not know its load up to ")
    for row, stretch in zip(shop, expected.stretches, strict=True):
        assert (row.level, row.minutes) == (pytest.approx(expected.level), 60 * HOURS)
        assert (row.low, row.middle, row.high) == pytest.approx((stretch.low, stretch.middle, stretch.high))
        assert (row.forecasts, row.inside, row.reason) == (stretch.forecasts, stretch.inside, None)
        assert row.forecasts > 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("policy nobody: group nobody has no forecast: the lag history") for line in lines) == 1
    assert next(line.split()[:2] for line in lines if line[:1].isdigit()) == ["0–5", "1"]


def test_an_earlier_time_knows_nothing_of_later_ones(spark: SparkSession, tmp_path: Path) -> None:
    laid_out(spark, tmp_path, "shop")
    at = START + 200 * MINUTE
    run_demand(spark, tmp_path, read_policies(tmp_path / "policies"), at, str(history_folder(tmp_path)))
    expected = outlook_of(by_hand(range(200)), at)
    assert expected is not None
    first = rows_of(spark, tmp_path, at)[0]
    assert (first.level, first.minutes) == (pytest.approx(expected.level), 200)
    assert (first.low, first.high) == pytest.approx((expected.stretches[0].low, expected.stretches[0].high))


def test_minutes_too_long_ago_are_no_load_of_now(spark: SparkSession, tmp_path: Path) -> None:
    newest = laid_out(spark, tmp_path, "shop")
    at = newest + 10 * MINUTE
    run_demand(spark, tmp_path, read_policies(tmp_path / "policies"), at, str(history_folder(tmp_path)))
    (row,) = rows_of(spark, tmp_path, at)
    assert row.reason.startswith("the lag history does not know its load up to ")


def test_a_history_without_the_groups_has_no_forecast(spark: SparkSession, tmp_path: Path) -> None:
    laid_out(spark, tmp_path, "nobody")
    with pytest.raises(BadInputError, match="has no interval of the groups of these policies"):
        run_demand(spark, tmp_path, read_policies(tmp_path / "policies"), None, str(history_folder(tmp_path)))


def test_a_first_snapshot_knows_the_days_before(spark: SparkSession, tmp_path: Path) -> None:
    """What is older than the six hours that the snapshot shows itself comes by minute; a later run continues it."""
    end = laid_out(spark, tmp_path, "shop")
    policies = read_policies(tmp_path / "policies")
    first_at = end - 30 * MINUTE
    assert take_snapshots(spark, tmp_path, policies, first_at) == []
    first = SNAPSHOT.read(RunFolder.of(tmp_path, first_at).snapshot("shop"))
    assert first.past_load is not None
    before = round((first.recent[0].at - timedelta(seconds=first.recent[0].seconds) - START) / MINUTE)
    assert before == 60 * HOURS - 30 - 360
    assert first.past_load.rates == tuple(by_hand(range(before)).rates)
    assert first.past_load.averaged == ()

    take_snapshots(spark, tmp_path, policies, end)
    second = SNAPSHOT.read(RunFolder.of(tmp_path, end).snapshot("shop"))
    assert second.past_load is not None
    assert second.past_load.rates == tuple(by_hand(range(before + 30)).rates)


def test_a_week_is_read_only_for_groups_that_get_their_first_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    """Red where a policy without a sample, or one that could not be read, has every run read a week."""
    end = laid_out(spark, tmp_path, "shop", "nobody")
    policies = read_policies(tmp_path / "policies")
    (shop,) = [policy for policy in policies if policy.metadata.name == "shop"]
    key = ("rocketmq", "DefaultCluster", "shop")
    assert due_policies(tmp_path, policies, end, {}, {}) == [shop]
    assert due_policies(tmp_path, policies, end, {}, {"shop": "its brokers are away"}) == []
    assert due_policies(tmp_path, policies, START - MINUTE, {}, {}) == []
    assert due_policies(tmp_path, policies, START - MINUTE, {key: "{}"}, {}) == [shop]

    history = Folder.of(spark, history_folder(tmp_path))
    assert days_before(history, tmp_path, [], end) is None
    assert days_before(history, tmp_path, [shop], end) is not None
    take_snapshots(spark, tmp_path, policies, end - MINUTE)
    assert days_before(history, tmp_path, [shop], end) is None
