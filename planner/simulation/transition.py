"""What going from a snapshot's group to a candidate costs: the snapshot as a request of ``planner forecast``, pooled.

What the snapshot knows only as an interval (rates, time of a call, threads, settings that members do not share) is
sampled at both ends: one half of the trials takes all lower ends, the other all upper ones.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import PlannerError
from planner.forecast.answers import run_totals
from planner.forecast.trials import Document, interval, pool_totals
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import NO_TRANSITION, CandidateOutcome, Messages, Seconds, Transition
from planner.simulation.requests import ENDS, kafka, rocketmq

TRIALS = 200
"""Trials of each candidate, the same from the command line and on Spark."""


@dataclass(frozen=True, slots=True)
class System:
    """How a group of one system is written down: its request at one end of what is unknown, and what it supposes."""

    request: Callable[[CandidateOutcome, GroupSnapshot, int], Document]
    assumed: Callable[[CandidateOutcome, GroupSnapshot], Iterator[str]]


SYSTEMS: Mapping[str, System] = {
    "rocketmq": System(rocketmq.request, rocketmq.assumed),
    "kafka": System(kafka.request, kafka.assumed),
}


def with_transition(
    outcome: CandidateOutcome, snapshot: GroupSnapshot, digest: str, trials: int = TRIALS
) -> CandidateOutcome:
    """Return the outcome with what the change to it costs, ``digest`` being the snapshot's.

    Where it is unknown, ``transition`` stays ``None`` and ``unknowns`` says why. Equal digest, group, strategy and
    count draw the same numbers, whatever the caller and the order.
    """
    if outcome.is_current:
        return replace(outcome, transition=NO_TRANSITION)
    try:
        requests = transition_requests(outcome, snapshot, digest, trials)
        document = pool_totals([run_totals(request) for request in requests]).document()
    except PlannerError as error:
        why = f"what the change itself costs in pauses and duplicates: {str(error).rstrip('.')}"
        return replace(outcome, unknowns=(*outcome.unknowns, why))
    assumed = SYSTEMS[snapshot.system].assumed(outcome, snapshot)
    return replace(outcome, transition=_transition(document), unknowns=(*outcome.unknowns, *assumed))


def transition_requests(
    outcome: CandidateOutcome, snapshot: GroupSnapshot, digest: str, trials: int = TRIALS
) -> tuple[Document, ...]:
    """Return the forecasts to run: one where every input is known, else one for each bound of what is not.

    Raises ``BadInputError`` with what is not known and has no interval either.
    """
    lower, upper = (SYSTEMS[snapshot.system].request(outcome, snapshot, end) for end in ENDS)
    return _share_trials(lower, upper, seed_of(digest, snapshot.group, outcome.strategy, outcome.count), trials)


def transition_of(
    current: CandidateOutcome, snapshot: GroupSnapshot, digest: str, changes: tuple[Document, Document], trials: int
) -> Transition:
    """Return what a change costs that keeps the count; ``current`` is the outcome of the group as it is.

    ``changes`` are the lower and the upper bound of what is known of it as an interval, equal where all is known.
    Raises ``BadInputError`` as ``transition_requests`` does, and for a change that has no forecast.
    """
    lower, upper = (
        {**SYSTEMS[snapshot.system].request(current, snapshot, end), "change": change}
        for end, change in zip(ENDS, changes, strict=True)
    )
    seed = seed_of(digest, snapshot.group, current.strategy, current.count)
    totals = pool_totals([run_totals(request) for request in _share_trials(lower, upper, seed, trials)])
    document = totals.document()
    # Where queues pass through several hands others deliver them in between: a pause is then as long as nobody does.
    return _transition(document if totals.unread_s is None else {**document, "pause_s": interval(totals.unread_s)})


def _share_trials(lower: Document, upper: Document, seed: int, trials: int) -> tuple[Document, ...]:
    """Return one request with all trials, or one a half where the ends differ."""
    if lower == upper:
        return ({**lower, "trials": trials, "seed": seed},)
    half = trials // 2
    return {**lower, "trials": trials - half, "seed": seed}, {**upper, "trials": max(half, 1), "seed": seed + 1}


def seed_of(digest: str, group: str, strategy: str, count: int) -> int:
    """Return the seed of a candidate's trials: even, below 2**63, the same on every machine."""
    named = "\n".join((digest, group, strategy, str(count)))
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big") >> 2 << 1


def _transition(document: Mapping[str, Any]) -> Transition:
    def seconds(name: str) -> Seconds | None:
        return Seconds(**document[name]) if document[name] else None

    return Transition(
        seconds("pause_s"),
        seconds("stall_s"),
        Messages(**document["duplicates"]),
        Messages(**document["burst_messages"]),
        seconds("settle_s"),
        seconds("drained_s"),
    )
