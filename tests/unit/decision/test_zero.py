"""A group that may have no pod: when the last one stops, when the first one starts, and that plans do both."""

from dataclasses import replace
from typing import Any

import pytest

from planner import pipeline
from planner.decision.decision import HoldCause
from planner.documents.policy import ConsumerScalingPolicy
from planner.execution.phases import Phase
from planner.model.deployments import Deployment
from planner.model.snapshot import GroupSnapshot, MemberPod
from planner.rollout.bounds import outside_policy
from planner.rollout.explain import explain_plan
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import MarkVictims, StartConsumers, StopConsumers
from tests.builders import AT, series, snapshot
from tests.decidable import policy_of
from tests.unit.execution.fake import QUEUES, FakeCluster
from tests.unit.execution.worlds import DEPLOYMENT, drive, stored, untouched
from tests.unit.workload.builders import deployment, pod

IDLE_S = 300.0


def policy(taken: GroupSnapshot, lowest: int = 0) -> ConsumerScalingPolicy:
    """Return a policy that lets the group go to zero."""
    base = policy_of(taken)
    spec = {**base.spec.model_dump(by_alias=True), "minReplicas": lowest, "kubernetes": {}, "strategy": "AVG"}
    return ConsumerScalingPolicy.model_validate({**base.model_dump(by_alias=True), "spec": spec})


def quiet(points: int = 31, lag: int = 0, rate: float = 0.0, facts: Deployment | None = None) -> GroupSnapshot:
    """Return a group of three that has had no message for as many points, ten seconds each."""
    rates: list[float | None] = [rate] * points
    made = snapshot(QUEUES, strategy="AVG", rates=dict.fromkeys(QUEUES, rate), lags=dict.fromkeys(QUEUES, lag))
    names = [f"p{number}" for number in range(3)]
    links = tuple(MemberPod(client, name) for client, name in zip(made.clients, names, strict=True))
    at_rest = deployment(at=AT, pods=tuple(pod(name) for name in names))
    return replace(made, recent=series([lag] * points, rates, rates), pods=links, deployment=facts or at_rest)


def with_gap(taken: GroupSnapshot, place: int) -> GroupSnapshot:
    """Return the group with samples missing in one point of its past."""
    recent = list(taken.recent)
    recent[place] = replace(recent[place], is_gap=True)
    return replace(taken, recent=tuple(recent))


def empty(lag: int | None = 5, **changes: Any) -> GroupSnapshot:
    """Return a group of which no pod runs, every queue that many messages behind."""
    none = deployment(at=AT, pods=(), **dict.fromkeys(("replicas", "current", "updated", "ready", "available"), 0))
    taken = snapshot(QUEUES, (), strategy="AVG", deployment=none, setups=(), **changes)
    states = tuple(replace(state, lag=lag, owner=None) for state in taken.queues)
    return replace(taken, queues=states)


def made(taken: GroupSnapshot) -> RolloutPlan:
    """Return the plan that a policy from zero has for the group."""
    wanted = policy(taken)
    outcomes = pipeline.simulate(taken, wanted)
    plan = pipeline.plan(taken, pipeline.decide(taken, outcomes, wanted), wanted, outcomes)
    assert plan is not None
    return plan


def test_the_last_pods_stop_after_a_quiet_time() -> None:
    record = pipeline.decide(quiet(), (), policy(quiet()))
    assert (record.decision.current, record.decision.target) == (3, 0)
    assert "no message has come for 5 min and none waits" in record.decision.reason


@pytest.mark.parametrize(
    ("taken", "why"),
    [
        (replace(quiet(), strategy="POP", orderly=False), "no plan would start a pod again"),
        (quiet(points=12), "only the last 2 min were watched"),
        (quiet(lag=1, rate=1.0), "8 messages not yet consumed"),
        (quiet(rate=0.1), "messages came 0 s ago"),
        (replace(quiet(), queues=(replace(quiet().queues[0], lag=None), *quiet().queues[1:])), "lag of 1 queue"),
        (with_gap(quiet(), 0), None),
        (
            replace(quiet(), recent=(*quiet().recent[:-1], replace(quiet().recent[-1], is_gap=True))),
            "samples are missing",
        ),
    ],
)
def test_no_group_goes_to_zero_on_what_is_not_known(taken: GroupSnapshot, why: str | None) -> None:
    """A gap before the quiet time is of no matter, one within it is: nobody knows what came then."""
    decision = pipeline.decide(taken, pipeline.simulate(taken, policy(taken)), policy(taken)).decision
    assert (decision.target == 0) == (why is None), decision.reason
    if why is not None:
        assert decision.rejected[0].count == 0
        assert why in decision.rejected[0].reasons[0]


def test_one_pod_always_stays_unless_the_policy_says_zero() -> None:
    assert (
        pipeline.decide(quiet(), pipeline.simulate(quiet(), policy(quiet(), 1)), policy(quiet(), 1)).decision.target
        >= 1
    )


def test_a_start_from_zero_is_forecast_from_the_first_consumers_on() -> None:
    """Red where the change's cost is left out, and where both supposed releases are one."""
    plan = made(empty())
    cost = plan.forecast.cost
    assert cost is not None
    assert cost.settle_seconds is not None
    assert cost.pause_seconds is None, "nobody consumed before"
    assert 0 < cost.settle_seconds.p05 < cost.settle_seconds.p50 < 10
    assert plan.forecast.unknowns[0].startswith("how long the pods take to start")
    assert "of a release from 4.9.8 to 5.5.0" in plan.forecast.unknowns[1]
    lines = list(explain_plan(plan))
    assert any(line.startswith("Every queue is consumed again usually ") for line in lines), lines


def test_a_start_without_the_time_of_a_message_has_no_forecast_and_says_why() -> None:
    plan = made(empty(capacity=None))
    assert plan.forecast.cost is None
    assert any("how long one message takes is unknown" in unknown for unknown in plan.forecast.unknowns)


def test_the_first_pod_starts_when_a_message_waits() -> None:
    decision = pipeline.decide(empty(), (), policy(empty())).decision
    assert (decision.current, decision.target) == (0, 1)
    assert "and no pod runs" in decision.reason


@pytest.mark.parametrize(
    ("taken", "cause"),
    [
        (empty(lag=0), HoldCause.RIGHT_ALREADY),
        (empty(lag=None), HoldCause.UNKNOWN_LAG),
        (replace(empty(), strategy=None), HoldCause.UNKNOWN_STRATEGY),
        (replace(empty(), strategy="CONFIG"), HoldCause.UNSUPPORTED_STRATEGY),
        (replace(empty(), strategy="POP"), HoldCause.UNSUPPORTED_STRATEGY),
        (replace(empty(), strategy="MACHINE_ROOM_NEARBY"), HoldCause.UNSUPPORTED_STRATEGY),
        (replace(empty(), unlisted_consumers="a proxy"), HoldCause.MEMBERS_UNKNOWN),
        (replace(empty(), deployment=None), HoldCause.NO_CONSUMERS),
        (replace(empty(), deployment=deployment(at=AT)), HoldCause.NO_CONSUMERS),
    ],
)
def test_what_keeps_a_group_at_zero(taken: GroupSnapshot, cause: HoldCause) -> None:
    """Pods that run and are no members are no zero: their Deployment asks for three."""
    decision = pipeline.decide(taken, (), policy(taken)).decision
    assert (decision.hold_cause, decision.target) == (cause, 0)


def test_a_policy_from_zero_reads_its_pods() -> None:
    taken = quiet()
    document = {**policy(taken).model_dump(by_alias=True)}
    with pytest.raises(ValueError, match="kubernetes beside minReplicas: 0"):
        ConsumerScalingPolicy.model_validate({**document, "spec": {**document["spec"], "kubernetes": None}})
    with pytest.raises(ValueError, match="strategy beside minReplicas: 0"):
        ConsumerScalingPolicy.model_validate({**document, "spec": {**document["spec"], "strategy": None}})
    with pytest.raises(ValueError, match="scaleToZero together with minReplicas: 0"):
        ConsumerScalingPolicy.model_validate(
            {**document, "spec": {**document["spec"], "minReplicas": 1, "scaleToZero": {"afterSeconds": 60}}}
        )


def test_a_group_goes_to_zero_and_comes_back() -> None:
    """Both plans as the planner makes them, walked by the engine on the fake cluster."""
    cluster = FakeCluster(3)
    pods = sorted(cluster.live(DEPLOYMENT), key=lambda each: each.member)
    facts = cluster._deployment(DEPLOYMENT).facts
    taken = quiet(facts=facts)
    links = tuple(MemberPod(each.member, each.name) for each in pods)
    members = tuple(each.member for each in pods)
    owners = dict(zip(taken.clients, members, strict=True))
    states = tuple(replace(state, owner=owners[state.owner or ""]) for state in taken.queues)
    down = made(replace(taken, clients=members, pods=links, queues=states))
    assert not [step for step in down.steps if isinstance(step, MarkVictims)]
    (stop,) = [step for step in down.steps if isinstance(step, StopConsumers)]
    assert (stop.from_replicas, stop.to_replicas) == (3, 0)
    assert down.forecast.moved_queues.fewest == len(QUEUES)
    assert any("next message waits" in unknown for unknown in down.forecast.unknowns)
    run(cluster, "plan-1", down)
    assert cluster.deployments[DEPLOYMENT].replicas == 0

    up = made(replace(empty(), deployment=cluster._deployment(DEPLOYMENT).facts, at=cluster.now))
    (start,) = [step for step in up.steps if isinstance(step, StartConsumers)]
    assert (start.from_replicas, start.to_replicas) == (0, 1)
    assert any("how long the pods take to start" in unknown for unknown in up.forecast.unknowns)
    run(cluster, "plan-2", up)
    assert cluster.deployments[DEPLOYMENT].replicas == 1
    assert untouched(cluster)


def run(cluster: FakeCluster, name: str, plan: RolloutPlan) -> None:
    cluster.put(replace(stored(cluster, plan.steps, name), plan=replace(plan, deployment=DEPLOYMENT)))
    drive(cluster, name=name)
    status = cluster.status(name)
    assert (status.phase, status.surprises) == (Phase.SUCCEEDED, ()), status


def test_no_plan_stops_the_last_pod_of_a_policy_that_keeps_one() -> None:
    """Whoever wrote or approved it: the executor compares every plan with the policy of that moment."""
    taken = quiet()
    to_zero = made(taken)
    assert to_zero.target_replicas == 0
    assert outside_policy(to_zero, policy(taken).bounds) == ()
    reasons = "; ".join(outside_policy(to_zero, policy(taken, lowest=1).bounds))
    assert "goes to 0 replicas, policy billing asks for 1 at least" in reasons
