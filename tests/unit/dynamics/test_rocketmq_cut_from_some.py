"""A RocketMQ client of any kind that is cut off from some brokers, and reaches them again.

Rules of ``NettyRemotingClient``, ``ConsumerManager#doChannelCloseEvent`` and ``RebalanceLockManager`` (4.9.8, 5.5.0).
"""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, client_id, rocketmq_request

CUT_OFF = 1
"""The life of the second of three clients, which is cut off from broker-b; it owns queues of both brokers."""
PATIENCE = {"heartbeatBrokerInterval": 10_000, "serverChannelMaxIdleTimeSeconds": 30}
LITE: Document = {"options": {"consumer": "lite_pull"}, "threads": 1, "service_time_s": 0.002}
PULL: Document = {"options": {"consumer": "pull"}}
ORDERLY: Document = {"orderly": True, "service_time_s": 0.02}
BY_BROKER: Document = {"settings": {"clientRebalance": False}}
POP: Document = {"options": {"pop_share_queues": -1}, "settings": {"popInvisibleTime": 8_000}, "service_time_s": 0.4}
LOCKED_S = 60.0
"""How long a broker keeps a lock that nobody renews."""


def request(for_s: float, kind: Document, client: str = "5.5.0", **settings: Any) -> Document:
    change = {"kind": "partition", "clients": [client_id(2)], "for_s": for_s, "brokers": ["broker-b"]}
    usual = {"clients": 3, "queues": 8, "rate": 8.0}
    all_settings = {**PATIENCE, **kind.get("settings", {}), **settings}
    return rocketmq_request(change, client, **{**usual, **kind, "settings": all_settings})


def simulated(for_s: float, kind: Document, client: str = "5.5.0", **settings: Any) -> Simulation:
    return simulate(build_scenario(read_request(request(for_s, kind, client, **settings))), DEFAULT)


def total(for_s: float, kind: Document, client: str = "5.5.0", **settings: Any) -> Document:
    found: Document = forecast(request(for_s, kind, client, **settings))["total"]
    return found


def of_lost_queues(found: Simulation) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which columns of the holds are queues of the broker out of reach: the last four of eight."""
    mask: np.ndarray[Any, np.dtype[np.bool_]] = found.tenures.queues >= 4
    return mask


@pytest.mark.parametrize("kind", [LITE, ORDERLY, BY_BROKER])
def test_it_takes_seconds_to_reach_a_broker_again(kind: Document) -> None:
    """Five cuts of 4 to 20 s settled 1.5 to 2.4 s after their end: TCP asks again ever more seldom."""
    brief, longer = (total(for_s, kind)["settle_s"] for for_s in (4.0, 20.0))
    assert 4.2 < brief["p05"] < 5.0
    assert 7.0 < brief["p95"] < 8.6
    assert 20.1 < longer["p05"] < 20.8
    assert 21.5 < longer["p95"] < 23.5


def test_a_broker_that_hears_of_the_old_connection_after_the_cut_drops_who_is_back() -> None:
    """A cut of 4 s was seen to bring 124 messages twice, where brokers wait for 30 s."""
    found = simulated(15.0, LITE, "4.9.8")
    left = found.membership.registrations.left[:, CUT_OFF]
    assert np.isposinf(left[:, 0]).all()
    dropped = np.isfinite(left[:, 1])
    assert 0.05 < dropped.mean() < 0.9
    assert left[dropped, 1].min() > 15.0
    assert (found.membership.registrations.reentered[dropped, CUT_OFF, 1] > left[dropped, 1]).all()
    assert found.observed.duplicates[dropped].sum() > found.observed.duplicates[~dropped].sum() == 0


def test_timers_that_wait_for_a_broker_are_late_and_due_at_once() -> None:
    """Up to 5.1 one thread has them all; each offset of a queue out of reach waits 3 s for its connection."""
    waits = {}
    for name, persist in (("late", 1_000), ("in time", 300_000)):
        found = simulated(60.0, LITE, "4.9.8", persistConsumerOffsetInterval=persist)
        redelivery, reached = (
            found.membership.registrations.reentered[:, CUT_OFF, 1],
            found.membership.times.reached[:, CUT_OFF],
        )
        waits[name] = np.median((redelivery - reached)[np.isfinite(redelivery)])
    assert waits["late"] < 0.5
    assert waits["in time"] > 2.0


def test_a_look_that_waits_for_the_broker_is_answered_before_the_client_is_listed_again() -> None:
    """Who looks every second mostly has one under way then, and drops all it has: two of three such cuts."""
    found = simulated(50.0, BY_BROKER)
    reached = found.membership.times.reached[:, CUT_OFF, None, None]
    mine = (
        (found.tenures.process == CUT_OFF) & (found.tenures.dropped < reached + 1) & (found.tenures.dropped >= reached)
    )
    assert 0.4 < mine.any(axis=(1, 2)).mean() < 0.95
    before = (found.tenures.process == CUT_OFF) & ~found.tenures.dies & (found.tenures.dropped < 50.0)
    assert not before.any()


def test_orderly_queues_of_a_broker_in_reach_stay_locked_and_those_out_of_reach_do_not() -> None:
    found = simulated(110.0, ORDERLY)
    others = (found.tenures.process != CUT_OFF) & (found.tenures.taken > 0) & (found.tenures.taken < 110.0)
    mine = (found.owners.before[found.tenures.queues] == CUT_OFF)[None, :, None]
    lost = of_lost_queues(found)[None, :, None]
    assert not (others & mine & ~lost).any()
    taken = found.tenures.taken[others & mine & lost]
    assert len(taken) > 100
    assert taken.min() > LOCKED_S - 20.0
    for lives_ms, least, most in ((100_000, 0, 10), (25_000, 100, 10_000)):
        found = simulated(50.0, ORDERLY, **{"rocketmq.broker.rebalance.lockMaxLiveTime": lives_ms})
        assert least <= found.observed.duplicates.sum(axis=1).max() <= most


def test_of_a_pull_consumer_only_what_moves_is_told() -> None:
    answer = forecast(request(50.0, PULL))
    assert answer["moved"] == []
    assert [answer["total"][name] for name in ("pause_s", "duplicates", "settle_s")] == [None] * 3


def test_what_was_popped_of_the_broker_out_of_reach_alone_comes_again() -> None:
    some = forecast(request(40.0, POP))
    of_all = request(40.0, POP)
    del of_all["change"]["brokers"]
    every = forecast(of_all)
    assert some["late_messages"] == {"p05": 1, "p50": 1, "p95": 1}
    assert every["late_messages"] == {"p05": 2, "p50": 2, "p95": 2}
    assert 0 < some["total"]["duplicates"]["p50"] < every["total"]["duplicates"]["p50"]
    assert some["total"]["moved_queues"]["p95"] == 0


def test_that_a_broker_may_drop_who_is_back_is_said() -> None:
    said = {name: " ".join(forecast(request(4.0, kind))["warnings"]) for name, kind in (("lite", LITE), ("pop", POP))}
    assert "hears only after the cut" in said["lite"]
    assert "list different members" in said["lite"]
    assert "members" not in said["pop"]
    assert "hears only" not in " ".join(forecast(request(1.0, LITE))["warnings"])


def test_who_reaches_its_broker_in_time_acknowledges_what_it_had_popped() -> None:
    patient = {"popInvisibleTime": 60_000, "heartbeatBrokerInterval": 100_000}
    answer = forecast(request(4.0, POP, **patient))
    assert answer["total"]["duplicates"]["p50"] == 0
    assert 4.0 < answer["redelivered_s"]["p05"] < answer["redelivered_s"]["p50"] < 9.0
