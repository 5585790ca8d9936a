"""The nine backtests of docs/backtest.md: ``make backtest TRACES=FOLDER`` prints their table."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from benchmarks.backtest_scenarios import Cut, Recipe, recipes_of, write_scenario
from planner.backtest.compare import OPTIMUM, compare, grids_of
from planner.backtest.play import Run, play
from planner.backtest.policies.planner import Planner
from planner.backtest.scenario import STEP_S, Prices, Scenario
from planner.compiled import fastest_model
from planner.decision.weighing import WeighingSettings
from planner.demand.futures import FutureSettings
from planner.demand.reversion import ReversionSettings
from planner.documents.backtest import read_scenario
from planner.errors import BadInputError

POLICIES = ("planner", "keda", "flink", OPTIMUM)
DAY_S = 86_400


def _as_it_is(scenario: Scenario) -> Planner:
    return Planner(scenario, WeighingSettings(model=fastest_model()))


def _by_futures(settings: FutureSettings) -> Callable[[Scenario], Planner]:
    return lambda scenario: Planner(scenario, WeighingSettings(paths=settings, model=fastest_model()))


def _stated_capacity(factor: float) -> Callable[[Scenario], Planner]:
    return lambda scenario: _as_it_is(replace(scenario, capacity=factor * scenario.capacity))


def _without_change_prices(scenario: Scenario) -> Planner:
    return _as_it_is(replace(scenario, prices=replace(scenario.prices, rebalance_h=0.0)))


ALL_STAYS = ReversionSettings(trusted_minutes=10**9)
WITHOUT_PAST = FutureSettings(least_paths=10**6, level_minutes=0, reversion=ALL_STAYS)
ABLATIONS: Mapping[str, Callable[[Scenario], Planner]] = {
    "level alone": _by_futures(replace(WITHOUT_PAST, unknown_deviation=0.0)),
    "no past": _by_futures(WITHOUT_PAST),
    "no likeness": _by_futures(FutureSettings(similar=0)),
    "no earlier days": _by_futures(FutureSettings(day_offsets=(), days=0, similar=0)),
    "no noise in the level": _by_futures(FutureSettings(reversion=ALL_STAYS)),
    "no price of changes": _without_change_prices,
    "capacity stated +20 %": _stated_capacity(1.2),
    "capacity stated −20 %": _stated_capacity(0.8),
    "as it is": _as_it_is,
}
"""The planner without one of its parts, or given a wrong capacity; costs are over the last one's."""


def cell(run: Run, prices: Prices, best: float, days: float) -> str:
    """Return cost over optimum (consumer-hours; rebalances a day; late minutes)."""
    totals = run.totals
    over = run.cost_h(prices) / best
    return f"{over:.2f} ({totals.hours:,.0f} h; {totals.rebalances / days:.0f}; {totals.late_minutes})"


def measure(
    recipe: Recipe, traces: Path, policies: Sequence[str], cut: Cut, **fields: object
) -> tuple[list[str], list[float]]:
    """Return one scenario's cells, and each policy's cost over the last one's; without policies those of ablations."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, _ = read_scenario(write_scenario(recipe, traces, Path(folder), cut, **fields))
    if policies:
        runs = compare(scenario, policies, grids=grids_of(fastest_model()))
    else:
        runs = play(scenario, [make(scenario) for make in ABLATIONS.values()])
    days = scenario.steps * STEP_S / DAY_S
    best = runs[-1].cost_h(scenario.prices)
    cells = [cell(run, scenario.prices, best, days) for run in runs]
    return cells, [run.cost_h(scenario.prices) / best for run in runs]


def table(
    recipes: Sequence[Recipe], traces: Path, policies: Sequence[str], cut: Cut, **fields: object
) -> Iterator[str]:
    """Yield the lines of the table, each once it is measured."""
    columns = policies or list(ABLATIONS)
    yield f"| scenario | {' | '.join(columns)} |"
    yield "|---|" + "---|" * len(columns)
    ratios = []
    for recipe in recipes:
        cells, over = measure(recipe, traces, policies, cut, **fields)
        ratios.append(over)
        yield f"| {recipe.name} | {' | '.join(cells)} |"
    for name, summary in (("mean", mean), ("worst", max)):
        yield f"| {name} | {' | '.join(f'{summary(column):.3f}' for column in zip(*ratios, strict=True))} |"


def main() -> None:
    """Print the table of all scenarios, or of those whose names hold ``--only``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path, help="folder with the public traces")
    parser.add_argument("--only", default="", help="scenarios whose names hold this text")
    parser.add_argument("--rebalance-h", type=float, default=0.25, help="price of a rebalance in consumer-hours")
    parser.add_argument("--every-s", type=int, default=60, help="seconds between two decisions of the planner")
    parser.add_argument("--pod-start-s", type=int, default=30, help="seconds until a pod is ready")
    parser.add_argument(
        "--policies", default=",".join(POLICIES), help="policies to play; costs are over the last one's"
    )
    parser.add_argument("--ablations", action="store_true", help="play the planner without one part each instead")
    parser.add_argument(
        "--skip-days", type=float, default=0.0, help="days of the played part that are known beforehand"
    )
    parser.add_argument("--days", type=float, help="days to play")
    options = parser.parse_args()
    try:
        recipes = recipes_of(options.traces, options.only)
    except BadInputError as error:
        sys.exit(f"{error}")
    prices = {"rebalance_h": options.rebalance_h, "late_minute_h": 1.0}
    fields = {"prices": prices, "every_s": options.every_s, "pod_start_s": options.pod_start_s}
    cut = Cut(options.skip_days, options.days)
    policies = [] if options.ablations else options.policies.split(",")
    for line in table(recipes, options.traces, policies, cut, **fields):
        print(line, flush=True)


if __name__ == "__main__":
    main()
