"""Codes of refusals: what differs between a plan and the cluster, one word each."""

from collections.abc import Iterator
from enum import StrEnum

from planner.execution.progress import Refusal


class Code(StrEnum):
    """What differs. One word each, to count by and to look up in docs/execution.md."""

    WITHDRAWN = "Withdrawn"
    EXPIRED = "Expired"
    OLD_SNAPSHOT = "OldSnapshot"
    DIGEST_DIFFERS = "DigestDiffers"
    POLICY_CHANGED = "PolicyChanged"
    OUTSIDE_POLICY = "OutsidePolicy"
    DEPLOYMENT_MISSING = "DeploymentMissing"
    NAME_TAKEN = "NameTaken"
    REPLICAS_CHANGED = "ReplicasChanged"
    ROLLOUT_PAUSED = "RolloutPaused"
    REVISION_CHANGED = "RevisionChanged"
    AUTOSCALED = "Autoscaled"
    CLAIMED = "Claimed"
    OTHER_PLAN = "OtherPlan"
    SERVES_OTHER_GROUP = "ServesOtherGroup"
    MEMBERS_CHANGED = "MembersChanged"
    QUEUES_CHANGED = "QueuesChanged"
    OWNERS_CHANGED = "OwnersChanged"
    STRATEGY_CHANGED = "StrategyChanged"
    NOT_SETTLED = "NotSettled"
    VICTIM_GONE = "VictimGone"
    VICTIM_MOVED = "VictimMoved"
    GROUP_IN_USE = "GroupInUse"


Differences = Iterator[Refusal | str]
"""A refusal, or a sentence on what is unknown."""
