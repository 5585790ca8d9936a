"""Scale targets of other kinds, as JSON, to our types: Argo Rollouts, OpenKruise CloneSets, any kind with ``scale``.

What all of them share is the sub-resource ``scale`` of the API server: the count asked for, the count that is there,
and the selector of the pods. What their controllers do beyond that is known of a few kinds, by their source
(``KINDS``); of any other kind nobody knows which pods stop, and a plan says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment, ScaleTarget, UpdateStrategy
from planner.model.pods import Pod
from planner.sources.kubernetes.errors import AnswerError
from planner.sources.kubernetes.objects import (
    Json,
    api_version_of,
    container_of,
    controller_of,
    kind_of,
    replicas_set_by,
)

_RUNNING: Final = ("Pending", "Running")
_DEFAULT_GRACE_S: Final = 30
_PROBE_DEFAULTS: Final = {"periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}
"""What the API server writes into a pod where a template, which it does not complete here, leaves them out."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is known of a kind's controller. ``busy`` yields, as ends of a sentence, why the count may not change now.

    All of them stop pods of the lowest deletion cost first, among pods that are equally far.
    """

    template_label: str
    busy: Callable[[Json, Json], Iterator[str]]


def scale_target_of(
    target: Json,
    scale: Json,
    *,
    at: datetime,
    pods: Sequence[Json] | None,
    read_pods: tuple[Pod, ...] | None,
    autoscalers: tuple[Autoscaler, ...] | None,
    problems: tuple[str, ...],
) -> Deployment:
    """Return the target with what was read around it; ``scale`` is its sub-resource, ``pods`` the JSON of its pods.

    Counts of ready pods are those of the pods themselves where these could be read, as kinds name theirs as they like.
    Raises ``AnswerError`` where its count is not ``spec.replicas``, which is what a plan writes, and where neither a
    template nor a pod shows what it runs.
    """
    meta, spec, status = target["metadata"], target["spec"], (target.get("status") or {})
    replicas = _replicas(target, scale)
    current = (scale.get("status") or {}).get("replicas", 0)
    ready = _count(status, "readyReplicas") if read_pods is None else sum(_is_ready(pod) for pod in read_pods)
    template = _pod_spec(target, pods)
    return Deployment(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        at=at,
        replicas=replicas,
        current=current,
        updated=min(_count(status, "updatedReplicas", current), current) if "updatedReplicas" in status else current,
        ready=ready,
        available=_count(status, "availableReplicas", ready),
        is_observed=_is_observed(meta, status),
        is_paused=_is_paused(spec),
        strategy=UpdateStrategy(_strategy(spec)),
        containers=tuple(container_of(_completed(container)) for container in template["containers"]),
        grace_s=template.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S),
        min_ready_s=_count(spec, "minReadySeconds"),
        progress_deadline_s=0,
        uses_host_network=template.get("hostNetwork", False),
        pods=read_pods,
        autoscalers=autoscalers,
        replicas_set_by=replicas_set_by(meta),
        problems=problems,
        scale=_facts(target, pods),
    )


def selector_of_scale(target: Json, scale: Json) -> str:
    """Return the label selector in text. Raises ``AnswerError`` where there is none: its pods are then unknown."""
    selector = (scale.get("status") or {}).get("selector")
    if not isinstance(selector, str) or not selector:
        raise AnswerError(
            f"{_title(target)} shows no selector in its sub-resource scale, so that its pods are unknown: its "
            "definition must have labelSelectorPath, and its controller must have written it"
        )
    return selector


def _facts(target: Json, pods: Sequence[Json] | None) -> ScaleTarget:
    known = KINDS.get((api_version_of(target).partition("/")[0], kind_of(target)))
    reasons = [*_controlled(target), *(known.busy(target, target.get("status") or {}) if known else ())]
    owners = {_owner(pod) for pod in pods or ()}
    is_replica_set = len(owners) == 1 and all(owner[0] == "ReplicaSet" for owner in owners)
    return ScaleTarget(
        api_version=api_version_of(target),
        kind=kind_of(target),
        takes_cost=known is not None or is_replica_set,
        template_label=known.template_label if known else None,
        busy=f"{_title(target)} {reasons[0]}" if reasons else None,
    )


def _controlled(target: Json) -> Iterator[str]:
    owner = controller_of(target["metadata"])
    if owner is not None:
        yield f"is controlled by {owner['kind']} {owner['name']}, which sets its count: name that in scaleTargetRef"


def _replicas(target: Json, scale: Json) -> int:
    """Return the count asked for, which must be the object's own ``spec.replicas``: a plan writes it with its claim."""
    asked, own = (scale.get("spec") or {}).get("replicas", 0), target["spec"].get("replicas")
    if own is None:
        raise AnswerError(f"{_title(target)} states no spec.replicas: state how many pods it has now, then ask again")
    if own != asked:
        raise AnswerError(
            f"{_title(target)} has {own} in spec.replicas and {asked} in its sub-resource scale: where a kind keeps "
            "its count elsewhere, no plan can be made; scale it by hand to the count that planner advise shows"
        )
    return int(own)


def _pod_spec(target: Json, pods: Sequence[Json] | None) -> Json:
    template = (target["spec"].get("template") or {}).get("spec")
    if isinstance(template, dict) and template.get("containers"):
        return template
    if pods:
        return dict(pods[0]["spec"])
    raise AnswerError(f"{_title(target)} has no spec.template.spec and no pod, so that nobody knows what it runs")


def _completed(container: Json) -> Json:
    probe = container.get("readinessProbe")
    return container if probe is None else {**container, "readinessProbe": {**_PROBE_DEFAULTS, **probe}}


def _is_observed(meta: Json, status: Json) -> bool:
    """Tell whether its controller has seen the newest spec; a kind that does not say so is taken by its pods alone."""
    observed = str(status.get("observedGeneration", ""))
    return not observed.isdecimal() or int(observed[:19]) >= meta.get("generation", 0)


def _is_paused(spec: Json) -> bool:
    strategy = spec.get("updateStrategy")
    return bool(spec.get("paused")) or bool(isinstance(strategy, dict) and strategy.get("paused"))


def _strategy(spec: Json) -> str:
    strategy = spec.get("strategy") or spec.get("updateStrategy")
    named = strategy.get("type") if isinstance(strategy, dict) else None
    kinds = [key for key in ("canary", "blueGreen") if isinstance(strategy, dict) and key in strategy]
    return str(named or (kinds[0] if kinds else "unknown"))


def _count(fields: Mapping[str, Any], name: str, default: int = 0) -> int:
    value = fields.get(name, default)
    return value if isinstance(value, int) else default


def _is_ready(pod: Pod) -> bool:
    return pod.is_ready and not pod.is_ending and not pod.has_finished


def _owner(pod: Json) -> tuple[str, str]:
    owner = controller_of(pod["metadata"]) or {}
    return str(owner.get("kind", "")), str(owner.get("uid", ""))


def _title(target: Json) -> str:
    return f"{kind_of(target)} {target['metadata']['namespace']}/{target['metadata']['name']}"


def _rollout(target: Json, status: Json) -> Iterator[str]:
    """Yield why an Argo Rollout's count may not change now (``argoproj/argo-rollouts`` 1.8, ``RolloutStatus``).

    While the current pod hash is not the stable one, a change of the count is parted over two ReplicaSets by weight.
    """
    if target["spec"].get("paused"):
        yield "is paused (spec.paused), so that a new count would start and stop nothing: resume it"
    if status.get("abort"):
        yield "was aborted, so that its pods are not of its newest template: retry it, or set the old template back"
    yield from _templates(target, status)
    if status.get("pauseConditions"):
        yield "waits for somebody to promote it: promote or abort it"
    runs = [(key, run) for name in ("canary", "blueGreen") for key, run in (status.get(name) or {}).items()]
    for key, run in runs:
        if isinstance(run, dict) and run.get("status") in _RUNNING:
            yield f"has a running analysis ({run.get('name', key)}): wait for its end"


def _templates(target: Json, status: Json) -> Iterator[str]:
    stable, current = status.get("stableRS"), status.get("currentPodHash")
    canary = (target["spec"].get("strategy") or {}).get("canary") or {}
    step, steps = status.get("currentStepIndex"), canary.get("steps")
    if not stable:
        yield "has not finished its first rollout: wait until it is healthy"
    elif stable != current:
        where = f", at step {step} of {len(steps)}" if isinstance(step, int) and steps else ""
        yield f"is in the middle of a rollout{where}, with pods of two templates: promote or abort it"


def _clone_set(target: Json, status: Json) -> Iterator[str]:
    """Yield why a CloneSet's count may not change now (``openkruise/kruise`` 1.8, ``cloneset_scale.go``)."""
    named = (target["spec"].get("scaleStrategy") or {}).get("podsToDelete")
    if named:
        yield f"is asked to delete {', '.join(map(str, named[:3]))} (scaleStrategy.podsToDelete): take these names out"
    replicas, updated = _count(status, "replicas"), _count(status, "updatedReplicas")
    if updated < replicas:
        yield f"has {updated} of {replicas} pods of its newest template: finish the update"


KINDS: Final[Mapping[tuple[str, str], _Kind]] = {
    ("argoproj.io", "Rollout"): _Kind("rollouts-pod-template-hash", _rollout),
    ("apps.kruise.io", "CloneSet"): _Kind("controller-revision-hash", _clone_set),
}
"""(API group, kind) -> what its controller does.

A Rollout scales its ReplicaSet (``reconcileNewReplicaSet``), whose pods stop by deletion cost; a CloneSet sorts by it
itself (``ActivePodsWithRanks.Less``, rule 4). A CloneSet's label ``apps.kruise.io/specified-delete`` is not used: it
deletes a pod at once, also where the count was not lowered.
"""
