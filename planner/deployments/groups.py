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
    """Where looks at groups come from."""

    def look(
        self, policy: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupObservation:
        """Return what the group is at ``at``, which is now. Raises ``PlannerError`` for one that cannot be read."""


class LiveGroups:
    """Groups by their brokers, as the policy says how to reach them.

    Connections are kept from look to look, as an executor looks every second; a look that fails ends those of its
    group, and the next one opens them anew. They end with this object, or with ``close``.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Door] = {}
        self.close = weakref.finalize(self, _close_all, self._open)

    def look(
        self, policy: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupObservation:
        """Return what the group's brokers say; the policy's own group, or another one on the same brokers.

        ``at`` is the server's time, by which all else goes: this host's clock may be another. Another group than the
        policy's own has no members where its brokers do not know it: a migration's new group is none before it starts.
        """
        if policy is None:
            raise BadInputError(f"how to reach the brokers of group {group} stands in its policy, which was not read")
        wanted = _for_group(policy, group)
        try:
            taken = replace(self._sample(wanted, at), deployment=deployment)
        except UnknownNameError:
            if group == policy.spec.source.group:
                raise
            return GroupObservation(group, at, (), None, None, None, None, is_rebalancing=False)
        return observe_group(taken, _snapshot(taken, wanted))

    def _sample(self, wanted: ConsumerScalingPolicy, at: datetime) -> GroupSample:
        place = wanted.spec.source.model_dump_json()
        try:
            if place not in self._open:
                self._open[place] = _Door(wanted)
            return self._open[place].sample(at)
        except PlannerError:
            if (broken := self._open.pop(place, None)) is not None:
                broken.close()
            raise


class _Door:
    """The open connections to one group's brokers."""

    def __init__(self, policy: ConsumerScalingPolicy) -> None:
        opened = ExitStack()
        self.sample: Callable[[datetime], GroupSample] = opened.enter_context(open_group(policy))
        self.close = opened.close


def _close_all(doors: dict[str, _Door]) -> None:
    while doors:
        doors.popitem()[1].close()


def _snapshot(taken: GroupSample, wanted: ConsumerScalingPolicy) -> GroupSnapshot:
    """Return the snapshot of one sample. Where members tell another strategy than the policy, theirs is taken.

    The policy's is the one from before while a plan changes it, and the engine holds either against the plan.
    """
    found = pipeline.snapshot_from(taken, (), wanted, taken.at)
    if found.strategy is not None or wanted.spec.strategy is None:
        return found
    unstated = wanted.spec.model_copy(update={"strategy": None, "strategy_options": {}})
    return pipeline.snapshot_from(taken, (), wanted.model_copy(update={"spec": unstated}), taken.at)


def _for_group(policy: ConsumerScalingPolicy, group: str) -> ConsumerScalingPolicy:
    """Return the policy for a group; its Deployment is not read again, as the executor has just done so."""
    source = policy.spec.source.model_copy(update={"group": group})
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"source": source, "kubernetes": None})})
