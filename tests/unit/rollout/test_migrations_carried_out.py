"""Migrations as they are planned, carried out by the engine on the fake cluster: to the end, or back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.execution.phases import Phase
from planner.model.snapshot import MemberPod
from planner.rollout.build import RolloutSettings
from planner.rollout.migrations.migration import Ground, Migration, ground, plan_of
from planner.rollout.migrations.relocate import relocate
from planner.rollout.migrations.rename import rename
from planner.rollout.migrations.strategy import strategy
from planner.rollout.migrations.update import update
from planner.rollout.template import ContainerChange, TemplateChange
from tests.builders import AT, snapshot
from tests.unit.execution.fake import QUEUES, FakeCluster
from tests.unit.execution.worlds import DEPLOYMENT, GREEN, drive, stored, twice

CHANGE = TemplateChange((ContainerChange("app", image="app:2"),))
SETTINGS = RolloutSettings("billing", DEPLOYMENT)
MIGRATIONS: dict[str, Callable[[Ground], Migration]] = {
    "update": lambda found: update(found, CHANGE, 1),
    "strategy": lambda found: strategy(found, "AVG_BY_CIRCLE", {}, CHANGE, GREEN),
    "rename": lambda found: rename(found, "billing-2", CHANGE, GREEN),
    "relocate": lambda found: relocate(found, CHANGE, GREEN),
}


def planned(kind: str) -> FakeCluster:
    """Return a cluster of three consumers with the approved plan of a migration."""
    cluster = FakeCluster(3)
    pods = sorted(cluster.live(DEPLOYMENT), key=lambda pod: pod.member)
    links = tuple(MemberPod(pod.member, pod.name) for pod in pods)
    facts = cluster._deployment(DEPLOYMENT).facts
    taken = snapshot(QUEUES, [pod.member for pod in pods], pods=links, deployment=facts)
    found = ground(taken, "sha256:snapshot", SETTINGS)
    plan = plan_of(MIGRATIONS[kind](found), found, AT)
    put = stored(cluster, plan.steps, migration=kind)
    confirmed = replace(put.requests, confirmed=plan.confirmations)
    # The fake's own times: what the plan says of its age is not what is tested here.
    plan = replace(plan, made_at=put.plan.made_at, valid_until=put.plan.valid_until, snapshot=put.plan.snapshot)
    cluster.put(replace(put, plan=plan, requests=confirmed))
    if kind == "rename":
        cluster.green_group = "billing-2"
    return cluster


def switch(cluster: FakeCluster) -> Callable[[int], None]:
    """Let the group follow the other strategy once nobody of the old one is left."""

    def meanwhile(_: int) -> None:
        if not cluster.live(DEPLOYMENT):
            cluster.strategy = "AVG_BY_CIRCLE"

    return meanwhile


@pytest.mark.parametrize("kind", MIGRATIONS)
def test_a_migration_ends_in_the_new_state(kind: str) -> None:
    cluster = planned(kind)
    drive(cluster, meanwhile=switch(cluster) if kind == "strategy" else lambda _: None)
    status = cluster.status("plan-1")
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new"), status.message
    assert not twice(cluster)
    counts = {name: found.replicas for name, found in cluster.deployments.items()}
    assert counts == ({DEPLOYMENT: 3} if kind == "update" else {DEPLOYMENT: 0, GREEN: 3})
    assert cluster.lowest_ready == (3 if kind in ("update", "relocate") else 0)


@pytest.mark.parametrize("kind", MIGRATIONS)
@pytest.mark.parametrize("turns", [6, 14])
def test_a_migration_that_is_aborted_on_its_way_ends_in_the_old_state(kind: str, turns: int) -> None:
    cluster = planned(kind)

    def abort(number: int) -> None:
        if number == turns:
            cluster.ask("plan-1", abort=True)

    drive(cluster, meanwhile=abort)
    status = cluster.status("plan-1")
    assert status.ended in ("old", "nothing"), status.message
    assert {name: found.replicas for name, found in cluster.deployments.items()} == {DEPLOYMENT: 3}
