"""``--format`` apart from ``--output``: what plan, snapshot, init and migrate print of the document that they write."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.cli import init as init_command
from planner.cli.address import Discovery
from planner.cli.advice_output import document as advice_document
from planner.documents.data import SNAPSHOT
from planner.documents.format import API_VERSION
from planner.documents.policy import parse_policy
from planner.sources.capture import write_capture
from tests.sample_builders import POLICY, steady, watch
from tests.unit.advice.test_answer import advice, overloaded
from tests.unit.cli.test_cli import planner, refused
from tests.unit.cli.test_migrate_cli import AT, IMAGE, migrate, rocketmq

SHORT = ["decision", "from", "to", "cause", "reason", "cost", "next"]
FORMS = {"json": json.loads, "yaml": yaml.safe_load}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("summaries")
    (made / "policy.yaml").write_text(POLICY)
    write_capture(made / "capture", watch(25, steady(60, 55)), 5.0, ("a story",), ())
    assert planner("snapshot", "-p", "policy.yaml", "--capture", "capture", "-o", "snap.json", cwd=made).returncode == 0
    return made


def plan(folder: Path, *options: str) -> str:
    done = planner("plan", "snap.json", "-p", "policy.yaml", "--at", "snapshot", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", FORMS)
def test_plan_prints_the_short_form_that_advise_prints(folder: Path, form: str) -> None:
    """Red when a field of the short form is missing, or the file is not written as without --format."""
    short: dict[str, Any] = FORMS[form](plan(folder, "-o", "plan.yaml", "--format", form))
    assert list(short) == ["apiVersion", "kind", *SHORT, "file"]
    assert list(short)[2:-1] == list(advice_document(advice(overloaded())))[2:], "the fields are those of an advice"
    assert (short["apiVersion"], short["kind"]) == (API_VERSION, "PlanSummary")
    assert (short["decision"], short["from"], short["to"], short["cause"]) == ("scale", 3, 4, "TooFewConsumers")
    assert short["cost"]["pods"] == 1
    assert (short["file"], short["next"]) == ("plan.yaml", "planner approve plan.yaml")
    assert (folder / "plan.yaml").read_text() == plan(folder, "-o", "-")


def test_a_hold_in_short_names_the_command_that_ends_it(folder: Path) -> None:
    done = planner(
        "plan", "snap.json", "-p", "policy.yaml", "--at", "2027-01-01T00:00:00Z", "--format", "json", cwd=folder
    )
    short = json.loads(done.stdout)
    assert (short["decision"], short["from"], short["to"], short["cause"]) == ("hold", 3, 3, "OldData")
    assert short["cost"]["movedQueues"]["most"] == 0
    assert short["next"].startswith("planner snapshot --policy policy.yaml")
    assert short["file"] is None


def test_without_output_nothing_is_written_and_the_next_command_writes(folder: Path) -> None:
    before = sorted(folder.iterdir())
    text = plan(folder)
    assert "Scale from 3 to 4 consumers" in text
    command = "planner plan snap.json --policy policy.yaml -o plan.yaml --at snapshot"
    assert text.splitlines()[-1] == f"Next: {command}   # writes the plan", "as of the same time, or it holds"
    assert sorted(folder.iterdir()) == before


def test_the_whole_document_goes_to_standard_output_in_either_form(folder: Path) -> None:
    """Red when -o json prints a summary: it is the plan itself by contract."""
    whole = json.loads(plan(folder, "-o", "json"))
    assert whole["kind"] == "ConsumerRolloutPlan"
    assert json.loads(plan(folder, "-o", "-", "--format", "json")) == whole
    assert yaml.safe_load(plan(folder, "-o", "-")) == whole
    refused(
        planner("plan", "snap.json", "-p", "policy.yaml", "-o", "json", "--format", "yaml", cwd=folder),
        2,
        "contradict each other",
    )
    refused(planner("plan", "snap.json", "-p", "policy.yaml", "-o", ".", cwd=folder), 2, "is a folder")


def test_snapshot_sums_up_and_goes_on(folder: Path) -> None:
    words = ("snapshot", "-p", "policy.yaml", "--capture", "capture")
    short = json.loads(planner(*words, "-o", "snap.json", "--format", "json", cwd=folder).stdout)
    assert (short["apiVersion"], short["kind"]) == (API_VERSION, "SnapshotSummary")
    assert (short["members"], short["queues"], short["strategy"], short["lag"]) == (3, 22, "AVG", 22 * 24 * 5)
    assert short["next"] == "planner plan snap.json --policy policy.yaml -o plan.yaml --at snapshot"
    whole = planner(*words, "-o", "json", cwd=folder).stdout
    assert SNAPSHOT.parse(whole, "it") == SNAPSHOT.read(folder / "snap.json")
    assert not (folder / "json").exists()
    text = planner(*words, "-o", "snap.json", cwd=folder).stdout
    assert text.splitlines()[-1] == f"Next: {short['next']}"


def test_a_migration_in_short_has_the_same_fields(tmp_path: Path) -> None:
    done = migrate(tmp_path, rocketmq(), "update", *IMAGE, *AT, "--format", "json")
    short = json.loads(done.stdout)
    assert list(short) == ["apiVersion", "kind", *SHORT, "file"]
    assert (short["kind"], short["decision"], short["cause"]) == ("MigrationSummary", "migrate", "update")
    assert short["from"] == short["to"] == 4
    assert short["cost"]["pods"] == 0


def test_init_sums_up_and_prints_the_policy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = watch(1)[0]
    monkeypatch.setattr(init_command, "discover", lambda *_: Discovery({sample.group: sample}, {}))
    monkeypatch.setattr(init_command, "_detect_target", lambda *_: None)
    words = ("init", "-n", "127.0.0.1:9876", "--group", sample.group)
    short = json.loads(planner(*words, "-o", "new.yaml", "--format", "json", cwd=folder).stdout)
    assert (short["kind"], short["group"], short["members"], short["deployment"]) == (
        "PolicySummary",
        sample.group,
        3,
        None,
    )
    assert short["next"] == "planner snapshot --policy new.yaml -o snap.json"
    written = parse_policy((folder / "new.yaml").read_text(), "new.yaml")
    for options in (("-o", "-"), ("-o", "json"), ("-o", "-", "--format", "json")):
        printed = planner(*words, *options, cwd=folder)
        assert parse_policy(printed.stdout, "it") == written
        assert "No Deployment is known" in printed.stderr
