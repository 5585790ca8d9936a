"""One run a policy for a scenario: each is tuned with hindsight where it has something to tune."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from planner.backtest.observation import Policy
from planner.backtest.play import Run, play
from planner.backtest.policies.druid import Druid, DruidOptions, druid_grid
from planner.backtest.policies.fixed import fixed_grid
from planner.backtest.policies.flink import Flink, FlinkOptions, flink_grid
from planner.backtest.policies.hpa import hpa_grid
from planner.backtest.policies.keda import Keda, ScalerOptions, keda_grid
from planner.backtest.policies.numaflow import Numaflow, NumaflowOptions, numaflow_grid
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
    "keda-defaults": lambda scenario: [Keda(scenario, ScalerOptions())],
    "flink": flink_grid,
    "flink-defaults": lambda scenario: [Flink(scenario, FlinkOptions())],
    "hpa-cpu": hpa_grid,
    "numaflow": numaflow_grid,
    "numaflow-defaults": lambda scenario: [Numaflow(scenario, NumaflowOptions())],
    "druid": druid_grid,
    "druid-defaults": lambda scenario: [Druid(scenario, DruidOptions())],
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
        runs.append(replace(best_run(scenario, list(grids[name](scenario))), policy=name))
    return runs


def best_run(scenario: Scenario, policies: Sequence[Policy]) -> Run:
    """Return the run that costs least at the scenario's prices, the first of equal ones."""
    runs = all_runs(scenario, policies)
    best = replace(cheapest(runs, scenario.prices), settings=tuple(run.totals for run in runs))
    return best if len(runs) == 1 else replace(best, tuning=f"{best.tuning}; best of {len(runs)}")


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
