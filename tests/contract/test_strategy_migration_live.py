"""A group changes its strategy, room, cluster or number of queues: real consumers in pods, brokers, an API server.

The strategy once in a window in which all stop before any starts, once by a second group with cloned offsets beside the
old one. The commands do it all; every delivery is logged, and compared with what was sent and what was seen.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.documents.plan import PLAN, read_document
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.rollout.plan import RolloutPlan
from planner.snapshot.strategy import observed_strategy
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import rocketmq_consumer
from tests.clusters.kubernetes.rest import Json
from tests.clusters.rocketmq import NEW, OLD, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import Delivery, ProducerProcess, QueueCurve, read_deliveries
from tests.patience import PATIENT, if_known
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

TOPIC, GROUP, NEW_GROUP, MOVED_GROUP = "strategy-live", "strategy-live", "strategy-live-2", "cluster-live"
SET_UP_GROUP, SHRUNK_GROUP = "parameters-live", "shrink-live"
BROKER_ROOMS = {"broker-a": "r1", "broker-b": "r2"}
CLIENT_ROOMS = {"near": "r1", "far": "r2"}
"""Rooms of Deployments: what a user's resolver knows of the pods."""
NEARBY = "MACHINE_ROOM_NEARBY"
CONSUMERS = 2
RATE = 10.0
Message = tuple[str, int, int]
WAIT_S = 600.0
WATCH_S = 10


@dataclass(frozen=True)
class Shop:
    """A topic of four queues into which a producer writes, and Deployments of consumers that log what they get.

    Strategy, topics, group and name server are variables of their template.
    """

    cluster: ControlPlane
    brokers: RocketMQCluster
    producer: ProducerProcess
    namespace: str
    folder: Path

    def stop_producing(self) -> dict[tuple[str, int], int]:
        """Return queue -> its end, as nothing more will come."""
        self.producer.stop()
        return self.brokers.produced(TOPIC)

    def start(self, name: str, group: str) -> None:
        """Start the Deployment of the old consumers; return once they share out the queues."""
        container = rocketmq_consumer(
            "$(NAME_SERVER)",
            group="$(GROUP)",
            topics=["$(TOPICS)"],
            client_version=NEW,
            options={
                "strategy": "$(STRATEGY)",
                "virtual-nodes": "$(NODES)",
                "broker-rooms": ",".join(f"{broker}={room}" for broker, room in BROKER_ROOMS.items()),
                "client-rooms": ",".join(f"{name}-*={room}" for name, room in CLIENT_ROOMS.items()),
                "service-ms": 5,
                "await-termination-ms": 5_000,
                "delivery-log": f"{self.folder}/$(GROUP).$(POD_NAME).tsv",
                "flush-each": "true",
            },
        )
        variables = {"STRATEGY": "AVG", "NODES": "10", "TOPICS": TOPIC, "GROUP": group}
        variables["NAME_SERVER"] = self.brokers.name_server
        container["env"] += [{"name": variable, "value": value} for variable, value in variables.items()]
        document = deployment(name, CONSUMERS, container, terminationGracePeriodSeconds=60)
        self.cluster.apply(document, namespace=self.namespace)
        self.cluster.await_available(self.namespace, name, WAIT_S)
        self.await_settled(group)
        self.await_given(group, name)

    def policy(self, group: str, target: str, prices: str, strategy: str = "") -> Path:
        path = self.folder / f"policy-{target}.yaml"
        path.write_text(f"""
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {{name: {target}, namespace: {self.namespace}}}
spec:
  source: {{system: rocketmq, nameServers: ['{self.brokers.name_server}'], cluster: DefaultCluster, group: {group}}}
  scaleTargetRef: {{name: {target}}}
  kubernetes: {{kubeconfigFile: {self.cluster.kubeconfig}}}
  maxReplicas: 4
  freshness: {{maxAgeSeconds: 600}}
  prices: {{{prices}}}
{strategy}""")
        return path

    def members(self, group: str) -> GroupSample:
        with RocketMQAdmin(self.brokers.name_server, limits=PATIENT) as admin:
            return observe_group(admin, cluster="DefaultCluster", group=group, topics=None, at=datetime.now(UTC))

    def await_settled(self, group: str) -> None:
        """Wait until so many members share the queues out, each with one owner."""

        def is_settled() -> bool:
            found = if_known(lambda: self.members(group))
            if found is None:
                return False
            owned = [queue for member in found.members for queue in member.owned or () if queue.topic == TOPIC]
            every = [queue for queue in found.routes.read_queues if queue.topic == TOPIC]
            return len(found.members) == CONSUMERS and sorted(map(str, owned)) == sorted(map(str, every))

        self.cluster.wait_until("a settled group", is_settled, WAIT_S)

    def await_given(self, group: str, deployment: str) -> None:
        """Wait until the Deployment was given messages of every queue: what comes before and after is compared later.

        Raise StartFailedError with what producers, brokers and pods said last where it is given none.
        """
        ends = self.brokers.produced(TOPIC)

        def is_given() -> bool:
            return {(one.broker, one.queue) for one in self.deliveries(group, deployment)} >= ends.keys()

        try:
            self.cluster.wait_until(f"a message of each queue of {TOPIC} for {deployment}", is_given, WAIT_S)
        except StartFailedError as error:
            now, done = self.brokers.produced(TOPIC), self.brokers.committed(group, TOPIC)
            tails = [process.log_tail(15) for process in self.brokers.processes if process.running]
            pods = self.cluster.kubelet.log(self.namespace, f"{deployment}-*", "main")
            sent = f"sent {ends}, then {now}; committed {done}"
            raise StartFailedError("\n".join([str(error), sent, *tails, pods])) from error

    def planned(self, policy: Path, kind: str, green: str, *words: str) -> Path:
        """Take a snapshot, plan a migration to Deployment ``green``, approve it; return the plan's file."""
        return self.approved(policy, kind, green, "--green", green, *words)

    def approved(self, policy: Path, kind: str, name: str, *words: str) -> Path:
        """Take a snapshot, plan a migration, approve it with all phrases; return the plan's file."""
        taken, plan = self.folder / f"{name}.json", self.folder / f"{name}.yaml"
        self.run("snapshot", "-p", policy, "-o", taken, "--observe-seconds", WATCH_S)
        self.run("migrate", kind, taken, "-p", policy, "-o", plan, *words)
        phrases = read(plan).confirmations
        self.run("approve", plan, *(word for phrase in phrases for word in ("--confirm", phrase)))
        return plan

    def migrate(self, policy: Path, green: str, *words: str) -> RolloutPlan:
        """Change the strategy; return the plan once it was carried out."""
        plan = self.planned(policy, "strategy", green, *words)
        self.run("apply", plan, "-p", policy, "--kubeconfig", self.cluster.kubeconfig)
        return read(plan)

    def run(self, *words: object) -> str:
        done = planner(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}{done.stdout}"
        return done.stdout

    def apply(self, plan: Path, policy: Path) -> "subprocess.Popen[str]":
        """Carry a plan out by a process of its own, as one that asks a person takes a while."""
        words = ["planner.cli.main", "apply", plan, "-p", policy, "--kubeconfig", self.cluster.kubeconfig]
        root, pipe = Path(__file__).parents[2], subprocess.PIPE
        return subprocess.Popen([sys.executable, "-m", *map(str, words)], cwd=root, stdout=pipe, stderr=pipe, text=True)

    def await_step(self, plan: Path, kind: str, applying: "subprocess.Popen[str]", times: int = 1) -> None:
        """Wait until the plan is at a step of that kind, the so-and-so-manieth; who applies it must not end before."""

        def is_there() -> bool:
            assert applying.poll() is None, applying.communicate()
            found = self.cluster.kubectl("get", "crp", "-n", self.namespace, "-o", "json")
            steps = [step for one in json.loads(found)["items"] for step in one.get("status", {}).get("steps", ())]
            of_kind = [step for step in steps if step["kind"] == kind]
            return len(of_kind) == times and not of_kind[-1].get("finishedAt")

        self.cluster.wait_until(f"{kind} of {plan.name}", is_there, WAIT_S)

    def answer(self, plan: Path, times: int = 1) -> None:
        """Let the step that asks a person go on, the so-and-so-manieth of the plan."""
        asks = [n for n, step in enumerate(read(plan).steps, start=1) if step.kind == "pauseForPerson"]
        note = f"consumerplanner.dev/answer={','.join(map(str, asks[:times]))}"
        name = read_document(plan)["metadata"]["name"]
        self.cluster.kubectl("annotate", "crp", name, "-n", self.namespace, "--overwrite", note)

    def verdict(self, green: str) -> dict[str, Json]:
        """Return figure -> what was forecast, what was seen, and whether they fit."""
        plan = self.folder / f"{green}.yaml"
        found = planner("verify", plan, "--kubeconfig", self.cluster.kubeconfig, "-o", "json")
        return {one["name"]: one for one in json.loads(found.stdout)["status"]["verdict"]["figures"]}

    def deliveries(self, group: str, deployment: str = "") -> list[Delivery]:
        """Return what a group's consumers were delivered, of one Deployment or all, oldest first."""
        logs = self.folder.glob(f"{group}.{deployment}*.tsv")
        return sorted((one for log in logs for one in read_deliveries(log)), key=lambda one: one.epoch_ms)


def read(plan: Path) -> RolloutPlan:
    return PLAN.parse(read_document(plan), str(plan))


def produce_to(brokers: RocketMQCluster, topic: str = TOPIC) -> ProducerProcess:
    points = ((0.0, RATE), (3_600.0, RATE))
    curves = [QueueCurve(topic, broker, queue, points) for broker, queue in brokers.produced(topic)]
    return brokers.load().start_producer(curves)


@pytest.fixture
def shop(
    control_plane_with_plans: ControlPlane, rocketmq_cluster: Callable[[str], RocketMQCluster], tmp_path: Path
) -> Iterator[Shop]:
    brokers = rocketmq_cluster(NEW)
    brokers.create_topic(TOPIC, 2)
    producer = produce_to(brokers)
    namespace = control_plane_with_plans.namespace("migrate")
    yield Shop(control_plane_with_plans, brokers, producer, namespace, tmp_path)
    producer.stop()
    control_plane_with_plans.kubectl("delete", "deployment", "--all", "-n", namespace)


def counted(deliveries: Iterable[Delivery]) -> Counter[Message]:
    """Return message -> how often it was delivered."""
    return Counter((one.broker, one.queue, one.offset) for one in deliveries)


def twice(deliveries: Iterable[Delivery]) -> int:
    """Return how many deliveries were not the first of their message."""
    return sum(times - 1 for times in counted(deliveries).values())


def first_offsets(deliveries: Iterable[Delivery]) -> dict[tuple[str, int], int]:
    """Return queue -> the lowest offset that was delivered."""
    firsts: dict[tuple[str, int], int] = {}
    for broker, queue, offset in counted(deliveries):
        firsts[broker, queue] = min(offset, firsts.get((broker, queue), offset))
    return firsts


def since(firsts: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]) -> set[Message]:
    """Return every message from these offsets on."""
    return {(*queue, offset) for queue, end in ends.items() for offset in range(firsts[queue], end)}


def strategy_of(sample: GroupSample) -> str | None:
    return observed_strategy(sample.members)[0]


def test_a_group_changes_its_strategy_in_a_window_and_side_by_side(shop: Shop) -> None:
    shop.start("old", GROUP)
    policy = shop.policy(GROUP, "old", "duplicateSeconds: 1")
    window = shop.migrate(policy, "green", "--to", "AVG_BY_CIRCLE", "--env", "STRATEGY=AVG_BY_CIRCLE")
    assert window.confirmations == (f"stop all consumers of {GROUP}",), "the group keeps its name and its offsets"
    old, green = shop.deliveries(GROUP, "old"), shop.deliveries(GROUP, "green")
    assert old[-1].epoch_ms < green[0].epoch_ms, "two strategies never share out one group"
    shop.await_settled(GROUP)
    assert strategy_of(shop.members(GROUP)) == "AVG_BY_CIRCLE"
    verdict = shop.verdict("green")
    assert verdict["moved queues"]["fit"] == "inside"
    _check_seen(verdict["duplicates"], twice([*old, *green]) - twice(old))

    # What comes twice is free and a standstill dear: then a second group goes beside the first one.
    policy = shop.policy(GROUP, "green", "standstillSeconds: 1000, duplicateSeconds: 0")
    change = ("--env", "STRATEGY=AVG", "--env", f"GROUP={NEW_GROUP}")
    beside = shop.migrate(policy, "blue", "--to", "AVG", "--new-group", NEW_GROUP, *change)
    assert beside.confirmations == (f"set the offsets of {NEW_GROUP}",)
    assert shop.members(GROUP).members == ()
    shop.await_settled(NEW_GROUP)
    assert strategy_of(shop.members(NEW_GROUP)) == "AVG"

    ends = shop.stop_producing()
    shop.cluster.wait_until("the last message", lambda: shop.brokers.committed(NEW_GROUP, TOPIC) == ends, WAIT_S)
    first, second = shop.deliveries(GROUP), shop.deliveries(NEW_GROUP)
    assert set(counted(first)) | set(counted(second)) == since(dict.fromkeys(ends, 0), ends), "no message is lost"
    assert set(counted(second)) == since(first_offsets(second), ends), "nor is any left out by the new group"
    assert shop.verdict("blue")["moved queues"]["fit"] == "inside", "all of them left the old group"
    assert set(counted(first)) & set(counted(second)), "from the clone on both groups were given everything"
    long_done = {(one.broker, one.queue): one.offset for one in sorted(old, key=lambda one: one.offset)}
    begun = first_offsets(second)
    assert all(begun[queue] > offset for queue, offset in long_done.items()), "it began at the cloned offsets, not at 0"


def test_strategies_with_parameters_come_and_a_group_moves_into_another_room(shop: Shop) -> None:
    shop.start("old", SET_UP_GROUP)
    plain, cheap = shop.policy(SET_UP_GROUP, "old", "duplicateSeconds: 1"), "duplicateSeconds: 1"
    nodes = {"virtual_nodes": 3}
    words = ("--to", "CONSISTENT_HASH", "--env", "STRATEGY=CONSISTENT_HASH", "--env", "NODES=3")
    shop.migrate(plain, "hashed", *words, "--options", json.dumps(nodes))
    _check_owned(shop, "CONSISTENT_HASH", nodes)
    assert shop.verdict("hashed")["moved queues"]["fit"] == "inside"

    hashed = shop.policy(SET_UP_GROUP, "hashed", cheap, _stated("CONSISTENT_HASH", nodes))
    rooms = {"machine_rooms": {"brokers": BROKER_ROOMS, "clients": {}, "inner": "AVG"}}
    template = ("--env", f"STRATEGY={NEARBY}-AVG")
    shop.migrate(hashed, "near", "--to", NEARBY, "--room", "r1", "--options", json.dumps(rooms), *template)
    _check_owned(shop, NEARBY, _with_rooms(shop))
    assert shop.verdict("near")["moved queues"]["fit"] == "inside"

    near = shop.policy(SET_UP_GROUP, "near", cheap, _stated(NEARBY, _with_rooms(shop)))
    before = shop.deliveries(SET_UP_GROUP)
    path = shop.planned(near, "relocate", "far", "--env", "ELSEWHERE=yes", "--room", "r2")
    shop.run("apply", path, "-p", near, "--kubeconfig", shop.cluster.kubeconfig)
    assert {one.client_id.split("@")[1].split("-")[0] for one in shop.members(SET_UP_GROUP).members} == {"far"}
    _check_owned(shop, NEARBY, _with_rooms(shop))
    verdict = shop.verdict("far")
    assert verdict["moved queues"]["fit"] == "inside"
    assert verdict["longest pause"]["seenHigh"] is not None, "the looks knew a calm group by the step's parameters"

    ends = shop.stop_producing()
    shop.cluster.wait_until("the last message", lambda: shop.brokers.committed(SET_UP_GROUP, TOPIC) == ends, WAIT_S)
    given = shop.deliveries(SET_UP_GROUP)
    assert set(counted(given)) == since(dict.fromkeys(ends, 0), ends), "no message is lost"
    duplicates = verdict["duplicates"]
    assert duplicates["seenLow"] <= twice(given) - twice(before) <= duplicates["seenHigh"], duplicates


def _with_rooms(shop: Shop) -> dict[str, Any]:
    """Return the parameters of the rooms that the present members are in, by the names of their Deployments."""
    ids = [one.client_id for one in shop.members(SET_UP_GROUP).members]
    homes = {one: CLIENT_ROOMS[one.split("@")[1].split("-")[0]] for one in ids}
    return {"machine_rooms": {"brokers": BROKER_ROOMS, "clients": homes, "inner": "AVG"}}


def _stated(strategy: str, options: Mapping[str, Any]) -> str:
    return f"  strategy: {strategy}\n  strategyOptions: {json.dumps(options)}\n"


def _check_owned(shop: Shop, strategy: str, options: Mapping[str, Any]) -> None:
    """The members say that they run it, and own what it gives them with these parameters."""
    shop.await_settled(SET_UP_GROUP)
    found = shop.members(SET_UP_GROUP)
    assert strategy_of(found) == strategy
    queues = [queue for queue in found.routes.read_queues if queue.topic == TOPIC and isinstance(queue, MessageQueue)]
    wanted = allocate_group(find_strategy(strategy, options), queues, [one.client_id for one in found.members]).answer()
    owned = {one.client_id: {queue for queue in one.owned or () if queue.topic == TOPIC} for one in found.members}
    assert owned == {client: set(given) for client, given in wanted.items()}


def test_a_group_moves_to_another_cluster_once_the_old_one_is_drained(
    shop: Shop, rocketmq_cluster: Callable[[str], RocketMQCluster]
) -> None:
    other = rocketmq_cluster(OLD)
    other.create_topic(TOPIC, 2)
    before = shop.brokers.produced(TOPIC)
    shop.start("here", MOVED_GROUP)
    policy = shop.policy(MOVED_GROUP, "here", "duplicateSeconds: 1")
    change = ("--to", "other", "--env", f"NAME_SERVER={other.name_server}")
    plan = shop.planned(policy, "cluster", "there", *change)
    known = twice(shop.deliveries(MOVED_GROUP))
    applying = shop.apply(plan, policy)
    try:
        shop.await_step(plan, "pauseForPerson", applying)
        shop.stop_producing()
        producer = produce_to(other)
        shop.answer(plan)
        _, said = applying.communicate(timeout=WAIT_S)
    finally:
        applying.kill()
        applying.wait()
    assert applying.returncode == 0, said
    producer.stop()
    left, come = shop.brokers.produced(TOPIC), other.produced(TOPIC)
    here = shop.deliveries(MOVED_GROUP, "here")
    assert set(counted(here)) == since(dict.fromkeys(left, 0), left), "nothing is left behind"
    assert sum(left.values()) > sum(before.values())
    assert twice(here) == known, "a drained queue has nothing that could come twice"
    there = dict.fromkeys(come, 0)
    shop.cluster.wait_until(
        "the last message", lambda: set(counted(shop.deliveries(MOVED_GROUP, "there"))) == since(there, come), WAIT_S
    )


def test_a_topic_gets_fewer_queues_once_what_lies_in_the_others_is_consumed(shop: Shop) -> None:
    shop.stop_producing()
    shop.brokers.create_topic(TOPIC, 4)
    producer = produce_to(shop.brokers)
    shop.start("shrinking", SHRUNK_GROUP)
    policy = shop.policy(SHRUNK_GROUP, "shrinking", "duplicateSeconds: 1")
    plan = shop.approved(policy, "shrink", "fewer", "--topic", TOPIC, "--queues", "2")
    applying = shop.apply(plan, policy)
    try:
        shop.await_step(plan, "pauseForPerson", applying)
        producer.stop()
        sent = shop.brokers.produced(TOPIC)
        assert len(sent) == 8
        shop.brokers.create_topic(TOPIC, per_broker=dict.fromkeys(BROKER_ROOMS, QueueCounts(read=4, write=2)))
        producer = produce_to(shop.brokers)
        shop.answer(plan)
        shop.await_step(plan, "pauseForPerson", applying, times=2)
        left_over = {queue for queue in sent if queue[1] >= 2}
        done = shop.brokers.committed(SHRUNK_GROUP, TOPIC)
        assert {queue: done[queue] for queue in left_over} == {queue: sent[queue] for queue in left_over}
        shop.brokers.create_topic(TOPIC, 2)
        shop.answer(plan, times=2)
        _, said = applying.communicate(timeout=WAIT_S)
    finally:
        applying.kill()
        applying.wait()
    assert applying.returncode == 0, said
    shop.await_settled(SHRUNK_GROUP)
    assert shop.verdict("fewer")["moved queues"]["fit"] == "inside"
    producer.stop()
    ends = sent | shop.brokers.produced(TOPIC)
    shop.cluster.wait_until(
        "the last message",
        lambda: set(counted(shop.deliveries(SHRUNK_GROUP))) == since(dict.fromkeys(ends, 0), ends),
        WAIT_S,
    )


def _check_seen(figure: Json, truth: float) -> None:
    assert figure["seenLow"] <= truth <= figure["seenHigh"], figure["sentence"]
    assert figure["fit"] != "outside", figure["sentence"]
