"""One group at many settings: every row is the run of a scenario of its own, and no run is played in vain."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.backtest.compare import DECIDES_BY_PERIOD, GRIDS, POLICY_NAMES, WEIGHS_PRICES, all_runs
from planner.backtest.play import Run
from planner.backtest.recorded import AsItWas, NotPlayable, PlaySettings, RecordedGroup
from planner.backtest.scenario import Prices, Scenario
from planner.backtest.sweep import AS_IT_WAS, Sweep, play_sweep
from planner.model.queues import MessageQueue

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(4)]
HOURS = 1
PAST = AsItWas(hours=8.0, rebalances=2, late_minutes=3, fewest=1, most=3)


def scenario(settings: PlaySettings) -> Scenario:
    """Return a wave that one to four consumers serve."""
    minutes = np.arange(60 * HOURS)
    load = 6000 * (1.2 + np.sin(minutes / 8)) * (1 + minutes % 7 / 20)
    messages = np.repeat(load[:, None] / 4, 4, axis=1)
    return Scenario(
        queues=QUEUES, messages=messages, interval_s=60.0, history_s=0.0, system="rocketmq", strategy="AVG",
        capacity=100.0, pod_start_s=30.0, lowest=1, highest=4, start=2, late_after_s=settings.late_after_s,
        prices=settings.prices, every_s=settings.every_s, seed=1,
    )  # fmt: skip


def load(settings: PlaySettings) -> RecordedGroup:
    return RecordedGroup("shop", scenario(settings), PAST, "stated", 1.0)


@cache
def runs_of(rule: str, settings: PlaySettings) -> list[Run]:
    played = scenario(settings)
    return all_runs(played, list(GRIDS[rule](played)))


@pytest.mark.slow
@pytest.mark.parametrize("rule", POLICY_NAMES)
def test_what_changes_a_rules_runs_is_listed(rule: str) -> None:
    usual = runs_of(rule, PlaySettings())
    dear = runs_of(rule, PlaySettings(prices=Prices(rebalance_h=2.5, late_minute_h=1.0)))
    seldom = runs_of(rule, PlaySettings(every_s=600.0))
    assert (usual != dear) == (rule in WEIGHS_PRICES)
    assert (usual != seldom) == (rule in DECIDES_BY_PERIOD)


@pytest.mark.slow
def test_every_row_is_the_run_of_a_scenario_with_its_setting() -> None:
    sweep = Sweep(("planner", "keda"), every_s=(60.0, 600.0), rebalance_h=(0.25, 2.5), late_after_s=(30.0, 60.0))
    rows = play_sweep(load, PlaySettings(), sweep)
    assert not isinstance(rows, NotPlayable)
    assert len(rows) == 2 * 2 * (1 + 2 + 24)
    for row in rows:
        prices = Prices(row.rebalance_h, 1.0)
        if row.rule == AS_IT_WAS:
            assert row.cost_h == PAST.cost_h(prices)
            continue
        settings = PlaySettings(prices=prices, late_after_s=row.late_after_s, every_s=row.every_s or 60.0)
        of_setting = [it for it in rows if it.rule == row.rule and _setting(it) == _setting(row)]
        assert sum(it.cheapest for it in of_setting) == 1
        assert not row.cheapest or row.cost_h == min(it.cost_h for it in of_setting)
        (run,) = [it for it in runs_of(row.rule, settings) if it.tuning == row.tuning]
        totals = run.totals
        assert (row.cost_h, row.hours, row.late_minutes) == (run.cost_h(prices), totals.hours, totals.late_minutes)
        assert (row.moved, row.duplicates, row.worst_wait_s) == (totals.moved, totals.duplicates, totals.worst_wait_s)


def _setting(row: object) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in ("every_s", "rebalance_h", "late_after_s"))


def test_settings_that_are_not_named_are_the_groups_own_and_a_reason_ends_it() -> None:
    own = PlaySettings(every_s=300.0, late_after_s=45.0, prices=Prices(0.5, 1.0))
    rows = play_sweep(load, own, Sweep(("planner",)))
    assert not isinstance(rows, NotPlayable)
    assert [(row.rule, row.every_s, row.rebalance_h, row.late_after_s) for row in rows] == [
        (AS_IT_WAS, None, 0.5, 45.0),
        ("planner", 300.0, 0.5, 45.0),
    ]
    reason = NotPlayable("shop", "nothing arrived")
    assert play_sweep(lambda _: reason, replace(own), Sweep(("planner",))) is reason
