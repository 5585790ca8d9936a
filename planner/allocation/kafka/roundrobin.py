"""``RoundRobinAssignor`` of the clients (2.4 and later)."""

import numpy as np

from planner.allocation.kafka.group import Group, IntArray, Outcome, nobody


def roundrobin(group: Group) -> Outcome:
    """Return all partitions dealt out one by one on a ring of all members, those not subscribed being passed over.

    3 partitions each of A and B over 2 members: A0 A2 B1 | A1 B0 B2.
    """
    count = group.topics.partition_count
    if group.member_count == 0 or count == 0:
        return Outcome(nobody(count))
    if all(len(members) == group.member_count for members in group.subscribers):
        return Outcome(group.ring[np.arange(count) % group.member_count])
    return Outcome(_around_gaps(group))


def _around_gaps(group: Group) -> IntArray:
    owners = nobody(group.topics.partition_count)
    positions = np.empty(group.member_count, dtype=np.intp)
    positions[group.ring] = np.arange(group.member_count)
    pointer = 0
    for topic, size in enumerate(group.topics.sizes):
        stops = np.sort(positions[group.subscribers[topic]])
        if len(stops) == 0:
            continue
        first = int(np.searchsorted(stops, pointer))
        dealt = stops[(first + np.arange(size)) % len(stops)]
        owners[group.topics.block(topic)] = group.ring[dealt]
        pointer = int(dealt[-1]) + 1
    return owners
