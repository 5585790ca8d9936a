"""``planner apply`` and who follows it, as far as that takes no cluster: options, files, and what is told at the end."""

from pathlib import Path

import pytest

from planner.cli import rollouts
from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.rollout.steps import AwaitReady
from tests.pod_groups import plan_for
from tests.unit.cli.test_cli import planner, refused


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
    assert rollouts.plan_place(name, None) == ("shop", "up")
    assert planner("approve", name).returncode == 0


def test_a_folder_is_no_plan_file_and_a_path_that_is_not_there_is_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when a folder of a plan's name hides the plan, or a mistyped path is looked for in the cluster."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "up").mkdir()
    assert rollouts.plan_place("up", None) == ("default", "up")
    for command in ("status", "abort", "verify", "approve"):
        refused(planner(command, "plans/up"), 2, "plan file plans/up does not exist")
