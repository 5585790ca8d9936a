"""Put one snapshot together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from planner.history.blocked import blocked_queues
from planner.history.busy import client_spans
from planner.history.rates import QueueRates, queue_rates
from planner.history.series import group_series
from planner.history.work import member_work
from planner.model.deployments import Deployment
from planner.model.intervals import QueueInterval
from planner.model.membership import GroupMember, KafkaMember, Member
from planner.model.queues import Queue
from planner.model.samples import GroupSample, QueueOffsets
from planner.model.snapshot import Capacity, GroupSnapshot, KafkaTiming, MemberPod, QueueState, SnapshotSection
from planner.snapshot.capacity import known_capacity
from planner.snapshot.pod_capacity import with_pod_capacity, with_stated_pod
from planner.snapshot.pods import pod_size
from planner.snapshot.setups import client_setups, notifies_changes
from planner.snapshot.strategy import observed_assignor, observed_strategy
from planner.snapshot.unlisted import GRPC_CLIENTS, grpc_members, is_behind_proxy, unlisted_consumers
from planner.words import counted, queue_noun
from planner.workload import Join, clues_of, join_members


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """What the policy states about reading: window in seconds, percentile of the upper rate (0 to 100), overrides.

    ``members_per_pod`` is stated where pods cannot be read or do not show it, ``None`` without such a statement.
    """

    window_s: float = 600.0
    percentile: float = 95.0
    strategy: str | None = None
    strategy_options: dict[str, Any] = field(default_factory=dict)
    capacity_messages_per_s: float | None = None
    pod_capacity_messages_per_s: float | None = None
    member_label: str | None = None
    members_per_pod: int | None = None
    timing: KafkaTiming | None = None


SERVER_SIDE = ("AVG", "AVG_BY_CIRCLE")
"""The strategies that a broker knows (``QueryAssignmentProcessor``), and so those of members that pop."""

_ALL_QUEUES = -1
"""``popShareQueueNum`` where nobody set it (``BrokerConfig#defaultPopShareQueueNum``, 5.0.0 to 5.5.0)."""

RECENT = timedelta(hours=6)
"""How far back the snapshot's own series of the past reaches."""


def build_snapshot(
    newest: GroupSample, intervals: Sequence[QueueInterval], at: datetime, settings: SnapshotSettings
) -> GroupSnapshot:
    """Return the group's snapshot as of ``at`` from its newest sample and its intervals.

    Queues are those of the routes; one that no broker reported has unknown lag and rates, and a sentence in
    ``problems``. Ages are counted from ``at``.
    """
    rates = _rates(intervals, at, settings)
    strategy, strategy_source = _strategy(newest, settings)
    tunings = [member.tuning for member in newest.members if member.tuning is not None]
    queues, queue_problems = _queue_states(newest, rates)
    join = _join(newest, settings)
    pods = None if join is None else {member: pod.name for member, pod in join.pod_of.items()}
    size = pod_size(list(map(clues_of, newest.members)), newest.deployment, pods, settings.members_per_pod)
    unlisted = unlisted_consumers(newest, intervals)
    return GroupSnapshot(
        system=newest.system,
        cluster=newest.cluster,
        group=newest.group,
        at=at,
        window_s=settings.window_s,
        strategy=strategy,
        strategy_source=strategy_source,
        strategy_options=_strategy_options(newest, strategy, settings),
        orderly=any(tuning.orderly for tuning in tunings) if tunings else None,
        threads=min((tuning.threads for tuning in tunings if tuning.threads), default=None),
        clients=tuple(sorted(member.identity for member in newest.members)),
        queues=queues,
        capacity=_capacity(newest.members, intervals, at, settings, pods or {}, size.members),
        parts=_sections(newest, queues, rates, at, settings, unlisted),
        problems=(*newest.problems, *queue_problems, *_pod_problems(newest.deployment, join)),
        recent=group_series(intervals, at - RECENT, at),
        deployment=newest.deployment,
        pods=tuple(MemberPod(member, pod) for member, pod in (pods or {}).items()),
        setups=client_setups(newest.members),
        notifies_changes=notifies_changes(newest.rocketmq.brokers) if newest.rocketmq else None,
        timing=settings.timing,
        unlisted_consumers=unlisted,
        shared_queues=_shared_queues(newest),
        percentile=settings.percentile,
        blocked_queues=_blocked_queues(newest, intervals, at, settings.window_s),
        member_label=settings.member_label or "",
        members=tuple(
            sorted((m for m in newest.members if isinstance(m, KafkaMember)), key=lambda member: member.member_id)
        ),
        members_per_pod=size.members,
        members_per_pod_source=size.source,
        uneven_pods=size.uneven,
    )


def _shared_queues(newest: GroupSample) -> int:
    """Return how many data queues several members own at once: all of them where members pop."""
    data = _data_queues(newest)
    return len(data) if _pops(newest) else sum(len(newest.owners.get(queue, ())) > 1 for queue in data)


def _pops(newest: GroupSample) -> bool:
    """Return whether brokers hand messages to whichever member asks.

    A client whose queues the broker gives out (``clientRebalance`` false, 5.x) either has queues of its own or pops: it
    then reports no data queue.
    """
    lets_the_broker = any(
        isinstance(member, Member) and member.tuning and ("clientRebalance", "false") in member.tuning.properties
        for member in newest.members
    )
    return lets_the_broker and not any(newest.owners.get(queue) for queue in _data_queues(newest))


def _data_queues(newest: GroupSample) -> list[Queue]:
    return [queue for queue in newest.routes.read_queues if not queue.is_retry]


def _strategy_options(newest: GroupSample, strategy: str | None, settings: SnapshotSettings) -> dict[str, Any]:
    """Return the strategy's parameters: what the policy states, and that members pop, by default from all queues."""
    stated = settings.strategy_options if strategy == settings.strategy else {}
    return {"pop_share_queues": _ALL_QUEUES, **stated} if strategy in SERVER_SIDE and _pops(newest) else dict(stated)


def _blocked_queues(
    newest: GroupSample, intervals: Sequence[QueueInterval], at: datetime, window_s: float
) -> tuple[Queue, ...]:
    """Return the queues whose member hangs or passes them over, by its other commits within the window.

    A push client's pool works in the order of arrival over all its queues: what its queues wait for are its own
    figures, which no commits show, so that of its queues only those count that stand for the whole window.
    """
    since = at - timedelta(seconds=window_s)
    by_queue: dict[Queue, list[QueueInterval]] = {}
    for interval in intervals:
        if since < interval.ended_at <= at:
            by_queue.setdefault(interval.queue, []).append(interval)
    pulling = {member.identity for member in newest.members if _commits_queue_by_queue(member)}
    owners = {queue: of_queue for queue, of_queue in newest.owners.items() if pulling.issuperset(of_queue)}
    return blocked_queues(member_work(by_queue, owners, _data_queues(newest)))


def _commits_queue_by_queue(member: GroupMember) -> bool:
    """Return whether a member polls: it works off what it polled and commits it, queue by queue."""
    if isinstance(member, KafkaMember):
        return True
    return member.tuning is not None and ("PROP_CONSUME_TYPE", "CONSUME_ACTIVELY") in member.tuning.properties


def _rates(intervals: Sequence[QueueInterval], at: datetime, settings: SnapshotSettings) -> dict[Queue, QueueRates]:
    by_queue: dict[Queue, list[QueueInterval]] = {}
    for interval in intervals:
        by_queue.setdefault(interval.queue, []).append(interval)
    return {
        queue: queue_rates(of_queue, at, settings.window_s, settings.percentile) for queue, of_queue in by_queue.items()
    }


def _strategy(newest: GroupSample, settings: SnapshotSettings) -> tuple[str | None, str]:
    if through_proxy := grpc_members(newest):
        return None, (
            f"{len(through_proxy)} of {len(newest.members)} members {GRPC_CLIENTS}: each takes messages "
            "of every queue, so that no strategy allocates queues, which the planner does not simulate"
        )
    observed, source = observed_assignor(newest.kafka) if newest.kafka else observed_strategy(newest.members)
    if settings.strategy is None:
        return observed, source
    if observed not in (None, settings.strategy):
        return None, f"the policy says {settings.strategy}, but {source} says {observed}"
    return settings.strategy, "stated by the policy"


def _capacity(
    members: Sequence[GroupMember],
    intervals: Sequence[QueueInterval],
    at: datetime,
    settings: SnapshotSettings,
    pods: Mapping[str, str],
    per_pod: int | None,
) -> Capacity | None:
    stated, recent = settings.capacity_messages_per_s, [i for i in intervals if at - RECENT < i.ended_at <= at]
    if stated is not None:
        capacity: Capacity | None = Capacity(stated, "stated by the policy")
    else:
        capacity = known_capacity(recent, members)
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


def _queue_states(
    newest: GroupSample, rates: dict[Queue, QueueRates]
) -> tuple[tuple[QueueState, ...], tuple[str, ...]]:
    offsets = {entry.queue: entry for entry in newest.offsets}
    owners = newest.owners
    problems = []
    states = []
    for queue in newest.routes.read_queues:
        of_queue = owners.get(queue, ())
        if len(of_queue) > 1:
            problems.append(f"queue {queue} is owned by {len(of_queue)} clients: {', '.join(of_queue)}")
        if queue not in offsets and not queue.is_retry:
            problems.append(f"queue {queue} has no offsets: no broker reports them")
        states.append(_state(queue, offsets.get(queue), rates.get(queue), of_queue))
    return tuple(states), tuple(problems)


def _state(queue: Queue, offsets: QueueOffsets | None, rates: QueueRates | None, owners: tuple[str, ...]) -> QueueState:
    return QueueState(
        queue=queue,
        broker_offset=offsets.broker_offset if offsets else None,
        consumer_offset=offsets.consumer_offset if offsets else None,
        lag=offsets.lag if offsets else None,
        arrival_rate=rates.arrival if rates else None,
        upper_arrival_rate=rates.upper_arrival if rates else None,
        consumption_rate=rates.consumption if rates else None,
        owner=owners[0] if len(owners) == 1 else None,
    )


def _sections(
    newest: GroupSample,
    queues: Sequence[QueueState],
    rates: dict[Queue, QueueRates],
    at: datetime,
    settings: SnapshotSettings,
    unlisted: str | None,
) -> tuple[SnapshotSection, ...]:
    age_s = (at - newest.at).total_seconds()
    data = [state.queue for state in queues if not state.queue.is_retry]
    reported = {entry.queue for entry in newest.offsets}
    answered = [member for member in newest.members if member.owned is not None]
    covered = sum(min(rates[queue].covered_s, settings.window_s) for queue in data if queue in rates)
    topics = counted(len(newest.routes.topic_names), "topic")
    queues_read = counted(len(data), queue_noun(newest.system))
    return (
        SnapshotSection("routes", age_s, 1.0 if data else 0.0, f"{topics}, {queues_read}"),
        _members_section(newest, age_s, unlisted),
        SnapshotSection(
            "ownership",
            age_s,
            _share(len(answered), len(newest.members)),
            f"{len(answered)} of {len(newest.members)} members told what they own{_sharing(newest)}",
        ),
        SnapshotSection("offsets", age_s, _share(sum(queue in reported for queue in data), len(data)), ""),
        SnapshotSection(
            "rates",
            age_s,
            _share(covered, settings.window_s * len(data)),
            f"samples cover the window of {settings.window_s:.0f} s",
        ),
    )


def _members_section(newest: GroupSample, age_s: float, unlisted: str | None) -> SnapshotSection:
    listed = f"{len(newest.members)} members"
    if unlisted is None:
        return SnapshotSection("members", age_s, 1.0 if newest.members else 0.0, listed)
    behind = "behind a proxy" if is_behind_proxy(newest) else "no broker lists them"
    others = f"{listed} listed, others" if newest.members else "members"
    return SnapshotSection("members", age_s, 0.0, f"{others} unknown: {behind}")


def _sharing(newest: GroupSample) -> str:
    clients = len(grpc_members(newest))
    return f", of which {clients} are gRPC clients and own none" if clients else ""


def _share(amount: float, whole: float) -> float:
    return round(amount / whole, 4) if whole > 0 else 0.0
