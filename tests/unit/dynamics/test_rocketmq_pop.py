"""POP: who shares what, what comes again and when, and what has no forecast."""

from typing import Any

import pytest

from planner.cli.forecast import sentence
from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import JOIN, Document, client_id, leave, rocketmq_request

EVERYTHING, TWO_SHARES = {"pop_share_queues": -1}, {"pop_share_queues": 1}
INVISIBLE_S = 10.0
NOTHING = {"p05": 0, "p50": 0, "p95": 0}


def popped(change: Document, options: Document = EVERYTHING, **more: Any) -> Document:
    """The answer for four clients that pop, 200 ms a message."""
    settings = {"popInvisibleTime": int(INVISIBLE_S * 1000), **more.pop("settings", {})}
    usual = {"options": options, "clients": 4, "rate": 8.0, "service_time_s": 0.2}
    return forecast(rocketmq_request(change, **{**usual, **more, "settings": settings}))


def test_where_everybody_takes_everything_nothing_moves_and_nobody_waits() -> None:
    answer = popped(JOIN)
    assert (answer["moved"], answer["queues"]) == ([], [])
    assert answer["after"][client_id(9)] == [["T", "broker-a", -1], ["T", "broker-b", -1]]
    for figure in ("pause_s", "stall_s", "duplicates", "settle_s", "burst_messages"):
        assert answer["total"][figure] == NOTHING, figure
    assert answer["late_messages"] == NOTHING
    assert answer["redelivered_s"] is None


def test_the_calls_of_a_dead_client_come_again_when_they_are_visible() -> None:
    answer = popped(leave("crash", 2))
    # 64 a second, 200 ms each: 12.8 calls run, a quarter of them in the client that dies.
    assert 1 <= answer["total"]["duplicates"]["p50"] <= 5
    assert answer["total"]["duplicates"]["p95"] <= 9
    assert answer["total"]["pause_s"]["p95"] == answer["total"]["stall_s"]["p95"] == 0
    assert answer["redelivered_s"]["p05"] > INVISIBLE_S + 1.5
    assert answer["redelivered_s"]["p95"] < INVISIBLE_S + 10


def test_what_comes_again_is_told_although_nothing_moves() -> None:
    assert sentence(popped(JOIN)) == "Nothing moves, nothing pauses."
    answer = popped(leave("graceful", 2))
    twice, last = answer["total"]["duplicates"], answer["redelivered_s"]
    assert f"{twice['p05']}–{twice['p95']} messages come twice" in sentence(answer)
    assert f"the last of them after {last['p05']:.0f}–{last['p95']:.0f} s" in sentence(answer)
    assert not [cause for cause in answer["causes"] if "awaitTerminationMillisWhenShutdown" in cause.get("lever", {})]


def test_what_comes_again_waits_for_the_invisible_time() -> None:
    longer = popped(leave("crash", 2), settings={"popInvisibleTime": 60_000})
    assert longer["redelivered_s"]["p05"] > 60
    assert longer["total"]["duplicates"] == popped(leave("crash", 2))["total"]["duplicates"]


def test_who_loses_a_share_acknowledges_none_of_its_calls() -> None:
    answer = popped(JOIN, TWO_SHARES)
    assert answer["total"]["duplicates"]["p95"] > 0
    assert popped(JOIN)["total"]["duplicates"] == NOTHING


def test_a_queue_that_one_sharer_keeps_does_not_move() -> None:
    answer = popped(leave("crash", 2), TWO_SHARES)
    before, after = answer["before"], answer["after"]
    kept = [queue for client in after for queue in after[client] if queue in before[client]]
    assert all(queue not in kept for queue in answer["moved"])


def test_a_queue_whose_sharers_all_change_moves_and_waits() -> None:
    change = {"kind": "leave", "clients": [client_id(1), client_id(4)], "how": "crash"}
    answer = popped(change, TWO_SHARES, queues=4)
    for queue in answer["moved"]:
        had = {client for client, queues in answer["before"].items() if queue in queues}
        has = {client for client, queues in answer["after"].items() if queue in queues}
        assert not had & has
    assert answer["total"]["moved_queues"]["p50"] == len(answer["moved"])


def test_all_drop_what_they_have_when_whole_brokers_are_shared_no_longer() -> None:
    answer = popped(JOIN, TWO_SHARES, clients=2)
    assert answer["before"][client_id(1)] == [["T", "broker-a", -1], ["T", "broker-b", -1]]
    assert answer["moved"] == []
    assert answer["total"]["stall_s"]["p50"] == pytest.approx(0.6, abs=0.2)
    # 12.8 calls run, in two clients that drop the brokers: none of them is acknowledged.
    assert 8 <= answer["total"]["duplicates"]["p50"] <= 17
    assert answer["late_messages"]["p50"] == 4
    assert popped(JOIN, TWO_SHARES, clients=3)["total"]["stall_s"]["p50"] == 0


def test_a_silent_client_takes_what_the_broker_still_answers() -> None:
    assert popped(leave("silent", 2))["late_messages"] == {"p05": 2, "p50": 2, "p95": 2}


def test_what_a_client_has_popped_of_a_backlog_comes_late() -> None:
    assert popped(leave("crash", 2), lag=10_000)["late_messages"]["p50"] > 10


def test_members_that_cannot_keep_up_together_are_told() -> None:
    busy = popped(JOIN, rate=100.0)
    assert [word for word in busy["warnings"] if "together cannot keep up: 800 messages a second come, 500" in word]
    assert busy["total"]["drained_s"] is None
    assert not popped(JOIN)["warnings"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"settings": {"timerWheelEnable": False}}, "lets nobody pop"),
        ({"service_time_s": 10.0}, "again and again"),
        ({"settings": {"clientRebalance": True}}, "allocate for themselves"),
        ({"orderly": True}, "allocate for themselves"),
        ({"versions": {"client": "5.5.0", "broker": "4.9.7"}}, "expected 5.0"),
    ],
)
def test_what_does_not_pop_is_refused(more: Document, why: str) -> None:
    change = more.pop("change", JOIN)
    with pytest.raises(BadInputError, match=why):
        popped(change, **more)
