from datetime import UTC, datetime, timedelta, timezone

import pytest

from planner.report import words
from planner.simulation.outcome import Messages, Seconds


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.2, "0.2 s"),
        (42.4, "42 s"),
        (210, "3 min 30 s"),
        (600, "10 min"),
        (3599.7, "1 h"),
        (7500, "2 h 5 min"),
        (3605, "1 h"),
        (86_400 * 3 + 4 * 3600, "3 d 4 h"),
        (None, "unknown"),
    ],
)
def test_duration_has_its_two_largest_units(seconds: float | None, shown: str) -> None:
    assert words.duration(seconds) == shown


def test_a_percentage_is_spelled_as_in_the_decisions_sentence() -> None:
    assert words.percent(0.757) == f"{0.757:.0%}"
    assert words.percent(None) == "unknown"


def test_thousands_stand_apart() -> None:
    assert words.number(1_234_567) == "1,234,567"


def test_small_rates_keep_a_decimal() -> None:
    assert [words.per_second(rate) for rate in (0.5, 2.0, 99.94, 1234.5, None)] == [
        "0.5", "2", "99.9", "1,234", "unknown",
    ]  # fmt: skip


def test_one_is_singular() -> None:
    assert [words.consumers(1), words.queues(1), words.messages(1)] == ["1 consumer", "1 queue", "1 message"]
    assert [words.consumers(2), words.queues(0), words.messages(2)] == ["2 consumers", "0 queues", "2 messages"]


def test_a_range_of_one_value_is_that_value() -> None:
    assert [words.span(4, 4), words.span(4, 11), words.span(None, None)] == ["4", "4–11", "unknown"]


def test_times_are_shown_in_utc() -> None:
    at = datetime(2026, 11, 21, 11, 30, tzinfo=timezone(timedelta(hours=1)))
    assert words.moment(at) == "2026-11-21 10:30:00 UTC"
    assert words.clock(at.astimezone(UTC)) == "10:30"


def test_a_backlog_that_does_not_shrink_is_never_gone() -> None:
    assert [words.gone(None, 5), words.gone(90.0, 5), words.gone(0.0, 0)] == [
        "never gone",
        "gone in 1 min 30 s",
        "none",
    ]


def test_intervals_show_their_ends() -> None:
    assert words.between(Seconds(0.304, 0.4, 0.6)) == "0.3–0.6 s"
    assert words.between(Seconds(12.34, 40.0, 120.4)) == "12 s – 2 min"
    assert words.between(Seconds(0.0, 0.0, 0.0)) == "0 s"
    assert words.between(None) == "unknown"
    assert words.counted(Messages(5, 5, 5)) == "5"
    assert words.counted(Messages(12, 18, 25)) == "12–25"
