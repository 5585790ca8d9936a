"""Changes of pods, Deployments and autoscalers, made on the API server."""

from planner.execution.codes import Code
from tests.clusters.kubernetes.rest import MERGE
from tests.faults.drift_case import Case, Expected
from tests.faults.group import NEVER_JOINS
from tests.faults.place import APP, GREEN


def scaled(case: Case) -> Expected:
    """Somebody sets another count."""
    now = case.chance.choice([count for count in range(7) if count != case.kind.replicas])
    case.where.patch({"spec": {"replicas": now}})
    return Expected(Code.REPLICAS_CHANGED, f"has {now} replicas")


def pod_replaced(case: Case) -> Expected:
    """A pod is deleted, and another one comes in its place."""
    gone = case.chance.choice(case.pods)
    case.where.cluster.rest.delete(f"/api/v1/namespaces/{case.where.namespace}/pods/{gone}")
    case.where.cluster.wait_until("another pod", lambda: gone not in case.where.ready_pods())
    case.where.await_ready(case.kind.replicas)
    return Expected(Code.MEMBERS_CHANGED, f"{gone} left")


def member_left(case: Case) -> Expected:
    """A consumer leaves, and its pod runs on."""
    gone = case.chance.choice(case.pods)
    path = f"/api/v1/namespaces/{case.where.namespace}/pods/{gone}"
    case.where.cluster.rest.patch(path, {"metadata": {"annotations": {NEVER_JOINS: "true"}}}, MERGE)
    return Expected(Code.MEMBERS_CHANGED, f"{gone} left")


def member_joined(case: Case) -> Expected:
    """A consumer of no Deployment joins."""
    name = f"stranger-{case.chance.randint(1, 99)}"
    spec = {"containers": [{"name": "main", "image": "local"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    case.where.cluster.rest.create(f"/api/v1/namespaces/{case.where.namespace}/pods", body)
    case.where.cluster.wait_until("the stranger", lambda: name in case.where.ready_pods())
    return Expected(Code.MEMBERS_CHANGED, f"{name} joined")


def not_ready(case: Case) -> Expected:
    """A pod is no longer ready; its consumer goes on."""
    case.keep_members()
    pod = case.chance.choice(case.pods)
    path = f"/api/v1/namespaces/{case.where.namespace}/pods/{pod}/status"
    conditions = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
    case.where.cluster.rest.patch(path, {"status": {"conditions": conditions}})
    count = case.kind.replicas
    return Expected(None, f"{count - 1} of {count} pods of Deployment {APP} are ready")


def deployment_gone(case: Case) -> Expected:
    """Somebody deletes the Deployment."""
    case.keep_members()
    case.where.cluster.rest.delete(f"{case.where.deployments}/{APP}")
    case.where.cluster.wait_until("its end", lambda: case.where.deployment() is None)
    return Expected(Code.DEPLOYMENT_MISSING, f"no Deployment {APP}")


def autoscaled(case: Case) -> Expected:
    """Somebody has an autoscaler look after the Deployment."""
    name = f"scaler-{case.chance.randint(1, 99)}"
    case.where.add_scaler(name)
    return Expected(Code.AUTOSCALED, f"HorizontalPodAutoscaler {name}")


def other_template(case: Case) -> Expected:
    """Somebody changes the template."""
    case.keep_members()
    note = {"note": str(case.chance.random())}
    case.where.patch({"spec": {"template": {"metadata": {"annotations": note}}}})
    case.where.await_ready(case.kind.replicas)
    return Expected(Code.REVISION_CHANGED, "is at revision 2")


def rollout_paused(case: Case) -> Expected:
    """Somebody pauses the Deployment's rollout."""
    case.where.patch({"spec": {"paused": True}})
    return Expected(Code.ROLLOUT_PAUSED, "is paused")


def name_taken(case: Case) -> Expected:
    """Somebody makes a Deployment of the name that the plan gives."""
    case.where.add_empty(GREEN)
    return Expected(Code.NAME_TAKEN, f"creates Deployment {GREEN}")


def victim_gone(case: Case) -> Expected:
    """A pod that is to stop is deleted; its consumer is still told of."""
    case.keep_members()
    gone = sorted(case.pods)[case.chance.randrange(2)]
    case.where.cluster.rest.delete(f"/api/v1/namespaces/{case.where.namespace}/pods/{gone}")
    case.where.cluster.wait_until("another pod", lambda: gone not in case.where.ready_pods())
    case.where.await_ready(case.kind.replicas)
    return Expected(Code.VICTIM_GONE, f"pod {gone}")
