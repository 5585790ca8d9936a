"""A group as the engine sees it: one sample from its brokers, joined to the pods that were just seen."""

from dataclasses import replace
from datetime import datetime
from typing import Protocol

from planner import pipeline
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.execution.group_look import look_at_group
from planner.execution.look import GroupLook
from planner.model.deployments import Deployment
from planner.sources.live import watch


class Groups(Protocol):
    """Where looks at groups come from."""

    def look(
        self, policy: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupLook:
        """Return what the group is at ``at``, which is now. Raises ``PlannerError`` for one that cannot be read."""


class LiveGroups:
    """Groups by their brokers, as the policy says how to reach them."""

    def look(
        self, policy: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupLook:
        """Return what the group's brokers say; the policy's own group, or another one on the same brokers.

        ``lag_seconds`` stays unknown: brokers do not tell how long the oldest message has waited.
        """
        if policy is None:
            raise BadInputError(f"how to reach the brokers of group {group} stands in its policy, which was not read")
        wanted = _for_group(policy, group)
        sample = next(iter(watch(wanted, 0)))
        # The server's time, by which all else goes: this host's clock may be another.
        taken = replace(sample, at=at, deployment=deployment)
        return look_at_group(taken, pipeline.snapshot_from(taken, (), wanted, at))


def _for_group(policy: ConsumerScalingPolicy, group: str) -> ConsumerScalingPolicy:
    """Return the policy for a group; its Deployment is not read again, as the executor has just done so."""
    source = policy.spec.source.model_copy(update={"group": group})
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"source": source, "kubernetes": None})})
