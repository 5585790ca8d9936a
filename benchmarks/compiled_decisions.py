"""``python -m benchmarks.compiled_decisions TRACES``: the planner's play of a trace, by NumPy and by machine code."""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.backtest_scenarios import Cut, recipes_of, write_scenario
from planner.backtest.play import Run, play
from planner.backtest.policies.planner import Planner
from planner.backtest.scenario import STEP_S, Scenario
from planner.compiled.horizon import CompiledModel
from planner.decision.horizon import Model
from planner.decision.weighing import WeighingSettings
from planner.documents.backtest import read_scenario

HOURS_A_DAY = 24


def main() -> None:
    """Print processor time a decision by NumPy and by machine code, and how many times less the second takes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled_decisions", description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--only", default="", help="scenarios with this in their names")
    parser.add_argument("--every-s", type=float, default=60.0)
    parser.add_argument("--hours", type=float, default=12.0)
    options = parser.parse_args()
    print("| scenario | decisions | NumPy, ms each | compiled, ms each | times less |\n|---|---|---|---|---|")
    for recipe in recipes_of(options.traces, options.only):
        with tempfile.TemporaryDirectory() as folder:
            cut = Cut(days=options.hours / HOURS_A_DAY)
            written = write_scenario(recipe, options.traces, Path(folder), cut, every_s=options.every_s)
            scenario, _ = read_scenario(written)
        decisions = scenario.steps * STEP_S / options.every_s
        (plain, numpy_s), (compiled, compiled_s) = (timed(scenario, model) for model in (Model, CompiledModel))
        if compiled != plain:
            raise SystemExit(f"{recipe.name}: the two decided differently")
        each = f"{numpy_s / decisions * 1e3:.1f} | {compiled_s / decisions * 1e3:.1f}"
        print(f"| {recipe.name} | {decisions:,.0f} | {each} | {numpy_s / compiled_s:.1f} |", flush=True)


def timed(scenario: Scenario, model: type[Model]) -> tuple[Run, float]:
    """Return the planner's run, and the seconds of processor time that it took."""
    began = time.process_time()
    (run,) = play(scenario, [Planner(scenario, WeighingSettings(model=model))])
    return run, time.process_time() - began


if __name__ == "__main__":
    main()
