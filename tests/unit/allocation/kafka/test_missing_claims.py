"""Claims of partitions that do not exist: left aside, named, and the rest of the request answered."""

import pytest

from planner.documents.forecast import forecast
from tests.allocations import assign

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "range-server")
GONE = [["gone", 0], ["gone", 3]]


def members(*extra: list[object]) -> list[dict[str, object]]:
    owned = ([["t", 0], ["t", 1]], [["t", 2], ["t", 3]])
    return [
        {"id": name, "topics": ["t"], "owned": [*claims, *(extra if name == "a" else ())], "generation": 1}
        for name, claims in zip("ab", owned, strict=True)
    ]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_the_answer_is_that_without_the_claims(assignor: str) -> None:
    request = {"system": "kafka", "strategy": assignor, "partitions": {"t": 4}}
    with_claims, without = (assign({**request, "members": members(*extra)}) for extra in (GONE, []))
    assert with_claims["assignments"] == without["assignments"]
    assert "a claims gone/0, gone/3, which does not exist: left aside" in with_claims["warnings"]
    assert not without["warnings"] or without["warnings"] == with_claims["warnings"][1:]


REAL_ONES = {"sticky": "counts it", "cooperative-sticky": "counts it", "uniform": "fails on it"}


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_number_beyond_a_topic_is_left_aside_and_the_warning_says_what_the_real_assignor_does(assignor: str) -> None:
    request = {"system": "kafka", "strategy": assignor, "partitions": {"t": 4}}
    with_claim, without = (assign({**request, "members": members(*extra)}) for extra in ([["t", 4]], []))
    assert with_claim["assignments"] == without["assignments"]
    (warning,) = (line for line in with_claim["warnings"] if line.startswith("a claims t/4, which does not exist"))
    assert REAL_ONES.get(assignor, "left aside") in warning
    assert ("real assignor" in warning) == (assignor in REAL_ONES)


def test_a_cooperative_member_gives_it_up_and_joins_once_more() -> None:
    request = {"system": "kafka", "strategy": "cooperative-sticky", "partitions": {"t": 4}, "members": members(*GONE)}
    first = assign({**request, "options": {"cooperative_round": "first"}})
    assert first["assignments"] == {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}


def test_a_forecast_names_it_too() -> None:
    answer = forecast(
        {
            "system": "kafka",
            "versions": {"client": "4.4.0", "broker": "4.3.1"},
            "strategy": "range",
            "partitions": {"t": [{"rate": 1.0}] * 4},
            "members": [{key: value for key, value in one.items() if key != "generation"} for one in members(*GONE)],
            "service_time_s": 0.01,
            "change": {"kind": "join", "clients": [{"id": "c"}]},
            "trials": 10,
        }
    )
    assert any(line.startswith("a claims gone/0, gone/3") for line in answer["warnings"])
    assert answer["total"]["moved_queues"]["p50"] > 0
