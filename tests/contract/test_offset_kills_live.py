"""Executors killed at steps that set offsets: real brokers, real consumers, a real API server, and who goes on.

Some cases run at once, as much of their time is waiting for the lease of the dead; not all: a client that a busy
machine keeps from an answer for 3 s closes its connections, and is in nobody's list until its next heartbeat. What was
committed is read by the tests' own requests, and every request of the product's that sets offsets is counted.
"""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from planner.documents.approve import approved
from planner.documents.plan import PLAN as DOCUMENT
from planner.rollout.plan import Forecast, GroupRef, OwnedQueues, Preconditions, RolloutPlan
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CloneOffsets,
    MovedQueues,
    ResetOffsets,
    StartConsumers,
    Step,
    StopConsumers,
)
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import rocketmq_consumer
from tests.clusters.kubernetes.rest import Json
from tests.clusters.rocketmq import NEW, Broker, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve, RocketMQLoad
from tests.faults.executor import OFFSETS, Executor, Fault
from tests.faults.judge import Verdict, judge
from tests.faults.kinds import Kind
from tests.faults.observer import Observer
from tests.faults.place import APP, Place, place
from tests.patience import PATIENT, if_known
from tests.pod_groups import plan_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

TOPIC, ORIGIN = "offset-kills", "offset-kills-origin"
PLAN, POLICY = "plan", "billing"
AT_ONCE = 4
EACH = 2
"""Queues on each of two brokers: a clone is one request to each broker, a reset one for each queue."""
LIMIT_S, WAIT_S = 300, 180.0
NEVER_DONE_MS = 3_600_000
CLOSE_WAIT = "08"
Offsets = Mapping[tuple[str, int], int | None]


@dataclass(frozen=True)
class Case:
    """An executor dies before or after its ``at``-th request that sets offsets; then ``meanwhile``, and another one.

    With ``is_unread`` the broker is frozen before, and gets the request of the dead when it goes on. ``ends`` is the
    phase and what it leaves, ``holds`` the offsets at the end by their name, and ``written`` how many requests that set
    offsets the one who goes on makes.
    """

    name: str
    at: int
    after: bool
    ends: str
    holds: str
    written: int
    meanwhile: str = "nothing"
    is_unread: bool = False


CLONES = (
    Case("clone-before", 1, False, "Succeeded new", "cloned", 2),
    Case("clone-between", 1, True, "Succeeded new", "cloned", 2),
    Case("clone-after", 2, True, "Succeeded new", "cloned", 0),
    Case("clone-joined", 2, True, "RolledBack old", "consumed", 0, "join"),
    Case("clone-aborted", 1, True, "RolledBack old", "cloned in part", 0, "abort"),
)
RESETS = (
    Case("reset-before", 1, False, "Succeeded new", "reset", 4),
    Case("reset-between", 1, True, "Succeeded new", "reset", 3),
    Case("reset-after", 4, True, "Succeeded new", "reset", 0),
    Case("reset-aborted-before", 1, False, "RolledBack old", "consumed", 0, "abort"),
    Case("reset-aborted-between", 1, True, "Succeeded new", "reset", 3, "abort"),
    Case("reset-unread", 3, False, "Succeeded new", "reset", 1, "abort", is_unread=True),
)


@dataclass(frozen=True)
class Came:
    """What a case came to."""

    phase: str
    status: Json
    verdict: Verdict
    offsets: Offsets
    said: tuple[str, ...]

    @property
    def written(self) -> int:
        """How many requests that set offsets the one who went on made."""
        return self.said[-1].count(OFFSETS)


@dataclass(frozen=True)
class Shop:
    """A topic of four queues: some messages, a moment, some more, and what a group holds that is at some place."""

    cluster: ControlPlane
    brokers: RocketMQCluster
    observer: Observer
    load: RocketMQLoad
    folder: Path
    moment: datetime
    offsets: Mapping[str, Offsets]

    def run(self, case: Case) -> Came:
        return self.clone(case) if case in CLONES else self.reset(case)

    def clone(self, case: Case) -> Came:
        """The origin goes on beside its clone, and its Deployment has pods without a process."""
        steps: tuple[Step, ...] = (
            CloneOffsets(case.name, f"set the offsets of {case.name}", LIMIT_S),
            StartConsumers(1, 2, LIMIT_S, MovedQueues(0, 0), "set 1"),
            AwaitReady(2, LIMIT_S),
        )
        kind = Kind(case.name, 1, lambda _: steps, {APP: (2, "local")}, (), 0)
        await_owner_of_all(self.cluster, self.brokers, ORIGIN)
        with place(self.cluster, self.folder, 1) as where:
            return self._carried_out(case, kind, where, ORIGIN, case.name)

    def reset(self, case: Case) -> Came:
        """The consumer is real and in a pod; nothing is left for it, and what it is given again it never finishes."""
        self.brokers.create_group(case.name)
        self.brokers.commit(case.name, TOPIC, self.offsets["consumed"])
        steps: tuple[Step, ...] = (
            StopConsumers(1, 0, (), LIMIT_S, MovedQueues(4, 4), "set 1"),
            AwaitSettled(0, "AVG", LIMIT_S),
            ResetOffsets(case.name, f"set the offsets of {case.name}", LIMIT_S, to_time=self.moment),
            StartConsumers(0, 2, LIMIT_S, MovedQueues(4, 4), "set 0"),
            AwaitReady(2, LIMIT_S),
        )
        kind = Kind(case.name, 1, lambda _: steps, {APP: (2, "local")}, (), 0, stops_all=True)
        container = rocketmq_consumer(
            self.brokers.name_server,
            group=case.name,
            topics=[TOPIC],
            client_version=NEW,
            options={"service-ms": NEVER_DONE_MS},
        )
        with place(self.cluster, self.folder, 1, container) as where:
            await_owner_of_all(self.cluster, self.brokers, case.name)
            return self._carried_out(case, kind, where, case.name, case.name)

    def _carried_out(self, case: Case, kind: Kind, where: Place, group: str, target: str) -> Came:
        """Have one executor die, and another one go on."""
        kept, record = where.kept(), self.observer.follow(where.namespace, 1)
        plan = self._plan(group, kind.steps(()))
        path = self.folder / f"{case.name}.yaml"
        document = DOCUMENT.document(plan, PLAN, where.namespace)
        path.write_text(DOCUMENT.text(approved(document, plan.confirmations)), encoding="utf-8")
        start = partial(self._start, path, self._policy(case, where, group), where)
        away = self.brokers.brokers[1]
        first = start(Fault(signal.SIGKILL, case.at, case.after, OFFSETS, away.process.pid if case.is_unread else None))
        try:
            assert first.wait() == -signal.SIGKILL, first.said
            assert has_unread(away) or not case.is_unread, first.said
        finally:
            if case.is_unread:
                away.process.resume()
        assert where.status(PLAN)["phase"] == "Running", where.status(PLAN)
        if case.meanwhile == "join":
            self.load.start_consumer(group=target, topics=[TOPIC], instance=target)
            self._await_offsets(target, "consumed")
        elif case.meanwhile == "abort":
            where.annotate(PLAN, {"consumerplanner.dev/abort": "true"})
        second = start(None)
        second.wait()
        verdict = judge(where, kind, PLAN, record, kept)
        self.observer.leave(where.namespace)
        status = where.status(PLAN)
        offsets = self.brokers.committed(target, TOPIC)
        return Came(f"{status['phase']} {status['ended']}", status, verdict, offsets, (first.said, second.said))

    def _start(self, path: Path, policy: Path, where: Place, fault: Fault | None) -> Executor:
        log = path.with_suffix(".first.log" if fault else ".second.log")
        kubeconfig = where.cluster.kubeconfig
        return Executor(log, "apply", path, "-p", policy, kubeconfig=kubeconfig, fault=fault, asks_brokers=True)

    def _plan(self, group: str, steps: tuple[Step, ...]) -> RolloutPlan:
        (member,) = {one for known in self.brokers.members(group).values() for one in known}
        owned = OwnedQueues(member, tuple(f"{TOPIC}/{one.name}/0-{EACH - 1}" for one in self.brokers.brokers))
        return replace(
            plan_for(APP, [], steps, migration="offsets"),
            group=GroupRef("rocketmq", "DefaultCluster", group),
            preconditions=Preconditions(1, (member,), "AVG", len(self.brokers.brokers) * EACH),
            forecast=Forecast(
                moved_queues=MovedQueues(0, 4), owners_before=(owned,), owners_after=(owned,), unknowns=()
            ),
        )

    def _policy(self, case: Case, where: Place, group: str) -> Path:
        path = self.folder / f"{case.name}.policy.yaml"
        path.write_text(f"""
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {{name: {POLICY}, namespace: {where.namespace}}}
spec:
  source:
    system: rocketmq
    nameServers: ['{self.brokers.name_server}']
    cluster: DefaultCluster
    group: {group}
    topics: [{TOPIC}]
  scaleTargetRef: {{name: {APP}}}
  maxReplicas: 4
  rollout: {{validForSeconds: 1800}}
""")
        return path

    def _await_offsets(self, group: str, name: str) -> None:
        wanted = self.offsets[name]
        self.cluster.wait_until(f"{group} {name}", lambda: self.brokers.committed(group, TOPIC) == wanted, WAIT_S)


def has_unread(broker: Broker) -> bool:
    """True when a client that is gone has left bytes in a socket of the broker (``/proc/net/tcp6``, see proc(5))."""
    port = int(broker.address.rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp6").read_text(encoding="utf-8").splitlines()[1:]]
    left = [row for row in rows if int(row[1].rpartition(":")[2], 16) == port and row[3] == CLOSE_WAIT]
    return any(int(row[4].rpartition(":")[2], 16) for row in left)


def send(brokers: RocketMQCluster, load: RocketMQLoad, seconds: float, rate: float) -> dict[tuple[str, int], int]:
    """Return the queues' ends once so much more was sent."""
    points = ((0.0, rate), (seconds, rate))
    curves = [QueueCurve(TOPIC, broker, number, points) for broker, number in brokers.produced(TOPIC)]
    load.start_producer(curves).wait(WAIT_S)
    return brokers.produced(TOPIC)


@pytest.fixture(scope="module")
def shop(control_plane_with_plans: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Brokers of our own, as one of them is frozen."""
    with RocketMQCluster.start(NEW, brokers=2) as brokers, Observer(control_plane_with_plans) as observer:
        brokers.create_topic(TOPIC, EACH)
        load = brokers.load()
        before = send(brokers, load, 1.0, 20.0)
        time.sleep(0.05)  # brokers store in whole milliseconds
        moment = datetime.now(UTC)
        time.sleep(0.05)
        ends = send(brokers, load, 1.0, 20.0)
        assert all(ends[queue] > offset > 8 for queue, offset in before.items())
        cloned = {queue: offset - number for number, (queue, offset) in enumerate(sorted(before.items()))}
        brokers.create_group(ORIGIN)
        brokers.commit(ORIGIN, TOPIC, cloned)
        stuck = load.start_consumer(group=ORIGIN, topics=[TOPIC], instance=ORIGIN, service_ms=NEVER_DONE_MS)
        await_owner_of_all(control_plane_with_plans, brokers, ORIGIN)
        part = {(broker, queue): offset if broker == "broker-a" else None for (broker, queue), offset in cloned.items()}
        offsets: dict[str, Offsets] = {"cloned": cloned, "cloned in part": part, "reset": before, "consumed": ends}
        folder = tmp_path_factory.mktemp("offset-kills")
        yield Shop(control_plane_with_plans, brokers, observer, load, folder, moment, offsets)
        assert brokers.committed(ORIGIN, TOPIC) == cloned, "nobody touches the offsets of the origin"
        stuck.kill()  # it would finish its messages first


def await_owner_of_all(cluster: ControlPlane, brokers: RocketMQCluster, group: str) -> None:
    """Wait until the one member of a group reports all queues as its own."""

    def owns_all() -> bool:
        with RocketMQAdmin(brokers.name_server, limits=PATIENT) as admin:
            now = datetime.now(UTC)
            found = if_known(
                lambda: observe_group(admin, cluster="DefaultCluster", group=group, topics=[TOPIC], at=now)
            )
        members = found.members if found else ()
        owned = [queue for member in members for queue in member.owned or () if queue.topic == TOPIC]
        return len(owned) == len(brokers.brokers) * EACH

    cluster.wait_until("an owner of all", owns_all, WAIT_S)


@pytest.fixture(scope="module")
def running(shop: Shop, request: pytest.FixtureRequest) -> Iterator[Callable[[Case], Came]]:
    """A function that returns what became of a case; those that were asked for run side by side.

    Those that freeze a broker run alone: the members of other cases would be in nobody's list for a while.
    """
    asked = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    cases = [case for case in (*RESETS, *CLONES) if case in asked]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = {case.name: pool.submit(shop.run, case) for case in cases if not case.is_unread}
        others = tuple(found.values())
        found |= {case.name: pool.submit(_after, others, shop, case) for case in cases if case.is_unread}
        yield lambda case: found[case.name].result()


def _after(others: Sequence[Future[Came]], shop: Shop, case: Case) -> Came:
    wait(others)
    return shop.run(case)


@pytest.mark.parametrize("case", [*CLONES, *RESETS], ids=lambda case: case.name)
def test_who_goes_on_sets_what_is_missing_and_nothing_else(
    shop: Shop, running: Callable[[Case], Came], case: Case
) -> None:
    came = running(case)
    print(case.name, came)
    assert came.offsets == shop.offsets[case.holds]
    assert (came.phase, came.verdict.state) == (case.ends, case.ends.split()[1]), came.status
    assert came.verdict.faults == ()
    assert came.written == case.written, came.said
