"""A rolling update under a RocketMQ group: every pod is replaced by a new one with a new id."""

from typing import Any

import numpy as np

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, rocketmq_request


def rolling(**settings: Any) -> Document:
    return {"kind": "rolling_update", "ready_s": 12, "max_surge": 1, "max_unavailable": 0, **settings}


def simulated(change: Document, **more: Any) -> Simulation:
    return simulate(build_scenario(read_request(rocketmq_request(change, clients=3, queues=12, **more))), DEFAULT)


def test_everything_moves_to_new_clients() -> None:
    # A heartbeat that is lost makes a queue wait for the next one: see test_lost_heartbeat.py.
    found = forecast(rocketmq_request(rolling(), clients=3, queues=12, settings={"heartbeatBrokerInterval": 1_000}))
    assert list(found["after"]) == ["new-1", "new-2", "new-3"]
    assert len(found["moved"]) == 12
    assert found["total"]["moved_queues"] == {"p05": 12, "p50": 12, "p95": 12}
    # The last pod stops when the third new one is ready.
    assert 36 < found["total"]["settle_s"]["p05"] < found["total"]["settle_s"]["p95"] < 39
    assert found["unread_s"]["p95"] < 5


def test_any_old_pod_may_stop_first() -> None:
    ended = simulated(rolling()).membership.times.ended[:, :3]
    assert set(map(tuple, np.sort(ended, axis=1).tolist())) == {(12.0, 24.0, 36.0)}
    assert {0, 1, 2} == set(ended.argmin(axis=1).tolist())
    words = " ".join(forecast(rocketmq_request(rolling()))["warnings"])
    assert "which old pod stops when is the cluster's choice" in words


def test_a_larger_step_settles_sooner_and_repeats_less() -> None:
    one, all_at_once = (
        forecast(rocketmq_request(rolling(max_surge=surge), clients=3, queues=12))["total"] for surge in (1, "100%")
    )
    assert all_at_once["settle_s"]["p95"] < one["settle_s"]["p05"]
    assert all_at_once["duplicates"]["p50"] < one["duplicates"]["p50"]


def test_the_group_is_a_pod_short_where_none_may_be_added() -> None:
    found = simulated(rolling(max_surge=0, max_unavailable=1))
    assert found.membership.times.ended[:, :3].min() == 0
    assert found.membership.times.constructed[:, 3:].min() < 1


def test_a_pod_that_takes_longer_than_its_grace_is_killed() -> None:
    """Clients that wait for calls of 3 s store nothing when they are killed after one second."""
    waits = {"awaitTerminationMillisWhenShutdown": 9000}
    patient: dict[str, Any] = {"service_time_s": 3.0, "rate": 3.0, "settings": waits}
    killed, spared = (simulated(rolling(grace_s=grace), **patient).membership.times for grace in (1, 30))
    assert not killed.graceful[:, :3].all()
    assert spared.graceful[:, :3].all()
    assert (killed.stopped[:, :3] <= killed.ended[:, :3] + 1).all()
    assert np.isposinf(killed.saved[:, :3][~killed.graceful[:, :3]]).all()
    warned = forecast(rocketmq_request(rolling(grace_s=1), **patient))["warnings"]
    assert any("longer than grace_s" in warning for warning in warned)


def test_new_clients_may_have_names() -> None:
    named = rolling(clients=[{"id": "new-a"}, {"id": "new-b"}])
    assert set(forecast(rocketmq_request(named, clients=2))["after"]) == {"new-a", "new-b"}
