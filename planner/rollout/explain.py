"""A plan or a hold in words, the decision first: the same steps that an executor carries out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from planner.decision.bill_words import describe_bill
from planner.decision.decision import Rejection
from planner.forecast.words import count_between, seconds_between
from planner.rollout.approval import repeated
from planner.rollout.plan import Cost, DecisionRecord, Forecast, RolloutPlan
from planner.rollout.steps import MovedQueues, StartConsumers, Step, StopConsumers, UpdateTemplate
from planner.simulation.outcome import Seconds
from planner.text.words import counted, duration, queue_noun, queue_nouns, queues, runs, usual_count, usually

FIGURE = re.compile(r"\d[\d.,]*")


def explain_plan(plan: RolloutPlan, *, is_short: bool = False) -> Iterator[str]:
    """Yield the decision, what it costs, why not the others, and each step with its limit and undo.

    ``is_short`` folds counts whose reasons differ by their figures alone, says of what is unknown only how much it is,
    and leaves the snapshot's digest out.
    """
    group = plan.group
    yield plan.reason
    yield f"Plan for group {group.group} on {group.system} cluster {group.cluster}, {plan.target}."
    if plan.members_per_pod > 1:
        yield f"Each pod runs {plan.members_per_pod} consumers, which start and stop together."
    yield f"Expected: {describe_cost(plan.forecast, plan.preconditions.queues, group.system)}."
    if (first := _cold_start(plan)) is not None:
        yield f"Every {queue_noun(group.system)} is consumed again {first}."
    yield from describe_idempotence(plan)
    yield from _describe_others(plan)
    yield from plan.ways
    if plan.bill is not None and plan.target_replicas is not None:
        yield from describe_bill(plan.bill, plan.preconditions.replicas, plan.target_replicas)
    yield from why_not_others(plan.rejected, plan.target_replicas, is_short=is_short)
    yield from _describe_second_lever(plan.second_lever)
    yield from _describe_unknowns(plan.forecast.unknowns, is_short=is_short and plan.migration is None)
    basis = "" if is_short else f" and rests on snapshot {plan.snapshot.digest}"
    yield f"It holds until {plan.valid_until:%Y-%m-%d %H:%M:%S %Z}{basis}."
    for number, step in enumerate(plan.steps, start=1):
        yield f"Step {number}: {tell_step(step, group.system)}"


def _describe_unknowns(unknowns: Sequence[str], *, is_short: bool) -> Iterator[str]:
    """Yield what the forecast takes for granted; one line for several where it is to be short.

    Of a migration each is named: some of them are for a person to make sure of.
    """
    if is_short and len(unknowns) > 1:
        yield f"Unknown: {len(unknowns)} things, for which the forecast takes the usual; --verbose names them."
    else:
        yield from (f"Unknown: {unknown}." for unknown in unknowns)


def _describe_others(plan: RolloutPlan) -> Iterator[str]:
    """Yield what the plan does to each other group of the same pods."""
    for other in plan.others or ():
        system, queue_count = other.group.system, other.preconditions.queues
        yield (
            f"Expected for group {other.group.group} of policy {other.policy}: "
            f"{describe_cost(other.forecast, queue_count, system)}. Alone: {other.reason}"
        )
        yield from (f"Unknown of group {other.group.group}: {unknown}." for unknown in other.forecast.unknowns)


def explain_hold(record: DecisionRecord, *, is_short: bool = False) -> Iterator[str]:
    """Yield the lines that say why nothing is to be changed; ``is_short`` as for ``explain_plan``."""
    group = record.group
    yield record.decision.reason
    yield f"No plan for group {group.group} on {group.system} cluster {group.cluster}: nothing is to be changed."
    if (bill := record.decision.bill) is not None:
        yield from describe_bill(bill, record.decision.current, record.decision.target)
    yield from why_not_others(record.decision.rejected, record.decision.target, is_short=is_short)
    yield from _describe_second_lever(record.second_lever)
    if not is_short:
        yield f"It rests on snapshot {record.snapshot.digest}."


def _describe_second_lever(sentence: str | None) -> Iterator[str]:
    if sentence is not None:
        yield f"{sentence}."


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


def key_figures(plan: RolloutPlan) -> Iterator[tuple[str, str]]:
    """Yield what a person weighs before an approval: moved queues, longest pause and duplicates, as name and words."""
    system, forecast, cost = plan.group.system, plan.forecast, plan.forecast.cost
    noun, unknown = queue_nouns(system), "not known beforehand"
    moved = forecast.moved_queues
    if moved.fewest is None or moved.most is None:
        yield f"{noun} that move".capitalize(), unknown
    else:
        share = f"{count_between(moved.fewest, moved.most)} of {queues(plan.preconditions.queues, system)}"
        yield f"{noun} that move".capitalize(), share
    if (first := _cold_start(plan)) is not None:
        yield f"Every {queue_noun(system)} consumed", first
    else:
        pause = cost.pause_seconds if cost else None
        yield "Longest pause", describe_span(pause) if pause else unknown
    yield "Messages that come twice", usual_count(cost.duplicates.p50, cost.duplicates.p95) if cost else unknown


def _cold_start(plan: RolloutPlan) -> str | None:
    """Return when a group that has no pod delivers from every queue, ``None`` where one runs or it is not known."""
    cost = plan.forecast.cost
    if plan.preconditions.replicas or cost is None or cost.settle_seconds is None:
        return None
    return f"{describe_span(cost.settle_seconds)} after the first consumers start"


def final_steps(plan: RolloutPlan) -> Sequence[int]:
    """Return the numbers of the steps that have no way back."""
    return [number for number, step in enumerate(plan.steps, start=1) if step.is_final]


def tell_moves(moved: MovedQueues, system: str = "rocketmq") -> str:
    """Return how many queues move as words."""
    if moved.fewest is None or moved.most is None:
        return f"how many {queue_nouns(system)} move is not known beforehand"
    if moved.fewest == moved.most:
        return f"{queues(moved.fewest, system)} change{'s' if moved.fewest == 1 else ''} owner"
    return f"{moved.fewest} to {queues(moved.most, system)} change owner"


def describe_cost(forecast: Forecast, of_all: int, system: str = "rocketmq") -> str:
    """Return in one sentence what moves and what the change costs, as far as it is known; ``of_all`` queues there are.

    5 of 16 queues move; the longest pause is usually 0.3 s, at worst 0.6 s (1 in 20); …
    """
    moved, cost = forecast.moved_queues, forecast.cost
    if cost is None or moved.fewest is None or moved.most is None:
        clauses = [tell_moves(moved, system)]
    else:
        clauses = [f"{count_between(moved.fewest, moved.most)} of {queues(of_all, system)} move"]
    return "; ".join([*clauses, *(_cost_clauses(cost, system) if cost else ())])


def describe_idempotence(plan: RolloutPlan) -> Iterator[str]:
    """Yield once what the policy states of consumers, or should, where the forecast has messages that come twice."""
    cost = plan.forecast.cost
    if cost is None or not cost.duplicates.p95:
        return
    clause = repeated(cost)
    yield f"{clause[:1].upper()}{clause[1:]}: {_IDEMPOTENCE[plan.idempotent]}."


_IDEMPOTENCE: Final[Mapping[bool | None, str]] = {
    True: "the policy states that the consumers are idempotent, so these do no harm",
    False: "the policy states that the consumers are not idempotent, so a person has to accept that",
    None: "whether the consumers are idempotent is not known, so state spec.idempotent in the policy",
}


def _cost_clauses(cost: Cost, system: str) -> Iterator[str]:
    noun = queue_nouns(system)
    if pause := cost.pause_seconds:
        yield f"the longest pause is {describe_span(pause)}"
    if (stall := cost.stall_seconds) and (stall.p95 > 0 or stall.tail):
        yield f"{noun} that stay stall {describe_span(stall)}"
    duplicates, burst = cost.duplicates, cost.burst_messages
    yield f"messages that come twice: {usual_count(duplicates.p50, duplicates.p95)}"
    if burst.p95:
        yield f"a burst of {_messages(burst.p50, burst.p95)} as the moved {noun} start again"
    if settle := cost.settle_seconds:
        yield f"settled after {describe_span(settle)}"


def describe_span(forecast: Seconds) -> str:
    """Return a forecast span: ``usually 2 s, at worst 3.1 s (1 in 20)``, a long tail with its share of all cases."""
    tail = forecast.tail
    if tail is None:
        return usually(forecast.p50, forecast.p95)
    late = f"in {tail.share:.0%} of cases {seconds_between(tail.late, tail.worst)}"
    return f"usually {seconds_between(tail.low, tail.high)}, {late}"


def _messages(p50: int, p95: int) -> str:
    return counted(p50, "message") if p50 == p95 else f"messages, {usual_count(p50, p95)},"
