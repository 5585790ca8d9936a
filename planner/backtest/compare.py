"""One run a policy for a scenario: each is tuned with hindsight where it has something to tune."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from planner.backtest.observation import Policy
from planner.backtest.play import Run, play
from planner.backtest.policies.druid import druid_grid
from planner.backtest.policies.fixed import fixed_grid
from planner.backtest.policies.flink import flink_grid
from planner.backtest.policies.hpa import hpa_grid
from planner.backtest.policies.keda import keda_grid
from planner.backtest.policies.numaflow import numaflow_grid
from planner.backtest.policies.optimum import optimum_grid
from planner.backtest.policies.planner import Planner
from planner.backtest.policies.schedule import schedule_grid
from planner.backtest.policies.smallest import SmallestCount
from planner.backtest.scenario import Prices, Scenario
from planner.decision.horizon import Model
from planner.decision.weighing import WeighingSettings
from planner.errors import BadInputError
from planner.text.words import did_you_mean

Grids = Mapping[str, Callable[[Scenario], Iterable[Policy]]]
"""Policy -> the settings of it that are played; the cheapest is the answer. The planner's two rules have one each."""
GRIDS: Final[Grids] = {
    "planner": lambda scenario: [Planner(scenario)],
    "smallest-count": lambda scenario: [SmallestCount(scenario)],
    "keda": keda_grid,
    "flink": flink_grid,
    "hpa-cpu": hpa_grid,
    "numaflow": numaflow_grid,
    "druid": druid_grid,
    "schedule": schedule_grid,
    "fixed": fixed_grid,
    "optimum": optimum_grid,
}
POLICY_NAMES: Final = tuple(GRIDS)
DECIDES_BY_PERIOD: Final = frozenset({"planner", "smallest-count"})
"""Policies that decide each ``every_s`` of the scenario; the others have periods of their own."""
WEIGHS_PRICES: Final = frozenset({"planner", "optimum"})
"""Policies that decide by the scenario's prices: runs of the others are the same ones at any price."""
OPTIMUM: Final = "optimum"
MOST_CELLS: Final = 20_000
"""Runs × queues that are played side by side, which bounds memory."""


def grids_of(model: type[Model]) -> Grids:
    """Return ``GRIDS`` with the planner's decisions taken by this model of the horizon."""
    return {**GRIDS, "planner": lambda scenario: [Planner(scenario, WeighingSettings(model=model))]}


def compare(
    scenario: Scenario, names: Sequence[str], report: Callable[[str], None] = lambda _: None, grids: Grids = GRIDS
) -> list[Run]:
    """Return the cheapest run of each policy, in order; ``report`` gets each name before it is played."""
    runs = []
    for name in names:
        report(name)
        runs.append(best_run(scenario, list(grids[name](scenario))))
    return runs


def best_run(scenario: Scenario, policies: Sequence[Policy]) -> Run:
    """Return the run that costs least at the scenario's prices, the first of equal ones."""
    runs = all_runs(scenario, policies)
    return _tried(cheapest(runs, scenario.prices), len(runs))


def all_runs(scenario: Scenario, policies: Sequence[Policy]) -> list[Run]:
    """Return one run a policy, in order; at most ``MOST_CELLS`` of them × queues are played side by side."""
    at_once = max(1, MOST_CELLS // len(scenario.queues))
    runs: list[Run] = []
    for first in range(0, len(policies), at_once):
        runs += play(scenario, policies[first : first + at_once])
    return runs


def cheapest(runs: Sequence[Run], prices: Prices) -> Run:
    """Return the run that costs least at these prices, the first of equal ones."""
    return min(runs, key=lambda run: run.cost_h(prices))


def find_policies(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of policies, each once. Raises ``BadInputError`` for one that nobody knows."""
    for name in names:
        if name not in POLICY_NAMES:
            close = did_you_mean(name, POLICY_NAMES)
            raise BadInputError(f"option --play: found {name!r}, expected one of {', '.join(POLICY_NAMES)}{close}")
    return tuple(dict.fromkeys(names))


def _tried(run: Run, settings: int) -> Run:
    if settings == 1:
        return run
    return replace(run, tuning=f"{run.tuning}; best of {settings}")
