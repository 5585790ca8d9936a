"""Brokers that freeze, crash and come back while we look: each a named error by its deadline, or a named problem."""

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from planner.errors import OutOfReachError, PlannerError
from planner.model.queues import TopicPartition
from planner.model.samples import GroupSample
from planner.sources.kafka import KafkaAdmin, TimeLimits, observe_groups
from tests.clusters.kafka import KafkaCluster

pytestmark = pytest.mark.cluster

GROUPS = tuple(f"g{number}" for number in range(8))
LIMITS = TimeLimits(request_s=10.0)
PATIENCE_S = 600.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Two brokers; topic ``t`` has a partition on each, the groups' coordinators are spread over both."""
    quick = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "4000"}
    with KafkaCluster.start(brokers=2, settings=quick) as cluster:
        cluster.create_topic("t", replicas=[[1], [2]])
        for group in GROUPS:
            cluster.commit(group, {("t", 0): 0, ("t", 1): 0})
        yield cluster


def look(admin: KafkaAdmin) -> dict[str, GroupSample | PlannerError]:
    return observe_groups(admin, cluster=None, groups=dict.fromkeys(GROUPS), at=datetime.now(UTC))


def look_until_whole(admin: KafkaAdmin) -> dict[str, GroupSample | PlannerError]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        told = look(admin)
        if all(isinstance(one, GroupSample) and not one.problems for one in told.values()):
            return told
        assert time.monotonic() < deadline, told
        time.sleep(0.2)


def test_a_frozen_broker_costs_its_own_groups_and_no_others(cluster: KafkaCluster) -> None:
    with KafkaAdmin(cluster.bootstrap.split(",")[:1], limits=LIMITS) as admin:
        told = look_until_whole(admin)
        by_coordinator = {group: one.kafka.coordinator for group, one in told.items()}
        assert set(by_coordinator.values()) == {1, 2}
        cluster.brokers[1].process.freeze()
        try:
            told = admin.describe_groups(GROUPS)
        finally:
            cluster.brokers[1].process.resume()
        late = {group for group, one in told.items() if isinstance(one, OutOfReachError)}
        assert late == {group for group, number in by_coordinator.items() if number == 2}
        assert all("did not answer" in str(told[group]) for group in late)
        assert look_until_whole(admin), "on new connections all is well again"


LATE_ANSWER = """
import sys
from planner.errors import OutOfReachError
from planner.sources.kafka import KafkaAdmin, TimeLimits

def connected():
    while True:  # a busy broker may take more than a second
        try:
            return KafkaAdmin([sys.argv[1]], limits=TimeLimits(request_s=1.0))
        except OutOfReachError:
            pass

with connected() as admin:
    print("open", flush=True)
    for line in sys.stdin:  # "frozen", then "resumed"
        try:
            print(len(admin.committed(["late-1", "late-2"])), flush=True)
        except OutOfReachError as error:
            print(error, flush=True)
"""


def test_an_answer_that_comes_after_its_time_costs_nobody_the_process(cluster: KafkaCluster) -> None:
    """In a process of its own: librdkafka aborted it, see ``planner.sources.kafka.commits``."""
    broker, asking = cluster.brokers[0], [sys.executable, "-c", LATE_ANSWER, cluster.brokers[0].address]
    with subprocess.Popen(asking, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        broker.process.freeze()
        try:
            print("frozen", file=child.stdin, flush=True)
            assert "did not answer" in child.stdout.readline()
        finally:
            broker.process.resume()
        deadline = time.monotonic() + PATIENCE_S
        said = ""
        while said != "2\n":
            assert child.poll() is None, said
            assert time.monotonic() < deadline, said
            print("resumed", file=child.stdin, flush=True)
            said = child.stdout.readline()
    assert child.returncode == 0


def test_a_crashed_broker_leaves_partitions_without_leader_and_groups_without_coordinator(
    cluster: KafkaCluster,
) -> None:
    with KafkaAdmin(cluster.bootstrap.split(",")[:1], limits=LIMITS) as admin:
        before = look_until_whole(admin)
        cluster.brokers[1].kill()
        deadline = time.monotonic() + PATIENCE_S
        while True:  # until the controller has noticed, and before a look has begun
            told = look(admin)
            samples = {group: one for group, one in told.items() if isinstance(one, GroupSample)}
            leaders = {tuple(route.leader for route in one.routes.partitions) for one in samples.values()}
            refused = [str(one) for one in told.values() if not isinstance(one, GroupSample)]
            if leaders == {(1, None)} and all("COORDINATOR_NOT_AVAILABLE" in one for one in refused):
                break
            assert time.monotonic() < deadline, told
        assert set(samples) == {group for group, one in before.items() if one.kafka.coordinator == 1}
        for sample in samples.values():
            assert [one.queue for one in sample.offsets] == [TopicPartition("t", 0)]
            assert sample.problems == ("without a leader, so that their offsets are not known: t/1",)
        assert refused
        cluster.brokers[1].start()
        look_until_whole(admin)


def test_no_broker_at_all_is_out_of_reach(cluster: KafkaCluster) -> None:
    with KafkaAdmin(cluster.bootstrap.split(","), limits=LIMITS) as admin:
        for broker in reversed(cluster.brokers):
            broker.kill()
        with pytest.raises(OutOfReachError):
            look(admin)
        told = admin.topics(["t"])
        assert isinstance(told["t"], OutOfReachError)
        with pytest.raises(OutOfReachError, match="no Kafka broker can be reached"):
            admin.describe_groups(GROUPS)
