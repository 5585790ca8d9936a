"""Why a count was chosen, and why each other one was not, in sentences."""

from collections.abc import Iterable, Iterator, Mapping

from planner.decision.best_count import changeable_utilisation
from planner.decision.bill_words import describe_choice, describe_difference
from planner.decision.decision import DecisionBill, Rejection
from planner.decision.least_cost import CountBills
from planner.decision.misses import recovery_s
from planner.decision.objective import Objective
from planner.decision.pace import keeps_up
from planner.decision.verdicts import Verdict, can_be_chosen
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome
from planner.text.words import counted, duration, pods, queues, scaled, some


def explain_rejections(
    system: str,
    verdicts: Mapping[int, Verdict],
    chosen: Verdict | None,
    objective: Objective,
    bills: CountBills | None,
) -> Iterator[Rejection]:
    """Yield each count that was not chosen with the sentences that speak against it."""
    for count, verdict in verdicts.items():
        if chosen is not None and count == chosen.outcome.count:
            continue
        reasons = list(verdict.sentences)
        if not can_be_chosen(verdict.outcome, objective):
            reasons.append(
                f"one {scaled(verdict.outcome.members_per_pod)} fewer leaves nobody more than "
                f"{queues(verdict.outcome.largest_share, system)} either: it relieves nobody"
            )
        if not reasons and chosen is not None:
            reasons.append(_too_dear(verdict, chosen, bills))
        yield Rejection(count, tuple(reasons))


def _too_dear(verdict: Verdict, chosen: Verdict, bills: CountBills | None) -> str:
    if bills is not None:
        line, least = bills.whole.line(verdict.outcome.count), bills.whole.line(chosen.outcome.count)
        if line is None or least is None:
            return bills.why_unweighed(verdict.outcome.count)
        return describe_difference(bills.whole, line, least)
    further = verdict.outcome.count - chosen.outcome.count
    if chosen.late_s and further > 0:
        return f"the {duration(chosen.late_s)} that it saves are not worth {_pods(further, chosen.outcome)} more"
    count = chosen.outcome.count
    return f"{_pods(count, chosen.outcome)} {'is' if count == 1 else 'are'} enough"


def describe_none_better(verdicts: Mapping[int, Verdict], objective: Objective) -> str:
    """Return that no count within the policy's bounds is any better, and what speaks against the closest one."""
    allowed = [verdict for count, verdict in verdicts.items() if objective.lowest <= count <= objective.highest]
    if not allowed:
        return "no useful count lies within the policy's bounds"
    best = min(allowed, key=_rounded_utilisation)
    return (
        f"no useful count from {objective.lowest} to {objective.highest} meets the objective or is better; with "
        f"{best.outcome.count}, which comes closest, {_first(best.sentences)}"
    )


def _rounded_utilisation(verdict: Verdict) -> tuple[float, int]:
    """Return the busiest consumer's utilisation as sentences round it, and the count: less of both is closer."""
    utilisation = verdict.outcome.utilisation
    return float("inf") if utilisation is None else round(utilisation, 2), verdict.outcome.count


def describe_chosen(chosen: Verdict, objective: Objective, rise: float) -> str:
    """Return why a count won without a bill; ``rise`` is the factor by which events raise the load, 1 without any."""
    outcome = chosen.outcome
    events = f" times {rise:.3g}, as events raise it" if rise > 1.0 else ""
    busiest = f"the busiest consumer is used at {outcome.utilisation:.0%} at the recent upper rate{events}"
    if chosen.lasting:
        return (
            f"no allowed count meets the objective, and this one {_why_closest(outcome, objective)}: "
            f"{_first(chosen.lasting)}{_backlog(outcome)}"
        )
    late = chosen.delays[0].late_s if chosen.delays else 0.0
    note = f", {duration(late)} later than the objective asks for, which more consumers are not worth" if late else ""
    return f"{busiest}{_backlog(outcome)}{note}{_wait(outcome, objective)}"


def _why_closest(outcome: CandidateOutcome, objective: Objective) -> str:
    hot = outcome.hot_queue
    if hot is None or changeable_utilisation(outcome, objective) > objective.max_utilisation:
        return "comes closest"
    return f"is the smallest that leaves only a hot {hot.noun}'s owner above it"


def describe_left_out(snapshot: GroupSnapshot) -> str:
    """Say that queues of which nothing is consumed are no part of the reason."""
    if not snapshot.standing_queues:
        return ""
    return (
        f"; what waits in {some(snapshot.standing_queues)}, of which nothing is consumed, is left out, as no count "
        "frees it: look at its consumer first"
    )


def describe_by_bill(bill: DecisionBill, snapshot: GroupSnapshot, chosen: Verdict, late: str) -> str:
    """Return why a count won by its bill; ``late`` says why messages are late with any count, where they are."""
    why = describe_choice(bill, snapshot.count, chosen.outcome.count)
    if not keeps_up(snapshot):
        why += _backlog(chosen.outcome, by_bill=True)
    return f"{late}; {why}" if late else why


def _backlog(outcome: CandidateOutcome, *, by_bill: bool = False) -> str:
    """Say when the backlog is gone at the recent upper rate; a bill goes by possible loads, which may be lower."""
    if outcome.lag is None:
        return "; how long the backlog takes is not known, as not every offset is committed yet"
    if not outcome.lag:
        return ""
    backlog = f"the backlog of {counted(outcome.lag, 'message')}"
    if outcome.drain_s is not None:
        return f" and {backlog} will be gone after {duration(outcome.drain_s)}"
    if by_bill:
        return f"; at the recent upper rate {backlog} would not be gone"
    return f" and {backlog} will never be gone"


def _wait(outcome: CandidateOutcome, objective: Objective) -> str:
    """Say for how long a stated bound on the wait stays broken."""
    still_s, allowed_s = recovery_s(outcome, objective), objective.oldest_message_s
    if not still_s or allowed_s is None:
        return ""
    return f"; a new message waits {duration(outcome.wait_s)} now, below {duration(allowed_s)} in {duration(still_s)}"


def _first(sentences: Iterable[str]) -> str:
    return next(iter(sentences), "it relieves nobody")


def _pods(count: int, outcome: CandidateOutcome) -> str:
    return pods(count, count * outcome.members_per_pod)
