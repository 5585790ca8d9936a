"""One thing changes between planning and applying, on a real API server: nothing is carried out, and it is said what.

A seed chooses the change, the plan and all chances.
"""

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from planner.deployments.api import RolloutApi
from planner.deployments.drive import open_ports
from planner.deployments.policies import cluster_policies
from planner.execution.reconcile import Outcome, run_reconcile
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import Json
from tests.faults import group_changes, plan_changes, world_changes
from tests.faults.drift_case import PLAN, POLICIES, POLICY_NAME, Case, Change, Expected
from tests.faults.group import NamespaceGroup
from tests.faults.kinds import DOWN, KINDS, RELOCATED, RENEWED, RETIRED, Kind
from tests.faults.place import APP, CLAIM, Place, place
from tests.pod_groups import GROUP
from tests.sample_builders import POLICY

_TURNS = 30

CHANGES: tuple[tuple[Change, Kind | None], ...] = (
    (world_changes.scaled, None),
    (world_changes.pod_replaced, None),
    (world_changes.member_left, None),
    (world_changes.member_joined, None),
    (world_changes.not_ready, None),
    (world_changes.deployment_gone, None),
    (world_changes.autoscaled, None),
    (world_changes.other_template, RENEWED),
    (world_changes.rollout_paused, RENEWED),
    (world_changes.name_taken, RELOCATED),
    (world_changes.victim_gone, DOWN),
    (group_changes.victim_moved, DOWN),
    (group_changes.other_pods, None),
    (plan_changes.policy_changed, None),
    (plan_changes.policy_gone, None),
    (plan_changes.plan_edited, None),
    (plan_changes.approval_of_another, None),
    (plan_changes.approval_gone, None),
    (plan_changes.withdrawn, None),
    (plan_changes.other_plan, None),
    (plan_changes.claimed, None),
    (group_changes.queue_gone, None),
    (group_changes.queue_added, None),
    (group_changes.owner_changed, None),
    (group_changes.strategy_changed, None),
    (group_changes.rebalancing, None),
    (group_changes.unreadable, None),
    (plan_changes.expired, None),
    (plan_changes.old_snapshot, None),
)
"""Each change with the kind of plan that it takes, ``None`` where any will do."""
_PLANNED_SO = (plan_changes.expired, plan_changes.old_snapshot)
"""Changes of the plan's own times: they are made before it is put into the cluster."""


@dataclass(frozen=True)
class Drifted:
    """What one seed came to; ``wrong`` is empty when nothing was carried out and the difference was named."""

    seed: int
    change: str
    kind: str
    told: str
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        told = f"seed {self.seed}: {self.change} of a plan of kind {self.kind}: {self.told}"
        return "; ".join([told, *self.wrong])


def run_all(cluster: ControlPlane, folder: Path, seeds: Sequence[int], at_once: int = 6) -> Iterable[Drifted]:
    """Yield what each seed came to, in the order in which they end."""
    with RolloutApi.connect(cluster.kubeconfig) as api, ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(run, cluster, api, folder, seed) for seed in seeds]
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)  # Ctrl-C waits only for what has begun


def policy_document() -> Json:
    """Return the policy that every kind of plan lies inside, ``RETIRED`` apart, which deletes another's Deployment."""
    document: Json = yaml.safe_load(POLICY)
    spec = document["spec"]
    spec["source"].update(cluster=GROUP.cluster, group=GROUP.group)
    spec.update(scaleTargetRef={"name": APP}, rollout={"validForSeconds": 1_800})
    spec["autoscaler"] = {"mode": "pause", "afterwards": "restore"}
    return document


def run(cluster: ControlPlane, api: RolloutApi, folder: Path, seed: int) -> Drifted:
    """Make a plan, change one thing, let an executor have its turns, and look what it did. Changes go round."""
    change, wanted = CHANGES[seed % len(CHANGES)]
    chance = random.Random(seed)
    kind = wanted or chance.choice([kind for kind in KINDS if kind is not RETIRED])
    with place(cluster, folder, kind.replicas) as where:
        kind.prepare(where)
        policies = cluster_policies(api, where.namespace)
        cluster.rest.create(POLICIES.format(where.namespace), policy_document())
        policy = policies(POLICY_NAME)
        assert policy is not None
        plan = replace(where.fitting(kind.steps(where.ready_pods())), policy=POLICY_NAME, policy_digest=policy.digest)
        case = Case(where, kind, NamespaceGroup(api), plan, chance)
        expected = change(case) if change in _PLANNED_SO else None
        case.submit()
        expected = expected or change(case)
        before = _specs(where)
        ports = open_ports(api, where.namespace, case.group, policies)
        for _ in range(_TURNS):
            turned = run_reconcile(ports, PLAN, f"drift-{seed}")
            if turned.outcome in (Outcome.DONE, Outcome.GONE, Outcome.WAITING):
                break
        status = where.status(PLAN)
        wrong = (*_touched(case, before), *_unnamed(status, expected))
        told = f"{status.get('phase')}, {status.get('held') or status.get('message')}"
        return Drifted(seed, change.__name__, kind.name, told, wrong)


def _specs(where: Place) -> dict[str, Json]:
    found = where.cluster.rest.get(where.deployments)["items"]
    return {one["metadata"]["name"]: one["spec"] for one in found}


def _touched(case: Case, before: dict[str, Json]) -> list[str]:
    """What the executor has changed, which must be nothing: a claim is given back before a refusal."""
    wrong = [] if _specs(case.where) == before else ["a Deployment was changed"]
    claim = ((case.where.deployment() or {}).get("metadata", {}).get("annotations") or {}).get(CLAIM)
    return wrong if claim == case.foreign_claim else [*wrong, f"claim {claim} was left"]


def _unnamed(status: Json, expected: Expected) -> list[str]:
    """What is wrong with the words."""
    phase = status.get("phase", "Pending")
    if expected.code is None:
        said, ends = str(status.get("held")), ("Pending", "Approved")
    else:
        refusals = status.get("refusals") or []
        said = "; ".join(one["sentence"] for one in refusals if one["code"] == expected.code)
        ends = ("Refused", "Expired")
    wrong = [] if phase in ends else [f"it came to {phase}"]
    return wrong if expected.says in said else [*wrong, f"{expected.code} {expected.says!r} was not said: {status}"]
