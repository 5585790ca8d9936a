"""What a plan predicts of its change: moved queues, load, costs and owners, in the plan's words."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from planner.decision.pace import falls_behind, growth, worked_off, works_off
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.rollout.batches import BatchPlan, after
from planner.rollout.plan import Cost, Forecast, OwnedQueues
from planner.rollout.queue_ranges import compact_queues
from planner.rollout.steps import MovedQueues
from planner.simulation.load import DECIMALS
from planner.simulation.outcome import CandidateOutcome, Messages, Seconds, Transition
from planner.simulation.transition import pool_transitions
from planner.text.words import counted


def forecast_batches(snapshot: GroupSnapshot, digest: str, batch_plan: BatchPlan, chosen: CandidateOutcome) -> Forecast:
    """Return what is expected of the batch plan: the group after its last batch, at the cost of all batches.

    ``digest`` is the snapshot's. The cost is as ``span_backlogs`` says.
    """
    last = batch_plan.batches[-1]
    forecast = forecast_outcome(snapshot, last.outcome if last.choice else chosen)
    spans: list[CandidateOutcome] = []
    for number, batch in enumerate(batch_plan.batches):
        snapshot = after(snapshot, batch_plan.batches[number - 1].outcome) if number else snapshot
        spans.append(span_backlogs(batch.outcome, snapshot, digest))
    pairs = zip(spans, batch_plan.batches, strict=True)
    waits = [span.unknowns[-1] for span, batch in pairs if span is not batch.outcome]
    costs = [cost_of(span.transition) for span in spans if span.transition]
    return replace(
        forecast,
        moved_queues=batch_plan.moved,
        cost=costs_together(costs) if len(costs) == len(spans) else None,
        unknowns=tuple(dict.fromkeys((*forecast.unknowns, *waits))),
    )


def span_backlogs(outcome: CandidateOutcome, snapshot: GroupSnapshot, digest: str) -> CandidateOutcome:
    """Return the outcome with what the change to it costs from now until its plan is approved, whenever that is.

    Where the group works its backlog off meanwhile, the cost spans the backlog of now and none, and ``unknowns`` says
    so: a moved queue may wait behind it. Where the backlog grows, the cost is that of now, and ``unknowns`` says how
    fast it grows.
    """
    if outcome.transition is None or outcome.is_current:
        return outcome
    if falls_behind(snapshot):
        return replace(outcome, unknowns=(*outcome.unknowns, _grown(snapshot)))
    if not works_off(snapshot):
        return outcome
    spanning = pool_transitions(outcome, (snapshot, worked_off(snapshot)), digest)
    if spanning is None:
        return outcome
    waits = (
        f"how much waits when the plan is carried out: {counted(snapshot.lag, 'message')} now, and the group works "
        "them off; pause, duplicates and settling are for all of them and for none"
    )
    return replace(outcome, transition=spanning, unknowns=(*outcome.unknowns, waits))


def _grown(snapshot: GroupSnapshot) -> str:
    each_minute = counted(round(growth(snapshot) * 60), "message")
    return (
        f"how much waits when the plan is carried out: {counted(snapshot.lag, 'message')} now, and {each_minute} more "
        "with each minute until its approval; pause, duplicates and settling are for those of now"
    )


def forecast_outcome(snapshot: GroupSnapshot, chosen: CandidateOutcome) -> Forecast:
    """Return what is expected of one outcome, in the plan's words."""
    before = [(state.owner, state.queue) for state in snapshot.data_queues if state.owner is not None]
    after = [(owned.owner, owned.queue) for owned in chosen.owners if owned.owner is not None]
    return Forecast(
        moved_queues=MovedQueues(chosen.moved_fewest, chosen.moved_most),
        utilisation=chosen.utilisation,
        wait_seconds=chosen.wait_s,
        drain_seconds=chosen.drain_s,
        owners_before=_compact(before, snapshot.clients),
        owners_after=_compact(after, [load.client for load in chosen.loads]),
        unknowns=chosen.unknowns,
        cost=cost_of(chosen.transition) if chosen.transition else None,
    )


def cost_of(transition: Transition) -> Cost:
    """Return what a change costs, in the plan's words."""
    return Cost(
        pause_seconds=transition.pause_s,
        stall_seconds=transition.stall_s,
        duplicates=transition.duplicates,
        burst_messages=transition.burst_messages,
        settle_seconds=transition.settle_s,
        drained_seconds=transition.drained_s,
    )


def costs_together(costs: Sequence[Cost]) -> Cost:
    """Return what several rebalances one after the other cost: the longest pause, the sum of messages and times.

    Sums of the bounds of intervals: the true interval of the sum lies within them. The last one tells when no backlog
    is left. One alone is as it was; together they have no tails, as nobody knows which of them is late.
    """
    if len(costs) == 1:
        return costs[0]
    return Cost(
        pause_seconds=_longest([cost.pause_seconds for cost in costs]),
        stall_seconds=_longest([cost.stall_seconds for cost in costs]),
        duplicates=_all_messages([cost.duplicates for cost in costs]),
        burst_messages=_all_messages([cost.burst_messages for cost in costs]),
        settle_seconds=_all_seconds([cost.settle_seconds for cost in costs]),
        drained_seconds=costs[-1].drained_seconds,
    )


def _longest(spans: Sequence[Seconds | None]) -> Seconds | None:
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return Seconds(max(s.p05 for s in known), max(s.p50 for s in known), max(s.p95 for s in known))


def _all_seconds(spans: Sequence[Seconds | None]) -> Seconds | None:
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return Seconds(
        *(round(sum(values), DECIMALS) for values in zip(*((s.p05, s.p50, s.p95) for s in known), strict=True))
    )


def _all_messages(spans: Sequence[Messages]) -> Messages:
    return Messages(sum(s.p05 for s in spans), sum(s.p50 for s in spans), sum(s.p95 for s in spans))


def _compact(owned: Iterable[tuple[str, Queue]], consumers: Sequence[str]) -> tuple[OwnedQueues, ...]:
    queues: dict[str, list[Queue]] = {consumer: [] for consumer in consumers}
    for consumer, queue in owned:
        queues[consumer].append(queue)
    return tuple(OwnedQueues(consumer, compact_queues(owned_queues)) for consumer, owned_queues in queues.items())
