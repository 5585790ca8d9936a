"""Which plans at their end may go: by their own time, or as a policy has too many."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from planner.controller.retention import expired_plans, finished_plan, surplus
from planner.documents.plan import PLAN
from planner.documents.status import dump_status
from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from planner.rollout.plan import LEAST_TTL_S, MOST_TTL_S
from planner.rollout.steps import AwaitReady
from tests.builders import AT
from tests.pod_groups import plan_for

MADE = plan_for("app", ["a", "b"], [AwaitReady(2, 60)])


def plan_object(
    name: str, phase: Phase = Phase.SUCCEEDED, ended_s: float = 0.0, ttl_s: int | None = None, **meta: Any
) -> Mapping[str, Any]:
    """Return a plan as the API server gives it, which has been in its phase since ``ended_s`` after ``AT``."""
    document = PLAN.document(replace(MADE, ttl_seconds_after_finished=ttl_s), name, "shop")
    metadata = {**document["metadata"], "uid": name, "resourceVersion": "1", **meta}
    status = RolloutStatus(phase, phase_since=AT + timedelta(seconds=ended_s))
    return {**document, "metadata": metadata, "status": dump_status(status)}


def names(plans: Any) -> list[str]:
    return [plan.stored.name for plan in plans]


def finished(*found: Mapping[str, Any]) -> list[Any]:
    return [plan for one in found if (plan := finished_plan(one)) is not None]


@pytest.mark.parametrize("phase", Phase)
def test_only_a_plan_at_its_end_may_go_and_a_stuck_one_waits_for_a_person(phase: Phase) -> None:
    may_go = phase in (Phase.SUCCEEDED, Phase.ROLLED_BACK, Phase.REFUSED, Phase.EXPIRED)
    assert (finished_plan(plan_object("one", phase)) is not None) == may_go


def test_a_plan_that_goes_already_or_cannot_be_read_is_left_alone() -> None:
    assert finished_plan(plan_object("gone", deletionTimestamp="2026-11-21T10:00:00Z")) is None
    assert finished_plan({**plan_object("newer"), "status": {"phase": "Dreaming"}}) is None


def test_a_plan_goes_once_its_time_is_over_and_one_without_never() -> None:
    plans = finished(plan_object("short", ttl_s=60), plan_object("long", ttl_s=600), plan_object("always"))
    assert names(expired_plans(plans, AT + timedelta(seconds=59))) == []
    assert names(expired_plans(plans, AT + timedelta(seconds=60))) == ["short"]
    assert names(expired_plans(plans, AT + timedelta(days=999))) == ["short", "long"]


def test_the_newest_of_each_policy_stay() -> None:
    plans = finished(*(plan_object(f"p{number}", ended_s=number) for number in (2, 0, 3, 1)))
    assert names(surplus(plans, 2)) == ["p1", "p0"]
    assert names(surplus(plans, 4)) == []
    assert names(surplus(plans, None)) == []
    elsewhere = replace(plans[0], namespace="billing")
    assert names(surplus([*plans[1:], elsewhere], 3)) == []


def test_a_time_out_of_bounds_is_refused_and_none_changes_no_digest() -> None:
    """Red when plans of earlier releases get another digest, so that their approvals end."""
    for ttl_s in (LEAST_TTL_S - 1, MOST_TTL_S + 1):
        with pytest.raises(ValueError, match=r"ttlSecondsAfterFinished from 60 to 31536000"):
            replace(MADE, ttl_seconds_after_finished=ttl_s)
    assert "ttlSecondsAfterFinished" not in PLAN.spec(MADE)
    assert PLAN.spec(replace(MADE, ttl_seconds_after_finished=60))["ttlSecondsAfterFinished"] == 60
    assert PLAN.digest(replace(MADE, ttl_seconds_after_finished=60)) != PLAN.digest(MADE)
