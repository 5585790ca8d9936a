"""Real Kafka consumers in pods, scaled, updated and turned back by ``planner``; every delivery is looked at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import libversion

from tests.clusters.kafka import KafkaCluster
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.loop_checks import (
    check_duplicates_forecast,
    check_refreshed,
    check_shrunk,
    check_taken_over,
    check_turned_back,
    check_updated,
)
from tests.loops import Loop, exactly, kafka_loop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP = "loop-kafka"
PARTITIONS, RATE = 10, 4.0
"""How many, and messages per second to each of them."""
SETTINGS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 30_000, "heartbeat.interval.ms": 1000}


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    def container(logs: Path) -> Json:
        log, servers = f"{logs}/$(POD_NAME).tsv", kafka_cluster.bootstrap
        return kafka_consumer(servers, group=GROUP, topic=GROUP, delivery_log=log, settings=SETTINGS)

    folder, client = tmp_path_factory.mktemp(GROUP), f"librdkafka {libversion()[0]}"
    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        folder,
        GROUP,
        container,
        partitions=PARTITIONS,
        rate=RATE,
        client=client,
        settings=SETTINGS,
    ) as loop:
        yield loop


def test_three_become_five_become_two_and_the_chosen_ones_stop(loop: Loop) -> None:
    check_refreshed(loop, exactly(5), 5)
    check_shrunk(loop, exactly(2), 2)


def test_a_new_configuration_rolls_through_with_more_pods_first(loop: Loop) -> None:
    check_updated(loop, exactly(2))
    check_duplicates_forecast(loop)


def test_an_abort_amid_more_consumers_brings_count_and_owners_back(loop: Loop) -> None:
    check_turned_back(loop, exactly(5))


def test_who_takes_over_says_what_it_did_not_see(loop: Loop) -> None:
    check_taken_over(loop, exactly(5), 5)
