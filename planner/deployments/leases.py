"""``ClusterLeases``: ``coordination.k8s.io/v1`` leases of one namespace."""

from datetime import UTC, datetime
from typing import Any, Final

from planner.deployments.api import RolloutApi
from planner.deployments.bodies import Json, micro_time
from planner.execution.lease import DURATION_S
from planner.execution.ports import Lease

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ClusterLeases:
    """The leases of one namespace: plans of one group in two namespaces do not exclude each other."""

    def __init__(self, api: RolloutApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def read(self, name: str) -> Lease | None:
        """Return the lease, ``None`` when there is none."""
        manifest = self._api.lease(self._namespace, name)
        return None if manifest is None else lease_of(manifest)

    def write(self, name: str, lease: Lease | None, holder: str | None, now: datetime) -> Lease:
        """Write the holder and ``now``, unless it changed since it was read as ``lease``: then ``ConflictError``."""
        body = _body(name, lease, holder, now)
        if lease is None:
            return lease_of(self._api.create_lease(self._namespace, body))
        return lease_of(self._api.replace_lease(self._namespace, name, body))


def lease_of(manifest: Json) -> Lease:
    """Return a lease object as the engine knows it; one that was never renewed is as old as can be."""
    spec: dict[str, Any] = manifest.get("spec") or {}
    renewed = spec.get("renewTime")
    return Lease(
        holder=spec.get("holderIdentity") or None,
        renewed_at=datetime.fromisoformat(renewed) if renewed else _LONG_AGO,
        duration_s=spec.get("leaseDurationSeconds", DURATION_S),
        transitions=spec.get("leaseTransitions", 0),
        resource_version=manifest["metadata"]["resourceVersion"],
    )


def _body(name: str, lease: Lease | None, holder: str | None, now: datetime) -> Json:
    meta = {"name": name, **({"resourceVersion": lease.resource_version} if lease else {})}
    before = lease.transitions if lease else 0
    spec: Json = {
        "leaseDurationSeconds": DURATION_S,
        "renewTime": micro_time(now),
        "leaseTransitions": before + 1 if lease and holder not in (None, lease.holder) else before,
    }
    if holder is not None:  # an empty name is none that the server takes
        spec["holderIdentity"] = holder
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
