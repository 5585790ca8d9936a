"""The closed loop on real things: a Deployment of real consumers, planned for and changed by ``planner`` itself.

Snapshot, plan, approval and application are the commands that people type. What was given to whom is logged by the
consumers, and compared with what the plan said and what its verdict saw.
"""

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from planner.documents.plan import PLAN, read_document
from planner.model.queues import TopicPartition
from planner.rollout.plan import RolloutPlan
from planner.sources import kafka as kafka_source
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.deliveries import Course, Given, Lane, lost, read_given
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane, deployment, stateful_set
from tests.clusters.kubernetes.consumers import rocketmq_consumer
from tests.clusters.kubernetes.rest import ApiError, Json
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.patience import members_known
from tests.unit.cli.test_cli import planner

APP = "app"
# Only against hanging: a busy machine takes its time.
READY_S = 600.0
WAIT_S = 600.0
WATCH_S = 10
LONG_S = 3_000.0
"""How long messages come: longer than any test takes."""
ROCKETMQ_QUEUES = 5
"""On each broker."""
ROUNDING = 0.1
"""Logs tell whole milliseconds."""
CHANGES = ("startConsumers", "stopConsumers", "updateTemplate")


@dataclass(frozen=True)
class Changed:
    """One plan that was carried out to its end: as a plan, its status, and the deliveries while it was."""

    plan: RolloutPlan
    status: Json
    course: Course
    owners: Mapping[Lane, tuple[str, str]]

    @property
    def moved(self) -> frozenset[Lane]:
        """The queues that were delivered by another one before than after it."""
        return frozenset(lane for lane, (before, after) in self.owners.items() if before != after)

    def figure(self, name: str) -> Json:
        """Return one line of the verdict."""
        (found,) = [one for one in self.status["verdict"]["figures"] if one["name"] == name]
        return dict(found)

    def ended_s(self, kind: str) -> float:
        """Return when the last step of a kind was done, in epoch seconds."""
        ends = [step["finishedAt"] for step in self.status["steps"] if step["kind"] == kind]
        return datetime.fromisoformat(ends[-1]).timestamp()

    def settled_s(self) -> float:
        """Return how long every moved queue took until its last owner delivered it, all steps that change the group
        together: each one's last owners are those when the next one begins. Where all stop first there is no such time.
        """
        begun = [step["startedAt"] for step in self.status["steps"] if step["kind"] in CHANGES]
        times = [*(datetime.fromisoformat(one).timestamp() for one in begun), math.inf]
        return sum(self._settled_s(*span) for span in pairwise(times))

    def _settled_s(self, since_s: float, until_s: float) -> float:
        last = {one.lane: one.client for one in self.course.given if one.at_s < until_s}
        return max(self.course.first_s(lane, last[lane], since_s) for lane in self.moved) - since_s

    def check_seen(self, unseen: Sequence[str] = ()) -> None:
        """Assert that what was true lies in what the executor saw, and that it saw all but what is ``unseen``."""
        stayed = self.owners.keys() - self.moved
        true: dict[str, Callable[[], float]] = {
            "moved queues": lambda: len(self.moved),
            "longest pause": lambda: self.course.longest_s(self.moved),
            "duplicates": self.course.twice,
            "settled after": self.settled_s,
            "wait of a new message": replace(self.course, since_s=self.ended_s("awaitSettled")).mean_wait_s,
            **({"longest stall": lambda: self.course.longest_s(stayed)} if stayed else {}),
        }
        for name, measure in true.items():
            seen = self.figure(name)
            assert (seen["seenLow"] is None) == (name in unseen), seen
            if name in unseen:
                continue
            value = measure()
            assert seen["seenLow"] <= value + ROUNDING, (value, seen)
            assert seen["seenHigh"] is None or value <= seen["seenHigh"] + ROUNDING, (value, seen)


@dataclass
class Loop:
    """A Deployment of consumers in a namespace of its own; ``policy`` is the text of one for it, see ``Limits``.

    ``produced`` counts what was sent to each queue, ``members`` who is in the group; ``rate`` is messages per second.
    Each pod runs ``per_pod`` members. ``by_message``: what comes again comes by another queue, so that messages are
    told apart by their own ids.
    """

    cluster: ControlPlane
    namespace: str
    folder: Path
    policy: Callable[["Limits"], str]
    produced: Callable[[], Mapping[Lane, int]]
    members: Callable[[], int]
    rate: float
    by_message: bool = False
    per_pod: int = 1
    kind: str = "Deployment"
    made: int = 0
    changes: list[Changed] = field(default_factory=list)

    @property
    def logs(self) -> Path:
        """Where pods log what they were given."""
        return self.folder / "given"

    def start(self, replicas: int, container: Json) -> None:
        """Make the Deployment; return when its pods are ready."""
        self.logs.mkdir()
        make = stateful_set if self.kind == "StatefulSet" else deployment
        self.cluster.apply(make(APP, replicas, container), namespace=self.namespace)
        if make is deployment:
            self.cluster.await_available(self.namespace, APP, READY_S)
        else:
            self.cluster.wait_until("all pods", lambda: self._ready() == replicas, READY_S)

    def _ready(self) -> int:
        return int(self.deployment()["status"].get("readyReplicas", 0))

    def deployment(self) -> Json:
        """Return the Deployment, or what stands for it, as the API server has it."""
        return self.cluster.rest.get(f"/apis/apps/v1/namespaces/{self.namespace}/{self.kind.lower()}s/{APP}")

    def pods(self) -> list[str]:
        """Return the names of the pods that stay."""
        found = self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return sorted(one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"])

    def status(self, name: str) -> Json:
        """Return a plan's status, empty before it has one."""
        path = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans/{name}"
        try:
            return dict(self.cluster.rest.get(path).get("status") or {})
        except ApiError:
            return {}

    def write_policy(self, limits: "Limits") -> Path:
        """Write a policy file for this group."""
        path = self.folder / "policy.yaml"
        path.write_text(self.policy(limits), encoding="utf-8")
        return path

    def snapshot(self, policy: Path) -> Path:
        """Watch the group once all of its pods are in it, and write a snapshot.

        On a busy machine one may be in no broker's list for a while: a plan is rightly not made then.
        """
        path = self.folder / "snapshot.json"
        self.cluster.wait_until("all members", lambda: self.members() == len(self.pods()) * self.per_pod, WAIT_S)
        found = planner("snapshot", "-p", policy, "-o", path, "--observe-seconds", WATCH_S)
        assert found.returncode == 0, found.stderr
        return path

    def plan(self, policy: Path) -> Path:
        """Have the planner make a plan out of a fresh snapshot, and approve it."""
        path = self.folder / f"plan-{self.made}.yaml"
        self.made += 1
        found = planner("plan", self.snapshot(policy), "-p", policy, "-o", path)
        assert found.returncode == 0, found.stderr
        assert "Plan written" in found.stdout, path.read_text(encoding="utf-8")
        return self.approve(path)

    def migrate(self, policy: Path, *words: str) -> Path:
        """Have the planner plan a migration out of a fresh snapshot, and approve it."""
        path = self.folder / f"plan-{self.made}.yaml"
        self.made += 1
        kind, *change = words
        found = planner("migrate", kind, self.snapshot(policy), "-p", policy, "-o", path, *change)
        assert found.returncode == 0, found.stderr
        return self.approve(path)

    def approve(self, path: Path) -> Path:
        """Approve a plan file with all phrases that it asks for."""
        phrases = PLAN.parse(read_document(path), str(path)).confirmations
        found = planner("approve", path, *(word for phrase in phrases for word in ("--confirm", phrase)))
        assert found.returncode == 0, found.stderr
        return path

    def apply(self, path: Path, policy: Path) -> Changed:
        """Carry a plan out; it must succeed."""
        return self.finish(path, policy, read_given(self.logs))

    def finish(self, path: Path, policy: Path, begun: Sequence[Given]) -> Changed:
        """Carry a plan to its end; ``begun`` is what had been delivered before it began."""
        place = ("--policy", policy, "--kubeconfig", self.cluster.kubeconfig, "--data", self.folder)
        found = planner("apply", path, *place, "-o", "json")
        assert found.returncode == 0, (found.stdout, found.stderr)
        return self.changed(path, json.loads(found.stdout)["status"], begun)

    def changed(self, path: Path, status: Json, begun: Sequence[Given]) -> Changed:
        """Return what was delivered while a plan was carried out; ``begun`` is what had been delivered before."""
        since_s = datetime.fromisoformat(status["steps"][0]["startedAt"]).timestamp()
        until_s = datetime.fromisoformat(status["verdict"]["judgedAt"]).timestamp()
        given = read_given(self.logs)
        before = {one.lane: one.client for one in begun}
        after = {one.lane: one.client for one in given}
        owners = {lane: (before[lane], client) for lane, client in after.items() if lane in before}
        return Changed(PLAN.parse(read_document(path), str(path)), status, Course(given, since_s, until_s), owners)

    def start_apply(self, path: Path, policy: Path) -> "subprocess.Popen[str]":
        """Start ``planner apply`` as a process of its own."""
        words = ["apply", path, "--policy", policy, "--kubeconfig", self.cluster.kubeconfig]
        command = [sys.executable, "-m", "planner.cli.main", *map(str, words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=pipe, stderr=pipe, text=True)

    def owners(self) -> Mapping[Lane, str]:
        """Return who was given the newest message of each queue."""
        return {one.lane: one.client for one in read_given(self.logs)}

    def await_deliveries(self, queues: int) -> None:
        """Wait until somebody was given a message of each queue: only then it is known who owned which before."""
        self.cluster.wait_until("a message of every queue", lambda: len(self.owners()) == queues, WAIT_S)

    def check_nothing_lost(self) -> None:
        """Wait until all that was sent was given to somebody; name what was not."""

        def all_given() -> bool | None:
            return True if not self.missing() else None

        try:
            self.cluster.wait_until("every message to be given to somebody", all_given, WAIT_S)
        finally:
            assert not self.missing()

    def missing(self) -> Mapping[Lane, list[int]] | int:
        """Return what nobody was given so far: the offsets by queue, or how many messages."""
        given = read_given(self.logs)
        if not self.by_message:
            return lost(self.produced(), given)
        return sum(self.produced().values()) - len({one.message for one in given})

    def end(self) -> None:
        """Remove all Deployments and wait until their pods are gone: other tests share the machine."""
        self.cluster.kubectl("delete", self.kind.lower(), "--all", "-n", self.namespace)
        self.cluster.wait_until("no pods", lambda: not self.pods(), READY_S)


@dataclass(frozen=True)
class Limits:
    """What a policy says that a test changes: bounds of the count, and how many messages per second one can do."""

    lowest: int
    highest: int
    capacity: float
    kind: str = "Deployment"

    def policy(self, group: str, namespace: str, source: str, kubeconfig: Path) -> str:
        """Return a policy; ``source`` is what its ``source`` holds in braces, ``kubeconfig`` finds its Deployment."""
        return (
            "apiVersion: consumerplanner.dev/v1alpha1\n"
            "kind: ConsumerScalingPolicy\n"
            f"metadata: {{name: {group}, namespace: {namespace}}}\n"
            "spec:\n"
            f"  source: {{{source}, group: {group}}}\n"
            f"  scaleTargetRef: {{kind: {self.kind}, name: {APP}}}\n"
            f"  kubernetes: {{kubeconfigFile: {kubeconfig}}}\n"
            f"  minReplicas: {self.lowest}\n"
            f"  maxReplicas: {self.highest}\n"
            f"  capacity: {{messagesPerSecond: {self.capacity}}}\n"
            "  objective: {maxUtilisation: 0.8}\n"
            "  window: {seconds: 60}\n"
            "  freshness: {minCompleteness: 0.01}\n"
            "  rollout: {readySeconds: 300, settledSeconds: 300}\n"
        )


def exactly(count: int) -> Limits:
    """Return limits under which only one count can be planned: no rate that a busy machine measures decides it."""
    return Limits(count, count, 40.0)


def names_in_pod(per_pod: int) -> str:
    """Return the names of a pod's consumers, with commas: the pod's, numbered where there are several."""
    return "$(POD_NAME)" if per_pod == 1 else ",".join(f"$(POD_NAME)-{number}" for number in range(per_pod))


@contextmanager
def rocketmq_loop(
    cluster: ControlPlane,
    rocketmq: RocketMQCluster,
    folder: Path,
    topic: str,
    replicas: int,
    *,
    rate: float,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, str | int] | None = None,
    all_arrive: bool = True,
    by_message: bool = False,
    per_pod: int = 1,
    queues_each: int = ROCKETMQ_QUEUES,
) -> Iterator[Loop]:
    """Give a loop of RocketMQ consumers whose group is named as their topic, and end it.

    ``rate`` messages per second come to each queue. With ``environment``, which then names the ``GROUP``, consumers
    take their group from there; ``options`` are the load program's besides. With ``all_arrive`` all that was sent must
    have been given to somebody in the end. Each pod's process has ``per_pod`` consumers, and each broker
    ``queues_each`` queues.
    """
    namespace = cluster.namespace(topic)

    def policy(limits: Limits) -> str:
        source = f"system: rocketmq, nameServers: ['{rocketmq.name_server}'], cluster: DefaultCluster"
        return limits.policy(topic, namespace, source, cluster.kubeconfig)

    def produced() -> Mapping[Lane, int]:
        return {(topic, broker, str(queue)): count for (broker, queue), count in rocketmq.produced(topic).items()}

    queues = [(broker.name, queue) for broker in rocketmq.brokers for queue in range(queues_each)]

    def members() -> int:
        with RocketMQAdmin(rocketmq.name_server) as admin:
            return members_known(
                lambda: observe_group(admin, cluster=None, group=topic, topics=None, at=datetime.now(UTC))
            )

    loop = Loop(cluster, namespace, folder, policy, produced, members, rate * len(queues), by_message, per_pod)
    told = {"tell-messages": "true"} if by_message else {}
    container = rocketmq_consumer(
        rocketmq.name_server,
        group="$(GROUP)" if environment else topic,
        topics=[topic],
        client_version=NEW,
        instance=names_in_pod(per_pod),
        options={
            "delivery-log": f"{loop.logs}/$(POD_NAME).tsv",
            "service-ms": 20,
            "threads": 4,
            **told,
            **(options or {}),
        },
    )
    container["env"].extend({"name": name, "value": value} for name, value in (environment or {}).items())
    loop.start(replicas, container)
    flat = ((0.0, rate), (LONG_S, rate))
    producer = rocketmq.load(NEW).start_producer([QueueCurve(topic, broker, queue, flat) for broker, queue in queues])
    loop.await_deliveries(len(queues))
    yield loop
    producer.stop()
    if all_arrive:
        loop.check_nothing_lost()
    loop.end()


@contextmanager
def kafka_loop(
    cluster: ControlPlane,
    kafka: KafkaCluster,
    folder: Path,
    group: str,
    container: Callable[[Path], Json],
    *,
    partitions: int,
    rate: float,
    client: str,
    settings: Mapping[str, str | int],
    per_pod: int = 1,
    kind: str = "Deployment",
) -> Iterator[Loop]:
    """Give a loop of three pods with ``per_pod`` Kafka consumers each, whose topic is named as their group, and end it.

    ``container`` is made with the folder of the delivery logs. ``rate`` messages per second come to each partition. The
    policy tells ``client``, its version as forecasts take it, and ``settings``, its own and the brokers'.
    """
    kafka.create_topic(group, partitions)
    namespace, servers = cluster.namespace(group), kafka.bootstrap.split(",")

    def policy(limits: Limits) -> str:
        source = f"system: kafka, bootstrapServers: {servers}, cluster: test"
        return replace(limits, kind=kind).policy(group, namespace, source, cluster.kubeconfig) + (
            f"  timing: {{clientVersion: {client}, brokerVersion: {kafka.version}, settings: {json.dumps(settings)}}}\n"
        )

    def produced() -> Mapping[Lane, int]:
        with kafka_source.KafkaAdmin(servers) as admin:
            ends = admin.end_offsets(TopicPartition(group, number) for number in range(partitions))
        return {(one.topic, str(one.partition)): end for one, end in ends.items() if isinstance(end, int)}

    def members() -> int:
        with kafka_source.KafkaAdmin(servers) as admin:
            found = kafka_source.observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))
        return len(found.members)

    loop = Loop(cluster, namespace, folder, policy, produced, members, rate * partitions, per_pod=per_pod, kind=kind)
    loop.start(3, container(loop.logs))
    producing = kafka.load(CLIENT).start()
    flat = ((0.0, rate), (LONG_S, rate))
    producing.produce(f"{group}-producer", [PartitionCurve(group, number, flat) for number in range(partitions)])
    loop.await_deliveries(partitions)
    yield loop
    producing.stop()
    loop.check_nothing_lost()
    loop.end()
