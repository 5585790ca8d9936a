"""Real RocketMQ consumers in pods, a plan that waits until they have settled, and a broker that dies meanwhile."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.plan import PLAN, read_document
from planner.documents.policy import read_policy
from planner.rollout.migrations.migration import plan_of, read_context
from planner.rollout.migrations.update import update
from planner.rollout.steps import AwaitSettled
from planner.rollout.template import ContainerChange, Setting, TemplateChange
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.loops import ROCKETMQ_QUEUES, WAIT_S, Loop, exactly, rocketmq_loop
from tests.patience import PATIENT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP, OTHER = "away", "away-misspelt"
RATE = 4.0
"""Messages per second to each queue."""
LIMITS = exactly(3)
NOT_JOINED_S = 45


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[RocketMQCluster]:
    """A cluster of our own, as one of its brokers is killed."""
    with RocketMQCluster.start(NEW, brokers=2) as cluster:
        cluster.create_topic(GROUP, ROCKETMQ_QUEUES)
        yield cluster


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, rocketmq: RocketMQCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    folder, group = tmp_path_factory.mktemp(GROUP), {"GROUP": GROUP}
    with rocketmq_loop(
        control_plane_with_plans, rocketmq, folder, GROUP, 2, rate=RATE, environment=group, all_arrive=False
    ) as running:
        yield running


def test_a_broker_that_dies_while_the_group_settles_is_waited_for_and_named(
    loop: Loop, rocketmq: RocketMQCluster
) -> None:
    policy, dead = loop.write_policy(LIMITS), rocketmq.brokers[1]
    path = loop.plan(policy)
    name = str(read_document(path)["metadata"]["name"])
    applying = loop.start_apply(path, policy)
    try:
        loop.cluster.wait_until("awaitSettled", lambda: at_step(loop, name) == "awaitSettled", WAIT_S)
        dead.kill()
        named = f"{ROCKETMQ_QUEUES} queues of group {GROUP} are in no route: {GROUP}/{dead.name}/0"
        loop.cluster.wait_until("the missing queues' name", lambda: named in held(loop, name), WAIT_S)
        assert at_step(loop, name) == "awaitSettled"
        dead.start()
        said, wrong = applying.communicate(timeout=2 * WAIT_S)
    finally:
        applying.kill()
    assert applying.returncode == 0, (said, wrong)
    status = loop.status(name)
    assert (status["phase"], status["ended"]) == ("Succeeded", "new"), status
    assert loop.deployment()["spec"]["replicas"] == len(loop.pods()) == 3


def test_members_that_join_another_group_turn_the_plan_back_and_are_named(
    loop: Loop, rocketmq: RocketMQCluster
) -> None:
    """A new template with a misspelt group: its pods run, are ready, and never join."""
    loop.cluster.wait_until("an owner of each queue", lambda: is_shared_out(loop, rocketmq), WAIT_S)
    policy, before = loop.write_policy(LIMITS), loop.deployment()["spec"]["template"]
    taken, wanted = SNAPSHOT.read(loop.snapshot(policy)), read_policy(policy)
    found = read_context(taken, SNAPSHOT.digest(taken), wanted.rollout_settings)
    revision = int(loop.deployment()["metadata"]["annotations"]["deployment.kubernetes.io/revision"])
    change = TemplateChange((ContainerChange("main", env=(Setting("GROUP", OTHER),)),))
    made = plan_of(update(found, change, revision, surge=1), found, datetime.now(UTC))
    steps = tuple(
        replace(step, time_limit_seconds=NOT_JOINED_S) if isinstance(step, AwaitSettled) else step
        for step in made.steps
    )
    path = loop.folder / "misspelt.yaml"
    document = PLAN.document(replace(made, steps=steps), "misspelt", loop.namespace)
    path.write_text(PLAN.text(document), encoding="utf-8")
    applying = loop.start_apply(loop.approve(path), policy)
    try:
        said, wrong = applying.communicate(timeout=2 * WAIT_S)
    finally:
        applying.kill()
    assert applying.returncode == 1, (said, wrong)
    status = loop.status("misspelt")
    assert (status["phase"], status["ended"]) == ("RolledBack", "old"), status
    assert f"awaitSettled was not done within {NOT_JOINED_S} s" in status["message"]
    assert f"group {GROUP} has 0 of 3 members" in status["message"]
    assert loop.deployment()["spec"]["template"]["spec"] == before["spec"]


def is_shared_out(loop: Loop, rocketmq: RocketMQCluster) -> bool:
    """Return whether each queue of both brokers has one owner: members learn of a broker that is back within 50 s."""
    with RocketMQAdmin(rocketmq.name_server, limits=PATIENT) as admin:
        now = datetime.now(UTC)
        seen = observe_group(admin, cluster="DefaultCluster", group=GROUP, topics=[GROUP], at=now)
    owned = [queue for member in seen.members for queue in member.owned or ()]
    of_topic = [queue for queue in owned if queue.topic == GROUP]
    is_whole = len(of_topic) == ROCKETMQ_QUEUES * len(rocketmq.brokers) and len(seen.members) == len(loop.pods())
    return is_whole and sorted(owned) == sorted(seen.routes.read_queues) and not seen.problems


def at_step(loop: Loop, name: str) -> str | None:
    """Return the kind of the step that a plan is at."""
    begun = loop.status(name).get("steps") or [{}]
    return None if begun[-1].get("finishedAt") else begun[-1].get("kind")


def held(loop: Loop, name: str) -> str:
    """Return what a plan waits for."""
    return str(loop.status(name).get("held"))
