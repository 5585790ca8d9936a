"""``ConsumerRolloutPlan`` and, when the answer is hold, ``ConsumerScalingDecision``: YAML with a digest."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, get_args

from pydantic import TypeAdapter, ValidationError

from planner.decision.decision import BillLine, Decision, DecisionBill, Rejection
from planner.documents.format import (
    API_VERSION,
    DIGEST_PREFIX,
    canonical,
    check_digest,
    check_header,
    digest_of,
    document_error,
    shown,
)
from planner.documents.spelling import spell_in_camel_case
from planner.documents.yaml import MOST_PLAN_TEXT, dump_yaml, load_yaml
from planner.errors import BadInputError, DocumentError, why_unread
from planner.rollout import plan as plan_types
from planner.rollout import steps as step_types
from planner.rollout import template as template_types
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.rollout.steps import Step

DIGEST_ANNOTATION = "consumerplanner.dev/digest"

T = TypeVar("T", RolloutPlan, DecisionRecord)

_NOTE = {
    "ConsumerRolloutPlan": "# Made by planner plan. The digest covers the spec: edit the policy, not this file.\n",
    "ConsumerScalingDecision": "# Made by planner plan: a decision and its reasons. There is nothing to apply.\n",
}


spell_in_camel_case(
    [
        *vars(plan_types).values(),
        *vars(step_types).values(),
        *vars(template_types).values(),
        Decision,
        DecisionBill,
        BillLine,
        Rejection,
    ]
)


@dataclass(frozen=True, slots=True)
class SpecKind(Generic[T]):
    """One kind of document whose ``spec`` is a value of ours, its digest in an annotation.

    ``in_cluster`` documents are written so that an API server gives them back with the same digest: it drops what is
    null, and whole numbers come back without their ``.0``.
    """

    kind: str
    adapter: TypeAdapter[T]
    in_cluster: bool = False

    def spec(self, value: T) -> dict[str, Any]:
        """Return ``value`` as plain types, spelled in camelCase."""
        dumped = self.adapter.dump_python(value, mode="json", by_alias=True, exclude_none=self.in_cluster)
        spec = cast("dict[str, Any]", _whole(dumped) if self.in_cluster else dumped)
        if "decision" in spec and spec["decision"]["bill"] is None:
            # Decisions without a bill keep the digest that earlier releases gave them.
            del spec["decision"]["bill"]
        elif "decision" in spec and spec["decision"]["bill"].get("consumerHour", 0.0) is None:
            # So do those of a policy that states no price in money.
            del spec["decision"]["bill"]["consumerHour"]
        if "decision" in spec and spec.get("secondLever", ...) is None:
            # And those that ask for no more pods.
            del spec["secondLever"]
        if "steps" in spec:
            # A reader wants to see first what kind of step it is.
            spec["steps"] = [{"kind": step["kind"], **step} for step in spec["steps"]]
        return spec

    def digest(self, value: T) -> str:
        """Return the digest that an approval names."""
        return digest_of(self.spec(value))

    def dump(self, value: T, name: str) -> str:
        """Return the YAML document, metadata named ``name``."""
        return self.text(self.document(value, name))

    def text(self, document: Mapping[str, Any]) -> str:
        """Return a document of this kind as YAML."""
        return _NOTE[self.kind] + dump_yaml(document)

    def document(self, value: T, name: str, namespace: str | None = None) -> dict[str, Any]:
        """Return the whole document as plain types, metadata named ``name``."""
        spec = self.spec(value)
        location = {} if namespace is None else {"namespace": namespace}
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": {"name": name, **location, "annotations": {DIGEST_ANNOTATION: digest_of(spec)}},
            "spec": spec,
        }

    def parse(self, document: Mapping[str, Any], where: str) -> T:
        """Return the value in the document. Raises ``DocumentError`` or ``DigestError``."""
        checked = check_header(document, self.kind, where)
        metadata = checked.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        claimed = annotations.get(DIGEST_ANNOTATION) if isinstance(annotations, dict) else None
        check_digest(checked.get("spec"), claimed, where)
        if self.in_cluster:
            check_steps(checked["spec"], where)
        try:
            return self.adapter.validate_json(canonical(checked["spec"]), strict=True, extra="forbid")
        except ValidationError as error:
            raise document_error(error, where, ("spec",)) from error


STEPS: dict[str, TypeAdapter[Step]] = {
    step.__dataclass_fields__["kind"].default: TypeAdapter(step) for step in get_args(Step)
}
"""Kind of step -> how it is read: errors then are of that kind alone."""
PLAN: SpecKind[RolloutPlan] = SpecKind("ConsumerRolloutPlan", TypeAdapter(RolloutPlan), in_cluster=True)
DECISION: SpecKind[DecisionRecord] = SpecKind("ConsumerScalingDecision", TypeAdapter(DecisionRecord))


def _whole(value: object) -> object:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_steps(spec: object, where: str) -> None:
    """Raise ``DocumentError`` for the first step of unknown kind or wrong fields, by its index and its own kind."""
    steps = spec.get("steps") if isinstance(spec, dict) else None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        kind = step.get("kind") if isinstance(step, dict) else None
        if not isinstance(kind, str) or kind not in STEPS:
            named = kind if isinstance(kind, str) else shown(kind)
            raise DocumentError(
                f"{where}: field spec.steps.{index}.kind: found {named}, expected one of {', '.join(STEPS)}"
            )
        try:
            STEPS[kind].validate_json(canonical(step), strict=True, extra="forbid")
        except ValidationError as error:
            raise document_error(error, where, ("spec", "steps", str(index))) from error


def document_name(record: DecisionRecord) -> str:
    """Return the Kubernetes name of a decision's document: policy and time."""
    return f"{record.policy}-{record.decision.decided_at:%Y%m%d-%H%M%S}"


def migration_name(plan: RolloutPlan) -> str:
    """Return the Kubernetes name of a migration's plan: policy, kind, time, and the first digits of its digest.

    So two plans that are made of one snapshot in one second have two names.
    """
    digits = PLAN.digest(plan).removeprefix(DIGEST_PREFIX)[:6]
    return f"{plan.policy}-{(plan.migration or '').lower()}-{plan.made_at:%Y%m%d-%H%M%S}-{digits}"


def read_plan_or_decision(path: Path) -> RolloutPlan | DecisionRecord:
    """Return what the file holds, a plan or a hold. Raises ``BadInputError`` when it is missing or wrong."""
    document = read_document(path)
    if document.get("kind") == DECISION.kind:
        return DECISION.parse(document, str(path))
    return PLAN.parse(document, str(path))


def read_document(path: Path) -> dict[str, Any]:
    """Return the document in a plan file as it stands there. Raises ``BadInputError`` when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(f"plan file {path} does not exist: check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"plan file {path} cannot be read: {why_unread(error)}") from error
    document = load_yaml(text, str(path), MOST_PLAN_TEXT)
    if not isinstance(document, dict):
        raise DocumentError(f"{path}: found no mapping, expected a {PLAN.kind} or {DECISION.kind} document")
    return document
