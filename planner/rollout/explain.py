"""A plan or a hold in words, the decision first: the same steps that an executor carries out."""

import re
from collections.abc import Iterator, Sequence

from planner.decision.bill_words import describe_bill
from planner.decision.decision import Rejection
from planner.forecast.words import count_between
from planner.rollout.plan import Cost, DecisionRecord, Forecast, RolloutPlan
from planner.rollout.steps import MovedQueues, StartConsumers, Step, StopConsumers, UpdateTemplate
from planner.words import counted, duration, queue_nouns, queues, runs, usual_count, usually

FIGURE = re.compile(r"\d[\d.,]*")


def explain_plan(plan: RolloutPlan, *, is_short: bool = False) -> Iterator[str]:
    """Yield the decision, what it costs, why not the others, and each step with its limit and undo.

    ``is_short`` folds counts whose reasons differ by their figures alone, and leaves the snapshot's digest out.
    """
    group = plan.group
    yield plan.reason
    yield f"Plan for group {group.group} on {group.system} cluster {group.cluster}, Deployment {plan.deployment}."
    if plan.members_per_pod > 1:
        yield f"Each pod runs {plan.members_per_pod} consumers, which start and stop together."
    yield f"Expected: {tell_cost(plan.forecast, plan.preconditions.queues, group.system)}."
    yield from plan.ways
    if plan.bill is not None and plan.target_replicas is not None:
        yield from describe_bill(plan.bill, plan.preconditions.replicas, plan.target_replicas)
    yield from why_not_others(plan.rejected, plan.target_replicas, is_short=is_short)
    yield from (f"Unknown: {unknown}." for unknown in plan.forecast.unknowns)
    basis = "" if is_short else f" and rests on snapshot {plan.snapshot.digest}"
    yield f"It holds until {plan.valid_until:%Y-%m-%d %H:%M:%S %Z}{basis}."
    for number, step in enumerate(plan.steps, start=1):
        yield f"Step {number}: {tell_step(step, group.system)}"


def explain_hold(record: DecisionRecord, *, is_short: bool = False) -> Iterator[str]:
    """Yield the lines that say why nothing is to be changed; ``is_short`` as for ``explain_plan``."""
    group = record.group
    yield record.decision.reason
    yield f"No plan for group {group.group} on {group.system} cluster {group.cluster}: nothing is to be changed."
    if (bill := record.decision.bill) is not None:
        yield from describe_bill(bill, record.decision.current, record.decision.target)
    yield from why_not_others(record.decision.rejected, record.decision.target, is_short=is_short)
    if not is_short:
        yield f"It rests on snapshot {record.snapshot.digest}."


def why_not_others(rejected: Sequence[Rejection], chosen: int | None, *, is_short: bool) -> Iterator[str]:
    """Yield one line for all counts that were rejected for the same reasons.

    ``is_short`` takes reasons that differ by their figures alone for the same, and shows those of the count that is
    nearest to ``chosen``.
    """
    alike: dict[tuple[str, ...], list[Rejection]] = {}
    for rejection in rejected:
        alike.setdefault(_key(rejection, is_short), []).append(rejection)
    for group in alike.values():
        nearest = min(group, key=lambda rejection: abs(rejection.count - (chosen or 0)))
        counts, others = [rejection.count for rejection in group], [r for r in group if r is not nearest]
        reasons = "; ".join(nearest.reasons)
        if all(other.reasons == nearest.reasons for other in others):
            yield f"Not {runs(counts)}: {reasons}."
        else:
            same = runs([other.count for other in others])
            yield f"Not {nearest.count}: {reasons}. Not {same}: for the same reasons, with other figures."


def _key(rejection: Rejection, is_short: bool) -> tuple[str, ...]:
    return tuple(FIGURE.sub("#", reason) for reason in rejection.reasons) if is_short else rejection.reasons


def tell_step(step: Step, system: str = "rocketmq") -> str:
    """Return one step in words: what is done, how long at most, what moves, how to go back."""
    clauses = [f"{step.action}, at most {duration(step.time_limit_seconds)}"]
    if isinstance(step, StartConsumers | StopConsumers | UpdateTemplate):
        clauses.append(tell_moves(step.forecast, system))
    undo = f" Undo: {step.undo}." if step.undo else ""
    final = " There is no way back." if step.is_final else ""
    return f"{'; '.join(clauses)}.{undo}{final}"


def tell_moves(moved: MovedQueues, system: str = "rocketmq") -> str:
    """Return how many queues move as words."""
    if moved.fewest is None or moved.most is None:
        return f"how many {queue_nouns(system)} move is not known beforehand"
    if moved.fewest == moved.most:
        return f"{queues(moved.fewest, system)} change{'s' if moved.fewest == 1 else ''} owner"
    return f"{moved.fewest} to {queues(moved.most, system)} change owner"


def tell_cost(forecast: Forecast, of_all: int, system: str = "rocketmq") -> str:
    """Return in one sentence what moves and what the change costs, as far as it is known; ``of_all`` queues there are.

    5 of 16 queues move; the longest pause is usually 0.3 s, at worst 0.6 s (1 in 20); …
    """
    moved, cost = forecast.moved_queues, forecast.cost
    if cost is None or moved.fewest is None or moved.most is None:
        clauses = [tell_moves(moved, system)]
    else:
        clauses = [f"{count_between(moved.fewest, moved.most)} of {queues(of_all, system)} move"]
    return "; ".join([*clauses, *(_cost_clauses(cost, system) if cost else ())])


def _cost_clauses(cost: Cost, system: str) -> Iterator[str]:
    noun = queue_nouns(system)
    if pause := cost.pause_seconds:
        yield f"the longest pause is {usually(pause.p50, pause.p95)}"
    if (stall := cost.stall_seconds) and stall.p95 > 0:
        yield f"{noun} that stay stall {usually(stall.p50, stall.p95)}"
    duplicates, burst = cost.duplicates, cost.burst_messages
    yield f"messages that come twice: {usual_count(duplicates.p50, duplicates.p95)}"
    yield f"a burst of {_messages(burst.p50, burst.p95)} as the moved {noun} start again"
    if settle := cost.settle_seconds:
        yield f"settled after {usually(settle.p50, settle.p95)}"


def _messages(p50: int, p95: int) -> str:
    return counted(p50, "message") if p50 == p95 else f"messages, {usual_count(p50, p95)},"
