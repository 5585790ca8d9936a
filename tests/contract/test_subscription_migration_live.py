"""Groups in pods whose subscription changes by ``planner migrate subscription``, on a real broker and control plane."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import libversion

from tests.clusters.kafka import KafkaCluster
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.loops import WAIT_S, Loop, exactly, kafka_loop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP, MORE, PARTITIONS, RATE, PODS = "subscribing", "subscribing-more", 6, 4.0, 3


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    kafka_cluster.create_topic(MORE, PARTITIONS)
    kafka_cluster.produce(MORE, dict.fromkeys(range(PARTITIONS), 10))

    def container(logs: Path) -> Json:
        log = f"{logs}/$(POD_NAME).tsv"
        made = kafka_consumer(kafka_cluster.bootstrap, group=GROUP, topic="$(TOPICS)", delivery_log=log)
        return {**made, "env": [*made["env"], {"name": "TOPICS", "value": GROUP}]}

    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        tmp_path_factory.mktemp(GROUP),
        GROUP,
        container,
        partitions=PARTITIONS,
        rate=RATE,
        client=f"librdkafka {libversion()[0]}",
        settings={},
    ) as running:
        yield running


def test_a_kafka_group_reads_a_second_topic_after_a_roll(loop: Loop) -> None:
    """Red where the new topic makes the executor take the group for one that changed by itself, or nobody reads it."""
    policy, before = loop.write_policy(exactly(PODS)), loop.pods()
    topics = ("--to", GROUP, "--to", MORE, "--env", f"TOPICS={GROUP},{MORE}")
    changed = loop.apply(loop.migrate(policy, "subscription", *topics), policy)
    assert (changed.status["phase"], changed.status["ended"]) == ("Succeeded", "new"), changed.status
    assert not set(before) & set(loop.pods())

    def both_are_read() -> bool:
        return {(topic, str(number)) for topic in (GROUP, MORE) for number in range(PARTITIONS)} <= loop.owners().keys()

    loop.cluster.wait_until("every partition of both topics to be read", both_are_read, WAIT_S)
