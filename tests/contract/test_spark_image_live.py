"""The Spark image, carried out step by step; its driver and executors as Spark's own Kubernetes master starts them."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyarrow import parquet

from planner import pipeline
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.format import canonical
from planner.documents.policy_folder import read_policies
from planner.sources.capture import open_capture
from planner.storage.layout import RunFolder
from tests.clusters.artifacts import find_program
from tests.clusters.errors import StartFailedError
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.images import Image
from tests.pod_controllers import documents
from tests.unit.packaging.images import ROOT, Built, as_user, built, mount_points, read_only

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(2_700)]

NAME = "consumer-planner-spark:0.1.0"
APPS = "/opt/consumer-planner"
DIGEST = "this-machine@sha256:" + "0" * 64
EXECUTORS = 2
JOB_S = 1_800.0


@dataclass(frozen=True)
class Container:
    """The image with what stands before each command of a container made from it."""

    image: Built
    words: tuple[str, ...]

    def run(self, *arguments: str) -> tuple[int, str]:
        """Return exit code and standard error of the entry point."""
        ended = self.image.run(*self.words, *self.image.file.entry_point(), *arguments, cwd="/tmp")
        return ended.returncode, ended.stderr


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    """The image, built as its Dockerfile says: a read-only root but for /tmp, its own user, its apps in their place."""
    java = Path(find_program("java")).resolve().parents[1]
    # Not pytest's own folder, which is closed to other users.
    with tempfile.TemporaryDirectory(prefix="planner-image-") as folder, mount_points(APPS):
        Path(folder).chmod(0o755)
        image = built("spark", Path(folder), {"PYTHON_IMAGE": DIGEST, "JAVA_IMAGE": DIGEST, "JAVA": str(java)})
        placed = {place: image.root / place.lstrip("/") for place in (APPS, "/etc/passwd")}
        placed[str(image.root)] = image.root  # it lies in /tmp, which can be written
        yield Container(image, (*read_only("/tmp", placed=placed), *as_user(image)))


def test_the_image_knows_its_user_and_runs_on_a_read_only_root(container: Container) -> None:
    told = container.image.run(
        *container.words, "python3", "-c", "import getpass, os; print(getpass.getuser(), os.getuid())"
    )
    assert told.stdout.split() == ["planner", "65532"], told.stderr
    for place in (container.image.prefix, Path(APPS), Path("/etc")):
        assert "Read-only" in container.image.run(*container.words, "touch", str(place / "new")).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no argument was given, expected driver, executor, or a command"),
        (("driver",), "driver was given no application, expected what spark-submit takes"),
        (("driver", "local:///app.py"), "SPARK_DRIVER_BIND_ADDRESS is not set: Spark's Kubernetes master sets it"),
        (("executor",), "SPARK_EXECUTOR_MEMORY is not set"),
        (
            ("drivr", "local:///app.py"),
            "drivr cannot be run (No such file or directory): expected driver, executor, or",
        ),
    ],
    ids=["nothing", "no application", "no address", "no memory", "unknown"],
)
def test_wrong_input_is_one_sentence(container: Container, arguments: tuple[str, ...], said: str) -> None:
    code, error = container.run(*arguments)
    assert code == 2, error
    assert error.startswith(f"entrypoint: {said}")
    assert error.count("\n") == 1


def test_other_commands_of_the_image_are_run_as_they_are(container: Container) -> None:
    code, error = container.run("planner", "allocate", "--help")
    assert (code, error) == (0, "")


@dataclass(frozen=True)
class Job:
    """What the simulate app works on, and what it must come to."""

    data: Path
    policies: Path
    at: str
    run: RunFolder
    wanted: list[str]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """The bundled recording's group at its end."""
    policies = ROOT / "examples" / "policies"
    (policy,) = read_policies(policies)
    capture = open_capture(ROOT / "examples" / "captures" / "two-brokers-day")
    at = capture.header.ended_at
    samples = tuple(capture.samples(policy.spec.source.group))
    snapshot = pipeline.take_snapshot(samples, capture.header.sample_every_s, policy, at)
    run = RunFolder.of(tmp_path, at)
    run.snapshots.mkdir(parents=True)
    run.snapshot(policy.metadata.name).write_bytes(SNAPSHOT.dump(snapshot))
    outcomes = pipeline.simulate(snapshot, policy)
    wanted = [canonical(OUTCOMES.body((outcome,))[0]).decode() for outcome in outcomes]
    return Job(tmp_path, policies, at.isoformat(), run, wanted)


def driver(cluster: ControlPlane, name: str, job: Job) -> dict[str, object]:
    """Return the pod of a driver as ``spark-submit`` in cluster mode makes it, but for its file of settings.

    The stand-in for the kubelet has no volumes, so settings are arguments; and local folders of executors, which are
    volumes of their own, lie in /tmp.
    """
    settings = {
        "spark.kubernetes.container.image": NAME,
        "spark.kubernetes.driver.pod.name": name,
        "spark.driver.host": "$(SPARK_DRIVER_BIND_ADDRESS)",
        "spark.executor.instances": str(EXECUTORS),
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.mount.path": "/tmp/spark-local",
        "spark.executorEnv.SPARK_LOG_LEVEL": "INFO",
    }
    app = ["local:///opt/consumer-planner/spark_apps/simulate/app.py"]
    given = ["--data", str(job.data), "--policies", str(job.policies), "--at", job.at]
    namespace = ["--conf", "spark.kubernetes.namespace=$(NAMESPACE)"]
    told = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    fields = {"SPARK_DRIVER_BIND_ADDRESS": "status.podIP", "NAMESPACE": "metadata.namespace"}
    main = {
        "name": "spark-kubernetes-driver",
        "image": NAME,
        "args": ["driver", "--master", f"k8s://{cluster.server}", *namespace, *told, *app, *given],
        "env": [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()],
    }
    spec = {"serviceAccountName": "spark", "restartPolicy": "Never", "containers": [main]}
    return {"metadata": {"name": name, "labels": {"spark-role": "driver"}}, "spec": spec}


def test_a_job_runs_on_executors_that_kubernetes_starts(
    control_plane: ControlPlane, container: Container, job: Job
) -> None:
    image = container.image
    control_plane.kubelet.images[NAME] = Image((*container.words, *image.file.entry_point()), image.environment)
    namespace = control_plane.namespace("spark")
    control_plane.kubectl("create", "serviceaccount", "spark", "-n", namespace)
    # Our own role and no other: red when a right that Spark needs is missing.
    control_plane.apply(*documents("rbac/spark"), namespace=namespace)
    account = ("--role", "consumer-planner-spark", "--serviceaccount", f"{namespace}:spark")
    control_plane.kubectl("create", "rolebinding", "spark", "-n", namespace, *account)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    control_plane.rest.create(pods, driver(control_plane, "simulate", job))
    executors: set[str] = set()

    def ended() -> str | None:
        found = control_plane.rest.get(pods)["items"]
        executors.update(one["metadata"]["name"] for one in found if one["metadata"]["name"] != "simulate")
        phases = {one["metadata"]["name"]: one["status"]["phase"] for one in found}
        return phases["simulate"] if phases["simulate"] in ("Succeeded", "Failed") else None

    def log(pod: str, role: str) -> str:
        return control_plane.kubelet.log(namespace, pod, f"spark-kubernetes-{role}")

    try:
        phase = control_plane.wait_until("the job's end", ended, JOB_S)
    except StartFailedError as error:
        raise AssertionError(log("simulate", "driver")) from error
    said = log("simulate", "driver")
    assert phase == "Succeeded", said
    # It would try to list claims for executors' local folders, of which there are none here.
    refused = [line for line in said.splitlines() if "is forbidden" in line and "persistentvolumeclaims" not in line]
    assert refused == []
    assert f"stage simulate: 1 snapshots -> {len(job.wanted)} outcomes in " in said
    assert len(executors) == EXECUTORS
    for one in executors:
        assert "Successfully registered with driver" in log(one, "executor"), log(one, "executor")
    assert parquet.read_table(job.run.outcomes).sort_by("position")["outcome"].to_pylist() == job.wanted
