"""Ids of RocketMQ clients that do not run yet, drawn in the form in which the running clients have theirs.

A client id is ``clientIP@instanceName``, with the unit's name behind it where one is set
(``ClientConfig#buildMQClientId``, 4.9.4 to 5.5.0). The instance name is ``pid#nanoTime`` unless the application sets
one (``ClientConfig#changeInstanceNameToPID``, 4.9.0). A new pod is made like a present one that is picked at random:
its address lies in that pod's /24 network (the usual share of a node) or in the stated pod CIDR, and each of its
clients has a name of the same form. Names of a StatefulSet's pods are known: whoever knows the ids passes them instead.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network

import numpy as np

from planner.model.snapshot import GroupSnapshot
from planner.simulation.draws import Names, seed_of_snapshot

DRAWS = 200
"""How many sets of possible ids each count is simulated for."""

_PID_AND_TIME = re.compile(r"(\d{1,9})#(\d{1,19})")
_ATTEMPTS = 50
_IPV4 = re.compile(r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.)\d{1,3}")


@dataclass(frozen=True, slots=True)
class NewClient:
    """One client of a new pod: its drawn id, and the present client that it is made like."""

    id: str
    like: str


Draw = tuple[NewClient, ...]
"""The new clients of one possible future, pod after pod."""


@dataclass(frozen=True, slots=True)
class ClientId:
    """The parts of a client id; ``instance`` is ``None`` without an ``@``, ``rest`` is unit name and the like."""

    host: str
    instance: str | None
    rest: str

    @classmethod
    def parse(cls, client: str) -> "ClientId":
        """Return the parts of ``client``."""
        host, separator, behind = client.partition("@")
        instance, second, rest = behind.partition("@")
        return cls(host, instance if separator else None, second + rest)

    def spelled_with(self, host: str, instance: str | None) -> str:
        """Return the id with another host and instance name."""
        return host if instance is None else f"{host}@{instance}{self.rest}"


def draw_clients(snapshot: GroupSnapshot, newcomers: int, draws: int = DRAWS) -> tuple[Draw, ...]:
    """Return ``draws`` possible sets of so many new clients; each starts with those of a smaller number of them.

    Seeded by what the snapshot says of the group, so that the answer is the same on every machine. No drawn id is that
    of a present client or occurs twice in one set.
    """
    pods = present_pods(snapshot)
    namer = _Namer(pods, snapshot.new_pods.pod_cidr)
    seed = seed_of_snapshot(snapshot)
    return tuple(
        _draw(namer, snapshot.clients, newcomers, np.random.default_rng((seed, number))) for number in range(draws)
    )


def present_pods(snapshot: GroupSnapshot) -> tuple[tuple[str, ...], ...]:
    """Return the present clients pod by pod: by the pods where these are known, else by the members of each."""
    pod_of = {link.client: link.pod for link in snapshot.pods}
    if snapshot.clients and all(client in pod_of for client in snapshot.clients):
        by_pod: dict[str, list[str]] = {}
        for client in snapshot.clients:
            by_pod.setdefault(pod_of[client], []).append(client)
        return tuple(tuple(clients) for clients in by_pod.values())
    size, clients = snapshot.members_per_pod or 1, snapshot.clients
    return tuple(clients[first : first + size] for first in range(0, len(clients), size))


def _draw(namer: "_Namer", present: Sequence[str], newcomers: int, random: np.random.Generator) -> Draw:
    taken = set(present)
    drawn: list[NewClient] = []
    while len(drawn) < newcomers:
        pod = _new_pod(namer, taken, random)
        taken |= {client.id for client in pod}
        drawn += pod
    return tuple(drawn[:newcomers])


def _new_pod(namer: "_Namer", taken: set[str], random: np.random.Generator) -> list[NewClient]:
    """Return the clients of one pod; numbered where its ids are taken time and again: two processes have two ids."""
    for _ in range(_ATTEMPTS):
        pod = list(namer.pod(random))
        ids = {client.id for client in pod}
        if len(ids) == len(pod) and not ids & taken:
            return pod
    return [NewClient(f"{client.id}-{len(taken) + number}", client.like) for number, client in enumerate(pod)]


class _Namer:
    """Makes the ids of new pods out of those of present ones."""

    def __init__(self, pods: Sequence[Sequence[str]], pod_cidr: str | None) -> None:
        self._pods = [[ClientId.parse(client) for client in pod] for pod in pods]
        self._ids = [list(pod) for pod in pods]
        every = [client for pod in self._pods for client in pod]
        self._hosts = sorted({client.host for client in every})
        self._host_names = Names(self._hosts)
        self._network = None if pod_cidr is None else ip_network(pod_cidr)
        self._size = 0 if self._network is None else min(self._network.num_addresses, 2**62)
        made = [match for client in every if (match := _PID_AND_TIME.fullmatch(client.instance or ""))]
        self._pids = sorted({int(match[1]) for match in made})
        self._nanos = sorted({int(match[2]) for match in made})
        names = [client.instance or "" for client in every if client.instance is not None]
        self._names = Names([name for name in names if not _PID_AND_TIME.fullmatch(name)])
        named_by_pod = [{client.instance for client in pod} for pod in self._pods]
        self._are_alike = all(names == named_by_pod[0] for names in named_by_pod)

    def pod(self, random: np.random.Generator) -> Iterator[NewClient]:
        """Yield the clients of one new pod."""
        chosen = int(random.integers(len(self._pods)))
        host = self._host(self._pods[chosen][0].host, random)
        pid = self._pid(random)
        for client, like in zip(self._pods[chosen], self._ids[chosen], strict=True):
            yield NewClient(client.spelled_with(host, self._instance(client.instance, pid, random)), like)

    def _host(self, like: str, random: np.random.Generator) -> str:
        if self._network is not None:
            return str(self._network[int(random.integers(1, self._size - 1))] if self._size > 2 else self._network[0])
        if len(self._hosts) == 1 and len(self._pods) > 1:
            return like  # all pods on one address: host networking, or one machine
        if (address := _IPV4.fullmatch(like)) is None:
            return self._host_names.draw(random)
        return f"{address[1]}{int(random.integers(1, 255))}"

    def _pid(self, random: np.random.Generator) -> int:
        """Return a process id: the present ones' where all have one, as containers do, else one up to twice theirs."""
        if len(self._pids) < 2:
            return self._pids[0] if self._pids else 1
        return int(random.integers(2, 2 * self._pids[-1]))

    def _instance(self, like: str | None, pid: int, random: np.random.Generator) -> str | None:
        if like is None:
            return None
        if _PID_AND_TIME.fullmatch(like):
            # A node's uptime when the process starts: later than the present ones', or another node's.
            return f"{pid}#{int(random.integers(self._nanos[0] // 2, 2 * self._nanos[-1] + 1))}"
        return like if self._are_alike else self._names.draw(random)


def why_names_decide(snapshot: GroupSnapshot) -> str | None:
    """Return why nobody knows what the application will name its next client, ``None`` where the form is known.

    Strategies that go by the instance name need more than a form: names that differ must be numbered or made.
    """
    parsed = [ClientId.parse(client) for client in snapshot.clients]
    names = Names(client.instance or client.host for client in parsed)
    if all(_PID_AND_TIME.fullmatch(name) for name in names.names):
        return None
    if len(names.names) == 1 or names.series is not None or names.is_generated:
        return None
    return f"the applications name their clients {', '.join(names.names[:5])}, and nobody knows what a new one is named"
