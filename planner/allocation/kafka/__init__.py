"""Kafka's assignors, exactly as clients 3.7.2 and later and servers 4.0.2 and later compute them.

``assign`` answers a ``Request`` by names. The planner's inner loops call the assignors themselves: ``equal_group`` or
``mixed_group`` in, ``Outcome.owners`` out, one member number a partition.
"""

from planner.allocation.kafka.assignment import ASSIGNORS, Answer, Assignor, assign, find_assignor, own_assignor
from planner.allocation.kafka.group import Claims, Group, Outcome, Racks, Topics, equal_group, mixed_group
from planner.allocation.kafka.names import Member
from planner.allocation.kafka.own import OwnAssignor
from planner.allocation.kafka.request import Request

__all__ = [
    "ASSIGNORS",
    "Answer",
    "Assignor",
    "Claims",
    "Group",
    "Member",
    "Outcome",
    "OwnAssignor",
    "Racks",
    "Request",
    "Topics",
    "assign",
    "equal_group",
    "find_assignor",
    "mixed_group",
    "own_assignor",
]
