"""Compiled decisions: the same bills to the last bit, and NumPy's where there is no compiler."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from planner.backtest.compare import compare, grids_of
from planner.compiled import fastest_model
from planner.compiled.horizon import CompiledModel
from planner.decision.expectation import expectations_after
from planner.decision.horizon import DEFAULT_HORIZON, Costs, GroupState, Model, choose_count, horizon_periods
from tests.backtest_builders import scenario

STARTS_S = (0.0, 5.0, 30.0, 120.0, 400.0)
PERIODS_S = (30.0, 60.0, 300.0, 600.0)


def groups(number: int) -> Iterator[tuple[Any, ...]]:
    """Yield what ``choose_count`` takes, of groups that differ in everything."""
    random = np.random.default_rng(20261129)
    for _ in range(number):
        counts = sorted(random.choice(np.arange(1, 33), int(random.integers(1, 14)), replace=False).tolist())
        shares = np.sort(random.uniform(1.0, 1.3, len(counts)) / counts)[::-1].copy()
        start_s, every_s = float(random.choice(STARTS_S)), float(random.choice(PERIODS_S))
        periods = horizon_periods(DEFAULT_HORIZON, max(start_s, every_s))
        steps = random.normal(
            0.0, random.choice((0.0, 0.1, 0.5)), (int(random.integers(1, 25)), sum(map(len, periods)))
        )
        futures = random.uniform(0.1, 20.0) * np.exp(np.cumsum(steps, axis=1))
        running, ordered = (int(random.choice(counts)) for _ in range(2))
        ratios = tuple(random.uniform(0.2, 2.0, len(counts)).tolist()) if random.random() < 0.5 else None
        state = GroupState(
            running, ordered, random.uniform(0.0, start_s), float(random.choice((0.0, 3.0, 300.0))), ratios
        )
        change = tuple(random.uniform(0.0, 2000.0, len(counts)).tolist()) if random.random() < 0.5 else 900.0
        costs = Costs(
            change, float(random.choice((0.0, 3600.0))), float(random.choice((10.0, 600.0))), start_s, every_s
        )
        yield counts, shares, futures, periods, state, costs, DEFAULT_HORIZON


def test_bills_are_the_same_to_the_last_bit() -> None:
    chosen = set()
    for group in groups(200):
        bill, compiled = choose_count(*group), choose_count(*group, CompiledModel)
        assert compiled.costs.tobytes() == bill.costs.tobytes()
        assert compiled.chosen == bill.chosen
        chosen.add(bill.chosen)
    assert len(chosen) > 10  # else the groups would hardly differ


def test_equal_costs_and_backlogs_on_a_level_are_taken_alike() -> None:
    random = np.random.default_rng(5)
    counts, loads = (1, 2, 3, 5, 8), np.full((6, 1), 0.99)  # each consumer does just what comes to it
    costs = Costs(0.0, 3600.0, 60.0, 30.0, 60.0)
    inputs = (counts, np.ones(5), loads, GroupState(2, 2, 0.0, 0.0), costs, DEFAULT_HORIZON)
    plain, compiled = (model(*inputs, parts=1) for model in (Model, CompiledModel))
    (expectation,) = expectations_after(random.uniform(1.0, 9.0, (6, 4)), [4])
    for unequal in [0.0, 1.0] * 25:
        value = 60.0 * (random.integers(0, 3, (1, 6, 5, 10)) - np.array(counts)[:, None])
        value += unequal * random.uniform(0.0, 1.0, value.shape)
        steps = [model.earlier(value, loads, (60.0,), expectation).tobytes() for model in (plain, compiled)]
        assert steps[0] == steps[1]


def test_costs_in_parts_add_up_to_the_compiled_bill() -> None:
    (group,) = groups(1)
    *inputs, periods, state, costs, settings = group
    parts = CompiledModel(*inputs, state, costs, settings, parts=3).mean_costs(periods)
    assert parts.sum(axis=0) == pytest.approx(choose_count(*group, CompiledModel).costs)


def test_a_compiled_backtest_is_the_same_backtest() -> None:
    waves = (400 - 300 * np.cos(np.arange(180) / 20)).tolist()
    group = scenario(queues=8, rates=waves, known=60)
    plain, compiled = (compare(group, ["planner"], grids=grids_of(model))[0] for model in (Model, CompiledModel))
    assert compiled == plain
    assert plain.changes


def test_where_the_compiler_is_installed_it_compiles() -> None:
    assert fastest_model() is CompiledModel


def test_without_a_compiler_numpy_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.compiled.find_spec", lambda _: None)
    assert fastest_model() is Model


NOWHERE_TO_WRITE = """
from numba.core.caching import CacheImpl

def refuse(locator):
    raise OSError("read-only")

for locator in CacheImpl._locator_classes:
    locator.ensure_cache_path = refuse
from planner.compiled import fastest_model
print(fastest_model().__name__)
"""


@pytest.mark.slow
def test_where_machine_code_cannot_be_kept_it_is_compiled_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", NOWHERE_TO_WRITE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("CompiledModel\n", "")


def test_a_compiler_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "planner.compiled.horizon", None)
    with pytest.warns(UserWarning, match="numba cannot be loaded .* NumPy decides"):
        assert fastest_model() is Model
