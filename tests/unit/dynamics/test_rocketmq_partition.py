"""A RocketMQ client that is cut off from all brokers, and comes back with what it owned."""

from typing import Any

import numpy as np

from planner.simulation.dynamics import forecast
from planner.simulation.dynamics.rocketmq.request import read_request
from planner.simulation.dynamics.rocketmq.simulate import Simulation, simulate
from planner.simulation.dynamics.rocketmq.timing import DEFAULT
from planner.simulation.dynamics.rocketmq.world import build_world
from tests.unit.dynamics.small_groups import Document, client_id, rocketmq_request

CUT_OFF, BACK = 1, 3
"""The lives of the client that is cut off, among three clients."""


def partition(for_s: float, *numbers: int) -> Document:
    return {"kind": "partition", "clients": [client_id(number) for number in numbers or (2,)], "for_s": for_s}


def simulated(for_s: float, client: str = "5.5.0", **more: Any) -> Simulation:
    request = rocketmq_request(partition(for_s), client, clients=3, queues=12, **more)
    return simulate(build_world(read_request(request)), DEFAULT)


def test_a_short_cut_stalls_until_lost_packets_are_sent_again() -> None:
    """TCP waits about as long again as the cut has lasted; a client that has given up its connection needs 3 s."""
    brief, longer = (forecast(rocketmq_request(partition(for_s)))["total"] for for_s in (2.0, 60.0))
    assert 2 < brief["stall_s"]["p05"] < brief["stall_s"]["p95"] < 5.1
    assert 60 < longer["stall_s"]["p05"] < longer["stall_s"]["p95"] < 64.1
    assert brief["duplicates"]["p95"] == longer["duplicates"]["p95"] == 0
    assert brief["moved_queues"]["p95"] == 0


def test_others_take_over_only_when_brokers_have_given_the_client_up() -> None:
    found = simulated(300.0)
    mine = found.owners.before[found.holds.queues] == CUT_OFF
    taken = np.where(np.isin(found.holds.life, [0, 2]), found.holds.gained, np.inf).min(axis=2)[:, mine]
    assert 90 < taken.min() < taken.max() < 155


def test_since_5_2_it_registers_as_it_connects_and_mostly_keeps_what_it_had() -> None:
    """It gives up its queues only where it is told by one broker and asks another one, which does not list it yet."""
    found = simulated(300.0)
    keeps = (found.holds.resumed & np.isposinf(found.holds.dropped)).sum(axis=(1, 2))
    assert set(keeps.tolist()) == {0, 4}
    assert (keeps == 4).mean() > 0.5
    assert found.observed.duplicates.sum(axis=1)[keeps == 4].min() > 4 * 25 * 100


def test_before_5_2_it_may_look_before_it_has_registered_again() -> None:
    """Its tick comes within 20 s, its heartbeat within 30 s: it gives up its queues where the tick is first."""
    found = simulated(300.0, "4.9.8")
    drops = (found.holds.resumed & np.isfinite(found.holds.dropped)).any(axis=(1, 2))
    assert 0.4 < drops.mean() < 0.9
    again = found.observed.duplicates.sum(axis=1)
    assert np.median(again[drops]) < np.median(again[~drops])


def test_what_it_repeats_is_said() -> None:
    brief, long = (forecast(rocketmq_request(partition(for_s))) for for_s in (20, 300))
    assert brief["warnings"] == []
    assert "goes on with what it owned" in " ".join(long["warnings"])
    for found in (brief, long):
        assert {"loses", "returns"} <= {event["event"] for event in found["timeline"]}
