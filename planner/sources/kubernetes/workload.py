"""``read_workload`` and ``read_pods``: what one scale target is, and what runs in a namespace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from planner.errors import UnknownNameError
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import APPS, DEPLOYMENT, STATEFUL_SET, Deployment
from planner.model.pods import Pod
from planner.sources.kubernetes.api import Json, KubernetesApi
from planner.sources.kubernetes.errors import AnswerError, ForbiddenError
from planner.sources.kubernetes.objects import (
    api_version_of,
    deployment_of,
    deployments_by_replica_set,
    hpas_of,
    is_controlled_by,
    is_of_other_kind,
    is_stateful_set,
    kind_of,
    pod_of,
    replica_sets_of,
    scaled_objects_of,
    selector_of,
)
from planner.sources.kubernetes.scale_targets import scale_target_of, selector_of_scale
from planner.text.words import some

_T = TypeVar("_T")


def read_workload(
    api: KubernetesApi, namespace: str, name: str, at: datetime, kind: str = DEPLOYMENT, api_version: str = APPS
) -> Deployment:
    """Return the scale target ``name`` with its pods, autoscalers and managers of replicas.

    ``at`` is now, in UTC. Five reads, and two more of a kind that is neither Deployment nor StatefulSet. Pods are those
    that it controls, not all that its selector takes. Where a part around the target is forbidden (403), ``problems``
    says which right is missing; ``pods`` is then ``None``, and ``autoscalers`` too unless one was found all the same.

    Raises ``UnknownNameError`` when there is no such target, or its kind has no sub-resource ``scale``,
    ``BadInputError`` for impossible names, and ``OutOfReachError`` or one of the errors below it when the target itself
    cannot be read or the server leaves us.
    """
    return complete_workload(api, f"{namespace}/{name}", api.deployment(namespace, name, kind, api_version), at)


def read_named(api: KubernetesApi, namespace: str, name: str, at: datetime) -> Deployment:
    """Return the Deployment of that name or, where there is none, the StatefulSet. Raises as ``read_workload``."""
    try:
        return read_workload(api, namespace, name, at)
    except UnknownNameError as unknown:
        try:
            return read_workload(api, namespace, name, at, STATEFUL_SET)
        except (UnknownNameError, ForbiddenError):
            raise unknown from None


def complete_workload(api: KubernetesApi, name: str, deployment: Json, at: datetime) -> Deployment:
    """Return a Deployment that was read already, with what ``read_workload`` reads around it, which is four reads.

    ``name`` is its namespace and name, for errors: what was read may lack them. Raises as ``read_workload`` does.
    """
    problems: list[str] = []
    with _kubernetes_shapes(api, f"{kind_of(deployment)} {name}"):
        if is_of_other_kind(deployment):
            return _complete_other(api, deployment, at, problems)
        pods = _unless_forbidden(lambda: _pods_of(api, deployment), problems)
        autoscalers = _autoscalers(api, deployment, problems)
        return deployment_of(deployment, at=at, pods=pods, autoscalers=autoscalers, problems=tuple(problems))


def read_pods(api: KubernetesApi, namespace: str | None) -> tuple[Pod, ...]:
    """Return all pods of a namespace (``None``: of all namespaces), each with the workload that it belongs to.

    Two reads. Raises what the methods of ``KubernetesApi`` raise; ``ForbiddenError`` too, as half of it is no answer.
    """
    with _kubernetes_shapes(api, "pods"):
        pods = api.pods(namespace)
        # After the pods: a ReplicaSet is there before its first pod.
        workloads = deployments_by_replica_set(api.replica_sets(namespace))
        return tuple(pod_of(pod, workloads) for pod in pods)


def _pods_of(api: KubernetesApi, deployment: Json) -> tuple[Pod, ...]:
    namespace, selector = deployment["metadata"]["namespace"], selector_of(deployment)
    pods = api.pods(namespace, selector)
    if is_stateful_set(deployment):
        uid = deployment["metadata"]["uid"]
        return tuple(pod_of(pod, {}) for pod in pods if is_controlled_by(pod, (uid,)))
    # After the pods: a ReplicaSet is there before its first pod.
    ours = replica_sets_of(deployment, api.replica_sets(namespace, selector))
    workloads = deployments_by_replica_set(ours)
    return tuple(pod_of(pod, workloads) for pod in pods if is_controlled_by(pod, workloads))


def _complete_other(api: KubernetesApi, target: Json, at: datetime, problems: list[str]) -> Deployment:
    """Return a target of another kind with its pods: by its sub-resource ``scale``, which names their selector."""
    namespace, name = target["metadata"]["namespace"], target["metadata"]["name"]
    scale = api.scale(namespace, name, kind_of(target), api_version_of(target))
    pods = _unless_forbidden(lambda: _pods_by_scale(api, target, scale, problems), problems)
    return scale_target_of(
        target,
        scale,
        at=at,
        pods=None if pods is None else pods[0],
        read_pods=None if pods is None else pods[1],
        autoscalers=_autoscalers(api, target, problems),
        problems=tuple(problems),
    )


def _pods_by_scale(
    api: KubernetesApi, target: Json, scale: Json, problems: list[str]
) -> tuple[list[Json], tuple[Pod, ...]]:
    """Return the pods that the target controls, itself or by its ReplicaSets, as JSON and as pods.

    Others that its selector takes are named among ``problems``: whose they are, nobody knows.
    """
    namespace, selector = target["metadata"]["namespace"], selector_of_scale(target, scale)
    selected = api.pods(namespace, selector)
    # All of the namespace: what labels another kind's ReplicaSets have, nobody says.
    workloads = deployments_by_replica_set(replica_sets_of(target, api.replica_sets(namespace)))
    uids = {target["metadata"]["uid"], *workloads}
    own = [pod for pod in selected if is_controlled_by(pod, uids)]
    if others := [pod["metadata"]["name"] for pod in selected if not is_controlled_by(pod, uids)]:
        problems.append(
            f"{some(others, 3)} match the selector of {kind_of(target)} {namespace}/{target['metadata']['name']}, but "
            "neither it nor a ReplicaSet of its controls them: whether its count starts and stops them is unknown"
        )
    return own, tuple(pod_of(pod, workloads) for pod in own)


def _autoscalers(api: KubernetesApi, deployment: Json, problems: list[str]) -> tuple[Autoscaler, ...] | None:
    namespace = deployment["metadata"]["namespace"]
    scaled = _unless_forbidden(lambda: scaled_objects_of(deployment, api.scaled_objects(namespace)), problems)
    hpas = _unless_forbidden(lambda: hpas_of(deployment, api.horizontal_pod_autoscalers(namespace)), problems)
    autoscalers = (*(scaled or ()), *(hpas or ()))
    # Those that were read exist, whatever else may; that there is none counts only where all could be read.
    return autoscalers if autoscalers or (scaled is not None and hpas is not None) else None


def _unless_forbidden(read: Callable[[], _T], problems: list[str]) -> _T | None:
    try:
        return read()
    except ForbiddenError as error:
        problems.append(str(error))
        return None


@contextmanager
def _kubernetes_shapes(api: KubernetesApi, what: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__} {error}"
        raise AnswerError(f"{api.server}: {what}: the answer lacks what Kubernetes sends: {problem}") from error
