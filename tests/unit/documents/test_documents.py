"""Documents come back as they went out, and say so when they were touched in between."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from planner.documents.data import OUTCOMES, SAMPLE, SNAPSHOT
from planner.documents.format import digest_of
from planner.documents.plan import DECISION, DIGEST_ANNOTATION, PLAN, read_plan_or_decision
from planner.errors import BadInputError, DigestError, DocumentError, NewerVersionError
from tests.builders import decided, snapshot
from tests.sample_builders import watch

WORLD = decided(snapshot(capacity=65.0), trials=20)


def test_a_sample_comes_back_equal() -> None:
    (sample,) = watch(1)
    assert SAMPLE.parse(SAMPLE.dump(sample), "s.json") == sample


def test_a_snapshot_comes_back_equal_and_equal_ones_have_equal_bytes() -> None:
    text = SNAPSHOT.dump(WORLD.snapshot)
    again = SNAPSHOT.parse(text, "s.json")
    assert again == WORLD.snapshot
    assert SNAPSHOT.dump(again) == text


def test_outcomes_come_back_equal() -> None:
    assert OUTCOMES.parse(OUTCOMES.dump(WORLD.outcomes), "o.json") == WORLD.outcomes


def older(dumped: bytes, *fields: str) -> str:
    """Return the document as a version wrote it that did not know these fields of its body yet."""
    document = json.loads(dumped)
    for item in document["body"] if isinstance(document["body"], list) else [document["body"]]:
        for field in fields:
            del item[field]
    return json.dumps({**document, "digest": digest_of(document["body"])})


def test_a_snapshot_from_before_setups_is_read_and_tells_of_none() -> None:
    old = SNAPSHOT.parse(older(SNAPSHOT.dump(WORLD.snapshot), "setups", "notifies_changes"), "s.json")
    assert old == replace(WORLD.snapshot, setups=(), notifies_changes=None)


def test_outcomes_from_before_forecasts_are_read_without_them() -> None:
    assert any(outcome.transition for outcome in WORLD.outcomes)
    old = OUTCOMES.parse(older(OUTCOMES.dump(WORLD.outcomes), "transition"), "o.json")
    assert old == tuple(replace(outcome, transition=None) for outcome in WORLD.outcomes)


def test_a_plan_from_before_forecasts_is_read_without_its_cost(tmp_path: Path) -> None:
    assert WORLD.plan is not None
    assert WORLD.plan.forecast.cost is not None
    document = PLAN.document(WORLD.plan, "billing-1")
    del document["spec"]["forecast"]["cost"]
    document["metadata"]["annotations"][DIGEST_ANNOTATION] = digest_of(document["spec"])
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(document))
    assert read_plan_or_decision(path) == replace(WORLD.plan, forecast=replace(WORLD.plan.forecast, cost=None))


def test_an_edited_snapshot_is_refused() -> None:
    document = json.loads(SNAPSHOT.dump(WORLD.snapshot))
    document["body"]["queues"][0]["lag"] = 1
    with pytest.raises(DigestError, match="edited after it was made"):
        SNAPSHOT.parse(json.dumps(document), "s.json")


def test_a_cut_off_snapshot_is_refused() -> None:
    with pytest.raises(DocumentError, match="cut off"):
        SNAPSHOT.parse(SNAPSHOT.dump(WORLD.snapshot)[:-100], "s.json")


def test_a_newer_snapshot_is_refused_as_newer() -> None:
    with pytest.raises(NewerVersionError, match="v1beta1"):
        SNAPSHOT.parse(SNAPSHOT.dump(WORLD.snapshot).replace(b"v1alpha1", b"v1beta1"), "s.json")


def test_another_kind_is_refused_by_name() -> None:
    with pytest.raises(DocumentError, match="kind is 'GroupSample', expected GroupSnapshot"):
        SNAPSHOT.parse(SAMPLE.dump(watch(1)[0]), "s.json")


@pytest.mark.parametrize("text", ["[]", "3", '"x"', "null", "{}", '{"apiVersion": 3}'])
def test_json_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=r"s\.json"):
        SNAPSHOT.parse(text, "s.json")


def test_a_plan_comes_back_equal(tmp_path: Path) -> None:
    assert WORLD.plan is not None
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.dump(WORLD.plan, "billing-1"))
    assert read_plan_or_decision(path) == WORLD.plan


def test_a_hold_comes_back_equal(tmp_path: Path) -> None:
    record = decided(snapshot(capacity=100.0)).record
    path = tmp_path / "decision.yaml"
    path.write_text(DECISION.dump(record, "billing-1"))
    assert read_plan_or_decision(path) == record


def test_a_plan_is_spelled_as_kubernetes_spells_and_shows_the_kind_of_step_first() -> None:
    assert WORLD.plan is not None
    document = yaml.safe_load(PLAN.dump(WORLD.plan, "billing-1"))
    assert document["spec"]["validUntil"].startswith("2026-11-21T10:45:00")
    assert [next(iter(step)) for step in document["spec"]["steps"]] == ["kind"] * 3


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    assert WORLD.plan is not None
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.dump(WORLD.plan, "billing-1").replace("toReplicas: 4", "toReplicas: 40"))
    with pytest.raises(DigestError, match="edited after it was made"):
        read_plan_or_decision(path)


@pytest.mark.parametrize("text", ["", "[]", "kind: ConsumerRolloutPlan\n", "a: [\n", "--- 1\n--- 2\n"])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(BadInputError, match=r"plan\.yaml"):
        read_plan_or_decision(path)
