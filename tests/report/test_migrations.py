"""A migration carries out no decision on a count: the page says so in a sentence, and draws nothing that is not so."""

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.main import app
from planner.documents.data import SNAPSHOT
from planner.documents.plan import PLAN, read_plan_or_decision
from planner.errors import BadInputError
from planner.report.source import read_case
from planner.rollout.plan import RolloutPlan
from tests.report import worlds
from tests.report.test_source import lay_down

EXAMPLES = Path(__file__).parents[2] / "examples" / "migrations"
GROUPS = ("shop-orders", "shop-payments", "shop-invoices")
SCRIPTS = sorted(EXAMPLES.glob("*.sh"))
REFUSED = "is a migration, and the page is about a count: planner explain shows its steps"


def made_by(script: Path, folder: Path) -> Path:
    """Run what an example runs; return the plan that it leaves, beside its snapshot."""
    for name in GROUPS:
        shutil.copy(EXAMPLES / f"{name}.json", folder)
    plan = folder / f"{script.stem}.yaml"
    line = script.read_text(encoding="utf-8").split("exec planner ")[1].replace("\\\n", " ")
    words = shlex.split(line.replace("$here", str(EXAMPLES)).replace("${1:-" + plan.name + "}", str(plan)))
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    return plan


def refused(source: Path, page: Path) -> str:
    """Return the sentence that `planner report` refuses with; nothing is written."""
    answer = CliRunner().invoke(app, ["report", str(source), "-o", str(page)])
    assert isinstance(answer.exception, BadInputError), answer.output
    assert answer.exception.exit_code == 2
    assert not page.exists()
    return str(answer.exception)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_migration_has_no_page_whichever_way_it_is_named(script: Path, tmp_path: Path) -> None:
    plan = made_by(script, tmp_path)
    read = read_plan_or_decision(plan)
    taken = {SNAPSHOT.digest(SNAPSHOT.read(path)): path for path in (tmp_path / f"{name}.json" for name in GROUPS)}
    snapshot = taken[read.snapshot.digest]
    for source in (plan, tmp_path, snapshot):
        assert refused(source, tmp_path / "page.html") == f"{plan} {REFUSED}"


def test_a_migration_beside_a_decision_of_the_same_moment_is_not_taken_for_its_plan(tmp_path: Path) -> None:
    world = worlds.growing()
    folder = lay_down(tmp_path, world)
    assert world.plan is not None
    migration = read_plan_or_decision(made_by(EXAMPLES / "update.sh", tmp_path))
    assert isinstance(migration, RolloutPlan)
    plan = world.plan
    beside = replace(migration, snapshot=plan.snapshot, made_at=plan.made_at, valid_until=plan.valid_until)
    (folder / "a-migration.yaml").write_text(PLAN.dump(beside, "m"))
    (folder / "update.yaml").unlink()
    for source in (folder, folder / "decision.yaml", folder / "snapshot.json"):
        assert read_case(source).plan == world.plan
