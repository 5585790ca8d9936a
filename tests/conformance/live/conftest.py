"""One run of all live transitions, as the last thing a session does."""

import pytest

from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.conformance.kafka.stage import BROKER_SETTINGS
from tests.conformance.live.kafka import watch_kafka
from tests.conformance.live.rocketmq import BROKER_PROPERTIES, watch_rocketmq
from tests.conformance.live.transition import Watch, together
from tests.conformance.rocketmq.collect import Machine

FIXTURE = "live_transitions"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put live transitions last: they want a calm machine, and Kubernetes is compiled while the first tests run."""
    items.sort(key=lambda item: FIXTURE in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session", name=FIXTURE)
def _live_transitions() -> Watch:
    """What became of every group: RocketMQ's, then Kafka's, as side by side they make the machine too busy."""
    properties = {name: str(value) for name, value in BROKER_PROPERTIES.items()}
    machine = Machine()
    with RocketMQCluster.start(NEW, java_properties=properties) as rocketmq:
        first = watch_rocketmq(rocketmq, machine)
    with KafkaCluster.start(settings=BROKER_SETTINGS) as kafka:
        return together([first, watch_kafka(kafka, machine)])
