"""The commands as a user types them: what is printed, what is written, the exit code; no traceback ever."""

import contextlib
import io
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from planner.cli.main import app, main
from planner.documents.plan import PLAN, read_document
from planner.sources.capture import SAMPLES_FILE, write_capture
from planner.storage.track_records import land_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from tests.sample_builders import POLICY, steady, watch


@dataclass(frozen=True)
class Found:
    returncode: int
    stdout: str
    stderr: str


def planner(*arguments: object, cwd: Path = Path()) -> Found:
    """Run the command's own entry point in this process: an unexpected exception fails the test by itself."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["planner", *map(str, arguments)])
        patch.setenv("COLUMNS", "200")
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Found(code, out.getvalue(), err.getvalue())


def refused(found: Found, code: int, *said: str) -> None:
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout == ""
    assert found.stderr.startswith("planner: ")
    assert found.stderr.count("\n") == 1, "one sentence"
    for part in said:
        assert part in found.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cli")
    (made / "policy.yaml").write_text(POLICY)
    write_capture(made / "capture", watch(25, steady(60, 55)), 5.0, ("a story",), ())
    assert planner("snapshot", "-p", "policy.yaml", "--capture", "capture", "-o", "snap.json", cwd=made).returncode == 0
    return made


def test_the_path_by_hand(folder: Path) -> None:
    outcomes = planner("simulate", "snap.json", "-o", "json", cwd=folder)
    assert [one["count"] for one in json.loads(outcomes.stdout)] == [1, 2, 3, 4, 6, 8, 16]
    planned = planner("plan", "snap.json", "-p", "policy.yaml", "-o", "plan.yaml", "--at", "snapshot", cwd=folder)
    assert planned.returncode == 0
    assert "Scale from 3 to 4 consumers" in planned.stdout
    explained = planner("explain", "plan.yaml", cwd=folder)
    assert "Step 3: wait until all 4 members own what AVG gives them" in explained.stdout


def test_an_old_snapshot_holds_with_exit_code_0(folder: Path) -> None:
    options = ("-p", "policy.yaml", "-o", "old.yaml", "--at", "2027-01-01T00:00:00Z")
    found = planner("plan", "snap.json", *options, cwd=folder)
    assert found.returncode == 0
    assert "Hold at 3 consumers: its routes are" in found.stdout
    assert "nothing is to be changed" in planner("explain", "old.yaml", cwd=folder).stdout


def test_the_same_snapshot_gives_the_same_plan_byte_for_byte(folder: Path) -> None:
    options = ("-p", "policy.yaml", "-o", "-", "--at", "snapshot")
    plans = [planner("plan", "snap.json", *options, cwd=folder).stdout for _ in (1, 2)]
    assert plans[0] == plans[1]
    assert "kind: ConsumerRolloutPlan" in plans[0]


@pytest.mark.slow
def test_a_policy_that_weighs_decides_by_a_bill_which_replays_byte_for_byte(folder: Path) -> None:
    rule = "{rule: Horizon}\n  prices: {lateMinuteSeconds: 7200}"
    weighing = POLICY.replace("{maxUtilisation: 0.8, backlogGoneSeconds: 600}", rule)
    (folder / "weighing.yaml").write_text(weighing)
    options = ("-p", "weighing.yaml", "--at", "snapshot")
    plans = [planner("plan", "snap.json", *options, "-o", "-", cwd=folder).stdout for _ in (1, 2)]
    assert plans[0] == plans[1]
    said = planner("plan", "snap.json", *options, "-o", "weighed.yaml", cwd=folder).stdout
    assert "it is expected to cost" in said
    bill = read_document(folder / "weighed.yaml")["spec"]["bill"]
    assert all(line["isChangeKnown"] for line in bill["lines"])
    staying = next(line for line in bill["lines"] if line["count"] == 3)
    assert f"3 consumers (as now): {staying['totalHours']:.2f} consumer-hours" in planner(
        "explain", "weighed.yaml", cwd=folder
    ).stdout.replace("\n", " ")
    assert planner("report", "weighed.yaml", "-o", "weighed.html", cwd=folder).returncode == 0
    page = (folder / "weighed.html").read_text(encoding="utf-8")
    assert "The bill" in page
    assert f"<strong>{staying['totalHours']:.2f}</strong>" in page
    assert "What the load may be, in messages per second" in page
    # A hold shows its bill, too, and a rule that does not weigh has none.
    patient = weighing.replace("{rule: Horizon}", "{rule: Horizon, lateAfterSeconds: 86400}")
    (folder / "patient.yaml").write_text(patient.replace("minReplicas: 1", "minReplicas: 3"))
    held = planner("plan", "snap.json", "-p", "patient.yaml", "--at", "snapshot", "-o", "held.yaml", cwd=folder)
    assert "Hold at 3 consumers: over the next" in held.stdout
    assert "3 consumers (as now): " in planner("explain", "held.yaml", cwd=folder).stdout.replace("\n", " ")
    assert "bill" not in planner("plan", "snap.json", "-p", "policy.yaml", "-o", "-", cwd=folder).stdout


def test_what_the_load_may_be_and_how_forecasts_did(folder: Path, tmp_path: Path) -> None:
    said = planner("demand", "snap.json", cwd=folder)
    assert said.returncode == 0
    # 22 queues of 12 messages/s were watched for two minutes, so that nothing that was forecast is over.
    assert "the level is 264 messages/s, by the last 2 min" in said.stdout
    assert "the level alone, spread wider" in said.stdout
    document = json.loads(planner("demand", "snap.json", "-o", "json", cwd=folder).stdout)
    assert [stretch["to_minutes"] for stretch in document["stretches"]] == [5, 15, 30, 60, 120]
    assert {stretch["level_miss"] for stretch in document["stretches"]} == {None}
    one = watch(1, steady(60, 55))
    write_capture(tmp_path / "capture", one, 5.0, ("a story",), ())
    options = ("-p", folder / "policy.yaml", "--capture", "capture", "-o", "one.json")
    assert planner("snapshot", *options, cwd=tmp_path).returncode == 0
    refused(planner("demand", "one.json", cwd=tmp_path), 2, "found no minute of load up to", "--observe-seconds 120")


def test_simulate_takes_counts_and_strategies(folder: Path) -> None:
    options = ("--counts", "5..6", "--strategy", "AVG_BY_CIRCLE", "-o", "json")
    found = json.loads(planner("simulate", "snap.json", *options, cwd=folder).stdout)
    assert [(one["count"], one["strategy"]) for one in found] == [(5, "AVG_BY_CIRCLE"), (6, "AVG_BY_CIRCLE")]


def test_wrong_input_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    snap, policy = folder / "snap.json", folder / "policy.yaml"
    capture = ("--capture", folder / "capture")
    cases = [
        (("explain", "absent.yaml"), "plan file absent.yaml does not exist"),
        (("simulate", "absent.json"), "GroupSnapshot file absent.json does not exist"),
        (("simulate", policy), "is a ConsumerScalingPolicy, expected a GroupSnapshot: planner snapshot writes one"),
        (("plan", snap, "-p", snap, "-o", "p.yaml"), "is a GroupSnapshot, expected a ConsumerScalingPolicy"),
        (("simulate", snap, "-o", tmp_path), "is a folder, expected a file"),
        (("simulate", snap, "-o", "jsn"), "did you mean json?"),
        (("simulate", snap, "--format", "yaml", "-o", "json"), "contradict each other"),
        (("advise", "--kafka", "127.0.0.1:1", "--group", "g", "-o", tmp_path), "is a folder, expected a file"),
        (("advise", "--kafka", "127.0.0.1:1", "--group", "g", "-o", "ymal"), "did you mean yaml?"),
        (("run", "--policies", folder, "--data", tmp_path / "d", "--format", "yaml", "-o", "json"), "contradict each"),
        (("sample", "--policies", folder, "--data", tmp_path / "d", "-o", "json"), "belong to --once"),
        (("simulate", snap, "--counts", "0..3"), "option --counts: found '0..3'"),
        (("simulate", snap, "--counts", "three"), "option --counts: found 'three'"),
        (("simulate", snap, "--strategy", "BEST"), "strategy 'BEST' is not known"),
        (("plan", snap, "-p", "absent.yaml", "-o", "p.yaml"), "policy file absent.yaml does not exist"),
        (("plan", snap, "-p", policy, "-o", "p", "--at", "noon"), "found 'noon'"),
        (("plan", snap, "-p", policy, "-o", "p", "--at", "2026-01-01"), "has no zone"),
        (("snapshot", "-p", policy, "--capture", "absent", "-o", "s.json"), "does not exist"),
        (("snapshot", "-p", policy, *capture, "--at", "2020-01-01T00:00Z", "-o", "s"), "no sample up to"),
        (("snapshot", "-p", policy, "--at", "2020-01-01T00:00Z", "-o", "s"), "--at goes with --capture"),
    ]
    for arguments, said in cases:
        refused(planner(*arguments, cwd=tmp_path), 2, said)
    assert list(tmp_path.iterdir()) == [], "nothing is half-written"


def _commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, below in getattr(command, "commands", {}).items():
        yield from _commands(below, f"{name} {word}".strip())
    if not getattr(command, "commands", {}):
        yield name, command


def test_every_command_has_a_form_and_an_output_file() -> None:
    options = {
        name: {word for one in command.params for word in one.opts} for name, command in _commands(get_command(app))
    }
    assert len(options) > 30
    assert [name for name, words in options.items() if not {"--format", "--output", "-o"} <= words] == []


def test_a_snapshot_of_another_group_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(POLICY.replace("group: shop", "group: billing"))
    refused(planner("plan", folder / "snap.json", "-p", other, "-o", "p.yaml"), 2, "is of group shop", "group billing")
    refused(planner("snapshot", "-p", other, "--capture", folder / "capture", "-o", "s.json"), 2, "which holds shop")


def test_an_edited_snapshot_is_refused(folder: Path, tmp_path: Path) -> None:
    edited = tmp_path / "snap.json"
    edited.write_text((folder / "snap.json").read_text().replace('"lag":120', '"lag":12'))
    assert edited.read_text() != (folder / "snap.json").read_text()
    refused(planner("plan", edited, "-p", folder / "policy.yaml", "-o", "-"), 2, "edited after it was made")


def test_a_truncated_capture_is_refused_and_nothing_written(folder: Path, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "cut", watch(25), 5.0, (), ())
    samples = capture.folder / SAMPLES_FILE
    samples.write_bytes(samples.read_bytes()[:-9])
    found = planner("snapshot", "-p", folder / "policy.yaml", "--capture", capture.folder, "-o", tmp_path / "s.json")
    refused(found, 2, "samples.jsonl.gz: cut off")
    assert not (tmp_path / "s.json").exists()


def test_an_unreachable_name_server_is_named_with_exit_code_3(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound but not listening: whoever connects is refused
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        policy = tmp_path / "p.yaml"
        policy.write_text(POLICY.replace("127.0.0.1:9876", address))
        found = planner("snapshot", "-p", policy, "-o", tmp_path / "s.json", "--observe-seconds", "0")
    refused(found, 3, address)
    assert not (tmp_path / "s.json").exists()


def test_a_real_process_ends_with_the_exit_code_and_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "planner.cli.main", "explain", "absent.yaml"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    refused(Found(found.returncode, found.stdout, found.stderr), 2, "plan file absent.yaml does not exist")


def test_wrong_usage_is_exit_code_2() -> None:
    for arguments in (("snapshot",), ("simulate", "x", "--nonsense"), ("no-such-command",)):
        found = planner(*arguments)
        assert found.returncode == 2
        assert "Traceback" not in found.stderr


def test_help_and_version() -> None:
    assert "backtest" in planner("--help").stdout
    assert planner("--version").stdout.startswith("planner ")
    for name in ("snapshot", "simulate", "plan", "explain"):
        assert planner(name, "--help").returncode == 0


APPROVED = "  approval: {mode: Auto, criteria: {mostMovedQueues: MOST}}\n"


@pytest.mark.parametrize(("most", "said"), [(16, "Approved by the policy's criteria."), (1, "queues move, 1 may.")])
def test_a_plan_says_whether_the_policy_approves_it(folder: Path, tmp_path: Path, most: int, said: str) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY + APPROVED.replace("MOST", str(most)))
    found = planner("plan", folder / "snap.json", "-p", policy, "-o", tmp_path / "plan.yaml", "--at", "snapshot")
    assert said in found.stdout
    assert ("consumerplanner.dev/approve: sha256:" in (tmp_path / "plan.yaml").read_text()) is (most == 16)


def test_earlier_forecasts_are_told_and_too_many_misses_leave_the_plan_to_a_person(
    folder: Path, tmp_path: Path
) -> None:
    policy, path, data = tmp_path / "policy.yaml", tmp_path / "plan.yaml", tmp_path / "data"
    policy.write_text(POLICY + APPROVED.replace("MOST", "16"))
    words = ("plan", folder / "snap.json", "-p", policy, "--at", "snapshot", "-o")
    assert planner(*words, path).returncode == 0
    alone = path.read_text()
    made = PLAN.parse(read_document(path), str(path))
    most = made.forecast.moved_queues.most
    assert most is not None
    for hours in range(1, 6):
        missed = ObservedChange(moved_queues=Between.exactly(most + (hours < 4)))
        land_records(data, made, judge(made.forecast, missed, made.made_at - timedelta(hours=hours)))
    land_records(
        data, made, judge(made.forecast, ObservedChange(), made.made_at + timedelta(hours=1))
    )  # not yet known then

    doubt = "moved queues was missed in 3 of 5 forecasts of group shop"
    told = planner(*words, path, "--data", data).stdout
    assert f"For a person to approve: {doubt}" in told
    assert "Of the last 5 forecasts of group shop" in told
    assert [line for line in alone.splitlines() if "/approve:" not in line] == path.read_text().splitlines()
    assert f"planner: doubt this: {doubt}" in planner(*words, "-", "--data", data).stderr
    for options in ((), ("-o", "json")):
        assert f"Doubt this: {doubt}" in planner("explain", path, "--data", data, *options).stdout
    page = tmp_path / "page.html"
    shutil.copy(folder / "snap.json", tmp_path)
    assert planner("report", path, "-o", page, "--data", data).returncode == 0
    assert f"Doubt this: {doubt}" in page.read_text()


def test_a_damaged_record_is_one_sentence_and_one_that_is_being_written_is_not_seen(
    folder: Path, tmp_path: Path
) -> None:
    words = ("plan", folder / "snap.json", "-p", folder / "policy.yaml", "--at", "snapshot", "-o", tmp_path / "p.yaml")
    assert "No forecast of group shop was judged yet." in planner(*words, "--data", tmp_path).stdout
    made = PLAN.parse(read_document(tmp_path / "p.yaml"), "p.yaml")
    (kept,) = land_records(tmp_path, made, judge(made.forecast, ObservedChange(), made.made_at))
    kept.rename(kept.with_name(f".{kept.name}.abc.part"))
    assert "No forecast of group shop was judged yet." in planner(*words, "--data", tmp_path).stdout
    kept.write_text('{"kind": "CalibrationRecord"')
    refused(planner(*words, "--data", tmp_path), 2, "it is cut off or was edited")
    refused(planner(*words, "--data", tmp_path / "gone"), 2, "name the one that planner apply --data writes to")
