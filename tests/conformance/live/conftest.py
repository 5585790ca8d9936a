"""One run of all live transitions, as the last thing a session does, and a word about each of them."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.conformance.kafka.stage import BROKER_SETTINGS
from tests.conformance.live.kafka import watch_kafka
from tests.conformance.live.rocketmq import BROKER_PROPERTIES, watch_rocketmq
from tests.conformance.live.transition import Transition, Watch, together
from tests.conformance.rocketmq.collect import Machine

FIXTURE = "live_transitions"
_WATCH = pytest.StashKey[Watch]()

collect_ignore = [] if os.environ.get("LIVE_TRANSITIONS") == "1" else ["test_live_transitions.py"]
"""By request only, for now: librdkafka has ended the whole run on a busy machine (docs/conformance.md)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put live transitions last: they want a calm machine, and Kubernetes is compiled while the first tests run."""
    items.sort(key=lambda item: FIXTURE in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session", name=FIXTURE)
def _live_transitions(pytestconfig: pytest.Config) -> Watch:
    """What became of every group: RocketMQ's and Kafka's at the same time, as theirs wait most of it."""
    properties = {name: str(value) for name, value in BROKER_PROPERTIES.items()}
    with (
        RocketMQCluster.start(NEW, java_properties=properties) as rocketmq,
        KafkaCluster.start(settings=BROKER_SETTINGS) as kafka,
        ThreadPoolExecutor(2) as pool,
    ):
        machine = Machine()
        parts = [pool.submit(watch_rocketmq, rocketmq, machine), pool.submit(watch_kafka, kafka, machine)]
        pytestconfig.stash[_WATCH] = together([part.result() for part in parts])
    return pytestconfig.stash[_WATCH]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say of every figure what was seen, what was forecast, and whether it was judged."""
    watch = config.stash.get(_WATCH, None)
    if watch is None:
        return
    seen = [one for one in watch.transitions.values() if isinstance(one, Transition)]
    terminalreporter.section("live transitions against their forecasts")
    for one in seen:
        for line in one.lines():
            terminalreporter.write_line(line)
    doubtful = sum(bool(one.doubt) for one in seen)
    terminalreporter.write_line(f"{len(seen) - doubtful} of {len(watch.transitions)} transitions judged")
