"""Racks (KIP-881, clients 3.5 and later): when they count, and whose replicas lie where."""

from collections.abc import Collection, Iterable, Sequence, Set

from planner.allocation.kafka.group import NO_RACK, Group, Racks


def racks_matter(homes: Set[int], replicas: Iterable[Collection[int]]) -> bool:
    """Return whether matching racks can gain anything (``AbstractPartitionAssignor#useRackAwareAssignment``).

    ``homes`` are the members' racks, ``replicas`` the racks of each partition. They must meet somewhere, and not
    every partition may have replicas in all racks.
    """
    replicas = [set(racks) for racks in replicas]
    everywhere = set().union(*replicas)
    return bool(homes & everywhere) and any(racks != everywhere for racks in replicas)


class RackTable:
    """The racks of a group in which they count."""

    def __init__(self, racks: Racks) -> None:
        self.of_member = racks.of_member
        self.of_partition = [frozenset(replicas) for replicas in racks.of_partition]
        self._dwellers: dict[int, int] = {}
        for home in racks.of_member:
            if home != NO_RACK:
                self._dwellers[home] = self._dwellers.get(home, 0) + 1

    def mismatch(self, member: int, partition: int) -> bool:
        """Return whether the member has a rack and the partition has no replica there."""
        home = self.of_member[member]
        return home != NO_RACK and home not in self.of_partition[partition]

    def neighbours(self, partition: int) -> int:
        """Return how many members live in a replica's rack, summed over the racks."""
        return sum(self._dwellers.get(rack, 0) for rack in self.of_partition[partition])

    def by_neighbours(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions with the fewest near members first, equal ones in place."""
        return sorted(partitions, key=self.neighbours)


def rack_table(group: Group) -> RackTable | None:
    """Return the racks for the sticky assignors, ``None`` where they do not count over the group as a whole."""
    if group.racks is None:
        return None
    homes = set(group.racks.of_member) - {NO_RACK}
    return RackTable(group.racks) if racks_matter(homes, group.racks.of_partition) else None
