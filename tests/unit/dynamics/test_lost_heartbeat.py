"""Since 5.2 a starting client may take queues that brokers let it pull only after its next heartbeat (issue 3434)."""

import json
from typing import Final

import numpy as np

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, client_id, rocketmq_request

LEVER: Final = '"heartbeatBrokerInterval": 5000'


def request(newcomers: int, client: str = "5.5.0", **settings: int) -> Document:
    change = {"kind": "join", "clients": [{"id": client_id(number)} for number in range(7, 7 + newcomers)]}
    return rocketmq_request(change, client, clients=2, queues=12, settings=settings)


def simulated(newcomers: int, client: str = "5.5.0", **settings: int) -> Simulation:
    return simulate(build_scenario(read_request(request(newcomers, client, **settings))), DEFAULT)


def lost(found: Simulation) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether it happens to anybody, by trial."""
    waits: np.ndarray[tuple[int], np.dtype[np.bool_]] = (found.starts.delays["lost_heartbeat"] > 0).any(axis=(1, 2))
    return waits


def test_it_happens_to_as_many_newcomers_as_was_seen_whatever_the_seed() -> None:
    assert lost(simulated(1)).mean() == 0.035
    assert 0.06 < lost(simulated(2)).mean() < 0.08


def test_older_clients_look_at_once_and_meet_no_other_heartbeat() -> None:
    assert not lost(simulated(2, "5.1.4")).any()


def test_pulls_are_refused_until_the_next_heartbeat_or_the_next_change() -> None:
    found = simulated(1)
    delays = found.starts.delays["lost_heartbeat"]
    assert 25 < delays.max() <= 31
    short = simulated(1, heartbeatBrokerInterval=4_000).starts.delays["lost_heartbeat"]
    assert 3 < short.max() <= 5


def test_one_newcomer_is_within_the_ninety_percent_and_two_are_not() -> None:
    """What is told of one start in thirty is told of one in fifteen where two start."""
    one, two = (forecast(request(count))["total"]["settle_s"]["p95"] for count in (1, 2))
    assert one < 5
    assert two > 25


def test_the_cause_and_what_bounds_it_are_named() -> None:
    (cause,) = (one for one in forecast(request(2))["causes"] if one["cause"] == "lost_heartbeat")
    assert LEVER in json.dumps(cause["lever"])
