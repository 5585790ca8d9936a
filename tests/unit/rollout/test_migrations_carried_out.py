"""Migrations as they are planned, carried out by the engine on the fake cluster: to the end, or back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.execution.phases import Phase
from planner.model.snapshot import MemberPod
from planner.rollout.migrations.cluster import cluster
from planner.rollout.migrations.green import Green
from planner.rollout.migrations.migration import Migration, MigrationContext, plan_of, read_context
from planner.rollout.migrations.relocate import relocate
from planner.rollout.migrations.rename import rename
from planner.rollout.migrations.requests import ResetRequest
from planner.rollout.migrations.reset import reset
from planner.rollout.migrations.strategy import strategy
from planner.rollout.migrations.update import update
from planner.rollout.settings import RolloutSettings
from planner.rollout.steps import PauseForPerson
from planner.rollout.template import ContainerChange, TemplateChange
from tests.builders import AT, snapshot
from tests.unit.execution.fake import QUEUES, FakeCluster
from tests.unit.execution.worlds import DEPLOYMENT, GREEN, drive, stored, twice

CHANGE = TemplateChange((ContainerChange("app", image="app:2"),))
SETTINGS = RolloutSettings("billing", DEPLOYMENT)
MIGRATIONS: dict[str, Callable[[MigrationContext], Migration]] = {
    "update": lambda found: update(found, CHANGE, 1),
    "strategy": lambda found: strategy(found, Green(GREEN, CHANGE, "AVG_BY_CIRCLE")),
    "rename": lambda found: rename(found, "billing-2", CHANGE, GREEN),
    "relocate": lambda found: relocate(found, CHANGE, GREEN),
    "cluster": lambda found: cluster(found, "cluster-b", CHANGE, GREEN),
    "reset": lambda found: reset(found, ResetRequest(to=AT)),
}
ELSEWHERE = {"rename": "billing-2", "cluster": "billing in cluster-b"}
"""Which group the green consumers join, as the fake has one cluster only."""
KEEPS = ("update", "reset")
"""Migrations that stay in the group's own Deployment."""


def planned(kind: str) -> FakeCluster:
    """Return a cluster of three consumers with the approved plan of a migration."""
    fake = FakeCluster(3)
    pods = sorted(fake.live(DEPLOYMENT), key=lambda pod: pod.member)
    links = tuple(MemberPod(pod.member, pod.name) for pod in pods)
    facts = fake._deployment(DEPLOYMENT).facts
    taken = snapshot(QUEUES, [pod.member for pod in pods], pods=links, deployment=facts)
    found = read_context(taken, "sha256:snapshot", SETTINGS)
    plan = plan_of(MIGRATIONS[kind](found), found, AT)
    put = stored(fake, plan.steps, migration=kind)
    answers = tuple(index for index, step in enumerate(plan.steps) if isinstance(step, PauseForPerson))
    confirmed = replace(put.requests, confirmed=plan.confirmations, answered=answers)
    # The fake's own times: what the plan says of its age is not what is tested here.
    plan = replace(plan, made_at=put.plan.made_at, valid_until=put.plan.valid_until, snapshot=put.plan.snapshot)
    fake.put(replace(put, plan=plan, requests=confirmed))
    if kind in ELSEWHERE:
        fake.green_group = ELSEWHERE[kind]
    return fake


def switch(fake: FakeCluster) -> Callable[[int], None]:
    """Let the group follow the other strategy once nobody of the old one is left."""

    def meanwhile(_: int) -> None:
        if not fake.live(DEPLOYMENT):
            fake.strategy = "AVG_BY_CIRCLE"

    return meanwhile


@pytest.mark.parametrize("kind", MIGRATIONS)
def test_a_migration_ends_in_the_new_state(kind: str) -> None:
    fake = planned(kind)
    drive(fake, meanwhile=switch(fake) if kind == "strategy" else lambda _: None)
    status = fake.status("plan-1")
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new"), status.message
    assert not twice(fake)
    counts = {name: found.replicas for name, found in fake.deployments.items()}
    assert counts == ({DEPLOYMENT: 3} if kind in KEEPS else {DEPLOYMENT: 0, GREEN: 3})
    assert fake.lowest_ready == (3 if kind in ("update", "relocate", "cluster") else 0)


@pytest.mark.parametrize("kind", MIGRATIONS)
@pytest.mark.parametrize("turns", [6, 14])
def test_a_migration_that_is_aborted_on_its_way_ends_in_the_old_state(kind: str, turns: int) -> None:
    fake = planned(kind)
    passed = False

    def abort(number: int) -> None:
        nonlocal passed
        if number == turns:
            passed = fake.offsets.get("billing") == "resetOffsets"
            fake.ask("plan-1", abort=True)

    drive(fake, meanwhile=abort)
    status = fake.status("plan-1")
    # Once the group's own offsets are set there is no way back, and the plan says so.
    assert status.ended in (("new",) if passed else ("old", "nothing")), status.message
    assert bool(status.surprises) is passed
    assert {name: found.replicas for name, found in fake.deployments.items()} == {DEPLOYMENT: 3}


def test_a_group_that_was_set_to_a_time_is_not_set_back() -> None:
    fake = planned("reset")

    def abort(_: int) -> None:
        if fake.offsets.get("billing") == "resetOffsets":
            fake.ask("plan-1", abort=True)

    drive(fake, meanwhile=abort)
    status = fake.status("plan-1")
    assert (status.ended, fake.offsets["billing"]) == ("new", "resetOffsets")
    assert len(status.surprises) == 1
