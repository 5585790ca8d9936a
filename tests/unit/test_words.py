"""Figures as people read them."""

import pytest

from planner.text import words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (0, "0 s"),
        (0.01, "under 0.1 s"),
        (0.31, "0.3 s"),
        (2.5, "2.5 s"),
        (3.0, "3 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (29.4, "29 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (476, "7 min 56 s"),
        (3_599.6, "1 h"),
        (3_600, "1 h"),
        (7_500, "2 h 5 min"),
        (7_195, "2 h"),
        (86_399, "1 d"),
        (86_400 * 3 + 4 * 3_600, "3 d 4 h"),
        (86_400 * 400, "400 d"),
        (-90, "-1 min 30 s"),
    ],
)
def test_a_duration_is_spelled_as_people_say_it(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


def test_a_forecast_names_the_usual_and_the_worst_of_twenty() -> None:
    assert words.usually(2.5, 29.0) == "usually 2.5 s, at worst 29 s (1 in 20)"
    assert words.usual_count(12, 1_025) == "usually 12, at worst 1,025 (1 in 20)"


def test_a_forecast_whose_figures_read_alike_is_one_figure() -> None:
    assert words.usually(2.51, 2.53) == "2.5 s"
    assert words.usual_count(3, 3) == "3"


@pytest.mark.parametrize(
    ("count", "system", "text"),
    [(1, "rocketmq", "1 queue"), (12, "kafka", "12 partitions"), (1_200, "rocketmq", "1,200 queues")],
)
def test_queues_go_by_the_name_that_their_system_gives_them(count: int, system: str, text: str) -> None:
    assert words.queues(count, system) == text


def test_neighbouring_counts_are_folded() -> None:
    assert words.runs([1, 2, 3, 4, 5, 8, 13, 14, 16]) == "1 to 5, 8, 13, 14, 16"
    assert words.runs([*range(13, 33)]) == "13 to 32"
    assert words.runs([]) == ""


def test_rates_and_shares() -> None:
    assert words.rate(23.45) == "23.4 messages/s"
    assert words.rate(12_345.6) == "12,346 messages/s"
    assert words.rate(None) == "unknown"
    assert words.percent(0.756) == "76%"
    assert words.percent(None) == "unknown"


def test_long_lists_name_the_first_few() -> None:
    assert words.some(["a", "b", "c"], at_most=2) == "a, b and 1 more"
    assert words.counted(1, "query", "queries") == "1 query"
    assert words.counted(2, "query", "queries") == "2 queries"


def test_the_nearest_names_come_first_whatever_their_case() -> None:
    known = ["orders", "payments-2", "Payments"]
    assert words.nearest_first("paymnets", known) == ["Payments", "payments-2", "orders"]
    assert words.nearest_first("x", ()) == []
