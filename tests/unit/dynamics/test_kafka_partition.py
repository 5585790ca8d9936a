"""Kafka members that are cut off for a while: what was under way comes through late, and whom nobody heard is out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version
from planner.forecast.kafka.membership.network_recovery import arrival_s, patience_s
from planner.forecast.kafka.request.settings import read_settings
from planner.forecast.kafka.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, kafka_request

EXACT = replace(DEFAULT, retransmit_s=(0.2, 0.2))
SHORT_SESSION = {"session.timeout.ms": 8_000}
STRATEGIES = ["range", "cooperative-sticky", "uniform"]


def cut(for_s: float) -> Document:
    return {"kind": "partition", "clients": ["c1"], "for_s": for_s}


def through(cut_s: float, sent_s: float = 0.0, *, is_java: bool = True, **settings: int) -> float:
    known = {name.replace("_", "."): value for name, value in settings.items()}
    read = read_settings(known, "classic", Version(4, 4), Version(4, 3), is_java=is_java)
    sent = np.array([sent_s])
    closed = sent + patience_s(read, is_java=is_java)
    return float(arrival_s(sent, cut_s, closed, np.array([2.5]), EXACT, np.random.default_rng(1))[0])


@pytest.mark.parametrize(
    ("cut_s", "back_s"), [(0.0, 0.0), (0.1, 0.2), (1.0, 1.4), (4.0, 6.2), (6.2, 6.2), (14.0, 25.4)]
)
def test_what_was_under_way_comes_again_after_twice_as_long_each_time(cut_s: float, back_s: float) -> None:
    assert through(cut_s) == pytest.approx(back_s)
    assert through(cut_s + 0.3, sent_s=0.3) == pytest.approx(back_s + 0.3)


def test_what_is_sent_after_the_cut_is_not_late() -> None:
    assert through(1.0, sent_s=1.5) == 1.5


def test_who_waits_in_vain_closes_the_connection_and_opens_another_one() -> None:
    """After 30 s, or what ``request.timeout.ms`` says; librdkafka waits 60 s, and TCP is sooner."""
    assert through(26.0) == pytest.approx(30.0)
    assert through(14.0, request_timeout_ms=15_000) == pytest.approx(15.0)
    assert through(26.0, is_java=False) == pytest.approx(51.0)


def test_after_a_longer_cut_it_takes_seconds_until_one_of_its_attempts_to_connect_comes_through() -> None:
    assert through(31.0) == pytest.approx(33.5)
    assert through(100.0) == pytest.approx(102.5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_cut_shorter_than_the_session_moves_nothing_and_stalls_longer_than_it_lasts(strategy: str) -> None:
    found = forecast(kafka_request(cut(4.0), strategy))
    assert found["total"]["moved_queues"]["p95"] == 0
    assert found["total"]["duplicates"]["p95"] == 0
    stall = found["total"]["stall_s"]
    assert 6.2 < stall["p05"] < stall["p95"] < 7.5


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_others_take_over_when_the_session_is_over_and_begin_at_the_last_commit(strategy: str) -> None:
    found = forecast(kafka_request(cut(28.0), strategy, settings=SHORT_SESSION))
    assert found["total"]["duplicates"]["p05"] > 0
    assert found["total"]["settle_s"]["p05"] > 28
    events = {event["event"]: event["at_s"] for event in found["timeline"] if event["client"] == "c1"}
    assert 5 < events["leaves"]["p05"] < events["leaves"]["p95"] < 8.5


def test_records_that_come_before_the_word_that_it_is_out_come_twice() -> None:
    """Fetches and heartbeats go by connections of their own, each back at its own time."""
    twice: list[Any] = [
        forecast(kafka_request(cut(28.0), settings=SHORT_SESSION, service_time_s=service_s))["total"]["duplicates"]
        for service_s in (0.001, 0.2)
    ]
    quick, slow = twice
    assert quick["p95"] > slow["p95"] > 0
    assert any(
        cause["cause"] == "zombie" for cause in forecast(kafka_request(cut(28.0), settings=SHORT_SESSION))["causes"]
    )


def test_refusals() -> None:
    with pytest.raises(BadInputError, match="for_s"):
        forecast(kafka_request({"kind": "partition", "clients": ["c1"]}))
    with pytest.raises(BadInputError, match="brokers"):
        forecast(kafka_request({**cut(1.0), "brokers": ["1"]}))
