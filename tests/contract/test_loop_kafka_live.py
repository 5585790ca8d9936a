"""Real Kafka consumers in pods, scaled, updated and turned back by ``planner``; every delivery is looked at."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest
from confluent_kafka import libversion

from planner.model.queues import TopicPartition
from planner.sources.kafka import KafkaAdmin, observe_group
from tests.clusters.deliveries import Lane
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import PartitionCurve
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import kafka_consumer
from tests.loop_checks import (
    check_duplicates_forecast,
    check_grown,
    check_shrunk,
    check_taken_over,
    check_turned_back,
    check_updated,
)
from tests.loops import LONG_S, Limits, Loop, exactly

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP = "loop"
PARTITIONS, RATE = 10, 4.0
"""How many, and messages per second to each of them."""
SETTINGS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 30_000, "heartbeat.interval.ms": 1000}


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    cluster = control_plane_with_plans
    kafka_cluster.create_topic(GROUP, PARTITIONS)
    namespace, folder = cluster.namespace("loop-kafka"), tmp_path_factory.mktemp("loop-kafka")
    servers = kafka_cluster.bootstrap

    def policy(limits: Limits) -> str:
        source = f"system: kafka, bootstrapServers: {servers.split(',')}, cluster: test"
        return limits.policy(GROUP, namespace, source, cluster.kubeconfig) + (
            f"  timing: {{clientVersion: librdkafka {libversion()[0]}, brokerVersion: {kafka_cluster.version}, "
            f"settings: {json.dumps(SETTINGS)}}}\n"
        )

    def produced() -> Mapping[Lane, int]:
        with KafkaAdmin(servers.split(",")) as admin:
            ends = admin.end_offsets(TopicPartition(GROUP, number) for number in range(PARTITIONS))
        return {(one.topic, str(one.partition)): end for one, end in ends.items() if isinstance(end, int)}

    def members() -> int:
        with KafkaAdmin(servers.split(",")) as admin:
            return len(observe_group(admin, cluster=None, group=GROUP, topics=None, at=datetime.now(UTC)).members)

    loop = Loop(cluster, namespace, folder, policy, produced, members, RATE * PARTITIONS)
    container = kafka_consumer(
        servers,
        group=GROUP,
        topic=GROUP,
        delivery_log=f"{loop.logs}/$(POD_NAME).tsv",
        settings=SETTINGS,
    )
    loop.start(3, container)
    producing = kafka_cluster.load(CLIENT).start()
    flat = ((0.0, RATE), (LONG_S, RATE))
    producing.produce("loop-producer", [PartitionCurve(GROUP, number, flat) for number in range(PARTITIONS)])
    loop.await_deliveries(PARTITIONS)
    yield loop
    producing.stop()
    loop.check_nothing_lost()
    loop.end()


def test_three_become_five_become_two_and_the_chosen_ones_stop(loop: Loop) -> None:
    check_grown(loop, exactly(5), 5)
    check_shrunk(loop, exactly(2), 2)


def test_a_new_configuration_rolls_through_with_more_pods_first(loop: Loop) -> None:
    check_updated(loop, exactly(2))
    check_duplicates_forecast(loop)


def test_an_abort_amid_more_consumers_brings_count_and_owners_back(loop: Loop) -> None:
    check_turned_back(loop, exactly(5))


def test_who_takes_over_says_what_it_did_not_see(loop: Loop) -> None:
    check_taken_over(loop, exactly(5), 5)
