"""Single delays, read off hand-written courses, and the spreads that they propose."""

from typing import Any

import numpy as np
import pytest

from planner.forecast.kafka.membership.process_times import CALM
from tests.conformance.kafka.delays import delays
from tests.conformance.kafka.fit import busy_spread
from tests.conformance.record import Record


def seen(change: dict[str, Any], course: dict[str, list[list[Any]]], **request: Any) -> Record:
    asked = {"protocol": "classic", "strategy": "range", "since_rebalance_s": 9.0, "change": change, **request}
    return Record("0" * 12, "kafka", asked, {"course": course}, {})


def test_a_join_tells_when_members_heard_and_how_long_each_step_took() -> None:
    course = {
        "t/0": [["m1", -9.0, -5.0, 0.1, 0.12], ["m1", 0.16, 0.18, 5.0, None]],
        "t/1": [["m2", -9.0, -5.0, 0.1, 0.15], ["m9", 0.17, 0.27, 5.0, None]],
    }
    found = delays([seen({"kind": "join", "clients": [{"id": "m9"}]}, course)])
    assert found["told_s less assigned_s and beat_late_s, up to 4 beats"] == pytest.approx([0.12, 0.15])
    assert found["handled_s, twice, and assign_s"] == pytest.approx([0.01])
    assert found["fetch_s"] == pytest.approx([0.02, 0.1])


def test_the_end_of_a_member_that_closes_is_no_word_of_a_rebalance() -> None:
    course = {
        "t/0": [["m1", -9.0, -5.0, 0.0, 0.02], ["m2", 1.13, 1.2, 5.0, None]],
        "t/1": [["m2", -9.0, -5.0, 1.0, 1.1], ["m2", 1.13, 1.14, 5.0, None]],
    }
    found = delays([seen({"kind": "leave", "how": "graceful", "clients": ["m1-5f0c"]}, course)])
    assert found["close_s, and the rest of a poll"] == [0.02]
    assert found["told_s less assigned_s and beat_late_s, up to 4 beats"] == pytest.approx([1.1])


def test_changes_of_several_members_tell_no_single_delay() -> None:
    assert delays([seen({"kind": "join", "clients": [{"id": None}, {"id": None}]}, {})]) == {}


def test_a_busy_spread_is_the_one_that_was_drawn_from() -> None:
    random = np.random.default_rng(3)
    drawn = 0.2 + 0.5 * random.random(20_000) ** CALM * random.random(20_000)
    assert busy_spread(drawn) == pytest.approx((0.2, 0.7), abs=0.02)
