"""What one consumer can do: learned from when it was busy, or computed from its own figures."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import stdev

from planner.history.busy import ClientSpan, client_spans, shared_spans
from planner.model.intervals import QueueInterval
from planner.model.membership import ClientTuning, GroupMember
from planner.model.snapshot import Capacity
from planner.text.words import counted, some

FEWEST_SPANS = 3
"""With fewer busy spans their spread does not show how sure their mean is."""

SLOW = 0.5
"""A client that does less than this share of another's pace, both with work all the time, has a limit of its own."""

SLOWER = 0.8
"""The same share where the other one had time to spare: what it did is the least that it can do."""

DECIMALS = 3

_T_975 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)
"""Student's t for 95 %, by degrees of freedom from 1 on; from the last one on it is taken to stay."""


def known_capacity(intervals: Sequence[QueueInterval], members: Sequence[GroupMember]) -> Capacity | None:
    """Return the best that is known of one consumer's capacity, ``None`` when nothing is.

    What was observed while consumers were busy comes first, their own figures next, and last the highest rate that was
    observed: a bound that they can do at least. Figures below that bound are refuted by it. What was measured so
    unevenly that it allows for no message at all does not count.
    """
    learned = learned_capacity(client_spans(intervals))
    slow = learned.slow_clients if learned else ()
    reported = observed_capacity([member for member in members if member.identity not in slow])
    if learned is None or not learned.sure_messages_per_s:  # spans may allow for none
        return reported and replace(reported, slow_clients=slow)
    if reported is None:
        return learned
    if not learned.is_lower_bound:
        return replace(learned, source=f"{learned.source}; {reported.source}")
    is_refuted = reported.messages_per_s < learned.messages_per_s
    return learned if is_refuted else replace(reported, slow_clients=slow)


def with_measured(stated: Capacity, learned: Capacity | None) -> Capacity:
    """Return a figure that a policy states with what busy consumers were observed to do, where any were."""
    if learned is None or learned.is_lower_bound or learned.high is None:
        return stated
    return replace(stated, measured_high=learned.high, measured_source=learned.source)


def shared_capacity(intervals: Sequence[QueueInterval]) -> Capacity | None:
    """Return what one of the members can do that share the messages of all queues, ``None`` when nothing was consumed.

    The group's consumption over its members while messages waited: then each has work all the time, as it would have
    taken them otherwise. Never so for a whole span: the highest rate of all spans, as a lower bound.
    """
    learned = _capacity_while_busy(shared_spans(intervals))
    if learned is None or not learned.low:  # pops come in lumps: a few spans may allow for any rate down to none
        return None
    how = "the group's consumption over its members"
    if learned.is_lower_bound:
        least = f"at least {learned.messages_per_s:.1f} messages/s, {how}: messages did not wait all the time"
        return replace(learned, source=least)
    bounds = f"{learned.low:.1f} to {learned.high:.1f} messages/s (95 %)"
    return replace(learned, source=f"{how} while messages waited, {counted(learned.observations, 'span')}: {bounds}")


def learned_capacity(spans: Sequence[ClientSpan]) -> Capacity | None:
    """Return what one consumer can do in messages per second, ``None`` when none consumed anything.

    The mean of the busy spans with its 95 % interval. Never busy for a whole span: the highest rate of all spans, as a
    lower bound. Clients that are slow for a reason of their own are named and left out.
    """
    slow = _slow_clients(spans)
    learned = _capacity_while_busy([span for span in spans if span.client not in slow])
    if learned is None or not slow:
        return learned
    note = f"{some(slow)} left out: never without work, and yet much slower than another"
    return replace(learned, source=f"{learned.source}; {note}", slow_clients=slow)


def _slow_clients(spans: Sequence[ClientSpan]) -> tuple[str, ...]:
    """Return the clients that had work all the time and did much less than another one: their limit is their own."""
    by_client: dict[str, list[ClientSpan]] = {}
    for span in spans:
        by_client.setdefault(span.client, []).append(span)
    busy = {client for client, of_client in by_client.items() if any(span.is_saturated for span in of_client)}
    shown = {client: _shown_rate(of_client) for client, of_client in by_client.items()}
    fastest_busy = max((shown[client] for client in busy), default=0.0)
    fastest_idle = max((rate for client, rate in shown.items() if client not in busy), default=0.0)
    bound = max(SLOW * fastest_busy, SLOWER * fastest_idle)
    return tuple(sorted(client for client in busy if _busy_rate(by_client[client]) < bound))


def _busy_rate(spans: Sequence[ClientSpan]) -> float:
    busy = [span for span in spans if span.is_saturated]
    return sum(span.consumed for span in busy) / sum(span.seconds for span in busy)


def _shown_rate(spans: Sequence[ClientSpan]) -> float:
    """Return what a client did at least, over all its spans together: a single lump of a commit does not count."""
    return sum(span.consumed for span in spans) / sum(span.seconds + span.slack_s for span in spans)


def _capacity_while_busy(spans: Sequence[ClientSpan]) -> Capacity | None:
    busy = [span for span in spans if span.is_saturated]
    if not busy:
        return _lower_bound(spans)
    mean = sum(span.consumed for span in busy) / sum(span.seconds for span in busy)
    low, high = bounds_of(busy, mean)
    consumers = len({span.client for span in busy})
    times = "once" if len(busy) == 1 else f"in {len(busy)} spans"
    return Capacity(
        messages_per_s=round(mean, DECIMALS),
        source=f"measured {times} on {_consumers(consumers)} that had work all the time: "
        f"{low:.1f} to {high:.1f} messages/s (95 %)",
        low=low,
        high=high,
        observations=len(busy),
    )


def bounds_of(busy: Sequence[ClientSpan], mean: float) -> tuple[float, float]:
    """Return the interval of the mean, rounded.

    One or two spans: what the uncertain times of their commits allow. More: Student's t over the spans, too wide rather
    than too narrow, as of two spans that share a commit one gains the time that the other loses.
    """
    if len(busy) < FEWEST_SPANS:
        least, most = min(span.least_rate for span in busy), max(span.most_rate for span in busy)
    else:
        t = _T_975[min(len(busy) - 1, len(_T_975)) - 1]
        margin = t * stdev(span.rate for span in busy) / sqrt(len(busy))
        least, most = max(mean - margin, 0.0), mean + margin
    return round(least, DECIMALS), round(most, DECIMALS)


def _lower_bound(spans: Sequence[ClientSpan]) -> Capacity | None:
    highest = max((span.least_rate for span in spans), default=0.0)
    if highest <= 0:
        return None
    return Capacity(
        messages_per_s=round(highest, DECIMALS),
        source=f"at least {highest:.1f} messages/s, the most that one of them did: none had work all the time",
        low=round(highest, DECIMALS),
        is_lower_bound=True,
    )


def _consumers(count: int) -> str:
    return "1 consumer" if count == 1 else f"{count} consumers"


def observed_capacity(members: Sequence[GroupMember]) -> Capacity | None:
    """Return the mean capacity of the members in messages per second, ``None`` when no figure shows it.

    One listener call at a time and thread: threads / mean time of a call (``consumeRT`` of the last minute,
    topics weighted by their rate). Batches count as one message a call, so the figure is a lower bound there;
    it does not see a limit outside the listener (processor, network).
    """
    figures = [figure for m in members if m.tuning for figure in [_of_member(m.tuning)] if figure is not None]
    if not figures:
        return None
    mean = sum(figures) / len(figures)
    bounds = f"{min(figures):.0f} to {max(figures):.0f}" if len(figures) > 1 else f"{mean:.0f}"
    return Capacity(
        messages_per_s=round(mean, 3),
        source=f"threads / consume time as {len(figures)} of {len(members)} members report it: {bounds} messages/s",
    )


def _of_member(tuning: ClientTuning) -> float | None:
    busy = [figure for figure in tuning.figures if figure.consume_rt_ms > 0 and figure.ok_per_s > 0]
    handled = sum(figure.ok_per_s for figure in busy)
    if not busy or not tuning.threads:
        return None
    mean_rt_ms = sum(figure.consume_rt_ms * figure.ok_per_s for figure in busy) / handled
    return tuning.threads * 1000.0 / mean_rt_ms
