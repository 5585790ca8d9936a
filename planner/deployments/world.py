"""``ClusterWorld``: what there is in one namespace, and the effects on it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from planner.deployments.api import RolloutApi
from planner.deployments.bodies import claim_of, revision_of, rival_of
from planner.deployments.effects import perform
from planner.deployments.groups import Groups
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import PlannerError
from planner.execution.course import deployments, groups
from planner.execution.effects import Effect
from planner.execution.group_drift import moved_queues
from planner.execution.look import DeploymentLook, GroupLook, Look, Rival
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.sources.kubernetes import AnswerError, complete_workload
from planner.verification.seen import Between, Seen

log = logging.getLogger(__name__)

_T = TypeVar("_T")
Policies = Callable[[str], ConsumerScalingPolicy | None]
"""The policy of that name as it is now, ``None`` when there is none."""


@dataclass
class ClusterWorld:
    """Deployments, pods, groups and other plans of one namespace. ``last`` is the last look, for those who show it."""

    api: RolloutApi
    namespace: str
    groups: Groups
    policies: Policies
    last: Look | None = field(default=None, init=False)

    def look(self, stored: StoredPlan, now: datetime) -> Look:
        """Return what is there now; a part that cannot be read is unknown, and ``problems`` says why."""
        problems: list[str] = []
        policy = _tried(lambda: self.policies(stored.plan.policy), problems)
        if policy is None and not problems and stored.policy_digest is not None:
            problems.append(f"there is no policy {stored.plan.policy} in namespace {self.namespace}")
        found = [_tried(partial(self._deployment, name, now), problems) for name in deployments(stored.plan)]
        seen = {one.name: one for one in found if one is not None}
        own = seen.get(stored.plan.deployment)
        facts = own.facts if own else None
        groups_seen = [
            _tried(partial(self.groups.look, policy, name, facts, now), problems) for name in groups(stored.plan)
        ]
        self.last = Look(
            at=now,
            deployments=tuple(seen.values()),
            groups=tuple(one for one in groups_seen if one is not None),
            rivals=_tried(lambda: self._rivals(stored), problems),
            policy_digest=policy.digest if policy else None,
            seen=_seen(stored, groups_seen[0]),
            problems=tuple(problems),
        )
        return self.last

    def perform(self, effect: Effect) -> None:
        """Make it so, or raise ``ConflictError`` (nothing done) or ``OutOfReachError`` (perhaps done, perhaps not)."""
        log.info("effect", extra={"effect": type(effect).__name__, "namespace": self.namespace})
        perform(self.api, self.namespace, effect)

    def _deployment(self, name: str, now: datetime) -> DeploymentLook:
        found = self.api.find_deployment(self.namespace, name)
        if found is None:
            return DeploymentLook(name, None)
        facts = complete_workload(self.api, f"{self.namespace}/{name}", found, now)
        return DeploymentLook(name, facts, claim_of(found), revision_of(found))

    def _rivals(self, stored: StoredPlan) -> tuple[Rival, ...]:
        others = [one for one in self.api.plans(self.namespace) if one["metadata"]["uid"] != stored.uid]
        try:
            return tuple(rival for one in others if (rival := rival_of(one)) is not None)
        except (KeyError, TypeError, ValueError) as error:
            raise AnswerError(f"another plan in namespace {self.namespace} cannot be read: {error}") from error


def _tried(read: Callable[[], _T], problems: list[str]) -> _T | None:
    try:
        return read()
    except PlannerError as error:
        problems.append(str(error))
        return None


def _seen(stored: StoredPlan, group: GroupLook | None) -> Seen | None:
    """Return what one look at the end shows of the change: which queues have moved. The rest takes a watch."""
    if stored.status.phase is not Phase.VERIFYING or group is None or not group.owners or group.misplaced != 0:
        return None
    if any(len(owners) != 1 for _, owners in group.owners):
        return None
    moved = moved_queues(stored.plan.forecast.owners_before, group.owners)
    return Seen(moved_queues=Between.exactly(moved), is_complete=True)
