"""Small named worlds: queues, snapshots, policies' answers, made of a few words. Pure; every value can be replaced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from planner.allocation.registry import find_strategy
from planner.decision.choose import decide
from planner.decision.objective import Objective
from planner.documents.data import SNAPSHOT
from planner.model.membership import KafkaMember
from planner.model.queues import MessageQueue, TopicPartition
from planner.model.snapshot import (
    Capacity,
    ClientSetup,
    GroupSnapshot,
    KafkaTiming,
    MemberPod,
    QueueState,
    SeriesPoint,
    SnapshotSection,
)
from planner.rollout.build import build_plan
from planner.rollout.plan import DecisionRecord, GroupRef, RolloutPlan, SnapshotRef
from planner.rollout.settings import RolloutSettings
from planner.simulation.candidates import candidate_counts, simulate_candidate
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.rocketmq.topics import topics_of
from planner.simulation.transition import with_transition

AT = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)

OBJECTIVE = Objective(
    lowest=1,
    highest=16,
    max_utilisation=0.8,
    oldest_message_s=None,
    backlog_gone_s=900.0,
    max_age_s=120.0,
    min_completeness=0.9,
)


def queues(
    topic: str = "orders", brokers: Sequence[str] = ("broker-a", "broker-b"), each: int = 8
) -> tuple[MessageQueue, ...]:
    """Return ``each`` queues of the topic on every broker, sorted."""
    return tuple(sorted(MessageQueue(topic, broker, number) for broker in brokers for number in range(each)))


def clients(count: int) -> tuple[str, ...]:
    """Return that many client ids as RocketMQ spells them, sorted."""
    return tuple(sorted(f"10.0.{number // 250}.{number % 250 + 10}@{4000 + number}#7" for number in range(count)))


def state(
    queue: MessageQueue,
    rate: float | None = 10.0,
    lag: int = 0,
    owner: str | None = None,
    consumed: float | None = None,
) -> QueueState:
    """Return a queue's state whose upper rate is a fifth above ``rate``; it consumes what arrives unless told."""
    return QueueState(
        queue=queue,
        broker_offset=10_000 + lag,
        consumer_offset=10_000,
        lag=lag,
        arrival_rate=rate,
        upper_arrival_rate=None if rate is None else rate * 1.2,
        consumption_rate=rate if consumed is None else consumed,
        owner=owner,
    )


def setups(clients: Sequence[str], **changes: Any) -> tuple[ClientSetup, ...]:
    """Return Java clients 5.5.0 with 20 threads and 50 ms a message, which shut down at once."""
    settings = (("awaitTerminationMillisWhenShutdown", "0"), ("messageModel", "CLUSTERING"))
    made = ClientSetup("", "JAVA", "5.5.0", False, 20, 0.05, settings)
    return tuple(replace(made, client=client, **changes) for client in sorted(clients))


def parts(age_s: float = 3.0, completeness: float = 1.0) -> tuple[SnapshotSection, ...]:
    """Return all parts of a snapshot, each of that age and completeness."""
    names = ("routes", "members", "ownership", "offsets", "rates")
    return tuple(SnapshotSection(name, age_s, completeness) for name in names)


def snapshot(
    queues: Sequence[MessageQueue] = queues(),
    clients: Sequence[str] = clients(3),
    *,
    rates: Mapping[MessageQueue, float | None] | None = None,
    lags: Mapping[MessageQueue, int] | None = None,
    capacity: float | None = 100.0,
    strategy: str | None = "AVG",
    **changes: object,
) -> GroupSnapshot:
    """Return a settled, complete, fresh snapshot; each queue gets 10 messages/s and no lag unless told otherwise."""
    made = GroupSnapshot(
        system="rocketmq",
        cluster="DefaultCluster",
        group="billing",
        at=AT,
        window_s=600.0,
        strategy=strategy,
        strategy_source="running info of the members (AllocateMessageQueueAveragely)",
        orderly=False,
        threads=20,
        clients=tuple(sorted(clients)),
        queues=tuple(state(q, (rates or {}).get(q, 10.0), (lags or {}).get(q, 0)) for q in sorted(queues)),
        capacity=None if capacity is None else Capacity(capacity, "stated by the policy"),
        parts=parts(),
        setups=setups(clients),
        notifies_changes=True,
    )
    return replace(owned(made), **changes)  # type: ignore[arg-type]


def podded(pods: int, per_pod: int, queue_count: int, **changes: Any) -> GroupSnapshot:
    """Return a settled RocketMQ group on one topic, each pod running ``per_pod`` consumers, whom its ids name."""
    names = [f"10.1.0.{number + 10}" for number in range(pods)]
    ids = tuple(f"{name}@{instance}" for name in names for instance in range(per_pod))
    made = snapshot(queues(brokers=("broker-a",), each=queue_count), ids, **changes)
    links = tuple(MemberPod(client, f"pod-{client.partition('@')[0]}") for client in made.clients)
    return replace(made, pods=links, members_per_pod=per_pod, members_per_pod_source="made so")


TIMING = KafkaTiming("4.4.0", "4.3.1", 0.002, settings=(("session.timeout.ms", 10_000),))


def kafka_snapshot(strategy: str = "range", timing: KafkaTiming | None = TIMING, **changes: Any) -> GroupSnapshot:
    """Return a snapshot of a Kafka group: two members on four partitions of 10 to 12 records a second."""
    members = tuple(KafkaMember(name, name, f"10.0.0.{name}", topics=("t",)) for name in ("a", "b"))
    states = tuple(
        replace(state(queues()[0]), queue=TopicPartition("t", number), owner="aabb"[number]) for number in range(4)
    )
    changes = {"clients": ("a", "b"), "members": members, "queues": states, "setups": (), "timing": timing, **changes}
    return replace(snapshot(), system="kafka", strategy=strategy, **changes)


def owned(taken: GroupSnapshot) -> GroupSnapshot:
    """Return the snapshot with every queue owned by whom its strategy gives it to."""
    if taken.strategy is None or not taken.clients:
        return taken
    topics = topics_of(taken)
    positions = topics.owners(find_strategy(taken.strategy), taken.clients)
    states = [
        replace(one, owner=taken.clients[place] if place >= 0 else None)
        for of_topic, places in zip(topics.states, positions, strict=True)
        for one, place in zip(of_topic, places, strict=True)
    ]
    return replace(taken, queues=tuple(states))


def series(
    lags: Sequence[int], rates: Sequence[float | None], consumed: Sequence[float | None], every_s: float = 10.0
) -> tuple[SeriesPoint, ...]:
    """Return points that end at ``AT``, one every ``every_s`` seconds, three consumers, no moves."""
    first = AT - timedelta(seconds=every_s * (len(lags) - 1))
    return tuple(
        SeriesPoint(first + timedelta(seconds=every_s * number), every_s, arrived, done, lag, 3, 0, False)
        for number, (lag, arrived, done) in enumerate(zip(lags, rates, consumed, strict=True))
    )


@dataclass(frozen=True)
class World:
    """One decided case: everything that comes after the snapshot."""

    snapshot: GroupSnapshot
    outcomes: tuple[CandidateOutcome, ...]
    record: DecisionRecord
    plan: RolloutPlan | None


def decided(
    taken: GroupSnapshot,
    objective: Objective = OBJECTIVE,
    strategies: Sequence[str] = ("AVG", "AVG_BY_CIRCLE"),
    trials: int | None = None,
) -> World:
    """Return the snapshot with its simulated outcomes, the decision and, unless it holds, the plan.

    With ``trials`` the outcomes say what the change costs, too.
    """
    can_simulate = bool(taken.clients and taken.data_queues and taken.strategy)
    counts = candidate_counts(taken, objective.lowest, objective.highest) if can_simulate else ()
    outcomes = tuple(simulate_candidate(taken, count, name) for name in strategies for count in counts)
    digest = SNAPSHOT.digest(taken)
    if trials:
        outcomes = tuple(with_transition(outcome, taken, digest, trials) for outcome in outcomes)
    decision = decide(taken, outcomes, objective, taken.at)
    record = DecisionRecord(
        policy="billing",
        group=GroupRef(taken.system, taken.cluster, taken.group),
        deployment="billing-consumer",
        snapshot=SnapshotRef(digest, taken.at),
        decision=decision,
    )
    if decision.is_hold:
        return World(taken, outcomes, record, None)
    chosen = next(o for o in outcomes if o.count == decision.target and o.strategy == decision.strategy)
    return World(
        taken,
        outcomes,
        record,
        build_plan(taken, digest, decision, chosen, RolloutSettings("billing", "billing-consumer")),
    )
