"""A plan file on its way into a cluster, as far as that takes no cluster."""

from datetime import timedelta
from pathlib import Path

import pytest

from planner.documents.approve import approved
from planner.documents.plan import DECISION, PLAN
from planner.errors import BadInputError
from planner.handover import hand_over, read_plan
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitReady
from tests.pod_groups import plan_for
from tests.report import worlds


def made(seconds: int = 60) -> RolloutPlan:
    return plan_for("app", ["a", "b"], (AwaitReady(2, seconds),))


def write(path: Path, plan: RolloutPlan, *, is_approved: bool = False) -> Path:
    document = PLAN.document(plan, "up", "shop")
    path.write_text(PLAN.text(approved(document) if is_approved else document), encoding="utf-8")
    return path


def test_what_is_read_names_plan_place_digest_and_approval(tmp_path: Path) -> None:
    message = read_plan(write(tmp_path / "plan.yaml", made(), is_approved=True))
    assert (message["name"], message["namespace"], message["is_approved"]) == ("up", "shop", True)
    assert message["digest"].startswith("sha256:")
    assert message["explanation"].splitlines()[1] == "- because"


def test_the_namespace_that_is_given_wins_and_a_missing_approval_is_seen(tmp_path: Path) -> None:
    message = read_plan(write(tmp_path / "plan.yaml", made()), "other")
    assert (message["namespace"], message["is_approved"]) == ("other", False)


def test_a_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "decision.yaml"
    path.write_text(DECISION.text(DECISION.document(worlds.holding().record, "hold", "shop")), encoding="utf-8")
    with pytest.raises(BadInputError, match="is a decision to hold: there is nothing to apply"):
        read_plan(path)


def test_a_file_that_was_changed_since_it_was_shown_goes_nowhere(tmp_path: Path) -> None:
    path = write(tmp_path / "plan.yaml", made())
    message = read_plan(path)
    write(path, made(seconds=int(timedelta(hours=1).total_seconds())))
    with pytest.raises(BadInputError, match="it was changed meanwhile"):
        hand_over(message, Path("/nonexistent"), approves=True)
