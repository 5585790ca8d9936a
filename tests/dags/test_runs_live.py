"""What people see of runs in a whole Airflow: tags, pool, note, deadline, answers in notes, and refused backfills.

No broker and no cluster is asked: runs replay a recording, the migration starts from a snapshot.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.documents.approve import approval_of
from planner.documents.plan import read_document
from planner.sources.capture import open_capture, write_capture
from planner.text.printable import printable
from scripts.run_local import ROOT
from tests.dags.answering import UNHURRIED_S, airflow, airflow_environment, awaited, settings_in
from tests.dags.scheduling import Airflow, running_airflow
from tests.dags.test_run import falling_behind
from tests.sample_builders import POLICY, watch
from tests.unit.cli.test_migrate_cli import files
from tests.unit.test_hostile_logs import EVIL, FORGED, SHOWN
from tests.unit.test_migration_run import RENAME, fresh

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.usefixtures("java"),
    pytest.mark.timeout(2_700),
]

SCHEDULED, MIGRATION, APPLY = "consumer_planner", "consumer_planner_migration", "consumer_planner_apply"
SLOTS = 3
DAY = "2026-11-01"


class Place:
    """A whole Airflow with policies, a recording and what its notifier has noted."""

    def __init__(self, folder: Path, airflow: Airflow) -> None:
        self.folder, self.airflow = folder, airflow

    @property
    def notes(self) -> str:
        """Everything that people were notified of."""
        path = self.folder / "notes.txt"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def recording(self) -> dict[str, Any]:
        """Return the conf of a run that replays the recording."""
        header = open_capture(self.folder / "capture").header
        return {
            "source": "recording",
            "recording": str(self.folder / "capture"),
            "since": header.started_at.isoformat(),
            "until": header.ended_at.isoformat(),
        }

    def cli(self, *words: str) -> None:
        """Run Airflow's command line."""
        settings = self.airflow.settings
        command, env = airflow(settings, *words), airflow_environment(settings)
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, dag: str, run: str) -> dict[str, Any]:
        """Return a run as the API server tells it."""
        (found,) = [one for one in self.airflow.runs(dag) if one["dag_run_id"] == run]
        return found

    def note(self, dag: str, run: str) -> str:
        """Return a run's note, once it has one."""
        found: str = awaited(lambda: self.run(dag, run)["note"], f"the note of run {run}")
        return found

    def backfill(self, day: str, conf: dict[str, Any]) -> str:
        """Have one run of a past day made, as a person does at a terminal; return its name."""
        before = {one["dag_run_id"] for one in self.airflow.runs(SCHEDULED)}
        bounds = ("--from-date", f"{day}T00:00:00+00:00", "--to-date", f"{day}T00:05:00+00:00")
        # One backfill of a DAG at a time, and the scheduler takes a while to note that one is over.
        awaited(lambda: self._has_no_backfill() or None, "the end of the backfill before")
        self.cli("backfill", "create", "--dag-id", SCHEDULED, *bounds, "--dag-run-conf", json.dumps(conf))
        (made,) = {one["dag_run_id"] for one in self.airflow.runs(SCHEDULED)} - before
        return str(made)

    def _has_no_backfill(self) -> bool:
        found = self.airflow.server.ask("GET", f"/backfills?dag_id={SCHEDULED}")["backfills"]
        return all(one["completed_at"] for one in found)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("runs")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "shop.yaml").write_text(POLICY, encoding="utf-8")
    (policies / "typo.yaml").write_text(POLICY.replace("shop", "typo").replace("minReplicas", "minReplica"))
    (policies / "broken.yaml").write_text("kind: [")
    hostile = POLICY.replace("group: shop}", f"group: {json.dumps(EVIL)}}}").replace("shop", "evil")
    (policies / "evil.yaml").write_text(hostile)
    write_capture(folder / "capture", watch(40, falling_behind), 5.0, ("a test",), ())
    notifier = {
        "classpath": "tests.dags.noting.NotingNotifier",
        "kwargs": {"file": str(folder / "notes.txt"), "line": "{{ event }}: {{ sentence }}"},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSUMER_PLANNER_POLICIES", str(policies))
        patch.setenv("CONSUMER_PLANNER_DATA", str(folder / "data"))
        patch.setenv("CONSUMER_PLANNER_NOTIFIER", json.dumps(notifier))
        patch.setenv("CONSUMER_PLANNER_POOL", "brokers")
        # Three seconds: no run ends so soon, and each is notified while it goes on.
        patch.setenv("CONSUMER_PLANNER_DEADLINE_MINUTES", "0.05")
        # Only what is started here runs: a schedule would ask brokers.
        patch.setenv("AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE", "False")
        with running_airflow(settings_in(folder), SLOTS) as running:
            made = Place(folder, running)
            made.cli("pools", "set", "brokers", "1", "reads of brokers at once")
            awaited(lambda: {SCHEDULED, MIGRATION} <= running.dags().keys(), "both DAGs")
            for dag in (SCHEDULED, MIGRATION):
                running.server.ask("PATCH", f"/dags/{dag}", {"is_paused": False})
            yield made


def test_dags_are_found_by_the_systems_and_clusters_of_their_policies(place: Place) -> None:
    for dag in (SCHEDULED, MIGRATION):
        tags = {tag["name"] for tag in place.airflow.server.ask("GET", f"/dags/{dag}")["tags"]}
        assert tags == {"consumer-planner", "rocketmq", "DefaultCluster"}


def test_a_live_backfill_is_refused_and_a_recorded_one_is_observed(place: Place) -> None:
    live = place.backfill(DAY, {"source": "live"})
    assert place.airflow.ended(SCHEDULED, live) == "failed"
    observe = place.airflow.tasks(SCHEDULED, live)["observe"]
    assert (observe["state"], observe["try_number"], observe["pool"]) == ("failed", 1, "brokers")
    assert "failed: observe: a backfill cannot be observed live: brokers show the present alone." in place.notes
    recorded = place.backfill("2026-11-02", place.recording())
    place.airflow.await_task(SCHEDULED, recorded, "observe", "success")
    place.airflow.server.ask("PATCH", f"/dags/{SCHEDULED}/dagRuns/{recorded}", {"state": "failed"})


def test_a_store_in_the_place_of_a_file_is_refused_before_anything_is_made(place: Place) -> None:
    for name in ("data", "policies"):
        place.airflow.trigger(SCHEDULED, f"store-{name}", {**place.recording(), name: "s3://bucket/planner"})
        assert place.airflow.ended(SCHEDULED, f"store-{name}") == "failed"
        refusal = f"{name} is s3://bucket/planner: only a path works here"
        assert f"failed: observe: {refusal}" in place.notes
        assert place.note(SCHEDULED, f"store-{name}").startswith(refusal)


def test_a_runs_note_has_the_counts_and_a_run_that_goes_on_too_long_is_notified(place: Place) -> None:
    place.airflow.trigger(SCHEDULED, "counted", place.recording())
    overdue = "overdue: run counted has not ended: it is running since "
    awaited(lambda: overdue in place.notes or None, "the notice of the run's deadline")
    assert place.airflow.ended(SCHEDULED, "counted") == "failed"
    assert place.note(SCHEDULED, "counted") == "4 policies: 1 plan, 0 holds, 3 failed"
    assert place.notes.count(overdue) == 1


def test_no_name_steers_a_terminal_from_a_task_log_and_no_password_is_in_one(place: Place) -> None:
    secret = "http://ana:marker-of-a-password@h/recording"
    place.airflow.trigger(SCHEDULED, "secret", {**place.recording(), "recording": secret})
    assert place.airflow.ended(SCHEDULED, "secret") == "failed"
    files = list((place.airflow.settings.airflow_home / "logs" / f"dag_id={SCHEDULED}").rglob("*.log"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]
    assert not [line for line in lines if "marker-of-a-password" in line]
    shown = "\n".join(text for line in lines for text in texts_in(json.loads(line) if line[0] == "{" else line))
    # The log of run "counted": of a group that nobody knows, in the tasks observe and conclude at least.
    assert shown.count(SHOWN) >= 2
    assert "recording is http://***@h/recording" in shown
    assert printable(shown) == shown
    assert FORGED not in shown.splitlines()


def texts_in(value: object) -> Iterator[str]:
    """Yield every text of a line of the log, which Airflow's page shows."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each)


def test_a_migration_is_rejected_without_its_phrase_its_note_says_so_and_a_persons_own_note_stays(place: Place) -> None:
    for name, has_note in (("plain", False), ("noted", True)):
        inputs = place.folder / name
        snapshot, policy = files(inputs, fresh(), UNHURRIED_S)
        conf = {"policy": str(policy), "data": str(inputs / "data"), "source": "snapshot", "snapshot": str(snapshot)}
        place.airflow.trigger(MIGRATION, name, {**conf, "migration": RENAME})
        if has_note:
            place.airflow.server.ask("PATCH", f"/dags/{MIGRATION}/dagRuns/{name}", {"note": "look here"})
        place.airflow.answer(MIGRATION, name, "Reject")
        assert place.airflow.ended(MIGRATION, name) == "success"
    (plan,) = (place.folder / "plain" / "data" / "migrations").glob("*/*/plan.yaml")
    assert approval_of(read_document(plan)) is None
    assert place.airflow.runs(APPLY) == []
    found = place.note(MIGRATION, "plain")
    assert found.startswith("plan ")
    assert found.endswith(": Reject by Anonymous"), "whom an Airflow without accounts takes everybody for"
    assert found.removeprefix("plan ").split(":")[0] in plan.read_text(encoding="utf-8")
    assert place.run(MIGRATION, "noted")["note"] == "look here"
