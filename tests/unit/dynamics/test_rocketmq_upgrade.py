"""Clients that restart one by one with another release: each behaves as its own, and the two live side by side."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.errors import BadInputError
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, client_id, rocketmq_request


def upgrade(to: str, *numbers: int, interval_s: float = 10.0) -> Document:
    clients = [client_id(number) for number in numbers or (1, 2, 3)]
    return {"kind": "upgrade", "to": to, "clients": clients, "interval_s": interval_s}


def simulated(change: Document, client: str, **more: Any) -> Simulation:
    request = rocketmq_request(change, client, clients=3, queues=12, **more)
    return simulate(build_scenario(read_request(request)), DEFAULT)


def test_nothing_moves_in_the_end() -> None:
    settings = {"heartbeatBrokerInterval": 1_000}  # a queue may wait for one: see test_lost_heartbeat.py
    found = forecast(rocketmq_request(upgrade("5.5.0"), "4.9.8", clients=3, queues=12, settings=settings))
    assert found["moved"] == []
    assert found["total"]["duplicates"]["p05"] > 0
    # The last of three, 10 s apart, is shut down after 20 s, starts, and takes its queues back.
    assert 20 < found["total"]["settle_s"]["p05"] < found["total"]["settle_s"]["p95"] < 26
    assert found["unread_s"]["p95"] < 5


def first_pull_delays(found: Simulation, processes: list[int]) -> set[float]:
    takes = np.isin(found.tenures.process, processes) & np.isfinite(found.tenures.taken)
    return set(found.starts.delays["first_pull"][takes].tolist())


def test_old_processes_keep_their_habits_and_new_ones_have_theirs() -> None:
    """4.9 pulls a queue that it takes at once, 5.x after 500 ms; only 4.9 loses a race of versions."""
    found = simulated(upgrade("5.5.0"), "4.9.8")
    assert first_pull_delays(found, [0, 1, 2]) == {0.0}
    assert first_pull_delays(found, [3, 4, 5]) == {0.5}
    races = found.starts.delays["version_race"]
    assert set(races[np.isin(found.tenures.process, [0, 1, 2])].tolist()) == {0.0, 1.0}
    assert set(races[np.isin(found.tenures.process, [3, 4, 5])].tolist()) == {0.0}


def least_gap(found: Simulation, process: int) -> float:
    at = found.membership.rebalances.at[:, process]
    both = np.isfinite(at[:, 1:])
    return float((at[:, 1:][both] - at[:, :-1][both]).min())


def test_the_least_time_between_looks_comes_with_5_2() -> None:
    found = simulated(upgrade("5.5.0"), "4.9.8")
    assert least_gap(found, 2) < 0.5
    assert least_gap(found, 3) >= 1.0


def test_to_the_same_release_is_a_restart_at_once() -> None:
    same, strategy = (
        forecast(rocketmq_request(change, "5.5.0", clients=3, queues=12))["total"]
        for change in (upgrade("5.5.0"), {**upgrade("AVG"), "kind": "strategy"})
    )
    assert same == strategy


def test_a_setting_may_be_of_either_release() -> None:
    settings = {"rocketmq.client.rebalance.minInterval": 200}
    assert forecast(rocketmq_request(upgrade("5.5.0"), "4.9.8", clients=3, settings=settings))["moved"] == []
    with pytest.raises(BadInputError, match=r"minInterval: found with client 5\.1\.4"):
        forecast(rocketmq_request(upgrade("5.1.4"), "4.9.8", clients=3, settings=settings))


def test_a_release_without_a_model_is_named() -> None:
    warnings = forecast(rocketmq_request(upgrade("6.0.0"), clients=3))["warnings"]
    assert any("client 6.0.0 has no model of its own" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"to": "new"}, "change.to: found"),
        ({"to": None}, "change.to: found null"),
        ({"clients": []}, "expected at least one client"),
        ({"clients": ["nobody"]}, "is not in the request"),
        ({"interval_s": -1}, "change.interval_s: found -1"),
    ],
)
def test_refusals(change: Document, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        forecast(rocketmq_request({**upgrade("5.5.0"), **change}, clients=3))
    assert words in str(caught.value)
