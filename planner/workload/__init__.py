"""Which pod is which member of a consumer group, and which Deployment serves the group. Pure; nothing is guessed."""

from planner.workload.clues import MemberClues, clues_of
from planner.workload.join import Evidence, Join, Link, join_members
from planner.workload.label import member_label
from planner.workload.pods_by_clues import Sharing, pods_by_clues
from planner.workload.serving import Serving, check_named, serving

__all__ = [
    "Evidence",
    "Join",
    "Link",
    "MemberClues",
    "Serving",
    "Sharing",
    "check_named",
    "clues_of",
    "join_members",
    "member_label",
    "pods_by_clues",
    "serving",
]
