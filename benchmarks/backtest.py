"""The nine backtests of docs/backtest.md: ``make backtest TRACES=FOLDER`` prints their table."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from benchmarks.backtest_scenarios import RECIPES, Recipe, check_traces, write_scenario
from planner.backtest.compare import OPTIMUM, compare
from planner.backtest.play import Run
from planner.backtest.scenario import STEP_S, Prices
from planner.documents.backtest import read_scenario
from planner.errors import BadInputError

POLICIES = ("planner", "keda", "flink", OPTIMUM)
DAY_S = 86_400


def cell(run: Run, prices: Prices, best: float, days: float) -> str:
    """Return cost over optimum (consumer-hours; rebalances a day; late minutes)."""
    totals = run.totals
    over = run.cost_h(prices) / best
    return f"{over:.2f} ({totals.hours:,.0f} h; {totals.rebalances / days:.0f}; {totals.late_minutes})"


def measure(recipe: Recipe, traces: Path, **fields: object) -> tuple[list[str], list[float]]:
    """Return one scenario's cells, and each policy's cost over the optimum's."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, _ = read_scenario(write_scenario(recipe, traces, Path(folder), **fields))
    runs = compare(scenario, POLICIES)
    days = scenario.steps * STEP_S / DAY_S
    best = runs[-1].cost_h(scenario.prices)
    cells = [cell(run, scenario.prices, best, days) for run in runs]
    return cells, [run.cost_h(scenario.prices) / best for run in runs]


def table(recipes: Sequence[Recipe], traces: Path, **fields: object) -> Iterator[str]:
    """Yield the lines of the table, each once it is measured."""
    yield f"| scenario | {' | '.join(POLICIES)} |"
    yield "|---|" + "---|" * len(POLICIES)
    ratios = []
    for recipe in recipes:
        cells, over = measure(recipe, traces, **fields)
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
    options = parser.parse_args()
    try:
        check_traces(options.traces)
    except BadInputError as error:
        sys.exit(f"{error}")
    recipes = [recipe for recipe in RECIPES if options.only.casefold() in recipe.name.casefold()]
    prices = {"rebalance_h": options.rebalance_h, "late_minute_h": 1.0}
    for line in table(recipes, options.traces, prices=prices, every_s=options.every_s, pod_start_s=options.pod_start_s):
        print(line, flush=True)


if __name__ == "__main__":
    main()
