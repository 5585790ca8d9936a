"""``serving``: which workload serves a group, by the pods that its members run in."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.model.deployments import DEPLOYMENT, STATEFUL_SET
from planner.model.pods import Pod, Workload
from planner.workload.clues import MemberClues
from planner.workload.join import CURE, Evidence, Join, Link, join_members

_SCALED = (DEPLOYMENT, STATEFUL_SET)


@dataclass(frozen=True, slots=True)
class Serving:
    """The workloads that serve a group.

    ``members`` is workload -> identities of the members in its pods, the workload with most members first.
    ``join`` matches the members with the pods of these workloads alone. ``problems`` has a sentence for each thing that
    keeps the answer from being one Deployment with all members, and those of ``join``.
    """

    members: tuple[tuple[Workload, tuple[str, ...]], ...]
    join: Join
    problems: tuple[str, ...]

    @property
    def deployment(self) -> Workload | None:
        """The one Deployment or StatefulSet that runs members; ``None`` for none, or more than one workload."""
        workloads = [workload for workload, _ in self.members]
        return workloads[0] if len(workloads) == 1 and workloads[0].kind in _SCALED else None


def serving(pods: Sequence[Pod], members: Sequence[MemberClues], label: str | None = None) -> Serving:
    """Return which workloads run the members, from all pods of one or more namespaces.

    ``label`` as in ``join_members``. A member that comes from a node's address alone is no evidence here: many pods of
    the node were not read.
    """
    wide = join_members(pods, members, label)
    links = [link for link in wide.links if link.by != (Evidence.NODE_ADDRESS,)]
    served = _by_workload(links)
    workloads, bare = {workload for workload, _ in served}, {link.pod for link in links if link.pod.workload is None}
    scope = [pod for pod in pods if pod.workload in workloads or pod in bare]
    join = join_members(scope, members, label) if scope else _nowhere(wide, members)
    return Serving(served, join, (*_several(served), *_foreign(served), *_bare(links), *join.problems))


def _nowhere(wide: Join, members: Sequence[MemberClues]) -> Join:
    unknown = tuple(member.identity for member in members)
    weak = tuple(
        f"member {link.member} comes from address {link.pod.host_address} of node {link.pod.node}, where "
        f"{link.pod.name} is the only pod looked at, but other pods may be; {CURE}"
        for link in wide.links
    )
    return Join((), unknown, (), (*wide.member_problems, *weak), ())


def check_named(named: Workload, answer: Serving) -> str | None:
    """Return in a sentence why the Deployment that a policy names is not one that serves the group; ``None`` if it is.

    A group without members is no reason; that others serve it too is among the problems of ``answer``.
    """
    if named in dict(answer.members):
        return None
    if answer.members:
        others = ", ".join(f"{workload} ({len(members)} members)" for workload, members in answer.members)
        return f"{named} runs no member of the group; these do: {others}: correct the policy's scaleTargetRef"
    if answer.join.members_without_pod:
        return f"no member of the group was found in a pod of {named}, nor in any other pod looked at"
    return None


def _by_workload(links: Iterable[Link]) -> tuple[tuple[Workload, tuple[str, ...]], ...]:
    members: defaultdict[Workload, list[str]] = defaultdict(list)
    for link in links:
        if link.pod.workload is not None:
            members[link.pod.workload].append(link.member)
    ranked = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple((workload, tuple(identities)) for workload, identities in ranked)


def _several(served: Sequence[tuple[Workload, tuple[str, ...]]]) -> list[str]:
    if len(served) < 2:
        return []
    shares = ", ".join(f"{workload} ({len(members)} members)" for workload, members in served)
    return [f"the group is served by {len(served)} workloads: {shares}: a plan scales one of them"]


def _foreign(served: Sequence[tuple[Workload, tuple[str, ...]]]) -> list[str]:
    return [
        f"{len(members)} members run in pods of {workload}: where its kind has a sub-resource scale, a policy may name "
        "it by apiVersion, kind and name in scaleTargetRef"
        for workload, members in served
        if workload.kind not in _SCALED
    ]


def _bare(links: Iterable[Link]) -> list[str]:
    return [
        f"member {link.member} runs in pod {link.pod.namespace}/{link.pod.name}, which nothing controls: "
        "no change of replicas reaches it"
        for link in links
        if link.pod.workload is None
    ]
