"""Approval by a policy's criteria, at the time of applying: for policies with ``approval.mode: Auto``."""

from datetime import datetime
from pathlib import Path

from planner.calibration import read_track
from planner.deployments.api import RolloutApi
from planner.documents.crd import plan_resource
from planner.documents.format import API_GROUP
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.rollout.approval import why_not
from planner.rollout.plan import GroupRef


def is_open(stored: StoredPlan) -> bool:
    """True for a plan that nobody has yet approved, ended or paused. Whoever takes an approval back has decided."""
    status, requests = stored.status, stored.requests
    untouched = status.phase is Phase.PENDING and status.approval is None
    return untouched and not (requests.approval or requests.abort or requests.is_deleted or requests.pause)


def why_for_a_person(
    stored: StoredPlan, policy: ConsumerScalingPolicy | None, at: datetime, data: Path | None = None
) -> tuple[str, ...] | None:
    """Return why the criteria leave a plan to a person at ``at``: nothing where they approve it.

    Below ``data`` lies how the group's earlier forecasts did; ``None`` looks back on none. ``None`` is returned where
    the policy has no criteria, so that there is nothing to say.
    """
    rule = policy.approval_rule if policy else None
    if policy is None or rule is None:
        return None
    if policy.digest != stored.policy_digest:
        return (f"policy {stored.plan.policy} was changed after the plan was made",)
    return (*why_not(stored.plan, rule, at), *_doubts(data, stored.plan.group, at))


def _doubts(data: Path | None, group: GroupRef, at: datetime) -> tuple[str, ...]:
    if data is None:
        return ()
    try:
        return read_track(data, group, at).doubts
    except BadInputError as error:
        return (f"how the earlier forecasts did cannot be read: {error}",)


def may_approve(api: RolloutApi, namespace: str) -> bool:
    """Return whether our own account has the verb ``approve``, which carrying plans out does not take."""
    attributes = {"namespace": namespace, "group": API_GROUP, "resource": plan_resource().plural, "verb": "approve"}
    return api.may(attributes)
