"""Plans for scale targets of any kind on a real API server: read the target, plan, approve, apply."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from planner import pipeline
from planner.documents.approve import approved
from planner.documents.plan import PLAN
from planner.model.deployments import Deployment
from planner.model.snapshot import GroupSnapshot, MemberPod
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import MarkVictims, Step, StopConsumers
from planner.simulation.candidates import simulate_candidate
from planner.sources.kubernetes import AnswerError, KubernetesApi, read_workload
from tests.builders import queues, snapshot
from tests.clusters.kubernetes import ControlPlane
from tests.pod_groups import plan_for
from tests.scale_kinds import KINDS
from tests.unit.cli.test_cli import planner
from tests.unit.rollout.test_scale_targets import policy_for


def read(cluster: ControlPlane, namespace: str, kind: str, api_version: str | None = None) -> Deployment:
    """Return the target ``app`` as the planner reads it."""
    group, version, _ = KINDS.get(kind, ("apps", "v1", ""))
    with KubernetesApi.connect(cluster.kubeconfig) as api:
        return read_workload(api, namespace, "app", datetime.now(UTC), kind, api_version or f"{group}/{version}")


def at_rest(cluster: ControlPlane, namespace: str, kind: str, count: int) -> Deployment:
    """Return the target once so many pods are ready."""

    def probe() -> Deployment | None:
        try:
            found = read(cluster, namespace, kind)
        except AnswerError:  # its controller has not yet written the selector
            return None
        return found if found.ready == found.current == found.replicas == count and found.is_observed else None

    return cluster.wait_until(f"{count} pods of {kind}", probe)


def group_of(found: Deployment) -> GroupSnapshot:
    """Return a settled group of one member a pod."""
    names = tuple(sorted(pod.name for pod in found.pods or () if pod.is_ready and not pod.is_ending))
    taken = snapshot(queues(each=4), names, strategy="AVG", capacity=40.0)
    return replace(taken, pods=tuple(MemberPod(name, name) for name in names), deployment=found)


def steps_to(found: Deployment, count: int) -> tuple[RolloutPlan, tuple[Step, ...]]:
    """Return the planner's own plan from what the server says, and its steps with the strategy of the ready pods."""
    taken = group_of(found)
    policy = policy_for(taken, count)
    outcomes = tuple(simulate_candidate(taken, each, "AVG") for each in (len(taken.clients), count))
    made = pipeline.plan(taken, pipeline.decide(taken, outcomes, policy), policy, outcomes)
    assert made is not None
    return made, made.steps


def plan_of(found: Deployment, steps: tuple[Step, ...]) -> RolloutPlan:
    """Return a plan of these steps for the target as it is."""
    kind = {"target_kind": found.kind, "target_api_version": found.api_version}
    return replace(plan_for("app", group_of(found).clients, steps), **kind)


def carry_out(cluster: ControlPlane, namespace: str, path: Path, found: Deployment, steps: tuple[Step, ...]) -> None:
    """Approve and apply a plan of these steps for the target as it is."""
    path.write_text(PLAN.text(approved(PLAN.document(plan_of(found, steps), path.stem, namespace))), encoding="utf-8")
    done = planner("apply", path, "--kubeconfig", cluster.kubeconfig)
    assert done.returncode == 0, done.stdout + done.stderr


def apply_in_vain(cluster: ControlPlane, namespace: str, path: Path, plan: RolloutPlan) -> str:
    """Approve and apply a plan that holds for 30 s and is not carried out; return what was printed."""
    soon = replace(plan, valid_until=plan.made_at + timedelta(seconds=30))
    path.write_text(PLAN.text(approved(PLAN.document(soon, path.stem, namespace))), encoding="utf-8")
    done = planner("apply", path, "--kubeconfig", cluster.kubeconfig)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


def with_victim(steps: tuple[Step, ...], pod: str) -> tuple[Step, ...]:
    """Return the steps with another pod to stop."""

    def changed(step: Step) -> Step:
        if isinstance(step, MarkVictims):
            return replace(step, victims=(replace(step.victims[0], pod=pod, members=(pod,)),))
        return replace(step, preferred_victims=(pod,)) if isinstance(step, StopConsumers) else step

    return tuple(map(changed, steps))
