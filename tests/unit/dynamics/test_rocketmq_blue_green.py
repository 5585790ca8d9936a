"""Another group takes over from offsets that were copied: what the old one consumed since then comes twice."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.errors import BadInputError
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, rocketmq_request

WAITS = {"awaitTerminationMillisWhenShutdown": 5000}
NEW = [{"id": "10.0.1.1@n1"}, {"id": "10.0.1.2@n2"}]


def blue_green(clone_s: float, stop_s: float, start_s: float, clients: int = 2) -> Document:
    times = {"clone_s": clone_s, "stop_s": stop_s, "start_s": start_s}
    return {"kind": "blue_green", "to_group": "h", "clients": NEW[:clients], **times}


def answered(clone_s: float, stop_s: float, start_s: float, new: int = 1, **more: Any) -> dict[str, Any]:
    """Return the answer for a group of two; a single new client has nobody to hand queues over to."""
    change = blue_green(clone_s, stop_s, start_s, new)
    found: dict[str, Any] = forecast(rocketmq_request(change, clients=2, settings=WAITS, **more))
    return found


def test_offsets_copied_after_the_end_repeat_nothing() -> None:
    found = answered(2.0, 0.0, 3.0)
    assert found["total"]["duplicates"]["p95"] == 0
    assert set(found["after"]) == {"10.0.1.1@n1"}
    assert len(found["moved"]) == 8
    # Nobody consumes from the end of the old group until the new one has started.
    assert 3 < found["total"]["pause_s"]["p05"] < found["total"]["settle_s"]["p95"] < 7


@pytest.mark.parametrize("orderly", [False, True])
def test_what_was_consumed_after_the_copy_comes_twice(orderly: bool) -> None:
    """8 queues of 10 messages a second, copied 10 s before the end: 800, and what was in flight."""
    found = answered(0.0, 10.0, 12.0, rate=10.0, orderly=orderly)
    duplicates = found["total"]["duplicates"]
    assert 795 < duplicates["p05"] < duplicates["p95"] < 830
    assert found["causes"][0]["cause"] in {"clone", "notice", "lock"}
    assert "clone" in {cause["cause"] for cause in found["causes"]}


def test_new_clients_that_start_together_repeat_some_among_themselves() -> None:
    """The first that looks may see itself alone, and takes everything for a while: a join like any other."""
    found = answered(2.0, 0.0, 3.0, new=2)
    assert set(found["after"]) == {"10.0.1.1@n1", "10.0.1.2@n2"}
    assert found["total"]["duplicates"]["p95"] > 0


def test_side_by_side_everything_comes_twice_and_nothing_pauses() -> None:
    found = answered(0.0, 60.0, 0.0)
    assert found["total"]["pause_s"]["p95"] == 0
    assert found["total"]["duplicates"]["p05"] > 0.95 * 8 * 25 * 60
    assert any("both groups consume everything for 60 s" in warning for warning in found["warnings"])


def test_neither_group_hears_of_the_other() -> None:
    """The old members keep what they have while the new ones share all queues among themselves."""
    request = rocketmq_request(blue_green(0.0, 60.0, 0.0), clients=2)
    found = simulate(build_scenario(read_request(request)), DEFAULT)
    old = np.isin(found.tenures.process, [0, 1])
    assert not (old & (found.tenures.dropped < 59)).any()
    # Only its own tick, once in 20 s, makes an old member look while the new ones register.
    assert ((found.membership.rebalances.at[:, 0] > 0) & (found.membership.rebalances.at[:, 0] < 5)).any(
        axis=1
    ).mean() < 0.5
    new = np.isin(found.tenures.process, [2, 3]) & np.isposinf(found.tenures.dropped)
    assert (new.sum(axis=2) == 1).all()


def test_the_retry_topic_stays_behind() -> None:
    assert any("is not copied and stays unread" in warning for warning in answered(0.0, 0.0, 1.0)["warnings"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start_s": 1.0, "clone_s": 2.0}, "change.start_s: found 1, expected at least clone_s (2)"),
        ({"clone_s": None}, "change.clone_s: found null"),
        ({"to_group": ""}, "change.to_group: found"),
        ({"to_group": "g"}, "expected another group"),
        ({"clients": []}, "expected at least one client"),
        ({"clients": [{"id": "10.0.0.1@c1"}]}, "is in the group already"),
    ],
)
def test_refusals(change: Document, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        forecast(rocketmq_request({**blue_green(0, 0, 1), **change}))
    assert words in str(caught.value)
