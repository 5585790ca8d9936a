"""The backtest app plays every group out of the lag history as ``planner backtest`` plays it out of its samples."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from planner.backtest.compare import GRIDS, best_run
from planner.backtest.recorded import RecordedGroup
from planner.backtest.sweep import AS_IT_WAS, Sweep
from planner.documents.policy_folder import read_policies
from planner.errors import BadInputError
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.runs.recorded_past import past_of_samples, play_settings
from planner.storage.layout import backtest_rows, history_folder
from spark_apps.backtest import app, transforms
from spark_apps.backtest.app import BacktestRequest, run_backtest
from spark_apps.common.errors import finish
from spark_apps.common.policies import policy_frame
from spark_apps.history.app import update
from tests.sample_builders import POLICY, members, watch
from tests.spark.worlds import as_group, land

pytestmark = pytest.mark.spark

MINUTES = 90
STATED = POLICY + "  capacity: {messagesPerSecond: 100}\n  strategy: AVG\n"
SWEEP = Sweep(("smallest-count", "fixed"), (60.0, 600.0), (0.25, 0.5), (60.0, 120.0))
COUNTS = range(1, 17)
"""What the policies of this page allow."""


def steady() -> tuple[GroupSample, ...]:
    """Return a sample a minute of a group whose 22 queues get 10 messages a second each, 20 of which always wait.

    It has three members up to the hour, and then four.
    """

    def offsets(_: MessageQueue, minute: int) -> tuple[int, int]:
        return 1000 + 600 * minute, 980 + 600 * minute

    seen = watch(MINUTES + 1, offsets, 60.0)
    more = members(seen[0].routes, [f"10.0.0.{number}@1" for number in range(1, 5)])
    return tuple(replace(it, members=more) if number > 60 else it for number, it in enumerate(seen))


def laid_out(spark: SparkSession, folder: Path) -> BacktestRequest:
    """Lay out a history of groups shop and bank with the policies; return what is asked for by default."""
    samples = steady()
    land(folder, (*samples, *as_group(samples, "bank"), *as_group(samples, "elsewhere")))
    update(spark, folder, samples[-1].at, 60.0)
    texts = {
        "shop": STATED,
        "bank": POLICY.replace("shop", "bank"),
        "nobody": STATED.replace("shop", "nobody"),
        "rooms": STATED.replace("shop", "rooms").replace("AVG", "MACHINE_ROOM_NEARBY"),
    }
    (folder / "policies").mkdir()
    for name, text in texts.items():
        (folder / "policies" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return BacktestRequest(14.0, None, SWEEP)


def rows_of(spark: SparkSession, folder: Path, request: BacktestRequest) -> list[Any]:
    """Run the app and return the rows that it wrote."""
    until = request.until or steady()[-1].at
    run_backtest(spark, folder, read_policies(folder / "policies"), request, str(history_folder(folder)))
    files = sorted(backtest_rows(folder, until).glob("*.parquet"))
    assert files
    return spark.read.parquet(*map(str, files)).collect()


def test_groups_cost_by_hand_what_the_app_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(spark, tmp_path, laid_out(spark, tmp_path))
    reasons = {row.policy: row.reason for row in rows if row.reason is not None}
    assert list(Counter(row.policy for row in rows if row.policy != "shop").values()) == [1, 1, 1]
    assert reasons["bank"].endswith("state spec.capacity.messagesPerSecond of its policy")
    assert reasons["nobody"].startswith("the lag history has no interval of its queues")
    assert "the group's strategy is MACHINE_ROOM_NEARBY" in reasons["rooms"]
    shop = [row for row in rows if row.policy == "shop"]
    settings = 2 * 2
    by_rule = Counter((row.rule, row.every_s) for row in shop)
    assert by_rule == {
        (AS_IT_WAS, None): settings,
        ("smallest-count", 60.0): settings,
        ("smallest-count", 600.0): settings,
        ("fixed", None): settings * len(COUNTS),
    }
    best = Counter((row.rule, row.every_s, row.rebalance_h, row.late_after_s) for row in shop if row.cheapest)
    assert len(best) == len(by_rule) * settings
    assert set(best.values()) == {1}
    # The first interval ends at the minute behind the first sample, and is played from then on.
    hours = (MINUTES - 1) / 60
    for row in shop:
        if row.rule == AS_IT_WAS:
            assert row.hours == pytest.approx((3 * 59 + 4 * 30) / 60)
            assert (row.rebalances, row.late_minutes, row.moved) == (1, 0, None)
            assert row.cost_h == pytest.approx(row.hours + row.rebalance_h)
        if row.tuning == "3 consumers":
            assert row.hours == pytest.approx(3 * hours)
            assert (row.rebalances, row.moved, row.late_minutes, row.cheapest) == (0, 0, 0, True)
        if row.tuning == "2 consumers":
            # 110 messages/s come for 100: a message waits a minute after eleven, two after 22.
            assert (row.hours, row.rebalances) == (pytest.approx(2 * hours), 1)
            assert 0 <= row.late_minutes - (MINUTES - 1 - 11 * row.late_after_s / 60) <= 2
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("policy ") and "cannot be played: " in line for line in lines) == 3
    (past,) = [line.split() for line in lines if line.startswith(AS_IT_WAS)]
    assert past[3:7] == ["–", "1", "21", "1.00"]  # 4 × 4.95 h, twice 0.25 and twice 0.5 h


def test_a_rule_costs_what_it_costs_by_the_samples(spark: SparkSession, tmp_path: Path) -> None:
    request = BacktestRequest(14.0, None, Sweep(("smallest-count", "keda")))
    laid_out(spark, tmp_path)
    rows = [row for row in rows_of(spark, tmp_path, request) if row.policy == "shop" and row.cheapest]
    samples = steady()
    land(tmp_path / "other", samples)
    (policy,) = [it for it in read_policies(tmp_path / "policies") if it.metadata.name == "shop"]
    key, end = ("rocketmq", "DefaultCluster", "shop"), samples[-1].at
    recorded = past_of_samples(tmp_path / "other", key, end - timedelta(days=14), end, play_settings(policy))
    assert isinstance(recorded, RecordedGroup), recorded
    scenario = recorded.scenario
    expected = {AS_IT_WAS: recorded.past.cost_h(scenario.prices)}
    for rule in request.sweep.rules:
        expected[rule] = best_run(scenario, list(GRIDS[rule](scenario))).cost_h(scenario.prices)
    assert {row.rule: row.cost_h for row in rows} == expected


def test_a_time_before_the_end_is_played_alone(spark: SparkSession, tmp_path: Path) -> None:
    laid_out(spark, tmp_path)
    until = steady()[60].at
    request = BacktestRequest(0.5 / 24, until, Sweep(("fixed",)))
    (past,) = [row for row in rows_of(spark, tmp_path, request) if row.rule == AS_IT_WAS]
    assert past.hours == pytest.approx(3 * 29 / 60)
    assert past.rebalances == 0


def test_a_history_without_the_groups_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    request = laid_out(spark, tmp_path)
    nobody = [it for it in read_policies(tmp_path / "policies") if it.metadata.name == "nobody"]
    with pytest.raises(BadInputError, match="has no interval of the groups of these policies"):
        run_backtest(spark, tmp_path, nobody, request, str(history_folder(tmp_path)))


def test_a_defect_in_one_group_is_its_reason(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.yaml").write_text(STATED, encoding="utf-8")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr(transforms, "tracks_of_readings", broken)
    play = transforms._player(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC), SWEEP)
    policies = policy_frame(spark, read_policies(tmp_path)).toPandas()
    (row,) = play(policies, pd.DataFrame()).itertuples()
    assert (row.policy, row.group, row.rule) == ("shop", "shop", None)
    assert row.reason.startswith("stage backtest failed on it with ZeroDivisionError: of a test")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--play", "planer"], "option --play: found 'planer', expected one of planner, "),
        (["--days", "0.01"], "option --days: found '0.01', expected 0.02 to 60 days"),
        (["--days", "nan"], "option --days: found 'nan', expected 0.02 to 60 days"),
        (["--every", "60,0"], "option --every: found 0, expected numbers above 0 and at most 86400"),
        (["--every", "7"], "option --every: found 7, expected multiples of 5 seconds"),
        (["--rebalance-h", "-1"], "option --rebalance-h: found -1, expected numbers above 0 with commas"),
        (["--rebalance-h", "inf"], "option --rebalance-h: found inf, expected numbers above 0"),
        (["--late-after", "soon"], "option --late-after: found 'soon', expected a number"),
        (["--until", "today"], "time 'today': expected one with zone"),
    ],
)
def test_what_cannot_be_played_is_refused_at_the_door(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["app.py", "--data", "data", "--policies", "policies", *words])
    with pytest.raises(SystemExit) as ended:
        finish(app.main)
    assert ended.value.code == BadInputError.exit_code
    assert capsys.readouterr().err.startswith(f"planner: {sentence}")
