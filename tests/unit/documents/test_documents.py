"""Documents come back as they went out, and say so when they were touched in between."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.decision.decision import BillLine, DecisionBill
from planner.documents.data import OUTCOMES, SAMPLE, SNAPSHOT, DataKind
from planner.documents.format import digest_of
from planner.documents.plan import DECISION, DIGEST_ANNOTATION, PLAN, check_steps, read_plan_or_decision
from planner.errors import BadInputError, DigestError, DocumentError, NewerVersionError
from planner.rollout.plan import RolloutPlan
from tests.builders import OBJECTIVE, clients, decided, queues, snapshot
from tests.sample_builders import watch
from tests.step_builders import STEPS

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
    with pytest.raises(DocumentError, match="is a GroupSample, expected a GroupSnapshot"):
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
    assert [next(iter(step)) for step in document["spec"]["steps"]] == ["kind"] * 4


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


def with_every_step() -> RolloutPlan:
    assert WORLD.plan is not None
    return replace(WORLD.plan, steps=STEPS, migration="strategy")


def test_every_kind_of_step_comes_back_equal() -> None:
    plan = with_every_step()
    document = PLAN.document(plan, "billing-1")
    assert PLAN.parse(yaml.safe_load(yaml.safe_dump(document)), "p.yaml") == plan
    assert [step["kind"] for step in document["spec"]["steps"]] == [step.kind for step in STEPS]
    assert document["spec"]["steps"][6]["change"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def as_an_api_server_gives_it_back(value: object) -> object:
    """Return ``value`` as Go writes it: whole numbers without ``.0``, and what is null may be gone."""
    if isinstance(value, dict):
        return {key: as_an_api_server_gives_it_back(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [as_an_api_server_gives_it_back(item) for item in value]
    return int(value) if isinstance(value, float) and value == int(value) else value


def test_a_plan_that_was_in_the_cluster_still_has_its_digest() -> None:
    plan = replace(with_every_step(), forecast=replace(with_every_step().forecast, utilisation=1.0, drain_seconds=None))
    back = as_an_api_server_gives_it_back(PLAN.document(plan, "billing-1"))
    assert isinstance(back, dict)
    assert PLAN.parse(back, "p.yaml") == plan


BAD_STEPS = [
    ({"kind": "drainNode"}, r"field spec\.steps\.1\.kind: found drainNode, expected one of startConsumers, "),
    ({}, r"field spec\.steps\.1\.kind: found nothing, expected one of"),
    ({"kind": "awaitReady", "timeLimitSeconds": 5}, r"field spec\.steps\.1\.replicas is missing: add it"),
    ({"kind": "awaitReady", "replicas": "3", "timeLimitSeconds": 5}, r"field spec\.steps\.1\.replicas: found '3'"),
    (
        {"kind": "awaitReady", "replicas": 3, "timeLimitSeconds": 0},
        r"field spec\.steps\.1: expected awaitReady to have a",
    ),
    ({"kind": "awaitReady", "replicas": 3, "timeLimitSeconds": 5, "x": 1}, r"field spec\.steps\.1\.x is not known"),
]


@pytest.mark.parametrize(("step", "said"), BAD_STEPS, ids=[str(number) for number in range(len(BAD_STEPS))])
def test_a_wrong_step_is_named_by_its_place_and_by_its_own_kind(step: dict[str, object], said: str) -> None:
    document = PLAN.document(with_every_step(), "billing-1")
    document["spec"]["steps"][1] = step
    document["metadata"]["annotations"][DIGEST_ANNOTATION] = digest_of(document["spec"])
    with pytest.raises(DocumentError, match=said):
        PLAN.parse(document, "p.yaml")


UNSAYABLE = [float("nan"), float("inf"), "\ud800", 10**5_000]


@pytest.mark.parametrize("value", UNSAYABLE, ids=["nan", "inf", "surrogate", "digits"])
def test_what_json_cannot_say_is_refused_in_a_sentence(value: object) -> None:
    document = PLAN.document(with_every_step(), "billing-1")
    document["spec"]["reason"] = value
    with pytest.raises(DocumentError, match=r"p\.yaml: a document holds a value that JSON cannot say"):
        PLAN.parse(document, "p.yaml")


@pytest.mark.parametrize("kind", [["awaitReady"], {"a": 1}, 3, 10**5_000], ids=["list", "object", "number", "digits"])
def test_a_kind_that_is_no_text_is_refused_in_a_sentence(kind: object) -> None:
    document = PLAN.document(with_every_step(), "billing-1")
    with pytest.raises(DocumentError, match=r"field kind is .{1,90}, expected ConsumerRolloutPlan"):
        PLAN.parse({**document, "kind": kind}, "p.yaml")
    document["spec"]["steps"][1] = {"kind": kind}
    with pytest.raises(DocumentError, match=r"field spec\.steps\.1\.kind: found |JSON cannot say"):
        check_steps(document["spec"], "p.yaml")


@pytest.mark.parametrize("count", [-5, 65_537, 2_147_483_647])
def test_a_sample_of_billions_of_queues_is_refused(count: int) -> None:
    body = SAMPLE.body(watch(1)[0])
    body["routes"]["topics"][0]["brokers"][0]["read_queues"] = count
    with pytest.raises(DocumentError, match="expected 0 to 65536"):
        SAMPLE.validate(body, "sample.json")


@pytest.mark.parametrize("kind", [SAMPLE, SNAPSHOT], ids=["sample", "snapshot"])
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_time_at_which_a_calendar_ends_is_refused(kind: DataKind[Any], at: str) -> None:
    """A decision on a snapshot of the year 9999 ended in a trace: its forecast passes the last day of the calendar."""
    document = json.loads(kind.dump(watch(1)[0] if kind is SAMPLE else snapshot()))
    document["body"]["at"] = at
    document["digest"] = digest_of(document["body"])
    with pytest.raises(DocumentError, match=f"of the years 2000 to 2999, not {int(at[:4])}"):
        kind.parse(json.dumps(document).encode(), "file")


def test_a_plan_of_1000_queues_is_small_enough_for_the_api_server() -> None:
    # By circle no two queues of a consumer lie side by side, so that each is written out.
    taken = snapshot(queues(brokers=("a", "b", "c", "d"), each=250), clients(400), strategy="AVG_BY_CIRCLE")
    plan = decided(taken, replace(OBJECTIVE, highest=1_000), ("AVG_BY_CIRCLE",)).plan
    assert plan is not None
    assert plan.preconditions.queues == 1_000
    # Half a MiB is our own bound; kubectl apply keeps the document in an annotation, which takes 256 KiB.
    assert len(json.dumps(PLAN.document(plan, "billing-1")).encode()) < 240 * 1024


def test_a_price_in_money_is_in_the_bill_of_documents_and_changes_nothing_where_it_is_not_stated() -> None:
    line = BillLine(
        count=4,
        consumer_hours=8.0,
        change_hours=0.2,
        later_change_hours=0.0,
        late_minutes=0.0,
        late_hours=0.0,
        bound_hours=0.0,
        total_hours=8.2,
    )
    plain = DecisionBill(
        horizon_seconds=7200.0, first_change_seconds=600.0, futures=12, source="errors", level=2.0, lines=(line,)
    )
    priced = replace(plain, consumer_hour=0.05)
    for bill, stated in ((plain, False), (priced, True)):
        record = replace(WORLD.record, decision=replace(WORLD.record.decision, bill=bill))
        document = DECISION.document(record, "d")
        assert ("consumerHour" in document["spec"]["decision"]["bill"]) is stated
        assert DECISION.parse(document, "d") == record
        assert WORLD.plan is not None
        made = replace(WORLD.plan, bill=bill)
        assert ("consumerHour" in PLAN.document(made, "p")["spec"]["bill"]) is stated
        assert PLAN.parse(PLAN.document(made, "p"), "p") == made
