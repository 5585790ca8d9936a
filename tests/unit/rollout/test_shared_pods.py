"""Several groups that the pods of one Deployment serve: one count, one plan, every group awaited."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner import pipeline
from planner.decision.decision import Decision, HoldCause
from planner.decision.shared import Wish, decide_together
from planner.documents.data import SNAPSHOT
from planner.documents.plan import PLAN
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import twins
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.pipeline import GroupCase
from planner.rollout.approval import ApprovalRule, why_not
from planner.rollout.bounds import outside_policy
from planner.rollout.explain import explain_plan
from planner.rollout.plan import RolloutPlan
from planner.rollout.shared import describe_rebalances
from planner.rollout.steps import AwaitSettled, MarkVictims
from planner.storage.track_records import land_records, read_records
from planner.verification.calibration import calibration_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from planner.verification.verdict import Fit, OtherVerdict
from tests.builders import AT
from tests.decidable import policy_of
from tests.unit.rollout.test_stateful import stateful
from tests.unit.workload.builders import deployment, pod


def group(name: str, capacity: float, count: int = 3) -> GroupSnapshot:
    """Return a settled group whose members run in the Deployment's pods; ``capacity`` is of one of them."""
    taken = stateful(count)
    pods = tuple(pod(link.pod, ready_at=AT, created_at=AT) for link in taken.pods)
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), count)
    made = deployment(at=AT, pods=pods, **counts)
    return replace(taken, group=name, capacity=Capacity(capacity, "stated by the policy"), deployment=made)


def policy(taken: GroupSnapshot, name: str, others: list[str], highest: int = 6) -> ConsumerScalingPolicy:
    """Return the policy of a group that shares its pods with the groups of other policies."""
    content = policy_of(taken).model_dump(by_alias=True)
    content["metadata"]["name"] = name
    content["spec"] |= {"maxReplicas": highest, "objective": {"maxUtilisation": 0.8}}
    content["spec"]["scaleTargetRef"] = {"name": "app", "sharedWith": others}
    return ConsumerScalingPolicy.model_validate(content)


def case(name: str, capacity: float, others: list[str], **changes: int) -> GroupCase:
    taken = group(f"group-{name}", capacity, changes.pop("count", 3))
    asked = policy(taken, name, others, **changes)
    return GroupCase(asked, taken, pipeline.decide_alone(taken, pipeline.simulate(taken, asked), asked))


def load() -> float:
    return sum(state.upper_arrival_rate or 0.0 for state in group("g", 1.0).data_queues)


def plan_for(lead: GroupCase, other: GroupCase) -> RolloutPlan:
    record = pipeline.decide_shared((lead, other))[lead.name]
    outcomes = pipeline.simulate(lead.snapshot, lead.policy)
    made = pipeline.plan(lead.snapshot, record, lead.policy, outcomes, (other,))
    assert made is not None
    return made


def test_the_group_that_needs_most_scales_for_all() -> None:
    """Red when the smaller wish wins, when both get a plan, or when a group is left out of the plan."""
    busy, idle = case("busy", load() / 4, ["idle"]), case("idle", load() * 2, ["busy"])
    assert (busy.wish.count, idle.wish.count) == (6, 1)
    decided = pipeline.decide_shared((busy, idle))
    assert decided["busy"].decision.target == 6
    assert "which alone would get 1 for group group-idle (policy idle)" in decided["busy"].decision.reason
    assert decided["idle"].decision.hold_cause is HoldCause.SHARED_TARGET
    assert "the plan of policy busy scales the same pods to 6" in decided["idle"].decision.reason
    made = plan_for(busy, idle)
    awaited = [(step.group, step.members) for step in made.steps if isinstance(step, AwaitSettled)]
    assert awaited == [(None, 6), ("group-idle", 6)]
    (other,) = made.others or ()
    assert (other.policy, other.policy_digest) == ("idle", idle.policy.digest)
    assert other.snapshot.digest == SNAPSHOT.digest(idle.snapshot)
    assert PLAN.parse(PLAN.document(made, "shared"), "plan") == made
    assert any(line.startswith("Expected for group group-idle of policy idle") for line in explain_plan(made))
    assert not outside_policy(made, busy.policy.bounds)


def test_each_group_of_the_pods_keeps_how_its_own_forecast_did(tmp_path: Path) -> None:
    """Red when only the plan's own group is remembered, or when one's figures come under another's name."""
    made = plan_for(case("busy", load() / 4, ["idle"]), case("idle", load() * 2, ["busy"]))
    (other,) = made.others or ()
    as_seen = judge(
        made.forecast, ObservedChange(moved_queues=Between.exactly(made.forecast.moved_queues.most or 0)), AT
    )
    missed = judge(other.forecast, ObservedChange(moved_queues=Between.exactly(99)), AT)
    verdict = replace(as_seen, others=(OtherVerdict(other.group.group, missed.figures),))
    paths = land_records(tmp_path, made, verdict)
    assert paths == land_records(tmp_path, made, verdict)
    (own,), (its,) = (read_records(tmp_path, basis.group) for basis in made.bases)
    assert [(one.policy, one.misses[0].fit) for one in (own, its)] == [("busy", Fit.INSIDE), ("idle", Fit.OUTSIDE)]
    assert its.snapshot_digest == other.snapshot.digest
    untold = replace(verdict, others=None)
    assert len(calibration_records(made, untold)) == 1


def test_pods_stop_only_as_far_as_every_group_allows() -> None:
    """The other group's moves are those of the very pods that stop: red when it picks its own."""
    first, second = case("first", load() * 2, ["second"]), case("second", load() / 1.3, ["first"])
    assert (first.wish.count, second.wish.count) == (1, 2)
    made = plan_for(second, first)
    assert made.target_replicas == 2
    (mark,) = [step for step in made.steps if isinstance(step, MarkVictims)]
    (other,) = made.others or ()
    gone = {member for victim in mark.victims for member in victim.members}
    assert {owned.consumer for owned in other.forecast.owners_after} == set(first.snapshot.clients) - gone


def test_a_group_that_needs_the_present_pods_keeps_them() -> None:
    small, full = case("small", load() * 2, ["full"]), case("full", load() / 2, ["small"])
    decided = pipeline.decide_shared((small, full))
    assert decided["small"].decision.target == 3
    assert "group group-full (policy full) needs 3 pods" in decided["small"].decision.reason


@pytest.mark.parametrize(
    ("cause", "target"), [(HoldCause.UNKNOWN_CAPACITY, 6), (HoldCause.UNSETTLED, 3), (HoldCause.OLD_DATA, 3)]
)
def test_doubts_on_one_group_hold_all_unless_more_pods_do_no_harm(cause: HoldCause, target: int) -> None:
    asking = Decision("a", AT, "AVG", 3, 6, "Scale from 3 to 6 consumers: busy.", ())
    held = Decision("b", AT, "AVG", 3, 3, "Hold at 3 consumers: in doubt.", (), cause)
    decided = decide_together([Wish("a", asking, 9), Wish("b", held, 9)])
    assert decided["a"].target == target
    assert decided["b"] is held


def test_another_policys_bound_and_other_counts_hold_all() -> None:
    asking = Decision("a", AT, "AVG", 3, 6, "Scale from 3 to 6 consumers: busy.", ())
    fewer = Decision("b", AT, "AVG", 3, 2, "Scale from 3 to 2 consumers: idle.", ())
    bounded = decide_together([Wish("a", asking, 9), Wish("b", fewer, 5)])
    assert [decision.target for decision in bounded.values()] == [3, 3]
    assert "allows 5 at most: raise its maxReplicas" in bounded["a"].reason
    apart = decide_together([Wish("a", asking, 9), Wish("b", replace(fewer, current=4), 9)])
    assert "show different counts of pods" in apart["a"].reason


def test_one_policy_alone_never_plans_for_shared_pods() -> None:
    """``planner plan`` and all else that reads one group: red when it writes a plan for one of them."""
    busy = case("busy", load() / 4, ["idle"])
    outcomes = pipeline.simulate(busy.snapshot, busy.policy)
    record = pipeline.decide(busy.snapshot, outcomes, busy.policy)
    assert record.decision.hold_cause is HoldCause.SHARED_TARGET
    assert pipeline.plan(busy.snapshot, record, busy.policy, outcomes) is None


def test_a_plan_that_leaves_a_group_out_is_outside_its_policy_and_none_is_approved_by_rule() -> None:
    busy, idle = case("busy", load() / 4, ["idle"]), case("idle", load() * 2, ["busy"])
    made = plan_for(busy, idle)
    waits = tuple(step for step in made.steps if getattr(step, "group", None) is None)
    alone = replace(made, others=None, steps=waits)
    assert "policy busy names idle in sharedWith" in outside_policy(alone, busy.policy.bounds)[0]
    with pytest.raises(ValueError, match="to await group-idle as well"):
        replace(made, steps=waits)
    assert "changes the groups of 2 policies" in why_not(made, ApprovalRule(most_moved_queues=999), made.made_at)[0]


def test_policies_that_name_each_other_share_a_target() -> None:
    one, two = group("one", 1.0), group("two", 1.0)
    mutual = [("a", policy(one, "a", ["b"])), ("b", policy(two, "b", ["a"]))]
    assert not twins(mutual)
    assert set(twins([mutual[0], ("b", policy(two, "b", []))])) == {"a", "b"}


def test_groups_of_one_client_id_are_said_to_rebalance_together() -> None:
    """Red when groups whose members are clients of their own, as by default since 4.9.0, are said to be one."""
    lead, other = case("a", load() / 4, ["b"]), case("b", load() / 2, ["a"])
    made = plan_for(lead, other)
    assert [way for way in made.ways if "same client ids" in way and "MQClientInstance" in way], made.ways
    assert other.other.snapshot.clients == lead.snapshot.clients
    apart = replace(made, preconditions=replace(made.preconditions, members=("10.0.0.1@9#1", "10.0.0.2@9#2")))
    assert len(list(describe_rebalances([apart, *(made.others or ())]))) == 1
