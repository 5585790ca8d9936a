"""What one pod can do: learned from when all of its members were busy at once, as they may share its processors."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from planner.history.busy import SPAN_S, ClientSpan
from planner.model.snapshot import Capacity
from planner.snapshot.capacity import DECIMALS, bounds_of
from planner.text.words import counted

STATED = "stated by the policy"
"""The source of a figure or a name that a policy stated: nothing that somebody observed."""


def with_pod_capacity(
    capacity: Capacity | None, spans: Sequence[ClientSpan], pods: Mapping[str, str], per_pod: int | None
) -> Capacity | None:
    """Return the capacity with what a pod's members do together, where some pod was observed with all of them busy.

    ``pods`` is member -> pod, ``per_pod`` how many each runs; pods of one member can do what that can. A statement of
    the policy stays, be it of one consumer or of one pod.
    """
    if capacity is None or STATED in (capacity.source, capacity.pod_source) or not per_pod or per_pod == 1:
        return capacity
    busy = [span for span in pod_spans(spans, pods) if span.seconds > span.slack_s]
    if sum(span.seconds for span in busy) < SPAN_S:
        return capacity
    mean = sum(span.consumed for span in busy) / sum(span.seconds for span in busy)
    low, high = bounds_of(busy, mean)
    if not low:  # few spans that differ much may allow for any rate down to none
        return capacity
    busy_pods = f"{counted(len({span.client for span in busy}), 'pod')} whose {per_pod} consumers all had work"
    return replace(
        capacity,
        pod_messages_per_s=round(mean, DECIMALS),
        pod_low=low,
        pod_source=f"measured {counted(len(busy), 'time')} on {busy_pods}: {low:.1f} to {high:.1f} messages/s (95 %)",
    )


def with_stated_pod(capacity: Capacity | None, stated: float | None, per_pod: int | None) -> Capacity | None:
    """Return the capacity with what the policy states of one pod, in messages per second; the same without that.

    Where nothing else is known of its ``per_pod`` consumers, each can do an even part of it.
    """
    if stated is None or (capacity is None and per_pod is None):
        return capacity
    capacity = capacity or Capacity(stated / (per_pod or 1), STATED)
    return replace(capacity, pod_messages_per_s=stated, pod_low=None, pod_source=STATED)


def pod_spans(spans: Sequence[ClientSpan], pods: Mapping[str, str]) -> Iterator[ClientSpan]:
    """Yield the times in which all members of a pod were busy, with what they consumed together, by pod and time."""
    members: defaultdict[str, set[str]] = defaultdict(set)
    for member, pod in pods.items():
        members[pod].add(member)
    for pod in sorted(members):
        of_pod = [span for span in spans if span.is_saturated and span.client in members[pod]]
        yield from _together(pod, of_pod, len(members[pod]))


def _together(pod: str, spans: Sequence[ClientSpan], members: int) -> Iterator[ClientSpan]:
    """Yield the stretches between two ends of spans in which spans of all members run."""
    times = sorted({time for span in spans for time in (span.started_at, _end(span))})
    for begin, end in pairwise(times):
        covering = [span for span in spans if span.started_at <= begin and end <= _end(span)]
        if len(covering) < members:
            continue
        seconds = (end - begin).total_seconds()
        consumed = round(sum(span.rate for span in covering) * seconds)
        # A stretch within spans is as long as it is: only what was consumed in it is known less well.
        slack_s = max(span.slack_s * seconds / span.seconds for span in covering)
        yield ClientSpan(pod, begin, seconds, consumed, is_saturated=True, slack_s=slack_s)


def _end(span: ClientSpan) -> datetime:
    return span.started_at + timedelta(seconds=span.seconds)
