"""What more threads of RocketMQ's members would do, by their own figures."""

from collections import Counter

from planner.diagnosis.group_evidence import GroupEvidence
from planner.simulation.rocketmq.threads import threads_instead
from planner.snapshot.setups import client_setups


def threads_instead_of_members(evidence: GroupEvidence, factor: float) -> str:
    """Return in a sentence what more threads would do for members that have to do ``factor`` times what they do."""
    owners = (names for queue, names in evidence.owners.items() if not queue.is_retry)
    owned = Counter(names[0] for names in owners if len(names) == 1)
    return threads_instead("Instead of more members", client_setups(evidence.members), owned, factor)
