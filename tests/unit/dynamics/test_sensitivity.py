"""Turning one knob turns what it should, and nothing else is needed to see it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import JOIN, Document, client_id, leave, rocketmq_request


def total(change: dict[str, Any], client: str = "5.5.0", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = forecast(rocketmq_request(change, client, **more))["total"]
    return found


def test_waiting_for_calls_saves_the_duplicates_of_a_shutdown() -> None:
    assert total(leave("graceful", 2))["duplicates"]["p50"] > 0
    waits = {"awaitTerminationMillisWhenShutdown": 5000}
    assert total(leave("graceful", 2), settings=waits)["duplicates"]["p95"] == 0


def test_a_shutdown_with_a_backlog_takes_its_wait_and_a_call() -> None:
    """20 threads of 500 ms with a backlog and 5 000 ms: 5.05 s, no duplicates (section 3.10)."""
    waits = {"awaitTerminationMillisWhenShutdown": 5000}
    request = rocketmq_request(leave("graceful", 2), "4.9.8", lag=5000, service_time_s=0.5, settings=waits)
    found = simulate(build_scenario(read_request(request)), DEFAULT)
    stopped = found.membership.times.stopped[:, 1]
    assert (stopped > 5.0).all()
    assert (stopped < 5.5).all()
    assert (found.observed.duplicates == 0).all()


def test_one_broker_shows_every_member_the_newcomer_at_once() -> None:
    several = total(JOIN, brokers=("a", "b", "c", "d"))
    assert total(JOIN, brokers=("a",))["duplicates"]["p95"] < several["duplicates"]["p95"]


def test_without_notifications_members_find_out_at_their_ticks() -> None:
    silent = {"notifyConsumerIdsChangedEnable": False}
    assert total(leave("crash", 2), settings=silent)["settle_s"]["p95"] > 10
    assert total(leave("crash", 2))["settle_s"]["p95"] < 2
    faster = {**silent, "rocketmq.client.rebalance.waitInterval": 2000}
    assert total(leave("crash", 2), settings=faster)["settle_s"]["p95"] < 4


def test_batched_notifications_wait_up_to_15_s() -> None:
    settle = total(leave("crash", 2), settings={"realTimeNotifyConsumerChange": False})["settle_s"]
    assert 8 < settle["p95"] < 17


def test_shorter_expiry_finds_silent_members_sooner() -> None:
    slow, fast = (
        total(leave("silent", 2), settings=s)["pause_s"] for s in ({}, {"serverChannelMaxIdleTimeSeconds": 40})
    )
    assert slow["p05"] > 90
    assert fast["p50"] < 45
    # A broker answers held pulls for 15 s more, from which the idle time counts.
    assert fast["p95"] < 40 + 15 + 5


def test_shorter_locks_free_the_queues_of_a_dead_owner_sooner() -> None:
    short = {"rocketmq.broker.rebalance.lockMaxLiveTime": 5000, "rocketmq.client.rebalance.lockInterval": 1000}
    assert total(leave("crash", 2), orderly=True)["pause_s"]["p05"] > 35
    assert total(leave("crash", 2), orderly=True, settings=short)["pause_s"]["p95"] < 8


def test_an_orderly_call_that_runs_as_its_queue_goes_comes_twice() -> None:
    """Calls run half of the time at 25 messages of 20 ms a second, and nearly never at 25 of 0.2 ms."""
    busy, idle = (total(JOIN, orderly=True, service_time_s=seconds)["duplicates"] for seconds in (0.02, 0.0002))
    assert busy["p50"] >= 1
    assert idle["p95"] == 0


def test_a_restarted_orderly_client_has_its_locks_still() -> None:
    """The lock is the client id's, so its new process need not wait for the old one's to expire."""
    restart = {"kind": "restart", "clients": [client_id(1)], "how": "crash", "interval_s": 5}
    alone = forecast(rocketmq_request(restart, clients=1, orderly=True))["total"]
    assert alone["settle_s"]["p95"] < 10


def test_orderly_cached_messages_delay_the_unlock_until_5_2() -> None:
    assert total(JOIN, "5.1.4", orderly=True, lag=100)["pause_s"]["p05"] > 19
    assert total(JOIN, "5.5.0", orderly=True, lag=100)["pause_s"]["p95"] < 5


def test_orderly_start_of_4_9_4_waits_for_the_lock_renewal() -> None:
    fixed, faulty = (total(leave("graceful", 2), version, orderly=True)["pause_s"] for version in ("4.9.5", "4.9.4"))
    assert fixed["p95"] < 3
    assert faulty["p95"] > 10


def test_a_new_owner_works_off_its_own_backlog_first() -> None:
    assert total(leave("crash", 2), lag=2000)["pause_s"]["p05"] > total(leave("crash", 2))["pause_s"]["p95"] + 5


def test_what_a_member_drops_leaves_its_pool_at_once() -> None:
    """By circle nobody of four keeps a queue as the first one dies; by AVG the second keeps one of 1 000 messages."""
    kept, dropped = (
        total(leave("crash", 1), clients=4, lag=2000, strategy=strategy)["pause_s"]
        for strategy in ("AVG", "AVG_BY_CIRCLE")
    )
    assert dropped["p95"] < 3
    assert kept["p05"] > 1000 / (20 / 0.05)


def test_queues_that_come_together_wait_for_each_other() -> None:
    """What came during the pause is worked off in turn: with one thread the last of the gained queues waits long."""
    slow, quick = (total(leave("crash", 2), threads=threads, rate=2.0)["pause_s"] for threads in (1, 20))
    assert slow["p50"] > quick["p50"] + 0.05


def test_a_lag_within_the_running_calls_does_not_hold_an_orderly_lock() -> None:
    quiet = {"orderly": True, "rate": 2.0}
    assert total(leave("graceful", 2), "5.1.4", lag=1, **quiet)["settle_s"]["p95"] < 3
    assert total(JOIN, "5.1.4", lag=1, **quiet)["pause_s"]["p50"] < 5


def test_a_backlog_that_is_gone_by_then_delays_nobody() -> None:
    """After 105 s of silence the survivor has worked off its 2 000 messages a queue; after a crash it has not."""
    long_gone = {"lag": 2000, "settings": {"serverChannelMaxIdleTimeSeconds": 600}}
    assert total(leave("silent", 2), **long_gone)["pause_s"]["p95"] < 155
    settled = total(leave("silent", 2), lag=2000)["pause_s"]
    assert settled["p95"] < total(leave("silent", 2))["pause_s"]["p95"] + 2


def test_a_lag_of_what_is_being_worked_on_is_no_backlog() -> None:
    assert total(leave("crash", 2), lag=1)["duplicates"] == total(leave("crash", 2))["duplicates"]


def test_the_backlog_flows_off_as_fast_as_the_threads_allow() -> None:
    """One survivor of 400 messages a second has 8 queues of 25: 8 000 messages need 8 000 / (400 - 200) = 40 s."""
    found = total(leave("crash", 2), lag=1000)["drained_s"]
    assert found["p05"] == pytest.approx(40, abs=3)
    assert found["p95"] == pytest.approx(40, abs=3)


def test_a_hot_queue_takes_the_threads_that_others_leave() -> None:
    request = rocketmq_request(leave("crash", 2), rate=0.0)
    request["queues"][0]["lag"] = 8000
    assert forecast(request)["total"]["drained_s"]["p50"] == pytest.approx(20, abs=1)


def test_an_orderly_queue_has_one_thread() -> None:
    request = rocketmq_request(leave("graceful", 2), rate=0.0, orderly=True)
    request["queues"][0]["lag"] = 200
    assert forecast(request)["total"]["drained_s"]["p50"] == pytest.approx(200 * 0.05, abs=1)


def test_who_cannot_keep_up_never_drains() -> None:
    assert total(leave("crash", 2), rate=60.0)["drained_s"] is None


def test_more_messages_more_duplicates_and_burst() -> None:
    slow, fast = (total(leave("crash", 2), rate=rate) for rate in (5.0, 50.0))
    assert fast["duplicates"]["p50"] > 3 * slow["duplicates"]["p50"]
    assert fast["burst_messages"]["p50"] > 5 * slow["burst_messages"]["p50"]


def test_staggered_joins_settle_later() -> None:
    both = [{"id": client_id(8)}, {"id": client_id(9)}]
    at_once, apart = ({"kind": "join", "clients": both, "stagger_s": gap} for gap in (0, 10))
    often = {"heartbeatBrokerInterval": 1_000}  # a queue may wait for one: see test_lost_heartbeat.py
    assert total(apart)["settle_s"]["p05"] > 10 > total(at_once, settings=often)["settle_s"]["p95"]


def test_a_strategy_change_in_sequence_splits_the_brain_for_its_length() -> None:
    """8 queues, c0 AVG, c1 AVG_BY_CIRCLE: 2 doubled and 2 orphans (section 3.13) for as long as both stay."""
    change = {"kind": "strategy", "to": "AVG_BY_CIRCLE", "clients": [client_id(2), client_id(1)], "interval_s": 30}
    found = forecast(rocketmq_request(change))
    middle = found["split_brain"]["per_second"][20]
    assert (middle["doubled"], middle["orphans"]) == (2, 2)
    assert found["split_brain"]["orphan_queue_s"]["p05"] > 50
    assert found["total"]["duplicates"]["p05"] > 2 * 25 * 25
    assert found["total"]["settle_s"]["p05"] > 30


def test_a_strategy_change_that_forgets_a_client_never_ends() -> None:
    change = {"kind": "strategy", "to": "AVG_BY_CIRCLE", "clients": [client_id(2)], "interval_s": 0}
    found = forecast(rocketmq_request(change))
    assert any("two strategies stay" in warning for warning in found["warnings"])


def test_a_lost_broker_moves_queues_by_route_polls_and_ticks() -> None:
    down = {"kind": "broker_down", "broker": "broker-b"}
    assert 20 < total(down)["settle_s"]["p95"] < 52
    quick = {"pollNameServerInterval": 1000, "rocketmq.client.rebalance.waitInterval": 2000}
    assert total(down, settings=quick)["settle_s"]["p95"] < 5


def test_a_broker_that_returns_shows_some_members_only() -> None:
    """Members that have registered there take too much until the others have (section 3.9): both consume."""
    found = forecast(rocketmq_request({"kind": "broker_up", "broker": "broker-b"}, "4.9.8", clients=3))
    assert found["split_brain"]["doubled_queue_s"]["p95"] > 5
    assert found["total"]["duplicates"]["p95"] > 200


def test_a_dead_broker_gives_no_answer_and_so_changes_nothing() -> None:
    """Members go on with the queues of the other broker while the route still names the dead one (section 3.4)."""
    found = total({"kind": "broker_down", "broker": "broker-b"}, clients=2)
    assert found["stall_s"]["p95"] <= 1.1


def test_members_register_at_a_broker_when_they_know_of_it() -> None:
    """4.9 by the next heartbeat after the route poll; 5.2+ as soon as they connect, which is sooner (section 3.9)."""
    later = {
        (client, listens): _registered_after(client, {} if listens else {"enableHeartbeatChannelEventListener": False})
        for client, listens in (("4.9.8", True), ("5.5.0", True), ("5.5.0", False))
    }
    assert later["5.5.0", True] < 0.8 * later["4.9.8", True]
    assert later["5.5.0", True] < 0.8 * later["5.5.0", False]


def _registered_after(client: str, settings: dict[str, Any]) -> float:
    """Return how long after learning of the broker a member registers there in the mean."""
    change = {"kind": "broker_up", "broker": "broker-b"}
    request = read_request(rocketmq_request(change, client, clients=4, settings=settings))
    membership = simulate(build_scenario(request), DEFAULT).membership
    waited = membership.registrations.entered[:, :, 1] - membership.routes.learned
    assert (waited >= 0).all()
    return float(waited.mean())


@pytest.mark.parametrize(("read", "written", "word"), [(2, 2, "nobody consumes"), (4, 8, "no consumer reads")])
def test_queues_that_nobody_reads_are_named(read: int, written: int, word: str) -> None:
    change = {"kind": "queues", "topic": "T", "broker": "broker-a", "read_queues": read, "write_queues": written}
    assert any(word in warning for warning in forecast(rocketmq_request(change, lag=7))["warnings"])


def test_new_queues_share_the_topics_messages() -> None:
    change = {"kind": "queues", "topic": "T", "broker": "broker-a", "read_queues": 12, "write_queues": 8}
    rates = build_scenario(read_request(rocketmq_request(change))).rates
    assert rates.sum() == pytest.approx(8 * 25.0)
    assert sorted(set(rates)) == [0.0, pytest.approx(8 * 25.0 / 12)]
    assert (rates == 0).sum() == 4


def test_a_lost_notification_waits_for_the_tick() -> None:
    scenario = build_scenario(read_request(rocketmq_request(leave("crash", 2))))
    deaf = simulate(scenario, replace(DEFAULT, notification_lost=1.0)).observed.settle_s
    assert np.quantile(deaf, 0.95) > 15 > np.quantile(simulate(scenario, DEFAULT).observed.settle_s, 0.95)


def test_a_lever_lowers_what_it_is_named_for() -> None:
    found = forecast(rocketmq_request(leave("graceful", 2)))
    cause = next(cause for cause in found["causes"] if cause["cause"] == "in_flight")
    better = forecast(rocketmq_request(leave("graceful", 2), settings=cause["lever"]))
    assert better["total"]["duplicates"]["p95"] < found["total"]["duplicates"]["p05"]


def levers(change: Document, **more: Any) -> Document:
    """Return all settings that the forecast of this change names as levers."""
    found: Document = {}
    for cause in forecast(rocketmq_request(change, **more))["causes"]:
        found |= cause.get("lever", {})
    return found


@pytest.mark.parametrize(
    ("name", "change", "as_good", "worse"),
    [
        ("serverChannelMaxIdleTimeSeconds", leave("silent", 2), (20, 40), (41, 120)),
        ("awaitTerminationMillisWhenShutdown", leave("graceful", 2), (5_000, 9_000), (0,)),
        ("heartbeatBrokerInterval", JOIN, (2_000, 5_000), (6_000, 30_000)),
    ],
)
def test_a_lever_is_offered_only_where_the_present_value_is_on_the_worse_side(
    name: str, change: Document, as_good: tuple[int, ...], worse: tuple[int, ...]
) -> None:
    assert [value for value in as_good if name in levers(change, settings={name: value})] == []
    assert [value for value in worse if name not in levers(change, settings={name: value})] == []
    assert name in levers(change)
