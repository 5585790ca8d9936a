"""When members look, against the client's own loop played through for one member and one trial after the other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.process_times import NEVER, ProcessTimes
from planner.forecast.rocketmq.membership.rebalances import member_rebalances
from planner.forecast.rocketmq.membership.scenario import Scenario, build_scenario
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import rocketmq_request

ROUND_S = 0.25
CALIBRATION = replace(DEFAULT, query_s=(ROUND_S, ROUND_S))
WAIT_S = 20.0


def service_loop(notified: list[float], constructed: float, gap_s: float, until: float, ended: float) -> list[float]:
    """Return the looks of ``RebalanceService#run``: wait for a wake-up or the time to be up, look unless too soon.

    A wake-up that comes while nobody waits is remembered (``ServiceThread#hasNotified``), several count as one.
    """
    rebalances: list[float] = []
    last_end, now, patience, noticed = constructed, constructed, WAIT_S, -np.inf
    while not rebalances or rebalances[-1] <= until:
        waiting = [max(wake, now) for wake in notified if wake > noticed]
        now = min([*waiting, now + patience])
        noticed = now
        if now - last_end < gap_s - 1e-9:
            patience = gap_s - (now - last_end)
            continue
        if now >= ended:
            break
        rebalances.append(now)
        # What wakes the service during its round makes it go round once more.
        now = last_end = now + ROUND_S
        patience = WAIT_S
    return rebalances


def newcomers(version: str, count: int) -> Scenario:
    change = {"kind": "join", "clients": [{"id": f"c{number}"} for number in range(count)]}
    return build_scenario(read_request(rocketmq_request(change, version, clients=0, trials=1)))


@settings(max_examples=200, deadline=None)
@pytest.mark.parametrize(("version", "gap_s"), [("4.9.8", 0.0), ("5.1.4", 0.0), ("5.5.0", 1.0)])
@given(
    notified=st.lists(st.floats(1.5, 60), max_size=12, unique=True).map(sorted),
    ready=st.floats(0.2, 1.4),
    until=st.floats(0, 70),
    ended=st.one_of(st.just(NEVER), st.floats(2, 90)),
)
def test_looks_are_those_of_the_clients_loop(
    version: str, gap_s: float, notified: list[float], ready: float, until: float, ended: float
) -> None:
    scenario = newcomers(version, 2)
    row = np.ones((1, 2))
    times = ProcessTimes(
        0.1 * row,
        0.1 * row,
        ended * row,
        ended * row,
        ended * row,
        *[np.zeros((1, 2), dtype=bool)] * 2,
        ended * row,
        -NEVER * row,
    )
    told = np.tile(np.array(notified), (1, 2, 1)).reshape(1, 2, len(notified))
    random = np.random.default_rng(1)
    found = member_rebalances(scenario, times, told, ready * row, until * row, np.zeros(1), CALIBRATION, random)
    expected = service_loop([ready, *notified], 0.1, gap_s, until, ended)
    for process in range(2):
        rebalances = found.at[0, process]
        np.testing.assert_allclose(rebalances[np.isfinite(rebalances)], expected)


def test_one_notification_sets_all_ticks_to_one_phase() -> None:
    scenario = build_scenario(read_request(rocketmq_request({"kind": "broker_down", "broker": "broker-a"}, clients=3)))
    shape = (scenario.request.trials, 3)
    always, never = np.full(shape, -np.inf), np.full(shape, NEVER)
    times = ProcessTimes(always, always, never, never, never, *[np.zeros(shape, dtype=bool)] * 2, never, always)
    told = np.full((*shape, 1), 25.0)
    until, random = np.full(shape, 60.0), np.random.default_rng(1)
    found = member_rebalances(scenario, times, told, always, until, np.zeros(shape[0]), CALIBRATION, random)
    last = np.where(np.isfinite(found.at), found.at, -np.inf).max(axis=2)
    # A member that looked less than a second before is held back for the rest of that second.
    assert np.ptp(last, axis=1).max() <= 1.0 + ROUND_S
    assert np.median(np.ptp(last, axis=1)) < 1e-9
