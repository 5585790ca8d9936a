"""Forecasts as people read them: intervals in words, and causes of pauses and duplicates by the simulation's keys."""

from planner.text.words import duration, number

SECONDS_ALONE_S = 59.5
"""What is shorter reads in seconds alone."""

LEAST_SHOWN_S = 0.05
"""What is shorter reads as nothing in an interval."""

CAUSES = {
    "notice": "the new owner learns of the change later than the old one has stopped",
    "expiry": "the brokers take so long to find out that the client is gone",
    "route": "clients poll routes and look for changes by their own clocks",
    "lock": "the new owner waits for the broker's lock on the queue",
    "lock_renewal": "a locked queue is consumed only after the next lock renewal (clients 4.9.0 to 4.9.4)",
    "first_pull": "the client waits 500 ms before it pulls a new queue",
    "version_race": "the first pull overtakes the heartbeat that carries its subscription version, and is retried",
    "lost_heartbeat": "the heartbeat that reports to brokers what a new client owns is dropped, and they refuse its "
    "pulls",
    "pull": "reading the offset and the first pull take their time",
    "head_of_line": "the new owner works off what it had cached before",
    "in_flight": "calls are running when the queue changes hands, so their messages are not counted",
    "unsaved": "the broker's offset is older than what was consumed",
    "uncommitted": "what was polled since the last commit is not in the stored offset",
    "overlap": "two clients consume the queue at the same time",
    "barrier": "the coordinator waits until every member has heard of the change and polled (Kafka's join barrier)",
    "first_members": "a group without members waits for more of them when the first one comes",
    "second_round": "a partition is given up in one round and handed out in the next, a heartbeat later",
    "heartbeat": "old and new owner hear of the change by their own heartbeats",
    "poll_loop": "the new owner's poll loop works off what came of other partitions first",
    "fetch": "reading the committed offset and the first fetch take their time",
    "revocation": "what is delivered between rejoining and giving up is not committed",
    "handover": "nobody consumes between the end of the old group and the start of the new one",
    "clone": "the old group went on after its offsets had been copied",
    "zombie": "a member that had stood still works off what it had in hand, although others own it now",
}
"""Every cause as people's text."""


def seconds_between(low: float, high: float) -> str:
    """Return the ends of an interval of seconds: ``0.3–0.6 s``, ``45 s – 2 min 5 s``; one where they read alike."""
    first, last = duration(low), duration(high)
    if first == last:
        return first
    if low < SECONDS_ALONE_S and high < SECONDS_ALONE_S and low >= LEAST_SHOWN_S:
        return f"{first.removesuffix(' s')}–{last}"
    return f"0–{last}" if low < LEAST_SHOWN_S and high < SECONDS_ALONE_S else f"{first} – {last}"


def exact_seconds_between(low: float, high: float) -> str:
    """Return the ends to two digits after the point below ten, as a forecast's warnings quote them: ``1.24–12.3 s``."""
    first, last = _exact(low), _exact(high)
    return f"{first} s" if first == last else f"{first}–{last} s"


def _exact(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def messages_between(low: int, high: int) -> str:
    """Return the ends of an interval of messages: ``12–25 messages``."""
    return f"{count_between(low, high)} message{'' if low == high == 1 else 's'}"


def count_between(low: int, high: int) -> str:
    """Return the ends of an interval of whole things: ``12–25``."""
    return number(low) if low == high else f"{number(low)}–{number(high)}"
