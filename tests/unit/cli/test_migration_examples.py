"""Each script of examples/migrations leaves a plan of its kind, made from a snapshot of a real group."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.documents.plan import read_plan_or_decision
from planner.rollout.migrations.requests import Request
from planner.rollout.plan import RolloutPlan

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[3] / "examples" / "migrations"
SCRIPTS = sorted(FOLDER.glob("*.sh"))


def run(script: Path, place: Path) -> RolloutPlan:
    """Run a script; return the plan that it leaves."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [script], cwd=place, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Step 1: " in done.stdout
    made = read_plan_or_decision(place / f"{script.stem}.yaml")
    assert isinstance(made, RolloutPlan)
    return made


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_leaves_a_plan_of_its_kind_with_its_cost(script: Path, tmp_path: Path) -> None:
    made = run(script, tmp_path)
    kind = script.stem.removesuffix("-in-rolls").replace("-", "")
    assert (made.migration or "").lower().startswith(kind)
    assert made.ways
    assert made.forecast.cost is not None or made.forecast.unknowns


def test_there_is_a_script_for_every_kind_and_the_readme_names_each() -> None:
    kinds = {one.__dataclass_fields__["kind"].default.lower() for one in Request.__args__}
    stems = {script.stem.removesuffix("-in-rolls").replace("-", "") for script in SCRIPTS}
    assert {kind for kind in kinds if not any(kind.startswith(stem) for stem in stems)} == set()
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [script.name for script in SCRIPTS if f"`{script.name}`" not in readme] == []
