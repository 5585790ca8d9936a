"""Figures as people read them. Every function is total: ``None`` becomes a word."""

from datetime import UTC, datetime

from planner.simulation.outcome import Messages, Seconds
from planner.simulation.words import seconds_between

THIN = "\u202f"
UNKNOWN = "unknown"


def number(value: float) -> str:
    """Return a whole number with thin spaces between thousands: 12 345."""
    return f"{value:,.0f}".replace(",", THIN)


def percent(share: float | None) -> str:
    """Return a share of 1 as a percentage, spelled as in the decision's sentence: 76%."""
    return UNKNOWN if share is None else f"{share:.0%}"


def rate(messages_per_s: float | None) -> str:
    """Return a rate with its unit; those below 100 keep one decimal."""
    return UNKNOWN if messages_per_s is None else f"{per_second(messages_per_s)} messages/s"


def per_second(messages_per_s: float | None) -> str:
    """Return a rate without its unit, for a column that names it."""
    if messages_per_s is None:
        return UNKNOWN
    return number(messages_per_s) if messages_per_s >= 100 else f"{messages_per_s:.1f}".removesuffix(".0")


def messages(count: int) -> str:
    """Return a number of messages with the noun in the right form."""
    return "1 message" if count == 1 else f"{number(count)} messages"


def consumers(count: int) -> str:
    """Return a number of consumers with the noun in the right form."""
    return "1 consumer" if count == 1 else f"{number(count)} consumers"


def queues(count: int) -> str:
    """Return a number of queues with the noun in the right form."""
    return "1 queue" if count == 1 else f"{number(count)} queues"


def duration(seconds: float | None) -> str:
    """Return a span in its two largest units: 42 s, 3 min 30 s, 2 h 5 min, 3 d 4 h."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 1:
        return "under 1 s"
    left = round(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, length)
        if amount or parts:
            parts.append(f"{amount} {unit}" if amount else "")
    return " ".join(part for part in parts[:2] if part) or "0 s"


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


def between(found: Seconds | None) -> str:
    """Return an interval of seconds: 0.30–0.60 s, or unknown."""
    return UNKNOWN if found is None else seconds_between(found.p05, found.p95)


def counted(found: Messages) -> str:
    """Return an interval of whole messages: 12–25, 3,109–16,628."""
    return span(found.p05, found.p95)
