"""POP: clients that get another strategy, and groups that take over from others."""

from typing import Any

import pytest

from planner.cli.forecast import sentence
from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import Document, client_id, rocketmq_request

EVERYTHING, TWO_SHARES = {"pop_share_queues": -1}, {"pop_share_queues": 1}
NOTHING = {"p05": 0, "p50": 0, "p95": 0}
CLIENTS = 4


def popped(change: Document, options: Document = EVERYTHING, **more: Any) -> Document:
    """The answer for four clients that pop, 200 ms a message."""
    usual = {"clients": CLIENTS, "rate": 8.0, "service_time_s": 0.2, "settings": {"popInvisibleTime": 10_000}}
    return forecast(rocketmq_request(change, options=options, **{**usual, **more}))


def switch(**options: int) -> Document:
    clients = [client_id(number + 1) for number in range(CLIENTS)]
    return {"kind": "strategy", "to": "AVG_BY_CIRCLE", "options": options, "clients": clients, "interval_s": 10.0}


def blue_green(clone_s: float = 1.0, stop_s: float = 0.0) -> Document:
    clients = [{"id": f"10.0.1.{number + 1}@d{number + 1}"} for number in range(CLIENTS)]
    return {"kind": "blue_green", "to_group": "h", "clients": clients, "clone_s": clone_s, "stop_s": stop_s}


def lost(answer: Document) -> str:
    (told,) = (word for word in answer["warnings"] if "never come to h" in word)
    return told.split(" messages")[0]


def test_where_everybody_takes_everything_a_switch_is_a_restart_of_all() -> None:
    answer = popped(switch())
    restart = {"kind": "restart", "how": "graceful", "interval_s": 10.0, "clients": switch()["clients"]}
    assert (answer["moved"], answer["total"]["pause_s"]) == ([], NOTHING)
    assert answer["total"]["duplicates"]["p50"] == pytest.approx(popped(restart)["total"]["duplicates"]["p50"], abs=2)
    assert answer["warnings"] == []


def test_the_strategy_decides_who_shares_what() -> None:
    answer = popped(switch(), TWO_SHARES)
    assert answer["after"] == popped(switch(**TWO_SHARES), TWO_SHARES)["after"] != answer["before"]


def test_the_share_itself_is_changed_by_a_command() -> None:
    with pytest.raises(BadInputError, match="a command to the brokers"):
        popped(switch(pop_share_queues=2), TWO_SHARES)


def test_what_the_old_group_has_popped_is_lost_for_the_new_one_and_told() -> None:
    answer = popped(blue_green())
    assert answer["total"]["duplicates"] == answer["late_messages"] == NOTHING
    assert answer["redelivered_s"] is None
    # 64 a second, 200 ms each: 12.8 calls run
    low, high = map(int, lost(answer).split("–"))
    assert 6 <= low < 12.8 < high <= 21
    assert sentence(answer).startswith("8 queues move; ")
    assert int(lost(popped(blue_green(), lag=10_000)).split("–")[0]) > 100


def test_what_the_old_group_pops_after_the_copy_comes_twice() -> None:
    answer = popped(blue_green(clone_s=1.0, stop_s=6.0))
    assert answer["total"]["duplicates"]["p50"] == pytest.approx(5 * 8 * 8, abs=8)
    (clone,) = (cause for cause in answer["causes"] if cause["effect"] == "duplicates")
    assert clone["cause"] == "clone"


def test_the_first_of_a_group_that_shares_queues_pop_what_waited_and_drop_it() -> None:
    told = popped(blue_green(), TWO_SHARES)
    # 20 threads each; 64 a second wait for three seconds or more
    assert told["total"]["duplicates"]["p05"] == told["late_messages"]["p05"] == 0
    assert 20 <= told["total"]["duplicates"]["p95"] <= CLIENTS * 20
    assert 64 < told["late_messages"]["p95"] < 64 * 6
    assert 10 + 1 + 3 < told["redelivered_s"]["p05"] < told["redelivered_s"]["p95"] < 10 + 1 + 10
    assert [word for word in told["warnings"] if "the first members of the new group pop what has waited" in word]
    assert popped(blue_green(), {"pop_share_queues": CLIENTS - 1})["total"]["duplicates"] == NOTHING


def test_the_longer_nobody_pops_the_more_comes_late() -> None:
    soon, later = (popped({**blue_green(), "start_s": start_s}, TWO_SHARES) for start_s in (1.0, 6.0))
    assert later["late_messages"]["p95"] > soon["late_messages"]["p95"] + 64
    assert later["total"]["duplicates"]["p95"] == pytest.approx(soon["total"]["duplicates"]["p95"], abs=20)


def test_what_is_popped_under_whole_brokers_does_not_undo_the_pause() -> None:
    """Who delivers a queue with its broker at first and with its share in the end has taken it over at first."""
    three = {**blue_green(), "clients": blue_green()["clients"][:3]}
    told = popped(three, TWO_SHARES, queues=4)["total"]
    assert told["pause_s"]["p95"] < told["settle_s"]["p95"] - 0.3


def test_of_members_that_pop_more_than_they_can_begin_in_time_no_figure_is_known() -> None:
    slow = {"service_time_s": 3.0, "settings": {"popInvisibleTime": 5_000}, "rate": 1.0, "lag": 1_000}
    told = popped(blue_green(), TWO_SHARES, **slow)
    figures = {name for name, value in told["total"].items() if value is not None}
    assert (figures, told["late_messages"], told["redelivered_s"]) == ({"moved_queues"}, None, None)
    assert told["after"]
    assert [word for word in told["warnings"] if "more than its threads begin within popInvisibleTime" in word]
    assert not told["causes"]


def test_each_share_that_is_dropped_leaves_a_request_that_takes_one_message() -> None:
    """So few that threads begin all that waits at once."""
    told = popped(blue_green(), TWO_SHARES, rate=0.5)
    assert told["late_messages"]["p05"] == 0
    assert 2 <= told["late_messages"]["p95"] <= 12


def test_what_comes_again_at_once_takes_the_longer_the_fewer_threads_there_are() -> None:
    patient: Document = {"settings": {"popInvisibleTime": 20_000}}
    many, few = (popped(blue_green(), TWO_SHARES, threads=threads, **patient) for threads in (20, 5))
    assert few["redelivered_s"]["p95"] > many["redelivered_s"]["p95"] + 1
