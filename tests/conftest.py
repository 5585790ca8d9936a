"""What all tests share: real clusters, and what happens where they cannot run.

A launcher raises ``CannotRunHereError`` when this machine lacks what it needs. The test is then skipped, by
its name and with the reason; with REQUIRE_CLUSTERS=1, as in CI, it fails instead. This goes for every need
of every fixture and test (brokers, Kubernetes, a browser): raise that error and do nothing else. A test
about an error of that kind must catch it, or it skips itself.
"""

import logging
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

from tests.clusters.errors import CannotRunHereError
from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import RocketMQCluster
from tests.sharing import SharedClusters, fixtures_of_file

# A busy machine is no defect: examples may take their time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if "CI" not in os.environ:  # there hypothesis has a profile of its own, patient and repeatable
    settings.load_profile("patient")


SHARED = SharedClusters()

FAILURE_TAIL = 1500
"""Characters of a failure's text that are printed at once; the summary has all of it."""

TOLD = "told"
"""Name of a property (``record_property``) that holds a line for people: what was measured, beside what passed."""


LONGEST = (
    "tests/contract/test_matrix_live.py",
    "tests/spark/test_history.py",
    "tests/spark/test_path.py",
    "tests/conformance/live/test_live_transitions.py",
    "tests/contract/test_proxy_clients_live.py",
    "tests/dags/test_run.py",
    "tests/dags/test_scheduler_live.py",
    "tests/dags/test_pages.py",
    "tests/dags/test_runs_live.py",
    "tests/contract/test_distribution_live.py",
    "tests/contract/test_rocketmq_client_live.py",
    "tests/contract/test_capture_live.py",
    "tests/contract/test_doctor_live.py",
    "tests/contract/test_polls_away_live.py",
    "tests/contract/test_rocketmq_security_live.py",
    "tests/oracles/test_rocketmq_live.py",
    "tests/contract/test_rocketmq_faults_live.py",
    "tests/contract/test_kafka_conversion_live.py",
    "tests/contract/test_broker_allocation_live.py",
    "tests/contract/test_producers_live.py",
    "tests/contract/test_advise_live.py",
    "tests/contract/test_offsets_live.py",
    "tests/contract/test_run_live.py",
    "tests/dags/test_airflow_check.py",
    "tests/contract/test_loop_kafka_live.py",
    "tests/contract/test_advise_deployment_live.py",
    "tests/contract/test_assignor_migration_live.py",
    "tests/contract/test_loop_pods_live.py",
    "tests/contract/test_loop_stateful_live.py",
    "tests/contract/test_strategy_migration_live.py",
    "tests/contract/test_loop_rocketmq_live.py",
    "tests/dags/test_apply_dag.py",
    "tests/contract/test_faults_live.py",
    "tests/contract/test_controller_live.py",
    "tests/contract/test_packaging_live.py",
    "tests/contract/test_offset_kills_live.py",
    "tests/contract/test_broker_away_live.py",
    "tests/contract/test_spark_image_live.py",
    "tests/contract/test_loop_pop_live.py",
)
"""Files that take minutes, in the order in which they begin: those that need no Kubernetes while it is compiled, and
those that share clusters one after the other."""

LONG = (
    "tests/conformance/live/test_live_transitions.py",
    "tests/contract/test_assignor_migration_live.py::test_an_abort_in_the_second_roll_brings_the_old_assignor_back",
    "tests/contract/test_assignor_migration_live.py::test_librdkafka_consumers_become_cooperative_once_all_have_stopped",
    "tests/contract/test_broker_away_live.py::test_members_that_join_another_group_turn_the_plan_back_and_are_named",
    "tests/contract/test_capacity_live.py",
    "tests/contract/test_capture_live.py::test_a_fresh_capture",  # a fresh one of Kafka stays
    "tests/contract/test_capture_live.py::test_the_member_that_joined_and_left_is_seen",
    "tests/contract/test_distribution_live.py::test_a_stock_airflow_runs_the_dag_by_one_import_line",
    "tests/contract/test_faults_live.py::test_a_killed_executor_is_followed_by_one_that_ends_old_or_new",
    "tests/contract/test_faults_live.py::test_executors_were_killed_at_many_places",
    "tests/contract/test_kafka_conversion_live.py",
    "tests/contract/test_loop_kafka_live.py::test_a_new_configuration",  # RocketMQ's loop does the same
    "tests/contract/test_loop_kafka_live.py::test_an_abort",
    "tests/contract/test_loop_pods_live.py::test_pods_with_four_members_shrink_and_grow_as_whole_pods[kafka]",
    "tests/contract/test_loop_share_live.py",
    "tests/contract/test_loop_split_live.py",
    "tests/contract/test_offset_kills_live.py",
    "tests/contract/test_polls_away_live.py",
    "tests/contract/test_proxy_clients_live.py::test_grpc_clients_of_a_local_proxy_are_decided_by_capacity",
    "tests/contract/test_proxy_clients_live.py::test_grpc_members_of_a_local_proxy_are_neither_asked_nor_called_silent",
    "tests/contract/test_scale_controllers_live.py",  # compiles Argo Rollouts and OpenKruise
    "tests/contract/test_spark_image_live.py::test_a_job_runs_on_executors",
    "tests/contract/test_strategy_migration_live.py::test_a_group_moves_to_another_cluster_once_the_old_one_is_drained",
    "tests/contract/test_strategy_migration_live.py::test_a_topic_gets_fewer_queues_once_what_lies_in_the_others_is_consumed",
    "tests/contract/test_strategy_migration_live.py::test_strategies_with_parameters_come_and_a_group_moves_into_another_room",
    "tests/contract/test_subscription_migration_live.py::test_a_kafka_group",
    "tests/dags/test_live_run.py",  # test_scheduler_live has RocketMQ through a scheduled run
    "tests/dags/test_notices_live.py",
    "tests/dags/test_soak_live.py",
    "tests/oracles/test_rocketmq_live.py::test_members_own_what_is_predicted_after_every_join_and_leave[4.9.7]",
)
"""Tests that take minutes each on a machine of two cores: ``make test-long`` runs them, ``make test`` all others."""

SHARED_FIXTURES = ("control_plane", "kafka_cluster", "rocketmq_cluster")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that take minutes each."""
    if item.nodeid.startswith(LONG):
        item.add_marker(pytest.mark.long)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first: one that is left for the end has all others wait for it.

    Of the others those that share the same clusters follow each other.
    """
    rank = {file: number for number, file in enumerate(LONGEST)}
    used: dict[str, set[str]] = {}
    for item in items:
        used.setdefault(_file_of(item), set()).update(getattr(item, "fixturenames", ()))
    lacks = {file: [name not in names for name in SHARED_FIXTURES] for file, names in used.items()}
    items.sort(key=lambda item: (rank.get(_file_of(item), len(rank)), lacks[_file_of(item)]))


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tell a failure when it happens: a run that is stopped from outside never comes to its summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.when} of {report.nodeid}\n{report.longreprtext[-FAILURE_TAIL:]}", flush=True)


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Stop the shared clusters that the next file does not need, once the last test of a file is over."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            SHARED.stop_all_but(() if nextitem is None else fixtures_of_file(nextitem))


@pytest.fixture(scope="session")
def shared_clusters() -> SharedClusters:
    """What runs for several files."""
    return SHARED


@pytest.fixture(scope="module")
def rocketmq_cluster(shared_clusters: SharedClusters) -> Callable[[str], RocketMQCluster]:
    """A function: version -> a running cluster of two brokers, started when first asked for.

    Files that follow each other share it. Name topics and groups after your test, and leave its brokers alone: a
    test that stops or crashes one starts a cluster of its own.
    """
    return shared_clusters.get("rocketmq_cluster", _rocketmq_clusters)


def _rocketmq_clusters(undo: ExitStack) -> Callable[[str], RocketMQCluster]:
    running: dict[str, RocketMQCluster] = {}

    def shared(version: str) -> RocketMQCluster:
        if version not in running:
            running[version] = undo.enter_context(RocketMQCluster.start(version, brokers=2))
        return running[version]

    return shared


@pytest.fixture(scope="module")
def kafka_cluster(shared_clusters: SharedClusters) -> KafkaCluster:
    """A running Kafka of two brokers in racks ``r1`` and ``r2`` whose groups settle quickly.

    Files that follow each other share it. Name topics and groups after your test, and leave its brokers alone.
    """
    return shared_clusters.get("kafka_cluster", _kafka_cluster)


def _kafka_cluster(undo: ExitStack) -> KafkaCluster:
    quick = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.assignment.interval.ms": "0",
        "log.cleaner.backoff.ms": "200",
        # A broker that a busy machine keeps from its heartbeats for 9 s would hand its partitions to the other one.
        "broker.session.timeout.ms": "60000",
    }
    return undo.enter_context(KafkaCluster.start(brokers=2, settings=quick, racks=("r1", "r2")))
