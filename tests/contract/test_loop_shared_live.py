"""Pods that run consumers of two groups each: one run decides for both, one plan moves both, one verdict has both."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.decision.decision import Decision, HoldCause
from planner.documents.plan import PLAN, read_document
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import MarkVictims
from planner.runs.policy_stages import read_decision
from planner.sources import kafka as kafka_source
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.loops import APP, LONG_S, READY_S, WAIT_S, WATCH_S, Limits
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

ORDERS, MAILS = "shared-orders", "shared-mails"
PARTITIONS, RATE = 6, 2.0
SETTINGS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 30_000, "heartbeat.interval.ms": 1000}


class SharedPods:
    """Two pods with a consumer of each group, in a namespace of their own; ``folder`` holds policies and runs."""

    def __init__(self, cluster: ControlPlane, kafka: KafkaCluster, folder: Path) -> None:
        self.cluster, self.kafka, self.folder = cluster, kafka, folder
        self.namespace, self.policies = cluster.namespace("shared-pods"), folder / "policies"
        self.policies.mkdir()
        containers = [{"name": group, "image": "local", **self._container(group)} for group in (ORDERS, MAILS)]
        cluster.apply(deployment(APP, 2, containers=containers), namespace=self.namespace)
        cluster.await_available(self.namespace, APP, READY_S)

    def _container(self, group: str) -> Json:
        log = f"{self.folder}/$(POD_NAME)-{group}.tsv"
        servers = self.kafka.bootstrap
        return kafka_consumer(servers, group=group, topic=group, delivery_log=log, settings=SETTINGS)

    def write_policies(self, orders: Limits, mails: Limits) -> None:
        """Write one policy for each group, each of which names the other."""
        source = f"system: kafka, bootstrapServers: {self.kafka.bootstrap.split(',')}, cluster: test"
        for group, limits, other in ((ORDERS, orders, MAILS), (MAILS, mails, ORDERS)):
            text = limits.policy(group, self.namespace, source, self.cluster.kubeconfig)
            target = f"name: {APP}}}"
            assert target in text
            shared = text.replace(target, f"name: {APP}, sharedWith: [{other}]}}")
            (self.policies / f"{group}.yaml").write_text(shared, encoding="utf-8")

    def members(self, group: str) -> int:
        with kafka_source.KafkaAdmin(self.kafka.bootstrap.split(",")) as admin:
            found = kafka_source.observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))
        return len(found.members)

    def decide(self, run: str) -> tuple[dict[str, Decision], Path]:
        """Have one run decide on both groups; return what came of each policy, and the only plan."""
        words = ("--policies", self.policies, "--data", self.folder / run, "--plans", self.folder / f"{run}-plans")
        found = planner("run", *words, "--observe-seconds", WATCH_S, "--no-page")
        assert found.returncode == 0, (found.stdout, found.stderr)
        files = {path.parent.name: path for path in (self.folder / run / "runs").glob("*/*/decision.yaml")}
        decisions = {name: read_decision(path).decision for name, path in files.items()}
        plans = list((self.folder / f"{run}-plans").iterdir())
        assert len(plans) == 1, [decision.reason for decision in decisions.values()]
        return decisions, plans[0]

    def apply(self, path: Path) -> tuple[RolloutPlan, Json]:
        """Approve a plan and carry it out; return it with its status."""
        assert planner("approve", path).returncode == 0
        place = ("--policy", self.policies, "--kubeconfig", self.cluster.kubeconfig)
        found = planner("apply", path, *place, "-o", "json")
        assert found.returncode == 0, (found.stdout, found.stderr)
        return PLAN.parse(read_document(path), str(path)), json.loads(found.stdout)["status"]


@pytest.fixture(scope="module")
def pods(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedPods]:
    for group in (ORDERS, MAILS):
        kafka_cluster.create_topic(group, PARTITIONS)
    shared = SharedPods(control_plane_with_plans, kafka_cluster, tmp_path_factory.mktemp("shared"))
    producing = kafka_cluster.load(CLIENT).start()
    flat = ((0.0, RATE), (LONG_S, RATE))
    curves = [PartitionCurve(group, number, flat) for group in (ORDERS, MAILS) for number in range(PARTITIONS)]
    producing.produce("shared-producer", curves)
    yield shared
    producing.stop()
    control_plane_with_plans.kubectl("delete", "deployment", "--all", "-n", shared.namespace)


@pytest.mark.parametrize("count", [3, 1])
def test_two_groups_grow_and_shrink_together(pods: SharedPods, count: int) -> None:
    """Orders asks for the count, mails for one pod: red when either group is left out of decision, wait or verdict."""
    pods.write_policies(Limits(count, count, 40.0), Limits(1, 6, 1000.0))
    for group in (ORDERS, MAILS):
        pods.cluster.wait_until("all members", lambda name=group: pods.members(name) in (2, 3), WAIT_S)
    decisions, path = pods.decide(f"run-{count}")
    plan, status = pods.apply(path)
    assert decisions[plan.policy].target == plan.target_replicas == count
    assert {decisions[name].hold_cause for name in decisions if name != plan.policy} == {HoldCause.SHARED_TARGET}
    assert status["phase"] == "Succeeded"
    assert [pods.members(group) for group in (ORDERS, MAILS)] == [count, count]
    (expected,) = plan.others or ()
    assert {plan.group.group, expected.group.group} == {ORDERS, MAILS}
    (part,) = status["verdict"]["others"]
    moved = next(figure for figure in part["figures"] if figure["name"] == "moved queues")
    assert (part["group"], moved["fit"]) == (expected.group.group, "inside"), moved
    marked = [victim for step in plan.steps if isinstance(step, MarkVictims) for victim in step.victims]
    assert bool(marked) == (count == 1)
