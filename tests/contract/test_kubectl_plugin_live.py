"""``kubectl planner`` as people type it: the real kubectl finds the plugin, which talks to a real API server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from planner.deployments.api import RolloutApi
from planner.deployments.plans import ClusterPlans
from planner.documents.plan import PLAN
from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from planner.rollout.steps import AwaitReady
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.build import control_plane_binary
from tests.clusters.kubernetes.rest import Json
from tests.pod_groups import plan_for
from tests.unit.packaging.images import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

Run = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Desk:
    """A shell with kubectl and the plugin on its path, whose context names a namespace of plans."""

    cluster: ControlPlane
    namespace: str
    environment: dict[str, str]

    def planner(self, *arguments: str, typed: str = "") -> Run:
        command = [str(control_plane_binary()), "kubectl", "planner", *arguments]
        return subprocess.run(
            command, env=self.environment, input=typed, capture_output=True, text=True, timeout=900, check=False
        )

    def plan(self, name: str, status: RolloutStatus | None = None) -> str:
        """Apply a plan, with this status if any; return its digest."""
        made = plan_for("app", ["a", "b"], [AwaitReady(2, 60)])
        document = PLAN.text(PLAN.document(made, name, self.namespace))
        self.cluster.kubectl("apply", "-f", "-", text=document)
        if status is not None:
            with RolloutApi.connect(self.cluster.kubeconfig) as api:
                plans = ClusterPlans(api, self.namespace)
                stored = plans.read(name)
                assert stored is not None
                plans.write_status(stored, status)
        return PLAN.digest(made)

    def annotations(self, name: str) -> Json:
        path = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{self.namespace}/consumerrolloutplans/{name}"
        found = self.cluster.rest.get(path)["metadata"].get("annotations", {})
        return {key.removeprefix("consumerplanner.dev/"): value for key, value in found.items()}


@pytest.fixture(scope="module")
def desk(control_plane_with_plans: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    cluster, folder = control_plane_with_plans, tmp_path_factory.mktemp("desk")
    namespace = cluster.namespace("desk")
    plugin = folder / "kubectl-planner"
    plugin.write_text(f'#!/bin/sh\nexec {sys.executable} -m planner.cli.kubectl "$@"\n')
    plugin.chmod(0o755)
    login = yaml.safe_load(cluster.kubeconfig.read_text())
    login["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = folder / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(yaml.safe_dump(login))
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    yield Desk(cluster, namespace, os.environ | own)


def test_approve_shows_asks_and_sends_exactly_what_was_shown(desk: Desk) -> None:
    """Red when silence or a no approves, or when the context's namespace is not taken."""
    digest = desk.plan("asked")
    for typed in ("", "\n", "n\n"):
        refused = desk.planner("approve", "asked", typed=typed)
        assert refused.returncode == 1, refused.stderr
        assert "approve" not in desk.annotations("asked")
    done = desk.planner("approve", "asked", typed="y\n")
    assert done.returncode == 0, done.stderr
    assert f"Approve plan asked with digest {digest}?" in done.stdout
    assert "because" in done.stdout, "the plan's reason is shown before the question"
    assert desk.annotations("asked")["approve"] == digest


def test_pause_resume_and_abort_are_asked_of_who_carries_it_out(desk: Desk) -> None:
    desk.plan("paused", RolloutStatus(Phase.RUNNING, "2 of 3 pods are ready"))
    assert desk.planner("pause", "paused").returncode == 0
    assert desk.annotations("paused")["pause"] == "true"
    assert desk.planner("resume", "paused").returncode == 0
    assert "pause" not in desk.annotations("paused")
    assert desk.planner("abort", "paused", typed="n\n").returncode == 1
    assert "abort" not in desk.annotations("paused")
    asked = desk.planner("abort", "paused", typed="y\n")
    assert asked.returncode == 0
    assert "Plan paused is asked to undo what it has done; kubectl planner get paused -w" in asked.stdout
    assert desk.annotations("paused")["abort"] == "true"


def test_get_and_history_say_where_plans_stand_and_how_they_ended(desk: Desk) -> None:
    now = datetime.now(UTC)
    desk.plan("first", RolloutStatus(Phase.SUCCEEDED, "done", phase_since=now - timedelta(hours=2)))
    desk.plan("second", RolloutStatus(Phase.ROLLED_BACK, "undone", phase_since=now - timedelta(hours=1)))
    desk.plan("open")
    every = desk.planner("get")
    assert {"first", "second", "open"} <= {line.split()[0] for line in every.stdout.splitlines()}
    assert "Succeeded: done" in desk.planner("get", "first").stdout
    watched = desk.planner("get", "first", "-w")
    assert (watched.returncode, watched.stdout.split()[:3]) == (0, ["first", "billing", "Succeeded"])
    ended = desk.planner("history").stdout
    assert ended.index("second") < ended.index("first")
    assert "open" not in ended
    answer = yaml.safe_load(desk.planner("history", "--format", "yaml").stdout)
    assert (answer["kind"], [one["plan"] for one in answer["items"]][:2]) == ("RolloutHistory", ["second", "first"])


def test_a_plan_that_is_not_there_or_has_ended_is_one_sentence(desk: Desk) -> None:
    desk.plan("ended", RolloutStatus(Phase.EXPIRED, "over", phase_since=datetime.now(UTC)))
    for arguments, said in (
        (("get", "absent"), f"there is no plan absent in namespace {desk.namespace}"),
        (("pause", "ended"), "plan ended has ended as Expired: there is nothing to pause"),
        (("resume", "ended"), "plan ended has ended as Expired: there is nothing to resume"),
        (("approve", "ended"), "plan ended has ended as Expired"),
        (("abort", "ended"), "plan ended has ended as Expired"),
        (("get", "-w", "--format", "json"), "--watch prints lines"),
    ):
        found = desk.planner(*arguments)
        assert (found.returncode, found.stdout) == (2, "")
        assert said in found.stderr
        assert "Traceback" not in found.stderr


def test_a_plan_that_nothing_holds_has_no_reason_in_kubectls_wide_columns(desk: Desk) -> None:
    """Red when the column takes a field that is null: kubectl prints "<no value>" for it."""
    desk.plan("held", RolloutStatus(Phase.RUNNING, "goes on", held="2 of 3 pods are ready"))
    desk.plan("free", RolloutStatus(Phase.RUNNING, "goes on"))
    wide = desk.cluster.kubectl("get", "crp", "-n", desk.namespace, "-o", "wide")
    assert "2 of 3 pods are ready" in wide
    assert "<no value>" not in wide
