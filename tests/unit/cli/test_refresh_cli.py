"""``planner refresh`` before anything is watched: whose plan, which policy, and whether it may be made anew at all."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from planner.documents.migration import REQUEST_ANNOTATION
from planner.documents.plan import PLAN
from planner.documents.status import dump_status
from planner.execution.phases import Phase
from planner.execution.progress import RolloutStatus
from planner.rollout.differences import plan_differences
from planner.rollout.plan import RolloutPlan
from tests.builders import OBJECTIVE, decided, snapshot
from tests.unit.cli.test_cli import planner, refused

SERVER = "127.0.0.1:1"


def made() -> RolloutPlan:
    plan = decided(snapshot(capacity=65.0), trials=20).plan
    assert plan is not None
    return plan


def files(folder: Path, plan: RolloutPlan, status: RolloutStatus | None = None, **changes: str) -> tuple[Path, Path]:
    """Write a plan, as ``kubectl get -o yaml`` does where it has a status, and its policy; return where."""
    document = PLAN.document(plan, "billing-1", "shop")
    if status is not None:
        document["status"] = dump_status(status)
    path, policy = folder / "plan.yaml", folder / "policy.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    source = {"system": plan.group.system, "nameServers": [SERVER], "cluster": plan.group.cluster}
    spec = {
        "source": {**source, "group": changes.get("group", plan.group.group)},
        "scaleTargetRef": {"name": plan.deployment},
        "maxReplicas": 16,
    }
    body = {"apiVersion": "consumerplanner.dev/v1alpha1", "kind": "ConsumerScalingPolicy", "spec": spec}
    metadata = {"name": changes.get("name", plan.policy)}
    policy.write_text(yaml.safe_dump({**body, "metadata": metadata}), encoding="utf-8")
    return path, policy


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (Phase.APPROVED, "plan billing-1 is approved and may begin at any time: planner abort billing-1 it first"),
        (Phase.RUNNING, "plan billing-1 is in progress (Running)"),
        (Phase.PAUSED, "plan billing-1 is in progress (Paused)"),
        (Phase.ABORTING, "plan billing-1 is in progress (Aborting)"),
        (Phase.SUCCEEDED, "plan billing-1 has ended as Succeeded"),
        (Phase.ROLLED_BACK, "plan billing-1 has ended as RolledBack"),
        (Phase.STUCK, "plan billing-1 has ended as Stuck"),
    ],
)
def test_a_plan_that_is_approved_in_progress_or_over_is_refused(phase: Phase, said: str, tmp_path: Path) -> None:
    plan, policy = files(tmp_path, made(), RolloutStatus(phase))
    refused(planner("refresh", plan, "-p", policy), 1, said)


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.REFUSED, Phase.EXPIRED])
def test_one_that_changed_nothing_is_made_anew_where_its_group_can_be_read(phase: Phase, tmp_path: Path) -> None:
    plan, policy = files(tmp_path, made(), RolloutStatus(phase))
    found = planner("refresh", plan, "-p", policy, "--observe-seconds", 0)
    assert found.returncode == 3, found.stderr
    assert "whether plan billing-1 was carried out is not known" in found.stderr
    assert SERVER in found.stderr


def test_the_policy_must_be_the_plans_own(tmp_path: Path) -> None:
    plan, policy = files(tmp_path, made(), name="other")
    refused(planner("refresh", plan, "-p", policy), 2, f"the plan is of policy {made().policy}, but", "policy other")
    plan, policy = files(tmp_path, made(), group="other")
    refused(planner("refresh", plan, "-p", policy), 2, "group other: name the plan's own policy")


def test_a_migration_that_does_not_keep_its_request_is_refused(tmp_path: Path) -> None:
    plan, policy = files(tmp_path, replace(made(), migration="update"))
    refused(planner("refresh", plan, "-p", policy), 2, "does not keep what was asked for, as plans of earlier releases")
    document = yaml.safe_load(plan.read_text())
    document["metadata"]["annotations"][REQUEST_ANNOTATION] = "[1]"
    plan.write_text(yaml.safe_dump(document))
    refused(planner("refresh", plan, "-p", policy), 2, f"annotation {REQUEST_ANNOTATION} holds no mapping")


def test_differences_are_named_in_words_and_times_are_none() -> None:
    before = made()
    later = replace(before, made_at=before.made_at + timedelta(hours=1), valid_until=before.valid_until + timedelta(1))
    assert plan_differences(before, later) == ()
    other = decided(snapshot(capacity=50.0), trials=20)
    assert other.plan is not None
    told = {line.what: (line.before, line.after) for line in plan_differences(before, other.plan)}
    assert told["count"] == (f"3 to {before.final_replicas}", f"3 to {other.plan.final_replicas}")
    assert told["reason"] == (before.reason, other.plan.reason)
    assert {"moved queues", "step 1"} <= told.keys()
    shorter = replace(before, steps=before.steps[:1])
    assert ("step 2", "none") in {(line.what, line.after) for line in plan_differences(before, shorter)}
    held = decided(snapshot(capacity=65.0), replace(OBJECTIVE, lowest=3, highest=3)).record.decision
    assert held.is_hold
    hold = {line.what: line.after for line in plan_differences(before, held)}
    assert hold == {"count": "3 (hold)", "reason": held.reason}
