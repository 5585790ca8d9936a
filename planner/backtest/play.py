"""Play policies over a scenario, side by side in the same simulated group."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.backtest.observation import Observation, Policy
from planner.backtest.plant import Plant, Totals
from planner.backtest.scenario import SECONDS_AN_HOUR, STEP_S, Floats, Prices, Scenario

HOUR_STEPS = round(SECONDS_AN_HOUR / STEP_S)


@dataclass(frozen=True, slots=True)
class Run:
    """One policy's run: its totals, and what it ordered when, in seconds from the begin of the played part.

    ``hourly`` are the totals by the end of each whole hour.
    """

    policy: str
    tuning: str
    totals: Totals
    changes: tuple[tuple[float, int], ...]
    hourly: tuple[Totals, ...] = ()

    def cost_h(self, prices: Prices) -> float:
        """Return consumer-hours, with rebalances and late minutes at their prices."""
        return self.totals.cost_h(prices)


def play(scenario: Scenario, policies: Sequence[Policy]) -> list[Run]:
    """Return one run a policy, in order; the same seed gives the same runs."""
    plant = Plant(scenario, len(policies))
    changes: list[list[tuple[float, int]]] = [[] for _ in policies]
    hourly: list[list[Totals]] = []
    periods = [max(1, round(policy.every_s / STEP_S)) for policy in policies]
    due = {period: [run for run, other in enumerate(periods) if other == period] for period in set(periods)}
    for step, arrived in enumerate(plant.arrivals.by_step()):
        for period, runs in due.items():
            if step % period == 0:
                _decide(plant, runs, policies, changes)
        plant.advance(arrived)
        if plant.step % HOUR_STEPS == 0:
            hourly.append(plant.totals_by_now())
    plant.finish()
    return [
        Run(policy.name, policy.tuning, totals, tuple(changes[run]), tuple(totals_of[run] for totals_of in hourly))
        for run, (policy, totals) in enumerate(zip(policies, plant.totals, strict=True))
    ]


def _decide(
    plant: Plant, runs: Sequence[int], policies: Sequence[Policy], changes: list[list[tuple[float, int]]]
) -> None:
    lowest, highest = plant.scenario.lowest, plant.scenario.highest
    lag = plant.committed_lag()
    arrived = plant.arrived.copy()
    consumed = arrived - plant.backlog
    for run in runs:
        count = policies[run].decide(
            _observe(plant, run, lag[run], arrived, consumed[run], reads_busy=policies[run].reads_busy)
        )
        if count is None:
            continue
        count = min(max(count, lowest), highest)
        if count != plant.members[run].ordered:
            changes[run].append((plant.now_s, count))
            plant.order(run, count)


def _observe(
    plant: Plant, run: int, lag: Floats, arrived: Floats, consumed: Floats, *, reads_busy: bool
) -> Observation:
    members = plant.members[run]
    return Observation(
        second=plant.now_s,
        lag=lag,
        arrived=arrived,
        consumed=consumed,
        owners=plant.owners[run],
        running=len(members.running),
        ordered=members.ordered,
        busy=plant.take_busy(run) if reads_busy else None,
        next_ready_s=members.starting[0] - plant.now_s if members.starting else None,
    )
