"""API objects, as JSON, to our types.

A field that Kubernetes leaves out when it is 0 or false is 0 or false here; a list that is null is empty, as Go has it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from planner.model.deployments import (
    Autoscaler,
    Container,
    Deployment,
    FieldManager,
    Pod,
    PreStop,
    ReadinessProbe,
    UpdateStrategy,
    Workload,
)

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
_WAYS: Final = ("scaleUp", "scaleDown")
_REVISION: Final = "deployment.kubernetes.io/revision"
_MOST_DIGITS: Final = 19
"""Of a 64 bit number: an annotation may hold thousands, at which Python's own reading fails."""
_COST: Final = re.compile(r"-0*[0-9]{1,10}|0|[1-9][0-9]{0,9}")


def deployment_of(
    found: Json,
    *,
    at: datetime,
    pods: tuple[Pod, ...] | None,
    autoscalers: tuple[Autoscaler, ...] | None,
    problems: tuple[str, ...],
) -> Deployment:
    """Return a Deployment (``apps/v1``) with what was read around it."""
    meta, spec, status = found["metadata"], found["spec"], (found.get("status") or {})
    template = spec["template"]["spec"]
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
        strategy=_strategy(spec["strategy"]),
        containers=tuple(map(_container, template["containers"])),
        grace_s=template["terminationGracePeriodSeconds"],
        min_ready_s=spec.get("minReadySeconds", 0),
        progress_deadline_s=spec["progressDeadlineSeconds"],
        uses_host_network=template.get("hostNetwork", False),
        pods=pods,
        autoscalers=autoscalers,
        replicas_set_by=replicas_set_by(meta),
        problems=problems,
        revision=revision_of(found),
    )


def revision_of(found: Mapping[str, Any]) -> int | None:
    """Return the revision of a Deployment or ReplicaSet, ``None`` before its controller has given it one."""
    return _count((found["metadata"].get("annotations") or {}).get(_REVISION))


def pod_of(found: Json, workloads: Mapping[str, Workload]) -> Pod:
    """Return a pod; ``workloads`` is uid of a ReplicaSet -> its Deployment."""
    meta, spec, status = found["metadata"], found["spec"], (found.get("status") or {})
    conditions = {one["type"]: one for one in (status.get("conditions") or [])}
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
        restarts=sum(one.get("restartCount", 0) for one in (status.get("containerStatuses") or [])),
        labels=tuple(sorted((meta.get("labels") or {}).items())),
        workload=_workload(meta, workloads),
        created_at=_time(meta.get("creationTimestamp")),
        deletion_cost=_deletion_cost((meta.get("annotations") or {}).get(_DELETION_COST)),
    )


def deployments_by_replica_set(replica_sets: Iterable[Json]) -> dict[str, Workload]:
    """Return uid of a ReplicaSet -> the Deployment that controls it, or the ReplicaSet itself where none does."""
    found = {}
    for one in replica_sets:
        meta = one["metadata"]
        owner = _controller(meta) or {"kind": "ReplicaSet", "name": meta["name"]}
        found[meta["uid"]] = Workload(owner["kind"], meta["namespace"], owner["name"])
    return found


def replica_sets_of(deployment: Json, replica_sets: Iterable[Json]) -> list[Json]:
    """Return those of ``replica_sets`` that this very Deployment controls (by uid, not by name)."""
    uid = deployment["metadata"]["uid"]
    return [one for one in replica_sets if (_controller(one["metadata"]) or {}).get("uid") == uid]


def is_controlled_by(found: Json, uids: Iterable[str]) -> bool:
    """True when the object's controller has one of ``uids``."""
    owner = _controller(found["metadata"])
    return owner is not None and owner["uid"] in uids


def selector_of(deployment: Json) -> str:
    """Return a Deployment's selector as a label selector in text."""
    selector = deployment["spec"]["selector"]
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    parts += [_expression(one) for one in (selector.get("matchExpressions") or [])]
    return ",".join(parts)


def hpas_of(deployment: Json, found: Sequence[Json]) -> tuple[Autoscaler, ...]:
    """Return the HorizontalPodAutoscalers (``autoscaling/v2``) whose target this Deployment is."""
    return tuple(_hpa(one) for one in found if _targets(deployment, one["spec"]["scaleTargetRef"], default_kind=""))


def scaled_objects_of(deployment: Json, found: Sequence[Json]) -> tuple[Autoscaler, ...]:
    """Return KEDA's ScaledObjects whose target this Deployment is; limits not given are KEDA's own, 0 and 100."""
    return tuple(
        _scaled_object(one)
        for one in found
        if _targets(deployment, one["spec"]["scaleTargetRef"], default_kind="Deployment")
    )


def replicas_set_by(meta: Json) -> tuple[FieldManager, ...]:
    """Return the field managers of ``spec.replicas``, as far as the server notes them.

    Whoever creates an object without a number counts as having set the server's default of 1; ``kubectl apply`` leaves
    a copy of what it was given, by which we tell that and leave it out. Server-side apply without a number notes
    nobody, and then the server does not note who scales later either (seen on 1.36.4): an empty answer proves nothing.
    """
    return tuple(
        FieldManager(
            manager=one.get("manager", ""),
            operation=one["operation"],
            subresource=one.get("subresource") or None,
            at=_time(one.get("time")),
        )
        for one in (meta.get("managedFields") or [])
        if "f:replicas" in (one.get("fieldsV1") or {}).get("f:spec", {}) and not _by_default(one, meta)
    )


def _by_default(manager: Json, meta: Json) -> bool:
    applied = (meta.get("annotations") or {}).get(_LAST_APPLIED)
    if manager.get("manager") != _KUBECTL_APPLY or applied is None:
        return False
    try:
        return "replicas" not in json.loads(applied)["spec"]
    except (ValueError, RecursionError, KeyError, TypeError):  # whoever may annotate wrote it, and kubectl did not
        return False


def _strategy(found: Json) -> UpdateStrategy:
    limits = found.get("rollingUpdate")
    if limits is None:
        return UpdateStrategy(found["type"])
    return UpdateStrategy(found["type"], str(limits["maxSurge"]), str(limits["maxUnavailable"]))


def _container(found: Json) -> Container:
    probe, hook = found.get("readinessProbe"), (found.get("lifecycle") or {}).get("preStop")
    return Container(
        name=found["name"],
        image=found.get("image", ""),
        readiness=None if probe is None else _probe(probe),
        pre_stop=None if hook is None else _pre_stop(hook),
    )


def _probe(found: Json) -> ReadinessProbe:
    return ReadinessProbe(
        kind=_kind(found, _PROBES),
        initial_delay_s=found.get("initialDelaySeconds", 0),
        period_s=found["periodSeconds"],
        timeout_s=found["timeoutSeconds"],
        success_threshold=found["successThreshold"],
        failure_threshold=found["failureThreshold"],
    )


def _pre_stop(found: Json) -> PreStop:
    kind = _kind(found, _HOOKS)
    return PreStop(kind, found["sleep"]["seconds"] if kind == "sleep" else None)


def _kind(found: Json, known: Iterable[str]) -> str:
    return next((kind for kind in known if kind in found), "unknown")


def _addresses(status: Json) -> tuple[str, ...]:
    several = [one["ip"] for one in (status.get("podIPs") or []) if "ip" in one]
    return tuple(several or ([status["podIP"]] if status.get("podIP") else []))


def _deletion_cost(text: str | None) -> int:
    """Return the cost that the ReplicaSet reads: 0 for what is no 32 bit number, or starts with ``+`` or ``0``.

    ``GetDeletionCostFromPodAnnotations``, Kubernetes 1.36.
    """
    if text is None or not _COST.fullmatch(text):
        return 0
    cost = int("-" + (text[1:].lstrip("0") or "0") if text.startswith("-") else text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _workload(meta: Json, workloads: Mapping[str, Workload]) -> Workload | None:
    owner = _controller(meta)
    if owner is None:
        return None
    return workloads.get(owner["uid"]) or Workload(owner["kind"], meta["namespace"], owner["name"])


def _controller(meta: Json) -> Json | None:
    return next((one for one in (meta.get("ownerReferences") or []) if one.get("controller")), None)


def _targets(deployment: Json, reference: Json, default_kind: str) -> bool:
    group = reference.get("apiVersion", "apps/v1").partition("/")[0]
    kind = reference.get("kind") or default_kind
    return (group, kind, reference["name"]) == ("apps", "Deployment", deployment["metadata"]["name"])


def _hpa(found: Json) -> Autoscaler:
    meta, spec, status = found["metadata"], found["spec"], (found.get("status") or {})
    maker = _controller(meta)
    return Autoscaler(
        kind="HorizontalPodAutoscaler",
        name=meta["name"],
        minimum=spec.get("minReplicas", 1),
        maximum=spec["maxReplicas"],
        # Before its first look an HPA says 0, which it can want only where it may go down to 0.
        desired=status.get("desiredReplicas") or None,
        made_by=None if maker is None else f"{maker['kind']} {maker['name']}",
        is_paused=all(((spec.get("behavior") or {}).get(way) or {}).get("selectPolicy") == "Disabled" for way in _WAYS),
        set_by=(meta.get("annotations") or {}).get(SET_BY),
        resource_version=meta.get("resourceVersion", ""),
    )


def _scaled_object(found: Json) -> Autoscaler:
    meta, spec = found["metadata"], found["spec"]
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


def _expression(found: Json) -> str:
    key, operator, values = found["key"], found["operator"], ",".join(found.get("values") or [])
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({values})"
    return f"{'!' if operator == 'DoesNotExist' else ''}{key}"


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
