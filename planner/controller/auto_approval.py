"""Approval by a policy's criteria, at the time of applying: for policies with ``approval.mode: Auto``."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from planner.deployments.api import RolloutApi
from planner.documents.crd import plan_resource
from planner.documents.format import API_GROUP
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.rollout.approval import why_not
from planner.rollout.bounds import from_the_future, outside_policy
from planner.rollout.plan import GroupRef
from planner.storage.track_records import read_track


def is_open(stored: StoredPlan) -> bool:
    """True for a plan that nobody has yet approved, ended or paused. Taking an approval back is a decision."""
    status, requests = stored.status, stored.requests
    untouched = status.phase is Phase.PENDING and status.approval is None
    return untouched and not (requests.approval or requests.abort or requests.is_deleted or requests.pause)


def why_for_a_person(
    stored: StoredPlan,
    policy: ConsumerScalingPolicy | None,
    at: datetime,
    data: Path | None = None,
    planners: Collection[str] = (),
) -> tuple[str, ...] | None:
    """Return why the criteria leave a plan to a person at ``at``: nothing where they approve it.

    The criteria go by the plan's own forecast, which is free text: only what one of the ``planners`` created is
    believed, by the name that the API server recorded. Below ``data`` lies how the group's earlier forecasts did;
    ``None`` reads none. ``None`` is returned where the policy has no criteria, so that there is nothing to say.
    """
    rule = policy.approval_rule if policy else None
    if policy is None or rule is None:
        return None
    if policy.digest != stored.policy_digest:
        return (f"policy {stored.plan.policy} was changed after the plan was made",)
    outside = (*outside_policy(stored.plan, policy.bounds), *from_the_future(stored.plan, at))
    reasons = (*_foreign(stored, planners), *outside, *why_not(stored.plan, rule, at))
    return (*reasons, *_doubts(data, stored.plan.group, at))


def _foreign(stored: StoredPlan, planners: Collection[str]) -> tuple[str, ...]:
    """Return why the plan's forecast is not the planner's: its author is not known, or is somebody else."""
    if not planners:
        return ("no planning account was named to the controller (--planning-account), so no forecast is believed",)
    if stored.author in planners:
        return ()
    author = stored.author or "an account that was not recorded"
    return (f"it was created by {author}, the planning accounts are {', '.join(sorted(planners))}",)


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
