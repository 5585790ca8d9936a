from dataclasses import replace
from datetime import timedelta

import pytest

from planner.execution.lease import DURATION_S, holder_name, is_free, lease_name, may_act, needs_renewal
from planner.execution.ports import Lease
from planner.execution.reconcile import Outcome, run_reconcile
from planner.rollout.plan import GroupRef
from tests.unit.execution.fake import START, FakeCluster
from tests.unit.execution.worlds import SCENARIOS, drive, ports, world

ME, OTHER = holder_name("me", "plan"), holder_name("other", "plan")
LEASE = Lease(ME, START, DURATION_S, 0, "1")


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_a_lease_is_free_for_its_holder_when_it_was_given_back_and_when_it_ran_out() -> None:
    assert is_free(None, OTHER, START)
    assert is_free(LEASE, ME, START)
    assert not is_free(LEASE, OTHER, START + after(DURATION_S - 1))
    assert is_free(LEASE, OTHER, START + after(DURATION_S))
    assert is_free(replace(LEASE, holder=None), OTHER, START)
    assert is_free(LEASE, OTHER, START - after(3600)), "a wrong clock must not keep all out"


def test_one_executor_does_not_drive_two_plans_of_a_group() -> None:
    assert not is_free(LEASE, holder_name("me", "other plan"), START)


@pytest.mark.parametrize(("age", "renew"), [(0, False), (9, False), (10, True), (-5, True)])
def test_a_lease_is_renewed_in_time_and_never_trusted_from_the_future(age: float, renew: bool) -> None:
    assert needs_renewal(LEASE, ME, START + after(age)) is renew


def test_no_effect_is_begun_with_a_lease_that_may_run_out_before_its_answer() -> None:
    assert may_act(LEASE, ME, START + after(17))
    assert not may_act(LEASE, ME, START + after(18))
    assert not may_act(LEASE, OTHER, START)


def test_groups_have_leases_of_their_own_under_names_that_kubernetes_takes() -> None:
    name = lease_name(GroupRef("rocketmq", "DefaultCluster", "%RETRY%_Group"))
    assert name != lease_name(GroupRef("kafka", "DefaultCluster", "%RETRY%_Group"))
    assert name.replace("-", "").isalnum()
    assert name == name.lower()


def asleep(cluster: FakeCluster, seconds: float) -> None:
    """The executor sleeps between its look and the effect of it: its process was stopped, say."""
    slept: list[float] = []

    def sleep(what: str) -> None:
        if what == "look" and not slept and cluster.status("plan-1").steps:
            slept.append(seconds)
            cluster.now_s += seconds

    through = ports(cluster, after=sleep)
    while not slept:
        turned = run_reconcile(through, "plan-1", "sleeper")
        cluster.advance(0.2)
    assert turned.outcome is Outcome.RETRY
    assert "lease" in turned.why


def test_an_executor_that_slept_too_long_after_its_look_does_not_act_on_it() -> None:
    cluster = world(SCENARIOS[0])
    asleep(cluster, 25.0)
    assert not cluster.touched
    drive(cluster, "other")
    assert len(cluster.touched) == 2


def test_a_plan_that_another_executor_drives_is_left_to_it() -> None:
    cluster = world(SCENARIOS[0])
    for _ in range(4):
        run_reconcile(ports(cluster), "plan-1", "one")
    version = cluster.plans["plan-1"].resource_version
    assert run_reconcile(ports(cluster), "plan-1", "two").outcome is Outcome.LEASED
    assert cluster.plans["plan-1"].resource_version == version
