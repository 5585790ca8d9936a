"""The Deployment that runs a group, as ``planner advise`` and ``planner init`` read it, and what does not fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.text.words import counted

if TYPE_CHECKING:
    from planner.model.autoscalers import Autoscaler
    from planner.model.deployments import Deployment
    from planner.model.samples import GroupSample

SHOWN: Final = 3
"""Sentences on single members and pods that are shown; ``planner doctor`` has them all."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Deployment, how its API server is reached, and what that server has of it.

    ``kubeconfig`` ``None`` is kubectl's own. ``deployment`` is ``None`` before it was read. ``member_label`` is the pod
    label that holds the members' names, ``None`` where none is known to.
    """

    namespace: str
    name: str
    kubeconfig: Path | None = None
    deployment: "Deployment | None" = None
    member_label: str | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def autoscaler(self) -> "Autoscaler | None":
        """The one autoscaler that sets its replicas; ``None`` where there is none, several, or nobody knows."""
        owners = self.deployment.replica_owners if self.deployment else None
        return owners[0] if owners and len(owners) == 1 else None


def read_target(namespace: str, name: str, kubeconfig: Path | None, sample: "GroupSample") -> Target:
    """Return the Deployment as it is now, beside the group's ``sample``.

    Raises what no waiting mends: a wrong name, no kubeconfig, no extra, no right, no connection.
    """
    from planner.sources.kubernetes import KubernetesApi, read_named

    with KubernetesApi.connect(kubeconfig) as api:
        return _completed(read_named(api, namespace, name, datetime.now(UTC)), kubeconfig, sample)


def find_target(sample: "GroupSample", kubeconfig: Path | None) -> tuple[Target | None, tuple[str, ...]]:
    """Return the one Deployment whose pods run the group's members, ``None`` where no one does, and why so.

    Raises what keeps the pods of all namespaces from being read; for ``read_target`` rights in one are enough.
    """
    from planner.sources.kubernetes import ForbiddenError, KubernetesApi, read_pods, read_workload
    from planner.workload import clues_of, serving

    with KubernetesApi.connect(kubeconfig) as api:
        try:
            pods = read_pods(api, None)
        except ForbiddenError as error:
            raise ForbiddenError(f"{error}, or name the Deployment with --deployment NAMESPACE/NAME") from error
        result = serving(pods, tuple(map(clues_of, sample.members)))
        workload = result.deployment
        if workload is None:
            return None, result.problems[:SHOWN]
        deployment = read_workload(api, workload.namespace, workload.name, datetime.now(UTC), workload.kind)
        return _completed(deployment, kubeconfig, sample), ()


def _completed(deployment: "Deployment", kubeconfig: Path | None, sample: "GroupSample") -> Target:
    from planner.workload import clues_of, member_label

    label = member_label(deployment.pods or (), tuple(map(clues_of, sample.members)))
    return Target(deployment.namespace, deployment.name, kubeconfig, deployment, label)


def doubts(target: Target, sample: "GroupSample") -> Iterator[str]:
    """Yield why the Deployment may not be the one that runs the group's members, and what was not read of it."""
    deployment = target.deployment
    if deployment is None:
        return
    yield from deployment.problems
    from planner.snapshot.pods import pod_size
    from planner.workload import clues_of, join_members

    clues = tuple(map(clues_of, sample.members))
    join = None if deployment.pods is None else join_members(deployment.pods, clues, target.member_label)
    pods = None if join is None else {member: pod.name for member, pod in join.pod_of.items()}
    size, members = pod_size(clues, deployment, pods, None), len(sample.members)
    if deployment.replicas * (size.members or 1) != members:
        each = f" of {size.members} members" if size.members and size.members > 1 else ""
        yield (
            f"{deployment.workload} asks for {counted(deployment.replicas, 'pod')}{each}, but the group has "
            f"{counted(members, 'member')}: the planner holds until each pod runs as many members as the others and no "
            "member runs elsewhere"
        )
    elif join is not None:
        yield from join.problems[:SHOWN]
