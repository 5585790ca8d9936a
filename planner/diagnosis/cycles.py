"""How long a queue may stand although its owner works, by what a group's members report."""

from collections.abc import Collection

from planner.diagnosis.group_evidence import GroupEvidence
from planner.history.cycles import pool_cycle_s
from planner.model.membership import Member
from planner.model.queues import Queue


def cycle_s(evidence: GroupEvidence, queue: Queue) -> float:
    """Return how long a queue that is consumed may stand, in seconds: see ``pool_cycle_s``."""
    members = members_with_tuning(evidence, evidence.owners.get(queue, ()))
    return pool_cycle_s(members, evidence.offsets, evidence.owners, queue)


def members_with_tuning(evidence: GroupEvidence, clients: Collection[str]) -> tuple[Member, ...]:
    """Return those of these clients that report how they are set up."""
    return tuple(member for member in evidence.rocketmq_members if member.client_id in clients and member.tuning)
