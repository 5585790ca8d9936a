"""Reasons to hold before any count is compared: a decision must rest on fresh, complete, settled data."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from planner.allocation.registry import runnable_strategy
from planner.decision.decision import HoldCause
from planner.decision.objective import Objective
from planner.decision.pace import falls_behind
from planner.decision.rest import known_since, last_change
from planner.model.deployments import Deployment
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.simulation.candidates import unsettled_queues
from planner.simulation.partitions import why_not_simulated
from planner.simulation.sharing import shares_messages
from planner.snapshot.unlisted import GRPC_CLIENTS
from planner.words import counted, some

HoldReason = tuple[HoldCause, str]


def first_reason_to_hold(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> HoldReason | None:
    """Return why no decision can rest on this snapshot at time ``at``, ``None`` where one can.

    The first reason is the one to act on first: what no longer watch mends comes before what one would mend.
    """
    return next(_reasons(snapshot, objective, at), None)


def _reasons(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> Iterator[HoldReason]:
    if old := too_old(snapshot, objective, at):
        yield HoldCause.OLD_DATA, old
    yield from _members(snapshot)
    yield from _shared_by_all(snapshot)
    yield from _pods(snapshot)
    yield from _completeness(snapshot, objective)
    if snapshot.shared_queues and not shares_messages(snapshot):
        yield _shared_by_some(snapshot)
    yield from _strategy(snapshot)
    if any(state.upper_arrival_rate is None for state in snapshot.data_queues):
        unknown = sum(state.upper_arrival_rate is None for state in snapshot.data_queues)
        yield HoldCause.UNKNOWN_RATES, f"the arrival rate of {unknown} queues is unknown"
    if snapshot.unknown_lag and not falls_behind(snapshot):
        yield (
            HoldCause.UNKNOWN_LAG,
            f"the lag of {len(snapshot.unknown_lag)} queues is unknown, as no offset of the group is stored for them",
        )
    if snapshot.capacity is None:
        yield (
            HoldCause.UNKNOWN_CAPACITY,
            "what one consumer can do is unknown: state spec.capacity in the policy or let consumers report it",
        )
    if snapshot.deployment is not None:
        yield from _deployment(snapshot.deployment, snapshot, objective)
    yield from _settled(snapshot)


def first_reason_against_fewer(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> HoldReason | None:
    """Return why the group must not shrink yet, ``None`` where it may: stabilisation never holds back a rise."""
    return next(_against_fewer(snapshot, objective, at), None)


def _against_fewer(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> Iterator[HoldReason]:
    if snapshot.standing_queues:
        yield HoldCause.BLOCKED_QUEUES, standing_still(snapshot)
    if snapshot.capacity is not None and snapshot.capacity.slow_clients:
        yield HoldCause.SLOW_MEMBERS, slow(snapshot.capacity)
    if objective.quiet_s:
        yield from _quiet(snapshot, objective.quiet_s, at)


def _members(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    if snapshot.unlisted_consumers is not None:
        yield HoldCause.MEMBERS_UNKNOWN, f"its members are unknown: {snapshot.unlisted_consumers}"
    if not snapshot.clients:
        yield HoldCause.NO_CONSUMERS, "no consumer is running, so neither capacity nor ownership can be seen"


def _pods(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """A plan's replicas are pods: they must be known, and each must run as many members as the others."""
    if snapshot.members_per_pod is None:
        why = f"how many members each pod runs is unknown: {snapshot.members_per_pod_source}"
        yield HoldCause.UNKNOWN_PODS, why
    if snapshot.uneven_pods:
        yield HoldCause.UNEVEN_PODS, snapshot.members_per_pod_source


def standing_still(snapshot: GroupSnapshot) -> str:
    """Return in a sentence why queues that stand still are no matter of how many consumers there are."""
    return (
        f"nothing is consumed of {some(snapshot.standing_queues)} although messages wait: look at the consumer of "
        "these first, as another count does not free it, and each move of such a queue delivers again what its "
        "consumer has in hand"
    )


def slow(capacity: Capacity) -> str:
    """Return in a sentence why another count is no answer to members that are slow for a reason of their own."""
    return (
        f"{some(capacity.slow_clients)} had work all the time and did much less than another member: find out why or "
        "replace it; another count is no answer to that"
    )


def too_old(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> str | None:
    """Return which section of the snapshot is older at time ``at`` than the policy allows, ``None`` when none is."""
    since_s = (at - snapshot.at).total_seconds()
    for section in snapshot.parts:
        age_s = since_s + section.age_s
        if age_s > objective.max_age_s:
            return f"its {section.name} are {age_s:.0f} s old, the policy allows {objective.max_age_s:.0f} s"
    return None


def _completeness(snapshot: GroupSnapshot, objective: Objective) -> Iterator[HoldReason]:
    for section in snapshot.parts:
        if section.completeness < objective.min_completeness:
            note = f" ({section.note})" if section.note else ""
            yield (
                HoldCause.INCOMPLETE_DATA,
                f"its {section.name} are {section.completeness:.0%} complete{note}, "
                f"the policy asks for {objective.min_completeness:.0%}",
            )


def _strategy(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    if snapshot.strategy is None:
        yield HoldCause.UNKNOWN_STRATEGY, f"the allocation strategy is unknown: {snapshot.strategy_source}"
    elif snapshot.system == "kafka":
        why = why_not_simulated(snapshot, snapshot.strategy)
        if why is not None:
            yield HoldCause.UNSUPPORTED_STRATEGY, why
    else:
        yield from _rocketmq_strategy(snapshot)


def _shared_by_all(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """Members that take messages of every queue, by no known rule: so it stays, however long they are watched."""
    if snapshot.strategy is None and GRPC_CLIENTS in snapshot.strategy_source:
        yield HoldCause.UNKNOWN_STRATEGY, f"the allocation strategy is unknown: {snapshot.strategy_source}"
    is_shared = snapshot.shared_queues and snapshot.shared_queues == len(snapshot.data_queues)
    if is_shared and not shares_messages(snapshot):
        yield (
            HoldCause.UNSUPPORTED_STRATEGY,
            "every queue is given to several members at once (broadcasting, or POP with a popShareQueueNum that "
            "gives each only some): counts are not compared for such groups",
        )


def _shared_by_some(snapshot: GroupSnapshot) -> HoldReason:
    shared, queues = snapshot.shared_queues, len(snapshot.data_queues)
    return HoldCause.UNSETTLED, (
        f"{shared} of {counted(queues, 'queue')} are owned by several members at once: a rebalance is under way, or "
        "the members differ in what they see"
    )


def _rocketmq_strategy(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    strategy = runnable_strategy(snapshot.strategy, snapshot.strategy_options)
    if strategy is None:
        yield (
            HoldCause.UNSUPPORTED_STRATEGY,
            f"strategy {snapshot.strategy} needs parameters that cannot be seen from outside: "
            "state them in spec.strategyOptions",
        )
    elif not strategy.is_positional:
        yield (
            HoldCause.UNSUPPORTED_STRATEGY,
            f"{snapshot.strategy} goes by the client ids themselves, and those of new consumers are not known: "
            "the load under no other count can be told",
        )


def _deployment(deployment: Deployment, snapshot: GroupSnapshot, objective: Objective) -> Iterator[HoldReason]:
    """Why the Deployment prevents a change: another scaler would undo it, or the last one is not over."""
    scalers = deployment.active_autoscalers
    if scalers is None:
        yield HoldCause.OTHER_SCALER, f"whether an autoscaler owns {deployment.workload} could not be read"
    elif scalers and not objective.sets_autoscaler:
        names = ", ".join(f"{scaler.kind} {scaler.name}" for scaler in scalers)
        yield HoldCause.OTHER_SCALER, f"{names} sets the replicas of {deployment.workload}: it would undo a plan"
    members, per_pod = len(snapshot.clients), snapshot.members_per_pod or 1
    if deployment.replicas * per_pod != members:
        each = f" of {per_pod} members each" if per_pod > 1 else ""
        yield (
            HoldCause.UNSETTLED,
            f"{deployment.workload} asks for {deployment.replicas} pods{each}, but the group has {members} members",
        )


def _quiet(snapshot: GroupSnapshot, quiet_s: float, at: datetime) -> Iterator[HoldReason]:
    """The group must have been left alone for so long; time without samples is not known to have been quiet."""
    since = at - timedelta(seconds=quiet_s)
    changed = last_change(snapshot)
    if changed is not None and changed > since:
        ago_s = (at - changed).total_seconds()
        yield (
            HoldCause.RECENTLY_CHANGED,
            f"its members changed {ago_s:.0f} s ago, the policy's stabilisation asks for {quiet_s:.0f} s of rest",
        )
    known = known_since(snapshot)
    if known is None or known > since:
        watched = "no part" if known is None else f"only the last {(at - known).total_seconds():.0f} s"
        yield (
            HoldCause.UNKNOWN_CHANGES,
            f"whether its members changed is known of {watched} of the {quiet_s:.0f} s that the policy's stabilisation "
            "asks for",
        )


def _settled(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """What the members report must equal what the strategy computes, else the group is still moving."""
    if snapshot.strategy is None or not snapshot.clients:
        return
    wrong = unsettled_queues(snapshot)
    if wrong:
        yield (
            HoldCause.UNSETTLED,
            f"{wrong} queues are not owned by whom {snapshot.strategy} gives them to: a rebalance is under way or "
            "the members differ in what they see",
        )
