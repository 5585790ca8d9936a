"""Which partitions have moved in this run, so that two moves of a topic never go opposite ways.

``AbstractStickyAssignor.PartitionMovements``, clients 2.4 and later.
"""

from planner.allocation.kafka.group import Topics
from planner.allocation.kafka.java_hash import HashedSet

Pair = tuple[int, int]


class Movements:
    """For each moved partition where it came from first and where it is now."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._topic_of = topics.topic_of.tolist()
        self._pairs: dict[int, Pair] = {}
        self._moved: dict[tuple[int, Pair], HashedSet] = {}

    def instead(self, partition: int, owner: int, receiver: int) -> int:
        """Return what to move so that an earlier opposite move of the topic is undone; else the partition itself."""
        source, _ = self._pairs.get(partition, (owner, owner))
        opposite = self._moved.get((self._topic_of[partition], (receiver, source)))
        return partition if opposite is None else opposite.first()

    def record(self, partition: int, owner: int, receiver: int) -> None:
        """Note that the partition moved; one that came back to where it was first has not moved."""
        source = owner
        if partition in self._pairs:
            source = self._forget(partition)
            if source == receiver:
                return
        pair = (source, receiver)
        self._pairs[partition] = pair
        moved = self._moved.setdefault((self._topic_of[partition], pair), HashedSet())
        moved.add(partition, self._topics.partition_hash(partition))

    def _forget(self, partition: int) -> int:
        pair = self._pairs.pop(partition)
        key = (self._topic_of[partition], pair)
        self._moved[key].remove(partition)
        if not self._moved[key]:
            del self._moved[key]
        return pair[0]
