"""One group's load under many policies, cadences and prices: a row for every run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from planner.backtest.compare import DECIDES_BY_PERIOD, GRIDS, WEIGHS_PRICES, all_runs, cheapest
from planner.backtest.play import Run
from planner.backtest.recorded import NotPlayable, PlaySettings, RecordedGroup
from planner.backtest.scenario import Prices, Scenario

AS_IT_WAS: Final = "as it was"

Load = Callable[[PlaySettings], RecordedGroup | NotPlayable]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Which policies are played at which settings; of a setting without values the group's own is played.

    ``every_s`` and ``late_after_s`` in seconds, ``rebalance_h`` in consumer-hours.
    """

    rules: Sequence[str]
    every_s: Sequence[float] = ()
    rebalance_h: Sequence[float] = ()
    late_after_s: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class SweptRun:
    """One run at one setting; what the past does not show of ``AS_IT_WAS`` is ``None``, and so is its tuning.

    ``every_s`` is ``None`` for policies with a period of their own. ``cheapest`` is true of one tuning of each rule and
    setting.
    """

    rule: str
    tuning: str | None
    every_s: float | None
    rebalance_h: float
    late_after_s: float
    hours: float
    rebalances: int
    moved: int | None
    duplicates: float | None
    late_minutes: int
    worst_wait_s: float | None
    cost_h: float
    cheapest: bool


def play_sweep(load: Load, settings: PlaySettings, sweep: Sweep) -> list[SweptRun] | NotPlayable:
    """Return every run of the group at every setting, or why it cannot be played; ``load`` gives it at one of them."""
    rows: list[SweptRun] = []
    for late_after_s in sweep.late_after_s or (settings.late_after_s,):
        recorded = load(replace(settings, late_after_s=late_after_s))
        if isinstance(recorded, NotPlayable):
            return recorded
        prices = [replace(settings.prices, rebalance_h=price) for price in sweep.rebalance_h] or [settings.prices]
        rows += (_of_past(recorded, price) for price in prices)
        for rule in sweep.rules:
            rows += _of_rule(recorded.scenario, rule, sweep.every_s or (settings.every_s,), prices)
    return rows


def _of_past(recorded: RecordedGroup, prices: Prices) -> SweptRun:
    past, late_after_s = recorded.past, recorded.scenario.late_after_s
    return SweptRun(
        rule=AS_IT_WAS,
        tuning=None,
        every_s=None,
        rebalance_h=prices.rebalance_h,
        late_after_s=late_after_s,
        hours=past.hours,
        rebalances=past.rebalances,
        moved=None,
        duplicates=None,
        late_minutes=past.late_minutes,
        worst_wait_s=None,
        cost_h=past.cost_h(prices),
        cheapest=True,
    )


def _of_rule(scenario: Scenario, rule: str, periods: Sequence[float], prices: Sequence[Prices]) -> Iterator[SweptRun]:
    """Yield the rule's runs; those that are the same ones at any price are played once."""
    periods = periods if rule in DECIDES_BY_PERIOD else (scenario.every_s,)
    at_once = [(price,) for price in prices] if rule in WEIGHS_PRICES else [tuple(prices)]
    for every_s, same in product(periods, at_once):
        played = replace(scenario, every_s=every_s, prices=same[0])
        runs = all_runs(played, list(GRIDS[rule](played)))
        for price in same:
            best, billed = cheapest(runs, price), replace(played, prices=price)
            yield from (_of_run(run, billed, rule, is_cheapest=run is best) for run in runs)


def _of_run(run: Run, scenario: Scenario, rule: str, *, is_cheapest: bool) -> SweptRun:
    totals = run.totals
    return SweptRun(
        rule=rule,
        tuning=run.tuning,
        every_s=scenario.every_s if rule in DECIDES_BY_PERIOD else None,
        rebalance_h=scenario.prices.rebalance_h,
        late_after_s=scenario.late_after_s,
        hours=totals.hours,
        rebalances=totals.rebalances,
        moved=totals.moved,
        duplicates=totals.duplicates,
        late_minutes=totals.late_minutes,
        worst_wait_s=totals.worst_wait_s,
        cost_h=totals.cost_h(scenario.prices),
        cheapest=is_cheapest,
    )
