"""Figures as people read them. Every function is total: ``None`` becomes a word."""

from datetime import UTC, datetime

from planner.forecast.words import seconds_between
from planner.rollout.explain import describe_span
from planner.simulation.outcome import Messages, Seconds
from planner.text import words as common
from planner.text.words import (
    UNKNOWN,
    duration,
    hours,
    number,
    per_second,
    percent,
    pods,
    queue_noun,
    queue_nouns,
    rate,
)

__all__ = [
    "UNKNOWN",
    "duration",
    "hours",
    "number",
    "per_second",
    "percent",
    "pods",
    "queue_noun",
    "queue_nouns",
    "queues",
    "rate",
]


def queues(count: int, system: str = "rocketmq") -> str:
    """Return a number of queues by the system's own noun."""
    return common.queues(count, system)


def messages(count: int) -> str:
    """Return a number of messages with the noun in the right form."""
    return "1 message" if count == 1 else f"{number(count)} messages"


def consumers(count: int) -> str:
    """Return a number of consumers with the noun in the right form."""
    return "1 consumer" if count == 1 else f"{number(count)} consumers"


def gone(drain_s: float | None, backlog: int) -> str:
    """Return when a backlog is gone, as the end of a sentence: ``None`` means never."""
    if backlog == 0:
        return "none"
    return "never gone" if drain_s is None else f"gone in {duration(drain_s)}"


def span(fewest: int | None, most: int | None) -> str:
    """Return a range of counts: 4–11, 4, or unknown."""
    if fewest is None or most is None:
        return UNKNOWN
    return number(fewest) if fewest == most else f"{number(fewest)}–{number(most)}"


def moment(at: datetime) -> str:
    """Return a time in UTC to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(at: datetime) -> str:
    """Return the time of day in UTC, to the minute."""
    return f"{at.astimezone(UTC):%H:%M}"


def between(interval: Seconds | None) -> str:
    """Return an interval of seconds: 0.30–0.60 s, or unknown."""
    return UNKNOWN if interval is None else seconds_between(interval.p05, interval.p95)


def counted(interval: Messages) -> str:
    """Return an interval of whole messages: 12–25, 3,109–16,628."""
    return span(interval.p05, interval.p95)


def usually(forecast: Seconds | None) -> str:
    """Return a forecast span: usually 2.5 s, at worst 29 s (1 in 20), with its long tail if it has one; or unknown."""
    return UNKNOWN if forecast is None else describe_span(forecast)


def usual_count(forecast: Messages) -> str:
    """Return a forecast count: usually 12, at worst 25 (1 in 20)."""
    return common.usual_count(forecast.p50, forecast.p95)
