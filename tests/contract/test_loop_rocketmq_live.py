"""Real RocketMQ consumers in pods, scaled, updated and turned back by ``planner``; every delivery is looked at."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.clusters.deliveries import Lane
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import rocketmq_consumer
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.loop_checks import check_duplicates_forecast, check_grown, check_shrunk, check_turned_back, check_updated
from tests.loops import Limits, Loop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

Clusters = Callable[[str], RocketMQCluster]
GROUP = "loop"
EACH, RATE, LONG_S = 5, 4.0, 3_000.0
"""Queues on each of two brokers, messages per second to each of them, and for longer than any of this takes."""


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, rocketmq_cluster: Clusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    cluster, rocketmq = control_plane_with_plans, rocketmq_cluster(NEW)
    rocketmq.create_topic(GROUP, EACH)
    namespace, folder = cluster.namespace(GROUP), tmp_path_factory.mktemp(GROUP)

    def policy(limits: Limits) -> str:
        return (
            "apiVersion: consumerplanner.dev/v1alpha1\n"
            "kind: ConsumerScalingPolicy\n"
            f"metadata: {{name: {GROUP}, namespace: {namespace}}}\n"
            "spec:\n"
            f"  source: {{system: rocketmq, nameServers: ['{rocketmq.name_server}'], cluster: DefaultCluster, "
            f"group: {GROUP}}}\n" + limits.spec(cluster.kubeconfig)
        )

    def produced() -> Mapping[Lane, int]:
        return {(GROUP, broker, str(queue)): count for (broker, queue), count in rocketmq.produced(GROUP).items()}

    loop = Loop(cluster, namespace, folder, policy, produced, RATE * len(rocketmq.brokers) * EACH)
    container = rocketmq_consumer(
        rocketmq.name_server,
        group=GROUP,
        topics=[GROUP],
        client_version=NEW,
        options={"delivery-log": f"{loop.logs}/$(POD_NAME).tsv", "service-ms": 20, "threads": 4},
    )
    flat = ((0.0, RATE), (LONG_S, RATE))
    lanes = [QueueCurve(GROUP, broker.name, queue, flat) for broker in rocketmq.brokers for queue in range(EACH)]
    loop.start(3, container)
    producer = rocketmq.load(NEW).start_producer(lanes)
    yield loop
    producer.stop()
    loop.check_nothing_lost()
    loop.end()


def test_three_become_five_become_two_and_the_chosen_ones_stop(loop: Loop) -> None:
    check_grown(loop, Limits(1, 5, 11.0), 5)
    check_shrunk(loop, Limits(1, 5, 30.0), 2)


def test_a_new_configuration_rolls_through_with_more_pods_first(loop: Loop) -> None:
    check_updated(loop, Limits(1, 5, 30.0))
    check_duplicates_forecast(loop)


def test_an_abort_amid_more_consumers_brings_count_and_owners_back(loop: Loop) -> None:
    check_turned_back(loop, Limits(1, 5, 11.0))
