"""``ClusterState``: what there is in one namespace, and the effects on it."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from planner.deployments.api import RolloutApi
from planner.deployments.bodies import claim_of, rival_of, subjects_of
from planner.deployments.effects import perform
from planner.deployments.groups import Groups
from planner.deployments.offsets.actions import OffsetActions, OffsetsState
from planner.deployments.offsets.installations import installation
from planner.deployments.watches import Watches
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError, PlannerError
from planner.execution.awaited import as_awaited
from planner.execution.effects import Effect, SetOffsets, offsets_to_set
from planner.execution.group_drift import moved_queues
from planner.execution.observation import DeploymentObservation, GroupObservation, Observation, Rival
from planner.execution.phases import Phase
from planner.execution.plan_targets import api_version_of, basis_of, deployments, groups, is_left, kind_of
from planner.execution.ports import ConflictError, StoredPlan
from planner.model.deployments import Deployment, together
from planner.rollout.plan import OtherGroup, RolloutPlan
from planner.rollout.steps import CloneOffsets, ResetOffsets
from planner.sources.kubernetes import AnswerError, complete_workload
from planner.sources.kubernetes.objects import revision_of
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.watch import Watch

log = logging.getLogger(__name__)

_T = TypeVar("_T")
Policies = Callable[[str], ConsumerScalingPolicy | None]
"""The policy of that name as it is now, ``None`` when there is none."""


@dataclass
class ClusterState:
    """Deployments, pods, groups and other plans of one namespace. ``last`` is the last observation, for display."""

    api: RolloutApi
    namespace: str
    groups: Groups
    policies: Policies
    offsets: OffsetActions = field(default_factory=lambda: OffsetActions(installation))
    last: Observation | None = field(default=None, init=False)
    _watches: Watches = field(default_factory=Watches, init=False)

    def observe(self, stored: StoredPlan, now: datetime) -> Observation:
        """Return what is present now; whatever cannot be read is unknown, and ``problems`` has the reason."""
        problems: list[str] = []
        steady_s = time.monotonic()
        policy = _try_read(lambda: self.policies(stored.plan.policy), problems)
        if policy is None and not problems and stored.policy_digest is not None:
            problems.append(f"there is no policy {stored.plan.policy} in namespace {self.namespace}")
        readings = [
            _try_read(partial(self._deployment, stored.plan, name, now), problems) for name in deployments(stored.plan)
        ]
        by_name = {deployment.name: deployment for deployment in readings if deployment is not None}
        facts = _own_deployments(stored.plan, by_name)
        policies = {other.group.group: self._policy_of(other, problems) for other in stored.plan.others or ()}
        group_readings = [
            _try_read(partial(self._group, stored, policies.get(name, policy), name, facts, now, steady_s), problems)
            for name in groups(stored.plan)
        ]
        group_states = [state for state, _ in filter(None, group_readings)]
        changes = [(state.name, _observe(stored, state, watch)) for state, watch in filter(None, group_readings)]
        others = {name: change for name, change in changes if change is not None and name in policies}
        offsets = _try_read(lambda: self._offsets_state(stored, policy), problems)
        self.last = Observation(
            at=now,
            deployments=tuple(by_name.values()),
            groups=tuple(group_states),
            rivals=_try_read(lambda: self._rivals(stored), problems),
            offsets_set=offsets.is_set if offsets else None,
            offsets_fingerprint=offsets.fingerprint if offsets else None,
            policy_digest=policy.digest if policy else None,
            bounds=policy.bounds if policy else None,
            change=_observe(stored, *group_readings[0]) if group_readings[0] else None,
            other_changes=tuple(others.items()),
            other_digests=tuple((each.metadata.name, each.digest) for each in filter(None, policies.values())),
            problems=tuple(problems),
        )
        return self.last

    def perform(self, effect: Effect) -> None:
        """Make it so, or raise ``ConflictError`` or ``DeniedError`` (nothing done).

        Any other ``OutOfReachError``: perhaps it is done, perhaps not.
        """
        log.info("effect", extra={"effect": type(effect).__name__, "namespace": self.namespace})
        if isinstance(effect, SetOffsets):
            self._set_offsets(effect)
        else:
            perform(self.api, self.namespace, effect)

    def _policy_of(self, other: OtherGroup, problems: list[str]) -> ConsumerScalingPolicy | None:
        """Return the policy of another group of the same pods; without it the group is not read."""
        known_problems = len(problems)
        policy = _try_read(lambda: self.policies(other.policy), problems)
        if policy is None and len(problems) == known_problems:
            problems.append(f"there is no policy {other.policy} in namespace {self.namespace}")
        return policy

    def _offsets_state(self, stored: StoredPlan, policy: ConsumerScalingPolicy | None) -> OffsetsState | None:
        """Return how the offsets are that the plan is about to set; ``None`` at any other step."""
        step = stored.status.current and stored.plan.steps[stored.status.step]
        if policy is None or not isinstance(step, CloneOffsets | ResetOffsets):
            return None
        return self.offsets.state(policy, offsets_to_set(stored.plan, stored.key, step))

    def _set_offsets(self, effect: SetOffsets) -> None:
        try:
            policy = self.policies(effect.policy)
            if policy is None:
                raise BadInputError(f"there is no policy {effect.policy} in namespace {self.namespace}")
            self.offsets.set(policy, effect)
        except BadInputError as error:
            raise ConflictError(str(error)) from error

    def _deployment(self, plan: RolloutPlan, name: str, now: datetime) -> DeploymentObservation:
        deployment = self.api.find_deployment(self.namespace, name, kind_of(plan, name), api_version_of(plan, name))
        if deployment is None:
            return DeploymentObservation(name, None)
        facts = complete_workload(self.api, f"{self.namespace}/{name}", deployment, now)
        return DeploymentObservation(name, facts, claim_of(deployment), revision_of(deployment))

    def _group(
        self,
        stored: StoredPlan,
        policy: ConsumerScalingPolicy | None,
        name: str,
        facts: Deployment | None,
        now: datetime,
        steady_s: float,
    ) -> tuple[GroupObservation, Watch | None]:
        began_s = time.monotonic()
        state = as_awaited(stored, self.groups.look(policy, name, facts, now))
        return self._watches.note(stored, state, steady_s, began_s, time.monotonic())

    def _rivals(self, stored: StoredPlan) -> tuple[Rival, ...]:
        others = [manifest for manifest in self.api.plans(self.namespace) if manifest["metadata"]["uid"] != stored.uid]
        return tuple(rival for manifest in others if (rival := self._rival(manifest, stored)) is not None)

    def _rival(self, other: Mapping[str, Any], stored: StoredPlan) -> Rival | None:
        try:
            return rival_of(other)
        except (KeyError, TypeError, ValueError) as error:
            if _is_elsewhere(other, stored):
                return None
            name = f"{self.namespace}/{other['metadata']['name']}"
            raise AnswerError(
                f"plan {name} cannot be read ({error!r}), so nobody knows whether it is of the same group: delete it"
            ) from error


def _own_deployments(plan: RolloutPlan, observed: Mapping[str, DeploymentObservation]) -> Deployment | None:
    """Return the plan's own Deployment, several as one; ``None`` unless all are known."""
    known = [each.facts for name in plan.replicas_before if (each := observed.get(name)) and each.facts]
    return together(known) if len(known) == len(plan.replicas_before) else None


def _is_elsewhere(other: Mapping[str, Any], stored: StoredPlan) -> bool:
    """True when a plan, unreadable otherwise, names neither a group nor a Deployment of ours, whatever the cluster."""
    try:
        (_, _, group), named = subjects_of(other)
    except (KeyError, TypeError, AttributeError):
        return False
    return group not in groups(stored.plan) and not set(named) & set(deployments(stored.plan))


def _try_read(read: Callable[[], _T], problems: list[str]) -> _T | None:
    try:
        return read()
    except PlannerError as error:
        problems.append(str(error))
        return None


def _observe(stored: StoredPlan, group: GroupObservation, watch: Watch | None) -> ObservedChange | None:
    """Return what the observations so far show of the change, once all steps are done and the group is calm or left."""
    if stored.status.phase is not Phase.VERIFYING or group.owners is None or not group.queues:
        return None
    basis = basis_of(stored.plan, group.name)
    if basis is None:
        return None
    moved = Between.exactly(moved_queues(basis.forecast.owners_before, group.owners))
    if group.members == () and is_left(stored.plan):
        return ObservedChange(moved_queues=moved, is_complete=True)
    if not group.is_calm:
        return None
    return watch.observed_change(moved) if watch else ObservedChange(moved_queues=moved, is_complete=True)
