"""``known_newcomers``: the ids of members that do not run yet, where a StatefulSet's pod names make them known."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from planner.model.snapshot import GroupSnapshot, MemberPod

_POD = "\0"
"""Stands for the pod's name in the pattern of an id."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A member to come. ``client`` is a RocketMQ client id, or how a Kafka member id begins; ``instance`` is static."""

    client: str
    instance: str | None = None


def known_newcomers(snapshot: GroupSnapshot, count: int) -> tuple[Newcomer, ...] | None:
    """Return the members that ``count`` pods run beyond the present ones, ``None`` where their ids are not known.

    A StatefulSet's next pods have the next numbers. Their members' ids follow where every present id is its pod's name
    in one and the same pattern: ``orders-0@orders-0``, or the group instance id ``orders-0``. An id with an address, as
    RocketMQ clients make them by default, does not. Of a Kafka member without instance id the coordinator draws the
    rest of its id, which decides its place only among equal beginnings.
    """
    deployment = snapshot.deployment
    if deployment is None or deployment.ordinals is None or count <= snapshot.count:
        return None
    patterns = _patterns(snapshot)
    if patterns is None:
        return None
    names = deployment.pod_names(count, snapshot.count)
    return tuple(
        Newcomer(client.replace(_POD, name), instance and instance.replace(_POD, name))
        for name in names
        for client, instance in patterns
    )


def known_links(snapshot: GroupSnapshot, count: int) -> tuple[MemberPod, ...]:
    """Return which pod each of the ``known_newcomers`` runs in; empty where they are not known."""
    known = known_newcomers(snapshot, count)
    if not known or snapshot.deployment is None:
        return ()
    names = snapshot.deployment.pod_names(count)[snapshot.count :]
    per_pod = len(known) // len(names)
    return tuple(MemberPod(new.client, names[number // per_pod]) for number, new in enumerate(known))


def known_to_stay(snapshot: GroupSnapshot, count: int) -> tuple[str, ...] | None:
    """Return the members that are left at ``count`` pods, ``None`` where that is not known: a StatefulSet's first."""
    deployment = snapshot.deployment
    if deployment is None or deployment.ordinals is None or not 0 < count < snapshot.count:
        return None
    pods = {link.client: link.pod for link in snapshot.pods}
    if set(pods) != set(snapshot.clients) or set(pods.values()) != set(deployment.pod_names(snapshot.count)):
        return None
    left = frozenset(deployment.pod_names(count))
    return tuple(client for client in snapshot.clients if pods[client] in left)


def _patterns(snapshot: GroupSnapshot) -> tuple[tuple[str, str | None], ...] | None:
    """Return the ids of one pod's members with the pod's name left open, ``None`` unless all pods have the same."""
    # Clients of a RocketMQ group have no entry in ``members``: their ids are all that is known of them.
    ids: Mapping[str, tuple[str, str | None]] = {
        member.member_id: (f"{member.instance_id or member.client_id}-", member.instance_id)
        for member in snapshot.members
    } or {client: (client, None) for client in snapshot.clients}
    by_pod: defaultdict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for link in snapshot.pods:
        client, instance = ids.get(link.client, ("", None))
        if link.pod not in client:
            return None
        by_pod[link.pod].append((client.replace(link.pod, _POD), instance and instance.replace(link.pod, _POD)))
    of_pods = {tuple(sorted(patterns, key=str)) for patterns in by_pod.values()}
    is_whole = len(snapshot.pods) == len(snapshot.clients) and len(by_pod) == snapshot.count
    return next(iter(of_pods)) if is_whole and len(of_pods) == 1 else None
