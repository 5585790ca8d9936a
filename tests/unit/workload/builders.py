"""Pods and members of a few words."""

from datetime import UTC, datetime
from typing import Any

from planner.model.deployments import Deployment, UpdateStrategy
from planner.model.pods import Pod, Workload
from planner.workload import MemberClues

SHOP = Workload("Deployment", "shop", "app")


def pod(name: str, address: str = "", *, workload: Workload | None = SHOP, **facts: Any) -> Pod:
    """Return a running, ready pod on node ``n1`` (192.168.0.1)."""
    known: dict[str, Any] = {
        "phase": "Running",
        "is_ready": True,
        "host_address": "192.168.0.1",
        "node": "n1",
        "addresses": (address,) if address else (),
    }
    return Pod("shop", name, f"uid-{name}", workload=workload, **{**known, **facts})


def host_pod(name: str, **facts: Any) -> Pod:
    """Return a pod with host network."""
    return pod(name, "192.168.0.1", uses_host_network=True, **facts)


def member(identity: str, *addresses: str, names: tuple[str, ...] = ()) -> MemberClues:
    """Return a member with these clues."""
    return MemberClues(identity, addresses, names)


def deployment(**facts: Any) -> Deployment:
    """Return a Deployment of three replicas at rest, as far as ``facts`` do not say otherwise."""
    known: dict[str, Any] = {
        "namespace": "shop",
        "name": "app",
        "uid": "d1",
        "resource_version": "7",
        "at": datetime(2026, 11, 21, 10, 0, tzinfo=UTC),
        **dict.fromkeys(("replicas", "current", "updated", "ready", "available"), 3),
        "is_observed": True,
        "is_paused": False,
        "strategy": UpdateStrategy("RollingUpdate", "25%", "25%"),
        "containers": (),
        "grace_s": 30,
        "min_ready_s": 0,
        "progress_deadline_s": 600,
        "uses_host_network": False,
        "pods": (),
        "autoscalers": (),
        "replicas_set_by": (),
    }
    return Deployment(**{**known, **facts})
