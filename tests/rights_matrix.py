"""Who may do what, as the API server itself answers: the table of docs/controller.md.

Run as ``python -m tests.rights_matrix`` it starts a control plane, measures, and writes the table anew.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import Json, Rest
from tests.pod_controllers import documents

PAGE: Final = Path(__file__).parents[1] / "docs" / "controller.md"
BEGIN: Final = "<!-- rights, measured by tests/rights_matrix.py -->"
END: Final = "<!-- end of rights -->"
PLANS: Final = "consumerrolloutplans"
ROLES: Final = (
    "viewer",
    "planner",
    "approver",
    "scheduler",
    "handover",
    "executor",
    "migrations",
    "autoscalers",
    "scale",
    "retention",
    "auto",
    "spark",
)
MANIFESTS: Final = (
    *("plan-roles", "scheduler", "handover"),
    *("executor", "executor-migrations", "executor-autoscalers", "executor-scale"),
    *("executor-retention", "auto-approver", "spark"),
)
VERBS: Final = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    *("approve", "updatetemplate", "bind", "escalate", "impersonate"),
)
RESOURCES: Final = (
    ("consumerplanner.dev", PLANS),
    ("consumerplanner.dev", f"{PLANS}/status"),
    ("consumerplanner.dev", "consumerscalingpolicies"),
    ("consumerplanner.dev", "consumerscalingpolicies/status"),
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("keda.sh", "scaledobjects"),
    ("argoproj.io", "rollouts"),
    ("argoproj.io", "rollouts/scale"),
    ("apps.kruise.io", "clonesets"),
    ("apps.kruise.io", "clonesets/scale"),
    ("coordination.k8s.io", "leases"),
    ("", "pods"),
    ("", "pods/exec"),
    ("", "pods/log"),
    ("", "pods/eviction"),
    ("", "events"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "services"),
    ("", "persistentvolumeclaims"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("", "nodes"),
    ("", "namespaces"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
)
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def may(rest: Rest, namespace: str, right: tuple[str, str, str]) -> bool:
    """Return the server's answer to an account that asks whether it may do something in a namespace."""
    group, resource, verb = right
    kind, _, below = resource.partition("/")
    attributes = {"group": group, "resource": kind, "subresource": below, "verb": verb, "namespace": namespace}
    answer = rest.create(_REVIEWS, {"spec": {"resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])


def measured(accounts: Mapping[str, Rest], namespace: str) -> str:
    """Return the table: a line for each resource, a column for each role's account, the verbs that it has."""
    lines = [
        f"| Resource | {' | '.join(f'`{role}`' for role in accounts)} |",
        f"|---{'|---' * len(accounts)}|",
    ]
    untouched = []
    for group, resource in RESOURCES:
        verbs = [
            " ".join(verb for verb in VERBS if may(rest, namespace, (group, resource, verb)))
            for rest in accounts.values()
        ]
        if any(verbs):
            lines.append(f"| `{resource}` | {' | '.join(found or '–' for found in verbs)} |")
        else:
            untouched.append(f"`{resource}`")
    return "\n".join([*lines, "", f"None of them has any verb on {', '.join(untouched)}.", ""])


def written() -> str:
    """Return the table of the page."""
    return PAGE.read_text(encoding="utf-8").partition(f"{BEGIN}\n")[2].partition(END)[0]


def write(table: str) -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table}{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> None:
    """Measure on a control plane of its own, and write the page."""
    with ControlPlane.start() as cluster:
        namespace = cluster.namespace("matrix")
        roles = [one for one in documents(*(f"rbac/{name}" for name in MANIFESTS)) if one["kind"] == "Role"]
        cluster.apply(*roles, namespace=namespace)
        accounts = {role: _account(cluster, namespace, role) for role in ROLES}
        for role, rest in accounts.items():
            rule = next(one for one in roles if one["metadata"]["name"] == f"consumer-planner-{role}")["rules"][-1]
            right = (rule["apiGroups"][0], rule["resources"][0], rule["verbs"][0])
            cluster.wait_until(f"the rights of {role}", lambda rest=rest, right=right: may(rest, namespace, right))
        write(measured(accounts, namespace))


def _account(cluster: ControlPlane, namespace: str, role: str) -> Rest:
    cluster.rest.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": role}})
    binding: Json = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"consumer-planner-{role}"},
        "subjects": [{"kind": "ServiceAccount", "name": role, "namespace": namespace}],
    }
    cluster.rest.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", binding)
    return Rest(cluster.server, cluster.ca_file, cluster.token(namespace, role))


if __name__ == "__main__":
    main()
