"""Play policies over a scenario, side by side in the same simulated group."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.backtest.observation import Observation, Policy
from planner.backtest.scenario import SECONDS_AN_HOUR, STEP_S, Floats, Prices, Scenario
from planner.backtest.simulated_group import SimulatedGroup, Totals

HOUR_STEPS = round(SECONDS_AN_HOUR / STEP_S)


@dataclass(frozen=True, slots=True)
class Run:
    """One policy's run: its totals, and what it ordered when, in seconds from the begin of the played part.

    ``hourly`` are the totals by the end of each whole hour, ``longest_waits`` the seconds that the longest wait took
    in each of equal stretches of the play. ``settings`` are the totals of all settings of the policy that were played.
    """

    policy: str
    tuning: str
    totals: Totals
    changes: tuple[tuple[float, int], ...]
    hourly: tuple[Totals, ...] = ()
    longest_waits: tuple[float, ...] = ()
    settings: tuple[Totals, ...] = ()

    def cost_h(self, prices: Prices) -> float:
        """Return consumer-hours, with rebalances and late minutes at their prices."""
        return self.totals.cost_h(prices)


def play(scenario: Scenario, policies: Sequence[Policy]) -> list[Run]:
    """Return one run a policy, in order; the same seed gives the same runs."""
    simulated = SimulatedGroup(scenario, len(policies))
    changes: list[list[tuple[float, int]]] = [[] for _ in policies]
    hourly: list[list[Totals]] = []
    periods = [max(1, round(policy.every_s / STEP_S)) for policy in policies]
    due = {period: [run for run, other in enumerate(periods) if other == period] for period in set(periods)}
    for step, arrived in enumerate(simulated.arrivals.by_step()):
        for period, runs in due.items():
            if step % period == 0:
                _decide(simulated, runs, policies, changes)
        simulated.advance(arrived)
        if simulated.step % HOUR_STEPS == 0:
            hourly.append(simulated.totals_by_now())
    simulated.finish()
    return [
        Run(
            policy.name,
            policy.tuning,
            totals,
            tuple(changes[run]),
            tuple(totals_of[run] for totals_of in hourly),
            tuple(simulated.longest_waits[run].tolist()),
        )
        for run, (policy, totals) in enumerate(zip(policies, simulated.totals, strict=True))
    ]


def _decide(
    simulated: SimulatedGroup, runs: Sequence[int], policies: Sequence[Policy], changes: list[list[tuple[float, int]]]
) -> None:
    lowest, highest = simulated.scenario.lowest, simulated.scenario.highest
    lag = simulated.committed_lag()
    arrived = simulated.arrived.copy()
    consumed = arrived - simulated.backlog
    for run in runs:
        count = policies[run].decide(
            _observe(simulated, run, lag[run], arrived, consumed[run], reads_busy=policies[run].reads_busy)
        )
        if count is None:
            continue
        count = min(max(count, lowest), highest)
        if count != simulated.members[run].ordered:
            changes[run].append((simulated.now_s, count))
            simulated.order(run, count)


def _observe(
    simulated: SimulatedGroup, run: int, lag: Floats, arrived: Floats, consumed: Floats, *, reads_busy: bool
) -> Observation:
    members = simulated.members[run]
    return Observation(
        second=simulated.now_s,
        lag=lag,
        arrived=arrived,
        consumed=consumed,
        owners=simulated.owners[run],
        running=len(members.running),
        ordered=members.ordered,
        busy=simulated.take_busy(run) if reads_busy else None,
        next_ready_s=members.starting[0] - simulated.now_s if members.starting else None,
    )
