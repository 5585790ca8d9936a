"""Plans as the planner builds them, carried out on the fake cluster: what one room writes the other must walk."""

from dataclasses import replace

import pytest

from planner.execution.phases import Phase
from planner.model.snapshot import MemberPod
from planner.rollout.steps import MarkVictims, StartConsumers, StopConsumers
from tests.builders import decided, snapshot
from tests.unit.execution.fake import QUEUES, FakeCluster
from tests.unit.execution.worlds import DEPLOYMENT, drive, stored, twice, untouched


def built(cluster: FakeCluster, capacity: float) -> FakeCluster:
    """Put the plan into the cluster that the planner makes for it, one consumer doing so many messages a second."""
    pods = sorted(cluster.live(DEPLOYMENT), key=lambda pod: pod.member)
    links = tuple(MemberPod(pod.member, pod.name) for pod in pods)
    facts = cluster._deployment(DEPLOYMENT).facts
    taken = snapshot(QUEUES, [pod.member for pod in pods], capacity=capacity, pods=links, deployment=facts)
    plan = decided(taken).plan
    assert plan is not None
    cluster.put(replace(stored(cluster, plan.steps), plan=plan))
    return cluster


@pytest.mark.parametrize(("before", "capacity", "kind"), [(3, 30.0, StartConsumers), (5, 100.0, StopConsumers)])
def test_a_built_plan_is_carried_out_to_its_end(before: int, capacity: float, kind: type) -> None:
    cluster = built(FakeCluster(before), capacity)
    steps = cluster.plans["plan-1"].plan.steps
    assert any(isinstance(step, kind) for step in steps)
    drive(cluster)
    status = cluster.status("plan-1")
    assert (status.phase, status.surprises) == (Phase.SUCCEEDED, ())
    target = [step.to_replicas for step in steps if isinstance(step, StartConsumers | StopConsumers)][-1]
    assert cluster.deployments[DEPLOYMENT].replicas == target
    assert cluster.lowest_ready == min(before, target)
    assert untouched(cluster)
    assert not twice(cluster)


def test_the_pods_that_were_chosen_are_those_that_stop() -> None:
    cluster = built(FakeCluster(5), 100.0)
    steps = cluster.plans["plan-1"].plan.steps
    chosen = {pod for step in steps if isinstance(step, MarkVictims) for pod in step.pods}
    before = {pod.name for pod in cluster.live(DEPLOYMENT)}
    drive(cluster)
    assert chosen
    assert before - {pod.name for pod in cluster.live(DEPLOYMENT)} == chosen
