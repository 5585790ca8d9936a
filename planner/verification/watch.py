"""``Watch``: what samples of a group, taken while a plan is carried out, show of the figures that were forecast.

The brokers get no request beyond those of the samples. Every figure is a bound that holds, or unknown. An
executor that comes later knows nothing of the time before its first sample: its bounds are wider, or figures unknown.
"""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from planner.model.queues import Queue
from planner.model.samples import QueueOffsets
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.span import Begun, Span, TimedObservation
from planner.verification.waiting import Waiting


@dataclass(frozen=True, slots=True)
class Watch:
    """All observations so far.

    ``is_late``: the first effect came before the first observation. ``rest`` is the last of a calm group after which
    another one showed the same, so that nothing had changed yet when its offsets were read; ``is_disturbed`` says that
    later ones showed something else, ``churn`` how many members came and went since. ``moved`` are queues that were
    observed with another owner than at first. ``most_duplicates`` messages can have come twice.
    """

    last: TimedObservation
    waiting: Mapping[Queue, Waiting]
    is_late: bool
    first_owners: Mapping[Queue, tuple[str, ...]]
    spans: tuple[Span, ...] = ()
    rest: TimedObservation | None = None
    is_disturbed: bool = False
    churn: int = 0
    moved: frozenset[Queue] = frozenset()
    most_duplicates: float = 0.0

    @classmethod
    def begin(cls, observation: TimedObservation, begun: Begun | None) -> "Watch":
        """Return the watch at its first observation."""
        since_s = min(observation.began_s, begun.first_s) if begun else observation.began_s
        return cls(
            last=observation,
            waiting={
                queue: Waiting.since(since_s, observation.began_s, offsets)
                for queue, offsets in observation.offsets.items()
            },
            is_late=since_s < observation.began_s,
            first_owners=observation.owners,
            spans=(Span(begun),) if begun else (),
        )

    def after(self, observation: TimedObservation, begun: Begun | None) -> "Watch":
        """Return the watch after one more observation."""
        waiting = {queue: self._waiting(queue, each, observation) for queue, each in observation.offsets.items()}
        if begun is None:
            # Nothing was changed yet, so nothing that was observed is the plan's doing.
            fresh = {queue: each.from_now() for queue, each in waiting.items()}
            return replace(
                Watch.begin(observation, None), waiting=fresh, rest=self.last if self._is_at_rest(observation) else None
            )
        spans = self.spans
        if not spans or spans[-1].begun.step != begun.step:
            spans = (*spans, Span(begun))
        churn = self.churn + len(self.last.members ^ observation.members)
        is_at_rest = self._is_at_rest(observation)
        return replace(
            self,
            last=observation,
            waiting=waiting,
            spans=(*spans[:-1], spans[-1].after(self.last, observation, self.waiting, waiting)),
            rest=self.last if is_at_rest else self.rest,
            is_disturbed=not is_at_rest,
            churn=0 if is_at_rest else churn,
            moved=self.moved
            | {q for q, owners in observation.owners.items() if owners != self.first_owners.get(q, owners)},
            most_duplicates=self.most_duplicates + (self._most_duplicates(observation, churn) if is_at_rest else 0.0),
        )

    def oldest_s(self) -> float | None:
        """Return the longest that the oldest message of the group can have waited; ``None`` where that is unknown."""
        ages = [
            self.waiting[queue].oldest_s(self.last.ended_s, offsets) for queue, offsets in self.last.offsets.items()
        ]
        known = [age for age in ages if age is not None]
        return max(known, default=0.0) if len(known) == len(ages) else None

    def observed_change(self, moved_queues: Between | None) -> ObservedChange:
        """Return what is known of the change; ``moved_queues`` is how many have moved in the end."""
        span = self.spans[-1] if self.spans else None
        if span is None or span.delivered_s is None:
            return ObservedChange(moved_queues=moved_queues)
        shares = self.last.shares_messages
        stayed = {queue for queue, owners in self.last.owners.items() if owners == self.first_owners.get(queue)}
        all_past = all(map(span.is_past, self.waiting.values()))
        drained_s = None if span.empty_s is None else Between(0.0, max(0.0, span.empty_s - span.begun.at_s))
        return ObservedChange(
            moved_queues=moved_queues,
            pause_seconds=self._shared_pause() if shares else self._longest(self.moved, span, span.delivered_s),
            stall_seconds=self._longest(self.waiting.keys() if shares else stayed, span, span.delivered_s)
            if all_past
            else None,
            # What is popped counts as committed at once: no commit shows what comes again.
            duplicates=None if self.is_late or shares else Between(0.0, self.most_duplicates),
            settle_seconds=self._settle_s(),
            drained_seconds=drained_s,
            utilisation=self._utilisation(span),
            wait_seconds=Between(0.0, span.wait_s) if all_past and span.wait_s is not None else None,
            is_complete=moved_queues is not None,
        )

    def _waiting(self, queue: Queue, offsets: QueueOffsets, observation: TimedObservation) -> Waiting:
        before = self.waiting.get(queue)
        if before is None:
            return Waiting.since(observation.began_s, observation.began_s, offsets)
        return before.after(observation.began_s, observation.ended_s, offsets)

    def _is_at_rest(self, observation: TimedObservation) -> bool:
        return observation.is_calm and self.last.is_calm and observation.is_same(self.last)

    def _most_duplicates(self, observation: TimedObservation, churn: int) -> float:
        """Return how many messages can have come twice since the group was last at rest, as it is now again.

        A new owner begins no earlier than where the commits were; what another one was given lies below the newest
        message. Whenever the queues change hands, that can happen once.
        """
        if not self.is_disturbed:
            return 0.0
        before = self.rest
        if before is None:
            return math.inf
        has_epochs = observation.epoch is not None and before.epoch is not None
        times = abs((observation.epoch or 0) - (before.epoch or 0)) if has_epochs else max(1, churn)
        return times * sum(_open_end(before, observation, queue) for queue in observation.offsets) if times else 0.0

    def _longest(self, queues: AbstractSet[Queue], span: Span, delivered_s: float) -> Between | None:
        """Return the longest pause of some queues; with a backlog from before the change, until all is over."""
        waits = [
            max(waiting.longest_s, 0.0 if span.is_past(waiting) else delivered_s - waiting.clear.at_s)
            for queue, waiting in self.waiting.items()
            # Which queues moved before the first observation is not known.
            if self.is_late or queue in queues
        ]
        return Between(0.0, max(waits)) if waits else None

    def _settle_s(self) -> Between | None:
        delays = [span.settle_s for span in self.spans]
        known = [delay for delay in delays if delay is not None]
        if self.is_late or len(known) < len(delays):
            return None
        return Between(sum(delay.low for delay in known), sum(delay.high for delay in known))

    def _shared_pause(self) -> Between | None:
        """Return that no queue pauses where every member reads each; unknown where single members read some."""
        return Between.exactly(0) if self.last.busiest_fraction is None else None

    def _utilisation(self, span: Span) -> Between | None:
        """Return the busiest consumer's share of what it can do, by what came for it since the group is calm.

        Few messages say little of a rate: it lies within two roots of their number, with 95 %, where they come by
        chance (Poisson).
        """
        first, last = span.calm, self.last
        if first is None or last.capacity is None or not last.capacity.low or last.began_s <= first.ended_s:
            return None
        came = _came(first, last)
        most = max(came, default=0)
        if min(came, default=0) < 0:  # a topic was made anew
            return None
        least_s, most_s = last.began_s - first.ended_s, last.ended_s - first.began_s
        chance = 2 * math.sqrt(most)
        low, high = max(0.0, most - chance) / most_s, (most + chance + 2) / least_s
        unevenness = last.busiest_fraction * len(last.members) if last.busiest_fraction else 1.0
        return Between(low / last.capacity.high, unevenness * high / last.capacity.low)


def _came(first: TimedObservation, last: TimedObservation) -> list[float]:
    """Return how many messages came for each consumer in between."""
    arrived = {
        queue: offsets.broker_offset - first.offsets[queue].broker_offset for queue, offsets in last.offsets.items()
    }
    if last.shares_messages:
        return [sum(arrived.values()) / len(last.members)]
    came: dict[str, float] = {}
    for queue, owners in last.owners.items():
        came[owners[0]] = came.get(owners[0], 0) + arrived[queue]
    return list(came.values())


def _open_end(before: TimedObservation, now: TimedObservation, queue: Queue) -> float:
    """Return how many messages of a queue two owners can have been given between two observations."""
    then = before.offsets.get(queue)
    if then is None or then.lag is None:
        return math.inf
    return max(0, now.offsets[queue].broker_offset - (then.broker_offset - then.lag))
