"""A decision to stay that is checked again: load and lag are new, and all else is as the decision knew it.

A check costs some milliseconds a group so, as no change is forecast anew: what one costs rests on members, owners,
queues and strategy, and on rates only as far as these shift between the queues.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zlib import crc32

from planner.decision.decision import Decision, HoldCause
from planner.decision.group_weighing import GroupWeighing, weighing_of
from planner.decision.least_cost import DECIMALS, HOUR_S
from planner.decision.objective import Objective
from planner.decision.verdicts import is_able, verdicts_of
from planner.decision.weighing import Weighing
from planner.demand.recent import minute_load
from planner.demand.series import LoadSeries
from planner.model.past_load import MINUTE
from planner.model.queues import Queue
from planner.model.samples import GroupSample, QueueOffsets
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import shares_messages
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.standing import without_standing_work

LONGEST = timedelta(minutes=30)
"""So long a decision stands at most: capacity, shares of queues and prices are then learned anew."""
MOST_GROWTH = 1.1
"""The busiest consumer's part of the load may grow by this factor, and by what chance does to so many messages."""
CHANCE = 3.0
AT_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
SMALL_CHANGE = 0.1
"""A load that differs from the level by less than this part is weighed each minute, not at each check."""
SAME_COST_S = HOUR_S * 10.0**-DECIMALS
"""Counts that cost the same but for this are equal, and the present one stays."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Messages per second of all data queues between two samples, ``seconds`` apart, the second one of ``at``."""

    at: datetime
    seconds: float
    arrival_rate: float


class StandingDecision:
    """A decision to stay, made on ``snapshot``, whose offsets are those of ``sample``; each check goes on from it.

    ``group`` is the group as the decision weighed it.
    """

    def __init__(self, snapshot: GroupSnapshot, sample: GroupSample, group: GroupWeighing) -> None:
        self._snapshot, self._sample, self._group = snapshot, sample, group
        self._sampled_at, self._offsets = sample.at, offsets_of(sample)
        self._spans: list[_Span] = []
        # Groups that were decided on at one time are not weighed again at one time.
        self._weighed_at = sample.at - MINUTE * (crc32(sample.group.encode()) % 60 / 60)
        self._backlog = group.weighing.state.backlog

    def stands(self, sample: GroupSample) -> bool:
        """Return whether the present count is still the cheapest one by what a later sample shows.

        ``False`` also where something else is not as it was (members, owners, queues, Deployment, what could be read),
        a queue counts anew, or the decision is too old: a new one is due then.
        """
        offsets = offsets_of(sample)
        is_later = self._sampled_at < sample.at <= self._snapshot.at + LONGEST
        if not is_later or _fixed(sample) != _fixed(self._sample) or not self._are_known(offsets):
            return False
        self._learn(sample.at, offsets)
        if self._is_busiest_busier():
            return False
        state = self._group.state_of(self._with_lags(offsets))
        if not self._is_worth_weighing(state.backlog):
            return True
        self._weighed_at, self._backlog = sample.at, state.backlog
        series = self._series()
        weighing = replace(self._group.weighing, state=state, series=series)
        return is_cheapest(weighing, self._snapshot.count)

    def _is_worth_weighing(self, backlog: float) -> bool:
        """Return whether a minute has passed since counts were weighed, or load or backlog are others by much."""
        level = float(self._group.weighing.series.level[-1])
        change = abs(self._spans[-1].arrival_rate * self._unit - level)
        is_due = (self._sampled_at - self._weighed_at) >= MINUTE
        return is_due or backlog > self._backlog or change > SMALL_CHANGE * level

    @property
    def _queues(self) -> Sequence[Queue]:
        return [state.queue for state in self._snapshot.data_queues]

    @property
    def _unit(self) -> float:
        """What one message per second is of the series' load."""
        assert self._snapshot.capacity is not None
        return self._group.served_share / self._snapshot.capacity.sure_messages_per_s

    def _series(self) -> LoadSeries:
        """Return the load by minute up to the newest sample; the last minute ends then."""
        minutes = minute_load(self._spans, self._sampled_at)
        loads = [rate * self._unit for rate in minutes.rates]
        return self._group.weighing.series.followed_by(loads, minutes.averaged)

    def _are_known(self, offsets: Mapping[Queue, QueueOffsets]) -> bool:
        """Return whether every queue shows its lag, and goes on from where it was in the last sample."""
        return all(
            queue in offsets
            and offsets[queue].lag is not None
            and offsets[queue].broker_offset >= self._offsets[queue].broker_offset
            for queue in self._queues
        )

    def _learn(self, at: datetime, offsets: Mapping[Queue, QueueOffsets]) -> None:
        """Add the load since the last sample."""
        arrived = sum(offsets[queue].broker_offset - self._offsets[queue].broker_offset for queue in self._queues)
        seconds = (at - self._sampled_at).total_seconds()
        self._spans.append(_Span(at, seconds, arrived / seconds))
        self._sampled_at, self._offsets = at, offsets

    def _is_busiest_busier(self) -> bool:
        """Return whether the busiest consumer has a larger part of the load than the decision went by."""
        if shares_messages(self._snapshot):
            return False
        first, served = offsets_of(self._sample), self._group.served
        by_owner: defaultdict[str | None, float] = defaultdict(float)
        for state in self._snapshot.data_queues:
            if served.get(state.queue):
                by_owner[state.owner] += self._offsets[state.queue].broker_offset - first[state.queue].broker_offset
        weighing = self._group.weighing
        share = float(weighing.shares[weighing.counts.index(self._snapshot.count)])
        expected = share * sum(by_owner.values())
        return max(by_owner.values(), default=0.0) > MOST_GROWTH * expected + CHANCE * math.sqrt(expected) + 1.0

    def _with_lags(self, offsets: Mapping[Queue, QueueOffsets]) -> GroupSnapshot:
        states = (
            replace(state, lag=offsets[state.queue].lag) if state.queue in offsets else state
            for state in self._snapshot.queues
        )
        return replace(self._snapshot, queues=tuple(states))


def standing_decision(
    snapshot: GroupSnapshot,
    outcomes: Sequence[CandidateOutcome],
    objective: Objective,
    decision: Decision,
    sample: GroupSample,
) -> StandingDecision | None:
    """Return the decision on the snapshot as one that can be checked again; ``sample`` is the snapshot's newest.

    ``None`` for one that changes something, that holds because of anything but costs, or that rests on more than costs:
    on bounds of the policy, known events, or a quiet time after which all pods stop.
    """
    bounds = (objective.stated_utilisation, objective.oldest_message_s, objective.backlog_gone_s, objective.idle_s)
    rests_on_costs = objective.wait is not None and not objective.events and all(bound is None for bound in bounds)
    if not rests_on_costs or decision.hold_cause is not HoldCause.RIGHT_ALREADY or decision.bill is None:
        return None
    assert objective.wait is not None
    weighed = [
        verdict.outcome
        for count, verdict in verdicts_of(snapshot, outcomes, objective).items()
        if (is_able(verdict, objective) and objective.lowest <= count <= objective.highest) or count == snapshot.count
    ]
    known = without_standing_work(snapshot)
    offsets = offsets_of(sample)
    if any(state.queue not in offsets for state in snapshot.data_queues):
        return None
    group = weighing_of(known, weighed, objective.wait)
    if group is None or not is_cheapest(group.weighing, snapshot.count):
        return None
    return StandingDecision(known, sample, group)


def is_cheapest(weighing: Weighing, count: int) -> bool:
    """Return whether no count costs less than this one."""
    bill = weighing.bill()
    return bool(bill.costs[bill.counts.index(count)] <= bill.costs.min() + SAME_COST_S)


def offsets_of(sample: GroupSample) -> Mapping[Queue, QueueOffsets]:
    """Return the sample's offsets by queue."""
    return {offsets.queue: offsets for offsets in sample.offsets}


def _fixed(sample: GroupSample) -> tuple[object, ...]:
    """Return what of a sample has to stay as it is for a decision to stand."""
    members = [(member.identity, member.owned) for member in sample.members]
    unlisted = sample.unlisted_activity
    hidden = unlisted and (unlisted.proxies, unlisted.has_popped, unlisted.is_complete)
    # When the target was read is of every sample; its version is another with each status that a controller writes.
    target = sample.deployment and replace(sample.deployment, at=AT_ANY_TIME, resource_version="")
    return members, sample.routes, sample.kafka, target, sample.problems, hidden
