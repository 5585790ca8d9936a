"""A real broker with a real slave: as long as the master is there it is asked alone, then its slave, and it is told."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from planner.errors import OutOfReachError
from planner.model.samples import GroupSample
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import NEW, OLD, Broker, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.patience import PATIENT
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

TOPIC, GROUP, BROKER, QUEUES = "orders", "shop", "broker-a", 2
PATIENCE_S = 600.0

T = TypeVar("T")


@dataclass(frozen=True)
class Replicated:
    """A broker with a slave, and a group of two members that has consumed ``ends``, messages by queue."""

    cluster: RocketMQCluster
    slave: Broker
    ends: dict[tuple[str, int], int]

    def look(self) -> GroupSample:
        with RocketMQAdmin(self.cluster.name_server, limits=PATIENT) as admin:
            at = datetime.now(UTC)
            return observe_group(admin, cluster="DefaultCluster", group=GROUP, topics=[TOPIC], at=at)

    def offsets(self, sample: GroupSample) -> dict[tuple[str, int], tuple[int, int | None]]:
        """Return what a look tells of the topic's queues: end and committed offset."""
        told = ((one.queue, one) for one in sample.offsets if one.queue.topic == TOPIC)
        return {(BROKER, queue.queue_id): (one.broker_offset, one.consumer_offset) for queue, one in told}


def until(what: str, look: Callable[[], T], is_met: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + PATIENCE_S
    while not is_met(found := look()):
        assert time.monotonic() < deadline, f"{what} is not there: {found}"
        time.sleep(0.5)
    return found


@pytest.fixture(scope="module", params=[OLD, NEW])
def replicated(request: pytest.FixtureRequest) -> Iterator[Replicated]:
    with RocketMQCluster.start(request.param, brokers=1) as cluster:
        cluster.create_topic(TOPIC, QUEUES)
        slave = cluster.start_slave(BROKER)
        load = cluster.load()
        curves = [QueueCurve(TOPIC, BROKER, queue, ((0, 20), (1, 20))) for queue in range(QUEUES)]
        load.start_producer(curves).wait(PATIENCE_S)
        for instance in ("m1", "m2"):
            load.start_consumer(group=GROUP, topics=[TOPIC], instance=instance)
        ends = cluster.produced(TOPIC)
        found = Replicated(cluster, slave, ends)
        until("the commit", lambda: cluster.committed(GROUP, TOPIC), lambda committed: committed == ends)
        yield found


def ends_at(address: str) -> dict[tuple[str, int], int]:
    """Return how many messages of each queue a broker has."""
    return {(BROKER, queue): remoting.max_offset(address, TOPIC, queue) for queue in range(QUEUES)}


def committed_at(address: str) -> dict[tuple[str, int], int | None]:
    """Return what a broker has of the group's offsets."""
    return {(BROKER, queue): remoting.committed_offset(address, GROUP, TOPIC, queue) for queue in range(QUEUES)}


def doctor(replicated: Replicated) -> dict[str, Any]:
    found = planner("doctor", "-g", GROUP, "-n", replicated.cluster.name_server, "--watch", 0, "-o", "json")
    (group,) = json.loads(found.stdout)["body"]["groups"]
    assert isinstance(group, dict)
    return group


def test_a_slave_beside_its_master_is_not_asked(replicated: Replicated) -> None:
    sample = replicated.look()
    assert sample.problems == ()
    assert [one.address for one in sample.routes.brokers] == [replicated.cluster.brokers[0].address]
    assert "no-master" not in {one["code"] for one in doctor(replicated)["findings"]}


def test_where_the_master_has_gone_its_slave_tells_and_is_marked(replicated: Replicated) -> None:
    """It tells what it has: messages are copied at once, offsets now and then. What it has not is named."""
    slave = replicated.slave.address
    until("the copy", lambda: ends_at(slave), lambda ends: ends == replicated.ends)
    until("the members", lambda: remoting.consumer_ids(slave, GROUP), lambda listed: len(listed) == 2)
    replicated.cluster.brokers[0].kill()
    marked = f"broker {BROKER} has no master: its slave {slave} was asked, which may be behind"
    unknown = f"topic {TOPIC} has no offsets for {QUEUES} queues"

    def told() -> GroupSample | OutOfReachError:
        try:
            return replicated.look()
        except OutOfReachError as error:  # the name server has not noticed yet
            return error

    def is_told(look: GroupSample | OutOfReachError) -> bool:
        if not isinstance(look, GroupSample) or len(look.members) < 2 or marked not in look.problems:
            return False
        known = committed_at(slave)
        if None in known.values():
            return replicated.offsets(look) == {} and any(one.startswith(unknown) for one in look.problems)
        return replicated.offsets(look) == {queue: (end, known[queue]) for queue, end in replicated.ends.items()}

    sample = until("the slave's word", told, is_told)
    assert isinstance(sample, GroupSample)
    assert {member.client_id for member in sample.members} == {"127.0.0.1@m1", "127.0.0.1@m2"}
    (finding,) = [one for one in doctor(replicated)["findings"] if one["code"] == "no-master"]
    assert finding["title"] == f"Broker {BROKER} has no master: its slave serves"
    assert finding["evidence"] == [f"only {slave} is registered, and it is a slave"]
