"""API objects, as JSON, to our types.

A field that Kubernetes leaves out when it is 0 or false is 0 or false here; a list that is null is empty, as Go has it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from planner.model.autoscalers import Autoscaler, FieldManager
from planner.model.deployments import APPS, BUILT_IN, DEPLOYMENT, STATEFUL_SET, Deployment, Ordinals, UpdateStrategy
from planner.model.pods import Container, Pod, PreStop, ReadinessProbe, Workload

Json = dict[str, Any]

_PROBES: Final = ("exec", "grpc", "httpGet", "tcpSocket")
_HOOKS: Final = ("exec", "httpGet", "sleep")
_KUBECTL_APPLY: Final = "kubectl-client-side-apply"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
KEDA_PAUSED: Final = "autoscaling.keda.sh/paused"
_KEDA_PAUSED_AT: Final = "autoscaling.keda.sh/paused-replicas"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SET_BY: Final = "consumerplanner.dev/set-by"
"""On an autoscaler: the plan's step that set it last, as claims are written."""
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
_DIRECTIONS: Final = ("scaleUp", "scaleDown")
_REVISION: Final = "deployment.kubernetes.io/revision"
_MOST_DIGITS: Final = 19
"""Of a 64 bit number: an annotation may hold thousands, at which Python's own reading fails."""
_COST: Final = re.compile(r"-0*[0-9]{1,10}|0|[1-9][0-9]{0,9}")


def deployment_of(
    deployment: Json,
    *,
    at: datetime,
    pods: tuple[Pod, ...] | None,
    autoscalers: tuple[Autoscaler, ...] | None,
    problems: tuple[str, ...],
) -> Deployment:
    """Return a Deployment or StatefulSet (``apps/v1``) with what was read around it; ``scale_target_of`` has others."""
    meta, spec, status = deployment["metadata"], deployment["spec"], (deployment.get("status") or {})
    template = spec["template"]["spec"]
    ordinals = _ordinals(spec) if is_stateful_set(deployment) else None
    return Deployment(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        at=at,
        replicas=spec["replicas"],
        current=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available=status.get("availableReplicas", 0),
        is_observed=status.get("observedGeneration", 0) >= meta["generation"],
        is_paused=spec.get("paused", False),
        strategy=_strategy(spec["strategy"]) if ordinals is None else _stateful_strategy(spec["updateStrategy"]),
        containers=tuple(map(container_of, template["containers"])),
        grace_s=template["terminationGracePeriodSeconds"],
        min_ready_s=spec.get("minReadySeconds", 0),
        progress_deadline_s=spec["progressDeadlineSeconds"] if ordinals is None else 0,
        uses_host_network=template.get("hostNetwork", False),
        pods=pods,
        autoscalers=autoscalers,
        replicas_set_by=replicas_set_by(meta),
        problems=problems,
        revision=revision_of(deployment),
        ordinals=ordinals,
    )


def kind_of(deployment: Mapping[str, Any]) -> str:
    """Return the kind of a scale target; items of a list, which lack it, are Deployments."""
    return str(deployment.get("kind") or DEPLOYMENT)


def api_version_of(deployment: Mapping[str, Any]) -> str:
    """Return the API version of a scale target; items of a list lack it, and only Deployments are listed."""
    return str(deployment.get("apiVersion") or APPS)


def is_stateful_set(deployment: Mapping[str, Any]) -> bool:
    """True for a StatefulSet of Kubernetes itself: others have kinds of that name, too."""
    return (api_version_of(deployment), kind_of(deployment)) == (APPS, STATEFUL_SET)


def is_of_other_kind(deployment: Mapping[str, Any]) -> bool:
    """True for all but a Deployment or StatefulSet of Kubernetes itself."""
    return (api_version_of(deployment), kind_of(deployment)) not in BUILT_IN


def _ordinals(spec: Json) -> Ordinals:
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    return Ordinals(
        first=(spec.get("ordinals") or {}).get("start", 0),
        is_ordered=spec["podManagementPolicy"] == "OrderedReady",
        partition=rolling.get("partition", 0),
    )


def revision_of(controller: Mapping[str, Any]) -> int | None:
    """Return the revision of a Deployment or ReplicaSet, ``None`` before its controller has given it one."""
    return _count((controller["metadata"].get("annotations") or {}).get(_REVISION))


def pod_of(pod: Json, workloads: Mapping[str, Workload]) -> Pod:
    """Return a pod; ``workloads`` is uid of a ReplicaSet -> its Deployment."""
    meta, spec, status = pod["metadata"], pod["spec"], (pod.get("status") or {})
    conditions = {entry["type"]: entry for entry in (status.get("conditions") or [])}
    ready = conditions.get("Ready") or {}
    is_ready = ready.get("status") == "True"
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        phase=status.get("phase", "Unknown"),
        addresses=_addresses(status),
        host_address=status.get("hostIP"),
        uses_host_network=spec.get("hostNetwork", False),
        node=spec.get("nodeName"),
        is_ready=is_ready,
        is_ending="deletionTimestamp" in meta,
        started_at=_time(status.get("startTime")),
        ready_at=_time(ready.get("lastTransitionTime")) if is_ready else None,
        restarts=sum(entry.get("restartCount", 0) for entry in (status.get("containerStatuses") or [])),
        labels=tuple(sorted((meta.get("labels") or {}).items())),
        workload=_workload(meta, workloads),
        created_at=_time(meta.get("creationTimestamp")),
        deletion_cost=_deletion_cost((meta.get("annotations") or {}).get(_DELETION_COST)),
        deletion_cost_by=_annotated_by(meta, _DELETION_COST),
    )


def deployments_by_replica_set(replica_sets: Iterable[Json]) -> dict[str, Workload]:
    """Return uid of a ReplicaSet -> the Deployment that controls it, or the ReplicaSet itself where none does."""
    deployments = {}
    for replica_set in replica_sets:
        meta = replica_set["metadata"]
        owner = controller_of(meta) or {"kind": "ReplicaSet", "name": meta["name"]}
        deployments[meta["uid"]] = Workload(owner["kind"], meta["namespace"], owner["name"])
    return deployments


def replica_sets_of(deployment: Json, replica_sets: Iterable[Json]) -> list[Json]:
    """Return those of ``replica_sets`` that this very Deployment controls (by uid, not by name)."""
    uid = deployment["metadata"]["uid"]
    return [
        replica_set for replica_set in replica_sets if (controller_of(replica_set["metadata"]) or {}).get("uid") == uid
    ]


def is_controlled_by(kubernetes_object: Json, uids: Iterable[str]) -> bool:
    """True when the object's controller has one of ``uids``."""
    owner = controller_of(kubernetes_object["metadata"])
    return owner is not None and owner["uid"] in uids


def selector_of(deployment: Json) -> str:
    """Return a Deployment's selector as a label selector in text."""
    selector = deployment["spec"]["selector"]
    requirements = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    requirements += [_expression(expression) for expression in (selector.get("matchExpressions") or [])]
    return ",".join(requirements)


def hpas_of(deployment: Json, hpas: Sequence[Json]) -> tuple[Autoscaler, ...]:
    """Return the HorizontalPodAutoscalers (``autoscaling/v2``) whose target this Deployment is."""
    return tuple(_hpa(hpa) for hpa in hpas if _targets(deployment, hpa["spec"]["scaleTargetRef"], default_kind=""))


def scaled_objects_of(deployment: Json, scaled_objects: Sequence[Json]) -> tuple[Autoscaler, ...]:
    """Return KEDA's ScaledObjects whose target this Deployment is; limits not given are KEDA's own, 0 and 100."""
    return tuple(
        _scaled_object(scaled_object)
        for scaled_object in scaled_objects
        if _targets(deployment, scaled_object["spec"]["scaleTargetRef"], default_kind="Deployment")
    )


def replicas_set_by(meta: Json) -> tuple[FieldManager, ...]:
    """Return the field managers of ``spec.replicas``, as far as the server notes them.

    A client that creates an object without a number counts as having set the server's default of 1; ``kubectl apply``
    leaves a copy of what it was given, by which we recognise that and leave it out. Server-side apply without a number
    notes no manager, and then the server does not note a later one that scales either (observed on 1.36.4): an empty
    answer proves nothing.
    """
    return tuple(
        FieldManager(
            manager=manager.get("manager", ""),
            operation=manager["operation"],
            subresource=manager.get("subresource") or None,
            at=_time(manager.get("time")),
        )
        for manager in (meta.get("managedFields") or [])
        if "f:replicas" in (manager.get("fieldsV1") or {}).get("f:spec", {}) and not _by_default(manager, meta)
    )


def _by_default(manager: Json, meta: Json) -> bool:
    applied = (meta.get("annotations") or {}).get(_LAST_APPLIED)
    if manager.get("manager") != _KUBECTL_APPLY or applied is None:
        return False
    try:
        return "replicas" not in json.loads(applied)["spec"]
    except (ValueError, RecursionError, KeyError, TypeError):  # whoever may annotate wrote it, and kubectl did not
        return False


def _stateful_strategy(strategy: Json) -> UpdateStrategy:
    """Return how a StatefulSet updates: one pod after the other, never one more; ``OnDelete`` waits for a person."""
    if strategy["type"] != "RollingUpdate":
        return UpdateStrategy(strategy["type"])
    return UpdateStrategy(strategy["type"], "0", str((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)))


def _strategy(strategy: Json) -> UpdateStrategy:
    limits = strategy.get("rollingUpdate")
    if limits is None:
        return UpdateStrategy(strategy["type"])
    return UpdateStrategy(strategy["type"], str(limits["maxSurge"]), str(limits["maxUnavailable"]))


def container_of(container: Json) -> Container:
    probe, hook = container.get("readinessProbe"), (container.get("lifecycle") or {}).get("preStop")
    return Container(
        name=container["name"],
        image=container.get("image", ""),
        readiness=None if probe is None else _probe(probe),
        pre_stop=None if hook is None else _pre_stop(hook),
    )


def _probe(probe: Json) -> ReadinessProbe:
    return ReadinessProbe(
        kind=_kind(probe, _PROBES),
        initial_delay_s=probe.get("initialDelaySeconds", 0),
        period_s=probe["periodSeconds"],
        timeout_s=probe["timeoutSeconds"],
        success_threshold=probe["successThreshold"],
        failure_threshold=probe["failureThreshold"],
    )


def _pre_stop(hook: Json) -> PreStop:
    kind = _kind(hook, _HOOKS)
    return PreStop(kind, hook["sleep"]["seconds"] if kind == "sleep" else None)


def _kind(spec: Json, known: Iterable[str]) -> str:
    return next((kind for kind in known if kind in spec), "unknown")


def _addresses(status: Json) -> tuple[str, ...]:
    several = [entry["ip"] for entry in (status.get("podIPs") or []) if "ip" in entry]
    return tuple(several or ([status["podIP"]] if status.get("podIP") else []))


def _deletion_cost(text: str | None) -> int:
    """Return the cost that the ReplicaSet reads: 0 for what is no 32 bit number, or starts with ``+`` or ``0``.

    ``GetDeletionCostFromPodAnnotations``, Kubernetes 1.36.
    """
    if text is None or not _COST.fullmatch(text):
        return 0
    cost = int("-" + (text[1:].lstrip("0") or "0") if text.startswith("-") else text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _annotated_by(meta: Json, annotation: str) -> str | None:
    """Return the field manager that wrote an annotation last, ``None`` where the server notes nobody."""
    writers = [
        entry
        for entry in (meta.get("managedFields") or [])
        if f"f:{annotation}" in (entry.get("fieldsV1") or {}).get("f:metadata", {}).get("f:annotations", {})
    ]
    last = max(writers, key=lambda entry: str(entry.get("time") or ""), default=None)
    return (last or {}).get("manager") or None


def _workload(meta: Json, workloads: Mapping[str, Workload]) -> Workload | None:
    owner = controller_of(meta)
    if owner is None:
        return None
    return workloads.get(owner["uid"]) or Workload(owner["kind"], meta["namespace"], owner["name"])


def controller_of(meta: Json) -> Json | None:
    """Return the owner reference of an object's controller, ``None`` where nobody controls it."""
    return next((owner for owner in (meta.get("ownerReferences") or []) if owner.get("controller")), None)


def _targets(deployment: Json, reference: Json, default_kind: str) -> bool:
    group = reference.get("apiVersion", APPS).partition("/")[0]
    kind = reference.get("kind") or default_kind
    own_group = api_version_of(deployment).partition("/")[0]
    return (group, kind, reference["name"]) == (own_group, kind_of(deployment), deployment["metadata"]["name"])


def _hpa(hpa: Json) -> Autoscaler:
    meta, spec, status = hpa["metadata"], hpa["spec"], (hpa.get("status") or {})
    maker = controller_of(meta)
    return Autoscaler(
        kind="HorizontalPodAutoscaler",
        name=meta["name"],
        minimum=spec.get("minReplicas", 1),
        maximum=spec["maxReplicas"],
        # Before its first evaluation an HPA shows 0, which it can want only where it may go down to 0.
        desired=status.get("desiredReplicas") or None,
        made_by=None if maker is None else f"{maker['kind']} {maker['name']}",
        is_paused=all(
            ((spec.get("behavior") or {}).get(direction) or {}).get("selectPolicy") == "Disabled"
            for direction in _DIRECTIONS
        ),
        set_by=(meta.get("annotations") or {}).get(SET_BY),
        resource_version=meta.get("resourceVersion", ""),
    )


def _scaled_object(scaled_object: Json) -> Autoscaler:
    meta, spec = scaled_object["metadata"], scaled_object["spec"]
    notes = meta.get("annotations") or {}
    return Autoscaler(
        kind="ScaledObject",
        name=meta["name"],
        minimum=spec.get("minReplicaCount", 0),
        maximum=spec.get("maxReplicaCount", 100),
        is_paused=_is_paused(notes),
        paused_at=_count(notes.get(_KEDA_PAUSED_AT)),
        idle=spec.get("idleReplicaCount"),
        set_by=notes.get(SET_BY),
        resource_version=meta.get("resourceVersion", ""),
    )


def _is_paused(notes: Mapping[str, str]) -> bool:
    """Return whether KEDA takes a ScaledObject for paused: what is no boolean pauses it, too (KEDA 2.17)."""
    paused = notes.get(KEDA_PAUSED)
    return _KEDA_PAUSED_AT in notes or (paused is not None and paused not in _FALSE)


def _count(text: str | None) -> int | None:
    """Return the number in an annotation; ``None`` for what is none, or has more digits than any count."""
    is_number = text is not None and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()
    return int(text) if text is not None and is_number else None


def _expression(expression: Json) -> str:
    key, operator, values = expression["key"], expression["operator"], ",".join(expression.get("values") or [])
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({values})"
    return f"{'!' if operator == 'DoesNotExist' else ''}{key}"


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
