"""All DAGs under a real scheduler and triggerer, with real brokers, pods, control plane and controller.

There is one worker slot only: whatever waited in it would have all else wait. The group is that of ``make demo``; each
migration gives its pods another annotation, so that all of them are replaced. In the end the scheduled DAG decides on
the policies of the namespace, and a person answers for its plans in Chromium.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from planner.approval.handover import PlanMessage
from planner.approval.offers import describe_answer, read_answer
from planner.documents.approve import APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION
from planner.runs import migration
from scripts.demo_stage import BUSY, GROUP, HOME, NAMESPACE, QUIET, Stage, file_rules, open_stage
from tests.clusters.kubernetes.rest import Json
from tests.dags.answering import PATIENCE_S, awaited, settings_in
from tests.dags.scheduling import Airflow, running_airflow
from tests.pod_controllers import grant, status_of
from tests.report.test_browser import browser  # noqa: F401

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.browser,
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.usefixtures("java"),
    pytest.mark.timeout(2_700),
]

SCHEDULED, APPROVAL = "consumer_planner", "consumer_planner_approval"
MIGRATION, APPLY = "consumer_planner_migration", "consumer_planner_apply"
OTHER = "shop-refunds"
"""A second group, on the same topic."""
PACE = 0.2
"""Of the load of ``make demo``, which takes nearly a processor."""
REASON = "not before the sale"
WATCH_S = 5.0
OBJECTS = f"/apis/consumerplanner.dev/v1alpha1/namespaces/{NAMESPACE}"
PLANS, POLICIES = f"{OBJECTS}/consumerrolloutplans", f"{OBJECTS}/consumerscalingpolicies"


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
        seen = migration.observe(self.stage.policy_file, self.folder / f"data-{number}", turn(number), WATCH_S)
        return migration.plan(seen, turn(number))

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
    with ExitStack() as undo:
        stage = undo.enter_context(open_stage(folder, pace=PACE))
        patch = undo.enter_context(pytest.MonkeyPatch.context())
        kubeconfig = str(stage.kubernetes.kubeconfig)
        # The scheduled DAG takes its policies from the namespace, as a worker's own account reaches it.
        patch.setenv("KUBECONFIG", kubeconfig)
        patch.setenv("CONSUMER_PLANNER_KUBECONFIG", kubeconfig)
        patch.setenv("CONSUMER_PLANNER_POLICIES", f"k8s://{NAMESPACE}")
        patch.setenv("CONSUMER_PLANNER_DATA", str(folder / "data"))
        # The hour seldom strikes meanwhile: a second run would hold the one slot while it watches.
        patch.setenv("CONSUMER_PLANNER_EVERY_MINUTES", "60")
        for name, value in file_rules(stage.kubernetes).items():
            patch.setenv(name, value)
        airflow = undo.enter_context(running_airflow(settings))
        stage.produce(QUIET)
        stage.await_controller()
        grant(stage.kubernetes, HOME, NAMESPACE, "executor-migrations")
        awaited(lambda: {MIGRATION, APPLY} <= airflow.dags().keys(), "both DAGs")
        yield World(airflow, stage, folder)


def test_dags_that_people_start_are_ready_to_start_and_the_scheduled_one_waits(world: World) -> None:
    assert world.airflow.dags() == {
        SCHEDULED: True,
        **dict.fromkeys((APPROVAL, APPLY, MIGRATION, "consumer_planner_replay"), False),
    }


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
    airflow.clear(APPLY, run, "hand_over", "follow")
    awaited(lambda: airflow.tasks(APPLY, run)["follow"]["try_number"] == 3, "another try")
    assert airflow.ended(APPLY, run) == "success"
    assert airflow.tasks(APPLY, run)["hand_over"]["try_number"] == 2
    assert world.plans()[plan] == before, "to hand it over and follow it again changes nothing"


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
    runs = {one["dag_run_id"]: one for one in world.airflow.runs(APPLY)}
    assert runs[run]["note"].startswith(f"plan {message['name']}: Approve by ")
    assert f"; plan {message['name']} is Succeeded: " in runs[run]["note"]


def add_group(stage: Stage) -> None:
    """Let a second group consume the same topic, and let the namespace have both policies, with their approver."""
    stage.start_consumers(OTHER, f"{OTHER}-consumer")
    for name in (GROUP, OTHER):
        policy = yaml.safe_load(stage.policy_file.read_text(encoding="utf-8").replace(GROUP, name))
        policy["spec"]["approval"] = {"approvers": ["ana"]}
        stage.kubernetes.apply(policy, namespace=NAMESPACE)


def run_on_schedule(airflow: Airflow) -> str:
    """Switch the schedule on until it has begun a run; return that run once it has ended well."""
    airflow.server.ask("PATCH", f"/dags/{SCHEDULED}", {"is_paused": False})
    (run,) = awaited(lambda: airflow.runs(SCHEDULED), "a scheduled run")
    assert airflow.ended(SCHEDULED, run["dag_run_id"]) == "success"
    airflow.server.ask("PATCH", f"/dags/{SCHEDULED}", {"is_paused": True})
    return str(run["dag_run_id"])


def answer_in_browser(page: Page, airflow: Airflow, subject: str, option: str, reason: str) -> str:
    """Answer a question from the page Required Actions, as a person does; return what the question showed."""
    page.goto(f"{airflow.server.url}/required_actions?response_received=false")
    page.get_by_text(subject).first.click()
    expect(page.get_by_test_id(f"hitl-option-{option}")).to_be_visible()
    shown = page.locator("body").inner_text()
    page.locator("#element_reason").fill(reason)
    with page.expect_response(lambda response: response.request.method == "PATCH") as answered:
        page.get_by_test_id(f"hitl-option-{option}").click()
    assert answered.value.ok, answered.value.text()
    leave(page)
    return shown


def leave(page: Page) -> None:
    """Leave the page: one that stays open asks the server every few seconds and draws, a quarter of a processor."""
    page.goto("about:blank")


def test_a_scheduled_run_on_a_namespace_offers_its_plans_and_one_is_approved_and_one_rejected_in_the_browser(
    world: World,
    browser: Browser,  # noqa: F811
) -> None:
    airflow, stage = world.airflow, world.stage
    stage.produce(BUSY - QUIET)
    add_group(stage)
    before = world.plans()
    scheduled = run_on_schedule(airflow)
    decided = {line["policy"]: line for line in airflow.result(SCHEDULED, scheduled, "plan")}
    assert decided.keys() == {GROUP, OTHER}
    changes = {name: (line["from"], line["to"]) for name, line in decided.items()}
    assert all(now < then for now, then in changes.values()), decided

    # What kubectl get shows of the policies.
    states = {each["metadata"]["name"]: each["status"] for each in stage.kubernetes.rest.get(POLICIES)["items"]}
    for name, status in states.items():
        assert (status["lastDecision"]["from"], status["lastDecision"]["to"]) == changes[name]
        assert status["lastDecision"]["reason"] == decided[name]["reason"]
        assert {"Ready": "True", "Holding": "False", "Stalled": "False"}.items() <= {
            condition["type"]: condition["status"] for condition in status["conditions"]
        }.items()
    plans = {name: status["plan"] for name, status in states.items()}
    assert world.plans().keys() - before.keys() == set(plans.values())

    # Each plan is an event, and each event a question for its policy's approvers.
    events = airflow.server.ask("GET", "/assets/events")["asset_events"]
    extras = {event["extra"]["group"]: event["extra"] for event in events if "group" in event["extra"]}
    assert len(events) == 3, "one a plan, and one of the run"
    assert {name: (extra["from"], extra["to"]) for name, extra in extras.items()} == changes
    subjects = {name: f"{name}: {now} to {then}?" for name, (now, then) in changes.items()}
    (run,) = [each["dag_run_id"] for each in awaited(lambda: airflow.runs(APPROVAL), "a run that asks")]
    questions = airflow.questions(APPROVAL, run, 2)
    assert [question["assigned_users"] for question in questions] == [[{"id": "ana", "name": "ana"}]] * 2
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_S * 1000)
    expect.set_options(timeout=PATIENCE_S * 1000)
    shown = answer_in_browser(page, airflow, subjects[OTHER], "Reject", REASON)
    page.screenshot(path=world.folder / "rejected.png", full_page=True)
    for words in ("Queues that move: ", "Longest pause: ", "Messages that come twice: ", "Steps without a way back"):
        assert words in shown
    page.goto(f"{airflow.server.url}/required_actions?response_received=false")
    page.get_by_text(subjects[GROUP]).first.click()
    link = page.get_by_text("The page of the plan").get_attribute("href")
    answer_in_browser(page, airflow, subjects[GROUP], "Approve", "")
    page.goto(f"{airflow.server.url}{link}")
    expect(page.locator("h1")).to_contain_text(f"Scale from {changes[GROUP][0]} to {changes[GROUP][1]}")
    page.screenshot(path=world.folder / "page.png", full_page=True)
    leave(page)

    # One goes all the way; of the other nothing but the rejection is left.
    assert airflow.ended(APPROVAL, run) == "success"
    applied = [each["dag_run_id"] for each in airflow.runs(APPLY) if each["conf"]["plan"] == decided[GROUP]["plan"]]
    assert len(applied) == 1
    assert airflow.ended(APPLY, applied[0]) == "success"
    assert world.phase(plans[GROUP]) == "Succeeded"
    rejected = world.plans()[plans[OTHER]]
    assert APPROVE_ANNOTATION not in rejected["metadata"]["annotations"]
    assert rejected.get("status", {}).get("phase", "Pending") == "Pending"
    answer = read_answer(Path(decided[OTHER]["plan"]))
    assert answer is not None
    assert (answer["answer"], answer["reason"]) == ("Reject", REASON)
    note = awaited(lambda: airflow.runs(APPROVAL)[0]["note"], "the note of the run that asked")
    assert describe_answer(answer) in note
    assert f"Approve of {plans[GROUP]}" in note
