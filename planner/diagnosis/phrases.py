"""Figures and lists as the sentences of findings spell them."""

from collections.abc import Iterable
from typing import Final

NAMED: Final = 5
"""Names that one sentence lists before it says "and N more"."""


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


def seconds(value: float) -> str:
    """Return a span in its largest fitting unit: ``40 s``, ``3 min``, ``2 h``, ``5 d``."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if value >= 2 * length:
            return f"{value / length:.0f} {unit}"
    return f"{value:.0f} s"


def verb(count: int, singular: str, plural: str) -> str:
    """Return the verb's form: ``1 queue has``, ``2 queues have``."""
    return singular if count == 1 else plural
