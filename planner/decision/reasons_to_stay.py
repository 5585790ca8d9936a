"""Why a group stays as it is although a count was chosen, or because none could be."""

from datetime import datetime

from planner.decision.decision import HoldCause
from planner.decision.expected_events import event_rise
from planner.decision.growth import vain_growth
from planner.decision.hold_reasons import (
    HoldReason,
    blocked,
    first_reason_against_fewer,
    refuted,
    slow,
)
from planner.decision.objective import Objective
from planner.decision.pace import KEEPS_UP_S, drowns, falls_behind, keeps_up
from planner.decision.verdicts import Verdict
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.text.words import duration, pods


def reason_to_stay(
    snapshot: GroupSnapshot, chosen: Verdict, objective: Objective, at: datetime, at_best: HoldReason
) -> HoldReason | None:
    """Return why the group stays as it is although ``chosen`` won, ``None`` where it is to change.

    ``at_best`` is the reason where ``chosen`` is the present count.
    """
    current, target = snapshot.count, chosen.outcome.count
    if target < current:
        return first_reason_against_fewer(snapshot, objective, at)
    capacity = snapshot.capacity
    if target > current:
        if target <= objective.lowest or current < objective.lowest:
            return None
        if (vain := vain_growth(snapshot)) is not None:
            return HoldCause.GROWTH_DID_NOT_HELP, vain.describe(at)
        return _reason_not_to_grow(snapshot, objective, capacity) if capacity and capacity.is_lower_bound else None
    return _reason_at_best(snapshot, objective, at_best)


def _reason_at_best(snapshot: GroupSnapshot, objective: Objective, at_best: HoldReason) -> HoldReason:
    """Return why the present count stays, which is the best one by ``at_best``."""
    capacity, (cause, why) = snapshot.capacity, at_best
    if capacity is not None and capacity.slow_clients:
        return blocked(snapshot) or (HoldCause.SLOW_MEMBERS, slow(capacity))
    if cause is HoldCause.NO_COUNT_MEETS:
        return beyond_any_count(snapshot, objective, why)
    if capacity is not None and capacity.is_lower_bound and (reason := _keeps_up(snapshot, objective, capacity)):
        return blocked(snapshot) or reason
    smallest = "" if objective.wait is not None else ", and no smaller count meets the objective"
    return blocked(snapshot) or _refuted_by_backlog(snapshot) or (cause, f"{why}{smallest}")


def _refuted_by_backlog(snapshot: GroupSnapshot) -> HoldReason | None:
    """Return that the stated capacity is wrong, of a group whose backlog shows that the present count is too small."""
    return refuted(snapshot) if drowns(snapshot) else None


def beyond_any_count(snapshot: GroupSnapshot, objective: Objective, why: str) -> HoldReason:
    """Return that no count is enough, as ``why`` says: a bound from below shows that only of a group that falls behind.

    Else it is what one consumer can do that is not known, or the group keeps up with its load as it is.
    """
    capacity = snapshot.capacity
    is_bound = capacity is not None and capacity.is_lower_bound
    reason = _reason_not_to_grow(snapshot, objective, capacity) if capacity and is_bound else blocked(snapshot)
    return reason or (HoldCause.NO_COUNT_MEETS, why)


def _reason_not_to_grow(snapshot: GroupSnapshot, objective: Objective, capacity: Capacity) -> HoldReason | None:
    """Return why a bound from below is no reason to grow; it is one for a group that falls behind."""
    if capacity.slow_clients:
        return HoldCause.SLOW_MEMBERS, slow(capacity)
    if falls_behind(snapshot):
        return None
    if (block := blocked(snapshot)) is not None:
        return block
    return _keeps_up(snapshot, objective, capacity) or (HoldCause.UNKNOWN_CAPACITY, _perhaps_enough(capacity))


def _keeps_up(snapshot: GroupSnapshot, objective: Objective, capacity: Capacity) -> HoldReason | None:
    """Return that the group keeps up and a bound from below does not show whether fewer would, ``None`` otherwise."""
    if not keeps_up(snapshot) or event_rise(snapshot, objective) != 1.0:
        return None
    return HoldCause.RIGHT_ALREADY, (
        f"{pods(snapshot.count, len(snapshot.clients))} keep up, nothing but the last {duration(KEEPS_UP_S)} of "
        f"arrivals waits; whether fewer would do is not known, as what one can do is known as {capacity.source}"
    )


def _perhaps_enough(capacity: Capacity) -> str:
    """A bound from below shows that fewer consumers are enough, never that more are needed."""
    return (
        f"what one consumer can do is known as {capacity.source}; whether more are needed shows when one is busy, or "
        "state spec.capacity in the policy"
    )
