"""Figures as people read them, everywhere the same: terminal, page, decision, findings. ``None`` reads as unknown.

Pure functions at the bottom of the layers; they import nothing of the planner.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import groupby

UNKNOWN = "unknown"

_QUEUE_NOUNS = {"kafka": "partition"}
"""Where a system's own noun is another one."""

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def number(value: float) -> str:
    """Return a whole number with commas between thousands: 12,345."""
    return f"{value:,.0f}"


def hours(value: float) -> str:
    """Return hours without their unit; those below 10 keep one decimal: ``1,234``, ``8.2``."""
    return number(value) if abs(value) >= 10 else f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun in the right form: ``1 queue``, ``12,345 queues``."""
    return f"{number(count)} {noun if count == 1 else plural or f'{noun}s'}"


def and_list(names: Sequence[str]) -> str:
    """Return all names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def pods(count: int, members: int) -> str:
    """Return a count of pods with their members beside it: ``3 pods (12 consumers)``; ``3 consumers`` where one each.

    ``members`` is how many consumers these pods run together.
    """
    return (
        counted(count, "consumer") if members == count else f"{counted(count, 'pod')} ({counted(members, 'consumer')})"
    )


def pods_between(first: int, last: int, per_pod: int) -> str:
    """Return two counts of pods with their members: ``3 to 6 pods (12 to 24 consumers)``, ``3 to 6 consumers``."""
    if per_pod == 1:
        return f"{first} to {counted(last, 'consumer')}"
    return f"{first} to {counted(last, 'pod')} ({first * per_pod} to {counted(last * per_pod, 'consumer')})"


def scaled(per_pod: int) -> str:
    """Return what is counted: ``consumer`` where each pod runs one, else ``pod``."""
    return "consumer" if per_pod == 1 else "pod"


def queue_noun(system: str) -> str:
    """Return what ``system`` calls a queue: ``partition`` for ``kafka``, ``queue`` for all others."""
    return _QUEUE_NOUNS.get(system, "queue")


def queues(count: int, system: str) -> str:
    """Return a count of queues by the system's own noun: ``1 queue``, ``12 partitions``."""
    return counted(count, queue_noun(system))


def queue_nouns(system: str) -> str:
    """Return the plural of ``queue_noun``."""
    return f"{queue_noun(system)}s"


def percent(share: float | None) -> str:
    """Return a share of 1 as a percentage: ``76%``."""
    return UNKNOWN if share is None else f"{share:.0%}"


def per_second(messages_per_s: float | None) -> str:
    """Return a rate without its unit; those below 100 keep one decimal."""
    if messages_per_s is None:
        return UNKNOWN
    return number(messages_per_s) if messages_per_s >= 100 else f"{messages_per_s:.1f}".removesuffix(".0")


def rate(messages_per_s: float | None) -> str:
    """Return messages per second with the unit: ``23.5 messages/s``."""
    return UNKNOWN if messages_per_s is None else f"{per_second(messages_per_s)} messages/s"


def duration(seconds: float | None) -> str:
    """Return a span of seconds in its two largest units: ``2.5 s``, ``29 s``, ``7 min 56 s``, ``2 h 5 min``, ``3 d``.

    Below ten seconds one decimal stays, because pauses are that short; what is shorter than that is under 0.1 s.
    """
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if 0 < seconds < 0.05:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    return " ".join(_two_largest(round(seconds)))


def _two_largest(seconds: int) -> Iterator[str]:
    """Yield the largest unit and the next smaller one, unless that is zero; the rest is rounded into them."""
    first = next(index for index, (_, length) in enumerate(_UNITS) if seconds >= length)
    smallest = _UNITS[min(first + 1, len(_UNITS) - 1)][1]
    left = (seconds + smallest // 2) // smallest * smallest
    if first and left >= _UNITS[first - 1][1]:  # 59 min 60 s is an hour
        first -= 1
    for unit, length in _UNITS[first : first + 2]:
        amount, left = divmod(left, length)
        if amount:
            yield f"{amount} {unit}"


def usually(p50: float, p95: float) -> str:
    """Return a forecast span of seconds: ``usually 2.5 s, at worst 29 s (1 in 20)``; a single figure where they agree.

    ``p50`` and ``p95`` are the median and the value that one trial in twenty exceeds.
    """
    return _usually(duration(p50), duration(p95))


def usual_count(p50: int, p95: int) -> str:
    """Return a forecast count: ``usually 12, at worst 25 (1 in 20)``; a single figure where they agree."""
    return _usually(number(p50), number(p95))


def _usually(middle: str, worst: str) -> str:
    return middle if middle == worst else f"usually {middle}, at worst {worst} (1 in 20)"


def some(names: Iterable[object], at_most: int = 5) -> str:
    """Return ``a, b, c and 4 more``."""
    listed = [str(name) for name in names]
    more = f" and {number(len(listed) - at_most)} more" if len(listed) > at_most else ""
    return ", ".join(listed[:at_most]) + more


def runs(counts: Sequence[int]) -> str:
    """Return ascending counts with neighbours folded: ``1 to 5, 8, 13 to 32``."""
    groups = (tuple(pair[1] for pair in pairs) for _, pairs in groupby(enumerate(counts), lambda p: p[1] - p[0]))
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in groups)


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` was meant to be, whatever its case; ``None`` where none is close."""
    by_case = {other.casefold(): other for other in known}
    close = get_close_matches(name.casefold(), by_case, n=1)
    return by_case[close[0]] if close else None


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names, those that are most like ``name`` first, whatever their case."""
    matcher = SequenceMatcher(b=name.casefold())

    def likeness(other: str) -> float:
        matcher.set_seq1(other.casefold())
        return matcher.ratio()

    return sorted(known, key=lambda other: (-likeness(other), other))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``: did you mean cluster?`` where a known name is close to ``name``, else nothing."""
    meant = closest(name, known)
    return "" if meant is None else f": did you mean {meant}?"
