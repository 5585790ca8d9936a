"""A StatefulSet of real Kafka consumers with static ids: its last pods stop, its next ones are known by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.rollout.steps import AwaitReady, MarkVictims, StopConsumers
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import java_kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.loop_checks import check_grown, check_shrunk
from tests.loops import Loop, exactly, kafka_loop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

GROUP, PARTITIONS, RATE = "stateful-kafka", 12, 2.0
SETTINGS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000}


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    def container(logs: Path) -> Json:
        return java_kafka_consumer(
            kafka_cluster.bootstrap,
            group=GROUP,
            topic=GROUP,
            client_version=CLIENT,
            delivery_log=f"{logs}/$(POD_NAME).tsv",
            settings={**SETTINGS, "group.instance.id": "$(POD_NAME)"},
            service_ms=5,
        )

    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        tmp_path_factory.mktemp(GROUP),
        GROUP,
        container,
        partitions=PARTITIONS,
        rate=RATE,
        client=CLIENT,
        settings=SETTINGS,
        kind="StatefulSet",
    ) as loop:
        yield loop


def test_a_stateful_set_loses_its_last_pods_and_gains_known_ones(loop: Loop) -> None:
    """A static member that stops does not leave: the coordinator waits out its session, as the plan says."""
    check_shrunk(loop, exactly(2), 2)
    assert loop.pods() == ["app-0", "app-1"]
    check_grown(loop, exactly(4), 4)
    assert loop.pods() == ["app-0", "app-1", "app-2", "app-3"]
    stopped, grown = (change.plan for change in loop.changes)
    assert not [step for step in stopped.steps if isinstance(step, MarkVictims)]
    (stop,) = [step for step in stopped.steps if isinstance(step, StopConsumers)]
    assert [victim.pod for victim in stop.stopping or ()] == ["app-2"]
    assert stopped.target == grown.target == "StatefulSet app"
    ready = [step.time_limit_seconds for step in grown.steps if isinstance(step, AwaitReady)]
    assert sum(ready) == 600, "one pod starts after the other, each with the policy's 300 s"
    taken = SNAPSHOT.read(loop.snapshot(loop.write_policy(exactly(4))))
    assert taken.deployment is not None
    assert taken.deployment.ordinals is not None
    assert taken.deployment.ordinals.is_ordered
