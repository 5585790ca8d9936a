"""Routes that change where brokers allocate and members pull: each broker by its own copy, until all copies are new."""

from typing import Any

import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.errors import BadInputError
from planner.forecast.rocketmq.membership.scenario import Floats, build_scenario
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, rocketmq_request

BY_BROKER = {"clientRebalance": False}
DOWN, UP = ({"kind": kind, "broker": "broker-b"} for kind in ("broker_down", "broker_up"))
MORE = {"kind": "queues", "topic": "T", "broker": "broker-a", "read_queues": 6, "write_queues": 4}
COPIES_S, STARTED_S, LOOK_S = 30.0, 6.0, 2.5
SOON, RARELY = {"loadBalancePollNameServerInterval": 1_000}, {"pollNameServerInterval": 200_000}


def asked(change: Document, *, strategy: str = "AVG", **settings: Any) -> Document:
    """The answer for three clients of eight queues of 8 a second, 200 ms a message."""
    more = {"clients": 3, "rate": 8.0, "service_time_s": 0.2, "strategy": strategy}
    return forecast(rocketmq_request(change, settings={**BY_BROKER, **settings}, **more))


def routes_learned(**more: Any) -> Floats:
    """Seconds after which each of three clients knows the broker that starts, by trial and client."""
    return simulated(**more).membership.routes.learned


def simulated(**more: Any) -> Simulation:
    """The trials of three clients of eight queues as a broker starts."""
    request = read_request(rocketmq_request(UP, clients=3, rate=8.0, service_time_s=0.2, **more))
    return simulate(build_scenario(request), DEFAULT)


@pytest.mark.parametrize("change", [DOWN, UP, MORE], ids=lambda one: f"{one['kind']}")
def test_the_sooner_brokers_renew_their_routes_the_less_comes_twice(change: Document) -> None:
    usual, soon = (asked(change, **settings)["total"] for settings in ({}, {**SOON, "pollNameServerInterval": 1_000}))
    assert soon["duplicates"]["p95"] < usual["duplicates"]["p95"] / 2
    assert soon["settle_s"]["p50"] < usual["settle_s"]["p50"] - 8


def test_queues_go_back_and_forth_until_the_last_broker_has_the_route() -> None:
    answer = asked(MORE)
    assert COPIES_S - 5 < answer["total"]["settle_s"]["p95"] < COPIES_S + LOOK_S
    assert answer["total"]["duplicates"]["p95"] > 10 * asked(MORE, **SOON)["total"]["duplicates"]["p50"]
    assert [word for word in answer["warnings"] if "of those that started in the same second" in word]
    assert answer["split_brain"]["doubled_queue_s"]["p50"] > 3
    assert {tuple(queue["queue"]) for queue in answer["queues"] if queue["duplicates"]["p50"]} == {
        tuple(queue) for queue in answer["moved"]
    }


def test_a_queue_that_comes_back_had_paused_before_its_new_owner_began() -> None:
    assert asked(MORE)["total"]["pause_s"]["p50"] > 0.3


def test_one_broker_alone_has_nobody_to_differ_from() -> None:
    request = rocketmq_request({**MORE, "read_queues": 10, "write_queues": 8}, clients=3, brokers=["broker-a"])
    alone = forecast({**request, "settings": BY_BROKER})["total"]
    assert alone["duplicates"]["p95"] < asked(MORE)["total"]["duplicates"]["p50"]


def test_who_is_given_a_queue_of_an_unknown_broker_asks_for_the_route_at_once() -> None:
    """``RemoteBrokerOffsetStore#fetchConsumeOffsetFromBroker``; by circle each member has a queue of either broker."""
    learned = routes_learned(strategy="AVG_BY_CIRCLE", settings={**BY_BROKER, **SOON, **RARELY})
    at_once = learned < STARTED_S + 1 + LOOK_S
    assert at_once[:, [0, 2]].all()
    # By circle the second one has the broker's retry queue, too, and may be given that first.
    assert 0.3 < at_once[:, 1].mean() < 0.7
    at_once = routes_learned(strategy="AVG", settings={**BY_BROKER, **SOON, **RARELY}) < STARTED_S + 1 + LOOK_S
    assert (at_once[:, 0].mean() < 0.1, at_once[:, 2].all()) == (True, True)
    assert (routes_learned(strategy="AVG_BY_CIRCLE", settings=RARELY) > STARTED_S + 1 + LOOK_S).mean() > 0.9


def test_a_member_registers_as_its_timer_follows_its_poll() -> None:
    """``MQClientInstance#startScheduledTask``: both every 30 s, a second apart."""
    in_step, apart = (
        simulated(strategy="AVG", settings={**BY_BROKER, "heartbeatBrokerInterval": every_ms}).membership
        for every_ms in (30_000, 31_000)
    )
    assert (in_step.registrations.entered[:, 0, 1] - in_step.routes.learned[:, 0]).max() < 1.001
    assert (apart.registrations.entered[:, 0, 1] - apart.routes.learned[:, 0]).max() > 2.0


def test_who_is_given_none_waits_for_its_own_poll() -> None:
    """By AVG the first member has queues of the old broker alone."""
    answer = asked(UP, **SOON, pollNameServerInterval=60_000)
    assert answer["total"]["settle_s"]["p95"] > 45


def test_clients_that_look_by_their_ticks_have_no_forecast() -> None:
    request = rocketmq_request(MORE, client="5.1.4", settings=BY_BROKER)
    with pytest.raises(BadInputError, match="nobody has watched"):
        forecast(request)


@pytest.mark.parametrize(("beats", "is_in_step"), [(30_000, True), (10_000, True), (20_000, False)])
def test_a_heartbeat_follows_each_route_poll_where_every_poll_has_one(beats: int, is_in_step: bool) -> None:
    """Both timers go at a fixed rate, and began a second apart (``MQClientInstance#startScheduledTask``)."""
    found = simulated(settings={**BY_BROKER, "pollNameServerInterval": 30_000, "heartbeatBrokerInterval": beats})
    waited = (found.membership.registrations.entered[:, :, 1] - found.membership.routes.learned).ravel()
    assert (waited.max() < 1.1) == is_in_step
