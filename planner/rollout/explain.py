"""A plan or a hold in words: the same steps that an executor walks, told to a person."""

from collections.abc import Iterator

from planner.decision.decision import Rejection
from planner.rollout.plan import Cost, DecisionRecord, Forecast, RolloutPlan
from planner.rollout.steps import MovedQueues, StartConsumers, Step, StopConsumers, UpdateTemplate
from planner.simulation.words import count_between, messages_between, seconds_between


def explain_plan(plan: RolloutPlan) -> Iterator[str]:
    """Yield the lines that tell why this count, why not the others, and each step with its limit and undo."""
    group = plan.group
    yield f"Plan for group {group.group} on {group.system} cluster {group.cluster}, Deployment {plan.deployment}."
    yield plan.reason
    yield from plan.ways
    yield from _neighbours(plan.rejected)
    yield from _expected(plan.forecast, plan.preconditions.queues)
    yield f"It holds until {plan.valid_until:%Y-%m-%d %H:%M:%S %Z} and rests on snapshot {plan.snapshot.digest}."
    for number, step in enumerate(plan.steps, start=1):
        yield f"Step {number}: {tell_step(step)}"


def explain_hold(record: DecisionRecord) -> Iterator[str]:
    """Yield the lines that tell why nothing is to be changed."""
    group = record.group
    yield f"No plan for group {group.group} on {group.system} cluster {group.cluster}: nothing is to be changed."
    yield record.decision.reason
    yield from _neighbours(record.decision.rejected)
    yield f"It rests on snapshot {record.snapshot.digest}."


def tell_step(step: Step) -> str:
    """Return one step in words: what is done, how long at most, what moves, how to go back."""
    parts = [f"{step.action}, at most {step.time_limit_seconds} s"]
    if isinstance(step, StartConsumers | StopConsumers | UpdateTemplate):
        parts.append(tell_moves(step.forecast))
    undo = f" Undo: {step.undo}." if step.undo else ""
    final = " There is no way back." if step.is_final else ""
    return f"{'; '.join(parts)}.{undo}{final}"


def tell_moves(moved: MovedQueues) -> str:
    """Return how many queues move as words."""
    if moved.fewest is None or moved.most is None:
        return "how many queues move is not known beforehand"
    if moved.fewest == moved.most:
        return f"{moved.fewest} queues change owner"
    return f"{moved.fewest} to {moved.most} queues change owner"


def _neighbours(rejected: tuple[Rejection, ...]) -> Iterator[str]:
    for rejection in rejected:
        yield f"Not {rejection.count}: {'; '.join(rejection.reasons)}."


def _expected(forecast: Forecast, queues: int) -> Iterator[str]:
    yield f"Expected: {tell_cost(forecast, queues)}."
    for unknown in forecast.unknowns:
        yield f"Unknown: {unknown}."


def tell_cost(forecast: Forecast, queues: int) -> str:
    """Return in one sentence what moves and what the change costs, as far as it is known; ``queues`` are all there are.

    5 of 16 queues move; the longest pause is 0.30–0.60 s; 12–25 messages come twice; settled after 1.90–3.10 s.
    """
    moved, cost = forecast.moved_queues, forecast.cost
    if cost is None or moved.fewest is None or moved.most is None:
        parts = [tell_moves(moved)]
    else:
        parts = [f"{count_between(moved.fewest, moved.most)} of {queues} queues move"]
    return "; ".join([*parts, *(_cost_parts(cost) if cost else ())])


def _cost_parts(cost: Cost) -> Iterator[str]:
    if cost.pause_seconds:
        yield f"the longest pause is {seconds_between(cost.pause_seconds.p05, cost.pause_seconds.p95)}"
    if cost.stall_seconds and cost.stall_seconds.p95 > 0:
        yield f"queues that stay stall up to {seconds_between(cost.stall_seconds.p05, cost.stall_seconds.p95)}"
    twice, burst = cost.duplicates, cost.burst_messages
    yield f"{messages_between(twice.p05, twice.p95)} {'comes' if twice.p05 == twice.p95 == 1 else 'come'} twice"
    yield f"a burst of {messages_between(burst.p05, burst.p95)} as the moved queues start again"
    if cost.settle_seconds:
        yield f"settled after {seconds_between(cost.settle_seconds.p05, cost.settle_seconds.p95)}"
