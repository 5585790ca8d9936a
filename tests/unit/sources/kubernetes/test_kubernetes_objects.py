"""API objects as a server sends them, to our types: what is left out, what is null, and what is not ours."""

from datetime import UTC, datetime
from typing import Any

import pytest

from planner.model.deployments import Deployment
from planner.model.pods import Workload
from planner.sources.kubernetes.objects import (
    deployment_of,
    deployments_by_replica_set,
    hpas_of,
    pod_of,
    replica_sets_of,
    replicas_set_by,
    revision_of,
    scaled_objects_of,
    selector_of,
)

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
Json = dict[str, Any]

FOUND: Json = {
    "metadata": {"namespace": "shop", "name": "app", "uid": "d1", "resourceVersion": "7", "generation": 2},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "app"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
        "progressDeadlineSeconds": 600,
        "template": {"spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "main"}]}},
    },
}


def deployment(found: Json = FOUND, **more: Any) -> Deployment:
    known: Json = {"at": AT, "pods": (), "autoscalers": (), "problems": (), **more}
    return deployment_of(found, **known)


def owned(kind: str, name: str, uid: str, *, controller: bool = True) -> Json:
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": uid, "controller": controller}]}


def replica_set(uid: str, **owner: Any) -> Json:
    return {"metadata": {"namespace": "shop", "name": f"rs-{uid}", "uid": uid, **owner}}


def test_a_deployment_that_its_controller_has_not_seen_yet() -> None:
    found = deployment()
    assert (found.current, found.ready, found.is_observed) == (0, 0, False)
    assert deployment({**FOUND, "status": {"observedGeneration": 1}}).is_observed is False
    assert deployment({**FOUND, "status": {"observedGeneration": 2}}).is_observed is True
    assert (found.strategy.max_surge, found.strategy.max_unavailable) == ("1", "25%")
    assert found.containers[0].readiness is None


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"matchLabels": {"app": "a", "tier": "b"}}, "app=a,tier=b"),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}, "app in (a,b)"),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}, "app notin (a)"),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}], "matchLabels": {"x": "y"}}, "x=y,app"),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist", "values": None}]}, "!app"),
    ],
)
def test_selectors_in_text(selector: Json, text: str) -> None:
    assert selector_of({"spec": {"selector": selector}}) == text


def test_a_pod_without_status_is_unknown_and_not_ready() -> None:
    pod = pod_of({"metadata": {"namespace": "shop", "name": "p", "uid": "p1"}, "spec": {}}, {})
    assert (pod.phase, pod.is_ready, pod.addresses, pod.workload) == ("Unknown", False, (), None)


def test_lists_that_are_null_are_empty() -> None:
    status = {"phase": "Pending", "conditions": None, "containerStatuses": None, "podIPs": None, "podIP": "10.0.0.1"}
    meta = {"namespace": "shop", "name": "p", "uid": "p1", "labels": None, "ownerReferences": None}
    pod = pod_of({"metadata": meta, "spec": {}, "status": status}, {})
    assert (pod.addresses, pod.restarts, pod.labels) == (("10.0.0.1",), 0, ())
    assert (pod.created_at, pod.deletion_cost) == (None, 0)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(("-7", -7), ("12", 12), ("0", 0), ("-08", -8), ("+3", 0), ("08", 0), ("", 0), ("2147483648", 0), ("low", 0)),
        *((f"-{'0' * 5_000}7", -7), (f"-{'0' * 5_000}", 0), ("9" * 5_000, 0), (f"-{'9' * 5_000}", 0), ("-٣", 0)),
    ],
)
def test_a_deletion_cost_is_read_as_the_replica_set_reads_it(written: str, read: int) -> None:
    notes = {"controller.kubernetes.io/pod-deletion-cost": written}
    meta = {"namespace": "shop", "name": "p", "uid": "p1", "annotations": notes}
    assert pod_of({"metadata": meta, "spec": {}}, {}).deletion_cost == read


def test_who_wrote_a_deletion_cost_last_is_the_field_manager_of_the_annotation() -> None:
    def writer(manager: str, time: str, annotation: str) -> Any:
        fields = {"f:metadata": {"f:annotations": {f"f:{annotation}": {}}}}
        return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}

    cost = "controller.kubernetes.io/pod-deletion-cost"
    entries = [
        writer("planner", "2026-11-21T10:00:00Z", cost),
        writer("node-autoscaler", "2026-11-21T10:00:07Z", cost),
        writer("kubelet", "2026-11-21T10:00:09Z", "other"),
        {"manager": "status", "operation": "Update", "fieldsV1": {"f:status": {}}},
    ]
    meta = {"namespace": "shop", "name": "p", "uid": "p1", "annotations": {cost: "7"}, "managedFields": entries}
    assert pod_of({"metadata": meta, "spec": {}}, {}).deletion_cost_by == "node-autoscaler"
    meta["managedFields"] = None
    assert pod_of({"metadata": meta, "spec": {}}, {}).deletion_cost_by is None


def test_the_workload_of_a_pod_is_its_deployment_else_its_controller_else_none() -> None:
    sets = [replica_set("r1", **owned("Deployment", "app", "d1")), replica_set("r2")]
    workloads = deployments_by_replica_set(sets)

    def workload(**owner: Any) -> Workload | None:
        meta = {"namespace": "shop", "name": "p", "uid": "p1", **owner}
        return pod_of({"metadata": meta, "spec": {}, "status": {}}, workloads).workload

    assert workload(**owned("ReplicaSet", "rs-r1", "r1")) == Workload("Deployment", "shop", "app")
    assert workload(**owned("ReplicaSet", "rs-r2", "r2")) == Workload("ReplicaSet", "shop", "rs-r2")
    assert workload(**owned("StatefulSet", "s", "s1")) == Workload("StatefulSet", "shop", "s")
    assert workload(**owned("ReplicaSet", "rs-r1", "r1", controller=False)) is None


def test_replica_sets_of_a_deployment_of_the_same_name_that_was_deleted_are_not_its_own() -> None:
    sets = [
        replica_set("r1", **owned("Deployment", "app", "d0")),
        replica_set("r2", **owned("Deployment", "app", "d1")),
    ]
    assert [one["metadata"]["uid"] for one in replica_sets_of(FOUND, sets)] == ["r2"]


def hpa(reference: Json, **spec: Any) -> Json:
    return {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": reference, "maxReplicas": 5, **spec}}


def test_an_hpa_without_minimum_goes_down_to_one_and_wants_nothing_before_its_first_look() -> None:
    (found,) = hpas_of(FOUND, [hpa({"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"})])
    assert (found.minimum, found.maximum, found.desired, found.made_by) == (1, 5, None, None)


@pytest.mark.parametrize(
    "reference",
    [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "app"},
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Deployment", "name": "app"},
    ],
)
def test_autoscalers_of_something_else_are_left_out(reference: Json) -> None:
    assert hpas_of(FOUND, [hpa(reference)]) == ()


def test_field_managers_of_replicas_alone() -> None:
    fields = [
        {
            "manager": "helm",
            "operation": "Update",
            "time": "2026-11-21T10:00:00Z",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        },
        {
            "manager": "kubectl",
            "operation": "Update",
            "subresource": "scale",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        },
        {
            "manager": "controller",
            "operation": "Update",
            "subresource": "status",
            "fieldsV1": {"f:status": {"f:replicas": {}}},
        },
        {"manager": "odd", "operation": "Apply", "fieldsV1": None},
    ]
    found = replicas_set_by({"managedFields": fields})
    assert [(one.manager, one.subresource, one.at) for one in found] == [("helm", None, AT), ("kubectl", "scale", None)]
    assert replicas_set_by({}) == ()


@pytest.mark.parametrize(
    ("applied", "managers"), [('{"spec": {}}', []), ('{"spec": {"replicas": 1}}', ["kubectl-client-side-apply"])]
)
def test_a_count_that_kubectl_apply_was_not_given_is_the_servers_default(applied: str, managers: list[str]) -> None:
    entry = {"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    notes = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    found = replicas_set_by({"managedFields": [entry], "annotations": notes})
    assert [one.manager for one in found] == managers
    assert len(replicas_set_by({"managedFields": [entry]})) == 1


@pytest.mark.parametrize("text", ["9" * 5_000, "٣", "-1", "", "1e3"])
def test_an_annotation_that_holds_no_count_is_none(text: str) -> None:
    found = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": text}}}
    assert revision_of(found) is None
    notes = {"autoscaling.keda.sh/paused-replicas": text}
    target = {"spec": {"scaleTargetRef": {"name": "app"}}, "metadata": {"name": "so", "annotations": notes}}
    (scaler,) = scaled_objects_of({"metadata": {"name": "app"}}, [target])
    assert (scaler.is_paused, scaler.paused_at) == (True, None)
