"""POP: brokers that die or start, and topics that get other queues; brokers give out queues by their own routes."""

from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.unit.dynamics.small_groups import Document, rocketmq_request

EVERYTHING, TWO_SHARES = {"pop_share_queues": -1}, {"pop_share_queues": 1}
INVISIBLE_S, ROUTE_S = 10.0, 30.0
NOTHING = {"p05": 0, "p50": 0, "p95": 0}
DOWN, UP = ({"kind": kind, "broker": "broker-b"} for kind in ("broker_down", "broker_up"))
OFTEN = {"loadBalancePollNameServerInterval": 1_000}


def resize(count: int) -> Document:
    return {"kind": "queues", "topic": "T", "broker": "broker-b", "read_queues": count}


def popped(change: Document, options: Document = EVERYTHING, **settings: Any) -> Document:
    """The answer for four clients that pop eight queues, 200 ms a message."""
    invisible = {"popInvisibleTime": int(INVISIBLE_S * 1000), **settings}
    return forecast(
        rocketmq_request(change, options=options, clients=4, rate=8.0, service_time_s=0.2, settings=invisible)
    )


def test_a_broker_that_dies_gives_nothing_again_until_it_is_back() -> None:
    answer = popped(DOWN)
    for figure in ("pause_s", "stall_s", "duplicates", "settle_s"):
        assert answer["total"][figure] == NOTHING, figure
    assert (answer["late_messages"], answer["redelivered_s"]) == (NOTHING, None)
    # 4 queues of 8 a second, in 5 s and the time of a call
    assert [word for word in answer["warnings"] if "when broker-b is back it gives up to 166 messages again" in word]


@pytest.mark.parametrize("change", [DOWN, resize(2), resize(6)], ids=lambda one: f"{one['kind']}")
def test_shares_change_as_a_broker_learns_of_the_route_and_members_look(change: Document) -> None:
    usual, often = (popped(change, TWO_SHARES, **settings) for settings in ({}, OFTEN))
    assert usual["total"]["duplicates"]["p95"] > 0
    assert INVISIBLE_S + 5 < usual["redelivered_s"]["p50"] < INVISIBLE_S + ROUTE_S + 20 + 6
    assert often["redelivered_s"]["p50"] < usual["redelivered_s"]["p50"] - 5


def test_a_broker_that_starts_is_popped_when_an_older_one_knows_of_it() -> None:
    usual, often = popped(UP), popped(UP, **OFTEN)
    assert usual["total"]["duplicates"]["p50"] == 0
    assert usual["total"]["settle_s"]["p95"] < 6 + ROUTE_S + 21
    assert often["total"]["settle_s"]["p50"] < usual["total"]["settle_s"]["p50"]
    assert [word for word in usual["warnings"] if "makes members pull unless the group's POP mode" in word]


def test_who_pops_whole_brokers_has_new_queues_at_once() -> None:
    answer = popped(resize(6))
    assert answer["total"]["settle_s"]["p95"] < 0.1
    assert answer["total"]["duplicates"] == answer["late_messages"] == NOTHING
    assert answer["total"]["moved_queues"] == NOTHING
    assert popped(resize(6), TWO_SHARES)["total"]["settle_s"]["p50"] > 5


def test_the_calls_of_queues_that_go_are_acknowledged_no_more() -> None:
    """``AckMessageProcessor`` refuses queues that are no longer read; the messages come again from the retry topic."""
    answer = popped(resize(1))
    # three queues of 8 a second, 200 ms each
    assert 3 <= answer["total"]["duplicates"]["p50"] <= 7
    assert {queue["queue"][1] for queue in answer["queues"] if queue["duplicates"]["p95"]} == {"broker-b"}
    assert INVISIBLE_S + 1.5 < answer["redelivered_s"]["p05"] < answer["redelivered_s"]["p95"] < INVISIBLE_S + 6


def test_no_split_brain_is_told_where_several_have_each_queue_all_along() -> None:
    assert "split_brain" not in popped(resize(6), TWO_SHARES)
    assert "split_brain" in forecast(rocketmq_request(UP))


def test_of_a_broker_that_starts_where_queues_are_shared_only_who_owns_what_is_known() -> None:
    told, shared = popped(UP, TWO_SHARES), popped(UP)
    figures = {name for name, value in told["total"].items() if value is not None}
    assert (figures, told["late_messages"], told["redelivered_s"]) == ({"moved_queues"}, None, None)
    assert told["after"]
    assert [word for word in told["warnings"] if "lists few members at first" in word]
    assert shared["total"]["duplicates"] is not None
    assert not [word for word in shared["warnings"] if "lists few members at first" in word]
