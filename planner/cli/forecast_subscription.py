"""A change of subscription in words: owners after each step, unread queues, refused pulls, filtered messages."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from planner.forecast.words import count_between, seconds_between

MOST_STEPS = 20
NOBODY = "nobody"


def subscription_lines(document: Mapping[str, Any], noun: str) -> Iterator[str]:
    """Yield a sentence for each topic, filter and step of an answer, none for other changes; ``noun``: queues."""
    changed = document.get("subscription")
    if changed is None:
        return
    yield from (_topic(topic, noun) for topic in changed["topics"])
    yield from (_filter(filtered) for filtered in changed.get("filters", ()))
    yield from (_missing(missing) for missing in changed.get("missing", ()))
    steps = changed["steps"] or ()
    yield from (_step(step, noun) for step in steps[:MOST_STEPS])
    if len(steps) > MOST_STEPS:
        yield f"… and {len(steps) - MOST_STEPS} more steps; -o json has them."


def _topic(topic: Mapping[str, Any], noun: str) -> str:
    name = f"{topic['topic']} ({topic['change']})"
    if topic["unread_s"] is None:
        since = "" if topic["unread_from_s"] is None else f", from {_seconds(topic['unread_from_s'])} on"
        lost, count = topic["queues_unread_for_good"], topic["queues"]
        return f"{name}: {lost} of {count} {noun} are read by nobody for good{since}."
    if topic["unread_s"]["p95"] == 0:
        return f"{name}: every one of its {noun} is read all along."
    come = _count(topic["unread_messages"])
    return (
        f"{name}: one of its {noun} is unread for up to {_seconds(topic['unread_s'])} in all, until "
        f"{_seconds(topic['read_again_s'])} at the latest; {come} messages come meanwhile to all of them."
    )


def _filter(filtered: Mapping[str, Any]) -> str:
    tags = ", ".join(filtered["tags_at_risk"])
    most = filtered["filtered_at_most"]
    bound = "without a bound, as some clients keep the old tags" if most is None else f"at most {_count(most)} messages"
    return (
        f"{filtered['topic']}: filtered away for good may be messages with tag {tags}, {bound}: how many of those that "
        "come have it, no request says."
    )


def _missing(missing: Mapping[str, Any]) -> str:
    share = missing["share"]
    return (
        f"After step {missing['step']} brokers refuse pulls of {missing['topic']} for {share['p05']:.0%} to "
        f"{share['p95']:.0%} of the time, {_seconds(missing['longest_s'])} at a stretch."
    )


def _step(step: Mapping[str, Any], noun: str) -> str:
    by_topic: dict[str, Counter[str]] = {}
    for owned in step["owners"]:
        by_topic.setdefault(owned["queue"][0], Counter())[owned["owner"] or NOBODY] += 1
    topics = (
        f"{topic}: {', '.join(f'{owner} {count}' for owner, count in sorted(counts.items()))}"
        for topic, counts in by_topic.items()
    )
    return f"After step {step['step']}, {step['client']} at {step['at_s']:g} s, {noun} by owner: {'; '.join(topics)}."


def _seconds(interval: Mapping[str, float]) -> str:
    return seconds_between(interval["p05"], interval["p95"])


def _count(interval: Mapping[str, float]) -> str:
    return count_between(round(interval["p05"]), round(interval["p95"]))
