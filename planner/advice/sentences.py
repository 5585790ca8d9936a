"""An advice in sentences: the same words on the terminal and on the page."""

from collections.abc import Iterator

from planner.advice.answer import Advice, Price
from planner.diagnosis.finding import Finding
from planner.text import words


def load_sentence(advice: Advice) -> str:
    """Return what comes in, what is consumed and what waits; what is unknown by name."""
    waiting = "an unknown number of messages" if advice.lag is None else words.counted(advice.lag, "message")
    verb = "waits" if advice.lag == 1 else "wait"
    return f"{_rate(advice.arrival_rate)} come in, {_rate(advice.consumption_rate)} are consumed; {waiting} {verb}."


def price_sentence(advice: Advice) -> str:
    """Return pods, moved queues, pause and duplicates in one sentence; what is unknown by name."""
    price, noun = advice.price, advice.unit
    amount = f"{words.counted(abs(price.pods), noun)} {'more' if price.pods > 0 else 'fewer'}"
    moved = f"{_describe_moves(price)} of {words.queues(price.queues, advice.system)} change owner"
    return "; ".join((amount, moved, _pause(price), _duplicates(price))) + "."


def certainty_sentence(advice: Advice) -> str:
    """Return whether the answer is clear after the watch, and what is missing where it is not."""
    if advice.is_clear:
        return f"Clear after {words.duration(advice.watched_s)} of watching."
    missing = "; ".join(advice.missing) or "it was not watched for long enough"
    return f"Not clear after {words.duration(advice.watched_s)} of watching: {missing}."


def finding_title(finding: Finding) -> str:
    """Return how bad a finding is, what it is, and its code."""
    return f"{finding.severity.upper()}: {finding.title} [{finding.code}]"


def finding_advice(finding: Finding) -> str:
    """Return what to do about a finding."""
    return f"Do: {finding.advice}"


def labelled_lines(advice: Advice) -> Iterator[tuple[str, str]]:
    """Yield what stands beside the decision, each line with its label: load, what is counted, price, near misses.

    A near miss after the first has no label.
    """
    yield "load", load_sentence(advice)
    if advice.count_note:
        yield "counts", advice.count_note
    if not advice.decision.is_hold:
        yield "price", price_sentence(advice)
    for number, miss in enumerate(advice.near_misses):
        yield "" if number else "nearly", f"{miss}."


def span(fewest: int, most: int) -> str:
    """Return two bounds of a count in words, one figure where they are equal."""
    return str(fewest) if fewest == most else f"{fewest} to {most}"


def _rate(messages_per_s: float | None) -> str:
    return "an unknown number" if messages_per_s is None else words.rate(messages_per_s)


def _describe_moves(price: Price) -> str:
    if price.fewest is None or price.most is None:
        return "an unknown number"
    return span(price.fewest, price.most)


def _pause(price: Price) -> str:
    if price.pause is None:
        return "how long they pause is unknown"
    return f"the longest pause is {words.usually(price.pause.p50, price.pause.p95)}"


def _duplicates(price: Price) -> str:
    if price.duplicates is None:
        return "how many messages come twice is unknown"
    return f"messages that come twice: {words.usual_count(price.duplicates.p50, price.duplicates.p95)}"
