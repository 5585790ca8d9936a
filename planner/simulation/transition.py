"""What going from a snapshot's group to a candidate costs: the snapshot as a request of ``planner forecast``, pooled.

What the snapshot knows only as an interval (rates, time of a call, threads, settings that members do not share) is
sampled at both ends: one half of the trials takes all lower ends, the other all upper ones.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.errors import PlannerError
from planner.forecast.answers import run_totals
from planner.forecast.common.tails import Tail, find_tail
from planner.forecast.trials import Floats, Totals, interval, pool_totals
from planner.model.snapshot import GroupSnapshot
from planner.model.systems import system_named
from planner.simulation.bounds import ENDS
from planner.simulation.group_model import Change, Request, group_model
from planner.simulation.outcome import NO_TRANSITION, CandidateOutcome, LongTail, Messages, Seconds, Transition
from planner.text.words import counted, some

TRIALS = 200
"""Trials of each candidate, the same from the command line and on Spark."""


def with_transition(
    outcome: CandidateOutcome, snapshot: GroupSnapshot, digest: str, trials: int = TRIALS
) -> CandidateOutcome:
    """Return the outcome with what the change to it costs, ``digest`` being the snapshot's.

    Where it is unknown, ``transition`` stays ``None`` and ``unknowns`` says why. Equal digest, group, strategy and
    count draw the same numbers, whatever the caller and the order.
    """
    if outcome.is_current:
        return replace(outcome, transition=NO_TRANSITION)
    outcome = replace(outcome, unknowns=(*outcome.unknowns, *_of_other_groups(snapshot)))
    if (by_rule := group_model(snapshot).cost_by_rule(outcome)) is not None:
        return by_rule
    try:
        requests = transition_requests(outcome, snapshot, digest, trials)
        totals = pool_totals([run_totals(request) for request in requests])
    except PlannerError as error:
        why = f"what the change itself costs in pauses and duplicates: {str(error).rstrip('.')}"
        return replace(outcome, unknowns=(*outcome.unknowns, why))
    assumed = group_model(snapshot).assumptions(outcome)
    unknowns = (*outcome.unknowns, *assumed, *_in_order(outcome, snapshot))
    return replace(outcome, transition=_transition(totals), unknowns=unknowns)


def pool_transitions(
    outcome: CandidateOutcome, snapshots: Sequence[GroupSnapshot], digest: str, trials: int = TRIALS
) -> Transition | None:
    """Return what the change to ``outcome`` costs a group that is as one of ``snapshots`` says when it is made.

    Each of them has all trials, so that the intervals span them. ``None`` where the cost follows by a rule.
    """
    if any(group_model(snapshot).cost_by_rule(outcome) is not None for snapshot in snapshots):
        return None
    requests = [request for snapshot in snapshots for request in transition_requests(outcome, snapshot, digest, trials)]
    return _transition(pool_totals([run_totals(request) for request in requests]))


def _of_other_groups(snapshot: GroupSnapshot) -> Iterator[str]:
    """Yield what the forecast of one group leaves out where its clients serve others, too."""
    shared = system_named(snapshot.system).shared_client
    if not snapshot.other_groups or shared is None:
        return
    clients = {client for other in snapshot.other_groups for client in other.clients}
    names = some([other.group for other in snapshot.other_groups])
    yield (
        f"what the rebalances of {names} do to this group, and this change to them: {counted(len(clients), 'client')} "
        f"of this group {'is a member' if len(clients) == 1 else 'are members'} there, too, and {shared} "
        "(spec.scaleTargetRef.sharedWith has groups of the same pods planned together)"
    )


def _in_order(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Iterator[str]:
    """Yield what the forecast leaves out of a StatefulSet whose pods wait for each other."""
    ordinals = snapshot.deployment.ordinals if snapshot.deployment else None
    if ordinals is not None and ordinals.is_ordered and abs(outcome.count - snapshot.count) > 1:
        yield (
            "how long pods wait for each other: with podManagementPolicy OrderedReady one starts or stops after "
            "another, each with a rebalance of its own, and the forecast has them all at once"
        )


def transition_requests(
    outcome: CandidateOutcome, snapshot: GroupSnapshot, digest: str, trials: int = TRIALS
) -> tuple[Request, ...]:
    """Return the forecasts to run: one where every input is known, else one for each bound of what is not.

    Raises ``BadInputError`` with what is not known and has no interval either.
    """
    seed = seed_of(digest, snapshot.group, outcome.strategy, outcome.count)
    futures = [group_model(snapshot).requests(outcome, end) for end in ENDS]
    each = max(trials // len(futures[0]), 1)
    return tuple(
        request
        for number, (lower, upper) in enumerate(zip(*futures, strict=True))
        for request in _share_trials(lower, upper, seed + 2 * number, each)
    )


def transition_of(
    current: CandidateOutcome,
    snapshot: GroupSnapshot,
    digest: str,
    changes: tuple[Change, Change],
    trials: int,
    producers: Mapping[str, str] | None = None,
) -> Transition:
    """Return what a change costs that keeps the count; ``current`` is the outcome of the group as it is.

    ``changes`` are the lower and the upper bound of what is known of it as an interval, equal where all is known.
    ``producers`` say how those of each topic choose the queue. Raises ``BadInputError`` as ``transition_requests``
    does, and for a change that has no forecast.
    """
    lower, upper = (
        group_model(snapshot).request(current, end, change, producers)
        for end, change in zip(ENDS, changes, strict=True)
    )
    seed = seed_of(digest, snapshot.group, current.strategy, current.count)
    totals = pool_totals([run_totals(request) for request in _share_trials(lower, upper, seed, trials)])
    # Where queues pass through several hands others deliver them in between: a pause is then as long as nobody does.
    return _transition(totals if totals.unread_s is None else replace(totals, pause_s=totals.unread_s))


def _share_trials(lower: Request, upper: Request, seed: int, trials: int) -> tuple[Request, ...]:
    """Return one request with all trials, or one a half where the ends differ."""
    if _are_alike(lower, upper):
        return (replace(lower, trials=trials, seed=seed),)
    half = trials // 2
    return replace(lower, trials=trials - half, seed=seed), replace(upper, trials=max(half, 1), seed=seed + 1)


def _are_alike(lower: Request, upper: Request) -> bool:
    """Return whether two requests of one group say the same: strategies of a user's own know no equality."""
    change = upper.change
    if hasattr(change, "to") and hasattr(lower.change, "to"):
        change = replace(change, to=lower.change.to)
    return bool(lower == replace(upper, strategy=lower.strategy, change=change))


def seed_of(digest: str, group: str, strategy: str, count: int) -> int:
    """Return the seed of a candidate's trials: even, below 2**63, the same on every machine."""
    named = "\n".join((digest, group, strategy, str(count)))
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big") >> 2 << 1


def _transition(totals: Totals) -> Transition:
    document = totals.document()
    return Transition(
        _seconds(totals.pause_s),
        _seconds(totals.stall_s),
        Messages(**document["duplicates"]),
        Messages(**document["burst_messages"]),
        _seconds(totals.settle_s),
        _seconds(totals.drained_s, has_tail=False),
    )


def _seconds(values: Floats | None, *, has_tail: bool = True) -> Seconds | None:
    """Return a figure's interval over all trials, with its long tail; ``None`` where it is not known in any."""
    middle = None if values is None else interval(values)
    if values is None or middle is None:
        return None
    tail = find_tail(values) if has_tail else None
    return Seconds(**middle, tail=None if tail is None else _long_tail(tail))


def _long_tail(tail: Tail) -> LongTail:
    (low, high), (late, worst) = (
        (round(float(np.quantile(seconds, 0.05)), 4), round(float(np.quantile(seconds, 0.95)), 4))
        for seconds in (tail.usual, tail.late)
    )
    return LongTail(round(tail.share, 4), low, high, late, worst)
