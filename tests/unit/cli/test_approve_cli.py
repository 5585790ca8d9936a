"""``planner approve``: exactly this plan is approved, as long as it holds; whatever differs is one sentence."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from planner.documents.approve import APPROVE_ANNOTATION, CONFIRM_ANNOTATION
from planner.documents.plan import DECISION, DIGEST_ANNOTATION, PLAN, read_plan_or_decision
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import CloneOffsets, ResetOffsets
from planner.storage.files import write_atomically
from tests.builders import decided, snapshot
from tests.step_builders import SINCE
from tests.unit.cli.test_cli import planner, refused

NOW = datetime.now(UTC)
MADE = decided(snapshot(capacity=65.0)).plan


def plan(**changes: object) -> RolloutPlan:
    assert MADE is not None
    return replace(MADE, made_at=NOW, valid_until=NOW + timedelta(days=1), **changes)  # type: ignore[arg-type]


def written(folder: Path, made: RolloutPlan) -> Path:
    return write_atomically(folder / "plan.yaml", PLAN.dump(made, "billing-1"))


def annotations(path: Path) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(path.read_text())["metadata"]["annotations"]
    return found


def test_a_plan_is_approved_by_the_digest_of_its_content_and_is_still_the_same_plan(tmp_path: Path) -> None:
    path = written(tmp_path, plan())
    found = planner("approve", path)
    assert found.returncode == 0, found.stderr
    digest = PLAN.digest(plan())
    assert f"Approved: {path} with digest {digest}" in found.stdout
    assert annotations(path) == {DIGEST_ANNOTATION: digest, APPROVE_ANNOTATION: digest}
    assert read_plan_or_decision(path) == plan()
    assert path.read_text().startswith("# Made by planner plan.")


def test_approving_again_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, plan())
    first = json.loads(planner("approve", path, "-o", "json").stdout)
    bytes_then = path.read_bytes()
    again = json.loads(planner("approve", path, "-o", "json").stdout)
    assert (first["was_approved"], again["was_approved"]) == (False, True)
    assert first["digest"] == again["digest"] == PLAN.digest(plan())
    assert path.read_bytes() == bytes_then


def test_the_approval_of_what_the_plan_was_before_is_replaced(tmp_path: Path) -> None:
    path = written(tmp_path, plan())
    document = PLAN.document(plan(), "billing-1", "shop")
    document["metadata"]["annotations"][APPROVE_ANNOTATION] = "sha256:before"
    path.write_text(PLAN.text(document))
    assert planner("approve", path).returncode == 0
    assert annotations(path)[APPROVE_ANNOTATION] == PLAN.digest(plan())
    assert yaml.safe_load(path.read_text())["metadata"]["namespace"] == "shop"


def test_what_may_not_be_approved_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    path = written(tmp_path, plan())
    text = path.read_text()
    digest = PLAN.digest(plan())
    refused(planner("approve", path, "--digest", "sha256:0"), 2, f"has digest {digest}, not sha256:0: read it again")
    refused(planner("approve", path, "--confirm", "yes"), 2, "no step asks for the phrase 'yes'")
    assert path.read_text() == text
    path.write_text(text.replace("toReplicas: 4", "toReplicas: 40"))
    refused(planner("approve", path), 2, "plan.yaml: its content has digest", "it was edited after it was made")
    assert APPROVE_ANNOTATION not in path.read_text()


def test_a_plan_that_holds_no_longer_is_refused_with_exit_code_1(tmp_path: Path) -> None:
    assert MADE is not None
    over = replace(MADE, made_at=NOW - timedelta(hours=1), valid_until=NOW - timedelta(minutes=1))
    path = written(tmp_path, over)
    refused(planner("approve", path), 1, "the plan held until", "make a new one with planner plan")
    assert APPROVE_ANNOTATION not in path.read_text()


def test_what_is_no_plan_is_refused(tmp_path: Path) -> None:
    hold = tmp_path / "hold.yaml"
    hold.write_text(DECISION.dump(decided(snapshot(capacity=100.0)).record, "billing-1"))
    refused(planner("approve", hold), 2, "is a ConsumerScalingDecision, expected a ConsumerRolloutPlan")
    refused(planner("approve", tmp_path / "absent.yaml"), 2, "absent.yaml does not exist")


@pytest.mark.parametrize("typed", [(), ("set the offsets of billing-2",), ("set the offsets of billing-3",)])
def test_offsets_are_written_only_where_every_phrase_was_typed(tmp_path: Path, typed: tuple[str, ...]) -> None:
    phrases = ("set the offsets of billing-2", "set the offsets of billing-3")
    steps = (CloneOffsets("billing-2", phrases[0], 60), ResetOffsets("billing-3", phrases[1], 60, to_time=SINCE))
    path = written(tmp_path, plan(steps=steps, migration="strategy"))
    missing = next(phrase for phrase in phrases if phrase not in typed)
    options = [word for phrase in typed for word in ("--confirm", phrase)]
    refused(planner("approve", path, *options), 2, f"add --confirm '{missing}'")
    both = [word for phrase in phrases for word in ("--confirm", phrase)]
    assert planner("approve", path, *both).returncode == 0
    assert annotations(path)[CONFIRM_ANNOTATION] == "\n".join(phrases)
