"""What every migration is: steps, what must be true, what it costs, and why it is done so."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from planner.errors import BadInputError, PlannerError
from planner.model.deployments import Deployment
from planner.model.snapshot import SHARE, GroupSnapshot
from planner.rollout.autoscalers import why_not_handled, with_autoscaler
from planner.rollout.batches import Span
from planner.rollout.plan import Cost, GroupRef, Preconditions, RolloutPlan, SnapshotRef
from planner.rollout.plan_forecast import cost_of, forecast_outcome
from planner.rollout.refusals import Refusal, refused
from planner.rollout.settings import RolloutSettings
from planner.rollout.steps import MovedQueues, Step
from planner.simulation.candidates import can_simulate, shares_messages, simulate_candidate
from planner.simulation.group_model import Change
from planner.simulation.outcome import CandidateOutcome, Transition
from planner.simulation.transition import TRIALS, transition_of


@dataclass(frozen=True, slots=True)
class MigrationContext:
    """What a migration starts from: the group, its Deployment at rest, and the policy's names, limits and prices."""

    snapshot: GroupSnapshot
    digest: str
    deployment: Deployment
    settings: RolloutSettings
    current: CandidateOutcome

    @property
    def count(self) -> int:
        """Members, which are the Deployment's replicas."""
        return len(self.snapshot.clients)

    @property
    def strategy(self) -> str:
        """The group's strategy now."""
        return self.current.strategy

    @property
    def revision(self) -> int:
        """The revision of the Deployment's template now. Raises ``RefusedError`` where it was not read."""
        if self.deployment.revision is None:
            raise refused(
                Refusal.NOT_AT_REST,
                f"the snapshot does not have the revision of {self.deployment.workload}, which is the way back: take a "
                "new one",
            )
        return self.deployment.revision

    def ready_s(self, at_once: int) -> Span | None:
        """How long a pod takes from its start until it is ready, where so many start at once; ``None``: unknown.

        By the present ones. Their times are whole seconds, so each took up to a second less or more. Pods that started
        together on one node had to share it: where fewer start at once, one takes at least its part of that time.
        """
        pods = [pod for pod in self.deployment.pods or () if not pod.restarts]
        starts = [(pod.node, pod.started_at, pod.ready_at) for pod in pods if pod.ready_at and pod.started_at]
        if not starts:
            return None
        took = [(ready - started).total_seconds() for _, started, ready in starts]
        together = [
            sum(node == other and start < ready and started < end for other, start, end in starts)
            for node, started, ready in starts
        ]
        least = [max(0.0, s - 1.0) / max(1.0, shared / at_once) for s, shared in zip(took, together, strict=True)]
        return Span(min(least), max(took) + 1.0)


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration of a group, by the name of its ``kind``.

    ``must_be_true`` are half sentences that a person has to answer for, as nothing that the planner reads shows them.
    ``why`` are sentences about the alternatives that were compared. ``moved`` are the queues that have another owner in
    the end; ``cost`` is what the migration costs, ``None`` where unknown: ``unknowns`` then says why.
    """

    kind: str
    steps: tuple[Step, ...]
    must_be_true: tuple[str, ...]
    why: tuple[str, ...]
    moved: MovedQueues
    cost: Cost | None = None
    unknowns: tuple[str, ...] = ()


def read_context(snapshot: GroupSnapshot, digest: str, settings: RolloutSettings) -> MigrationContext:
    """Return what a migration of the group starts from, ``digest`` being the snapshot's.

    Raises ``RefusedError`` where the Deployment is not at rest or not the planner's to change, or where the group's
    strategy cannot be simulated, so that nothing shows when it has settled; ``BadInputError`` for another kind than a
    Deployment.
    """
    deployment, group = snapshot.deployment, snapshot.group
    if deployment is None:
        raise refused(
            Refusal.NOT_AT_REST,
            f"the Deployment of group {group} was not read: let spec.kubernetes of the policy read it",
        )
    if deployment.ordinals is not None or deployment.scale is not None:
        raise BadInputError(
            f"the target of group {group} is {deployment.workload}: migrations change templates of Deployments only; "
            "change it by hand"
        )
    if (why := why_not_handled(deployment, settings.autoscaler, (len(snapshot.clients),))) is not None:
        raise why
    if snapshot.members_per_pod != 1:
        each = "an unknown number of" if snapshot.members_per_pod is None else snapshot.members_per_pod
        raise refused(
            Refusal.SEVERAL_MEMBERS_A_POD,
            f"each pod of {deployment.workload} runs {each} members ({snapshot.members_per_pod_source}): migrations "
            "are planned for pods that run one; let each pod run one, then ask again",
        )
    counts = {deployment.replicas, deployment.ready, deployment.updated, len(snapshot.clients)}
    if len(counts) > 1 or not deployment.is_observed:
        raise refused(
            Refusal.NOT_AT_REST,
            f"{deployment.workload} asks for {deployment.replicas} pods, {deployment.updated} of the newest template, "
            f"{deployment.ready} ready, and group {group} has {len(snapshot.clients)} members: wait until all agree",
        )
    if not can_simulate(snapshot):
        raise refused(
            Refusal.UNKNOWN_STRATEGY, f"the strategy of group {group} is not one whose answer can be computed"
        )
    if shares_messages(snapshot):
        how = "" if snapshot.strategy == SHARE else " (POP)"
        raise refused(
            Refusal.UNKNOWN_STRATEGY,
            f"the members of group {group} share messages{how}: only their number can be planned, no migration",
        )
    current = simulate_candidate(snapshot, len(snapshot.clients), snapshot.strategy or "")
    return MigrationContext(snapshot, digest, deployment, settings, current)


def check_orderly(context: MigrationContext) -> None:
    """Raise ``RefusedError`` where pods of an orderly group are killed at once: locks outlive them by a minute."""
    if context.snapshot.orderly and context.deployment.grace_s == 0:
        raise refused(
            Refusal.ORDERLY_WITHOUT_SURGE,
            f"group {context.snapshot.group} consumes in order, and {context.deployment.workload} kills its pods at "
            "once (terminationGracePeriodSeconds 0), so that their locks stay up to 60 s: give them time to stop",
        )


def all_owned(context: MigrationContext) -> MovedQueues:
    """Return what moves where every member is replaced: all queues that have an owner."""
    owned = sum(owner.owner is not None for owner in context.current.owners)
    return MovedQueues(owned, owned)


def known_cost(forecast: Transition | str | None) -> Cost | None:
    """Return what ``forecast_change`` gave as the plan's cost, ``None`` where it gave a sentence."""
    return cost_of(forecast) if isinstance(forecast, Transition) else None


def forecast_change(context: MigrationContext, changes: tuple[Change, Change]) -> Transition | str:
    """Return what a change costs, or in half a sentence why that is unknown."""
    try:
        return transition_of(context.current, context.snapshot, context.digest, changes, TRIALS)
    except PlannerError as error:
        return f"what the migration costs in pauses and duplicates: {str(error).rstrip('.')}"


def plan_of(migration: Migration, context: MigrationContext, at: datetime) -> RolloutPlan:
    """Return the plan that carries the migration out, made at ``at``.

    Raises ``RefusedError`` where it cannot be carried out beside the Deployment's autoscaler.
    """
    snapshot, settings = context.snapshot, context.settings
    forecast = replace(
        forecast_outcome(snapshot, context.current),
        moved_queues=migration.moved,
        owners_after=(),
        unknowns=tuple(_unknowns(migration)),
        cost=migration.cost,
    )
    return RolloutPlan(
        policy=settings.policy,
        group=GroupRef(snapshot.system, snapshot.cluster, snapshot.group),
        deployment=settings.deployment,
        snapshot=SnapshotRef(context.digest, snapshot.at),
        made_at=at,
        valid_until=at + timedelta(seconds=settings.valid_for_s),
        reason=f"Migration {migration.kind}, which somebody asked for.",
        rejected=(),
        preconditions=Preconditions(context.count, snapshot.clients, context.strategy, len(snapshot.data_queues)),
        forecast=forecast,
        steps=with_autoscaler(migration.steps, context.deployment, context.count, settings.autoscaler),
        migration=migration.kind,
        policy_digest=settings.policy_digest,
        ways=migration.why,
        ttl_seconds_after_finished=settings.ttl_s,
        idempotent=settings.idempotent,
    )


def _unknowns(migration: Migration) -> Iterator[str]:
    yield "who owns which queue afterwards, as new pods bring new member ids"
    yield from (f"whether {requirement}: somebody has to make sure" for requirement in migration.must_be_true)
    yield from migration.unknowns
