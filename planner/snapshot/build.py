"""One group as of one time, put together from its newest sample and its intervals."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from planner.history.busy import client_spans
from planner.history.series import group_series
from planner.model.deployments import Deployment
from planner.model.intervals import QueueInterval
from planner.model.membership import GroupMember, kafka_members
from planner.model.queues import Queue
from planner.model.samples import GroupSample
from planner.model.snapshot import POP, Capacity, GroupSnapshot, MemberPod
from planner.snapshot.blocked_queues import blocked_queues_of, rewound_queues
from planner.snapshot.capacity import known_capacity, learned_capacity, shared_capacity, with_measured
from planner.snapshot.completeness import snapshot_sections
from planner.snapshot.delivery import count_shared_queues, is_orderly, strategy_options
from planner.snapshot.pod_capacity import STATED, with_pod_capacity, with_stated_pod
from planner.snapshot.pods import pod_size
from planner.snapshot.queue_states import queue_states, rates_of, with_shares
from planner.snapshot.settings import RECENT, SnapshotSettings
from planner.snapshot.setups import client_setups, notifies_changes
from planner.snapshot.strategy import observed_assignor, observed_strategy
from planner.snapshot.unlisted import GRPC_CLIENTS, grpc_members, is_of_grpc_clients, unlisted_consumers
from planner.workload import Join, clues_of, join_members


def build_snapshot(
    newest: GroupSample, intervals: Sequence[QueueInterval], at: datetime, settings: SnapshotSettings
) -> GroupSnapshot:
    """Return the group's snapshot as of ``at`` from its newest sample and its intervals.

    Queues are those of the routes; one that no broker reported has unknown lag and rates, and a sentence in
    ``problems``. Ages are counted from ``at``.
    """
    rates = rates_of(intervals, at, settings)
    strategy, strategy_source = _strategy(newest, settings)
    tunings = [member.tuning for member in newest.members if member.tuning is not None]
    queues, queue_problems = queue_states(newest, rates)
    queues = with_shares(queues, intervals, at)
    join = _join(newest, settings)
    pods = None if join is None else {member: pod.name for member, pod in join.pod_of.items()}
    size = pod_size(list(map(clues_of, newest.members)), newest.deployment, pods, settings.members_per_pod)
    unlisted = unlisted_consumers(newest, intervals)
    in_window = _by_queue(intervals, at - timedelta(seconds=settings.window_s), at)
    return GroupSnapshot(
        system=newest.system,
        cluster=newest.cluster,
        group=newest.group,
        at=at,
        window_s=settings.window_s,
        strategy=strategy,
        strategy_source=strategy_source,
        strategy_options=strategy_options(newest, strategy, settings),
        orderly=is_orderly(newest),
        threads=min((tuning.threads for tuning in tunings if tuning.threads), default=None),
        clients=tuple(sorted(member.identity for member in newest.members)),
        queues=queues,
        capacity=_capacity(newest.members, intervals, at, settings, pods or {}, size.members),
        parts=snapshot_sections(newest, queues, rates, at, settings, unlisted),
        problems=(*newest.problems, *queue_problems, *_pod_problems(newest.deployment, join)),
        recent=group_series(intervals, at - RECENT, at),
        deployment=newest.deployment,
        pods=tuple(MemberPod(member, pod) for member, pod in (pods or {}).items()),
        setups=client_setups(newest.members),
        notifies_changes=notifies_changes(newest.rocketmq.brokers) if newest.rocketmq else None,
        timing=settings.timing,
        unlisted_consumers=unlisted,
        shared_queues=count_shared_queues(newest),
        percentile=settings.percentile,
        blocked_queues=blocked_queues_of(newest, in_window),
        rewound_queues=rewound_queues(newest, in_window),
        member_label=settings.member_label or "",
        members=tuple(sorted(kafka_members(newest.members), key=lambda member: member.member_id)),
        members_per_pod=size.members,
        members_per_pod_source=size.source,
        uneven_pods=size.uneven,
        new_pods=settings.new_pods,
        other_groups=newest.rocketmq.other_groups if newest.rocketmq else (),
    )


def _by_queue(intervals: Sequence[QueueInterval], since: datetime, until: datetime) -> dict[Queue, list[QueueInterval]]:
    by_queue: dict[Queue, list[QueueInterval]] = {}
    for interval in intervals:
        if since < interval.ended_at <= until:
            by_queue.setdefault(interval.queue, []).append(interval)
    return by_queue


def _strategy(newest: GroupSample, settings: SnapshotSettings) -> tuple[str | None, str]:
    through_proxy = len(grpc_members(newest))
    if 0 < through_proxy < len(newest.members):
        return None, (
            f"{through_proxy} of {len(newest.members)} members {GRPC_CLIENTS} and take messages of every queue, the "
            "others allocate queues: give the group one kind of client"
        )
    observed, source = _observed(newest)
    if settings.strategy is None:
        return observed, source
    if observed == POP and settings.strategy != POP:
        return None, f"the policy says {settings.strategy}, but {source}: leave spec.strategy out"
    if observed is not None and not settings.states(observed):
        return None, settings.contradicted_by(source, observed)
    return settings.strategy, STATED


def _observed(newest: GroupSample) -> tuple[str | None, str]:
    if newest.kafka:
        return observed_assignor(newest.kafka)
    if is_of_grpc_clients(newest):
        return POP, f"its members {GRPC_CLIENTS}, and each takes messages of every queue"
    return observed_strategy(newest.members)


def _capacity(
    members: Sequence[GroupMember],
    intervals: Sequence[QueueInterval],
    at: datetime,
    settings: SnapshotSettings,
    pods: Mapping[str, str],
    per_pod: int | None,
) -> Capacity | None:
    stated, recent = settings.capacity_messages_per_s, [i for i in intervals if at - RECENT < i.ended_at <= at]
    is_shared = all(member.shares_messages for member in members)
    if stated is not None:
        learned = shared_capacity(recent) if is_shared else learned_capacity(client_spans(recent))
        capacity: Capacity | None = with_measured(Capacity(stated, STATED), learned)
    else:
        capacity = shared_capacity(recent) if is_shared else known_capacity(recent, members)
    capacity = with_stated_pod(capacity, settings.pod_capacity_messages_per_s, per_pod)
    return with_pod_capacity(capacity, client_spans(recent) if (per_pod or 1) > 1 else (), pods, per_pod)


def _join(newest: GroupSample, settings: SnapshotSettings) -> Join | None:
    """Return which pod runs which member; ``None`` where no Deployment or none of its pods was read."""
    deployment = newest.deployment
    if deployment is None or deployment.pods is None:
        return None
    return join_members(deployment.pods, map(clues_of, newest.members), settings.member_label)


def _pod_problems(deployment: Deployment | None, join: Join | None) -> tuple[str, ...]:
    return (*(deployment.problems if deployment else ()), *(join.problems if join else ()))
