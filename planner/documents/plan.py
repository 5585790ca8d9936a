"""``ConsumerRolloutPlan`` and, when the answer is hold, ``ConsumerScalingDecision``: YAML with a digest."""

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from planner.decision.decision import Decision, Rejection
from planner.documents.format import API_VERSION, canonical, check_digest, check_header, digest_of, document_error
from planner.documents.yaml import dump_yaml, load_yaml
from planner.errors import BadInputError, DocumentError
from planner.rollout import plan as plan_types
from planner.rollout import steps as step_types
from planner.rollout import template as template_types
from planner.rollout.plan import DecisionRecord, RolloutPlan

DIGEST_ANNOTATION = "consumerplanner.dev/digest"

T = TypeVar("T", RolloutPlan, DecisionRecord)

_NOTE = {
    "ConsumerRolloutPlan": "# Made by planner plan. The digest covers the spec: edit the policy, not this file.\n",
    "ConsumerScalingDecision": "# Made by planner plan: a decision and its reasons. There is nothing to apply.\n",
}


def _spell_in_camel_case() -> None:
    """Kubernetes documents spell fields in camelCase, the core in snake_case: pydantic translates, here only."""
    members = [
        *vars(plan_types).values(),
        *vars(step_types).values(),
        *vars(template_types).values(),
        Decision,
        Rejection,
    ]
    for member in members:
        if isinstance(member, type) and is_dataclass(member):
            member.__pydantic_config__ = ConfigDict(alias_generator=to_camel)  # type: ignore[attr-defined]


_spell_in_camel_case()


@dataclass(frozen=True, slots=True)
class SpecKind(Generic[T]):
    """One kind of document whose ``spec`` is a value of ours, its digest in an annotation."""

    kind: str
    adapter: TypeAdapter[T]

    def spec(self, value: T) -> dict[str, Any]:
        """Return ``value`` as plain types, spelled in camelCase."""
        spec = cast("dict[str, Any]", self.adapter.dump_python(value, mode="json", by_alias=True))
        if "steps" in spec:
            # A reader wants to see first what kind of step it is.
            spec["steps"] = [{"kind": step["kind"], **step} for step in spec["steps"]]
        return spec

    def digest(self, value: T) -> str:
        """Return the digest that an approval names."""
        return digest_of(self.spec(value))

    def dump(self, value: T, name: str) -> str:
        """Return the YAML document, metadata named ``name``."""
        return _NOTE[self.kind] + dump_yaml(self.document(value, name))

    def document(self, value: T, name: str) -> dict[str, Any]:
        """Return the whole document as plain types, metadata named ``name``."""
        spec = self.spec(value)
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": {"name": name, "annotations": {DIGEST_ANNOTATION: digest_of(spec)}},
            "spec": spec,
        }

    def parse(self, document: Mapping[str, Any], where: str) -> T:
        """Return the value in the document. Raises ``DocumentError`` or ``DigestError``."""
        checked = check_header(document, self.kind, where)
        metadata = checked.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        claimed = annotations.get(DIGEST_ANNOTATION) if isinstance(annotations, dict) else None
        check_digest(checked.get("spec"), claimed, where)
        try:
            return self.adapter.validate_json(canonical(checked["spec"]), strict=True, extra="forbid")
        except ValidationError as error:
            raise document_error(error, where, ("spec",)) from error


PLAN: SpecKind[RolloutPlan] = SpecKind("ConsumerRolloutPlan", TypeAdapter(RolloutPlan))
DECISION: SpecKind[DecisionRecord] = SpecKind("ConsumerScalingDecision", TypeAdapter(DecisionRecord))


def document_name(record: DecisionRecord) -> str:
    """Return the Kubernetes name of a decision's document: policy and time."""
    return f"{record.policy}-{record.decision.decided_at:%Y%m%d-%H%M%S}"


def read_plan_or_decision(path: Path) -> RolloutPlan | DecisionRecord:
    """Return what the file holds, a plan or a hold. Raises ``BadInputError`` when it is missing or wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(f"plan file {path} does not exist: check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"plan file {path} cannot be read: {error}") from error
    document = load_yaml(text, str(path))
    if not isinstance(document, dict):
        raise DocumentError(f"{path}: found no mapping, expected a {PLAN.kind} or {DECISION.kind} document")
    if document.get("kind") == DECISION.kind:
        return DECISION.parse(document, str(path))
    return PLAN.parse(document, str(path))
