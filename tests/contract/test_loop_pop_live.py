"""Real RocketMQ consumers in pods that pop: scaled by ``planner`` from three to five to two; no queue has an owner."""

from collections.abc import Iterator

import pytest

from planner.documents.data import SNAPSHOT
from planner.rollout.steps import MarkVictims
from planner.simulation.candidates import shares_messages
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.deliveries import read_given
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.loops import ROCKETMQ_QUEUES, WAIT_S, Changed, Loop, exactly, rocketmq_loop
from tests.matrix.groups import POP_SETTINGS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP, RATE, EVERY_QUEUE = "poploop", 4.0, -1


@pytest.fixture(scope="module")
def loop(control_plane_with_plans: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with RocketMQCluster.start(NEW, settings=POP_SETTINGS) as rocketmq:
        rocketmq.create_topic(GROUP, ROCKETMQ_QUEUES)
        rocketmq.create_group(GROUP)
        for broker in rocketmq.brokers:
            remoting.pop(broker.address, GROUP, GROUP, EVERY_QUEUE)
        folder = tmp_path_factory.mktemp(GROUP)
        popping = {"set": "clientRebalance=false"}
        # What a pod had popped when it ended comes again out of the retry topic, by the offset that it has there.
        with rocketmq_loop(
            control_plane_with_plans, rocketmq, folder, GROUP, 3, rate=RATE, options=popping, by_message=True
        ) as running:
            yield running


def test_three_become_five_become_two_and_the_chosen_ones_stop(loop: Loop) -> None:
    """Red where the engine waits for owners that a group which pops does not have, or the plan names moved queues."""
    before = set(loop.pods())
    grown = changed_to(loop, 5)
    assert before < set(loop.pods()), "who was there stays"
    assert shares_messages(SNAPSHOT.read(loop.folder / "snapshot.json"))
    before = set(loop.pods())
    shrunk = changed_to(loop, 2)
    victims = {pod for step in shrunk.plan.steps if isinstance(step, MarkVictims) for pod in step.pods}
    assert set(loop.pods()) == before - victims
    for done, count in ((grown, 5), (shrunk, 2)):
        moved, busiest = done.figure("moved queues"), done.figure("busiest consumer")
        assert (moved["seenLow"], moved["seenHigh"]) == (0, 0)
        assert done.figure("settled after")["seenHigh"] is not None, done.status["verdict"]
        assert busiest["seenLow"] <= loop.rate / count / exactly(count).capacity <= busiest["seenHigh"], busiest
        assert (done.plan.forecast.moved_queues.fewest, done.plan.forecast.moved_queues.most) == (0, 0)
        assert done.plan.forecast.cost is not None, done.plan.forecast.unknowns
    loop.cluster.wait_until("both to be given messages", lambda: len(recent_takers(loop)) == len(loop.pods()), WAIT_S)


def changed_to(loop: Loop, count: int) -> Changed:
    """Have the planner plan and carry out another count; return what was seen."""
    policy = loop.write_policy(exactly(count))
    done = loop.apply(loop.plan(policy), policy)
    assert (done.status["phase"], done.status["ended"]) == ("Succeeded", "new"), done.status
    assert loop.deployment()["spec"]["replicas"] == len(loop.pods()) == count
    return done


def recent_takers(loop: Loop) -> set[str]:
    """Return who was given the newest messages: with 40 a second and few members, each of them."""
    newest = sorted(read_given(loop.logs), key=lambda one: one.at_s)[-200:]
    return {one.client for one in newest}
