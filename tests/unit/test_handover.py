"""A plan file on its way into a cluster, as far as that takes no cluster."""

from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from planner.approval.handover import hand_over, read_plan, submit
from planner.deployments.plans import ClusterPlans
from planner.documents.approve import APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION, CONFIRM_ANNOTATION, approved
from planner.documents.plan import DECISION, PLAN
from planner.errors import BadInputError
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitReady, CloneOffsets, ResetOffsets
from tests.pod_groups import plan_for
from tests.report import worlds
from tests.step_builders import SINCE
from tests.unit.deployments.fake_api import FakeApi

PHRASES = ("set the offsets of shop-2", "set the offsets of shop-3")


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
    assert message["explanation"].splitlines()[0] == "- because"


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


def migration() -> dict[str, Any]:
    """Return the document, not approved, of a plan with two phrases."""
    steps = (CloneOffsets("shop-2", PHRASES[0], 60), ResetOffsets("shop-3", PHRASES[1], 60, to_time=SINCE))
    return PLAN.document(plan_for("app", ["a", "b"], steps, "strategy"), "up", "shop")


def submitted(before: dict[str, Any], then: dict[str, Any], *, is_dry: bool = False) -> tuple[FakeApi, Any]:
    """Return the cluster and the plan after one file was handed over, and then a file of the same plan."""
    api = FakeApi()
    plans = ClusterPlans(cast("Any", api), "shop")
    submit(plans, before)
    return api, submit(plans, then, is_dry=is_dry)


def test_approval_and_phrases_of_the_file_come_to_a_plan_that_is_there_already() -> None:
    """Red when the plan waits for phrases that somebody has typed into its file."""
    bare = migration()
    api, stored = submitted(bare, approved(bare, PHRASES))
    assert (stored.requests.approval.digest, stored.requests.approval.by) == (stored.digest, "alice")
    assert stored.requests.confirmed == PHRASES
    assert len(api.writes) == 1, "no executor sees the approval without the phrases"


@pytest.mark.parametrize("there", [(), PHRASES[:1], ("said before", PHRASES[1])])
def test_phrases_come_to_a_plan_that_lacks_nothing_else_and_its_own_stay(there: tuple[str, ...]) -> None:
    """Red when phrases come with an approval only, or replace those in the cluster."""
    bare = migration()
    api, stored = submitted(approved(bare, there), approved(bare, PHRASES))
    assert set(stored.requests.confirmed) == {*there, *PHRASES}
    assert [list(notes) for notes in api.writes] == [[CONFIRM_ANNOTATION]], "who approved stays"
    again = submit(ClusterPlans(cast("Any", api), "shop"), approved(bare, PHRASES))
    assert again.requests == stored.requests
    assert len(api.writes) == 1, "what is there is not written again"


def test_an_approval_in_the_cluster_of_another_digest_gives_way_to_the_files() -> None:
    """Red when a plan goes on waiting though its file was approved since."""
    bare = migration()
    other = approved(bare, PHRASES)
    other["metadata"]["annotations"][APPROVE_ANNOTATION] = "sha256:other"
    api, stored = submitted(other, approved(bare, PHRASES))
    assert stored.requests.approval.digest == stored.digest
    assert [list(notes) for notes in api.writes] == [[APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION]]


def test_nothing_is_carried_over_from_a_file_whose_approval_is_of_another_digest_nor_in_a_dry_run() -> None:
    """Red when phrases that were typed for another plan allow this one to write offsets, or a dry run writes."""
    bare = migration()
    stale = approved(bare, PHRASES)
    stale["metadata"]["annotations"][APPROVE_ANNOTATION] = "sha256:other"
    for then, is_dry in ((stale, False), (approved(bare, PHRASES), True)):
        api, stored = submitted(approved(bare), then, is_dry=is_dry)
        assert (stored.requests.confirmed, api.writes) == ((), [])


def test_a_phrase_that_no_step_asks_for_is_not_written_into_the_cluster() -> None:
    """Red when applying a file again takes the right to approve for nothing."""
    bare = migration()
    api, _ = submitted(approved(bare, PHRASES), approved(bare, (*PHRASES, "and more")))
    assert api.writes == []
