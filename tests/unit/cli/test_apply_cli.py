"""``planner apply`` and what goes with it, as far as that takes no cluster: options, files, what is told at the end."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer

from planner.cli import rollouts
from planner.cli.apply import _finish, with_dry_run_mode
from planner.cli.console import Answer, Format
from planner.documents.approve import APPROVE_ANNOTATION, approved
from planner.documents.plan import PLAN
from planner.execution.phases import Phase
from planner.execution.ports import Requests, StoredPlan
from planner.execution.progress import Approval, RolloutStatus
from planner.rollout.steps import AwaitReady, CloneOffsets
from tests.pod_groups import plan_for
from tests.unit.cli.test_cli import planner, refused
from tests.unit.deployments.fake_api import FakeApi
from tests.unit.sources.kubernetes.fake_server import fake_server, kubeconfig, says, says_json


def write(path: Path) -> Path:
    """Write an approved plan and return its path."""
    document = PLAN.document(plan_for("app", ["a", "b"], (AwaitReady(2, 60),)), "up", "shop")
    path.write_text(PLAN.text(approved(document)), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["plan.yaml", "plan.yml", "folder/plan", "plan"])
def test_a_plan_is_named_by_its_file_where_that_looks_like_one_or_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Red when status, abort and verify take a file for a name that approve takes for a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    write(tmp_path / name)
    assert rollouts.locate_plan(name, None) == ("shop", "up")
    assert planner("approve", name).returncode == 0


def test_a_folder_is_no_plan_file_and_a_path_that_is_not_there_is_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when a folder of a plan's name hides the plan, or a mistyped path is looked for in the cluster."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "up").mkdir()
    assert rollouts.locate_plan("up", None) == ("default", "up")
    for command in ("status", "abort", "verify", "approve"):
        refused(planner(command, "plans/up"), 2, "plan file plans/up does not exist")


@pytest.mark.parametrize(
    "words",
    [
        ("plan.yaml", "--dry-run"),
        ("--dry-run", "plan.yaml"),
        ("--dry-run", "plan"),
        ("--dry-run", "--namespace", "shop", "plan.yaml"),
        ("--dry-run", "--", "plan.yaml"),
        ("plan.yaml", "--dry-run=client"),
        ("--dry-run=client", "plan.yaml"),
        ("plan.yaml", "--dry-run", "client"),
        ("--dry-run", "client", "plan.yaml"),
    ],
)
def test_a_dry_run_without_a_mode_reads_the_file_alone(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Red when the mode must be named, or takes the plan file for one. There is no cluster: to ask one is exit 3."""
    for name in ("plan.yaml", "plan"):
        write(tmp_path / name)
    found = planner("apply", "-o", "json", *words, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["lines"][-1].startswith("Step 1: wait until")


@pytest.mark.parametrize(
    "words",
    [("plan.yaml", "--dry-run=server"), ("--dry-run=server", "plan.yaml"), ("--dry-run", "server", "plan.yaml")],
)
def test_the_mode_server_goes_on_to_ask_a_cluster(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Red when a mode that was named is replaced by the one that is meant without it."""
    write(tmp_path / "plan.yaml")
    refused(planner("apply", *words, "--kubeconfig", "none", cwd=tmp_path), 2, "kubeconfig", "cannot be used")


@pytest.mark.parametrize(
    "words",
    [
        ("plan.yaml", "--dry-run=serve"),
        ("--dry-run=serve", "plan.yaml"),
        ("plan.yaml", "--dry-run", "serve"),
        ("--dry-run", "serve", "plan.yaml"),
    ],
)
def test_a_wrong_mode_is_one_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Red when it is a page of usage, or taken for the plan file."""
    write(tmp_path / "plan.yaml")
    said = "option --dry-run: found 'serve', expected client or server"
    refused(planner("apply", *words, cwd=tmp_path), 2, said)


def test_other_commands_are_left_as_they_were_typed() -> None:
    """Red when a word of another command is rewritten."""
    for words in (["status", "--dry-run"], [], ["apply", "p.yaml", "--", "--dry-run"]):
        assert with_dry_run_mode(words) == words
    assert "without a mode" in planner("apply", "--help").stdout


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """The cluster that every command works on."""
    api = FakeApi()
    monkeypatch.setattr(rollouts, "open_cluster", lambda _: nullcontext(api))
    return api


PHRASE = "set the offsets of shop-2"


def migration(path: Path, approval: str | None, phrases: tuple[str, ...]) -> Path:
    """Write a plan with a phrase, and return its path; ``approval`` is a digest, ``own`` the plan's."""
    made = plan_for("app", ["a", "b"], (CloneOffsets("shop-2", PHRASE, 60),), "strategy")
    document = approved(PLAN.document(made, "up", "shop"), phrases)
    if approval != "own":
        document["metadata"]["annotations"][APPROVE_ANNOTATION] = approval
    if approval is None:
        del document["metadata"]["annotations"][APPROVE_ANNOTATION]
    path.write_text(PLAN.text(document), encoding="utf-8")
    return path


CONFIRM = f"planner approve up --namespace shop --confirm '{PHRASE}', then"
APPROVE = "kubectl annotate crp up -n shop consumerplanner.dev/approve=sha256:"
REPLACE = "kubectl annotate crp up -n shop --overwrite consumerplanner.dev/approve=sha256:"


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("approval", "phrases", "hint"),
    [
        ("own", (), CONFIRM),
        (None, (), CONFIRM),
        ("sha256:other", (), CONFIRM),
        (None, (PHRASE,), APPROVE),
        ("sha256:other", (PHRASE,), REPLACE),
    ],
)
def test_who_applies_a_plan_that_waits_is_told_what_is_missing_and_nothing_else(
    tmp_path: Path, approval: str | None, phrases: tuple[str, ...], hint: str
) -> None:
    """Red when a person is told to approve what is approved, or by a command that leaves the plan waiting."""
    found = planner("apply", migration(tmp_path / "plan.yaml", approval, phrases))
    assert found.returncode == 1
    assert hint in found.stderr
    assert found.stderr.count("nothing was changed: ") == 1
    assert found.stderr.count("consumerplanner.dev/approve=") == (hint is not CONFIRM)


def test_no_command_is_told_where_approval_and_phrases_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Red when a plan that waits for something else sends a person to approve it once more."""
    made = plan_for("app", ["a", "b"], (CloneOffsets("shop-2", PHRASE, 60),), "strategy")
    given = Requests(approval=Approval("sha256:x", "alice", made.made_at), confirmed=(PHRASE,))
    with pytest.raises(typer.Exit):
        _finish(StoredPlan("up", "uid", made, "sha256:x", "1", requests=given), "shop", Answer(Format.TEXT))
    assert capsys.readouterr().err == ""


PLANS = "/apis/consumerplanner.dev/v1alpha1"


def test_a_list_of_plans_on_a_server_without_the_definitions_says_how_to_install_them(tmp_path: Path) -> None:
    """Red when a server that knows no plans is told of as a namespace without any."""
    unknown = says(b"404 page not found", 404)
    with fake_server(unknown, unknown) as (url, seen):
        found = planner("status", "--namespace", "shop", "--kubeconfig", kubeconfig(tmp_path, url))
    refused(found, 3, "knows no ConsumerRolloutPlan", "kubectl apply -f k8s/crds")
    assert [line.split()[1].split("?")[0] for line in seen][-1] == PLANS


def test_a_namespace_without_plans_is_no_error(tmp_path: Path) -> None:
    """Red when a namespace that has no plan yet is taken for a server that knows none."""
    empty = says_json({"items": [], "metadata": {}})
    known = says_json({"kind": "APIResourceList", "groupVersion": "consumerplanner.dev/v1alpha1", "resources": []})
    with fake_server(empty, known) as (url, _):
        found = planner("status", "--namespace", "shop", "--kubeconfig", kubeconfig(tmp_path, url))
    assert (found.returncode, found.stdout) == (0, "There is no plan in namespace shop.\n"), found.stderr


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def left(cluster: FakeApi) -> FakeApi:
    """The cluster with the approved plan ``up``, in which Ctrl-C comes when a command writes a status first."""
    document = approved(PLAN.document(plan_for("app", ["a", "b"], (AwaitReady(2, 60),)), "up", "shop"))
    cluster.create_plan("shop", document)
    cluster.before_status = interrupted
    return cluster


def test_ctrl_c_while_a_plan_is_aborted_does_not_say_that_it_can_go_on(left: FakeApi) -> None:
    """Red when a person is told that apply goes on with the plan, or that an abort is still to be asked for."""
    found = planner("abort", "up", "--namespace", "shop")
    said = "plan up stays where it is and its abort stays asked for: planner abort goes on with that"
    refused(found, 1, said)
    assert "undoes it" not in found.stderr
    assert left.writes == [{"consumerplanner.dev/abort": "true"}]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, ": planner apply goes on with it, planner abort undoes it"),
        ({"abort": "true"}, " and its abort stays asked"),
    ],
)
def test_ctrl_c_while_a_plan_is_carried_out_tells_what_was_asked_of_it(
    left: FakeApi, tmp_path: Path, asked: dict[str, str], said: str
) -> None:
    """Red when who applies a plan that another one aborts is told that apply goes on with it."""
    notes = left.objects["up"]["metadata"]["annotations"]
    notes.update({f"consumerplanner.dev/{key}": value for key, value in asked.items()})
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.text(left.objects["up"]), encoding="utf-8")
    refused(planner("apply", path), 1, f"plan up stays where it is{said}")


def test_ctrl_c_on_the_way_back_tells_so() -> None:
    """Red when a plan that has failed is said to go on."""
    made = plan_for("app", ["a", "b"], (AwaitReady(2, 60),))
    stored = StoredPlan("up", "uid", made, "sha256:x", "1", RolloutStatus(phase=Phase.ABORTING))
    assert "stays where it is, on its way back: " in rollouts._describe_open(stored)
