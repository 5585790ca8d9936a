"""Figures and lists as the sentences of findings spell them."""

from collections.abc import Iterable
from typing import Final

NAMED: Final = 5
"""Names that one sentence lists before it says "and N more"."""

WATCH_LONGER = "a rebalance under way looks the same for some seconds: run again with --watch 60 before you act"

MOVING = "a rebalance may be under way: run again with --watch 60"


def some(names: Iterable[object], at_most: int = NAMED) -> str:
    """Return ``a, b, c and 4 more``."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - at_most} more" if len(listed) > at_most else ""
    return ", ".join(listed[:at_most]) + more


def percent(share: float) -> str:
    """Return a share of 1 as a percentage."""
    return f"{share:.0%}"


def rate(messages_per_s: float) -> str:
    """Return messages per second; below 100 with one decimal."""
    text = f"{messages_per_s:,.0f}" if messages_per_s >= 100 else f"{messages_per_s:.1f}".removesuffix(".0")
    return f"{text} messages/s"


def verb(count: int, singular: str, plural: str) -> str:
    """Return the verb's form: ``1 queue has``, ``2 queues have``."""
    return singular if count == 1 else plural
