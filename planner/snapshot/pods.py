"""How many members each pod runs: by the pods that were read, by the policy, or by what the members show."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.model.deployments import Deployment
from planner.model.membership import KafkaMember, Member
from planner.model.snapshot import GroupSnapshot
from planner.text.words import counted, some
from planner.workload import MemberClues, clues_of, pods_by_clues

FIELD = "spec.membersPerPod"


@dataclass(frozen=True, slots=True)
class PodSize:
    """Members of each pod, ``None`` where it is not known; ``source`` says in a sentence where it comes from, or why.

    ``uneven`` names the pods that run another number: ``source`` then says which pod runs how many.
    """

    members: int | None
    source: str
    uneven: tuple[str, ...] = ()


def pod_size(
    members: Sequence[MemberClues], deployment: Deployment | None, pods: Mapping[str, str] | None, stated: int | None
) -> PodSize:
    """Return how many members each pod runs.

    What the pods themselves show comes first, ``pods`` being member -> pod, as far as it is known, where pods were
    read; ``stated`` is the policy's ``membersPerPod``. Without pods, client ids that begin with a pod's name show as
    much. Members that only share an address leave the number unknown: a count of replicas could not be distinguished
    from one of members.
    """
    if not members:
        return PodSize(stated or 1, _source_stated(stated) if stated else "no member is running")
    if pods is not None and all(member.identity in pods for member in members):
        return _by_sizes(Counter(pods.values()), stated, "pods run")
    if deployment is not None:
        return _by_replicas(members, deployment, pods, stated)
    return _by_clues(members, stated)


def pod_size_of(snapshot: GroupSnapshot, stated: int | None) -> PodSize:
    """Return how many members each pod runs by what a snapshot holds, under a policy that states ``stated``."""
    # Clients of a RocketMQ group have no entry in ``members``: what one shows of its pod is all in its id.
    members: Sequence[Member | KafkaMember] = snapshot.members or [
        Member(client, "", "", 0) for client in snapshot.clients
    ]
    was_read = snapshot.pods or (snapshot.deployment is not None and snapshot.deployment.pods is not None)
    pods = {link.client: link.pod for link in snapshot.pods} if was_read else None
    return pod_size(list(map(clues_of, members)), snapshot.deployment, pods, stated)


def _by_sizes(sizes: Mapping[str, int], stated: int | None, run: str) -> PodSize:
    """Return the size that most pods have, the larger of equals: a listener that ended leaves a pod with fewer."""
    often = Counter(sizes.values())
    usual = stated or max(often, key=lambda size: (often[size], size))
    uneven = tuple(sorted(pod for pod, size in sizes.items() if size != usual))
    if not uneven:
        return PodSize(usual, f"{len(sizes)} {run} {counted(usual, 'member')} each")
    others = f"{FIELD} says {usual}" if stated else f"{len(sizes) - len(uneven)} others run {usual}"
    shown = some(f"{pod} runs {sizes[pod]}" for pod in uneven)
    return PodSize(
        usual,
        f"pods differ in their members: {shown}, {others}; look for a listener that has ended or has not yet joined, "
        f"and restart its pod{' or correct that field' if stated else ''}",
        uneven,
    )


def _by_replicas(
    members: Sequence[MemberClues], deployment: Deployment, pods: Mapping[str, str] | None, stated: int | None
) -> PodSize:
    """Return the size where not every member's pod is known: stated, or one where counts and pods agree on that."""
    if stated is not None:
        return _of_whole_pods(len(members), stated)
    sizes = Counter((pods or {}).values())
    if deployment.replicas == len(members) and max(sizes.values(), default=1) == 1:
        return PodSize(1, f"{deployment.workload} has as many pods as the group has members")
    unknown = "the members" if pods is None else f"{len(members) - len(pods)} of {len(members)} members"
    return PodSize(
        None,
        f"the pods of {unknown} are not known, and {deployment.workload} asks for "
        f"{counted(deployment.replicas, 'pod')} while the group has {counted(len(members), 'member')}: "
        f"state {FIELD}, or give each client its pod's name as client id or instance name",
    )


def _by_clues(members: Sequence[MemberClues], stated: int | None) -> PodSize:
    shared = pods_by_clues(members)
    if all(sharing.is_pod for sharing in shared):
        return _by_sizes(
            {sharing.by: len(sharing.members) for sharing in shared}, stated, "pod names among the client ids name"
        )
    if stated is not None:
        return _of_whole_pods(len(members), stated)
    crowded = [sharing for sharing in shared if len(sharing.members) > 1]
    if not crowded:
        return PodSize(1, "no two members share an address")
    largest = max(crowded, key=lambda sharing: len(sharing.members))
    perhaps = f", {len(largest.members)} for example" if len({len(sharing.members) for sharing in shared}) == 1 else ""
    return PodSize(
        None,
        f"{len(largest.members)} members share {largest.by} ({some(largest.members, 2)}), so that they may run in one "
        f"pod, and a count of pods is not one of members: state {FIELD}{perhaps}, or let spec.kubernetes read the pods",
    )


def _of_whole_pods(members: int, stated: int) -> PodSize:
    if members % stated == 0:
        return PodSize(stated, _source_stated(stated))
    whole = counted(-(-members // stated), "pod")
    return PodSize(
        stated,
        f"{FIELD} says {stated}, but {counted(members, 'member')} are no whole number of pods: {whole} would run "
        f"{-(-members // stated) * stated}; look for a listener that has ended or has not yet joined, or correct that "
        "field",
        ("a pod that is not known",),
    )


def _source_stated(members: int) -> str:
    return f"the policy states {counted(members, 'member')} a pod"
