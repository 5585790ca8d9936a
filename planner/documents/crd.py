"""The custom resource definitions, made from the same types that the planner reads: ``make crds`` writes them.

Run as ``python -m planner.documents.crd FOLDER``.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.documents.format import API_GROUP, API_VERSION
from planner.documents.plan import PLAN
from planner.documents.policy import KIND as POLICY_KIND
from planner.documents.policy_spec import PolicySpec
from planner.documents.policy_status import PolicyStatus
from planner.documents.status import STATUS
from planner.documents.structural import Schema, field_at, structural
from planner.documents.yaml import dump_yaml
from planner.rollout.plan import LEAST_TTL_S, MOST_TTL_S
from planner.rollout.steps.sense import MOST_LIMIT_S

CATEGORY = "consumerplanner"
MOST_STEPS = 1_000
"""Kubernetes wants to know how often a rule runs at most before it takes it."""

MIGRATION_KINDS = ["createDeployment", "updateTemplate", "deleteDeployment"]
"""As CEL spells a list; offsets have a sentence of their own."""

_HEADER = "# Made by `make crds` from the types in planner/documents: change those, not this file.\n"


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule at ``path`` below the root, with what it says when it is broken."""

    path: tuple[str, ...]
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; ``kind`` is ``string``, ``integer`` or ``date``."""

    name: str
    kind: str
    path: str
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object that the API server is to keep."""

    kind: str
    plural: str
    short_name: str
    description: str
    spec: Schema
    columns: Sequence[Column]
    rules: Sequence[Rule]
    status: Schema | None = None

    @property
    def file_name(self) -> str:
        """The manifest's file."""
        return f"{self.plural}.yaml"

    def manifest(self) -> dict[str, Any]:
        """Return the CustomResourceDefinition."""
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{API_GROUP}"},
            "spec": {
                "group": API_GROUP,
                "scope": "Namespaced",
                "names": {
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    "shortNames": [self.short_name],
                    "categories": [CATEGORY],
                },
                "versions": [self._version()],
            },
        }

    def _version(self) -> dict[str, Any]:
        return {
            "name": API_VERSION.rpartition("/")[2],
            "served": True,
            "storage": True,
            **({"subresources": {"status": {}}} if self.status else {}),
            "additionalPrinterColumns": [_column(column) for column in self.columns],
            "schema": {"openAPIV3Schema": self._schema()},
        }

    def _schema(self) -> Schema:
        properties: dict[str, Schema] = {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": self.spec,
            **({"status": self.status} if self.status else {}),
        }
        root: Schema = {
            "type": "object",
            "description": self.description,
            "required": ["spec"],
            "properties": properties,
        }
        for rule in self.rules:
            rules = field_at(root, rule.path).setdefault("x-kubernetes-validations", [])
            rules.append({"rule": rule.rule, "message": rule.message})
        return root


def _column(column: Column) -> dict[str, Any]:
    wide = {"priority": 1} if column.is_wide else {}
    return {"name": column.name, "type": column.kind, "jsonPath": column.path, **wide}


def policy_resource() -> Resource:
    """Return ``ConsumerScalingPolicy``."""
    return Resource(
        kind=POLICY_KIND,
        plural="consumerscalingpolicies",
        short_name="csp",
        description="What somebody wants for one consumer group.",
        spec=structural(PolicySpec.model_json_schema(by_alias=True)),
        status=_with_conditions_by_type(
            structural(PolicyStatus.model_json_schema(by_alias=True, mode="serialization"))
        ),
        columns=(
            Column("Group", "string", ".spec.source.group"),
            Column("From", "integer", ".status.lastDecision.from"),
            Column("To", "integer", ".status.lastDecision.to"),
            Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
            # Of every policy there is one: the decision's cause, or what keeps it from being decided on.
            Column("Why", "string", '.status.conditions[?(@.type=="Ready")].reason'),
            Column("Since", "date", ".status.lastDecision.since"),
            Column("Plan", "string", ".status.plan"),
            Column("Age", "date", ".metadata.creationTimestamp"),
            Column("System", "string", ".spec.source.system", is_wide=True),
            Column("Deployment", "string", ".spec.scaleTargetRef.name", is_wide=True),
            Column("Min", "integer", ".spec.minReplicas", is_wide=True),
            Column("Max", "integer", ".spec.maxReplicas", is_wide=True),
            Column("Approval", "string", ".spec.approval.mode", is_wide=True),
            Column("Message", "string", '.status.conditions[?(@.type=="Ready")].message', is_wide=True),
        ),
        rules=(
            Rule(
                ("spec",),
                "has(self.scaleTargetRef) != has(self.scaleTargetRefs)",
                "scaleTargetRef, or scaleTargetRefs where several Deployments run the group: exactly one of both",
            ),
            Rule(
                ("spec",),
                "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
                "minReplicas must be at most maxReplicas",
            ),
            Rule(
                ("spec",),
                "!has(self.strategyOptions) || has(self.strategy)",
                "strategyOptions must stand beside the strategy that they belong to",
            ),
            Rule(
                ("spec", "capacity"),
                "has(self.messagesPerSecond) || has(self.podMessagesPerSecond)",
                "capacity must say messagesPerSecond, podMessagesPerSecond or both",
            ),
            Rule(
                ("spec", "approval"),
                "(has(self.mode) && self.mode == 'Auto') == has(self.criteria)",
                "criteria must stand beside mode Auto, and beside no other",
            ),
        ),
    )


def _with_conditions_by_type(status: Schema) -> Schema:
    """Return the status with one condition of each type, as the API server keeps those of its own kinds."""
    status["properties"]["conditions"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return status


def plan_resource() -> Resource:
    """Return ``ConsumerRolloutPlan``."""
    spec = structural(PLAN.adapter.json_schema(by_alias=True))
    spec["properties"]["steps"]["maxItems"] = MOST_STEPS
    step = spec["properties"]["steps"]["items"]["properties"]
    step["timeLimitSeconds"] |= {"minimum": 1, "maximum": MOST_LIMIT_S}
    status = _with_conditions_by_type(structural(STATUS.json_schema(by_alias=True, mode="serialization")))
    # A plan that nobody has looked at yet: kstatus, by which Flux judges it, takes an object without status as done.
    status["default"] = {"observedGeneration": -1}
    return Resource(
        kind=PLAN.kind,
        plural="consumerrolloutplans",
        short_name="crp",
        description="Ordered steps from the present consumers of one group to those that were decided on.",
        spec=spec,
        status=status,
        columns=(
            Column("Group", "string", ".spec.group.group"),
            Column("From", "integer", ".spec.preconditions.replicas"),
            Column("To", "integer", ".spec.targetReplicas"),
            Column("Kind", "string", ".status.kind"),
            Column("Phase", "string", ".status.phase"),
            Column("Step", "string", ".status.progress"),
            Column("Held", "string", '.status.conditions[?(@.type=="Held")].status'),
            Column("Moved", "integer", ".spec.forecast.movedQueues.most"),
            Column("Approved", "date", ".status.approval.at"),
            Column("Age", "date", ".metadata.creationTimestamp"),
            Column("Approver", "string", ".status.approval.by", is_wide=True),
            Column("Message", "string", ".status.message", is_wide=True),
            # Not status.held: kubectl shows a null as "<no value>", and what is not held has one there.
            Column("Why held", "string", '.status.conditions[?(@.reason=="Held")].message', is_wide=True),
        ),
        rules=(
            Rule(
                (),
                "self.spec == oldSelf.spec",
                "a plan is never changed, before its approval neither: make a new one",
            ),
            Rule(("spec",), "size(self.steps) > 0", "a plan must have steps: to hold is a decision, not a plan"),
            Rule(("spec",), "self.validUntil > self.madeAt", "validUntil must be after madeAt"),
            Rule(
                ("spec",),
                "has(self.migration) || !self.steps.exists(step, step.kind in ['cloneOffsets', 'resetOffsets'])",
                "only a migration may write offsets",
            ),
            Rule(
                ("spec",),
                f"!has(self.ttlSecondsAfterFinished) || (self.ttlSecondsAfterFinished >= {LEAST_TTL_S} "
                f"&& self.ttlSecondsAfterFinished <= {MOST_TTL_S})",
                f"ttlSecondsAfterFinished must be from {LEAST_TTL_S} to {MOST_TTL_S}",
            ),
            Rule(("spec",), "!has(self.migration) || self.migration != ''", "a migration must have a name"),
            Rule(
                ("spec",),
                f"has(self.migration) || !self.steps.exists(step, step.kind in {MIGRATION_KINDS})",
                "only a migration may create, update or delete Deployments",
            ),
            Rule(
                ("spec",),
                # Which groups the same pods serve, and which Deployments are its own, the planner compares: nested
                # lists would cost too much here.
                "has(self.migration) || !self.steps.exists(step, (has(step.deployment) && !has(self.targets)) || "
                "(has(step.group) && !(step.kind == 'awaitSettled' && has(self.others))))",
                "only a migration may have steps that name a Deployment, beside plans for several targets, or a group, "
                "beside waits for groups of one pod",
            ),
        ),
    )


def manifests() -> Iterator[tuple[str, str]]:
    """Yield file name and text of every definition."""
    for resource in (policy_resource(), plan_resource()):
        yield resource.file_name, _HEADER + dump_yaml(resource.manifest())


def main(folder: Path) -> None:
    """Write every definition below the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in manifests():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
