"""Build the plan for a decision. No clock, no cluster: everything comes in as an argument."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from planner.decision.decision import Decision
from planner.forecast.words import count_between
from planner.model.deployments import APPS, DEPLOYMENT, Ordinals, TargetReplicas
from planner.model.snapshot import GroupSnapshot
from planner.rollout.autoscalers import with_autoscaler
from planner.rollout.batches import Batch, BatchPlan, BatchPlans, find_batch_plans
from planner.rollout.plan import GroupRef, Preconditions, RolloutPlan, SnapshotRef
from planner.rollout.plan_forecast import forecast_batches
from planner.rollout.settings import RolloutSettings
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    MarkVictims,
    StartConsumers,
    Step,
    StopConsumers,
)
from planner.rollout.steps.sense import scaled_limit
from planner.rollout.target_steps import explain_split, steps_of_targets
from planner.rollout.targets import split_over_targets
from planner.rollout.victims import deployments_of_pods
from planner.simulation.outcome import CandidateOutcome
from planner.text.words import queue_nouns

MARK_LIMIT_S = 60
"""How long marking pods may take, which is one patch for each of them."""


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
    has_pods = snapshot.deployment is not None and snapshot.deployment.has_known_victims
    shares = split_over_targets(snapshot, settings.targets, decision.target)
    batch_plans = find_batch_plans(
        snapshot,
        snapshot_digest,
        chosen,
        settings.prices,
        has_pods=has_pods,
        is_at_once=settings.is_shared or bool(shares),
        stops={share.name: share.before - share.after for share in shares} if shares else None,
    )
    steps = build_steps(snapshot, batch_plans.best, settings)
    if shares:
        steps = steps_of_targets(steps, shares, deployments_of_pods(snapshot), dict(_pods_of_members(snapshot)))
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
        forecast=forecast_batches(snapshot, snapshot_digest, batch_plans.best, chosen),
        steps=with_autoscaler(steps, snapshot.deployment, decision.current, settings.autoscaler),
        policy_digest=settings.policy_digest,
        target_replicas=decision.target,
        ways=(
            *explain_batches(batch_plans, snapshot.system),
            *explain_split(shares, settings.targets),
            *_explain_victims(snapshot, decision.target),
        ),
        ttl_seconds_after_finished=settings.ttl_s,
        bill=decision.bill,
        target_kind=None if (settings.kind, settings.api_version) == (DEPLOYMENT, APPS) else settings.kind,
        target_api_version=None if settings.api_version == APPS else settings.api_version,
        idempotent=settings.idempotent,
        targets=tuple(TargetReplicas(share.name, share.before) for share in shares) or None,
    )


def _pods_of_members(snapshot: GroupSnapshot) -> Iterator[tuple[str, str]]:
    return ((link.client, link.pod) for link in snapshot.pods)


def _ordinals(snapshot: GroupSnapshot) -> Ordinals | None:
    return snapshot.deployment.ordinals if snapshot.deployment else None


def _explain_victims(snapshot: GroupSnapshot, target: int) -> Iterator[str]:
    """Yield where nobody but the target's own controller knows which pods stop."""
    if snapshot.deployment is not None and not _is_chosen(snapshot) and 0 < target < snapshot.count:
        yield (
            f"Which pods stop, the controller of {snapshot.deployment.title} alone decides: moved queues are a range "
            "over every choice."
        )


def _is_chosen(snapshot: GroupSnapshot) -> bool:
    return snapshot.deployment is None or snapshot.deployment.has_known_victims


def build_steps(snapshot: GroupSnapshot, batch_plan: BatchPlan, settings: RolloutSettings) -> tuple[Step, ...]:
    """Return the steps of the batch plan for the present members, and the comparison of the forecast with observations.

    New before old: a batch that adds has no stop, one that removes has no start. The next batch begins when the group
    has settled. Of a StatefulSet no pod is marked, and pods that come or go one after the other have the time for one
    pod each.
    """
    steps: list[Step] = []
    members: Sequence[str] = snapshot.clients
    ordinals = _ordinals(snapshot)
    for batch in batch_plan.batches:
        at_once = 1 if ordinals is None or not ordinals.is_ordered else abs(batch.count - batch.before)
        limit_s = scaled_limit(settings.ready_limit_s, at_once)
        if batch.count > batch.before:
            steps += _start_steps(batch, settings, limit_s)
        elif ordinals is None:
            # Where a controller of its own decides which pods stop, no member is better than another.
            steps += _stop_steps(members if _is_chosen(snapshot) else (), batch, settings, limit_s)
        else:
            steps += _stop_highest(batch, settings, limit_s)
        steps.append(await_settled(snapshot, batch.outcome, settings))
        members = [load.client for load in batch.outcome.loads]
    return (*steps, CheckForecast(settings.settled_limit_s))


def await_settled(snapshot: GroupSnapshot, outcome: CandidateOutcome, settings: RolloutSettings) -> AwaitSettled:
    """Return the wait for the strategy's answer to the ids that really come: with its rooms, where these count."""
    wait = AwaitSettled(outcome.members, outcome.strategy, settings.settled_limit_s)
    if "machine_rooms" not in snapshot.strategy_options or outcome.drawn is None:
        return wait
    return replace(wait, options=snapshot.strategy_options, new_room=snapshot.new_pods.room)


def _start_steps(batch: Batch, settings: RolloutSettings, limit_s: int) -> tuple[Step, ...]:
    return (
        StartConsumers(batch.before, batch.count, limit_s, batch.moved, undo=_back(batch, settings)),
        AwaitReady(batch.count, limit_s),
    )


def _stop_steps(members: Sequence[str], batch: Batch, settings: RolloutSettings, limit_s: int) -> Iterator[Step]:
    if batch.choice is not None:
        yield MarkVictims(batch.choice.victims, MARK_LIMIT_S)
    staying = {load.client for load in batch.outcome.loads}
    victims = tuple(member for member in members if member not in staying)
    if batch.choice is None and batch.outcome.members_per_pod > 1:
        victims = ()  # who shares a pod is not known: those that would be best may be of several
    yield StopConsumers(batch.before, batch.count, victims, limit_s, batch.moved, undo=_back(batch, settings))


def _stop_highest(batch: Batch, settings: RolloutSettings, limit_s: int) -> Iterator[Step]:
    """Yield the stop of a StatefulSet's highest numbers; their pods' members are known."""
    stopping = batch.choice.victims if batch.choice else ()
    yield StopConsumers(
        batch.before,
        batch.count,
        tuple(sorted(member for victim in stopping for member in victim.members)),
        limit_s,
        batch.moved,
        undo=_back(batch, settings),
        stopping=stopping or None,
    )


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
