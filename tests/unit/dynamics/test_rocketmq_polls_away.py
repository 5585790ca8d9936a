"""Applications that poll while one stands still or is cut off, and while a broker dies and comes back.

Rules of ``DefaultLitePullConsumerImpl``, ``RebalanceLitePullImpl`` and ``RemoteBrokerOffsetStore`` (4.9.8, 5.5.0).
"""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.handover.tenures import NOBODY
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import Simulation, simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, client_id, rocketmq_request

LITE, PULL = {"consumer": "lite_pull"}, {"consumer": "pull"}
RATE, SHARE = 8.0, 4
"""Messages a second and queue; queues of each of three clients."""
AWAY = 1
"""The life of the client that is away."""


def freeze(for_s: float) -> Document:
    return {"kind": "freeze", "clients": [client_id(2)], "for_s": for_s}


def cut(for_s: float, **more: Any) -> Document:
    return {"kind": "partition", "clients": [client_id(2)], "for_s": for_s, **more}


DOWN, UP = ({"kind": kind, "broker": "broker-b"} for kind in ("broker_down", "broker_up"))


def request(change: Document, options: Document = LITE, **more: Any) -> Document:
    """Three clients with four queues each, one thread, 2 ms a message."""
    threads = {} if options == PULL else {"threads": 1}
    usual = {"options": options, "clients": 3, "queues": 12, "rate": RATE, "service_time_s": 0.002, **threads}
    return rocketmq_request(change, **{**usual, **more})


def simulated(change: Document, options: Document = LITE, **more: Any) -> Simulation:
    return simulate(build_scenario(read_request(request(change, options, **more))), DEFAULT)


def total(change: Document, options: Document = LITE, **more: Any) -> Document:
    found: Document = forecast(request(change, options, **more))["total"]
    return found


@pytest.mark.parametrize("change", [freeze(10.0), cut(1.0)])
def test_a_short_absence_stalls_the_clients_queues_and_repeats_nothing(change: Document) -> None:
    found = total(change)
    assert found["duplicates"]["p95"] == 0
    assert found["moved_queues"]["p95"] == 0
    assert change["for_s"] <= found["stall_s"]["p05"] <= found["settle_s"]["p95"] < change["for_s"] + 6


@pytest.mark.parametrize("change", [freeze(300.0), cut(300.0)])
def test_who_takes_over_begins_where_the_one_that_is_away_stored_last(change: Document) -> None:
    """It commits into memory and stores what is there each 5 s: up to 10 s lie before the change, 5 s in the mean."""
    found = simulated(change)
    is_first = np.isin(found.tenures.process, [0, 2]) & (np.cumsum(found.tenures.process != NOBODY, axis=2) == 2)
    assert is_first.any()
    lacking = -found.deliveries.start[is_first]
    assert 0 <= lacking.min() < 0.2 * RATE * 10
    assert lacking.mean() == pytest.approx(RATE * 5, rel=0.15)
    assert 0.8 * RATE * 10 < lacking.max() <= RATE * 10 + 1


@pytest.mark.parametrize("change", [freeze(300.0), cut(300.0)])
def test_storing_more_often_repeats_less_of_it(change: Document) -> None:
    causes = {one["cause"]: one for one in forecast(request(change))["causes"]}
    lever = causes["uncommitted"]["lever"]
    assert lever == {"autoCommitIntervalMillis": 1000, "persistConsumerOffsetInterval": 1000}
    lowered = {one["cause"]: one["mean"] for one in forecast(request(change, settings=lever))["causes"]}
    assert lowered.get("uncommitted", 0.0) < 0.5 * causes["uncommitted"]["mean"]


def test_who_polls_has_no_retry_queue_whose_pull_a_broker_answers_late() -> None:
    """Only push consumers subscribe ``%RETRY%``: its last pull is answered up to 15 s after a client has gone."""
    settings = {"serverChannelMaxIdleTimeSeconds": 60}
    lite, pushed = (
        simulated(freeze(200.0), options, settings=settings).membership.registrations.left[:, AWAY]
        for options in (LITE, {})
    )
    assert lite.max() < 60 + 5.2
    assert pushed.max() > 60 + 10


def test_threads_that_wait_for_answers_have_waited_too_long_after_half_a_minute() -> None:
    """Each pulls again a second later; a push client reads most answers first. Both freezes of 40 s that were seen."""
    patient = {"serverChannelMaxIdleTimeSeconds": 120}
    lite, pushed = (total(freeze(40.0), options, settings=patient)["settle_s"] for options in (LITE, {}))
    assert (lite["p05"], lite["p95"]) == (pytest.approx(41.0, abs=0.05), pytest.approx(41.3, abs=0.2))
    assert pushed["p50"] < 40.5
    assert total(freeze(29.0), settings=patient)["settle_s"]["p95"] < 29.5


def test_pulls_of_one_broker_fail_and_pause_together_after_a_cut() -> None:
    """Seen in the clients' logs: all threads of a broker wait for the connection that one of them opens."""
    found = simulated(cut(20.0), brokers=("broker-a",), queues=12)
    is_back = found.tenures.resumed
    assert is_back.sum(axis=(1, 2)).tolist() == [SHARE] * len(is_back)
    earliest = np.where(is_back, found.starts.first, np.inf).min(axis=(1, 2))
    latest = np.where(is_back, found.starts.first, -np.inf).max(axis=(1, 2))
    assert (latest - earliest).max() < 0.01


def test_what_a_broker_forgot_is_told_where_one_comes_back() -> None:
    def words(change: Document, options: Document = LITE, **settings: int) -> str:
        return " ".join(forecast(request(change, options, settings=settings))["warnings"])

    assert "broker-b gives its queues out from what it has on its disk: if it died and has come back, up to 10 s" in (
        words(UP)
    )
    assert "up to 6 s" in words(UP, autoCommitIntervalMillis=1000)
    assert "on its disk" not in words(DOWN) + words(UP, {})


def test_a_broker_that_dies_makes_queues_of_the_other_one_move_that_repeat_what_was_not_committed() -> None:
    lite, pushed = total(DOWN), total(DOWN, {})
    assert lite["moved_queues"] == pushed["moved_queues"]
    moved = lite["moved_queues"]["p50"]
    assert moved > 0
    comes = 2 * RATE  # what the dead broker got comes to the queues that are left
    assert lite["duplicates"]["p50"] - pushed["duplicates"]["p50"] == pytest.approx(moved * comes * 2.5, rel=0.5)


@pytest.mark.parametrize("change", [freeze(10.0), freeze(300.0), cut(300.0), DOWN, UP])
def test_of_a_pull_consumer_only_owners_are_told(change: Document) -> None:
    answer, usual = forecast(request(change, PULL)), forecast(request(change))
    assert (answer["before"], answer["after"], answer["moved"]) == (usual["before"], usual["after"], usual["moved"])
    unknown = ("pause_s", "stall_s", "duplicates", "burst_messages", "settle_s", "drained_s")
    assert [answer["total"][name] for name in unknown] == [None] * len(unknown)
    assert any("the application of a pull consumer decides" in word for word in answer["warnings"])


def test_when_owners_of_a_pull_consumers_queues_learn_of_it_is_told() -> None:
    events = {event["event"] for event in forecast(request(freeze(300.0), PULL))["timeline"]}
    assert {"sleeps", "wakes", "removed", "takes", "drops"} <= events
    assert "delivers" not in events


@pytest.mark.parametrize("change", [freeze(300.0), cut(300.0)])
def test_nothing_is_said_of_what_a_pull_consumer_delivers_as_it_comes_back(change: Document) -> None:
    pull, lite = (" ".join(forecast(request(change, options))["warnings"]) for options in (PULL, LITE))
    assert "keeps its queues until it rebalances" in pull
    assert "delivers again" not in pull
    assert "delivers again" in lite
