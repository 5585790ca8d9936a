"""``serving``: which Deployment serves a group, by the pods that its members run in."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.model.deployments import Pod, Workload
from planner.workload.clues import MemberClues
from planner.workload.join import CURE, Evidence, Join, Link, join_members


@dataclass(frozen=True, slots=True)
class Serving:
    """Who serves a group.

    ``members`` is workload -> identities of the members in its pods, the workload with most members first.
    ``join`` matches the members with the pods of these workloads alone. ``problems`` has a sentence for each thing that
    keeps the answer from being one Deployment with all members, and those of ``join``.
    """

    members: tuple[tuple[Workload, tuple[str, ...]], ...]
    join: Join
    problems: tuple[str, ...]

    @property
    def deployment(self) -> Workload | None:
        """The one Deployment that runs members; ``None`` when there is none, or more than one workload."""
        found = [workload for workload, _ in self.members]
        return found[0] if len(found) == 1 and found[0].kind == "Deployment" else None


def serving(pods: Sequence[Pod], members: Sequence[MemberClues], label: str | None = None) -> Serving:
    """Return which workloads run the members, from all pods of one or more namespaces.

    ``label`` as in ``join_members``. A member that comes from a node's address alone is no evidence here: many pods of
    the node were not looked at.
    """
    wide = join_members(pods, members, label)
    links = [link for link in wide.links if link.by != (Evidence.NODE_ADDRESS,)]
    found = _by_workload(links)
    workloads, bare = {workload for workload, _ in found}, {link.pod for link in links if link.pod.workload is None}
    scope = [pod for pod in pods if pod.workload in workloads or pod in bare]
    join = join_members(scope, members, label) if scope else _nowhere(wide, members)
    return Serving(found, join, (*_several(found), *_foreign(found), *_bare(links), *join.problems))


def _nowhere(wide: Join, members: Sequence[MemberClues]) -> Join:
    unknown = tuple(member.identity for member in members)
    weak = tuple(
        f"member {link.member} comes from address {link.pod.host_address} of node {link.pod.node}, where "
        f"{link.pod.name} is the only pod looked at, but other pods may be; {CURE}"
        for link in wide.links
    )
    return Join((), unknown, (), (*wide.member_problems, *weak), ())


def check_named(named: Workload, found: Serving) -> str | None:
    """Return in a sentence why the Deployment that a policy names is not one that serves the group; ``None`` if it is.

    A group without members is no reason; that others serve it too is among the problems of ``found``.
    """
    if named in dict(found.members):
        return None
    if found.members:
        others = ", ".join(f"{workload} ({len(members)} members)" for workload, members in found.members)
        return f"{named} runs no member of the group; these do: {others}: correct the policy's scaleTargetRef"
    if found.join.members_without_pod:
        return f"no member of the group was found in a pod of {named}, nor in any other pod looked at"
    return None


def _by_workload(links: Iterable[Link]) -> tuple[tuple[Workload, tuple[str, ...]], ...]:
    members: defaultdict[Workload, list[str]] = defaultdict(list)
    for link in links:
        if link.pod.workload is not None:
            members[link.pod.workload].append(link.member)
    ranked = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple((workload, tuple(found)) for workload, found in ranked)


def _several(found: Sequence[tuple[Workload, tuple[str, ...]]]) -> list[str]:
    if len(found) < 2:
        return []
    shares = ", ".join(f"{workload} ({len(members)} members)" for workload, members in found)
    return [f"the group is served by {len(found)} workloads: {shares}: a plan scales one of them"]


def _foreign(found: Sequence[tuple[Workload, tuple[str, ...]]]) -> list[str]:
    return [
        f"{len(members)} members run in pods of {workload}, which is no Deployment: the planner scales Deployments"
        for workload, members in found
        if workload.kind != "Deployment"
    ]


def _bare(links: Iterable[Link]) -> list[str]:
    return [
        f"member {link.member} runs in pod {link.pod.namespace}/{link.pod.name}, which nothing controls: "
        "no change of replicas reaches it"
        for link in links
        if link.pod.workload is None
    ]
