"""POP: clients that stand still or are cut off, and what of their messages comes again."""

from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.unit.dynamics.small_groups import Document, client_id, leave, rocketmq_request

EVERYTHING, TWO_SHARES = {"pop_share_queues": -1}, {"pop_share_queues": 1}
INVISIBLE_S = 10.0
NOTHING = {"p05": 0, "p50": 0, "p95": 0}
ONE_A_BROKER = {"p05": 2, "p50": 2, "p95": 2}


def popped(change: Document, options: Document = EVERYTHING, **settings: Any) -> Document:
    """The answer for four clients that pop, 200 ms a message."""
    invisible = {"popInvisibleTime": int(INVISIBLE_S * 1000), **settings}
    return forecast(asked(change, options, invisible))


def asked(change: Document, options: Document, settings: Document, lag: float = 0) -> Document:
    usual = {"clients": 4, "rate": 8.0, "service_time_s": 0.2}
    return rocketmq_request(change, options=options, settings=settings, lag=lag, **usual)


def away(kind: str, for_s: float) -> Document:
    return {"kind": kind, "clients": [client_id(2)], "for_s": for_s}


def test_who_wakes_in_time_acknowledges_its_calls_and_calls_what_waits_for_it() -> None:
    answer = popped(away("freeze", 5.0))
    assert answer["total"]["duplicates"] == NOTHING
    assert answer["late_messages"] == ONE_A_BROKER
    assert 5.0 <= answer["redelivered_s"]["p05"] < answer["redelivered_s"]["p95"] < 5.4


@pytest.mark.parametrize("kind", ["freeze", "partition"])
def test_what_an_absent_client_had_popped_comes_again_as_if_it_had_died(kind: str) -> None:
    answer, dead = popped(away(kind, 30.0)), popped(leave("crash", 2))
    assert answer["total"]["duplicates"]["p50"] == pytest.approx(dead["total"]["duplicates"]["p50"], abs=1)
    assert answer["late_messages"] == ONE_A_BROKER
    assert INVISIBLE_S + 1.5 < answer["redelivered_s"]["p05"] < answer["redelivered_s"]["p95"] < INVISIBLE_S + 6


@pytest.mark.parametrize("kind", ["freeze", "partition"])
def test_others_go_on_with_everything_however_long_it_takes(kind: str) -> None:
    """Brokers give up the client after 120 s; whoever asks for its queues is given all of them, listed or not."""
    answer = popped(away(kind, 300.0))
    for figure in ("pause_s", "stall_s", "settle_s", "moved_queues"):
        assert answer["total"][figure] == NOTHING, figure
    assert answer["redelivered_s"]["p95"] < INVISIBLE_S + 6
    assert answer["warnings"] == []


def test_shares_change_when_brokers_give_the_client_up_and_again_when_it_is_back() -> None:
    brief, longer = (popped(away("freeze", for_s), TWO_SHARES) for for_s in (30.0, 300.0))
    assert longer["total"]["duplicates"]["p50"] > 1 + brief["total"]["duplicates"]["p50"]
    assert brief["redelivered_s"]["p95"] < 20
    assert longer["redelivered_s"]["p05"] > 300


def test_acknowledgements_are_lost_with_the_connection() -> None:
    """A heartbeat without an answer closes it; until then TCP sends them again when the network is back."""
    often, seldom = ({"popInvisibleTime": 60_000, "heartbeatBrokerInterval": each} for each in (5_000, 100_000))
    assert popped(away("partition", 20.0), **often)["total"]["duplicates"]["p50"] >= 2
    assert popped(away("partition", 20.0), **seldom)["total"]["duplicates"]["p50"] == 0
    assert popped(away("freeze", 20.0), **often)["total"]["duplicates"] == NOTHING


def test_a_pop_that_was_given_up_comes_when_it_is_visible_again() -> None:
    """A client gives up a pop after 25 s; whether it reads the answer first is not known."""
    brief, longer = (popped(away("freeze", for_s), popInvisibleTime=60_000) for for_s in (24.0, 40.0))
    assert brief["redelivered_s"]["p95"] < 24.4
    assert longer["redelivered_s"]["p50"] < 40.4
    assert longer["redelivered_s"]["p95"] > 60


def test_of_a_backlog_who_is_cut_off_calls_what_it_had_popped_and_who_stands_still_does_not() -> None:
    """What both had popped comes again to others: a second time after a cut, the first time after a standstill."""
    cut, frozen = (forecast(asked(away(kind, 30.0), EVERYTHING, {}, 10_000)) for kind in ("partition", "freeze"))
    assert cut["late_messages"] == NOTHING
    assert frozen["late_messages"]["p50"] > 100
    lost, calls = (
        forecast(asked(away(kind, 90.0), EVERYTHING, {}, 10_000))["total"]["duplicates"]["p50"]
        for kind in ("partition", "freeze")
    )
    assert lost > calls + 100
