"""Groups with a day each, on the stage of ``make demo``, and what decides for them: an Airflow, on its schedule.

No hand moves: plans are made as the account ``consumer-planner-reader``, which the controller believes; each policy's
criteria approve; the controller applies and judges.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from planner.documents.tenant_files import FILES_VARIABLE
from planner.orchestration.period import SETTING
from scripts.demo_stage import BROKER, HOME, NAMESPACE, PATIENT_S, QUEUES, ROOT, Stage, open_stage
from tests.clusters.deliveries import Lane
from tests.clusters.kubernetes import deployment
from tests.clusters.kubernetes.consumers import rocketmq_consumer
from tests.clusters.kubernetes.rest import Json
from tests.clusters.processes import ManagedProcess
from tests.clusters.rocketmq import NEW
from tests.clusters.rocketmq_load import ProducerProcess, QueueCurve
from tests.dags.answering import settings_in
from tests.dags.scheduling import Airflow, running_airflow
from tests.pod_controllers import documents, grant
from tests.soak.day import Day, Served

ACCOUNT = "consumer-planner-reader"
PLANNING = f"system:serviceaccount:{HOME}:{ACCOUNT}"
FEWEST, MOST, BEGIN = 2, 6, 2
TOKEN_S = 4 * 3600
LOOK_S = 2.0
AUTOSCALER_SYNC_S = 15
SAMPLE_S = 5
NOT_OPEN = ("Pending", "Refused", "Expired", "Succeeded", "RolledBack", "Stuck")
OBJECTS = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{NAMESPACE}"


@dataclass(eq=False)
class Group:
    """One group of the town: its day, and how many of its pods were ready at each look, by second."""

    name: str
    topic: str
    day: Day
    logs: Path
    queues: int = QUEUES
    most: int = MOST
    ready: list[tuple[float, int, int]] = field(default_factory=list)

    @property
    def target(self) -> str:
        """Its Deployment."""
        return f"{self.name}-consumer"

    def policy(self, name_server: str) -> Json:
        """Return what its team wants: the objective is the default one, and criteria approve every ordinary change."""
        source = {"system": "rocketmq", "nameServers": [name_server], "cluster": "DefaultCluster", "group": self.name}
        criteria = {"mostMovedQueues": self.queues, "longestPauseSeconds": PATIENT_S}
        spec = {
            "source": source,
            "scaleTargetRef": {"name": self.target},
            "kubernetes": {},
            "minReplicas": FEWEST,
            "maxReplicas": self.most,
            "capacity": {"messagesPerSecond": 100},
            "window": {"seconds": 60},
            "freshness": {"minCompleteness": 0.2},
            "rollout": {"validForSeconds": 600, "readySeconds": 300, "settledSeconds": 300},
            "approval": {"mode": "Auto", "criteria": criteria},
        }
        head = {"apiVersion": "consumerplanner.dev/v1alpha1", "kind": "ConsumerScalingPolicy"}
        return {**head, "metadata": {"name": self.name, "namespace": NAMESPACE}, "spec": spec}


@dataclass(eq=False)
class Town:
    """All that runs, and what was seen of it."""

    stage: Stage
    groups: tuple[Group, ...]
    kubeconfig: Path

    def plans(self, group: Group) -> list[Json]:
        """Return a group's plans, oldest first."""
        found = self.stage.kubernetes.rest.get(f"{OBJECTS}/consumerrolloutplans")["items"]
        its = [one for one in found if one["spec"]["group"]["group"] == group.name]
        return sorted(its, key=lambda one: str(one["metadata"]["creationTimestamp"]))

    def open_plans(self) -> list[str]:
        """Return the names of plans that are being carried out."""
        every = [one for group in self.groups for one in self.plans(group)]
        states = {one["metadata"]["name"]: one.get("status", {}).get("phase", "Pending") for one in every}
        return [name for name, phase in states.items() if phase not in NOT_OPEN]

    def produced(self, group: Group) -> Mapping[Lane, int]:
        """Return how many messages each queue was sent."""
        counts = self.stage.rocketmq.produced(group.topic)
        return {(group.topic, broker, str(queue)): count for (broker, queue), count in counts.items()}

    def served(self, group: Group) -> Served:
        """Return what the group was given, once nothing is missing or nothing comes any more."""
        deadline = time.monotonic() + PATIENT_S / 6
        while (found := Served.read(group.logs, self.produced(group))).missing and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        return found

    def look(self, since_s: float) -> None:
        """Note each group's wanted and ready pods."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
        found = {one["metadata"]["name"]: one for one in self.stage.kubernetes.rest.get(path)["items"]}
        for group in self.groups:
            its = found[group.target]
            ready = int(its.get("status", {}).get("readyReplicas", 0))
            group.ready.append((time.time() - since_s, int(its["spec"]["replicas"]), ready))


def group_of(folder: Path, name: str, day: Day) -> Group:
    """Return a group with a topic of its own, whose logs lie in the folder."""
    return Group(name, name, day, folder / "given" / name)


@contextmanager
def open_town(folder: Path, groups: Sequence[Group], driven: Sequence[Group] = ()) -> Iterator[Town]:
    """Give the town with its consumers ready, nobody who decides and nothing sent yet.

    Every group has a policy but the ``driven`` ones: an HPA is to scale those, which looks every 15 s, as it does where
    nobody says otherwise.
    """
    with open_stage(folder, ("--planning-account", PLANNING), AUTOSCALER_SYNC_S) as stage:
        kubernetes = stage.kubernetes
        for topic, queues in {group.topic: group.queues for group in (*groups, *driven)}.items():
            stage.rocketmq.create_topic(topic, queues)
        for group in (*groups, *driven):
            start(stage, group)
        stage.await_controller()
        grant(kubernetes, HOME, NAMESPACE, "executor-retention", "auto-approver", "scheduler", "reader-role")
        kubernetes.service_account(HOME, ACCOUNT)
        _let_follow(stage)
        kubeconfig = kubernetes.kubeconfig_for(kubernetes.token(HOME, ACCOUNT, TOKEN_S), "decider")
        kubernetes.kubectl("delete", "csp", "--all", "-n", NAMESPACE)
        for group in groups:
            kubernetes.apply(group.policy(stage.rocketmq.name_server), namespace=NAMESPACE)
        yield Town(stage, (*groups, *driven), kubeconfig)


@contextmanager
def scheduling(town: Town, folder: Path, minutes: int = 1) -> Iterator[Airflow]:
    """Give an Airflow that decides for the town every so many minutes, and a sampler that reads for it."""
    with ExitStack() as undo:
        patch = undo.enter_context(pytest.MonkeyPatch.context())
        for name, value in {**settings(town, folder), SETTING: str(minutes)}.items():
            patch.setenv(name, value)
        airflow = undo.enter_context(running_airflow(settings_in(folder), slots=3))
        undo.enter_context(sampling(town, folder))
        yield airflow


def _let_follow(stage: Stage) -> None:
    """Bind the role for the apply DAG to the one account under which all of Airflow runs here."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "consumer-planner-handover"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "airflow-follows"},
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}],
    }
    stage.kubernetes.apply(*documents("rbac/handover"), binding, namespace=NAMESPACE)


def settings(town: Town, folder: Path) -> Mapping[str, str]:
    """Return the variables of whoever decides for the town: where policies, data and rights are."""
    return {
        "KUBECONFIG": str(town.kubeconfig),
        "CONSUMER_PLANNER_KUBECONFIG": str(town.kubeconfig),
        "CONSUMER_PLANNER_POLICIES": f"k8s://{NAMESPACE}",
        "CONSUMER_PLANNER_DATA": str(folder / "data"),
        "CONSUMER_PLANNER_PAGES": "none",
        FILES_VARIABLE: str(folder),
    }


@contextmanager
def sampling(town: Town, folder: Path) -> Iterator[None]:
    """Let ``planner sample`` read the groups every ``SAMPLE_S`` seconds."""
    with standing(town, folder, "sample", "--every", f"{SAMPLE_S}s"):
        yield


@contextmanager
def standing(town: Town, folder: Path, command: str, *words: str) -> Iterator[ManagedProcess]:
    """Give a standing ``planner`` command on the town's policies, which is stopped in the end."""
    where = ["--policies", f"k8s://{NAMESPACE}", "--data", str(folder / "data")]
    argv = [sys.executable, "-m", "planner.cli.main", command, *where, *words]
    process = ManagedProcess(command, argv, folder, {"PYTHONPATH": str(ROOT), **settings(town, folder)})
    process.start()
    try:
        yield process
    finally:
        process.stop(60.0)


def start(stage: Stage, group: Group) -> None:
    """Make the group's Deployment; return once its pods are ready."""
    group.logs.mkdir(parents=True)
    log = f"{group.logs}/$(POD_NAME).tsv"
    options: dict[str, str | int | float] = {"threads": 2, "service-ms": 20, "persist-ms": 1000, "delivery-log": log}
    container = rocketmq_consumer(
        stage.rocketmq.name_server, group=group.name, topics=[group.topic], client_version=NEW, options=options
    )
    stage.kubernetes.apply(deployment(group.target, BEGIN, container), namespace=NAMESPACE)
    stage.kubernetes.await_available(NAMESPACE, group.target, PATIENT_S)


def send(stage: Stage, group: Group) -> ProducerProcess:
    """Send the group's day, evenly to its queues."""
    points = group.day.points(group.queues)
    return stage.load.start_producer(QueueCurve(group.topic, BROKER, queue, points) for queue in range(group.queues))


@contextmanager
def looking(town: Town, since_s: float) -> Iterator[None]:
    """Note what the Deployments show every ``LOOK_S`` seconds."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(LOOK_S):
            town.look(since_s)

    thread = threading.Thread(target=watch, name="looks")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def dump(town: Town, folder: Path) -> None:
    """Keep all plans and looks as a file for whoever wants to see more."""
    found = {group.name: {"plans": town.plans(group), "looks": group.ready} for group in town.groups}
    (folder / "soak.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    (folder / "policies.yaml").write_text(
        yaml.safe_dump_all(group.policy(town.stage.rocketmq.name_server) for group in town.groups), encoding="utf-8"
    )
