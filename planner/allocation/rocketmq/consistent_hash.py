"""``AllocateMessageQueueConsistentHash`` and its ring ``ConsistentHashRouter`` (the same in 4.7.1 to 5.5.0)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import Owners, nobody
from planner.model.queues import MessageQueue

DEFAULT_VIRTUAL_NODES = 10

Points = NDArray[np.uint32]
"""Positions on the ring, 0 to 2**32 - 1."""


def ring_points(keys: Iterable[bytes]) -> Points:
    """Return the first four bytes of each key's MD5, big-endian.

    ``127.0.0.1@c1-0`` lies at 1425490763.
    """
    digests = b"".join([md5(key, usedforsecurity=False).digest() for key in keys])
    return np.frombuffer(digests, dtype=">u4")[::4].astype(np.uint32)


def java_bytes(text: str) -> bytes:
    """Return the UTF-8 bytes as Java's ``getBytes`` gives them: half a surrogate pair becomes ``?``."""
    return text.encode("utf-8", "replace")


@lru_cache(maxsize=65_536)
def client_points(client: str, first: int, count: int) -> Points:
    """Return the ring points of a client's virtual nodes ``first`` to ``first + count - 1``; do not write to it."""
    prefix = java_bytes(client)
    return ring_points(b"%s-%d" % (prefix, number) for number in range(first, first + count))


def queue_points(queues: Sequence[MessageQueue]) -> Points:
    """Return the ring point of each queue, the hash of ``MessageQueue#toString``; do not write to it."""
    return _points_of(tuple(queues))


@lru_cache(maxsize=16)
def _points_of(queues: tuple[MessageQueue, ...]) -> Points:
    """Return them; a simulation asks for the same few topics again and again, under thousands of member lists."""
    heads: dict[tuple[str, str], bytes] = {}
    keys = []
    for queue in queues:
        topic_and_broker = (queue.topic, queue.broker)
        head = heads.get(topic_and_broker)
        if head is None:
            text = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId="
            head = heads[topic_and_broker] = java_bytes(text)
        keys.append(b"%s%d]" % (head, queue.queue_id))
    return ring_points(keys)


@dataclass(frozen=True, slots=True, eq=False)
class Ring:
    """The ring: ascending points, and the client index at each."""

    points: Points
    clients: NDArray[np.intp]

    def lookup(self, points: Points) -> Owners:
        """Return the client at the smallest ring point not below each point, the first one after the last."""
        if not len(self.points):
            return nobody(len(points))
        indexes = np.searchsorted(self.points, points, side="left")
        indexes[indexes == len(self.points)] = 0
        return self.clients[indexes]


def build_ring(clients: Sequence[str], virtual_nodes: int) -> Ring:
    """Return the ring of the clients in list order; on equal points the later client replaces the earlier one."""
    if len(set(clients)) != len(clients):
        return _build_ring_with_duplicates(clients, virtual_nodes)
    if not clients or not virtual_nodes:
        return Ring(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.intp))
    points = np.concatenate([client_points(client, 0, virtual_nodes) for client in clients])
    slots = np.repeat(np.arange(len(clients), dtype=np.intp), virtual_nodes)
    order = np.argsort(points, kind="stable")
    points, slots = points[order], slots[order]
    is_last = np.append(points[1:] != points[:-1], True)
    return Ring(points[is_last], slots[is_last])


def _build_ring_with_duplicates(clients: Sequence[str], virtual_nodes: int) -> Ring:
    """Return the ring where a repeated id continues numbering at the count of its nodes **still on the ring**.

    ``ConsistentHashRouter#addNode`` counts entries, so a node that another one replaced is not counted and its
    number is given again. The whole history decides; the nodes are laid one by one.
    """
    ring: dict[int, int] = {}
    first: dict[str, int] = {}
    alive: dict[int, int] = {}
    for index, client in enumerate(clients):
        slot = first.setdefault(client, index)
        start = alive.setdefault(slot, 0)
        for point in client_points(client, start, virtual_nodes).tolist():
            replaced = ring.get(point)
            if replaced is not None:
                alive[replaced] -= 1
            ring[point] = slot
            alive[slot] += 1
    points = np.array(sorted(ring), dtype=np.uint32)
    return Ring(points, np.array([ring[point] for point in points.tolist()], dtype=np.intp))


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """``AllocateMessageQueueConsistentHash``: few queues move, the balance is poor (4:1 on 8 queues is normal).

    ``virtual_nodes`` 0 leaves every queue unowned.
    """

    virtual_nodes: int = DEFAULT_VIRTUAL_NODES
    name: str = "CONSISTENT_HASH"
    is_positional: bool = False

    def owners(self, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Owners:
        """Return the owner's index for each queue."""
        return build_ring(clients, self.virtual_nodes).lookup(queue_points(queues))
