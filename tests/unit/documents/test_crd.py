"""The definitions say what the planner's types say, in the form that Kubernetes takes, and lose nothing."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.documents.crd import manifests
from planner.documents.plan import PLAN
from planner.documents.policy import parse_policy
from planner.documents.status import dump_status, parse_status
from planner.documents.structural import structural
from planner.errors import DocumentError
from planner.execution.phases import Phase
from planner.execution.progress import Approval, Condition, PodBefore, Refusal, RolloutStatus, StepProgress
from planner.verification.verdict import Figure, Fit, Verdict
from tests.builders import AT, decided, snapshot
from tests.step_builders import STEPS

CRDS = Path(__file__).parents[3] / "k8s" / "crds"
MADE = {name: yaml.safe_load(text) for name, text in manifests()}
POLICIES, PLANS = "consumerscalingpolicies.yaml", "consumerrolloutplans.yaml"

ALLOWED = {
    "type", "description", "properties", "required", "items", "additionalProperties", "enum", "format", "nullable",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
    "maxProperties", "pattern", "anyOf", "x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "default",
}  # fmt: skip
"""What a structural schema may say (apiextensions.k8s.io/v1 JSONSchemaProps), as far as ours need it."""


def schema_of(name: str) -> dict[str, Any]:
    (version,) = MADE[name]["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def test_the_committed_definitions_are_those_that_the_types_make() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in CRDS.glob("*.yaml")}
    assert committed == dict(manifests()), "run make crds"


def places(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schema and all below it that describe a value, leaving out what stands inside anyOf."""
    yield schema
    below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for one in below:
        if one is not None:
            yield from places(one)


@pytest.mark.parametrize("name", MADE)
def test_the_schemas_are_structural(name: str) -> None:
    for place in places(schema_of(name)):
        assert place.keys() <= ALLOWED
        assert isinstance(place["type"], str)
        assert pruned(place.get("default"), place) == place.get("default")
        assert not {"properties", "additionalProperties"} <= place.keys()
        assert isinstance(place.get("exclusiveMinimum", True), bool)
        assert not (place.get("nullable") and "enum" in place)
        for either in place.get("anyOf", ()):
            assert either.keys() == {"properties", "required"}
            assert all(condition.keys() == {"enum"} for condition in either["properties"].values())
            assert set(either["required"]) <= place["properties"].keys()


def pruned(value: Any, schema: dict[str, Any]) -> Any:
    """Return what an API server keeps of ``value``: not what the schema does not name, and no null of listed values."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(value, dict) and "additionalProperties" in schema:
        return {key: pruned(one, schema["additionalProperties"]) for key, one in value.items()}
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        known = {key: one for key, one in value.items() if key in fields}
        return {
            key: pruned(one, fields[key]) for key, one in known.items() if one is not None or "enum" not in fields[key]
        }
    return [pruned(one, schema["items"]) for one in value] if isinstance(value, list) else value


def broken(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield every place at which ``value`` is not what the schema says, as far as these documents need it."""
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": int | float, "boolean": bool}
    if value is None and schema.get("nullable"):
        return
    if not isinstance(value, types[schema["type"]]) or value not in schema.get("enum", (value,)):
        yield f"{path}: {value!r}"
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from broken(one, schema["items"], f"{path}[{index}]")
    elif isinstance(value, dict):
        missing = set(schema.get("required", ())) - value.keys()
        either = [set(e["required"]) for e in schema.get("anyOf", ()) if fits_kind(value, e)]
        yield from (f"{path}: {name} is missing" for name in missing)
        yield from (f"{path}: no kind" for _ in range(bool(schema.get("anyOf")) and len(either) != 1))
        yield from (f"{path}: {names - value.keys()} missing" for names in either if not names <= value.keys())
        for key, one in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if below is not None:
                yield from broken(one, below, f"{path}.{key}")


def fits_kind(value: dict[str, Any], either: dict[str, Any]) -> bool:
    return all(value.get(name) in condition["enum"] for name, condition in either["properties"].items())


STATUS = RolloutStatus(
    phase=Phase.ABORTING,
    phase_since=AT,
    approval=Approval("sha256:1", "somebody", AT),
    steps=(
        StepProgress(0, "startConsumers", AT, AT + timedelta(seconds=3), pods_before=(PodBefore("a", 0),)),
        StepProgress(1, "awaitReady", AT, seen="x", seen_at=AT, message="2 of 3 pods are ready"),
    ),
    refusals=(Refusal("Expired", "the plan is over"),),
    surprises=("another pod died",),
    ended="old",
    held="the controller may not patch pods",
    verdict=Verdict(AT, (Figure("moved", "queues", 1, 2, None, None, Fit.UNKNOWN, "nobody saw it"),)),
    executor="laptop",
    last_look_at=AT,
    observed_generation=2,
    kind="scale",
    progress="1/7",
    conditions=(Condition("Held", "True", "Held", "the controller may not patch pods", AT, 2),),
)


def plan_document() -> dict[str, Any]:
    plan = decided(snapshot(capacity=65.0), trials=20).plan
    assert plan is not None
    plan = replace(plan, steps=STEPS, migration="image", policy_digest="sha256:2", target_replicas=4)
    document = PLAN.document(plan, "billing-1", "shop")
    return {**document, "metadata": {}, "status": dump_status(STATUS)}


def test_of_a_plan_with_every_step_and_a_full_status_nothing_is_lost() -> None:
    document = plan_document()
    assert pruned(document, schema_of(PLANS)) == document
    assert list(broken(document, schema_of(PLANS))) == []


def test_a_step_that_lacks_a_field_of_its_kind_is_broken() -> None:
    document = plan_document()
    del document["spec"]["steps"][1]["replicas"]
    assert list(broken(document, schema_of(PLANS))) == [".spec.steps[1]: {'replicas'} missing"]


@pytest.mark.parametrize("path", sorted((CRDS.parents[1] / "examples").rglob("policies/*.yaml")), ids=lambda p: p.name)
def test_of_the_example_policies_nothing_is_lost(path: Path) -> None:
    document = {**yaml.safe_load(path.read_text()), "metadata": {}}
    assert pruned(document, schema_of(POLICIES)) == document
    assert list(broken(document, schema_of(POLICIES))) == []


def test_a_policy_written_out_with_all_its_defaults_is_the_same_policy() -> None:
    path = CRDS.parents[1] / "examples" / "policies" / "shop-orders.yaml"
    policy = parse_policy(path.read_text(), "p.yaml")
    written = policy.model_dump(mode="json", by_alias=True)
    kept = pruned({**written, "metadata": {}}, schema_of(POLICIES))
    assert list(broken(kept, schema_of(POLICIES))) == []
    for text in (written, {**kept, "metadata": written["metadata"]}):
        again = parse_policy(yaml.safe_dump(text), "p.yaml")
        assert (again, again.digest) == (policy, policy.digest)


def test_a_status_comes_back_equal_and_a_plan_without_one_is_new() -> None:
    assert parse_status(dump_status(STATUS), "p.yaml") == STATUS
    assert parse_status(None, "p.yaml") == parse_status({}, "p.yaml") == RolloutStatus()
    with pytest.raises(DocumentError, match=r"p\.yaml: field status\.phase: found 'Done', expected 'Pending', "):
        parse_status({**dump_status(STATUS), "phase": "Done"}, "p.yaml")


def test_names_columns_and_status_are_what_kubectl_shows() -> None:
    policies, plans = (MADE[name]["spec"] for name in (POLICIES, PLANS))
    assert [one["names"]["shortNames"] for one in (policies, plans)] == [["csp"], ["crp"]]
    assert policies["names"]["categories"] == plans["names"]["categories"] == ["consumerplanner"]
    assert plans["versions"][0]["subresources"] == policies["versions"][0]["subresources"] == {"status": {}}
    columns = {one["name"]: one["jsonPath"] for one in plans["versions"][0]["additionalPrinterColumns"]}
    document = plan_document()
    shown = {name: at(document, path) for name, path in columns.items() if not path.startswith(".metadata")}
    assert shown["To"] == 4
    assert (shown["Phase"], shown["Kind"], shown["Step"], shown["Held"]) == ("Aborting", "scale", "1/7", "True")
    assert None not in shown.values()


def at(document: Any, path: str) -> Any:
    """Return what a column's path leads to; of conditions it names one by a field of it."""
    for name, field, value in re.findall(r'\.(\w+)(?:\[\?\(@\.(\w+)=="(\w+)"\)\])?', path):
        document = document[name]
        if field:
            document = next(one for one in document if one[field] == value)
    return document


def variant(kind: str, kind_of_x: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"type": "string", "const": kind}, "x": {"type": kind_of_x}}}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "no field distinguishes the variants"),
        ({"type": "array", "items": {}}, "no structural form"),
        ({"anyOf": [variant("a", "string"), variant("b", "integer")]}, "field x has two types"),
        ({"anyOf": [variant("a", "string"), variant("a", "string")]}, "no field distinguishes the variants"),
    ],
)
def test_what_has_no_structural_form_is_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        structural(schema)


def test_the_server_refuses_a_step_that_waits_for_ever() -> None:
    limit = schema_of(PLANS)["properties"]["spec"]["properties"]["steps"]["items"]["properties"]["timeLimitSeconds"]
    assert (limit["minimum"], limit["maximum"]) == (1, 604_800)
