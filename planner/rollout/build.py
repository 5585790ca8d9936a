"""Build the plan for a decision. No clock, no cluster: everything comes in as an argument."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby

from planner.decision.decision import Decision
from planner.decision.prices import DEFAULT_PRICES, Prices
from planner.errors import RefusedError
from planner.forecast.words import count_between
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.rollout.autoscalers import REFUSE, Handling, why_not_handled, with_autoscaler
from planner.rollout.batches import Batch, BatchPlan, BatchPlans, find_batch_plans
from planner.rollout.plan import (
    Cost,
    Forecast,
    GroupRef,
    OwnedQueues,
    Preconditions,
    RolloutPlan,
    SnapshotRef,
)
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    MarkVictims,
    MovedQueues,
    StartConsumers,
    Step,
    StopConsumers,
)
from planner.rollout.victims import pods_of_members
from planner.simulation.load import DECIMALS
from planner.simulation.outcome import CandidateOutcome, Messages, Seconds, Transition
from planner.words import counted, queue_nouns

MARK_LIMIT_S = 60
"""How long marking pods may take, which is one patch for each of them."""


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What the policy says about carrying a plan out: names, time limits in seconds, what a change may cost.

    ``ttl_s`` is how long the plan object stays after its end, ``None`` for always.
    """

    policy: str
    deployment: str
    policy_digest: str | None = None
    valid_for_s: int = 900
    ready_limit_s: int = 300
    settled_limit_s: int = 180
    prices: Prices = DEFAULT_PRICES
    autoscaler: Handling = REFUSE
    ttl_s: int | None = None


def why_no_plan(snapshot: GroupSnapshot, target: int, autoscaler: Handling) -> RefusedError | None:
    """Return why no plan can bring the group to ``target`` pods, ``None`` where one can.

    Without Kubernetes in the snapshot nobody says which pods stop, and the plan names a range.
    """
    current = snapshot.count
    if target == current or snapshot.deployment is None:
        return None
    if (why := why_not_handled(snapshot.deployment, autoscaler, (current, target))) is not None or target > current:
        return why
    try:
        pods = pods_of_members(snapshot)
    except RefusedError as refusal:
        return refusal
    other = next((pod for pod in pods if len(pod.members) != snapshot.members_per_pod), None)
    if other is None:
        return None
    sentence = (
        f"pod {other.pod} runs {counted(len(other.members), 'member')}, the snapshot counts {snapshot.members_per_pod} "
        "a pod: take a new snapshot"
    )
    return refused(Refusal.VICTIMS_CANNOT_BE_CHOSEN, sentence)


def build_plan(
    snapshot: GroupSnapshot,
    snapshot_digest: str,
    decision: Decision,
    chosen: CandidateOutcome,
    settings: RolloutSettings,
) -> RolloutPlan:
    """Return the plan that carries out ``decision``, which must not be a hold; ``chosen`` is its outcome.

    Raises ``RefusedError`` where victims cannot be chosen, and ``ValueError`` for a hold or an outcome of another
    count: both are faults of the caller.
    """
    if decision.is_hold or chosen.count != decision.target:
        raise ValueError(f"no plan for group {decision.group}: {decision.reason} (outcome of {chosen.count})")
    has_pods = snapshot.deployment is not None
    batch_plans = find_batch_plans(snapshot, snapshot_digest, chosen, settings.prices, has_pods=has_pods)
    steps = build_steps(snapshot.clients, batch_plans.best, settings)
    return RolloutPlan(
        policy=settings.policy,
        group=GroupRef(snapshot.system, snapshot.cluster, snapshot.group),
        deployment=settings.deployment,
        snapshot=SnapshotRef(snapshot_digest, snapshot.at),
        made_at=decision.decided_at,
        valid_until=decision.decided_at + timedelta(seconds=settings.valid_for_s),
        reason=decision.reason,
        rejected=decision.rejected,
        preconditions=Preconditions(decision.current, snapshot.clients, chosen.strategy, len(snapshot.data_queues)),
        forecast=_forecast_of(snapshot, batch_plans.best, chosen),
        steps=with_autoscaler(steps, snapshot.deployment, decision.current, settings.autoscaler),
        policy_digest=settings.policy_digest,
        target_replicas=decision.target,
        ways=tuple(explain_batches(batch_plans, snapshot.system)),
        ttl_seconds_after_finished=settings.ttl_s,
        bill=decision.bill,
    )


def build_steps(members: Sequence[str], batch_plan: BatchPlan, settings: RolloutSettings) -> tuple[Step, ...]:
    """Return the steps of the batch plan for the present members, and the comparison of the forecast with observations.

    New before old: a batch that adds has no stop, one that removes has no start. The next batch begins when the group
    has settled.
    """
    steps: list[Step] = []
    for batch in batch_plan.batches:
        steps += _start_steps(batch, settings) if batch.count > batch.before else _stop_steps(members, batch, settings)
        steps.append(AwaitSettled(batch.outcome.members, batch.outcome.strategy, settings.settled_limit_s))
        members = [load.client for load in batch.outcome.loads]
    return (*steps, CheckForecast(settings.settled_limit_s))


def _start_steps(batch: Batch, settings: RolloutSettings) -> tuple[Step, ...]:
    limit_s = settings.ready_limit_s
    return (
        StartConsumers(batch.before, batch.count, limit_s, batch.moved, undo=_back(batch, settings)),
        AwaitReady(batch.count, limit_s),
    )


def _stop_steps(members: Sequence[str], batch: Batch, settings: RolloutSettings) -> Iterator[Step]:
    if batch.choice is not None:
        yield MarkVictims(batch.choice.victims, MARK_LIMIT_S)
    staying = {load.client for load in batch.outcome.loads}
    victims = tuple(member for member in members if member not in staying)
    if batch.choice is None and batch.outcome.members_per_pod > 1:
        victims = ()  # who shares a pod is not known: those that would be best may be of several
    limit_s = settings.ready_limit_s
    yield StopConsumers(batch.before, batch.count, victims, limit_s, batch.moved, undo=_back(batch, settings))


def _back(batch: Batch, settings: RolloutSettings) -> str:
    return f"set the replicas of {settings.deployment} back to {batch.before}"


def explain_batches(batch_plans: BatchPlans, system: str) -> Iterator[str]:
    """Yield in a sentence why these batches were chosen; nothing where there was only one plan."""
    best, *others = batch_plans.compared
    if not others or best.cost is None:
        return
    costs = ", ".join(f"{_batches(batch_plan).lower()} {_costs(batch_plan, system)}" for batch_plan in others)
    what = "costs least" if best.is_timed else "moves fewest, and pauses and duplicates are not known"
    yield f"{_batches(best)} {what}: {_costs(best, system)}; {costs}."


def _batches(batch_plan: BatchPlan) -> str:
    return "All at once" if len(batch_plan.batches) == 1 else f"In {len(batch_plan.batches)} batches"


def _costs(batch_plan: BatchPlan, system: str) -> str:
    moved = f"{count_between(batch_plan.moved.fewest or 0, batch_plan.moved.most or 0)} moved {queue_nouns(system)}"
    if not batch_plan.is_timed or batch_plan.cost is None:
        return moved
    return f"{moved}, worth {count_between(round(batch_plan.cost.least), round(batch_plan.cost.most))} consumer-seconds"


def _forecast_of(snapshot: GroupSnapshot, batch_plan: BatchPlan, chosen: CandidateOutcome) -> Forecast:
    """Return what is expected of the batch plan: the group after its last batch, at the cost of all batches."""
    last = batch_plan.batches[-1]
    forecast = forecast_outcome(snapshot, last.outcome if last.choice else chosen)
    costs = [cost_of(batch.outcome.transition) for batch in batch_plan.batches if batch.outcome.transition]
    known = len(costs) == len(batch_plan.batches)
    return replace(forecast, moved_queues=batch_plan.moved, cost=costs_together(costs) if known else None)


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
    is left.
    """
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


def compact_queues(queues: Iterable[Queue]) -> tuple[str, ...]:
    """Return one entry for each location with the queue numbers as ranges: ``orders/broker-a/0-3,6``."""
    by_location = groupby(sorted(queues), key=lambda queue: queue.place)
    return tuple(
        f"{'/'.join(location)}/{_ranges([queue.number for queue in queues_at])}" for location, queues_at in by_location
    )


def _ranges(ids: Sequence[int]) -> str:
    runs = groupby(enumerate(ids), key=lambda pair: pair[1] - pair[0])
    bounds = [[queue_id for _, queue_id in run] for _, run in runs]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in bounds)
