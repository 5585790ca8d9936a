"""A RocketMQ client that stands still and goes on: what its brokers make of it, and what it does when it wakes."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, client_id, rocketmq_request

SLEEPER, WOKEN = 1, 3
"""The lives of the client that stands still, among three clients."""


def freeze(for_s: float, *numbers: int) -> Document:
    clients = [client_id(number) for number in numbers or (2,)]
    return {"kind": "freeze", "clients": clients, "for_s": for_s}


def frozen(for_s: float, client: str = "5.5.0", **more: Any) -> Simulation:
    request = rocketmq_request(freeze(for_s), client, clients=3, queues=12, **more)
    return simulate(build_scenario(read_request(request)), DEFAULT)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_short_standstill_stalls_the_clients_queues_and_no_more(orderly: bool) -> None:
    found = forecast(rocketmq_request(freeze(25.0), clients=3, queues=12, orderly=orderly))
    assert found["moved"] == []
    assert {queue["to"] for queue in found["queues"]} == {client_id(2)}
    assert found["total"]["duplicates"]["p95"] == 0
    stall = found["total"]["stall_s"]
    assert (stall["p05"] >= 25, stall["p95"] < 25.4) == (True, True)


def test_a_pull_that_was_given_up_is_tried_again_a_second_later() -> None:
    """A client gives up a pull after 30 s; whether it reads the answer first is not known."""
    assert forecast(rocketmq_request(freeze(29.0)))["total"]["stall_s"]["p95"] < 29.4
    stall = forecast(rocketmq_request(freeze(35.0)))["total"]["stall_s"]
    assert (stall["p05"] < 35.4, 36 < stall["p95"] < 36.5) == (True, True)
    cached = forecast(rocketmq_request(freeze(35.0), lag=5_000))["total"]["stall_s"]
    assert cached["p95"] < 35.4


def test_others_take_over_only_when_brokers_have_given_the_client_up() -> None:
    found = frozen(300.0)
    mine = found.owners.before[found.tenures.queues] == 1
    taken = np.where(np.isin(found.tenures.process, [0, 2]), found.tenures.taken, np.inf).min(axis=2)[:, mine]
    assert 90 < taken.min() < taken.max() < 155


def test_who_looks_before_it_has_registered_again_gives_up_its_queues_first() -> None:
    """It delivers little then; who has registered goes on, and delivers again what the others had delivered.

    So it does, once in some ten times, where its last commit comes after those of the others: the broker where it has
    registered tells them before it asks the one where it has not.
    """
    found = frozen(300.0)
    keeps = (found.tenures.resumed & np.isposinf(found.tenures.dropped)).sum(axis=(1, 2))
    redelivery = found.observed.duplicates.sum(axis=1)
    assert set(keeps.tolist()) == {0, 4}
    assert redelivery[keeps == 4].min() > 4 * 25 * 100
    assert np.quantile(redelivery[keeps == 0], 0.8) < 4 * 25 * 10
    registered, rebalances = (
        found.membership.registrations.entered[:, WOKEN],
        found.membership.rebalances.at[:, WOKEN, 0],
    )
    assert (registered[keeps == 4].min(axis=1) < rebalances[keeps == 4] + 0.01).all()


def test_a_stale_commit_outlives_that_of_a_queue_with_few_messages() -> None:
    """Who gives up a queue and takes it back at once begins where it stood still, unless others have stored since.

    Seen with 4.9.8: two clients gave up their queues 36 and 108 ms after waking and took them back 21 and 51 ms later;
    all, and half, of what the other had delivered came again.
    """
    found = frozen(300.0, "4.9.8", rate=8.0)
    keeps = (found.tenures.resumed & np.isposinf(found.tenures.dropped)).any(axis=(1, 2))
    redelivery = found.observed.duplicates[~keeps].max(axis=1)
    assert 0.05 < (redelivery > 8 * 100).mean() < 0.8


def test_the_owners_are_the_same_in_the_end() -> None:
    found = frozen(300.0)
    assert (found.owners.after == found.owners.before).all()
    last = np.where(np.isposinf(found.tenures.dropped) & found.deliveries.delivers, found.tenures.process, -1).max(
        axis=2
    )
    mine = found.owners.before[found.tenures.queues] == 1
    assert (last[:, mine] == WOKEN).all()


def test_nobody_takes_over_while_all_stand_still() -> None:
    request = rocketmq_request(freeze(200.0, 1, 2))
    found = simulate(build_scenario(read_request(request)), DEFAULT)
    assert found.tenures.taken[np.isfinite(found.tenures.taken)].min() >= 200
    assert found.observed.settle_s.max() < 205


def test_what_is_not_known_is_said() -> None:
    def words(for_s: float) -> str:
        return " ".join(forecast(rocketmq_request(freeze(for_s)))["warnings"])

    assert "not known: either it gives up its queues first" in words(300)
    assert words(60) == ""


def test_a_zombie_is_a_cause_of_its_own() -> None:
    causes = forecast(rocketmq_request(freeze(300.0)))["causes"]
    assert causes[0]["cause"] == "zombie"
    events = [event["event"] for event in forecast(rocketmq_request(freeze(5.0)))["timeline"]]
    assert events == ["sleeps", "wakes", "delivers"]


def test_a_channel_is_idle_from_the_last_pull_on_or_from_the_last_heartbeat_where_nothing_is_pulled() -> None:
    """Real brokers closed channels of frozen clients 0.1 to 15 s after the idle time, or up to 14 s before it."""
    settings = {"serverChannelMaxIdleTimeSeconds": 60}
    request = rocketmq_request(freeze(200.0, 1), clients=4, queues=16, settings=settings)
    scenario = build_scenario(read_request(request))
    found = simulate(scenario, DEFAULT)
    left = found.membership.registrations.left[:, 0]
    pulled = {scenario.queues[pick].broker for pick in np.flatnonzero(found.owners.before == 0).tolist()}
    is_pulled = np.array([broker in pulled for broker in scenario.brokers])
    assert is_pulled.any()
    assert not is_pulled.all()
    assert 60 < left[:, is_pulled].min() <= left[:, is_pulled].max() <= 75
    assert (left[:, ~is_pulled] < 60).mean() > 0.5
    assert found.membership.registrations.notifies_leaving[:, 0].all()
