"""etcd is restored from an older backup under a running ``planner apply``: no write of the lost future gets in.

The server's versions go back, too. What an executor observed before the restore has versions that the server has not
given yet; each of its writes names one, and is refused.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.deployments.api import RolloutApi
from planner.deployments.effects import perform
from planner.deployments.leases import ClusterLeases
from planner.deployments.plans import ClusterPlans
from planner.execution.effects import DeploymentEffect, DropClaim, SetClaim, SetReplicas
from planner.execution.lease import lease_name
from planner.execution.observation import Claim
from planner.execution.ports import ConflictError
from planner.rollout.steps import PauseForPerson
from tests.clusters.kubernetes import ControlPlane
from tests.faults.executor import END_S
from tests.faults.kinds import start
from tests.faults.observer import Record
from tests.faults.place import APP, CLAIM, Place, install_definitions, place
from tests.faults.running import PLAN, Run
from tests.pod_groups import GROUP

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

BEFORE, AFTER = 2, 3
LEASE = lease_name(GROUP)
STEPS = (PauseForPerson("Shall it begin?", 600), *start(BEFORE, AFTER), PauseForPerson("Is it well?", 600))


@pytest.fixture
def cluster() -> Iterator[ControlPlane]:
    """A control plane of our own: what others made since the backup would be lost."""
    with ControlPlane.start() as made:
        install_definitions(made)
        yield made


def steps_begun(where: Place) -> int:
    return len(where.status(PLAN).get("steps") or [])


def content(where: Place) -> tuple[int, str | None]:
    found = where.deployment() or {}
    return found["spec"]["replicas"], (found["metadata"].get("annotations") or {}).get(CLAIM)


def test_a_plan_goes_on_from_an_older_etcd_and_no_write_of_the_lost_future_gets_in(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    with place(cluster, tmp_path, BEFORE) as where, RolloutApi.connect(cluster.kubeconfig) as api:
        run = Run(cluster, where, where.write(PLAN, where.fitting(STEPS)), Record(BEFORE))
        plans, leases = ClusterPlans(api, where.namespace), ClusterLeases(api, where.namespace)
        run.start()
        try:
            run.await_step("pauseForPerson")
            before = content(where)
            assert before[0] == BEFORE
            cluster.back_up_etcd(tmp_path / "backup")
            where.annotate(PLAN, {"consumerplanner.dev/answer": "1"})
            cluster.wait_until("the second question", lambda: steps_begun(where) == len(STEPS), END_S)
            assert content(where)[0] == AFTER
            lost = plans.read(PLAN), leases.read(LEASE), (where.deployment() or {})["metadata"]["resourceVersion"]

            cluster.restore_etcd(tmp_path / "backup")
            stored, lease, version = lost
            assert stored is not None
            assert lease is not None
            claim = Claim(stored.key, 1)
            late: tuple[DeploymentEffect, ...] = (
                SetReplicas(APP, 9, claim, version),
                SetClaim(APP, claim, version),
                DropClaim(APP, version),
            )
            for effect in late:
                with pytest.raises(ConflictError):
                    perform(api, where.namespace, effect)
            with pytest.raises(ConflictError):
                plans.write_status(stored, stored.status)
            with pytest.raises(ConflictError):
                leases.write(LEASE, lease, "of the lost future", lease.renewed_at)

            old = leases.read(LEASE)
            assert old is not None
            cluster.wait_until("a reconcile of the old plan", lambda: leases.read(LEASE) != old, END_S)
            # The answer is lost with the rest: a person is asked once more, and nothing is done without him.
            assert (steps_begun(where), content(where)) == (1, before)
            assert run.executors[-1].is_running, run.executors[-1].said

            where.annotate(PLAN, {"consumerplanner.dev/answer": f"1,{len(STEPS)}"})
            assert run.executors[-1].wait() == 0, run.executors[-1].said
            assert where.status(PLAN)["phase"] == "Succeeded"
            assert content(where) == (AFTER, None)
            where.await_ready(AFTER)
        finally:
            for executor in run.executors:
                executor.kill()
