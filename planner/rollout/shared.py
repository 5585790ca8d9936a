"""A plan for pods that serve several groups: what it does to the others, and the wait until all have settled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.decision.decision import Decision
from planner.model.snapshot import GroupSnapshot
from planner.model.systems import SYSTEMS
from planner.rollout.build import await_settled
from planner.rollout.plan import GroupRef, OtherGroup, Preconditions, RolloutPlan, SnapshotRef
from planner.rollout.plan_forecast import forecast_outcome, span_backlogs
from planner.rollout.settings import RolloutSettings
from planner.rollout.steps import AwaitSettled, MarkVictims, Step, StopConsumers, Victim
from planner.simulation.candidates import simulate_candidate
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.transition import with_transition
from planner.simulation.zero import outcome_around_zero


@dataclass(frozen=True, slots=True)
class OtherCase:
    """Another group of the same pods: its snapshot with that one's digest, and what it would get alone."""

    snapshot: GroupSnapshot
    digest: str
    decision: Decision
    settings: RolloutSettings


def with_others(plan: RolloutPlan, cases: Sequence[OtherCase]) -> RolloutPlan:
    """Return the plan with what it rests on and expects for the other groups; it waits until these have settled, too.

    The pods that stop are those that the plan names, so that what moves in the other groups is as exact as in its own.
    """
    count = plan.target_replicas
    assert count is not None
    outcomes = [outcome_with(case, count, _stopping(plan)) for case in cases]
    others = [_other_group(case, outcome) for case, outcome in zip(cases, outcomes, strict=True)]
    waits = tuple(_wait(case, outcome) for case, outcome in zip(cases, outcomes, strict=True))
    ways = (*plan.ways, *describe_rebalances([plan, *others]))
    return replace(plan, others=tuple(others), steps=tuple(_with_waits(plan.steps, waits)), ways=ways)


def _other_group(case: OtherCase, outcome: CandidateOutcome) -> OtherGroup:
    snapshot = case.snapshot
    return OtherGroup(
        policy=case.settings.policy,
        group=GroupRef(snapshot.system, snapshot.cluster, snapshot.group),
        snapshot=SnapshotRef(case.digest, snapshot.at),
        reason=case.decision.reason,
        preconditions=Preconditions(
            case.decision.current, snapshot.clients, outcome.strategy, len(snapshot.data_queues)
        ),
        forecast=forecast_outcome(snapshot, span_backlogs(outcome, snapshot, case.digest)),
        policy_digest=case.settings.policy_digest,
    )


def outcome_with(case: OtherCase, count: int, stopping: frozenset[str] = frozenset()) -> CandidateOutcome:
    """Return what ``count`` pods mean for the group, and what the change costs it; ``stopping`` names who stops.

    Without names the queues that move lie between the best and the worst choice of pods.
    """
    snapshot = case.snapshot
    if 0 in (case.decision.current, count):
        return outcome_around_zero(snapshot, count, case.digest)
    gone = {link.client for link in snapshot.pods if link.pod in stopping}
    staying = [client for client in snapshot.clients if client not in gone] if gone else None
    return with_transition(simulate_candidate(snapshot, count, snapshot.strategy or "", staying), snapshot, case.digest)


def _stopping(plan: RolloutPlan) -> frozenset[str]:
    """Return the names of the pods that the plan stops, none where it does not name them."""
    victims = [
        victim for step in plan.steps for victim in (step.victims if isinstance(step, MarkVictims) else _highest(step))
    ]
    return frozenset(victim.pod for victim in victims)


def _highest(step: Step) -> tuple[Victim, ...]:
    return step.stopping or () if isinstance(step, StopConsumers) else ()


def _wait(case: OtherCase, outcome: CandidateOutcome) -> AwaitSettled:
    return replace(await_settled(case.snapshot, outcome, case.settings), group=case.snapshot.group)


def _with_waits(steps: Sequence[Step], waits: Sequence[AwaitSettled]) -> Iterator[Step]:
    """Yield the steps, the waits of the other groups behind the plan's own: its pods change all at once."""
    for step in steps:
        yield step
        if isinstance(step, AwaitSettled):
            yield from waits


def describe_rebalances(bases: Sequence[RolloutPlan | OtherGroup]) -> Iterator[str]:
    """Yield what the groups have to do with each other while they rebalance.

    Members of several RocketMQ groups that have one client id are one ``MQClientInstance``, whose one thread rebalances
    for all of them. With the default instance name each has an id of its own since 4.9.0.
    """
    names = ", ".join(basis.group.group for basis in bases)
    yield f"The same pods serve the groups {names}: all of them rebalance, each by its own strategy."
    for name, system in SYSTEMS.items():
        ids = [set(basis.preconditions.members) for basis in bases if basis.group.system == name]
        if system.shared_client is not None and sum(map(len, ids)) > len(set().union(*ids)):
            yield f"Consumers of these groups have the same client ids: {system.shared_client}."
