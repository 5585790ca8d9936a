"""The apply DAG: its form, its shape, and real runs against a real API server.

The group is a stand-in (``tests.pod_groups``): no broker is asked. Plans are carried out by ``planner apply`` in a
process of its own, as they would be by the controller; the DAG only hands over and follows.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.rollout.steps import AwaitReady, AwaitSettled, CheckForecast, StartConsumers, Step
from planner.rollout.steps import MovedQueues as Moves
from scripts.run_local import ROOT, Settings
from tests.clusters.kubernetes import ControlPlane, deployment
from tests.dags.answering import airflow_environment, awaited, settings_in
from tests.pod_groups import plan_for

pytestmark = [pytest.mark.airflow, pytest.mark.cluster, pytest.mark.timeout(2_700)]

DAG = "consumer_planner_apply"
APP = "app"
LIMIT_S = 600
PLANS = "/apis/consumerplanner.dev/v1alpha1/namespaces/{}/consumerrolloutplans"


def apply_dag(loaded: dict[str, Any]) -> dict[str, Any]:
    (dag,) = [dag for dag in loaded["dags"] if dag["dag_id"] == DAG]
    found: dict[str, Any] = dag
    return found


def test_nothing_is_followed_that_was_not_handed_over(ours: dict[str, Any]) -> None:
    tasks = apply_dag(ours)["tasks"]
    assert {name: task["downstream"] for name, task in tasks.items()} == {
        "read": ["choose"],
        "choose": ["ask", "hand_over"],
        "ask": ["hand_over"],
        "hand_over": ["follow"],
        "follow": [],
    }
    assert {tasks[name]["kind"] for name in ("ask", "follow")} == {"AskApproval", "FollowPlan"}


@pytest.mark.parametrize(
    ("param", "good", "bad"),
    [
        ("plan", ["/x/plan.yaml"], ["", None]),
        ("namespace", [None, "shop"], ["", 1]),
        ("kubeconfig", [None, "", "/x"], [1]),
        ("approve", ["already", "criteria", "ask"], ["", "never", None]),
        ("silence_seconds", [1, 300.5], [0, -1, "long", None]),
    ],
)
def test_the_form_refuses_what_no_task_could_use(
    ours: dict[str, Any], param: str, good: list[Any], bad: list[Any]
) -> None:
    validator = Draft202012Validator(apply_dag(ours)["params"][param])
    assert [value for value in good if not validator.is_valid(value)] == []
    assert [value for value in bad if validator.is_valid(value)] == []


class Shop:
    """A Deployment of two pods on a real control plane, and an Airflow of its own."""

    def __init__(self, cluster: ControlPlane, settings: Settings) -> None:
        self.cluster, self.settings = cluster, settings
        self.namespace = cluster.namespace("apply")
        cluster.apply(deployment(APP, 2, {"command": ["sleep", "3600"]}), namespace=self.namespace)
        cluster.await_available(self.namespace, APP)

    def write(self, name: str, steps: Sequence[Step], *, is_approved: bool = True) -> Path:
        """Write a plan that fits the Deployment as it is now, and return its file."""
        document = PLAN.document(plan_for(APP, self.pods(), steps), name, self.namespace)
        path = self.settings.work / f"{name}.yaml"
        path.write_text(PLAN.text(approved(document) if is_approved else document), encoding="utf-8")
        return path

    def conf(self, plan: Path, **more: Any) -> dict[str, Any]:
        return {"plan": str(plan), "kubeconfig": str(self.cluster.kubeconfig), **more}

    def dags_test(self, plan: Path, **more: Any) -> tuple[int, dict[str, dict[str, Any]]]:
        """Run the DAG by ``dag.test``; return its exit code, and by task the event that it ended with."""
        done = subprocess.run(
            [sys.executable, "-m", "scripts.run_dag", "1", json.dumps(self.conf(plan, **more)), DAG],
            cwd=ROOT,
            env=airflow_environment(self.settings),
            capture_output=True,
            text=True,
            check=False,
        )
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"event"')]
        assert events, done.stdout[-4000:] + done.stderr[-4000:]
        return done.returncode, {event["stage"]: event for event in events if event["event"] != "begun"}

    def pods(self) -> list[str]:
        found = self.cluster.rest.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return sorted(one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"])

    def plan(self, name: str) -> dict[str, Any] | None:
        found = self.cluster.rest.get(PLANS.format(self.namespace))["items"]
        return next((dict(one) for one in found if one["metadata"]["name"] == name), None)

    @contextmanager
    def executor(self, plan: Path) -> Iterator[None]:
        """Have somebody carry the plan out as soon as it is in the cluster, and wait until that has ended."""
        command = [sys.executable, "-m", "tests.pod_groups", "apply", str(plan)]

        def work() -> None:
            awaited(lambda: self.plan(plan.stem), f"plan {plan.stem}")
            options = ["--kubeconfig", str(self.cluster.kubeconfig)]
            with (self.settings.work / f"{plan.stem}-executor.log").open("wb") as log:
                subprocess.run([*command, *options], cwd=ROOT, stdout=log, stderr=log, check=False)

        thread = threading.Thread(target=work)
        thread.start()
        yield
        thread.join()


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        definitions = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "k8s" / "crds").glob("con*.yaml"))]
        running.define(*definitions)
        yield running


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("apply"))


@pytest.fixture
def shop(cluster: ControlPlane, settings: Settings) -> Iterator[Shop]:
    found = Shop(cluster, settings)
    yield found
    cluster.kubectl("delete", "deployment", APP, "-n", found.namespace)


def up() -> tuple[Step, ...]:
    return (
        StartConsumers(2, 3, LIMIT_S, Moves(0, 8), undo="set 2"),
        AwaitReady(3, LIMIT_S),
        AwaitSettled(3, "AVG", LIMIT_S),
        CheckForecast(LIMIT_S),
    )


def test_a_refusal_fails_the_run_with_one_sentence_that_names_the_difference(shop: Shop) -> None:
    plan = shop.write("stale", up())
    shop.cluster.kubectl("scale", "-n", shop.namespace, f"deployment/{APP}", "--replicas=4")
    shop.cluster.await_available(shop.namespace, APP)
    with shop.executor(plan):
        code, ended = shop.dags_test(plan)
    assert (code, ended["follow"]["event"]) == (1, "failed")
    assert ended["follow"]["sentence"].startswith("plan stale is Refused: ")
    assert "ReplicasChanged: " in ended["follow"]["sentence"]
    assert len(shop.pods()) == 4


def test_where_no_controller_runs_it_says_so(shop: Shop) -> None:
    code, ended = shop.dags_test(shop.write("lonely", up()), silence_seconds=5)
    assert (code, ended["follow"]["event"]) == (1, "failed")
    assert f"nobody has worked on plan {shop.namespace}/lonely for 5 s" in ended["follow"]["sentence"]


def test_a_plan_that_nobody_approved_does_not_reach_the_cluster(shop: Shop) -> None:
    code, ended = shop.dags_test(shop.write("waiting", up(), is_approved=False))
    assert (code, ended["hand_over"]["event"]) == (1, "failed")
    assert "plan waiting is not approved: planner approve " in ended["hand_over"]["sentence"]
    assert shop.plan("waiting") is None
