"""Kinds with a sub-resource ``scale`` on a real API server, and a small controller of ours for them.

Argo Rollouts and OpenKruise themselves take minutes to compile and run in ``test_scale_controllers_live.py`` alone: the
definitions here have their scale paths, and the controller does what matters to a change of the count. Of a Rollout it
scales one ReplicaSet, whose pods the real ReplicaSet controller makes and stops; of a CloneSet it stops pods of the
lowest deletion cost, as Kruise's ``ActivePodsWithRanks`` does; of a Fleet, a kind of ours, those of the lowest names,
whatever they cost.
"""

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from planner.deployments.bodies import DELETION_COST
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import ApiError, Json

MERGE: Final = "application/merge-patch+json"
LABELS: Final = {"app": "app"}
KINDS: Final = {
    "Rollout": ("argoproj.io", "v1alpha1", "rollouts"),
    "CloneSet": ("apps.kruise.io", "v1alpha1", "clonesets"),
    "Fleet": ("example.com", "v1", "fleets"),
    "Box": ("example.com", "v1", "boxes"),
}
"""Kind -> group, version and plural. A Box has no sub-resource ``scale``."""
SELECTORS: Final = {"Rollout": ".status.selector", "CloneSet": ".status.labelSelector", "Fleet": ".status.selector"}


def definition(kind: str) -> Json:
    """Return the definition of a kind."""
    group, version, plural = KINDS[kind]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.HPAReplicas" if kind == "Rollout" else ".status.replicas",
        "labelSelectorPath": SELECTORS.get(kind),
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, **({"scale": scale} if kind in SELECTORS else {})},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": {"consumerplanner.dev/made-by": "tests"}},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """Return the path of the kind's objects, or of one."""
    group, version, plural = KINDS[kind]
    return f"/apis/{group}/{version}/namespaces/{namespace}/{plural}{f'/{name}' if name else ''}"


def target(kind: str, replicas: int) -> Json:
    """Return a document of that kind; nothing acts on a Box."""
    group, version, _ = KINDS[kind]
    containers = [{"name": "main", "image": "consumer", "command": ["sleep", "infinity"]}]
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": containers}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "app"}, "spec": spec}


@contextmanager
def controlled(cluster: ControlPlane, kind: str, namespace: str) -> Iterator[None]:
    """Run the controller of the kind's object ``app`` in a namespace."""
    ended, controller = threading.Event(), _Controller(cluster, kind, namespace)

    def run() -> None:
        while not ended.wait(0.2):
            with contextlib.suppress(ApiError):  # another writer was faster: the next round reads it anew
                controller.reconcile()

    thread = threading.Thread(target=run, name=f"{kind}-controller")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class _Controller:
    def __init__(self, cluster: ControlPlane, kind: str, namespace: str) -> None:
        self._rest = cluster.rest
        self._kind = kind
        self._namespace = namespace
        self._made = 0

    def reconcile(self) -> None:
        found = self._rest.get(path_of(self._kind, self._namespace, "app"))
        if self._kind == "Rollout":
            self._scale_replica_set(found)
        else:
            self._scale_pods(found)
        self._report(found)

    def _scale_replica_set(self, found: Json) -> None:
        sets = f"/apis/apps/v1/namespaces/{self._namespace}/replicasets"
        count = found["spec"]["replicas"]
        named = [one for one in self._rest.get(sets)["items"] if one["metadata"]["name"] == "app-aa"]
        if named:
            if named[0]["spec"]["replicas"] != count:
                self._rest.patch(f"{sets}/app-aa", {"spec": {"replicas": count}}, MERGE)
            return
        labels = {**LABELS, "rollouts-pod-template-hash": "aa"}
        template = {**found["spec"]["template"], "metadata": {"labels": labels}}
        spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
        meta = {"name": "app-aa", "labels": labels, "ownerReferences": [_owner(found)]}
        self._rest.create(sets, {"metadata": meta, "spec": spec})

    def _scale_pods(self, found: Json) -> None:
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        own, count = self._pods(), found["spec"]["replicas"]
        for _ in range(count - len(own)):
            self._made += 1
            meta = {"name": f"app-{self._made:03}", "labels": LABELS, "ownerReferences": [_owner(found)]}
            self._rest.create(pods, {"metadata": meta, "spec": found["spec"]["template"]["spec"]})
        for pod in sorted(own, key=self._order)[: max(len(own) - count, 0)]:
            self._rest.delete(f"{pods}/{pod['metadata']['name']}")

    def _order(self, pod: Json) -> tuple[int, str]:
        cost = int((pod["metadata"].get("annotations") or {}).get(DELETION_COST, 0))
        return (cost if self._kind == "CloneSet" else 0), pod["metadata"]["name"]

    def _pods(self) -> list[Json]:
        found = self._rest.get(f"/api/v1/namespaces/{self._namespace}/pods")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def _report(self, found: Json) -> None:
        count = len(self._pods())
        status: Json = {"replicas": count, "updatedReplicas": count, "readyReplicas": count}
        status["labelSelector" if self._kind == "CloneSet" else "selector"] = "app=app"
        if self._kind == "Rollout":
            generation = str(found["metadata"]["generation"])
            status |= {"HPAReplicas": count, "stableRS": "aa", "observedGeneration": generation}
            status |= {} if "currentPodHash" in (found.get("status") or {}) else {"currentPodHash": "aa"}
        else:
            status["observedGeneration"] = found["metadata"]["generation"]
        path = path_of(self._kind, self._namespace, "app")
        self._rest.patch(f"{path}/status", {"status": status}, MERGE)


def _owner(found: Json) -> Json:
    meta = found["metadata"]
    named = {"apiVersion": found["apiVersion"], "kind": found["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**named, "controller": True}
