"""Real consumers of a Kafka share group (KIP-932) in pods, scaled by ``planner`` from three to five to two."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import libversion
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from planner.documents.data import SNAPSHOT
from planner.rollout.steps import MarkVictims
from planner.simulation.candidates import shares_messages
from tests.clusters.kafka import CLIENT, KafkaCluster, done
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import java_share_container, kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.loops import Changed, Loop, exactly, kafka_loop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

PARTITIONS, RATE = 6, 6.0
LIBRDKAFKA = f"librdkafka {libversion()[0]}"


def librdkafka_container(bootstrap: str, group: str, log: str) -> Json:
    return kafka_consumer(bootstrap, group=group, topic=group, delivery_log=log, program="share_consumer.py")


def java_container(bootstrap: str, group: str, log: str) -> Json:
    return java_share_container(bootstrap, group=group, client_version=CLIENT, delivery_log=log)


@pytest.fixture(
    scope="module",
    params=[("loop-share", LIBRDKAFKA, librdkafka_container), ("loop-share-java", CLIENT, java_container)],
    ids=("librdkafka", "java"),
)
def loop(
    request: pytest.FixtureRequest,
    control_plane_with_plans: ControlPlane,
    kafka_cluster: KafkaCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Loop]:
    group, client, contained = request.param

    def container(logs: Path) -> Json:
        made: Json = contained(kafka_cluster.bootstrap, group, f"{logs}/$(POD_NAME).tsv")
        return made

    # Of the broker's own a group begins with what comes later: what was sent before would be lost to nobody's fault.
    reset = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[reset])
    done(kafka_cluster.admin.incremental_alter_configs([resource]))
    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        tmp_path_factory.mktemp(group),
        group,
        container,
        partitions=PARTITIONS,
        rate=RATE,
        client=client,
        settings={},
    ) as running:
        yield running


def test_three_become_five_become_two_and_the_chosen_ones_stop(loop: Loop) -> None:
    """Red where the engine waits for owners that a share group does not have, or a record is given to nobody."""
    before = set(loop.pods())
    grown = changed_to(loop, 5)
    assert before < set(loop.pods()), "who was there stays"
    assert shares_messages(SNAPSHOT.read(loop.folder / "snapshot.json"))
    before = set(loop.pods())
    shrunk = changed_to(loop, 2)
    victims = {pod for step in shrunk.plan.steps if isinstance(step, MarkVictims) for pod in step.pods}
    assert set(loop.pods()) == before - victims
    for changed in (grown, shrunk):
        moved = changed.figure("moved queues")
        assert (moved["seenLow"], moved["seenHigh"]) == (0, 0)
        assert changed.figure("settled after")["seenHigh"] is not None, changed.status["verdict"]


def changed_to(loop: Loop, count: int) -> Changed:
    """Have the planner plan and carry out another count; return what was seen."""
    policy = loop.write_policy(exactly(count))
    changed = loop.apply(loop.plan(policy), policy)
    assert (changed.status["phase"], changed.status["ended"]) == ("Succeeded", "new"), changed.status
    assert loop.deployment()["spec"]["replicas"] == len(loop.pods()) == count
    return changed
