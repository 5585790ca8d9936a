"""The fake cluster keeps what the ports promise: see ``tests/port_contract.py``."""

from dataclasses import replace

import pytest

from planner.execution.effects import DeploymentEffect
from planner.execution.ports import StoredPlan
from planner.rollout.steps import MovedQueues, StartConsumers
from tests.pod_groups import plan_for
from tests.port_contract import APP, Facts, PortContract
from tests.unit.execution.fake import FakeCluster, FakeLeases, FakePlans, FakeWorld


class FakePortCluster:
    def __init__(self) -> None:
        self.fake = FakeCluster(replicas=0, name=APP)
        self.plans, self.leases, self._effects = FakePlans(self.fake), FakeLeases(self.fake), FakeWorld(self.fake)
        self._created = 0

    def perform(self, effect: DeploymentEffect) -> None:
        self._effects.perform(effect)

    def deployment(self, name: str) -> Facts | None:
        found = self.fake.deployments.get(name)
        if found is None:
            return None
        return Facts(found.uid, str(found.version), found.replicas, found.claim, found.revision)

    def touch(self, name: str) -> None:
        self.fake.touch(name)

    def create_plan(self, name: str) -> StoredPlan:
        self._created += 1
        plan = plan_for(APP, ["a", "b"], [StartConsumers(2, 3, 60, MovedQueues(0, 8), undo="set 2")])
        stored = StoredPlan(name, f"uid-{self._created}", plan, "sha256:of-the-spec", "1")
        self.fake.put(replace(stored, resource_version=self.fake._next()))
        return self.fake.plans[name]

    def delete_plan(self, name: str) -> None:
        self.fake.ask(name, is_deleted=True)


class TestFakePorts(PortContract):
    @pytest.fixture
    def cluster(self) -> FakePortCluster:
        return FakePortCluster()
