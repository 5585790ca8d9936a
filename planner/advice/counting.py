"""What an advice counts: pods where they are known, else members."""

from dataclasses import replace

from planner.model.snapshot import GroupSnapshot

MEMBERS_COUNTED = "no Deployment is named, and members show no pod of theirs: counts are of members"
"""The source of a member a pod where that is no claim about pods."""

MOST_MEMBERS = 64
"""The most members a pod that anybody may state (``spec.membersPerPod``)."""

COUNT_NOTE = (
    "Members are counted: they share an address, so that one pod may run several. --deployment NAMESPACE/NAME or "
    "--members-per-pod makes them counts of pods."
)


def count_members(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return the snapshot of a group without a Deployment, in members where its pods are unknown.

    An advice without a Deployment changes no replicas: what it says of members holds however they are spread over pods.
    """
    if snapshot.members_per_pod is not None or snapshot.deployment is not None:
        return snapshot
    return replace(snapshot, members_per_pod=1, members_per_pod_source=MEMBERS_COUNTED)


def count_note(snapshot: GroupSnapshot) -> str:
    """Return in a line that counts are of members, where the snapshot's pods are unknown; else an empty string."""
    return COUNT_NOTE if snapshot.members_per_pod_source == MEMBERS_COUNTED else ""


def likely_members_per_pod(snapshot: GroupSnapshot) -> int | None:
    """Return how many members a pod runs if all run as many as the Deployment's count suggests; ``None`` if none fits.

    It is no more than likely: members may run elsewhere, so that nobody decides by it without saying so.
    """
    replicas = snapshot.deployment.replicas if snapshot.deployment else 0
    members = len(snapshot.clients)
    is_even = replicas and members and members % replicas == 0
    return members // replicas if is_even and members // replicas <= MOST_MEMBERS else None
