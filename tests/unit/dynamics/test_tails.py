"""A long tail is told as one, with its cause."""

import numpy as np

from planner.documents.forecast import forecast
from planner.forecast.common.tails import find_cause, find_tail

RANDOM = np.random.default_rng(1)
USUAL = RANDOM.uniform(2, 3, 970)
LATE = RANDOM.uniform(28, 31, 30)


def test_one_in_thirty_is_a_tail_and_the_rest_is_told_without_it() -> None:
    tail = find_tail(np.concatenate([LATE, USUAL]))
    assert tail is not None
    told = tail.document("lost_heartbeat")
    assert told["share"] == 0.03
    assert told["usual"]["p95"] < 3 and told["late"]["p05"] > 28  # type: ignore[index]
    assert told["p90"] < 3  # type: ignore[operator]
    assert tail.is_in[:30].all() and not tail.is_in[30:].any()


def test_what_is_spread_evenly_or_late_in_half_of_the_cases_has_no_tail() -> None:
    assert find_tail(RANDOM.uniform(0, 50, 1000)) is None
    assert find_tail(np.concatenate([USUAL, LATE, LATE.repeat(30)])) is None
    assert find_tail(np.concatenate([USUAL, [60.0]])) is None
    assert find_tail(np.full(1000, np.nan)) is None


def test_the_cause_is_what_is_longer_in_the_tail() -> None:
    tail = find_tail(np.concatenate([LATE, USUAL]))
    assert tail is not None
    parts = {"pull": RANDOM.uniform(0, 1, 1000), "lost_heartbeat": np.where(tail.is_in, 27.0, 0.0)}
    assert find_cause(tail, parts) == "lost_heartbeat"
    assert find_cause(tail, {"pull": parts["pull"]}) is None


def test_a_start_that_loses_a_heartbeat_is_the_tail_of_a_join() -> None:
    answer = forecast(
        {
            "system": "rocketmq",
            "versions": {"client": "5.5.0", "broker": "5.5.0"},
            "strategy": "AVG",
            "queues": [{"topic": "T", "broker": "a", "queue_id": queue, "rate": 8.0} for queue in range(8)],
            "clients": [{"id": f"10.0.0.{number}@c", "threads": 20} for number in (1, 2)],
            "service_time_s": 0.05,
            "change": {"kind": "join", "clients": [{"id": "10.0.0.3@c"}]},
            "trials": 1000,
        }
    )
    tail = answer["tails"]["settle_s"]
    assert tail["cause"] == "lost_heartbeat"
    assert 0.01 <= tail["share"] <= 0.06
    assert tail["usual"]["p95"] < tail["late"]["p05"]
