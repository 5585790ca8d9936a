"""What all tests share: real clusters, and what happens where they cannot run.

A launcher raises ``CannotRunHereError`` when this machine lacks what it needs. The test is then skipped, by
its name and with the reason; with REQUIRE_CLUSTERS=1, as in CI, it fails instead. This goes for every need
of every fixture and test (brokers, Kubernetes, a browser): raise that error and do nothing else. A test
about an error of that kind must catch it, or it skips itself.
"""

import logging
import os
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, settings

from tests.clusters.errors import CannotRunHereError
from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import RocketMQCluster

# A busy machine is no defect: examples may take their time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if "CI" not in os.environ:  # there hypothesis has a profile of its own, patient and repeatable
    settings.load_profile("patient")


TOLD = "told"
"""Name of a property (``record_property``) that holds a line for people: what was measured, beside what passed."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests tell, whichever process they ran in."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    told = [value for report in reports for name, value in getattr(report, "user_properties", ()) if name == TOLD]
    if told:
        terminalreporter.section("what tests tell")
    for line in told:
        terminalreporter.write_line(str(line))


def pytest_unconfigure() -> None:
    """Keep pytest's summary the last lines: Spark's bridge logs its end after pytest closed the stream for it."""
    logging.disable(logging.CRITICAL)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Judge what a fixture could not get."""
    return (yield from _unless_missing(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Judge what a test could not get."""
    return (yield from _unless_missing(item))


def _unless_missing(item: pytest.Item) -> Generator[None, None, None]:
    try:
        return (yield)
    except CannotRunHereError as error:
        verdict = pytest.fail if os.environ.get("REQUIRE_CLUSTERS") == "1" else pytest.skip
        message = f"{item.nodeid} needs {error}"
    # Not inside the handler: pytest would show the whole chain for what is one plain fact.
    verdict(message)


@pytest.fixture(scope="session")
def rocketmq_cluster() -> Iterator[Callable[[str], RocketMQCluster]]:
    """A function: version -> a running cluster of two brokers, started when first asked for.

    The whole session shares it. Name topics and groups after your test, and leave its brokers alone: a
    test that stops or crashes one starts a cluster of its own.
    """
    running: dict[str, RocketMQCluster] = {}

    def shared(version: str) -> RocketMQCluster:
        if version not in running:
            running[version] = RocketMQCluster.start(version, brokers=2)
        return running[version]

    yield shared
    with ThreadPoolExecutor(max_workers=4) as stopping:
        list(stopping.map(RocketMQCluster.stop, running.values()))


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[KafkaCluster]:
    """A running Kafka of two brokers in racks ``r1`` and ``r2`` whose groups settle quickly.

    The whole session shares it. Name topics and groups after your test, and leave its brokers alone.
    """
    quick = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.assignment.interval.ms": "0",
        "log.cleaner.backoff.ms": "200",
        # A broker that a busy machine keeps from its heartbeats for 9 s would hand its partitions to the other one.
        "broker.session.timeout.ms": "60000",
    }
    with KafkaCluster.start(brokers=2, settings=quick, racks=("r1", "r2")) as cluster:
        yield cluster
