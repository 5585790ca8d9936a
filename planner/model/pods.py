"""Pods, the containers that they run, and the workload that they belong to."""

from dataclasses import dataclass
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
    ``deletion_cost_by`` is who set that last, ``None`` where there is none or the server noted nobody.
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
    deletion_cost_by: str | None = None

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
