"""``pods_by_clues``: which members run in one pod, by what they show of themselves, where no pods can be read."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.workload.clues import MemberClues

_POD: Final = re.compile(
    r"(?P<pod>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?-[bcdf-hj-np-tv-z24-9]{8,10}-[bcdf-hj-np-tv-z24-9]{5})\b"
)
"""A pod of a Deployment: its name, the template's hash and five signs, in its alphabet (``SafeEncodeString``)."""

_NUMBERED: Final = re.compile(r"(?P<stem>.*[-_.])(?P<number>[0-9]+)(?P<rest>-consumer|-restore-consumer)?")
"""A client of a process that numbers them: ``consumer-g-2``, Spring's ``orders-1``, ``…-StreamThread-3-consumer``."""

_PROCESS: Final = re.compile(r"(?P<pid>[0-9]+)#[0-9]+")
"""A RocketMQ client's instance name where nobody sets one: process id and start (``ClientConfig``, 4.9 and later)."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """Members that may be of one pod, and what they share in words: an address, or a pod's name."""

    by: str
    members: tuple[str, ...]
    is_pod: bool = False


def pods_by_clues(members: Sequence[MemberClues]) -> tuple[Sharing, ...]:
    """Return the members by the pod that they name or, without one, by the address that they share.

    Client ids that begin with a pod's name identify the pod (``is_pod``), whatever the address. An address shows only
    that its members may be of one pod: it can be a node's, a gateway's or a host's. Members on loopback run on the
    broker's own host, where each process is one of its own: they share something only where they show one process.
    """
    shared: defaultdict[tuple[str, bool], list[str]] = defaultdict(list)
    for member in members:
        shared[_location(member, members)].append(member.identity)
    return tuple(Sharing(by, tuple(sorted(identities)), is_pod) for (by, is_pod), identities in sorted(shared.items()))


def _location(member: MemberClues, members: Sequence[MemberClues]) -> tuple[str, bool]:
    for name in member.names:
        if (pod := _POD.match(name)) is not None:
            return f"pod {pod['pod']}", True
    address = next(iter(member.addresses), None)
    if address is None or (_is_loopback(address) and not _is_numbered_with_another(member, members)):
        return f"member {member.identity}", False
    return f"address {address}", False


def _is_loopback(address: str) -> bool:
    """Only a host's usual one: meshes show others of the range for members on any host."""
    return address in ("127.0.0.1", "::1")


def _is_numbered_with_another(member: MemberClues, members: Sequence[MemberClues]) -> bool:
    """Return whether another member on the same address shows the same process: by process id, or by its numbering."""
    others = [other for other in members if other is not member and other.addresses[:1] == member.addresses[:1]]
    return any(_is_same_process(mine, theirs) for mine in member.names for other in others for theirs in other.names)


def _is_same_process(name: str, other: str) -> bool:
    mine, theirs = _PROCESS.fullmatch(name), _PROCESS.fullmatch(other)
    if mine and theirs:
        return mine["pid"] == theirs["pid"]
    first, second = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(other)
    if first is None or second is None or first["number"] == second["number"]:
        return False
    return (first["stem"], first["rest"]) == (second["stem"], second["rest"])
