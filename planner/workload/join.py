"""``join_members``: which pod is which member, with the evidence, and a sentence for all that does not fit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from planner.model.pods import Pod
from planner.workload.clues import MemberClues


class Evidence(StrEnum):
    """What a link rests on.

    ``NODE_ADDRESS`` is the weakest: the member comes from the node's address, and of the pods that were read this is
    the only one there. Pods that were not read may be there too.
    """

    LABEL = "label"
    NAME = "name"
    ADDRESS = "address"
    NODE_ADDRESS = "node address"


CURE: Final = "give each client its pod's name as client id or instance name"
"""What makes a member name its pod, whatever the network does."""
_NAMED: Final = 5
"""Pods that one sentence names before it says "and N more"."""


@dataclass(frozen=True, slots=True)
class Link:
    """One member and its pod."""

    member: str
    pod: Pod
    by: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Members and pods matched, in the order of the members.

    ``members_without_pod`` has those of which no or several pods could be it. ``pods_without_member`` leaves out pods
    that have finished or are ending. ``member_problems`` has a sentence for each member that does not fit,
    ``pod_problems`` for each pod without a member and each that runs fewer of them than another; both empty means as
    many members in each pod as in the others.
    """

    links: tuple[Link, ...]
    members_without_pod: tuple[str, ...]
    pods_without_member: tuple[Pod, ...]
    member_problems: tuple[str, ...]
    pod_problems: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """All that does not fit."""
        return (*self.member_problems, *self.pod_problems)

    @property
    def pod_of(self) -> dict[str, Pod]:
        """Identity of a member -> its pod, for the members that have one."""
        return {link.member: link.pod for link in self.links}


@dataclass(frozen=True, slots=True)
class _Clue:
    """One piece of evidence and the pods that it leaves."""

    kind: Evidence
    text: str
    pods: frozenset[Pod]


def join_members(pods: Iterable[Pod], members: Iterable[MemberClues], label: str | None = None) -> Join:
    """Return which pod is which member.

    Four things can identify it, and those that apply must agree on one pod:

    - the value of the pods' label ``label``, where given, is one of the member's names;
    - one of the member's names is the pod's, or goes on after it (``pod-7d4-x2-thread-1``); names that merely go on
      count for pods with a controller only, as ``consumer-1`` is no proof of a pod ``consumer``;
    - one of the member's addresses is the pod's own;
    - one of them is the node's: this narrows the others; by itself it identifies a pod with host network, when it is
      the only pod there.

    A member that several pods could be, none is, or whose clues contradict each other is left without a pod and named.
    """
    live = sorted((pod for pod in pods if not pod.has_finished), key=lambda pod: (pod.namespace, pod.name, pod.uid))
    links: list[Link] = []
    problems: list[str] = []
    left: list[str] = []
    for member in members:
        match = _match(member, live, label)
        if isinstance(match, Link):
            links.append(match)
        else:
            left.append(member.identity)
            problems.append(match)
    taken = {link.pod for link in links}
    idle = tuple(pod for pod in live if pod not in taken and not pod.is_ending)
    pod_problems = (*_uneven(links), *(_idle(pod) for pod in idle))
    return Join(tuple(links), tuple(left), idle, tuple(problems), pod_problems)


def _match(member: MemberClues, pods: Sequence[Pod], label: str | None) -> Link | str:
    clues = _clues(member, pods, label)
    if not clues:
        return f"member {member.identity} runs in none of the pods looked at: {_describe_clues(member)}; {CURE}"
    used = [clue for clue in clues if clue.kind is not Evidence.NODE_ADDRESS] or clues
    left = _common(used)
    # A node's address narrows what else is known. Against it, it counts for nothing: gateways have addresses too.
    if len(left) > 1 and (narrowed := _common(clues)):
        used, left = clues, narrowed
    if len(left) != 1:
        return _unclear(member, used, left)
    (pod,) = left
    link = Link(member.identity, pod, tuple(dict.fromkeys(clue.kind for clue in used)))
    return _translation_problem(link) if link.by == (Evidence.NODE_ADDRESS,) and not pod.uses_host_network else link


def _clues(member: MemberClues, pods: Sequence[Pod], label: str | None) -> list[_Clue]:
    clues = [_by_name(name, pods) for name in member.names]
    clues += [_by_address(address, pods) for address in member.addresses]
    if label is not None:
        labelled = frozenset(pod for pod in pods if pod.label(label) in member.names)
        clues.insert(0, _Clue(Evidence.LABEL, f"label {label}", labelled))
    return [clue for clue in clues if clue.pods]


def _by_name(name: str, pods: Sequence[Pod]) -> _Clue:
    exact = frozenset(pod for pod in pods if pod.name == name)
    longer = frozenset(pod for pod in pods if pod.workload is not None and _goes_on(name, pod.name))
    return _Clue(Evidence.NAME, f"name {name}", exact or longer)


def _by_address(address: str, pods: Sequence[Pod]) -> _Clue:
    text = f"address {address}"
    own = frozenset(pod for pod in pods if address in pod.addresses and not pod.uses_host_network)
    if own:
        return _Clue(Evidence.ADDRESS, text, own)
    on_node = frozenset(pod for pod in pods if address in (*pod.addresses, pod.host_address))
    return _Clue(Evidence.NODE_ADDRESS, text, on_node)


def _common(clues: Sequence[_Clue]) -> frozenset[Pod]:
    return frozenset.intersection(*(clue.pods for clue in clues)) if clues else frozenset()


def _goes_on(name: str, start: str) -> bool:
    return name.startswith(start) and not name[len(start) : len(start) + 1].isalnum() and name != start


def _uneven(links: Sequence[Link]) -> list[str]:
    members: defaultdict[Pod, list[str]] = defaultdict(list)
    for link in links:
        members[link.pod].append(link.member)
    most = max(map(len, members.values()), default=0)
    return [
        f"pod {pod.name} runs {len(of_pod)} of the {most} members that another pod runs, {', '.join(of_pod)}: look for "
        "a listener that has ended or has not yet joined"
        for pod, of_pod in members.items()
        if len(of_pod) < most
    ]


def _idle(pod: Pod) -> str:
    state = f"{pod.phase}, {'ready' if pod.is_ready else 'not ready'}"
    at = f" at {', '.join(pod.addresses)}" if pod.addresses else ""
    return f"pod {pod.name} ({state}){at} runs no member of the group that could be recognised"


def _describe_clues(member: MemberClues) -> str:
    clues = [f"address {address}" for address in member.addresses] + [f"name {name}" for name in member.names]
    return f"it has {', '.join(clues)}" if clues else "it shows neither address nor name"


def _unclear(member: MemberClues, clues: Sequence[_Clue], left: frozenset[Pod]) -> str:
    if left:
        evidence = " and ".join(f"its {clue.text}" for clue in clues)
        return f"member {member.identity} could be any of the pods {_names(left)}: {evidence} shows no more; {CURE}"
    evidence = "; ".join(f"its {clue.text} says {_names(clue.pods)}" for clue in clues)
    return f"member {member.identity} contradicts itself: {evidence}; {CURE}"


def _translation_problem(link: Link) -> str:
    return (
        f"member {link.member} comes from address {link.pod.host_address} of node {link.pod.node}, as all pods there "
        f"do behind address translation: that names no pod; {CURE}"
    )


def _names(pods: Iterable[Pod]) -> str:
    names = sorted(pod.name for pod in pods)
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
