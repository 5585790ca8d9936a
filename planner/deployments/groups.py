"""A group as the engine sees it: one sample from its brokers, joined to the pods that were just seen."""

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from planner import pipeline
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError, PlannerError, UnknownNameError
from planner.execution.group_observation import observe_group
from planner.execution.observation import GroupObservation
from planner.model.deployments import Deployment
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.sources.live import open_group


class Groups(Protocol):
    """Where observations of groups come from."""

    def look(
        self, policy: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupObservation:
        """Return what the group is at ``at``, which is now. Raises ``PlannerError`` for one that cannot be read."""


class LiveGroups:
    """Groups by their brokers, as the policy says how to reach them.

    Connections are kept between observations, as an executor makes one every second; one that fails ends those of
    its group, and the next one opens them anew. They end with this object, or with ``close``.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Connection] = {}
        self.close = weakref.finalize(self, _close_all, self._open)

    def look(
        self, policy: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupObservation:
        """Return what the group's brokers report; the policy's own group, or another one on the same brokers.

        ``at`` is the server's time, by which all else goes: this host's clock may be another. Another group than the
        policy's own has no members where its brokers do not know it: a migration's new group is none before it starts.
        """
        if policy is None:
            raise BadInputError(f"how to reach the brokers of group {group} stands in its policy, which was not read")
        group_policy = _for_group(policy, group)
        try:
            sample = replace(self._sample(group_policy, at), deployment=deployment)
        except UnknownNameError:
            if group == policy.spec.source.group:
                raise
            return GroupObservation(group, at, (), None, None, None, None, is_rebalancing=False)
        return observe_group(sample, _snapshot(sample, group_policy))

    def _sample(self, group_policy: ConsumerScalingPolicy, at: datetime) -> GroupSample:
        source_key = group_policy.spec.source.model_dump_json()
        try:
            if source_key not in self._open:
                self._open[source_key] = _Connection(group_policy)
            return self._open[source_key].sample(at)
        except PlannerError:
            if (broken := self._open.pop(source_key, None)) is not None:
                broken.close()
            raise


class _Connection:
    """The open connections to one group's brokers."""

    def __init__(self, policy: ConsumerScalingPolicy) -> None:
        opened = ExitStack()
        self.sample: Callable[[datetime], GroupSample] = opened.enter_context(open_group(policy))
        self.close = opened.close


def _close_all(connections: dict[str, _Connection]) -> None:
    while connections:
        connections.popitem()[1].close()


def _snapshot(sample: GroupSample, policy: ConsumerScalingPolicy) -> GroupSnapshot:
    """Return the snapshot of one sample. Where members report another strategy than the policy, theirs counts.

    The policy's is the one from before while a plan changes it, and the engine holds either against the plan.
    """
    snapshot = pipeline.snapshot_from(sample, (), policy, sample.at)
    if snapshot.strategy is not None or policy.spec.strategy is None:
        return snapshot
    unstated = policy.spec.model_copy(update={"strategy": None, "strategy_options": {}})
    return pipeline.snapshot_from(sample, (), policy.model_copy(update={"spec": unstated}), sample.at)


def _for_group(policy: ConsumerScalingPolicy, group: str) -> ConsumerScalingPolicy:
    """Return the policy for a group; its Deployment is not read again, as the executor has just done so."""
    source = policy.spec.source.model_copy(update={"group": group})
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"source": source, "kubernetes": None})})
