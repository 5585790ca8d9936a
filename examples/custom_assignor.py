"""Your own Kafka assignor, previewed by every command. This file runs, is tested, and is the manual.

An assignor is one class: a ``name``, as your Java class's ``name()`` spells it (the coordinator reports the group's by
that name), and one method::

    assign(members, partitions, racks) -> {member id: its partitions}

which is what ``ConsumerPartitionAssignor#assign`` does in your group's leader: it is asked once for the whole group.
``members`` come sorted by id; each has ``member_id``, ``topics``, ``instance_id``, ``rack``, ``owned`` and
``generation``. ``partitions`` maps each subscribed topic to its number of partitions, topics sorted by name; ``racks``
maps a topic to the racks of each partition's replicas, where they are known. Partitions are pairs, ``("orders", 0)``.
Compute from the arguments alone: no clock, no randomness, no memory.

Fields of the class are its options, with their defaults. Use it by path wherever an assignor is named::

    planner allocate request.json        with "strategy": "examples/custom_assignor.py", "options": {"weights": {...}}
    planner simulate snap.json --strategy examples/custom_assignor.py

A file with several assignors is named with the class: ``assignors.py:ByWeight``. A package installs an assignor under a
name of its own with the entry point group ``consumer_planner.assignors``. Naming a file runs it: documents (requests,
policies, snapshots, plans) name one only where ``PLANNER_STRATEGY_FILES`` lists it.

A policy names it as ``strategy: examples/custom_assignor.py``; the group must run the assignor of that name.

The protocol is eager, as ``ConsumerPartitionAssignor`` has it by default: members give everything back before they
join, so ``owned`` is empty. Say ``is_sticky: bool = True`` if your members send along what they owned (user data, as
``StickyAssignor`` does), and ``is_cooperative: bool = True`` if your ``supportedProtocols()`` names COOPERATIVE:
``planner allocate`` then answers one round, and other counts cannot be simulated.

Each partition goes to exactly one member, which subscribes to its topic. Everything else is refused in one sentence: a
call that raises, a partition forgotten, given twice or to a stranger, and an answer that differs the second time.

The assignor here gives each partition to the member with the least load for its weight, so that larger hosts own more.

    python examples/custom_assignor.py   compares it with range when a fourth member joins
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.allocation.kafka import Member, Request, assign
from planner.allocation.plugins import allow


@dataclass(frozen=True)
class ByWeight:
    """Least loaded first; ``weights`` maps the beginning of a member id to its weight, 1 when none fits."""

    weights: Mapping[str, float] = field(default_factory=dict)
    name: str = "by-weight"

    def assign(
        self, members: Sequence[Member], partitions: Mapping[str, int], racks: object
    ) -> Mapping[str, Iterable[tuple[str, int]]]:
        """Return the partitions of each member; racks do not count here."""
        del racks
        given: dict[str, list[tuple[str, int]]] = {member.member_id: [] for member in members}
        for topic, count in partitions.items():
            subscribed = [member.member_id for member in members if topic in member.topics]
            for number in range(count):
                least = min(subscribed, key=lambda member: ((len(given[member]) + 1) / self._weight(member), member))
                given[least].append((topic, number))
        return given

    def _weight(self, member: str) -> float:
        return next((weight for start, weight in self.weights.items() if member.startswith(start)), 1.0)


def main() -> None:
    """Print what a join moves under this assignor and under range."""
    allow(__file__)
    topics = {"orders": 12, "returns": 6}
    for name in (__file__, "range"):
        old, new = (_owners(name, topics, count) for count in (3, 4))
        moved = sum(owner != new[partition] for partition, owner in old.items())
        loads = " ".join(str(list(new.values()).count(member)) for member in sorted(set(new.values())))
        label = "range" if name == "range" else ByWeight.name
        sys.stdout.write(f"{label}: {moved} of {len(old)} partitions move, then {loads} each\n")


def _owners(name: str, topics: Mapping[str, int], count: int) -> dict[tuple[str, int], str]:
    members = tuple(Member(f"host-{number}-id", frozenset(topics)) for number in range(1, count + 1))
    answer = assign(Request(name, topics, members))["assignments"]
    return {partition: member for member, owned in answer.items() for partition in owned}


if __name__ == "__main__":
    main()
