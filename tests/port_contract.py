"""What the engine's ports promise, asked by one class of the fake cluster and of a real API server.

``tests/unit/execution/test_port_contract.py`` and ``tests/contract/test_port_contract_live.py`` give it a ``cluster``
each. What the engine is tested with can so not drift from what it works on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest

from planner.execution.effects import (
    Create,
    Delete,
    DeploymentEffect,
    DropClaim,
    MarkPods,
    RestoreTemplate,
    SetClaim,
    SetReplicas,
    SetTemplate,
)
from planner.execution.observation import Claim
from planner.execution.phases import Phase
from planner.execution.ports import ConflictError, Leases, PlanStore, StoredPlan
from planner.rollout.steps import CreateDeployment, MovedQueues, UpdateTemplate
from planner.rollout.template import ContainerChange, TemplateChange

APP = "app"
CLAIM = Claim("plan-1/uid-1", 0)
CHANGE = TemplateChange((ContainerChange("main", image="app:2"),))
UPDATE = UpdateTemplate(
    CHANGE, 1, max_surge=1, max_unavailable=0, from_revision=1, time_limit_seconds=60, forecast=MovedQueues()
)
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Facts:
    """A Deployment as the server has it; ``template`` is anything that is equal where the templates are."""

    uid: str
    version: str
    replicas: int
    claim: str | None
    template: object

    @property
    def content(self) -> tuple[int, str | None, object]:
        """All but the version, which others move on as they like."""
        return self.replicas, self.claim, self.template


class PortCluster(Protocol):
    """One side of the contract: a Deployment ``app`` without pods, no plan and no lease."""

    plans: PlanStore
    leases: Leases

    def perform(self, effect: DeploymentEffect) -> None:
        """Perform it through the port."""

    def deployment(self, name: str) -> Facts | None:
        """Return the Deployment past the port."""

    def touch(self, name: str) -> None:
        """Have somebody else write the Deployment."""

    def create_plan(self, name: str) -> StoredPlan:
        """Create a plan, pending, past the port."""

    def delete_plan(self, name: str) -> None:
        """Have a person delete it."""


def facts(cluster: PortCluster, name: str = APP) -> Facts:
    """Return a Deployment that has to be there."""
    found = cluster.deployment(name)
    assert found is not None
    return found


def read_plan(cluster: PortCluster, name: str = "p") -> StoredPlan:
    """Return a plan that has to be there."""
    found = cluster.plans.read(name)
    assert found is not None
    return found


def insist(cluster: PortCluster, make: Callable[[str], DeploymentEffect], name: str = APP) -> None:
    """Have the effect at the present version; the Deployment's controller may be faster some times."""
    for _ in range(20):
        version = facts(cluster, name).version
        try:
            cluster.perform(make(version))
        except ConflictError:
            assert facts(cluster, name).version != version
        else:
            return
    raise AssertionError("others were faster twenty times")


class PortContract:
    """Every promise of ``planner/execution/ports.py`` that the engine builds on."""

    def test_a_lease_goes_to_the_first_and_counts_its_holders(self, cluster: PortCluster) -> None:
        leases = cluster.leases
        assert leases.read("group") is None
        first = leases.write("group", None, "one", NOW)
        assert (first.holder, first.transitions, first.renewed_at) == ("one", 0, NOW)
        with pytest.raises(ConflictError):
            leases.write("group", None, "two", NOW)
        renewed = leases.write("group", first, "one", NOW + timedelta(seconds=10))
        assert (renewed.transitions, renewed.renewed_at) == (0, NOW + timedelta(seconds=10))
        with pytest.raises(ConflictError):
            leases.write("group", first, "two", NOW)
        free = leases.write("group", renewed, None, NOW)
        assert (free.holder, free.transitions, leases.read("group")) == (None, 0, free)
        second = leases.write("group", free, "two", NOW)
        assert (second.holder, second.transitions) == ("two", 1)
        assert leases.write("group", second, "three", NOW).transitions == 2, "taken over once it has run out"

    def test_a_status_is_kept_whole_and_only_by_who_has_read_the_newest(self, cluster: PortCluster) -> None:
        assert cluster.plans.read("p") is None
        stored = cluster.create_plan("p")
        assert stored.status.observed_generation == -1, "nobody has looked at it"
        status = stored.status.enter(Phase.APPROVED, "by a person", NOW)
        cluster.plans.write_status(stored, status)
        found = read_plan(cluster)
        kept = replace(found.status, conditions=(), observed_generation=None, kind=None, progress=None)
        assert kept == replace(status, observed_generation=None), "all but what the store adds for readers"
        assert (found.uid, found.digest, found.key) == (stored.uid, stored.digest, stored.key)
        assert found.resource_version != stored.resource_version
        with pytest.raises(ConflictError):
            cluster.plans.write_status(stored, stored.status.enter(Phase.REFUSED, "too late", NOW))
        assert read_plan(cluster) == found

    def test_a_status_of_a_plan_that_is_gone_is_a_conflict(self, cluster: PortCluster) -> None:
        stored = cluster.create_plan("p")
        cluster.delete_plan("p")
        assert cluster.plans.read("p") is None, "nothing waits without a finalizer"
        with pytest.raises(ConflictError):
            cluster.plans.write_status(stored, stored.status.enter(Phase.APPROVED, "by a person", NOW))

    def test_a_finalizer_keeps_a_deleted_plan_until_it_is_taken_away(self, cluster: PortCluster) -> None:
        stored = cluster.create_plan("p")
        cluster.plans.add_finalizer("p")
        assert read_plan(cluster).has_finalizer
        cluster.plans.remove_finalizer(stored)
        assert not read_plan(cluster).has_finalizer, "the plan itself stays: nobody deleted it"
        cluster.plans.remove_finalizer(stored)
        cluster.plans.add_finalizer("p")
        cluster.delete_plan("p")
        assert read_plan(cluster).requests.is_deleted
        cluster.plans.remove_finalizer(stored)
        assert cluster.plans.read("p") is None
        cluster.plans.remove_finalizer(stored)

    def test_a_plan_in_progress_keeps_its_finalizer(self, cluster: PortCluster) -> None:
        waiting = cluster.create_plan("p")
        cluster.plans.add_finalizer("p")
        for phase, is_kept in ((Phase.APPROVED, True), (Phase.RUNNING, True), (Phase.VERIFYING, True)):
            found = read_plan(cluster)
            cluster.plans.write_status(found, found.status.enter(phase, "goes on", NOW))
            if phase is not Phase.APPROVED:
                cluster.plans.remove_finalizer(waiting)
            assert read_plan(cluster).has_finalizer is is_kept, phase
        found = read_plan(cluster)
        cluster.plans.write_status(found, found.status.enter(Phase.SUCCEEDED, "as planned", NOW))
        cluster.plans.remove_finalizer(waiting)
        assert not read_plan(cluster).has_finalizer

    def test_a_plan_that_is_over_gets_no_finalizer(self, cluster: PortCluster) -> None:
        """Red when an executor that stood still changes a plan after its end, whose deletion then waits for it."""
        stored = cluster.create_plan("p")
        cluster.plans.write_status(stored, stored.status.enter(Phase.REFUSED, "withdrawn", NOW))
        found = read_plan(cluster)
        cluster.plans.add_finalizer("p")
        assert read_plan(cluster) == found

    def test_a_finalizer_of_another_plan_of_the_name_stays(self, cluster: PortCluster) -> None:
        former = cluster.create_plan("p")
        cluster.delete_plan("p")
        cluster.create_plan("p")
        cluster.plans.add_finalizer("p")
        cluster.plans.remove_finalizer(former)
        assert read_plan(cluster).has_finalizer

    def test_claim_and_count_are_written_together(self, cluster: PortCluster) -> None:
        insist(cluster, lambda version: SetClaim(APP, CLAIM, version))
        assert (facts(cluster).replicas, facts(cluster).claim) == (0, str(CLAIM))
        undoing = Claim("plan-1/uid-1", 0, is_undoing=True)
        insist(cluster, lambda version: SetReplicas(APP, 1, undoing, version))
        assert (facts(cluster).replicas, facts(cluster).claim) == (1, str(undoing))
        insist(cluster, lambda version: DropClaim(APP, version))
        assert (facts(cluster).replicas, facts(cluster).claim) == (1, None)

    def test_an_effect_on_what_has_changed_is_a_conflict_and_nothing_is_done(self, cluster: PortCluster) -> None:
        old = facts(cluster).version
        cluster.touch(APP)
        before = facts(cluster)
        late: tuple[DeploymentEffect, ...] = (
            SetClaim(APP, CLAIM, old),
            DropClaim(APP, old),
            SetReplicas(APP, 5, CLAIM, old),
            SetTemplate(APP, UPDATE, CLAIM, old),
            RestoreTemplate(APP, 1, CLAIM, old),
            Delete(APP, before.uid, old),
            Create(APP, CreateDeployment(APP, 60), APP, CLAIM),
            SetReplicas("gone", 5, CLAIM, old),
        )
        for effect in late:
            with pytest.raises(ConflictError):
                cluster.perform(effect)
        with pytest.raises(ConflictError):
            cluster.perform(Delete(APP, "another", facts(cluster).version))
        cluster.perform(MarkPods(APP, (("gone", "uid", -5),)))
        cluster.perform(Delete("gone", before.uid, old))
        assert facts(cluster).content == before.content

    def test_a_template_comes_back_as_it_was(self, cluster: PortCluster) -> None:
        before = facts(cluster)
        insist(cluster, lambda version: SetTemplate(APP, UPDATE, CLAIM, version))
        changed = facts(cluster)
        assert changed.template != before.template
        assert (changed.replicas, changed.claim) == (before.replicas, str(CLAIM))
        insist(cluster, lambda version: RestoreTemplate(APP, 1, CLAIM, version))
        assert facts(cluster).template == before.template

    def test_a_created_deployment_is_claimed_and_empty_and_only_it_is_deleted(self, cluster: PortCluster) -> None:
        cluster.perform(Create("green", CreateDeployment("green", 60, CHANGE), APP, CLAIM))
        green = facts(cluster, "green")
        assert (green.replicas, green.claim) == (0, str(CLAIM))
        assert green.uid != facts(cluster).uid
        insist(cluster, lambda version: Delete("green", green.uid, version), "green")
        assert cluster.deployment("green") is None
        assert cluster.deployment(APP) is not None
