"""One group's load under many policies, cadences and prices: a row for every run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Final

from planner.backtest.compare import DECIDES_BY_PERIOD, GRIDS, WEIGHS_PRICES, Grids, all_runs, cheapest
from planner.backtest.observation import Policy
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


def play_sweep(load: Load, settings: PlaySettings, sweep: Sweep, grids: Grids = GRIDS) -> list[SweptRun] | NotPlayable:
    """Return every run of the group at every setting, or why it cannot be played; ``load`` gives it at one of them."""
    rows: list[SweptRun] = []
    for late_after_s in sweep.late_after_s or (settings.late_after_s,):
        recorded = load(replace(settings, late_after_s=late_after_s))
        if isinstance(recorded, NotPlayable):
            return recorded
        prices = [replace(settings.prices, rebalance_h=price) for price in sweep.rebalance_h] or [settings.prices]
        rows += (_of_past(recorded, price) for price in prices)
        rows += _play_together(list(_plays(recorded.scenario, sweep, prices, grids)), recorded.scenario)
    return rows


@dataclass(frozen=True, slots=True)
class _Play:
    """One rule's tunings at one setting, and the prices at which their runs are the same ones."""

    rule: str
    scenario: Scenario
    prices: Sequence[Prices]
    policies: Sequence[Policy]


def _plays(scenario: Scenario, sweep: Sweep, prices: Sequence[Prices], grids: Grids) -> Iterator[_Play]:
    """Yield what has to be played at one allowed wait: of rules that no price changes once for all prices."""
    for rule in sweep.rules:
        periods = sweep.every_s if sweep.every_s and rule in DECIDES_BY_PERIOD else (scenario.every_s,)
        at_once = [(price,) for price in prices] if rule in WEIGHS_PRICES else [tuple(prices)]
        for every_s, same in product(periods, at_once):
            played = replace(scenario, every_s=every_s, prices=same[0])
            yield _Play(rule, played, same, list(grids[rule](played)))


def _play_together(plays: Sequence[_Play], scenario: Scenario) -> Iterator[SweptRun]:
    """Yield the runs of all plays, side by side: in nothing that the simulated group goes by do they differ."""
    runs = iter(all_runs(scenario, [policy for it in plays for policy in it.policies]))
    for it in plays:
        own = list(islice(runs, len(it.policies)))
        for price in it.prices:
            best, billed = cheapest(own, price), replace(it.scenario, prices=price)
            yield from (_of_run(run, billed, it.rule, is_cheapest=run is best) for run in own)


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
