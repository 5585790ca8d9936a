"""What ``make demo`` plays on: a broker, consumers in pods, a control plane with the controller at work, and load."""

import base64
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.documents.tenant_files import FILES_VARIABLE, HOSTS_VARIABLE, address_of_url
from planner.documents.yaml import dump_yaml
from planner.storage.files import write_atomically
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.clusters.kubernetes.consumers import rocketmq_consumer
from tests.clusters.launcher import Launcher
from tests.clusters.processes import ManagedProcess
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import ProducerProcess, QueueCurve, RocketMQLoad

ROOT = Path(__file__).resolve().parents[1]
GROUP, TOPIC, DEPLOYMENT = "shop-orders", "orders", "shop-orders-consumer"
NAMESPACE, HOME = "shop", "consumer-planner"
"""The namespaces of the consumers and their plans, and of the controller."""

BROKER, QUEUES = "broker-a", 12
FEWEST, MOST = 2, 6
CAPACITY, SERVICE_MS = 100, 20
"""Messages per second of one consumer: two threads that spend so many milliseconds on each message."""

QUIET, BUSY = 60.0, 250.0
"""Messages per second before and after the load rises; two consumers can do 200."""

LONGEST_S = 86_400.0
"""A producer ends by itself after so long."""

PATIENT_S = 1_800
"""A limit against hanging only, for what takes seconds: a machine may be a hundred times slower."""

CONTROLLER = "consumer-planner-controller"


@dataclass
class Stage:
    """All that runs. ``policy_file`` lies in the folder of policies that the DAG reads.

    The load and what a consumer can do are ``pace`` times what the constants above say.
    """

    rocketmq: RocketMQCluster
    kubernetes: ControlPlane
    load: RocketMQLoad
    policy_file: Path
    pace: float
    _controller: "Future[ManagedProcess]"

    @property
    def policy(self) -> ConsumerScalingPolicy:
        """What the team wants of its group."""
        return parse_policy(self.policy_file.read_text(encoding="utf-8"), str(self.policy_file))

    def produce(self, messages_per_s: float) -> ProducerProcess:
        """Start sending ``pace`` times so many messages per second, evenly to all queues, until it is stopped."""
        rate = self.pace * messages_per_s / QUEUES
        points = ((0.0, rate), (LONGEST_S, rate))
        return self.load.start_producer(QueueCurve(TOPIC, BROKER, queue, points) for queue in range(QUEUES))

    def start_consumers(self, group: str, name: str) -> None:
        """Start a Deployment of ``FEWEST`` consumers of the group, and return once they are ready."""
        # Offsets are stored every second instead of every five, so that the page's lag is sharp.
        options = {"threads": 2, "service-ms": round(SERVICE_MS / self.pace), "persist-ms": 1000}
        container = rocketmq_consumer(
            self.rocketmq.name_server, group=group, topics=[TOPIC], client_version=NEW, options=options
        )
        self.kubernetes.apply(deployment(name, FEWEST, container), namespace=NAMESPACE)
        self.kubernetes.await_available(NAMESPACE, name, PATIENT_S)

    def await_controller(self) -> None:
        """Return once plans can be made and the controller leads. Raises ``StartFailedError``."""
        self._controller.result()


@contextmanager
def open_stage(
    folder: Path, options: Sequence[str] = (), autoscaler_sync_s: int = 2, pace: float = 1.0
) -> Iterator[Stage]:
    """Give the stage with ``FEWEST`` consumers ready; at the end nothing of it is left. The controller has ``options``.

    What plans need is being installed meanwhile, see ``Stage.await_controller``: an API server takes up to a minute
    until it lets a new kind through its admission policies. At a ``pace`` of 1 broker and consumers take most of a
    processor.
    """
    with ExitStack() as undo:
        starts: tuple[Callable[[], Launcher], ...] = (
            lambda: RocketMQCluster.start(NEW, 1),
            lambda: ControlPlane.start(autoscaler_sync_s),
        )
        rocketmq, kubernetes = _started(starts, undo)
        assert isinstance(rocketmq, RocketMQCluster)
        assert isinstance(kubernetes, ControlPlane)
        for name in (NAMESPACE, HOME):
            kubernetes.kubectl("create", "namespace", name)
        policy_file = _write_policy(folder / "policies" / "shop-orders.yaml", rocketmq, kubernetes, CAPACITY * pace)
        pool = undo.enter_context(ThreadPoolExecutor())
        controller = pool.submit(_install_and_lead, kubernetes, policy_file, options)
        undo.callback(_stop_controller, controller, kubernetes)
        rocketmq.create_topic(TOPIC, QUEUES)
        stage = Stage(rocketmq, kubernetes, rocketmq.load(NEW), policy_file, pace, controller)
        stage.start_consumers(GROUP, DEPLOYMENT)
        yield stage


def _started(starts: Sequence[Callable[[], Launcher]], undo: ExitStack) -> Sequence[Launcher]:
    """Return what the functions start, side by side; where one fails the others are stopped, too."""
    pool = undo.enter_context(ThreadPoolExecutor())
    futures = [pool.submit(start) for start in starts]
    undo.callback(_stop_together, futures)
    return [future.result() for future in futures]


def _stop_together(started: Sequence["Future[Launcher]"]) -> None:
    """Stop them side by side: each waits for processes of its own."""
    with ThreadPoolExecutor() as pool:
        for stopped in [pool.submit(_stop, one) for one in started]:
            stopped.result()


def _stop(started: "Future[Launcher] | Future[ManagedProcess]") -> None:
    """Stop what has been started, once it has; nothing where it could not be."""
    if started.exception() is None:
        started.result().stop()


def _stop_controller(started: "Future[ManagedProcess]", kubernetes: ControlPlane) -> None:
    if not started.done():
        kubernetes.stop()  # what it waits for never comes then, and that is said at once
    _stop(started)


def _install_and_lead(kubernetes: ControlPlane, policy_file: Path, options: Sequence[str]) -> ManagedProcess:
    """Install what plans need and the team's policy; return the controller, which leads."""
    _install(kubernetes)
    kubernetes.apply(yaml.safe_load(policy_file.read_text(encoding="utf-8")), namespace=NAMESPACE)
    return _controller(kubernetes, options)


def _install(kubernetes: ControlPlane) -> None:
    """Install what a cluster administrator installs once, from ``k8s/``."""
    definitions = _documents("crds")
    kubernetes.define(*definitions)
    kubernetes.admit(_documents("admission"), definitions)
    for file in ("rbac/controller.yaml", "rbac/executor.yaml"):
        for document in yaml.safe_load_all((ROOT / "k8s" / file).read_text(encoding="utf-8")):
            kubernetes.apply(document, namespace=document["metadata"].get("namespace", NAMESPACE))


def _documents(folder: str) -> list[Any]:
    files = sorted((ROOT / "k8s" / folder).glob("*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def _write_policy(path: Path, rocketmq: RocketMQCluster, kubernetes: ControlPlane, capacity: float) -> Path:
    spec = {
        "source": {
            "system": "rocketmq",
            "nameServers": [rocketmq.name_server],
            "cluster": "DefaultCluster",
            "group": GROUP,
        },
        "scaleTargetRef": {"name": DEPLOYMENT},
        "kubernetes": {"kubeconfigFile": str(_file_of_the_policy(kubernetes))},
        "minReplicas": FEWEST,
        "maxReplicas": MOST,
        "objective": {"maxUtilisation": 0.8},
        # Learned from history otherwise, which takes more of it than a demo has.
        "capacity": {"messagesPerSecond": capacity},
        "window": {"seconds": 60},
        "freshness": {"minCompleteness": 0.2, "maxAgeSeconds": PATIENT_S},
        "rollout": {"validForSeconds": 2 * PATIENT_S, "readySeconds": PATIENT_S, "settledSeconds": PATIENT_S},
    }
    document = {
        "apiVersion": "consumerplanner.dev/v1alpha1",
        "kind": "ConsumerScalingPolicy",
        "metadata": {"name": GROUP, "namespace": NAMESPACE},
        "spec": spec,
    }
    return write_atomically(path, dump_yaml(document))


def file_rules(kubernetes: ControlPlane) -> Mapping[str, str]:
    """Return the variables by which policies of the namespace may name its files and this API server."""
    listed = {NAMESPACE: [address_of_url(kubernetes.server)]}
    return {FILES_VARIABLE: str(kubernetes.directory), HOSTS_VARIABLE: json.dumps(listed)}


def _file_of_the_policy(kubernetes: ControlPlane) -> Path:
    """Return a kubeconfig where the controller lets policies of the namespace name files.

    Its authority stands in it, as a file that a policy names may name no further one.
    """
    content = yaml.safe_load(kubernetes.kubeconfig.read_text())
    authority = base64.b64encode(kubernetes.ca_file.read_bytes()).decode()
    for entry in content["clusters"]:
        entry["cluster"] = {"server": entry["cluster"]["server"], "certificate-authority-data": authority}
    return write_atomically(kubernetes.directory / NAMESPACE / "kubeconfig", dump_yaml(content))


def _controller(kubernetes: ControlPlane, options: Sequence[str]) -> ManagedProcess:
    """Return the controller, leading: it runs as in a cluster, with the rights of its own account and no more."""
    kubeconfig = kubernetes.kubeconfig_for(kubernetes.token(HOME, CONTROLLER), "controller")
    flags = {
        "--kubeconfig": str(kubeconfig),
        "--namespace": NAMESPACE,
        "--leader-namespace": HOME,
        "--listen-address": "127.0.0.1",
        "--health-port": "0",
        "--metrics-port": "0",
    }
    words = [word for pair in flags.items() for word in pair]
    argv = [sys.executable, "-m", "planner.controller", *words, *options]
    environment = {"PYTHONPATH": str(ROOT), **file_rules(kubernetes)}
    process = ManagedProcess("controller", argv, kubernetes.directory, environment)
    process.start()
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"
    try:
        process.wait_until("its lead", lambda: kubernetes.rest.get(lease)["items"], PATIENT_S)
    except BaseException:
        process.stop()
        raise
    return process
