"""How well loads are forecast: ``python -m benchmarks.load_forecasts TRACES`` prints the tables of docs/backtest.md.

Nothing is played and nothing decided: each ten minutes of each public trace the possible loads of five stretches
ahead are compared with what came.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.backtest_scenarios import Recipe, recipes_of, write_scenario
from planner.backtest.policies.planner import minutes
from planner.backtest.scenario import Floats
from planner.demand.futures import DEFAULT_FUTURES, FutureSettings, futures
from planner.demand.outlook import BINS_MIN, EVERY_MIN, LATELY, Band, outlook_of
from planner.demand.recent import MinuteLoad
from planner.demand.reversion import ReversionSettings
from planner.demand.series import MINUTE_S, LoadSeries
from planner.documents.backtest import read_scenario
from planner.errors import BadInputError

MINUTES_A_DAY = 1440
PERCENTILES = (10.0, 25.0, 50.0, 75.0, 90.0)
BANDS = ((10.0, 90.0), (5.0, 95.0))
AT = datetime(2026, 11, 28, tzinfo=UTC)
AS_IT_IS = "as it is"
RULES = {
    AS_IT_IS: DEFAULT_FUTURES,
    "all of the level stays": FutureSettings(reversion=ReversionSettings(trusted_minutes=10**9)),
    "recent errors alone": FutureSettings(
        similar=0, day_offsets=(), reversion=ReversionSettings(trusted_minutes=10**9)
    ),
}


FIRST_RULES = {AS_IT_IS: DEFAULT_FUTURES, "a fixed deviation": FutureSettings(level_minutes=0)}
FIRST_STARTS = 150
FIRST_MINUTES = 180
"""So many minutes are known at the most where nothing was known before them."""


@dataclass(frozen=True)
class Forecasts:
    """What came of one trace's forecasts: losses by rule, and the share of bands that held what came, by stretch.

    ``first`` has the shares of bands of 80 % in the first three hours of a group of which nothing was known, by rule.
    """

    name: str
    losses: dict[str, Floats]
    coverages: tuple[Floats, ...]
    first: dict[str, Floats]


def load_of(recipe: Recipe, traces: Path) -> MinuteLoad:
    """Return a trace by minute, in messages per second, as it would be observed: by intervals of its own."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, _ = read_scenario(write_scenario(recipe, traces, Path(folder)))
    rates = minutes(replace(scenario, history_s=len(scenario.messages) * scenario.interval_s))
    each = max(1, int(scenario.interval_s // MINUTE_S))
    return MinuteLoad(rates.tolist(), [minute % each != 0 for minute in range(len(rates))])


def forecasts_of(recipe: Recipe, traces: Path) -> Forecasts:
    """Return what came of the forecasts of one trace."""
    load = load_of(recipe, traces)
    series = LoadSeries(load=load.rates, averaged=load.averaged)
    losses = {name: _losses(series, partial(_quantiles, settings=settings)) for name, settings in RULES.items()}
    losses |= {"the level": _losses(series, _level), "a day ago": _losses(series, _a_day_ago)}
    first = {name: _first_coverage(load, settings) for name, settings in FIRST_RULES.items()}
    return Forecasts(recipe.name, losses, tuple(_coverage(load, band) for band in BANDS), first)


def _losses(series: LoadSeries, rule: Callable[[LoadSeries], Floats]) -> Floats:
    """Return the mean pinball loss of a rule's percentiles in each stretch, in messages per second."""
    edges = np.concatenate(([0], np.cumsum(BINS_MIN)))
    levels = np.array(PERCENTILES)[:, None] / 100
    total, count = np.zeros(len(BINS_MIN)), 0
    for known in range(_first(series), len(series) - int(edges[-1]) + 1, EVERY_MIN):
        misses = np.diff(series.summed[known + edges]) / np.diff(edges) - rule(series.known_after(known))
        total += np.maximum(levels * misses, (levels - 1) * misses).mean(axis=0)
        count += 1
    return total / count


def _first(series: LoadSeries) -> int:
    """Return how many minutes are known to the first forecast: two days, or a third of what there is."""
    return min(2 * MINUTES_A_DAY, len(series) // 3) // EVERY_MIN * EVERY_MIN


def _quantiles(series: LoadSeries, settings: FutureSettings) -> Floats:
    return np.asarray(np.percentile(futures(series, BINS_MIN, settings), PERCENTILES, axis=0))


def _level(series: LoadSeries) -> Floats:
    return np.full((1, len(BINS_MIN)), series.level[-1])


def _a_day_ago(series: LoadSeries) -> Floats:
    """Return what came a day before; the level where that is not known."""
    first = len(series) - MINUTES_A_DAY
    if first < 0:
        return _level(series)
    edges = first + np.concatenate(([0], np.cumsum(BINS_MIN)))
    return np.asarray(np.diff(series.summed[edges]) / np.diff(edges))[None, :]


def _coverage(load: MinuteLoad, band: Band) -> Floats:
    """Return which share of the bands of ``planner demand`` held what came, by stretch: three days at a time."""
    whole = len(load.rates)
    ends = range(whole, _first(LoadSeries(load=load.rates)), -LATELY * EVERY_MIN)
    seen = [outlook_of(MinuteLoad(load.rates[:end], load.averaged[:end]), AT, band=band) for end in ends]
    stretches = [[(each.inside, each.forecasts) for each in outlook.stretches] for outlook in seen if outlook]
    inside, forecasts = np.array(stretches).sum(axis=0).T
    return np.asarray(inside / forecasts)


def _first_coverage(load: MinuteLoad, settings: FutureSettings) -> Floats:
    """Return which share of the bands held what came, by stretch, each of ``FIRST_STARTS`` begun with nothing known."""
    edges = np.concatenate(([0], np.cumsum(BINS_MIN)))
    span = FIRST_MINUTES + int(edges[-1])
    inside = []
    for start in np.linspace(0, len(load.rates) - span, FIRST_STARTS).astype(int).tolist():
        whole = LoadSeries(load=load.rates[start : start + span], averaged=load.averaged[start : start + span])
        for known in range(EVERY_MIN, FIRST_MINUTES, EVERY_MIN):
            series = whole.known_after(known)
            if series.level[-1] > 0:
                low, high = np.percentile(futures(series, BINS_MIN, settings), BANDS[0], axis=0)
                came = np.diff(whole.summed[known + edges]) / np.diff(edges)
                inside.append((low <= came) & (came <= high))
    return np.asarray(np.mean(inside, axis=0))


def tables(found: Sequence[Forecasts]) -> Iterator[str]:
    """Yield losses over the level's, then coverages, a line for each trace."""
    rules = [*RULES, "a day ago"]
    for stretch, ahead in ((0, "up to 5 minutes ahead"), (len(BINS_MIN) - 1, "60 to 120 minutes ahead")):
        yield f"\n| pinball loss over that of the level alone, {ahead} | {' | '.join(rules)} |"
        yield "|---|" + "---|" * len(rules)
        ratios = [[one.losses[rule][stretch] / one.losses["the level"][stretch] for rule in rules] for one in found]
        for one, row in zip(found, ratios, strict=True):
            yield f"| {one.name} | {' | '.join(f'{ratio:.2f}' for ratio in row)} |"
        yield f"| mean | {' | '.join(f'{mean(column):.2f}' for column in zip(*ratios, strict=True))} |"
    columns = [f"{length} min" for length in BINS_MIN]
    for number, (low, high) in enumerate(BANDS):
        yield f"\n| inside the band of {high - low:g} % | {' | '.join(columns)} |"
        yield "|---|" + "---|" * len(columns)
        for one in found:
            yield f"| {one.name} | {' | '.join(f'{share:.0%}' for share in one.coverages[number])} |"

    yield f"\n| nothing known before: inside the band of 80 % | {' | '.join(FIRST_RULES)} |"
    yield "|---|" + "---|" * len(FIRST_RULES)
    for one in found:
        shares = [", ".join(f"{share:.0%}" for share in one.first[rule]) for rule in FIRST_RULES]
        yield f"| {one.name} | {' | '.join(shares)} |"


def main() -> None:
    """Print the tables of all traces, or of those whose names hold ``--only``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load_forecasts", description=__doc__)
    parser.add_argument("traces", type=Path, help="folder with the public traces")
    parser.add_argument("--only", default="", help="traces whose names hold this text")
    options = parser.parse_args()
    try:
        recipes = recipes_of(options.traces, options.only)
    except BadInputError as error:
        sys.exit(f"{error}")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        print("\n".join(tables(list(pool.map(partial(forecasts_of, traces=options.traces), recipes)))))


if __name__ == "__main__":
    main()
