"""Both DAGs of changes under a real scheduler and triggerer, with real brokers, pods, control plane and controller.

There is one worker slot only: whatever waited in it would have all else wait. The group is that of ``make demo``; each
migration gives its pods another annotation, so that all of them are replaced.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from planner import migration_stages as stages
from planner.documents.approve import APPROVED_BY_ANNOTATION
from planner.handover import PlanMessage
from scripts.demo_stage import HOME, NAMESPACE, QUIET, Stage, open_stage
from tests.clusters.kubernetes.rest import Json
from tests.dags.answering import PATIENCE_S, awaited, settings_in
from tests.dags.scheduling import Airflow, running_airflow
from tests.pod_controllers import grant, status_of

pytestmark = [pytest.mark.airflow, pytest.mark.cluster, pytest.mark.timeout(2_700)]

MIGRATION, APPLY = "consumer_planner_migration", "consumer_planner_apply"
WATCH_S = 5.0
PLANS = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{NAMESPACE}/consumerrolloutplans"


def turn(number: int) -> dict[str, Any]:
    """Return the request for a migration that replaces all pods by new ones."""
    return {"kind": "update", "change": {"annotations": [{"name": "example.com/turn", "value": str(number)}]}}


@dataclass(frozen=True)
class World:
    """An Airflow and the stage that its DAGs act on."""

    airflow: Airflow
    stage: Stage
    folder: Path

    @property
    def kubeconfig(self) -> str:
        """The administrator's file."""
        return str(self.stage.kubernetes.kubeconfig)

    def written(self, number: int) -> PlanMessage:
        """Watch the group, and write a plan that nobody has approved."""
        seen = stages.observe(self.stage.policy_file, self.folder / f"data-{number}", turn(number), WATCH_S)
        return stages.plan(seen, turn(number))

    def pause(self, plan: str, *, is_paused: bool) -> None:
        """Have the controller stop before its next effect, or go on."""
        note = "consumerplanner.dev/pause=true" if is_paused else "consumerplanner.dev/pause-"
        self.stage.kubernetes.kubectl("annotate", "-n", NAMESPACE, f"crp/{plan}", note)

    def plans(self) -> dict[str, Json]:
        """Return the plans in the cluster by name."""
        return {one["metadata"]["name"]: one for one in self.stage.kubernetes.rest.get(PLANS)["items"]}

    def phase(self, plan: str) -> str:
        """Return how far a plan is."""
        return str(status_of(self.stage.kubernetes, NAMESPACE, plan).get("phase"))

    def ask(self, number: int, answer: str) -> tuple[str, PlanMessage]:
        """Run the apply DAG on a new plan, answer its question; return its run and the plan."""
        message, run = self.written(number), f"ask-{number}"
        conf = {"plan": message["file"], "kubeconfig": self.kubeconfig, "approve": "ask"}
        self.airflow.trigger(APPLY, run, conf)
        assert message["name"] in self.airflow.server.question(APPLY)["subject"]
        assert message["name"] not in self.plans(), "nothing is handed over before the answer"
        self.airflow.answer(APPLY, run, answer)
        return run, message


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("scheduler")
    settings = settings_in(folder)
    with open_stage(folder) as stage, running_airflow(settings) as airflow:
        stage.produce(QUIET)
        stage.await_controller()
        grant(stage.kubernetes, HOME, NAMESPACE, "executor-migrations")
        awaited(lambda: {MIGRATION, APPLY} <= airflow.dags().keys(), "both DAGs")
        yield World(airflow, stage, folder)


def test_dags_that_people_start_are_ready_to_start_and_the_scheduled_one_waits(world: World) -> None:
    assert world.airflow.dags() == {"consumer_planner": True, APPLY: False, MIGRATION: False}


def test_a_migration_is_asked_for_handed_over_and_followed_without_a_slot_whatever_happens_to_the_triggerer(
    world: World,
) -> None:
    airflow = world.airflow
    conf = {
        "policy": str(world.stage.policy_file),
        "migration": turn(1),
        "data": str(world.folder / "data-1"),
        "watch_seconds": WATCH_S,
        "kubeconfig": world.kubeconfig,
    }
    airflow.trigger(MIGRATION, "migration", conf)
    airflow.answer(MIGRATION, "migration", "Approve")
    assert airflow.ended(MIGRATION, "migration") == "success"
    (run,) = [one["dag_run_id"] for one in airflow.runs(APPLY)]
    (plan,) = awaited(world.plans, "the plan in the cluster")
    world.pause(plan, is_paused=True)
    airflow.await_task(APPLY, run, "follow", "deferred")

    # It holds no slot: with the only one another run comes to its end, in which a person says no.
    rejected, refused = world.ask(2, "Reject")
    assert airflow.ended(APPLY, rejected) == "success"
    tasks = airflow.tasks(APPLY, rejected)
    assert {name: tasks[name]["state"] for name in ("hand_over", "follow")} == dict.fromkeys(
        ("hand_over", "follow"), "skipped"
    )
    assert refused["name"] not in world.plans()
    assert airflow.await_task(APPLY, run, "follow", "deferred")["try_number"] == 1

    airflow.clear(APPLY, run, "follow")
    awaited(lambda: airflow.tasks(APPLY, run)["follow"]["try_number"] == 2, "another try")
    airflow.await_task(APPLY, run, "follow", "deferred")

    restart(airflow)
    assert world.phase(plan) not in ("Succeeded", "Failed")
    world.pause(plan, is_paused=False)
    assert airflow.ended(APPLY, run) == "success"
    assert world.phase(plan) == "Succeeded"
    told = airflow.result(APPLY, run, "follow")
    assert (told["plan"], told["phase"], told["is_good"]) == (plan, "Succeeded", True)

    before = world.plans()[plan]
    airflow.clear(APPLY, run, "follow")
    awaited(lambda: airflow.tasks(APPLY, run)["follow"]["try_number"] == 3, "another try")
    assert airflow.ended(APPLY, run) == "success"
    assert world.plans()[plan] == before, "to follow it again changes nothing"


def restart(airflow: Airflow) -> None:
    """Kill the triggerer as a crash does, and start it again."""
    children = psutil.Process(airflow.triggerer.pid).children(recursive=True)
    airflow.triggerer.kill()
    assert psutil.wait_procs(children, PATIENCE_S)[1] == [], "what runs triggers ends with the triggerer"
    airflow.triggerer.start()


def test_a_yes_to_the_apply_dag_approves_the_plan_and_has_it_carried_out(world: World) -> None:
    run, message = world.ask(3, "Approve")
    assert world.airflow.ended(APPLY, run) == "success"
    stored = world.plans()[message["name"]]
    assert stored["status"]["phase"] == "Succeeded"
    assert stored["status"]["approval"]["digest"] == message["digest"]
    assert stored["metadata"]["annotations"][APPROVED_BY_ANNOTATION] == "admin"
