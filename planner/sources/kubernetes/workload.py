"""``read_workload`` and ``read_pods``: what one Deployment is, and what runs in a namespace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from planner.model.deployments import Autoscaler, Deployment, Pod
from planner.sources.kubernetes.api import Json, KubernetesApi
from planner.sources.kubernetes.errors import AnswerError, ForbiddenError
from planner.sources.kubernetes.objects import (
    deployment_of,
    deployments_by_replica_set,
    hpas_of,
    is_controlled_by,
    pod_of,
    replica_sets_of,
    scaled_objects_of,
    selector_of,
)

_T = TypeVar("_T")


def read_workload(api: KubernetesApi, namespace: str, name: str, at: datetime) -> Deployment:
    """Return the Deployment ``name`` with its pods, autoscalers and managers of replicas; ``at`` is now, in UTC.

    Five reads. Pods are those that its ReplicaSets control, not all that its selector takes. Where a part around the
    Deployment is forbidden (403), ``problems`` says which right is missing; ``pods`` is then ``None``, and
    ``autoscalers`` too unless one was found all the same.

    Raises ``UnknownNameError`` when there is no such Deployment, ``BadInputError`` for impossible names, and
    ``OutOfReachError`` or one of the errors below it when the Deployment itself cannot be read or the server leaves us.
    """
    return complete_workload(api, f"{namespace}/{name}", api.deployment(namespace, name), at)


def complete_workload(api: KubernetesApi, name: str, deployment: Json, at: datetime) -> Deployment:
    """Return a Deployment that was read already, with what ``read_workload`` reads around it, which is four reads.

    ``name`` is its namespace and name, for errors: what was read may lack them. Raises as ``read_workload`` does.
    """
    problems: list[str] = []
    with _kubernetes_shapes(api, f"Deployment {name}"):
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
    # After the pods: a ReplicaSet is there before its first pod.
    ours = replica_sets_of(deployment, api.replica_sets(namespace, selector))
    workloads = deployments_by_replica_set(ours)
    return tuple(pod_of(pod, workloads) for pod in pods if is_controlled_by(pod, workloads))


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
