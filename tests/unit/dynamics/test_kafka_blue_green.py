"""Another group takes over from offsets that were copied: two groups of Kafka that know nothing of each other."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.kafka import read_request
from planner.errors import BadInputError
from planner.forecast.kafka.membership.scenario import NOBODY, build_scenario
from planner.forecast.kafka.simulate import Simulation, simulate
from planner.forecast.kafka.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, kafka_request

STRATEGIES = ["range", "cooperative-sticky", "uniform"]
HASTY = {"group.initial.rebalance.delay.ms": 0}
NEW = [{"id": f"n{number}"} for number in range(3)]
PER_S = 8 * 25


def blue_green(clone_s: float, stop_s: float = 0.0, start_s: float | None = None, members: int = 3) -> Document:
    start_s = max(clone_s, stop_s) if start_s is None else start_s
    times = {"clone_s": clone_s, "stop_s": stop_s, "start_s": start_s}
    return {"kind": "blue_green", "to_group": "h", "clients": NEW[:members], **times}


def simulated(change: Document, strategy: str, **more: Any) -> Simulation:
    return simulate(build_scenario(read_request(kafka_request(change, strategy, **more))), DEFAULT)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_offsets_copied_after_the_end_repeat_nothing(strategy: str) -> None:
    found = forecast(kafka_request(blue_green(2.0), strategy))
    assert found["total"]["duplicates"]["p95"] == 0
    assert set(found["after"]) == {"n0", "n1", "n2"}
    assert len(found["moved"]) == 8


def test_a_new_classic_group_waits_for_more_members() -> None:
    """``group.initial.rebalance.delay.ms``, 3 s, and as much again as others come within it."""
    waits, starts_at_once = (
        forecast(kafka_request(blue_green(2.0), settings=settings))["total"]["pause_s"] for settings in ({}, HASTY)
    )
    assert starts_at_once["p95"] + 2 < waits["p05"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_was_consumed_after_the_copy_comes_twice(strategy: str) -> None:
    """The copy has what was committed by then: up to 5 s less than was consumed, if nobody said otherwise."""
    found = forecast(kafka_request(blue_green(0.0, stop_s=10.0), strategy))
    duplicates = found["total"]["duplicates"]
    assert 10 * PER_S * 0.95 < duplicates["p05"] < duplicates["p95"] < 15 * PER_S * 1.05
    assert [cause["cause"] for cause in found["causes"] if cause["effect"] == "duplicates"] == ["clone"]
    assert any("the 10 s between the copy and the stop" in warning for warning in found["warnings"])


def test_commits_after_each_poll_leave_less_between_copy_and_commit() -> None:
    settings = {"enable.auto.commit": False}
    duplicates = forecast(kafka_request(blue_green(0.0, stop_s=10.0), settings=settings))["total"]["duplicates"]
    assert 10 * PER_S * 0.95 < duplicates["p05"] < duplicates["p95"] < 10 * PER_S * 1.05


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_side_by_side_everything_comes_twice_and_nothing_pauses(strategy: str) -> None:
    found = forecast(kafka_request(blue_green(0.0, stop_s=60.0, start_s=0.0), strategy))
    assert found["total"]["pause_s"]["p95"] == 0
    assert found["total"]["duplicates"]["p05"] > 60 * PER_S * 0.95
    assert any("both groups consume everything for 60 s" in warning for warning in found["warnings"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_neither_group_hears_of_the_other(strategy: str) -> None:
    """The old members keep what they have while the new ones share all partitions among themselves."""
    tenures = simulated(blue_green(0.0, stop_s=60.0, start_s=0.0), strategy).membership.tenures
    of_old = np.isin(tenures.process, [0, 1, 2])
    assert not (of_old & np.isfinite(tenures.assigned_at) & (tenures.assigned_at < 60)).any()
    assert (tenures.revoked_at[of_old] >= 60).all()
    of_new = (tenures.process != NOBODY) & ~of_old & np.isposinf(tenures.revoked_at)
    assert (of_new.sum(axis=0) == 1).all()


def test_what_lowers_the_wait_is_the_brokers_setting() -> None:
    found = forecast(kafka_request(blue_green(2.0)))
    (largest, *_) = found["causes"]
    assert (largest["cause"], largest["lever"]) == ("first_members", {"group.initial.rebalance.delay.ms": 0})


def test_the_time_between_the_groups_is_a_cause_of_its_own() -> None:
    found = forecast(kafka_request(blue_green(20.0), settings=HASTY))
    (largest, *_) = found["causes"]
    assert largest["cause"] == "handover"
    assert largest["share"] > 0.7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start_s": 1.0, "clone_s": 2.0}, "change.start_s: found 1, expected at least clone_s (2)"),
        ({"clone_s": None}, "change.clone_s: found null"),
        ({"to_group": ""}, "change.to_group: found"),
        ({"to_group": "g"}, "expected another group"),
        ({"clients": []}, "expected at least one member"),
        ({"clients": [{"id": "c0"}]}, "is in the group already"),
    ],
)
def test_refusals(change: Document, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        forecast(kafka_request({**blue_green(0, 0, 1), **change}))
    assert words in str(caught.value)
