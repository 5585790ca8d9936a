"""Reasons to hold before any count is compared: a decision must rest on fresh, complete, settled data."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from planner.decision.decision import HoldCause
from planner.decision.last_change import known_since, last_change
from planner.decision.objective import Objective
from planner.decision.pace import drowns, falls_behind
from planner.decision.zero import reasons_to_stay_at_zero
from planner.model.deployments import Deployment
from planner.model.snapshot import POP, Capacity, GroupSnapshot
from planner.simulation.candidates import shares_messages, unsettled_queues
from planner.simulation.group_model import group_model
from planner.snapshot.other_levers import in_order_lever, kafka_lever
from planner.snapshot.pod_capacity import STATED
from planner.snapshot.unlisted import GRPC_CLIENTS
from planner.text.words import counted, duration, queues, rate, some

HoldReason = tuple[HoldCause, str]

REFUTES = 0.5
"""Busy consumers that surely did less than this part of what a policy states of them refute it."""

REFUTES_NOW = 0.8
"""The same while messages wait: what slowed them down for a time is then not over."""


def first_reason_to_hold(
    snapshot: GroupSnapshot, objective: Objective, at: datetime, *, needs_capacity: bool = True
) -> HoldReason | None:
    """Return why no decision can rest on this snapshot at time ``at``, ``None`` where one can.

    The first reason is the one to act on first: what no longer watch mends comes before what one would mend.
    """
    reasons = _reasons(snapshot, objective, at)
    return next((each for each in reasons if needs_capacity or each[0] is not HoldCause.UNKNOWN_CAPACITY), None)


def first_reason_to_stay_at_zero(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> HoldReason | None:
    """Return why a group without a pod gets none, ``None`` where its first one starts: it has no members."""
    return next(_reasons_at_zero(snapshot, objective, at), None)


def _reasons_at_zero(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> Iterator[HoldReason]:
    if old := too_old(snapshot, objective, at):
        yield HoldCause.OLD_DATA, old
    if snapshot.unlisted_consumers is not None:
        yield HoldCause.MEMBERS_UNKNOWN, f"its members are unknown: {snapshot.unlisted_consumers}"
    yield from reasons_to_stay_at_zero(snapshot)
    if snapshot.deployment is not None:
        yield from _deployment(snapshot.deployment, snapshot, objective)


def _reasons(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> Iterator[HoldReason]:
    if old := too_old(snapshot, objective, at):
        yield HoldCause.OLD_DATA, old
    yield from _members(snapshot)
    yield from _other_lever(snapshot)
    yield from _shared_by_all(snapshot)
    yield from _served_by_several(snapshot)
    yield from _pods(snapshot)
    yield from _completeness(snapshot, objective)
    if snapshot.shared_queues and snapshot.strategy != POP and not shares_messages(snapshot):
        yield _shared_by_some(snapshot)
    yield from _strategy(snapshot)
    if any(state.upper_arrival_rate is None for state in snapshot.data_queues):
        unknown = sum(state.upper_arrival_rate is None for state in snapshot.data_queues)
        yield HoldCause.UNKNOWN_RATES, f"the arrival rate of {queues(unknown, snapshot.system)} is unknown"
    if snapshot.unknown_lag and not falls_behind(snapshot):
        yield (
            HoldCause.UNKNOWN_LAG,
            f"the lag of {queues(len(snapshot.unknown_lag), snapshot.system)} is unknown, as no offset of the group is "
            "stored for them",
        )
    capacity = snapshot.consumer_capacity
    yield from _went_back(snapshot)
    if capacity is None or capacity.sure_messages_per_s <= 0:
        if (block := blocked(snapshot)) is not None:
            yield block
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
    if (block := blocked(snapshot)) is not None:
        yield block
    if snapshot.capacity is not None and snapshot.capacity.slow_clients:
        yield HoldCause.SLOW_MEMBERS, slow(snapshot.capacity)
    if (wrong := refuted(snapshot) or _refuted_by_arrivals(snapshot)) is not None:
        yield wrong
    if objective.quiet_s:
        yield from _quiet(snapshot, objective.quiet_s, at)


def _members(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    if snapshot.unlisted_consumers is not None:
        yield HoldCause.MEMBERS_UNKNOWN, f"its members are unknown: {snapshot.unlisted_consumers}"
    if not snapshot.clients:
        yield HoldCause.NO_CONSUMERS, "no consumer is running, so neither capacity nor ownership can be seen"


def _served_by_several(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """A plan scales the policy's targets: what another workload's pods do in the group it neither knows nor moves."""
    deployment = snapshot.deployment
    if deployment is None or not deployment.also_serving:
        return
    own, others = len(snapshot.pods), sum(other.members for other in deployment.also_serving)
    workloads = [f"{deployment.workload} ({own})", *map(str, deployment.also_serving)]
    elsewhere = len(snapshot.clients) - own - others
    yield (
        HoldCause.SEVERAL_DEPLOYMENTS,
        f"its members run in pods of {len(workloads)} workloads, {', '.join(workloads)}"
        f"{f', and {elsewhere} elsewhere' if elsewhere > 0 else ''}, and a plan scales only what the policy "
        "names: name all of these Deployments in spec.scaleTargetRefs, let one run all members, or give each a group "
        "of its own",
    )


def _pods(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """A plan's replicas are pods: they must be known, and each must run as many members as the others."""
    if snapshot.members_per_pod is None:
        why = f"how many members each pod runs is unknown: {snapshot.members_per_pod_source}"
        yield HoldCause.UNKNOWN_PODS, why
    if snapshot.uneven_pods:
        yield HoldCause.UNEVEN_PODS, snapshot.members_per_pod_source


def blocked(snapshot: GroupSnapshot) -> HoldReason | None:
    """Return why queues that stand still are no matter of how many consumers there are, ``None`` where none does."""
    if not snapshot.standing_queues:
        return None
    return HoldCause.BLOCKED_QUEUES, (
        f"nothing is consumed of {some(snapshot.standing_queues)} although messages wait: look at the consumer of "
        "these first, as another count does not free it, and each move of such a queue delivers again what its "
        "consumer has in hand"
    )


def refuted(snapshot: GroupSnapshot) -> HoldReason | None:
    """Return that busy consumers do less than the policy states, ``None`` where nothing speaks against its figure."""
    capacity = snapshot.capacity
    if capacity is None or capacity.measured_high is None:
        return None
    if capacity.measured_high >= (REFUTES_NOW if drowns(snapshot) else REFUTES) * capacity.messages_per_s:
        return None
    return HoldCause.REFUTED_CAPACITY, (
        f"the policy states {rate(capacity.messages_per_s)} for one consumer, and less was seen: "
        f"{capacity.measured_source}; correct spec.capacity.messagesPerSecond, or leave it out, as by a figure that is "
        "too high too few consumers seem enough"
    )


def _refuted_by_arrivals(snapshot: GroupSnapshot) -> HoldReason | None:
    """Return that a stated figure is wrong of members that share messages and fall behind: none of them idles."""
    capacity = snapshot.capacity
    if capacity is None or capacity.source != STATED or not shares_messages(snapshot) or not falls_behind(snapshot):
        return None
    return HoldCause.REFUTED_CAPACITY, (
        f"the policy states {rate(capacity.messages_per_s)} for one consumer, but more comes in than "
        f"{counted(len(snapshot.clients), 'consumer')} together get done, who share all messages: correct "
        "spec.capacity.messagesPerSecond, or leave it out"
    )


def _went_back(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """Work that is done again and again is no measure of the load, and a move of the queue repeats more of it."""
    if snapshot.rewound_queues:
        yield (
            HoldCause.COMMITS_WENT_BACK,
            (
                f"commits on {some(snapshot.rewound_queues)} went back, so that messages come again which were "
                "consumed before: look at the consumer of these first, as neither what waits there nor what it does is "
                "a measure of the load"
            ),
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
            return f"its {section.name} are {duration(age_s)} old, the policy allows {duration(objective.max_age_s)}"
    return None


def _completeness(snapshot: GroupSnapshot, objective: Objective) -> Iterator[HoldReason]:
    for section in snapshot.parts:
        if section.completeness < objective.min_completeness:
            note = f" ({section.note})" if section.note else ""
            yield (
                HoldCause.INCOMPLETE_DATA,
                # Rounded down: what is short of the policy's share never reads like it.
                f"its {section.name} are {math.floor(100 * section.completeness)}% complete{note}, "
                f"the policy asks for {objective.min_completeness:.0%}",
            )


def _strategy(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    if snapshot.strategy is None:
        yield HoldCause.UNKNOWN_STRATEGY, f"the allocation strategy is unknown: {snapshot.strategy_source}"
    elif (why := group_model(snapshot).unsupported_strategy()) is not None:
        yield HoldCause.UNSUPPORTED_STRATEGY, why


def _shared_by_all(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """Members that take messages of every queue, by no known rule: so it stays, however long they are watched."""
    if snapshot.strategy is None and GRPC_CLIENTS in snapshot.strategy_source:
        yield HoldCause.UNKNOWN_STRATEGY, f"the allocation strategy is unknown: {snapshot.strategy_source}"
    if snapshot.strategy == POP and snapshot.orderly is None:
        yield (
            HoldCause.UNSUPPORTED_STRATEGY,
            "whether the group consumes in order (consumeMessageOrderly) is unknown, as no broker reports its settings",
        )
    if snapshot.strategy == POP:
        return
    is_shared = snapshot.shared_queues and snapshot.shared_queues == len(snapshot.data_queues)
    if is_shared and not shares_messages(snapshot):
        yield (
            HoldCause.UNSUPPORTED_STRATEGY,
            "every queue is given to several members at once (broadcasting, or POP with a popShareQueueNum that "
            "gives each only some): counts are not compared for such groups",
        )


def _other_lever(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """Another lever than the number of members decides what the group can do: no longer watch changes that."""
    lever = kafka_lever(snapshot.strategy, [member.client_id for member in snapshot.members])
    if snapshot.strategy == POP and snapshot.orderly:
        lever = in_order_lever(len(snapshot.data_queues))
    if lever is not None:
        yield HoldCause.OTHER_LEVER, lever.sentence


def _shared_by_some(snapshot: GroupSnapshot) -> HoldReason:
    of_all = f"{snapshot.shared_queues} of {queues(len(snapshot.data_queues), snapshot.system)}"
    return HoldCause.UNSETTLED, (
        f"{of_all} are owned by several members at once: a rebalance is under way, or the members differ in what they "
        "see"
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
            f"its members changed {duration(ago_s)} ago, the policy's stabilisation asks for {duration(quiet_s)} of "
            "rest",
        )
    known = known_since(snapshot)
    if known is None or known > since:
        watched = "no part" if known is None else f"only the last {duration((at - known).total_seconds())}"
        yield (
            HoldCause.UNKNOWN_CHANGES,
            f"whether its members changed is known of {watched} of the {duration(quiet_s)} that the policy's "
            "stabilisation asks for",
        )


def _settled(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """What the members report must equal what the strategy computes, else the group is still moving."""
    if snapshot.strategy is None or not snapshot.clients:
        return
    wrong = unsettled_queues(snapshot)
    if wrong and shares_messages(snapshot):
        unread = queues(wrong, snapshot.system)
        yield HoldCause.UNSETTLED, f"no member reads {unread} yet: the broker still assigns them"
    elif wrong:
        yield (
            HoldCause.UNSETTLED,
            f"{queues(wrong, snapshot.system)} with another owner than {snapshot.strategy} gives: a rebalance is under "
            "way or the members differ in what they see",
        )
