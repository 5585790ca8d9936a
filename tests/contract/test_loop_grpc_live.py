"""Real gRPC consumers of RocketMQ 5 in pods, behind a proxy: scaled by ``planner`` from two to four to one."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from planner.documents.data import SNAPSHOT
from planner.simulation.candidates import shares_messages
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import grpc_container
from tests.clusters.rocketmq import FOR_POP, NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.loops import LONG_S, Limits, Loop, exactly
from tests.patience import PATIENT, members_known

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP, QUEUES, RATE, SERVICE_MS = "grpcloop", 4, 5.0, 20


@pytest.fixture(scope="module")
def loop(control_plane_with_plans: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    cluster = control_plane_with_plans
    with RocketMQCluster.start(NEW, brokers=1, settings=FOR_POP) as rocketmq:
        proxy = rocketmq.start_proxy()
        rocketmq.create_topic(GROUP, QUEUES)
        rocketmq.create_group(GROUP)
        namespace, named = cluster.namespace(GROUP), f"nameServers: ['{rocketmq.name_server}']"

        def policy(limits: Limits) -> str:
            source = f"system: rocketmq, {named}, proxies: ['{proxy.remoting}'], cluster: DefaultCluster"
            return limits.policy(GROUP, namespace, source, cluster.kubeconfig)

        def members() -> int:
            with RocketMQAdmin(rocketmq.name_server, proxies=[proxy.remoting], limits=PATIENT) as admin:
                return members_known(
                    lambda: observe_group(admin, cluster=None, group=GROUP, topics=None, at=datetime.now(UTC))
                )

        running = Loop(
            cluster, namespace, tmp_path_factory.mktemp(GROUP), policy, dict, members, RATE * QUEUES, by_message=True
        )
        running.start(2, grpc_container(proxy.endpoints, group=GROUP, service_ms=SERVICE_MS))
        flat = ((0.0, RATE), (LONG_S, RATE))
        rocketmq.load(NEW).start_producer([QueueCurve(GROUP, "broker-a", queue, flat) for queue in range(QUEUES)])
        yield running
        running.end()


def test_two_become_four_become_one(loop: Loop) -> None:
    """Red where the engine waits for owners, or for members that brokers do not list and proxies do."""
    for count in (4, 1):
        policy = loop.write_policy(exactly(count))
        path = loop.plan(policy)
        assert shares_messages(SNAPSHOT.read(loop.folder / "snapshot.json"))
        changed = loop.apply(path, policy)
        assert (changed.status["phase"], changed.status["ended"]) == ("Succeeded", "new"), changed.status
        assert loop.deployment()["spec"]["replicas"] == len(loop.pods()) == count
        moved = changed.figure("moved queues")
        assert (moved["seenLow"], moved["seenHigh"]) == (0, 0)
        loop.cluster.wait_until("the members of the pods", lambda count=count: loop.members() == count, LONG_S)
