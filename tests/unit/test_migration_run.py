"""The migration DAG's stages on files: a snapshot, a request and a person's answer become an approved plan."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from planner.approval.handover import PlanMessage, write_approval
from planner.documents.approve import CONFIRM_ANNOTATION, approval_of, digest_in
from planner.documents.data import SNAPSHOT
from planner.documents.plan import read_document
from planner.errors import BadInputError, DocumentError, OutOfReachError, RefusedError
from planner.model.snapshot import GroupSnapshot
from planner.runs import migration
from planner.sources import past
from planner.storage.layout import PolicyFiles
from tests.sample_builders import POLICY, watch
from tests.unit.cli.test_migrate_cli import files, rocketmq

UPDATE = {"kind": "update", "change": {"containers": [{"container": "app", "image": "shop:2"}]}}
SET_GROUP = {"containers": [{"container": "app", "env": [{"name": "GROUP", "value": "billing-2"}]}]}
RENAME = {"kind": "rename", "to": "billing-2", "green": "app-2", "change": SET_GROUP}
PHRASES = ("stop all consumers of billing", "set the offsets of billing-2")
TYPED = "\n".join(PHRASES)


def fresh() -> GroupSnapshot:
    return replace(rocketmq(), at=datetime.now(UTC).replace(microsecond=0))


def planned(folder: Path, asked: dict[str, Any], taken: GroupSnapshot | None = None) -> PlanMessage:
    snapshot, policy = files(folder, taken or fresh())
    return migration.plan(migration.observe_snapshot(policy, folder / "data", asked, snapshot), asked)


ANSWER: dict[str, Any] = {"chosen_options": ["Approve"], "params_input": {}, "responded_by_user": {"name": "ann"}}
"""What Airflow's approval returns."""


def test_the_plan_and_what_it_rests_on_lie_in_the_migrations_own_folder(tmp_path: Path) -> None:
    taken = fresh()
    message = planned(tmp_path, UPDATE, taken)
    plan = Path(message["file"])
    assert plan.parents[3] == tmp_path / "data"
    assert plan.parents[2].name == "migrations"
    assert SNAPSHOT.read(plan.with_name("snapshot.json")) == taken
    assert message["name"].startswith("shop-update-")
    assert "Step 1: give all 4 pods image shop:2" in message["explanation"]
    assert not message["is_approved"]


def test_a_persons_answer_approves_exactly_the_plan_that_was_shown(tmp_path: Path) -> None:
    message = planned(tmp_path, UPDATE)
    assert write_approval(message, ANSWER) == message["digest"]
    document = read_document(Path(message["file"]))
    assert approval_of(document) == digest_in(document) == message["digest"]
    with pytest.raises(BadInputError, match="read it again"):
        write_approval({**message, "digest": "sha256:0"}, ANSWER)


def test_two_requests_on_one_snapshot_leave_two_plans(tmp_path: Path) -> None:
    taken = fresh()
    first, second = planned(tmp_path, UPDATE, taken), planned(tmp_path, {**UPDATE, "surge": 1}, taken)
    assert digest_in(read_document(Path(first["file"]))) == first["digest"]
    assert digest_in(read_document(Path(second["file"]))) == second["digest"] != first["digest"]
    for message in (first, second):  # so that two of one second have two names
        assert message["name"].endswith(f"-{message['digest'].removeprefix('sha256:')[:6]}")


def test_a_policy_that_is_edited_after_the_watch_changes_nothing(tmp_path: Path) -> None:
    snapshot, policy = files(tmp_path, fresh())
    observed = migration.observe_snapshot(policy, tmp_path / "data", UPDATE, snapshot)
    policy.write_text("something else", encoding="utf-8")
    assert migration.plan(observed, UPDATE)["name"].startswith("shop-update-")


def test_a_request_is_checked_before_anything_is_watched_and_the_refusal_is_short(tmp_path: Path) -> None:
    _, policy = files(tmp_path, fresh())
    assert [migration.check(policy, asked) for asked in (UPDATE, RENAME)] == ["update", "rename"]
    with pytest.raises(BadInputError, match=r"kind is 'x+…, expected one of update, .*, consumerProtocol$") as wrong:
        migration.check(policy, {"kind": "x" * 9_000})
    assert len(str(wrong.value)) < 200
    with pytest.raises(BadInputError, match="kind is missing, expected one of update"):
        migration.check(policy, {})
    with pytest.raises(DocumentError, match=r"field migration\.change\.contaners is not known") as typo:
        migration.check(policy, {"kind": "update", "change": {"contaners": []}})
    assert len(str(typo.value)) < 200
    with pytest.raises(BadInputError, match="does not exist"):
        migration.check(tmp_path / "absent.yaml", UPDATE)


@pytest.mark.parametrize("options", [["Reject"], [], ["Approve", "Reject"], None])
def test_an_answer_that_is_no_yes_approves_nothing(tmp_path: Path, options: list[str] | None) -> None:
    message = {"file": str(tmp_path / "plan.yaml"), "name": "p", "digest": "sha256:0"}
    with pytest.raises(BadInputError, match="was not approved: the answer is "):
        write_approval(cast("PlanMessage", message), {**ANSWER, "chosen_options": options})


def test_a_question_that_was_marked_as_done_is_no_approval(tmp_path: Path) -> None:
    message = planned(tmp_path, UPDATE)
    with pytest.raises(BadInputError, match="nobody has approved"):
        write_approval(message, None)
    assert approval_of(read_document(Path(message["file"]))) is None


@pytest.mark.parametrize("typed", [(), PHRASES[:1], PHRASES[1:], (*PHRASES, "set the offsets of billing")])
def test_a_standstill_and_offsets_are_allowed_by_their_phrases_alone(typed: tuple[str, ...], tmp_path: Path) -> None:
    message = planned(tmp_path, RENAME)
    assert message["phrases"] == [*PHRASES]
    with pytest.raises(BadInputError, match="--confirm"):
        write_approval(message, ANSWER, typed)
    assert write_approval(message, ANSWER, PHRASES)
    annotations = read_document(Path(message["file"]))["metadata"]["annotations"]
    assert annotations[CONFIRM_ANNOTATION] == TYPED


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"kind": "destroy"}, DocumentError, "parameter migration: field migration.kind: found 'destroy'"),
        ({**UPDATE, "more": 1}, DocumentError, "field migration.more is not known"),
        ({"kind": "update"}, DocumentError, "field migration.change is missing"),
        ({**RENAME, "to": "billing"}, BadInputError, "has this name already"),
    ],
)
def test_what_was_asked_for_wrongly_is_named(
    asked: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        planned(tmp_path, asked)


def test_an_old_snapshot_and_one_of_another_group_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="OldData"):
        planned(tmp_path, UPDATE, rocketmq())
    _, policy = files(tmp_path, fresh())
    other, _ = files(tmp_path / "other", replace(fresh(), group="other"))
    with pytest.raises(BadInputError, match="two that belong together"):
        migration.plan(migration.observe_snapshot(policy, tmp_path / "data", UPDATE, other), UPDATE)


def test_a_metrics_server_that_is_away_costs_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OutOfReachError("prometheus is away")

    monkeypatch.setattr(migration, "watch", lambda *_: watch(4))
    monkeypatch.setattr(past, "read_past", fail)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("group: shop}", "group: shop, prometheus: {url: http://one:9090}}"))
    taken = SNAPSHOT.read(PolicyFiles(Path(migration.observe(policy, tmp_path, UPDATE)["folder"])).snapshot)
    assert taken.problems == ("the past out of metrics was not read: prometheus is away",)


@pytest.mark.parametrize("named", ["k8s://shop", "k8s://shop/", "k8s:///orders", "k8s://shop/a/b", "k8s://Shop/orders"])
def test_an_object_is_named_by_namespace_and_name(named: str) -> None:
    with pytest.raises(BadInputError, match=r"^policy: found k8s://.*, expected a file or k8s://NAMESPACE/NAME$"):
        migration.check(named, UPDATE)
