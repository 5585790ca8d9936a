"""A plan that fits until one thing changes, and what must be said of that."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import yaml

from planner.execution.codes import Code
from planner.rollout.plan import RolloutPlan
from tests.clusters.kubernetes.rest import MERGE, Json
from tests.faults.group import NamespaceGroup, owners_of
from tests.faults.kinds import Kind, start
from tests.faults.place import Place

RIVALS = (2, 3)
"""What another plan scales, and to what."""
PLAN, POLICY_NAME = "plan", "shop"
POLICIES = "/apis/consumerplanner.dev/v1alpha1/namespaces/{}/consumerscalingpolicies"


@dataclass
class Case:
    """A plan that fits, until something changes."""

    where: Place
    kind: Kind
    group: NamespaceGroup
    plan: RolloutPlan
    chance: random.Random
    foreign_claim: str | None = field(default=None, init=False)

    @property
    def pods(self) -> tuple[str, ...]:
        """The pods that the plan knows."""
        return self.plan.preconditions.members

    def submit(self) -> None:
        """Put the approved plan into the cluster."""
        document = yaml.safe_load(self.where.write(PLAN, self.plan).read_text(encoding="utf-8"))
        self.where.cluster.rest.create(self.where.plans, document)

    def keep_members(self) -> None:
        """Have the group say what it says now, whatever becomes of its pods."""
        members = self.pods
        pods = tuple((member, member) for member in members)
        self.group.changes |= {"members": members, "owners": owners_of(members), "pods": pods}

    def edit(self, body: Json) -> None:
        """Merge something into the plan object."""
        self.where.cluster.rest.patch(f"{self.where.plans}/{PLAN}", body, MERGE)

    def rival(self, name: str, group: str, deployment: str) -> str:
        """Put another plan there that is under way, on that Deployment alone; return its name in claims."""
        named = replace(self.plan.group, group=group)
        plan = replace(self.plan, group=named, deployment=deployment, steps=start(*RIVALS))
        document = yaml.safe_load(self.where.write(name, plan).read_text(encoding="utf-8"))
        made = self.where.cluster.rest.create(self.where.plans, document)
        status = {**made, "status": {"phase": "Running", "message": "goes on"}}
        self.where.cluster.rest.call("PUT", f"{self.where.plans}/{name}/status", status)
        return f"{name}/{made['metadata']['uid']}"


@dataclass(frozen=True)
class Expected:
    """What must be said. ``code`` is ``None`` where the plan only waits."""

    code: Code | None
    says: str


Change = Callable[[Case], Expected]
