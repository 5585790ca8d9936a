"""Deployments and their pods: the Kubernetes facts that change what a change of replicas does.

Counts are those of the API server at one time. ``None`` means that it did not report it or that we may not read it,
never 0.
"""

import math
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """The workload that a pod belongs to in the end: ``kind`` is ``Deployment``, ``StatefulSet``, ``Job`` and so on."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod. ``restarts`` and ``is_ready`` are over all its containers.

    ``addresses`` are the pod's IPs, empty before it has one; with ``uses_host_network`` they are the node's, and other
    pods may have them too. ``host_address`` is the node's. ``ready_at`` is when it last became ready, ``started_at``
    when its node took it up. ``workload`` is ``None`` for a pod that nobody controls or whose controller we may not
    read. ``is_ending`` means that its deletion was asked for; it may go on for its grace period. ``deletion_cost`` is
    its annotation's, 0 where it has none: ReplicaSets stop the lowest first among pods that are equally far.
    """

    namespace: str
    name: str
    uid: str
    phase: str
    addresses: tuple[str, ...] = ()
    host_address: str | None = None
    uses_host_network: bool = False
    node: str | None = None
    is_ready: bool = False
    is_ending: bool = False
    started_at: datetime | None = None
    ready_at: datetime | None = None
    restarts: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    workload: Workload | None = None
    created_at: datetime | None = None
    deletion_cost: int = 0

    @property
    def has_finished(self) -> bool:
        """True when all its containers ended for good; its addresses may belong to another pod by now."""
        return self.phase in ("Succeeded", "Failed")

    def label(self, key: str) -> str | None:
        """Return the value of a label, ``None`` when the pod has no such label."""
        return dict(self.labels).get(key)


@dataclass(frozen=True, slots=True)
class ReadinessProbe:
    """When the kubelet takes a container for ready. ``kind`` is ``exec``, ``grpc``, ``httpGet`` or ``tcpSocket``."""

    kind: str
    initial_delay_s: int
    period_s: int
    timeout_s: int
    success_threshold: int
    failure_threshold: int


@dataclass(frozen=True, slots=True)
class PreStop:
    """What runs before a container gets SIGTERM, within the grace period.

    ``kind`` is ``exec``, ``httpGet`` or ``sleep``; ``sleep_s`` is known for the last only.
    """

    kind: str
    sleep_s: int | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """One container of the pod template, init containers that keep running (sidecars) left out."""

    name: str
    image: str
    readiness: ReadinessProbe | None = None
    pre_stop: PreStop | None = None


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
class Autoscaler:
    """Something that sets ``spec.replicas`` by rules of its own, between ``minimum`` and ``maximum``.

    ``kind`` is ``HorizontalPodAutoscaler`` or ``ScaledObject`` (KEDA). ``desired`` is what it wants now, where it says
    so. ``made_by`` names the ScaledObject that made an HPA. ``set_by`` is the plan's step that set it last, by its
    annotation.

    ``is_paused``: an HPA that may move in neither direction, or a ScaledObject with KEDA's annotation. It leaves the
    count alone, except that an HPA brings one outside of its bounds back to them (``reconcileAutoscaler``, Kubernetes
    1.36), and a ScaledObject that is paused at a count (``paused_at``) brings every other one there. ``idle`` is how
    many a ScaledObject keeps while nothing triggers it, ``None`` for its minimum.
    """

    kind: str
    name: str
    minimum: int
    maximum: int
    desired: int | None = None
    made_by: str | None = None
    is_paused: bool = False
    paused_at: int | None = None
    idle: int | None = None
    set_by: str | None = None
    resource_version: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def leaves(self, count: int) -> bool:
        """True when it is paused and would leave so many replicas alone. An HPA leaves 0 alone, whatever its bounds."""
        if self.paused_at is not None:
            return count == self.paused_at
        is_within = self.minimum <= count <= self.maximum
        return self.is_paused and (self.kind != "HorizontalPodAutoscaler" or count == 0 or is_within)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The client that last set ``spec.replicas``, by the object's ``managedFields``.

    ``manager`` is the client's own name (``kubectl``, ``helm``, ``kube-controller-manager``), ``operation`` is
    ``Apply`` or ``Update``, ``subresource`` is ``scale`` for ``kubectl scale`` and autoscalers. ``at`` is ``None`` for
    those: the API server notes no time for the scale subresource.
    """

    manager: str
    operation: str
    subresource: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Deployment:
    """One Deployment as the API server had it at ``at`` (UTC).

    ``replicas`` is what is asked for; ``current``, ``updated``, ``ready`` and ``available`` are what its controller
    counted last, which lags behind while ``is_observed`` is false. ``grace_s`` is how long an ending pod has between
    the request and SIGKILL, ``min_ready_s`` how long a ready pod waits to count as available. ``pods`` is
    ``None`` where they could not be read, ``autoscalers`` where none was found and not all could be read;
    ``problems`` says why, in sentences. ``replicas_set_by`` is what the server noted, which may be nobody.
    ``revision`` is that of its template (``deployment.kubernetes.io/revision``), ``None`` where it has none yet.
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

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise ValueError(f"Deployment {self.name} carries a time without zone: {self.at.isoformat()}")

    @property
    def workload(self) -> Workload:
        """Its name as pods refer to it."""
        return Workload("Deployment", self.namespace, self.name)

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


def _share(limit: str, replicas: int) -> float:
    # In this order: 0.29 * 100 is not 29 in floating point, 29 * 100 / 100 is.
    return int(limit.removesuffix("%")) * replicas / 100 if limit.endswith("%") else int(limit)
