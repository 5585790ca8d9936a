"""Pods and members of a few words."""

from planner.model.deployments import Pod, Workload
from planner.workload import MemberClues

SHOP = Workload("Deployment", "shop", "app")


def pod(name: str, address: str = "", *, workload: Workload | None = SHOP, **facts: object) -> Pod:
    """Return a running, ready pod on node ``n1`` (192.168.0.1)."""
    known: dict[str, object] = {
        "phase": "Running",
        "is_ready": True,
        "host_address": "192.168.0.1",
        "node": "n1",
        "addresses": (address,) if address else (),
    }
    return Pod("shop", name, f"uid-{name}", workload=workload, **{**known, **facts})  # type: ignore[arg-type]


def host_pod(name: str, **facts: object) -> Pod:
    """Return a pod with host network."""
    return pod(name, "192.168.0.1", uses_host_network=True, **facts)  # type: ignore[arg-type]


def member(identity: str, *addresses: str, names: tuple[str, ...] = ()) -> MemberClues:
    """Return a member with these clues."""
    return MemberClues(identity, addresses, names)
