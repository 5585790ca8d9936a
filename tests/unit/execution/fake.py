"""A fake cluster: Deployments, pods and a consumer group that behave, in memory and in their own time.

It is a fake, not a mock: nothing is scripted. Writes check ``resourceVersion``; the Deployment's controller starts and
stops pods in the order of ``ActivePodsWithRanks``; pods take time to become ready and to end; members join and leave
with their pods; the group settles some time after its last change. Faults are switched on by name.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.documents.status import dump_status, parse_status
from planner.errors import OutOfReachError
from planner.execution.effects import (
    Create,
    Delete,
    DropClaim,
    Effect,
    MarkPods,
    RestoreTemplate,
    SetClaim,
    SetOffsets,
    SetReplicas,
    SetScaler,
    SetTemplate,
)
from planner.execution.observation import Claim, DeploymentObservation, GroupObservation, Observation, Rival
from planner.execution.phases import check_move
from planner.execution.ports import ConflictError, Lease, Requests, StoredPlan
from planner.execution.progress import RolloutStatus
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment, UpdateStrategy
from planner.model.pods import Pod
from planner.model.queues import MessageQueue
from planner.model.samples import QueueOffsets
from planner.verification.observed_change import Between, ObservedChange

START = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
QUEUES = tuple(MessageQueue("orders", "broker-a", number) for number in range(8))
READY_AFTER, ENDS_AFTER, SETTLES_AFTER = 3.0, 2.0, 4.0


@cache
def allocated(
    members: tuple[str, ...], strategy: str = "AVG", queues: tuple[MessageQueue, ...] = QUEUES
) -> tuple[tuple[MessageQueue, tuple[str, ...]], ...]:
    """Return who owns each queue, by the real strategy."""
    if not members:
        return tuple((queue, ()) for queue in queues)
    answer = allocate_group(find_strategy(strategy), queues, members).answer()
    owner = {queue: member for member, owned in answer.items() for queue in owned}
    return tuple((queue, (owner[queue],)) for queue in queues)


OnDeployment = SetClaim | DropClaim | SetReplicas | SetTemplate | RestoreTemplate | Delete


@dataclass
class FakePod:
    name: str
    uid: str
    deployment: str
    revision: int
    created_at: float
    group: str
    never_ready: bool = False
    never_joins: bool = False
    ending_at: float | None = None
    has_failed: bool = False
    cost: int = 0
    cost_by: str | None = None
    broken_until: float = 0.0

    @property
    def member(self) -> str:
        return f"10.0.0.1@{self.name}"

    def is_ready(self, now: float) -> bool:
        up = now >= max(self.created_at + READY_AFTER, self.broken_until)
        return up and not self.never_ready and not self.has_failed and self.ending_at is None


@dataclass
class FakeDeployment:
    name: str
    uid: str
    replicas: int
    group: str
    version: int = 1
    revision: int = 1
    newest: int = 1
    claim: str | None = None
    autoscalers: tuple[Autoscaler, ...] = ()


@dataclass
class Touched:
    """One request that really changed something, as the server saw it."""

    what: str
    before: int | None = None
    after: int | None = None


@dataclass
class Faults:
    """What goes wrong. ``down_until`` is for the API server, ``broker_down_until`` for the broker.

    ``denied`` has the error with which the server answers effects of a class, instead of having them. ``ghosts`` are
    members that were killed, and whose sessions go on.
    """

    never_ready: bool = False
    never_joins: bool = False
    down_until: float = 0.0
    broker_down_until: float = 0.0
    answers_lost: int = 0
    ghosts: tuple[str, ...] = ()
    denied: dict[type[Effect], OutOfReachError] = field(default_factory=dict)


class FakeCluster:
    """Deployments, pods, groups, plans and leases, in one place and with one clock."""

    def __init__(self, replicas: int = 3, name: str = "billing-consumer", group: str = "billing") -> None:
        self.now_s = 1000.0
        self.jumped_s = 0.0
        self.deployments = {name: FakeDeployment(name, f"uid-{name}", replicas, group)}
        self.pods: list[FakePod] = []
        self.born = 0
        self.versions = 1
        self.offsets: dict[str, str] = {group: "own"}
        self.offsets_unknown = False
        self.plans: dict[str, StoredPlan] = {}
        self.leases: dict[str, Lease] = {}
        self.faults = Faults()
        self.touched: list[Touched] = []
        self.lowest_ready: int | None = None
        self.told: list[tuple[str, str]] = []
        self.policy_digest: str | None = "policy-1"
        self.strategy = "AVG"
        self.queues = QUEUES
        self.waiting: dict[MessageQueue, int] = {}
        self.changed_at: dict[str, float] = {}
        self.seen = ObservedChange(moved_queues=Between.exactly(4), is_complete=True)
        self.before: dict[str, tuple[int, int]] = {}
        self.green_group: str | None = None
        self._members: dict[str, tuple[str, ...]] = {}
        self._join_at_once(self.deployments[name])

    def _join_at_once(self, deployment: FakeDeployment) -> None:
        for _ in range(deployment.replicas):
            self._start(deployment).created_at = self.now_s - 100
        self._join()

    def run(self, name: str, replicas: int) -> None:
        """Have another Deployment of the group run from the start."""
        group = next(iter(self.deployments.values())).group
        self.deployments[name] = FakeDeployment(name, f"uid-{name}", replicas, group)
        self._join_at_once(self.deployments[name])
        self.changed_at[group] = -100.0

    # Time

    @property
    def now(self) -> datetime:
        """The time by the API server's clock, which may jump."""
        return START + timedelta(seconds=self.now_s - 1000.0 + self.jumped_s)

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        self._control()

    def _control(self) -> None:
        """What controllers and kubelets do: replace failed pods, start, stop, and take ended pods away."""
        self.pods = [pod for pod in self.pods if pod.ending_at is None or pod.ending_at > self.now_s]
        self.pods = [pod for pod in self.pods if pod.deployment in self.deployments]
        for deployment in self.deployments.values():
            self._autoscale(deployment)
            self._roll(deployment)
        self._join()
        ready = self.ready
        self.lowest_ready = ready if self.lowest_ready is None else min(self.lowest_ready, ready)

    def _autoscale(self, deployment: FakeDeployment) -> None:
        """What an HPA does: what it wants, within its bounds; where it may not move, back into them at least."""
        for scaler in deployment.autoscalers:
            wanted = deployment.replicas if scaler.is_paused or scaler.desired is None else scaler.desired
            wanted = min(scaler.maximum, max(scaler.minimum, wanted))
            if deployment.replicas not in (0, wanted):
                self._write(deployment, replicas=wanted)

    def _roll(self, deployment: FakeDeployment) -> None:
        """One pod above and none below during an update: what a surge of 1 and 0 unavailable mean."""
        live = self.live(deployment.name)
        old = [pod for pod in live if pod.revision != deployment.revision]
        new = [pod for pod in live if pod.revision == deployment.revision]
        if old:
            all_ready = all(pod.is_ready(self.now_s) for pod in live)
            if len(live) > deployment.replicas and all_ready:
                self._stop(old, len(live) - deployment.replicas)
            elif len(live) <= deployment.replicas and len(new) < deployment.replicas:
                self._start(deployment)
            return
        for _ in range(deployment.replicas - len(live)):
            self._start(deployment)
        self._stop(live, len(live) - deployment.replicas)

    def _start(self, deployment: FakeDeployment) -> FakePod:
        self.born += 1
        pod = FakePod(
            f"{deployment.name}-{deployment.revision}-{self.born:04}",
            f"pod-{self.born}",
            deployment.name,
            deployment.revision,
            self.now_s,
            deployment.group,
            never_ready=self.faults.never_ready,
            never_joins=self.faults.never_joins,
        )
        self.pods.append(pod)
        return pod

    def _stop(self, live: list[FakePod], surplus: int) -> None:
        """``ActivePodsWithRanks``: not ready before ready, then the lower deletion cost, then the younger."""
        order = sorted(live, key=lambda pod: (pod.is_ready(self.now_s), pod.cost, -pod.created_at, pod.name))
        for pod in order[: max(0, surplus)]:
            pod.ending_at = self.now_s + ENDS_AFTER

    def _join(self) -> None:
        for group in {deployment.group for deployment in self.deployments.values()} | set(self._members):
            now = tuple(
                sorted(
                    [
                        *self.faults.ghosts,
                        *(
                            pod.member
                            for pod in self.pods
                            if pod.group == group and pod.is_ready(self.now_s) and not pod.never_joins
                        ),
                    ]
                )
            )
            if self._members.get(group) != now:
                first = group not in self._members
                self._members[group] = now
                self.changed_at[group] = -100.0 if first else self.now_s

    # What tests do to it

    def live(self, name: str) -> list[FakePod]:
        return [pod for pod in self.pods if pod.deployment == name and pod.ending_at is None and not pod.has_failed]

    @property
    def ready(self) -> int:
        return sum(pod.is_ready(self.now_s) for pod in self.pods)

    def scale(self, name: str, replicas: int) -> None:
        """Somebody else sets the replicas."""
        self._write(self.deployments[name], replicas=replicas)

    def touch(self, name: str) -> None:
        """Somebody else writes something of no matter to us: the version moves on."""
        self._write(self.deployments[name])

    def set_scaler(self, name: str, scaler: Autoscaler, **changes: Any) -> None:
        """Change one of the Deployment's autoscalers, or give it its first one; each write has a version of its own."""
        others = tuple(one for one in self.deployments[name].autoscalers if str(one) != str(scaler))
        changed = replace(scaler, resource_version=self._next(), **changes)
        self.deployments[name].autoscalers = (*others, changed)

    def evict(self, pod: FakePod) -> None:
        pod.has_failed = True

    def crash(self, pod: FakePod, seconds: float) -> None:
        pod.broken_until = self.now_s + seconds

    def put(self, stored: StoredPlan) -> None:
        """Create a plan; the server adds to its status that nobody has looked at it."""
        self.plans[stored.name] = replace(stored, status=replace(stored.status, observed_generation=-1))

    def ask(self, name: str, **requests: object) -> None:
        stored = self.plans[name]
        asked: Requests = replace(stored.requests, **requests)  # type: ignore[arg-type]
        if asked.is_deleted and not stored.has_finalizer:
            del self.plans[name]
            return
        self.plans[name] = replace(stored, requests=asked, resource_version=self._next())

    def status(self, name: str) -> RolloutStatus:
        return self.plans[name].status

    # What executors do to it

    def observe(self, stored: StoredPlan, now: datetime) -> Observation:
        self._reach()
        names = [stored.plan.deployment, *(getattr(step, "deployment", None) for step in stored.plan.steps)]
        groups = [
            "billing",
            *(getattr(step, "to_group", None) or getattr(step, "group", None) for step in stored.plan.steps),
        ]
        step = stored.plan.steps[min(stored.status.step, len(stored.plan.steps) - 1)]
        return Observation(
            at=now,
            deployments=tuple(self._deployment(name) for name in dict.fromkeys(filter(None, names))),
            groups=tuple(self._group(name, now) for name in dict.fromkeys(filter(None, groups))),
            rivals=tuple(
                self._rival(other) for other in self.plans.values() if other.uid != stored.uid and _counts(other)
            ),
            offsets_set=self._offsets_set(step),
            offsets_fingerprint=self._offsets_seen(step),
            policy_digest=self.policy_digest,
            change=self.seen,
        )

    def perform(self, effect: Effect) -> None:
        self._reach()
        if type(effect) in self.faults.denied:
            raise self.faults.denied[type(effect)]
        self._change(effect)
        if self.faults.answers_lost:
            self.faults.answers_lost -= 1
            raise OutOfReachError("no answer within 10 s")

    def _change(self, effect: Effect) -> None:
        """The server has it; controllers act on it later, when time passes."""
        if isinstance(effect, MarkPods):
            self._mark(effect)
        elif isinstance(effect, Create):
            self._create(effect)
        elif isinstance(effect, SetScaler):
            self._set_scaler(effect)
        elif isinstance(effect, SetOffsets):
            if self._members.get(_named_group(effect.step)):  # as brokers do, and the executor asks before it writes
                raise ConflictError(f"group {_named_group(effect.step)} has members")
            self.touched.append(Touched(f"offsets {_named_group(effect.step)}"))
            self.offsets[_named_group(effect.step)] = effect.step.kind
        elif not isinstance(effect, Delete) or effect.deployment in self.deployments:  # gone already is fine
            self._change_deployment(effect, self._seen(effect.deployment, effect.resource_version))

    def _change_deployment(self, effect: OnDeployment, found: FakeDeployment) -> None:
        match effect:
            case SetClaim():
                self._write(found, claim=str(effect.claim))
            case DropClaim():
                self._write(found, claim=None)
            case SetReplicas():
                self.touched.append(Touched(f"{effect.claim}", found.replicas, effect.replicas))
                self._write(found, replicas=effect.replicas, claim=str(effect.claim))
            case SetTemplate():
                self.touched.append(Touched(f"{effect.claim}", found.revision, found.newest + 1))
                self._write(found, revision=found.newest + 1, newest=found.newest + 1, claim=str(effect.claim))
            case RestoreTemplate():
                self.touched.append(Touched(f"{effect.claim}", found.revision, effect.revision))
                self._write(found, revision=effect.revision, claim=str(effect.claim))
            case Delete():
                if found.uid != effect.uid:
                    raise ConflictError(f"Deployment {found.name} is another one")
                self.touched.append(Touched(f"delete {found.name}", found.replicas, None))
                del self.deployments[effect.deployment]

    def _mark(self, effect: MarkPods) -> None:
        for name, uid, cost in effect.pods:
            for pod in self.pods:
                if (pod.name, pod.uid) == (name, uid) and pod.cost != cost:
                    self.touched.append(Touched(f"mark {name} {cost}", pod.cost, cost))
                    pod.cost, pod.cost_by = cost, None

    def _set_scaler(self, effect: SetScaler) -> None:
        for deployment in self.deployments.values():
            for scaler in deployment.autoscalers:
                if (scaler.kind, scaler.name) == (effect.scaler_kind, effect.scaler):
                    if scaler.resource_version != effect.resource_version:
                        raise ConflictError(f"{scaler} is not as it was looked at")
                    state = effect.state
                    self.touched.append(Touched(f"{effect.claim} {scaler}", scaler.maximum, state.maximum))
                    changes = {"minimum": state.minimum, "maximum": state.maximum, "is_paused": state.is_paused}
                    self.set_scaler(deployment.name, scaler, set_by=str(effect.claim), **changes)
                    return
        raise ConflictError(f"{effect.scaler_kind} {effect.scaler} is gone")

    def _create(self, effect: Create) -> None:
        if effect.deployment in self.deployments:
            raise ConflictError(f"Deployment {effect.deployment} is there already")
        self.touched.append(Touched(f"{effect.claim}", None, 0))
        group = self.green_group or self.deployments[effect.origin].group
        made = FakeDeployment(effect.deployment, f"uid-{self._next()}", 0, group, claim=str(effect.claim))
        self.deployments[effect.deployment] = made

    def _seen(self, name: str, version: str) -> FakeDeployment:
        found = self.deployments.get(name)
        if found is None or str(found.version) != version:
            raise ConflictError(f"Deployment {name} is not as it was looked at")
        return found

    def _write(self, deployment: FakeDeployment, **changes: object) -> None:
        for key, value in changes.items():
            setattr(deployment, key, value)
        deployment.version = int(self._next())

    def _next(self) -> str:
        self.versions += 1
        return str(self.versions)

    def _reach(self) -> None:
        if self.now_s < self.faults.down_until:
            raise OutOfReachError("the API server cannot be reached")

    def _deployment(self, name: str) -> DeploymentObservation:
        found = self.deployments.get(name)
        if found is None:
            return DeploymentObservation(name, None)
        own = [pod for pod in self.pods if pod.deployment == name]
        live = self.live(name)
        ready = sum(pod.is_ready(self.now_s) for pod in live)
        facts = Deployment(
            namespace="default",
            name=name,
            uid=found.uid,
            resource_version=str(found.version),
            at=self.now,
            replicas=found.replicas,
            current=len(live),
            updated=sum(pod.revision == found.revision for pod in live),
            ready=ready,
            available=ready,
            is_observed=True,
            is_paused=False,
            strategy=UpdateStrategy("RollingUpdate", "1", "0"),
            containers=(),
            grace_s=30,
            min_ready_s=0,
            progress_deadline_s=600,
            uses_host_network=False,
            pods=tuple(self._pod(pod) for pod in own),
            autoscalers=found.autoscalers,
            replicas_set_by=(),
        )
        claim = None if found.claim is None else Claim.parse(found.claim)
        return DeploymentObservation(name, facts, claim, found.revision)

    def _pod(self, pod: FakePod) -> Pod:
        return Pod(
            namespace="default",
            name=pod.name,
            uid=pod.uid,
            phase="Failed" if pod.has_failed else "Running",
            node="node-1",
            is_ready=pod.is_ready(self.now_s),
            is_ending=pod.ending_at is not None,
            deletion_cost=pod.cost,
            deletion_cost_by=pod.cost_by,
        )

    def _group(self, name: str, now: datetime) -> GroupObservation:
        if self.now_s < self.faults.broker_down_until:
            return GroupObservation(name, now, None, None, None, None, None, None)
        members = self._members.get(name, ())
        settled = self.now_s >= self.changed_at.get(name, 0.0) + SETTLES_AFTER
        owners = allocated(members, self.strategy, self.queues)
        pods = tuple((pod.member, pod.name) for pod in self.pods if pod.member in members)
        return GroupObservation(
            name=name,
            at=now,
            members=members,
            queues=self.queues,
            owners=owners if settled else tuple((queue, ()) for queue in self.queues),
            strategy=self.strategy if members else None,
            misplaced=0 if settled else len(self.queues),
            is_rebalancing=not settled,
            lag_messages=0,
            lag_seconds=0.0,
            offsets=tuple(QueueOffsets(queue, 9, 9 - self.waiting.get(queue, 0)) for queue in self.queues),
            pods=pods,
        )

    def _rival(self, other: StoredPlan) -> Rival:
        ref = other.plan.group
        named = {other.plan.deployment, *filter(None, (getattr(s, "deployment", None) for s in other.plan.steps))}
        group = (ref.system, ref.cluster, ref.group)
        return Rival(other.key, other.name, other.status.phase, group, tuple(sorted(named)))

    def _offsets_set(self, step: object) -> bool | None:
        kind = getattr(step, "kind", "")
        if self.offsets_unknown:
            return None
        return self.offsets.get(_named_group(step)) == kind if kind in ("cloneOffsets", "resetOffsets") else None

    def _offsets_seen(self, step: object) -> str | None:
        return None if self._offsets_set(step) is None else self.offsets.get(_named_group(step), "none")


def _check_progress(before: RolloutStatus, after: RolloutStatus) -> None:
    """What was noted once stays noted: a write that forgets it would be a lost update."""
    assert len(after.steps) >= len(before.steps)
    for old, new in zip(before.steps, after.steps, strict=False):
        assert (old.kind, old.started_at) == (new.kind, new.started_at)
        assert old.finished_at in (None, new.finished_at)
        assert old.undone_at in (None, new.undone_at)


def _counts(other: StoredPlan) -> bool:
    return not other.status.phase.is_final or other.status.phase.is_in_progress


def _is_in_progress(stored: StoredPlan) -> bool:
    return stored.status.phase.is_in_progress and not stored.status.phase.is_final


def _named_group(step: object) -> str:
    return str(getattr(step, "to_group", None) or getattr(step, "group", None) or "")


@dataclass
class FakePorts:
    """One executor's way to the cluster; ``before`` is called before each request, ``after`` once it is done."""

    cluster: FakeCluster
    before: Callable[[str], None] = field(default=lambda _: None)
    after: Callable[[str], None] = field(default=lambda _: None)

    def _call(self, what: str, request: Callable[[], object]) -> object:
        self.before(what)
        answer = request()
        self.after(what)
        return answer


class FakePlans(FakePorts):
    def read(self, name: str) -> StoredPlan | None:
        return self._call("read plan", lambda: self._read(name))  # type: ignore[return-value]

    def _read(self, name: str) -> StoredPlan | None:
        self.cluster._reach()
        return self.cluster.plans.get(name)

    def write_status(self, stored: StoredPlan, status: RolloutStatus) -> None:
        self._call("write status", lambda: self._write(stored, status))

    def _write(self, stored: StoredPlan, status: RolloutStatus) -> None:
        self.cluster._reach()
        now = self.cluster.plans.get(stored.name)
        if now is None or now.resource_version != stored.resource_version:
            raise ConflictError(f"plan {stored.name} was changed meanwhile")
        check_move(now.status.phase, status.phase)
        _check_progress(now.status, status)
        # As the API server would keep it: whatever does not survive the document is lost.
        kept = parse_status(json.loads(json.dumps(dump_status(status))), stored.name)
        assert kept == status
        self.cluster.plans[stored.name] = replace(now, status=kept, resource_version=self.cluster._next())

    def add_finalizer(self, name: str) -> None:
        self._call("hold on", lambda: self._hold(name))

    def _hold(self, name: str) -> None:
        self.cluster._reach()
        if name not in self.cluster.plans or self.cluster.plans[name].status.phase.is_final:
            return  # gone or over meanwhile: the next reconcile finds it so
        held = replace(self.cluster.plans[name], has_finalizer=True, resource_version=self.cluster._next())
        self.cluster.plans[name] = held

    def remove_finalizer(self, stored: StoredPlan) -> None:
        self._call("let go", lambda: self._let_go(stored))

    def _let_go(self, stored: StoredPlan) -> None:
        """As on the server: a plan in progress keeps it, and only one whose deletion was asked for goes with it."""
        self.cluster._reach()
        now = self.cluster.plans.get(stored.name)
        if now is None or now.uid != stored.uid or _is_in_progress(now):
            return
        if now.requests.is_deleted:
            del self.cluster.plans[stored.name]
        elif now.has_finalizer:
            let_go = replace(now, has_finalizer=False, resource_version=self.cluster._next())
            self.cluster.plans[stored.name] = let_go


class FakeWorld(FakePorts):
    def observe(self, stored: StoredPlan, now: datetime) -> Observation:
        return self._call("look", lambda: self.cluster.observe(stored, now))  # type: ignore[return-value]

    def perform(self, effect: Effect) -> None:
        self._call(f"perform {type(effect).__name__}", lambda: self.cluster.perform(effect))


class FakeLeases(FakePorts):
    def read(self, name: str) -> Lease | None:
        return self._call("read lease", lambda: self._read(name))  # type: ignore[return-value]

    def _read(self, name: str) -> Lease | None:
        self.cluster._reach()
        return self.cluster.leases.get(name)

    def write(self, name: str, lease: Lease | None, holder: str | None, now: datetime) -> Lease:
        return self._call("write lease", lambda: self._write(name, lease, holder, now))  # type: ignore[return-value]

    def _write(self, name: str, lease: Lease | None, holder: str | None, now: datetime) -> Lease:
        self.cluster._reach()
        found = self.cluster.leases.get(name)
        if (found and found.resource_version) != (lease and lease.resource_version):
            raise ConflictError(f"lease {name} was changed meanwhile")
        transitions = (found.transitions + (holder not in (None, found.holder))) if found else 0
        self.cluster.leases[name] = Lease(holder, now, 30, transitions, self.cluster._next())
        return self.cluster.leases[name]


class FakeEvents(FakePorts):
    def record(self, stored: StoredPlan, reason: str, sentence: str) -> None:
        self.cluster.told.append((reason, f"{stored.name}: {sentence}"))
