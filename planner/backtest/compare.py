"""One run a policy for a scenario: each is tuned with hindsight where it has something to tune."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from planner.backtest.observation import Policy
from planner.backtest.play import Run, play
from planner.backtest.policies.fixed import fixed_grid
from planner.backtest.policies.flink import flink_grid
from planner.backtest.policies.hpa import hpa_grid
from planner.backtest.policies.keda import keda_grid
from planner.backtest.policies.optimum import optimum_grid
from planner.backtest.policies.planner import Planner
from planner.backtest.policies.smallest import SmallestCount
from planner.backtest.scenario import Scenario

GRIDS: Final[dict[str, Callable[[Scenario], Iterable[Policy]]]] = {
    "planner": lambda scenario: [Planner(scenario)],
    "smallest-count": lambda scenario: [SmallestCount(scenario)],
    "keda": keda_grid,
    "flink": flink_grid,
    "hpa-cpu": hpa_grid,
    "fixed": fixed_grid,
    "optimum": optimum_grid,
}
"""Policy -> the settings of it that are played; the cheapest is the answer. The planner's two rules have one each."""
POLICY_NAMES: Final = tuple(GRIDS)
OPTIMUM: Final = "optimum"
MOST_CELLS: Final = 20_000
"""Runs × queues that are played side by side, which bounds memory."""


def compare(scenario: Scenario, names: Sequence[str], report: Callable[[str], None] = lambda _: None) -> list[Run]:
    """Return the cheapest run of each policy, in order; ``report`` gets each name before it is played."""
    runs = []
    for name in names:
        report(name)
        runs.append(best_run(scenario, list(GRIDS[name](scenario))))
    return runs


def best_run(scenario: Scenario, policies: Sequence[Policy]) -> Run:
    """Return the run that costs least at the scenario's prices, the first of equal ones."""
    at_once = max(1, MOST_CELLS // len(scenario.queues))
    runs: list[Run] = []
    for first in range(0, len(policies), at_once):
        runs += play(scenario, policies[first : first + at_once])
    return _tried(min(runs, key=lambda run: run.cost_h(scenario.prices)), len(runs))


def _tried(run: Run, settings: int) -> Run:
    if settings == 1:
        return run
    return replace(run, tuning=f"{run.tuning}; best of {settings}")
