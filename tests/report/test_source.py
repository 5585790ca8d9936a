import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.main import app
from planner.documents.data import SNAPSHOT
from planner.documents.plan import DECISION, PLAN
from planner.errors import BadInputError, DigestError, PlannerError
from planner.report.source import read_case
from planner.report.write import render
from tests.builders import World
from tests.report import worlds


def lay_down(folder: Path, world: World, with_decision: bool = True) -> Path:
    """Write a run folder as the pipeline does."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "snapshot.json").write_bytes(SNAPSHOT.dump(world.snapshot))
    (folder / "outcomes.json").write_text('[{"count": 1}]')
    if world.plan is not None:
        (folder / "plan.yaml").write_text(PLAN.dump(world.plan, "p"))
    if with_decision:
        (folder / "decision.yaml").write_text(DECISION.dump(world.record, "d"))
    return folder


@pytest.mark.parametrize("name", ["", "plan.yaml", "decision.yaml", "snapshot.json"])
def test_each_way_in_gives_the_page_that_the_run_made(tmp_path: Path, name: str) -> None:
    world = worlds.growing()
    folder = lay_down(tmp_path / "run", world)
    assert render(read_case(folder / name, worlds.BOUND)) == render(worlds.case(world))


def test_a_plan_alone_tells_the_decision_it_carries_out(tmp_path: Path) -> None:
    for world in (worlds.growing(), worlds.shrinking()):
        folder = lay_down(tmp_path / str(world.record.decision.target), world, with_decision=False)
        assert read_case(folder).record == world.record


def test_a_hold_needs_no_plan(tmp_path: Path) -> None:
    world = worlds.holding()
    case = read_case(lay_down(tmp_path, world))
    assert case.plan is None
    assert case.record == world.record


def test_a_group_that_cannot_be_simulated_gives_a_page_all_the_same(tmp_path: Path) -> None:
    assert read_case(lay_down(tmp_path, worlds.nobody_there())).outcomes == ()


def test_a_run_with_one_policy_is_enough_of_a_name(tmp_path: Path) -> None:
    world = worlds.growing()
    lay_down(tmp_path / "billing", world)
    assert read_case(tmp_path).record == world.record


def test_a_run_with_several_policies_asks_for_one(tmp_path: Path) -> None:
    lay_down(tmp_path / "billing", worlds.growing())
    lay_down(tmp_path / "mail", worlds.holding())
    with pytest.raises(BadInputError, match=r"several policies \(billing, mail\)"):
        read_case(tmp_path)


def test_a_folder_with_several_decisions_asks_for_one(tmp_path: Path) -> None:
    lay_down(tmp_path, worlds.growing())
    (tmp_path / "old.yaml").write_text(DECISION.dump(worlds.holding().record, "d"))
    with pytest.raises(BadInputError, match=r"several decisions .*old\.yaml"):
        read_case(tmp_path)


def test_a_plan_without_its_snapshot_names_the_digest(tmp_path: Path) -> None:
    world = worlds.growing()
    folder = lay_down(tmp_path, world)
    (folder / "snapshot.json").write_bytes(SNAPSHOT.dump(worlds.holding().snapshot))
    with pytest.raises(BadInputError, match=world.record.snapshot.digest):
        read_case(folder / "plan.yaml")


def test_an_edited_snapshot_is_refused(tmp_path: Path) -> None:
    folder = lay_down(tmp_path, worlds.growing())
    document = json.loads((folder / "snapshot.json").read_text())
    document["body"]["group"] = "other"
    (folder / "snapshot.json").write_text(json.dumps(document))
    with pytest.raises(DigestError):
        read_case(folder)


def test_a_snapshot_that_nothing_rests_on_says_what_to_do(tmp_path: Path) -> None:
    world = worlds.growing()
    lay_down(tmp_path, world)
    other = tmp_path / "other.json"
    other.write_bytes(SNAPSHOT.dump(replace(world.snapshot, group="other")))
    with pytest.raises(BadInputError, match="make one with planner plan"):
        read_case(other)


@pytest.mark.parametrize("name", ["nothing", "nothing.yaml", "nothing.json"])
def test_what_does_not_exist_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError, match=f"{name} does not exist"):
        read_case(tmp_path / name)


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="neither a plan nor a decision"):
        read_case(tmp_path)


def test_the_command_prints_the_path_it_wrote(tmp_path: Path) -> None:
    folder = lay_down(tmp_path, worlds.growing())
    answer = CliRunner().invoke(app, ["report", str(folder), "-o", str(tmp_path / "r.html")])
    assert (answer.exit_code, answer.output) == (0, f"{tmp_path / 'r.html'}\n")
    assert "Scale from 3 to 6" in (tmp_path / "r.html").read_text()


def test_the_command_draws_the_policys_bound(tmp_path: Path) -> None:
    folder = lay_down(tmp_path / "run", worlds.growing())
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: consumerplanner.dev/v1alpha1\nkind: ConsumerScalingPolicy\nmetadata: {name: billing}\n"
        "spec:\n  source: {system: rocketmq, nameServers: ['n:1'], cluster: c, group: billing}\n"
        "  scaleTargetRef: {name: billing-consumer}\n  maxReplicas: 16\n  objective: {maxUtilisation: 0.85}\n"
    )
    CliRunner().invoke(app, ["report", str(folder), "-o", str(tmp_path / "r.html"), "--policy", str(policy)])
    assert "the bound is 85%" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(("source", "output"), [("missing", "r.html"), ("run", ".")])
def test_a_refusal_writes_nothing(tmp_path: Path, source: str, output: str) -> None:
    lay_down(tmp_path / "run", worlds.growing())
    before = sorted(tmp_path.rglob("*"))
    answer = CliRunner().invoke(app, ["report", str(tmp_path / source), "-o", str(tmp_path / output)])
    assert isinstance(answer.exception, PlannerError)
    assert answer.exception.exit_code == 2
    assert sorted(tmp_path.rglob("*")) == before
