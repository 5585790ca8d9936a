"""Small plans over the fake cluster, and executors that drive them to an end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from planner.execution.ports import Requests, StoredPlan
from planner.execution.progress import Approval
from planner.execution.reconcile import Outcome, Ports, ReconcileResult, run_reconcile
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import TargetReplicas
from planner.rollout.plan import Forecast, GroupRef, OwnedQueues, Preconditions, RolloutPlan, SnapshotRef
from planner.rollout.steps import (
    AutoscalerState,
    AwaitLag,
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    MovedQueues,
    ResetOffsets,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
    Victim,
)
from planner.rollout.template import ContainerChange, TemplateChange
from tests.step_builders import migration_of
from tests.unit.execution.fake import (
    QUEUES,
    START,
    FakeCluster,
    FakeDeployment,
    FakeEvents,
    FakeLeases,
    FakePlans,
    FakeWorld,
    allocated,
)

LIMIT_S = 120
DEPLOYMENT = "billing-consumer"
GREEN = "billing-green"
UNUSED = "billing-before"
SECOND = "billing-second"
"""Another Deployment of the same group, where its pods are split over two."""
HPA = Autoscaler("HorizontalPodAutoscaler", "hpa", 1, 4, desired=3)
MOVES = MovedQueues(1, 6)
CHANGE = TemplateChange((ContainerChange("app", image="app:2"),))


def moved(_: FakeCluster) -> tuple[Step, ...]:
    """Consumers of a second group go on where those of the first one stop; a Deployment without use is deleted."""
    return (
        CreateDeployment(GREEN, LIMIT_S, CHANGE),
        CloneOffsets("billing-2", "set the offsets of billing-2", LIMIT_S),
        StartConsumers(0, 3, LIMIT_S, MOVES, undo="set 0", deployment=GREEN),
        AwaitReady(3, LIMIT_S, deployment=GREEN),
        AwaitSettled(3, "AVG", LIMIT_S, group="billing-2"),
        AwaitLag(LIMIT_S, messages=10, group="billing-2"),
        StopConsumers(3, 0, (), LIMIT_S, MOVES, undo="set 3"),
        AwaitReady(0, LIMIT_S),
        AwaitSettled(0, "AVG", LIMIT_S),
        DeleteDeployment(UNUSED, LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def _place(numbers: Sequence[int]) -> str:
    """Return the queues, which follow each other, as plans spell them."""
    return f"orders/broker-a/{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"orders/broker-a/{numbers[0]}"


def plan(cluster: FakeCluster, steps: Sequence[Step], migration: str | None = None) -> RolloutPlan:
    """Return a plan that fits the cluster as it is now."""
    members = cluster._members["billing"]
    owned = allocated(members, cluster.strategy)
    before = tuple(
        OwnedQueues(member, (_place([queue.queue_id for queue, owners in owned if owners == (member,)]),))
        for member in members
    )
    replicas = {
        name: cluster.deployments[name].replicas for name in (DEPLOYMENT, SECOND) if name in cluster.deployments
    }
    several = tuple(TargetReplicas(name, count) for name, count in replicas.items()) if SECOND in replicas else None
    return RolloutPlan(
        policy="billing",
        group=GroupRef("rocketmq", "DefaultCluster", "billing"),
        deployment=DEPLOYMENT,
        snapshot=SnapshotRef("sha256:snapshot", START - timedelta(seconds=30)),
        made_at=START - timedelta(seconds=20),
        valid_until=START + timedelta(minutes=30),
        reason="because",
        rejected=(),
        preconditions=Preconditions(sum(replicas.values()), members, "AVG", len(QUEUES)),
        forecast=Forecast(moved_queues=MOVES, owners_before=before, owners_after=before, unknowns=()),
        steps=tuple(steps),
        migration=None if several else migration or migration_of(steps),
        targets=several,
    )


def up(_: FakeCluster) -> tuple[Step, ...]:
    """3 to 5 in two batches."""
    return (
        StartConsumers(3, 4, LIMIT_S, MOVES, undo="set 3"),
        AwaitReady(4, LIMIT_S),
        AwaitSettled(4, "AVG", LIMIT_S),
        StartConsumers(4, 5, LIMIT_S, MOVES, undo="set 4"),
        AwaitReady(5, LIMIT_S),
        AwaitSettled(5, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def down(cluster: FakeCluster) -> tuple[Step, ...]:
    """5 to 3, the two oldest pods chosen: not those that the ReplicaSet would take."""
    chosen = cluster.live(DEPLOYMENT)[:2]
    return (
        MarkVictims(tuple(Victim(pod.name, (pod.member,)) for pod in chosen), LIMIT_S),
        StopConsumers(5, 3, tuple(pod.member for pod in chosen), LIMIT_S, MOVES, undo="set 5"),
        AwaitReady(3, LIMIT_S),
        AwaitSettled(3, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def split_up(_: FakeCluster) -> tuple[Step, ...]:
    """3 and 2 pods of two Deployments to 4 and 3."""
    return (
        StartConsumers(3, 4, LIMIT_S, MovedQueues(), undo="set 3", deployment=DEPLOYMENT),
        StartConsumers(2, 3, LIMIT_S, MOVES, undo="set 2", deployment=SECOND),
        AwaitReady(4, LIMIT_S, deployment=DEPLOYMENT),
        AwaitReady(3, LIMIT_S, deployment=SECOND),
        AwaitSettled(7, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def split_down(cluster: FakeCluster) -> tuple[Step, ...]:
    """3 and 2 pods of two Deployments to 2 and 1, the oldest of each chosen."""
    first, second = cluster.live(DEPLOYMENT)[0], cluster.live(SECOND)[0]
    return (
        MarkVictims((Victim(first.name, (first.member,)),), LIMIT_S, deployment=DEPLOYMENT),
        MarkVictims((Victim(second.name, (second.member,)),), LIMIT_S, deployment=SECOND),
        StopConsumers(3, 2, (first.member,), LIMIT_S, MovedQueues(), undo="set 3", deployment=DEPLOYMENT),
        StopConsumers(2, 1, (second.member,), LIMIT_S, MOVES, undo="set 2", deployment=SECOND),
        AwaitSettled(3, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def renewed(_: FakeCluster) -> tuple[Step, ...]:
    """A new image, one pod more at a time."""
    return (
        UpdateTemplate(CHANGE, 3, 1, 0, 1, LIMIT_S, MOVES),
        AwaitReady(3, LIMIT_S),
        AwaitSettled(3, "AVG", LIMIT_S),
    )


def rolled_twice(cluster: FakeCluster) -> tuple[Step, ...]:
    """Two templates one after the other, as the protocol demands of an assignor."""
    again = TemplateChange((ContainerChange("app", image="app:3"),))
    return (
        *renewed(cluster),
        UpdateTemplate(again, 3, 1, 0, 2, LIMIT_S, MOVES),
        AwaitReady(3, LIMIT_S),
        AwaitSettled(3, "AVG", LIMIT_S),
    )


def blue_green(_: FakeCluster) -> tuple[Step, ...]:
    """Consumers of a second Deployment start, then those of the first stop."""
    return (
        CreateDeployment(GREEN, LIMIT_S, CHANGE),
        StartConsumers(0, 3, LIMIT_S, MOVES, undo="set 0", deployment=GREEN),
        AwaitReady(3, LIMIT_S, deployment=GREEN),
        AwaitSettled(6, "AVG", LIMIT_S),
        StopConsumers(3, 0, (), LIMIT_S, MOVES, undo="set 3"),
        AwaitReady(0, LIMIT_S),
        AwaitSettled(3, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def pinned(_: FakeCluster) -> tuple[Step, ...]:
    """3 to 5 under an HPA that wants 3: it leaves the count alone meanwhile, and holds exactly 5 afterwards."""
    free, still = AutoscalerState(1, 4, is_paused=False), AutoscalerState(1, 5, is_paused=True)
    exactly = AutoscalerState(5, 5, is_paused=False)
    return (
        SetAutoscaler("hpa", "HorizontalPodAutoscaler", free, still, LIMIT_S),
        *up(_)[:-1],
        SetAutoscaler("hpa", "HorizontalPodAutoscaler", still, exactly, LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def rewound(_: FakeCluster) -> tuple[Step, ...]:
    """All stop, the group's own offsets are set to a time, all start."""
    return (
        StopConsumers(3, 0, (), LIMIT_S, MOVES, undo="set 3"),
        AwaitReady(0, LIMIT_S),
        AwaitSettled(0, "AVG", LIMIT_S),
        ResetOffsets("billing", "set the offsets of billing", LIMIT_S, to_time=START),
        StartConsumers(0, 3, LIMIT_S, MOVES, undo="set 0"),
        AwaitReady(3, LIMIT_S),
        AwaitSettled(3, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def stored(
    cluster: FakeCluster, steps: Sequence[Step], name: str = "plan-1", migration: str | None = None
) -> StoredPlan:
    """Return an approved plan, put into the cluster."""
    made = StoredPlan(
        name=name,
        uid=f"uid-{name}",
        plan=plan(cluster, steps, migration),
        digest="sha256:plan",
        resource_version=cluster._next(),
        requests=Requests(Approval("sha256:plan", "alice", START)),
        policy_digest="policy-1",
    )
    cluster.put(made)
    return made


Scenario = tuple[str, int, int, Callable[[FakeCluster], tuple[Step, ...]]]
SCENARIOS: tuple[Scenario, ...] = (
    ("up", 3, 5, up),
    ("down", 5, 3, down),
    ("renewed", 3, 3, renewed),
    ("blue_green", 3, 3, blue_green),
    ("moved", 3, 3, moved),
    ("pinned", 3, 5, pinned),
    ("rolled_twice", 3, 3, rolled_twice),
    ("split_up", 5, 7, split_up),
    ("split_down", 5, 3, split_down),
)
_REVISIONS = {"renewed": 2, "rolled_twice": 3}


def world(scenario: Scenario) -> FakeCluster:
    """Return a cluster with the scenario's approved plan."""
    name, before, _, steps = scenario
    cluster = FakeCluster(before if not name.startswith("split") else 3)
    if name.startswith("split"):
        cluster.run(SECOND, 2)
    if name == "moved":
        cluster.green_group = "billing-2"
        cluster.deployments[UNUSED] = FakeDeployment(UNUSED, f"uid-{UNUSED}", 0, "billing")
    if name == "pinned":
        cluster.set_scaler(DEPLOYMENT, HPA)
    made = stored(cluster, steps(cluster), migration=name if name == "moved" else None)
    confirmed = replace(made.requests, confirmed=("set the offsets of billing-2",))
    cluster.put(replace(made, requests=confirmed))
    cluster.before = counts(cluster)
    return cluster


def counts(cluster: FakeCluster) -> dict[str, tuple[int, int]]:
    """Return replicas and revision of every Deployment, and what its autoscaler is told: old and new state by these."""
    found = {name: (one.replicas, one.revision) for name, one in cluster.deployments.items()}
    scalers = [scaler for one in cluster.deployments.values() for scaler in one.autoscalers]
    return found | {f"{one}{' paused' if one.is_paused else ''}": (one.minimum, one.maximum) for one in scalers}


def wanted(scenario: Scenario) -> dict[str, tuple[int, int]]:
    """Return what the scenario's plan makes of them."""
    name, _, after, _ = scenario
    if name in ("blue_green", "moved"):
        return {DEPLOYMENT: (0, 1), GREEN: (after, 1)}
    if name.startswith("split"):
        second = after // 2
        return {DEPLOYMENT: (after - second, 1), SECOND: (second, 1)}
    scaler = {str(HPA): (5, 5)} if name == "pinned" else {}
    return {DEPLOYMENT: (after, _REVISIONS.get(name, 1)), **scaler}


class Killed(BaseException):
    """The executor is gone, in the middle of whatever it did."""


def ports(
    cluster: FakeCluster, before: Callable[[str], None] = lambda _: None, after: Callable[[str], None] = lambda _: None
) -> Ports:
    """Return an executor's ports."""
    return Ports(
        FakePlans(cluster, before, after),
        FakeWorld(cluster, before, after),
        FakeLeases(cluster, before, after),
        FakeEvents(cluster),
        lambda: cluster.now,
    )


@dataclass
class Chaos:
    """Counts requests over all executors and, at chosen ones, kills the executor or has something happen.

    ``kills`` are numbers of requests: at n the executor dies before it, at n + 0.5 right after it was done, before it
    sees the answer.
    """

    cluster: FakeCluster
    kills: frozenset[float] = frozenset()
    happens: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many there were so far."""
        return len(self.asked)

    def before(self, what: str) -> None:
        self.asked.append(what)
        if self.requests in self.happens:
            self.happens[self.requests]()
        if self.requests in self.kills:
            raise Killed

    def after(self, _: str) -> None:
        if self.requests + 0.5 in self.kills:
            raise Killed

    def run(self) -> ReconcileResult:
        """Drive the plan to its end; for an executor that dies comes another one of another name."""
        for executor in ("one", "two", "three", "four"):
            try:
                return drive(self.cluster, executor, through=ports(self.cluster, self.before, self.after))
            except Killed:
                self.cluster.advance(5.0)
        raise AssertionError("all executors were killed")


_PAUSES = {Outcome.MOVED: 0.2, Outcome.LEASED: 6.0}


def drive(
    cluster: FakeCluster,
    executor: str = "one",
    name: str = "plan-1",
    turns: int = 400,
    through: Ports | None = None,
    meanwhile: Callable[[int], None] = lambda _: None,
) -> ReconcileResult:
    """Run turns until the plan is at its end; raise ``AssertionError`` when it does not get there."""
    used = through or ports(cluster)
    for number in range(turns):
        meanwhile(number)
        turned = run_reconcile(used, name, executor)
        if turned.outcome in (Outcome.DONE, Outcome.GONE):
            return turned
        cluster.advance(_PAUSES.get(turned.outcome, 1.5))
    raise AssertionError(f"not at its end after {turns} turns: {cluster.status(name)}")


def twice(cluster: FakeCluster) -> list[str]:
    """Return what was changed more than once by one and the same step."""
    keys = [touched.what for touched in cluster.touched]
    return sorted({key for key in keys if keys.count(key) > 1})


def is_old(cluster: FakeCluster) -> bool:
    """True when the world is as it was before the plan: counts, template, no new Deployment, no mark, no claim."""
    return counts(cluster) == cluster.before and untouched(cluster)


def untouched(cluster: FakeCluster) -> bool:
    """True when no claim and no deletion cost is left behind."""
    live = [pod for name in cluster.deployments for pod in cluster.live(name)]
    return all(found.claim is None for found in cluster.deployments.values()) and all(pod.cost == 0 for pod in live)
