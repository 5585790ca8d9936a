"""Approval by criteria: only of plans that nobody decided on, only under the policy that they were made under."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.controller import auto_approval
from planner.controller.auto_approval import is_open
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.execution.phases import Phase
from planner.execution.ports import Requests, StoredPlan
from planner.execution.progress import Approval, RolloutStatus
from planner.storage.layout import calibration_folder
from planner.storage.track_records import land_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.track import LEAST
from tests.pod_groups import GROUP, plan_for
from tests.step_builders import STEPS

PLAN = plan_for("app", ["a", "b", "c"], STEPS[:1])
PLANNER = "system:serviceaccount:planner:planner"
NOW = PLAN.made_at + timedelta(minutes=1)
APPROVAL = Approval("sha256:1", None, NOW)


def policy(**spec: Any) -> ConsumerScalingPolicy:
    source = {"system": "rocketmq", "nameServers": ["127.0.0.1:1"], "cluster": GROUP.cluster, "group": GROUP.group}
    made = {"source": source, "scaleTargetRef": {"name": "app"}, "minReplicas": 1, "maxReplicas": 8, **spec}
    made.setdefault("rollout", {"validForSeconds": 1_800})
    document = {"apiVersion": "consumerplanner.dev/v1alpha1", "kind": "ConsumerScalingPolicy"}
    return parse_policy(json.dumps({**document, "metadata": {"name": "billing"}, "spec": made}), "policy")


def auto(most: int = 8, **spec: Any) -> ConsumerScalingPolicy:
    return policy(approval={"mode": "Auto", "criteria": {"mostMovedQueues": most, **spec.pop("criteria", {})}}, **spec)


def stored(under: ConsumerScalingPolicy, **changes: Any) -> StoredPlan:
    made = StoredPlan("one", "u", PLAN, "sha256:1", "1", policy_digest=under.digest, author=PLANNER)
    return replace(made, **changes)


def why_for_a_person(
    it: StoredPlan, under: ConsumerScalingPolicy | None, at: datetime, data: Path | None = None
) -> tuple[str, ...] | None:
    return auto_approval.why_for_a_person(it, under, at, data, {PLANNER})


def test_within_the_criteria_there_is_no_reason_for_a_person() -> None:
    assert why_for_a_person(stored(auto()), auto(), NOW) == ()


def test_beyond_them_there_is() -> None:
    assert why_for_a_person(stored(auto(7)), auto(7), NOW) == ("up to 8 queues move, 7 may",)


def test_only_a_plan_of_the_planning_account_is_believed() -> None:
    """Whoever may create plans writes their forecasts, too: those of others are for a person, however cheap."""
    mallory = stored(auto(), author="mallory")
    (reason,) = why_for_a_person(mallory, auto(), NOW) or ()
    assert reason == f"it was created by mallory, the planning accounts are {PLANNER}"
    (reason,) = why_for_a_person(stored(auto(), author=None), auto(), NOW) or ()
    assert reason.startswith("it was created by an account that was not recorded")
    (reason,) = auto_approval.why_for_a_person(stored(auto()), auto(), NOW) or ()
    assert "--planning-account" in reason


def test_a_plan_that_leaves_its_policy_is_for_a_person_whoever_made_it() -> None:
    for bounds, why in (({"minReplicas": 6}, "policy billing asks for 6 at least"), ({"maxReplicas": 4}, "allows 4")):
        under = auto(**bounds)
        told = "; ".join(why_for_a_person(stored(under), under, NOW) or ())
        assert why in told
    future = replace(PLAN, made_at=NOW + timedelta(days=365), valid_until=NOW + timedelta(days=365, minutes=5))
    (reason,) = why_for_a_person(stored(auto(), plan=future), auto(), NOW) or ()
    assert "later than now" in reason


def test_a_manual_policy_says_nothing_nor_does_one_that_is_not_there() -> None:
    assert why_for_a_person(stored(policy()), policy(), NOW) is None
    assert why_for_a_person(stored(auto()), None, NOW) is None


def test_a_policy_that_was_changed_approves_nothing() -> None:
    reasons = why_for_a_person(stored(auto(8)), auto(100), NOW)
    assert reasons == ("policy billing was changed after the plan was made",)


def test_a_window_that_is_shut_leaves_it_to_a_person_until_it_opens() -> None:
    day = (NOW + timedelta(days=1)).strftime("%A")
    later = auto(changeWindows=[{"days": [day]}], criteria={"onlyInChangeWindows": True})
    (reason,) = why_for_a_person(stored(later), later, NOW) or ()
    assert "no change window is open" in reason
    later = auto(
        changeWindows=[{"days": [day]}],
        criteria={"onlyInChangeWindows": True},
        rollout={"validForSeconds": 4 * 86_400},
    )
    plan = replace(PLAN, valid_until=NOW + timedelta(days=3))
    assert why_for_a_person(stored(later, plan=plan), later, NOW + timedelta(days=1)) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"requests": Requests(approval=APPROVAL)},
        {"requests": Requests(abort=True)},
        {"requests": Requests(pause=True)},
        {"requests": Requests(is_deleted=True)},
        {"status": RolloutStatus(Phase.APPROVED, approval=APPROVAL)},
        {"status": RolloutStatus(Phase.PENDING, approval=APPROVAL)},
    ],
    ids=["approved", "aborted", "paused", "deleted", "taken up", "approval taken back"],
)
def test_what_somebody_decided_on_is_left_alone(changes: dict[str, Any]) -> None:
    assert is_open(stored(auto()))
    assert not is_open(stored(auto(), **changes))


def test_where_earlier_forecasts_missed_too_often_a_person_looks(tmp_path: Path) -> None:
    for hour in range(LEAST):
        seen = ObservedChange(moved_queues=Between.exactly(9 if hour < 3 else 1))
        land_records(tmp_path, PLAN, judge(PLAN.forecast, seen, NOW - timedelta(hours=hour + 1)))
    (reason,) = why_for_a_person(stored(auto()), auto(), NOW, tmp_path) or ()
    assert reason.startswith("moved queues was missed in 3 of 5 forecasts of group billing")
    before = timedelta(hours=2)
    then = replace(PLAN.snapshot, at=PLAN.snapshot.at - before)
    plan = replace(PLAN, snapshot=then, made_at=PLAN.made_at - before, valid_until=PLAN.valid_until - before)
    assert why_for_a_person(stored(auto(), plan=plan), auto(), NOW - before, tmp_path) == (), "as of then, too few"


def test_records_that_cannot_be_read_leave_it_to_a_person(tmp_path: Path) -> None:
    folder = calibration_folder(tmp_path, GROUP.system, GROUP.cluster, GROUP.group)
    folder.mkdir(parents=True)
    (folder / "20261121T101500.000Z.json").write_text("{")
    (reason,) = why_for_a_person(stored(auto()), auto(), NOW, tmp_path) or ()
    assert reason.startswith("how the earlier forecasts did cannot be read: ")
