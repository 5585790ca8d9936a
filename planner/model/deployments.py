"""Deployments and other scale targets: the Kubernetes facts that change what a change of replicas does.

Counts are those of the API server at one time. ``None`` means that it did not report it or that we may not read it,
never 0.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from planner.model.autoscalers import Autoscaler, FieldManager
from planner.model.pods import Container, Pod, Workload
from planner.model.times import check_time
from planner.text.words import and_list

DEPLOYMENT: Final = "Deployment"
STATEFUL_SET: Final = "StatefulSet"
APPS: Final = "apps/v1"
"""The API version of both; any other kind has its own."""
BUILT_IN: Final = ((APPS, DEPLOYMENT), (APPS, STATEFUL_SET))
"""API version and kind of the targets that need no sub-resource ``scale`` to be understood."""
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_API_VERSION: Final = re.compile(r"[a-z0-9][-a-z0-9.]{0,251}/v[0-9][a-z0-9]{0,20}")
_ORDINAL: Final = re.compile(r"0|[1-9][0-9]{0,9}")


def check_target_kind(kind: str, api_version: str) -> None:
    """Raise ``ValueError`` for what can be no kind of a scale target, or no API version with its group."""
    if not _KIND.fullmatch(kind):
        raise ValueError(f"a kind such as Deployment, StatefulSet or Rollout, not {kind!r}")
    if not _API_VERSION.fullmatch(api_version):
        raise ValueError(f"an API version with its group such as apps/v1 or argoproj.io/v1alpha1, not {api_version!r}")


@dataclass(frozen=True, slots=True)
class UpdateStrategy:
    """How pods are replaced when the template changes (a change of replicas alone replaces none).

    ``kind`` is ``RollingUpdate`` or ``Recreate``; the limits are as written, ``"25%"`` or ``"1"``, ``None`` for
    ``Recreate``, which has none.
    """

    kind: str
    max_surge: str | None = None
    max_unavailable: str | None = None

    def limits(self, replicas: int) -> tuple[int, int] | None:
        """Return (pods above, pods below) ``replicas`` during an update; ``None`` for ``Recreate``.

        A share is rounded up for the surge and down for the unavailable; where both come to 0 the latter is 1
        (``ResolveFenceposts`` of the Deployment controller, Kubernetes 1.36).

        Ten replicas with 25 % each: up to 3 above, down to 2 below.
        """
        if self.max_surge is None or self.max_unavailable is None:
            return None
        surge = math.ceil(_share(self.max_surge, replicas))
        unavailable = math.floor(_share(self.max_unavailable, replicas))
        return (surge, unavailable or 1) if surge == 0 else (surge, unavailable)


@dataclass(frozen=True, slots=True)
class Ordinals:
    """What a StatefulSet has beyond a Deployment: its pods are ``name-0``, ``name-1`` and so on, in this order.

    ``first`` is the lowest number (``spec.ordinals.start``). With ``is_ordered`` (``OrderedReady``) each pod
    starts once the one before is ready and stops once the one after is gone, else all at once (``Parallel``).
    An update reaches only pods with a number of at least ``partition``.
    """

    first: int = 0
    is_ordered: bool = True
    partition: int = 0


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """What makes it of another kind, whose sub-resource ``scale`` has the count: an Argo Rollout, a CloneSet.

    With ``takes_cost`` its controller stops pods of the lowest deletion cost first, as a ReplicaSet does; else nobody
    but that controller knows which pods stop. ``template_label`` is the pods' label that names their template, where
    there is one. ``busy`` says in a sentence why its count cannot be changed now, ``None`` where it can.
    """

    api_version: str
    kind: str
    takes_cost: bool
    template_label: str | None = None
    busy: str | None = None


@dataclass(frozen=True, slots=True)
class AlsoServing:
    """Another workload of the namespace, whose pods run so many ``members`` of the group."""

    workload: Workload
    members: int

    def __str__(self) -> str:
        return f"{self.workload} ({self.members})"


@dataclass(frozen=True, slots=True)
class TargetReplicas:
    """One of several Deployments that run a group, by name, and how many replicas it asks for."""

    name: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """One Deployment, StatefulSet or other scale target, as the API server had it at ``at`` (UTC).

    ``replicas`` is what is asked for; ``current``, ``updated``, ``ready`` and ``available`` are what its controller
    counted last, which lags behind while ``is_observed`` is false. ``grace_s`` is how long an ending pod has between
    the request and SIGKILL, ``min_ready_s`` how long a ready pod waits to count as available. ``pods`` is
    ``None`` where they could not be read, ``autoscalers`` where none was found and not all could be read;
    ``problems`` says why, in sentences. ``replicas_set_by`` is what the server noted, which may be nobody.
    ``revision`` is that of its template (``deployment.kubernetes.io/revision``), ``None`` where it has none yet.
    ``also_serving`` are the other workloads of its namespace that run members of the group, looked for where its own
    pods do not run all. ``ordinals`` is what makes it a StatefulSet, ``None`` for a Deployment. A StatefulSet has no
    progress deadline (0), is never paused, and an update replaces one pod after the other. ``scale`` is what makes it
    of any other kind, which has no progress deadline (0) that we know either.
    ``targets`` is not empty where this stands for several Deployments that run one group (``together``): counts are
    then theirs together, and each pod's ``workload`` says which of them it belongs to.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    at: datetime
    replicas: int
    current: int
    updated: int
    ready: int
    available: int
    is_observed: bool
    is_paused: bool
    strategy: UpdateStrategy
    containers: tuple[Container, ...]
    grace_s: int
    min_ready_s: int
    progress_deadline_s: int
    uses_host_network: bool
    pods: tuple[Pod, ...] | None
    autoscalers: tuple[Autoscaler, ...] | None
    replicas_set_by: tuple[FieldManager, ...]
    problems: tuple[str, ...] = ()
    revision: int | None = None
    ordinals: Ordinals | None = None
    also_serving: tuple[AlsoServing, ...] = ()
    targets: tuple[TargetReplicas, ...] = ()
    scale: ScaleTarget | None = None

    def __post_init__(self) -> None:
        check_time(f"Deployment {self.name}", self.at)

    @property
    def kind(self) -> str:
        """``Deployment``, ``StatefulSet``, or the kind of any other scale target."""
        if self.scale is not None:
            return self.scale.kind
        return DEPLOYMENT if self.ordinals is None else STATEFUL_SET

    @property
    def api_version(self) -> str:
        """The API version of its kind."""
        return APPS if self.scale is None else self.scale.api_version

    @property
    def has_known_victims(self) -> bool:
        """True where a plan can choose or knows which pods stop; false where its own controller alone decides."""
        return self.scale is None or self.scale.takes_cost

    @property
    def template_label(self) -> str | None:
        """The pods' label that names their template, ``None`` where no such label is known."""
        if self.scale is not None:
            return self.scale.template_label
        return "pod-template-hash" if self.ordinals is None else "controller-revision-hash"

    @property
    def title(self) -> str:
        """Its kind and name: ``Deployment orders``."""
        return f"{self.kind} {self.name}"

    @property
    def workload(self) -> Workload:
        """Its name as pods refer to it."""
        return Workload(self.kind, self.namespace, self.name)

    @property
    def workloads(self) -> frozenset[Workload]:
        """All names as pods refer to them: several where this stands for several Deployments."""
        names = [target.name for target in self.targets] or [self.name]
        return frozenset(Workload(self.kind, self.namespace, name) for name in names)

    def ordinal_of(self, pod: str) -> int | None:
        """Return the number of a StatefulSet's pod, ``None`` for a name that is none of its pods'."""
        stem, _, number = pod.rpartition("-")
        is_own = self.ordinals is not None and stem == self.name and _ORDINAL.fullmatch(number)
        return int(number) if is_own else None

    def pod_names(self, replicas: int, beyond: int = 0) -> tuple[str, ...]:
        """Return the names that a StatefulSet's pods have at ``replicas``, in their order. No Deployment has such.

        ``beyond`` leaves out those that it has at so many replicas already.
        """
        if self.ordinals is None:
            raise ValueError(f"{self.workload} names its pods by chance")
        return tuple(f"{self.name}-{self.ordinals.first + number}" for number in range(beyond, replicas))

    def stays(self, pod: str, replicas: int) -> bool:
        """Tell whether a StatefulSet has a pod of this name at ``replicas``."""
        number = self.ordinal_of(pod)
        return self.ordinals is not None and number is not None and 0 <= number - self.ordinals.first < replicas

    @property
    def is_complete(self) -> bool:
        """True when nothing was left unread."""
        return not self.problems

    @property
    def update_limits(self) -> tuple[int, int] | None:
        """Pods above and below ``replicas`` during an update; ``None`` for ``Recreate``."""
        return self.strategy.limits(self.replicas)

    @property
    def active_autoscalers(self) -> tuple[Autoscaler, ...] | None:
        """Those that would undo a count set by somebody else; ``None`` when that is not known."""
        return None if self.autoscalers is None else tuple(each for each in self.autoscalers if not each.is_paused)

    @property
    def replica_owners(self) -> tuple[Autoscaler, ...] | None:
        """The active autoscalers without the HPAs that another one of them made; ``None`` when that is not known."""
        active = self.active_autoscalers
        makers = {str(each) for each in active or ()}
        return None if active is None else tuple(each for each in active if each.made_by not in makers)


def together(deployments: Sequence[Deployment]) -> Deployment:
    """Return what several Deployments of one namespace, which run one group, are as one, in the policy's order.

    Counts add up. What is unknown of one is unknown of all; where they differ, the least time to stop and the longest
    deadlines count. One alone stays as it is.
    """
    first, *others = deployments
    if not others:
        return first
    return replace(
        first,
        name=and_list([each.name for each in deployments]),
        at=max(each.at for each in deployments),
        replicas=sum(each.replicas for each in deployments),
        current=sum(each.current for each in deployments),
        updated=sum(each.updated for each in deployments),
        ready=sum(each.ready for each in deployments),
        available=sum(each.available for each in deployments),
        is_observed=all(each.is_observed for each in deployments),
        is_paused=any(each.is_paused for each in deployments),
        grace_s=min(each.grace_s for each in deployments),
        min_ready_s=max(each.min_ready_s for each in deployments),
        progress_deadline_s=max(each.progress_deadline_s for each in deployments),
        uses_host_network=any(each.uses_host_network for each in deployments),
        pods=_all_known([each.pods for each in deployments]),
        autoscalers=_all_known([each.autoscalers for each in deployments]),
        replicas_set_by=tuple(owner for each in deployments for owner in each.replicas_set_by),
        problems=tuple(dict.fromkeys(problem for each in deployments for problem in each.problems)),
        revision=None,
        targets=tuple(TargetReplicas(each.name, each.replicas) for each in deployments),
    )


_T = TypeVar("_T")


def _all_known(groups: Sequence[tuple[_T, ...] | None]) -> tuple[_T, ...] | None:
    known = [group for group in groups if group is not None]
    return tuple(each for group in known for each in group) if len(known) == len(groups) else None


def _share(limit: str, replicas: int) -> float:
    # In this order: 0.29 * 100 is not 29 in floating point, 29 * 100 / 100 is.
    return int(limit.removesuffix("%")) * replicas / 100 if limit.endswith("%") else int(limit)
