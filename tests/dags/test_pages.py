"""Airflow's own pages in a real Chromium: forms that can be sent as they open, questions, and reasons in the open.

One whole Airflow serves all cases. No broker and no cluster is asked: the scheduled DAG replays a recording, migrations
start from snapshots.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import Error as PlaywrightError

from planner.approval.offers import read_answer
from planner.documents.approve import CONFIRM_ANNOTATION, approval_of, digest_in
from planner.documents.plan import read_document
from planner.sources.capture import open_capture, write_capture
from tests.clusters.ports import lease_block
from tests.clusters.processes import ManagedProcess
from tests.dags.answering import PATIENCE_S, UNHURRIED_S, airflow, airflow_environment, awaited, settings_in
from tests.dags.scheduling import Airflow, running_airflow
from tests.dags.test_run import falling_behind
from tests.report.test_browser import browser  # noqa: F401
from tests.sample_builders import POLICY, watch
from tests.unit.cli.test_migrate_cli import files
from tests.unit.test_migration_run import PHRASES, RENAME, TYPED, UPDATE, fresh, planned

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.usefixtures("java"),
    pytest.mark.timeout(2_700),
]

SCHEDULED, MIGRATION, APPLY = "consumer_planner", "consumer_planner_migration", "consumer_planner_apply"
SLOTS = 3


@dataclass
class Pages:
    """Airflow's pages in a browser, with what its notifier has noted."""

    airflow: Airflow
    page: Page
    folder: Path
    runs: dict[str, int] = field(default_factory=dict)

    @property
    def notes(self) -> str:
        """Everything that people were notified of."""
        return (self.folder / "notes.txt").read_text(encoding="utf-8")

    def open_form(self, dag: str) -> None:
        """Open a DAG's form, with all of its sections."""
        self.page.goto(f"{self.airflow.server.url}/dags/{dag}")
        self.page.get_by_test_id("trigger-dag-button").first.click()
        expect(self.page.get_by_test_id("trigger-dag-submit")).to_be_visible()

    def fill(self, **texts: str) -> None:
        """Type texts into fields."""
        for name, text in texts.items():
            self.unfold(name).fill(text)

    def choose(self, name: str, option: str) -> None:
        """Choose an option of a list."""
        self.unfold(name).locator("input").first.fill(option)
        self.page.keyboard.press("Enter")

    def write_json(self, name: str, value: object) -> None:
        """Replace what stands in a JSON field."""
        self.unfold(name).locator(".view-lines").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(json.dumps(value))
        # The editor closes quotes and brackets by itself, behind what was typed.
        self.page.keyboard.press("Control+Shift+End")
        self.page.keyboard.press("Delete")

    def unfold(self, name: str) -> Any:
        """Return a field once its section is open."""
        element = self.page.locator(f"#element_{name}")
        # One section is open at a time, and a click on its heading closes it.
        for heading in self.page.locator("[data-scope=accordion][data-part=item-trigger]").all():
            if element.is_visible():
                break
            heading.click()
            with suppress(PlaywrightError):
                element.wait_for(timeout=5_000)
        element.scroll_into_view_if_needed()
        return element

    def send(self, dag: str) -> str:
        """Send the form; return the run that it has started."""
        before = {run["dag_run_id"] for run in self.airflow.runs(dag)}
        self.page.get_by_test_id("trigger-dag-submit").click()

        def started() -> str | None:
            return next((run["dag_run_id"] for run in self.airflow.runs(dag) if run["dag_run_id"] not in before), None)

        run = awaited(started, f"a run of {dag}")
        self.leave()
        return run

    def leave(self) -> None:
        """Leave the page: one that stays open asks the server every few seconds and draws, a quarter of a processor."""
        self.page.goto("about:blank")

    def shoot(self, name: str) -> None:
        """Keep a picture, for eyes."""
        self.page.screenshot(path=self.folder / f"{name}.png", full_page=True)

    def question(self, dag: str, run: str, times: int = 1) -> None:
        """Open the question of a run on its page, once it is asked for the ``times``-th time."""
        self.airflow.await_task(dag, run, "ask", "awaiting_input")
        self.airflow.await_noted(dag, run, "ask", times)
        self.page.goto(f"{self.airflow.server.url}/dags/{dag}/runs/{run}/tasks/ask/required_actions")
        expect(self.page.get_by_test_id("hitl-option-Approve")).to_be_visible()

    def answer(self, option: str) -> None:
        """Click an answer, and leave once Airflow has it."""
        with self.page.expect_response(lambda response: response.request.method == "PATCH") as answered:
            self.page.get_by_test_id(f"hitl-option-{option}").click()
        assert answered.value.ok, answered.value.text()
        self.leave()

    def shows_in_log(self, dag: str, run: str, task: str, sentence: str) -> None:
        """Open a task's log and wait until its page shows ``sentence``."""
        self.page.goto(f"{self.airflow.server.url}/dags/{dag}/runs/{run}/tasks/{task}")
        expect(self.page.locator("body")).to_contain_text(sentence, timeout=600_000)

    def migrate(self, name: str, migration: dict[str, Any], approval: str = "") -> tuple[str, Path]:
        """Send the migration form on a snapshot and a policy with this ``approval``; return its run, and its data."""
        inputs = self.folder / name
        snapshot, policy = files(inputs, fresh(), UNHURRIED_S)
        policy.write_text(policy.read_text(encoding="utf-8") + approval, encoding="utf-8")
        self.open_form(MIGRATION)
        self.fill(policy=str(policy), data=str(inputs / "data"), snapshot=str(snapshot))
        self.choose("source", "snapshot")
        self.write_json("migration", migration)
        return self.send(MIGRATION), inputs / "data"


def plan_in(data: Path) -> Path:
    """Return the only plan of the migrations below a data folder."""
    (plan,) = (data / "migrations").glob("*/*/plan.yaml")
    return plan


@pytest.fixture(scope="module")
def pages(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:  # noqa: F811
    folder = tmp_path_factory.mktemp("pages")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "shop.yaml").write_text(POLICY, encoding="utf-8")
    (policies / "typo.yaml").write_text(POLICY.replace("shop", "typo").replace("minReplicas", "minReplica"))
    write_capture(folder / "capture", watch(40, falling_behind), 5.0, ("a test",), ())
    notifier = {
        "classpath": "tests.dags.noting.NotingNotifier",
        "kwargs": {"file": str(folder / "notes.txt"), "line": "{{ event }}: {{ sentence }}"},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSUMER_PLANNER_POLICIES", str(policies))
        patch.setenv("CONSUMER_PLANNER_DATA", str(folder / "data"))
        patch.setenv("CONSUMER_PLANNER_NOTIFIER", json.dumps(notifier))
        # Only what is started here runs: a schedule would ask brokers.
        patch.setenv("AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE", "False")
        with running_airflow(settings_in(folder), SLOTS) as airflow:
            awaited(lambda: {SCHEDULED, MIGRATION, APPLY} <= airflow.dags().keys(), "all DAGs")
            page = browser.new_page(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
            page.set_default_timeout(PATIENCE_S * 1000)
            expect.set_options(timeout=PATIENCE_S * 1000)
            yield Pages(airflow, page, folder)


@pytest.fixture(scope="module")
def scheduled(pages: Pages) -> str:
    """A run of the scheduled DAG, begun from its form, which goes on meanwhile."""
    pages.open_form(SCHEDULED)
    pages.shoot("scheduled-form")
    expect(pages.page.get_by_test_id("trigger-dag-submit")).to_be_enabled()
    header = open_capture(pages.folder / "capture").header
    pages.choose("source", "recording")
    pages.fill(recording=str(pages.folder / "capture"))
    pages.fill(since=header.started_at.isoformat(), until=header.ended_at.isoformat())
    pages.shoot("scheduled-filled")
    return pages.send(SCHEDULED)


def test_an_update_has_no_phrase_to_type_and_a_click_approves_it(pages: Pages, scheduled: str) -> None:
    assert scheduled
    run, data = pages.migrate("update", UPDATE)
    pages.question(MIGRATION, run)
    expect(pages.page.locator("body")).to_contain_text("Step 1: ")
    assert pages.page.locator("#element_confirm").count() == 0
    assert approval_of(read_document(plan_in(data))) is None
    pages.shoot("update-question")
    pages.answer("Approve")
    assert pages.airflow.ended(MIGRATION, run) == "success"
    document = read_document(plan_in(data))
    assert approval_of(document) == digest_in(document)
    (conf,) = [one["conf"] for one in pages.airflow.runs(APPLY)]
    assert (conf["plan"], conf["namespace"], conf["approve"]) == (str(plan_in(data)), "shop", "already")


def test_a_rename_shows_its_phrase_and_a_wrong_one_is_asked_again(pages: Pages) -> None:
    run, data = pages.migrate("rename", RENAME)
    pages.question(MIGRATION, run)
    expect(pages.page.locator("body")).to_contain_text("; ".join(PHRASES))
    pages.fill(confirm=PHRASES[1])
    pages.shoot("rename-question")
    pages.answer("Approve")
    pages.question(MIGRATION, run, times=2)
    assert approval_of(read_document(plan_in(data))) is None
    pages.shoot("rename-again")
    pages.fill(confirm=TYPED)
    pages.answer("Approve")
    assert pages.airflow.ended(MIGRATION, run) == "success"
    document = read_document(plan_in(data))
    assert approval_of(document) == digest_in(document)
    assert document["metadata"]["annotations"][CONFIRM_ANNOTATION] == TYPED


@pytest.fixture(scope="module")
def logins(pages: Pages) -> Iterator[str]:
    """The address of a second API server of the same Airflow, on which a person logs in: ana or ben."""
    passwords = pages.folder / "passwords.json"
    passwords.write_text(json.dumps({name: f"of {name}" for name in ("ana", "ben")}), encoding="utf-8")
    lease, settings = lease_block(), pages.airflow.settings
    url = f"http://127.0.0.1:{lease.first}"
    env = airflow_environment(settings) | {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ana:op,ben:op",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
    }
    words = ("api-server", "--port", str(lease.first), "--host", "127.0.0.1", "--workers", "1")
    server = ManagedProcess("logins", airflow(settings, *words), settings.work, env)

    def is_up() -> bool:
        try:
            return bool(urlopen(f"{url}/api/v2/version").read())
        except OSError:
            return False

    server.start()
    try:
        awaited(is_up, "the API server with logins")
        yield url
    finally:
        server.stop()
        lease.release()


def code_of_approval(pages: Pages, url: str, person: str, run: str) -> int:
    """Return the code that Airflow answers to a person who logs in and clicks *Approve* on a migration's question."""
    browser_of_pages = pages.page.context.browser
    assert browser_of_pages is not None
    context = browser_of_pages.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    question = f"{url}/dags/{MIGRATION}/runs/{run}/tasks/ask/required_actions"
    page.goto(f"{url}/auth/login?next={quote(question)}")
    page.locator("input[type=password]").fill(f"of {person}")
    page.locator("input:not([type=password])").first.fill(person)
    page.get_by_role("button", name="Sign in").click()
    with page.expect_response(lambda response: response.request.method == "PATCH") as answered:
        page.get_by_test_id("hitl-option-Approve").click()
    code: int = answered.value.status
    page.screenshot(path=pages.folder / f"approval-by-{person}.png", full_page=True)
    context.close()
    return code


def test_a_migration_is_answered_by_the_approvers_of_its_policy_and_by_nobody_else(pages: Pages, logins: str) -> None:
    run, data = pages.migrate("approved-by-ana", UPDATE, "  approval: {approvers: [ana]}\n")
    pages.question(MIGRATION, run)
    document = read_document(plan_in(data))
    for words in ("Approvers: ana", digest_in(document)):
        expect(pages.page.locator("body")).to_contain_text(words)
    pages.leave()
    # The page shows everybody the buttons; Airflow refuses what others send by them.
    assert code_of_approval(pages, logins, "ben", run) == 403
    assert pages.airflow.tasks(MIGRATION, run)["ask"]["state"] == "awaiting_input"
    assert code_of_approval(pages, logins, "ana", run) == 200
    assert pages.airflow.ended(MIGRATION, run) == "success"
    assert approval_of(read_document(plan_in(data))) == digest_in(document)
    kept = read_answer(plan_in(data))
    assert kept is not None
    assert (kept["answer"], kept["by"]) == ("Approve", "ana")


def test_a_plan_is_read_asked_for_and_rejected_without_a_phrase_from_the_form_of_the_apply_dag(pages: Pages) -> None:
    plan = planned(pages.folder / "written", RENAME)["file"]
    pages.open_form(APPLY)
    pages.fill(plan=plan)
    expect(pages.page.get_by_test_id("trigger-dag-submit")).to_be_enabled()
    pages.choose("approve", "ask")
    pages.shoot("apply-form")
    run = pages.send(APPLY)
    pages.question(APPLY, run)
    expect(pages.page.locator("body")).to_contain_text("; ".join(PHRASES))
    pages.answer("Reject")
    assert pages.airflow.ended(APPLY, run) == "success"
    assert pages.airflow.tasks(APPLY, run)["hand_over"]["state"] == "skipped"


def test_a_typo_in_the_change_is_refused_before_the_watch_and_its_reason_is_read(pages: Pages) -> None:
    run, data = pages.migrate("typo", {"kind": "update", "change": {"contaners": []}})
    assert pages.airflow.ended(MIGRATION, run) == "failed"
    assert pages.airflow.tasks(MIGRATION, run)["observe"]["state"] == "upstream_failed"
    sentence = "field migration.change.contaners is not known"
    pages.shows_in_log(MIGRATION, run, "check", sentence)
    pages.shoot("typo-log")
    assert f"failed: check: parameter migration: {sentence}" in pages.notes
    path = f"/dags/{MIGRATION}/dagRuns/{quote(run)}"
    note = awaited(lambda: pages.airflow.server.ask("GET", path)["note"], "the run's note")
    assert note.startswith(f"1 policy: 0 plans, 1 failed: parameter migration: {sentence}")
    assert not data.exists()


def test_the_scheduled_run_decides_for_all_and_its_last_task_names_the_policy_that_it_could_not_serve(
    pages: Pages, scheduled: str
) -> None:
    assert pages.airflow.ended(SCHEDULED, scheduled) == "failed"
    tasks = pages.airflow.tasks(SCHEDULED, scheduled)
    assert [name for name in tasks if tasks[name]["state"] != "success"] == ["conclude"]
    (line,) = pages.airflow.result(SCHEDULED, scheduled, "plan")
    assert line["policy"] == "shop"
    assert line["to"] > line["from"]
    assert Path(line["plan"]).exists()
    pages.shows_in_log(SCHEDULED, scheduled, "conclude", "field spec.minReplica is not known")
    pages.shoot("scheduled-log")
    pages.shows_in_log(SCHEDULED, scheduled, "plan", f"shop: {line['reason']}")
    pages.shoot("scheduled-decisions")
    assert f"planned: shop: {line['reason']}" in pages.notes
    assert "typo.yaml" in pages.notes
