"""Build the plan for a decision. No clock, no cluster: everything comes in as an argument."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from planner.decision.decision import Decision
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.rollout.plan import (
    Cost,
    Forecast,
    GroupRef,
    OwnedQueues,
    Preconditions,
    RolloutPlan,
    SnapshotRef,
)
from planner.rollout.steps import AwaitReady, AwaitSettled, MovedQueues, StartConsumers, Step, StopConsumers
from planner.simulation.outcome import CandidateOutcome, Transition


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What the policy says about carrying a plan out: names and time limits in seconds."""

    policy: str
    deployment: str
    valid_for_s: int = 900
    ready_limit_s: int = 300
    settled_limit_s: int = 180


def build_plan(
    snapshot: GroupSnapshot,
    snapshot_digest: str,
    decision: Decision,
    chosen: CandidateOutcome,
    settings: RolloutSettings,
) -> RolloutPlan:
    """Return the plan that carries out ``decision``, which must not be a hold; ``chosen`` is its outcome.

    Raises ``ValueError`` for a hold or an outcome of another count: both are faults of the caller.
    """
    if decision.is_hold or chosen.count != decision.target:
        raise ValueError(f"no plan for group {decision.group}: {decision.reason} (outcome of {chosen.count})")
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
        forecast=_forecast(snapshot, chosen),
        steps=build_steps(snapshot.clients, chosen, settings),
    )


def build_steps(members: Sequence[str], chosen: CandidateOutcome, settings: RolloutSettings) -> tuple[Step, ...]:
    """Return the steps from the present members to ``chosen.count``: start, await ready, await settled, or stop first.

    New before old: a change that only adds has no stop, one that only removes has no start.
    """
    moved = MovedQueues(chosen.moved_fewest, chosen.moved_most)
    settled = AwaitSettled(chosen.count, chosen.strategy, settings.settled_limit_s)
    present = len(members)
    if chosen.count > present:
        return (
            StartConsumers(
                present,
                chosen.count,
                settings.ready_limit_s,
                moved,
                undo=f"set the replicas of {settings.deployment} back to {present}",
            ),
            AwaitReady(chosen.count, settings.ready_limit_s),
            settled,
        )
    return (
        StopConsumers(
            present,
            chosen.count,
            _victims(members, chosen),
            settings.ready_limit_s,
            moved,
            undo=f"set the replicas of {settings.deployment} back to {present}",
        ),
        settled,
    )


def _victims(members: Sequence[str], chosen: CandidateOutcome) -> tuple[str, ...]:
    staying = {load.client for load in chosen.loads}
    return tuple(member for member in members if member not in staying)


def _forecast(snapshot: GroupSnapshot, chosen: CandidateOutcome) -> Forecast:
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
        cost=_cost(chosen.transition) if chosen.transition else None,
    )


def _cost(transition: Transition) -> Cost:
    return Cost(
        pause_seconds=transition.pause_s,
        stall_seconds=transition.stall_s,
        duplicates=transition.duplicates,
        burst_messages=transition.burst_messages,
        settle_seconds=transition.settle_s,
        drained_seconds=transition.drained_s,
    )


def _compact(owned: Iterable[tuple[str, Queue]], consumers: Sequence[str]) -> tuple[OwnedQueues, ...]:
    queues: dict[str, list[Queue]] = {consumer: [] for consumer in consumers}
    for consumer, queue in owned:
        queues[consumer].append(queue)
    return tuple(OwnedQueues(consumer, compact_queues(of_one)) for consumer, of_one in queues.items())


def compact_queues(queues: Iterable[Queue]) -> tuple[str, ...]:
    """Return one entry for each place with the queue numbers as ranges: ``orders/broker-a/0-3,6``."""
    by_place = groupby(sorted(queues), key=lambda queue: queue.place)
    return tuple(f"{'/'.join(place)}/{_ranges([queue.number for queue in at_place])}" for place, at_place in by_place)


def _ranges(ids: Sequence[int]) -> str:
    runs = groupby(enumerate(ids), key=lambda pair: pair[1] - pair[0])
    bounds = [[queue_id for _, queue_id in run] for _, run in runs]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in bounds)
