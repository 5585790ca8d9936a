"""The decision on one group: the count to have, or that it stays as it is, with the reason and why not the others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from planner.decision.best_count import best_count, weighed_counts
from planner.decision.choice_words import (
    describe_by_bill,
    describe_chosen,
    describe_left_out,
    describe_none_better,
    explain_rejections,
)
from planner.decision.decision import Decision, DecisionBill, HoldCause, Rejection
from planner.decision.expected_events import event_rise, name_events
from planner.decision.hold_reasons import (
    HoldReason,
    first_reason_against_fewer,
    first_reason_to_hold,
    first_reason_to_stay_at_zero,
)
from planner.decision.least_cost import CountBills, bill_counts
from planner.decision.objective import Objective
from planner.decision.reasons_to_stay import beyond_any_count, reason_to_stay
from planner.decision.step_limits import decide_within_steps
from planner.decision.verdicts import Verdict, is_able, verdicts_of
from planner.decision.zero import rejected_zero, start_first, starts_from_zero, stop_all, why_not_to_zero
from planner.demand.events import describe_events
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.standing import without_standing_work
from planner.text.words import pods, pods_between, queue_noun


def decide(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], objective: Objective, at: datetime
) -> Decision:
    """Return the decision on the group at time ``at``; outcomes of other strategies than the group's are ignored.

    Of the useful counts that meet every lasting bound the one wins that costs least over possible futures of the load
    (``Objective.wait``); without that objective the smallest, or a larger one where the time that it saves on a backlog
    is worth its consumers. Where none meets them, the best one wins if it is better than the present
    count. Where the winner is beyond the policy's step limits, the best one within them wins. When the winner is the
    present count, or the data cannot carry a decision, the answer is hold.
    """
    if starts_from_zero(snapshot, objective):
        return _from_zero(snapshot, objective, at)
    why_not_zero = _why_not_zero(snapshot, objective, at)
    if why_not_zero is None:
        return stop_all(snapshot, objective, at)
    decision = decide_within_steps(snapshot, objective, at, lambda within: _decide(snapshot, outcomes, within, at))
    if objective.idle_s is None:
        return decision
    return replace(decision, rejected=(rejected_zero(why_not_zero), *decision.rejected))


def _from_zero(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> Decision:
    """Return the start of the first pod, or the hold at none."""
    reason = first_reason_to_stay_at_zero(snapshot, objective, at)
    return start_first(snapshot, objective, at) if reason is None else _hold(snapshot, at, reason, ())


def _why_not_zero(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> str | None:
    """Return why the group keeps a pod, ``None`` where every pod is to stop."""
    if objective.idle_s is None:
        return "the policy keeps one pod at least"
    reason = first_reason_to_hold(snapshot, objective, at, needs_capacity=False)
    reason = reason or first_reason_against_fewer(snapshot, objective, at)
    coming = describe_events(objective.events, at, objective.answered_after_s)
    return reason[1] if reason else coming or why_not_to_zero(snapshot, objective, at)


def _decide(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], objective: Objective, at: datetime
) -> Decision:
    """Return the decision among counts of at least one."""
    reason = first_reason_to_hold(snapshot, objective, at)
    if reason is not None:
        return _hold(snapshot, at, reason, ())
    verdicts = verdicts_of(snapshot, outcomes, objective)
    bills = _bills(snapshot, verdicts, objective)
    if objective.wait is not None and bills is None and verdicts:
        return _hold(
            snapshot,
            at,
            (HoldCause.UNKNOWN_RATES, f"the mean arrival rate of some {queue_noun(snapshot.system)} is unknown"),
            (),
        )
    current = snapshot.count
    chosen = best_count(verdicts, current, objective, bills)
    rejected = tuple(explain_rejections(snapshot.system, verdicts, chosen, objective, bills))
    if chosen is None:
        why = describe_none_better(verdicts, objective)
        return _hold(snapshot, at, beyond_any_count(snapshot, objective, why), rejected)
    is_weighed = bills is not None and bills.weighs(chosen.outcome.count) and not chosen.lasting
    bill = bills.shown(chosen.outcome.count) if bills and is_weighed else None
    late = bills.why_none_keeps_up(weighed_counts(verdicts, objective, bills)) if bills and bill else ""
    why = _explain(snapshot, chosen, objective, bill, late)
    at_best = HoldCause.NO_COUNT_MEETS if late else HoldCause.RIGHT_ALREADY
    reason = reason_to_stay(snapshot, chosen, objective, at, (at_best, why))
    if reason is not None:
        return _hold(snapshot, at, reason, rejected, bill)
    return Decision(
        group=snapshot.group,
        decided_at=at,
        strategy=snapshot.strategy,
        current=current,
        target=chosen.outcome.count,
        reason=f"Scale from {pods_between(current, chosen.outcome.count, chosen.outcome.members_per_pod)}: {why}.",
        rejected=rejected,
        bill=bill,
        members_per_pod=chosen.outcome.members_per_pod,
    )


def _explain(
    snapshot: GroupSnapshot, chosen: Verdict, objective: Objective, bill: DecisionBill | None, late: str
) -> str:
    """Return why a count won: by its bill where counts are weighed, and what of the load that takes in or leaves out.

    ``late`` says why messages are late with any count, where they are.
    """
    if bill is not None:
        why = describe_by_bill(bill, snapshot, chosen, late)
        events = name_events(snapshot, objective, bill.horizon_seconds)
    else:
        why = describe_chosen(chosen, objective, event_rise(snapshot, objective))
        events = name_events(snapshot, objective, objective.answered_after_s)
    return why + events + describe_left_out(snapshot)


def _bills(snapshot: GroupSnapshot, verdicts: Mapping[int, Verdict], objective: Objective) -> CountBills | None:
    """Return what the counts cost, ``None`` for a policy that does not weigh, or where the load is not known."""
    if objective.wait is None or snapshot.count not in verdicts:
        return None
    weighed = [verdict for verdict in verdicts.values() if is_able(verdict, objective) or verdict.outcome.is_current]
    late_s = {verdict.outcome.count: verdict.late_s for verdict in weighed}
    weighed_outcomes = [verdict.outcome for verdict in weighed]
    return bill_counts(without_standing_work(snapshot), weighed_outcomes, late_s, objective.wait, objective.events)


def _hold(
    snapshot: GroupSnapshot,
    at: datetime,
    reason: HoldReason,
    rejected: tuple[Rejection, ...],
    bill: DecisionBill | None = None,
) -> Decision:
    cause, sentence = reason
    current = snapshot.count
    text = f"Hold at {pods(current, len(snapshot.clients))}: {sentence}."
    per_pod = snapshot.members_per_pod or 1
    return Decision(snapshot.group, at, snapshot.strategy, current, current, text, rejected, cause, bill, per_pod)
