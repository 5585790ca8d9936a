"""Settings of the pull that bound what a client gets and caches of one queue."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.errors import BadInputError
from planner.forecast.rocketmq.membership.consume_rates import cache_thresholds
from planner.forecast.rocketmq.membership.scenario import build_scenario

Document = dict[str, Any]


def request(settings: Document, *, lag: int = 0) -> Document:
    return {
        "system": "rocketmq",
        "versions": {"client": "5.5.0", "broker": "5.5.0"},
        "strategy": "AVG",
        "queues": [{"topic": "T", "broker": "a", "queue_id": queue, "rate": 20.0, "lag": lag} for queue in range(8)],
        "clients": [{"id": f"10.0.0.{number}@c", "threads": 20} for number in (1, 2)],
        "service_time_s": 0.01,
        "settings": settings,
        "change": {"kind": "join", "clients": [{"id": "10.0.0.3@c"}]},
        "trials": 100,
    }


def test_a_pull_interval_bounds_each_queue() -> None:
    """32 messages a pull: each second, 12 of them are left for the 100 that wait; every two seconds, none is."""
    free, bound, never = (forecast(request({"pullInterval": wait}, lag=100)) for wait in (0, 1000, 2000))
    assert free["total"]["drained_s"]["p50"] < 100 / 12 <= bound["total"]["drained_s"]["p50"]
    assert never["total"]["drained_s"] is None
    assert any("let a client pull 16 messages a second of one queue" in line for line in never["warnings"])
    assert not any("pullInterval" in line for line in bound["warnings"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 1000),
        ({"pullThresholdForQueue": 64}, 64),
        ({"pullThresholdForTopic": 400}, 100),  # four queues each
        ({"pullThresholdForTopic": 400, "pullThresholdForQueue": 64}, 100),  # written over it
        ({"pullThresholdForTopic": 2}, 1),
        ({"consumeConcurrentlyMaxSpan": 50}, 50),
    ],
)
def test_the_cache_of_a_queue_is_bounded_as_the_client_bounds_it(settings: Document, expected: int) -> None:
    scenario = build_scenario(read_request(request(settings)))
    assert cache_thresholds(scenario, np.repeat([0, 1], 4)).tolist() == [expected] * 8


def test_sizes_are_named_with_the_reason() -> None:
    answer = forecast(request({"pullThresholdSizeForQueue": 50, "pullThresholdSizeForTopic": -1}))
    assert any("pullThresholdSizeForQueue (a request has no message sizes)" in line for line in answer["warnings"])


def test_no_bound_is_written_as_the_client_writes_it() -> None:
    with pytest.raises(BadInputError, match=r"settings\.pullThresholdForTopic: found 0, expected -1 for no bound"):
        read_request(request({"pullThresholdForTopic": 0}))
