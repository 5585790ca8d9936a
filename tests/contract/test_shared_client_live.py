"""One JVM whose one client serves two groups of a real broker: the doctor and the forecast of either name the other.

In the third group a process of its own has the same client id: that is another client, and no word of it.
"""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.model.membership import OtherGroup
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.rocketmq import NEW, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.patience import PATIENT, if_known
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

ORDERS, MAILS, APART = "one-jvm-orders", "one-jvm-mails", "one-jvm-apart"
CLIENT = "127.0.0.1@app"
SETTLED_S = 300.0
POLICY = """\
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {{name: {group}}}
spec:
  source: {{system: rocketmq, nameServers: ['{servers}'], cluster: DefaultCluster, group: {group}}}
  scaleTargetRef: {{name: app}}
  minReplicas: 1
  maxReplicas: 4
  objective: {{maxUtilisation: 0.8, backlogGoneSeconds: 600}}
  window: {{seconds: 60}}
  capacity: {{messagesPerSecond: 50}}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RocketMQCluster]:
    with RocketMQCluster.start(NEW, brokers=1) as running:
        broker = running.brokers[0].name
        for group in (ORDERS, MAILS, APART):
            running.create_topic(group, per_broker={broker: QueueCounts(4, 4)})
            running.create_group(group)
        load = running.load()
        usual = {"threads": 2, "service-ms": 1, "log-deliveries": "false"}
        load.start_ward([{**usual, "group": group, "topics": group, "instances": "app"} for group in (ORDERS, MAILS)])
        load.start_consumer(group=APART, topics=[APART], instance="app")
        points = (0.0, 5.0), (3_600.0, 5.0)
        load.start_producer(
            [QueueCurve(group, broker, number, points) for group in (ORDERS, MAILS, APART) for number in range(4)]
        )
        yield running


def others_of(cluster: RocketMQCluster, group: str) -> tuple[OtherGroup, ...]:
    """Return what a sample has of the group's clients, once it owns all of its queues."""
    deadline = time.monotonic() + SETTLED_S
    with RocketMQAdmin(cluster.name_server, limits=PATIENT) as admin:
        while True:
            sample = if_known(
                lambda: observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))
            )
            members = sample.members if sample else ()
            owned = [queue for member in members for queue in member.owned or () if queue.topic == group]
            if sample is not None and len(owned) == 4:
                assert sample.rocketmq is not None
                return sample.rocketmq.other_groups
            assert time.monotonic() < deadline, sample
            time.sleep(1)


def test_the_sample_has_the_other_group_of_the_same_client(cluster: RocketMQCluster) -> None:
    for group in (ORDERS, MAILS, APART):
        others_of(cluster, group)
    assert others_of(cluster, ORDERS) == (OtherGroup(MAILS, (CLIENT,)),)
    assert others_of(cluster, MAILS) == (OtherGroup(ORDERS, (CLIENT,)),)
    assert others_of(cluster, APART) == ()


def test_the_doctor_of_one_group_alone_names_the_other(cluster: RocketMQCluster) -> None:
    found = planner("doctor", "-n", cluster.name_server, "--group", ORDERS, "--watch", 6, "-o", "json")
    (seen,) = json.loads(found.stdout)["body"]["groups"]
    (finding,) = [one for one in seen["findings"] if one["code"] == "shared-client"]
    assert finding["title"] == f"1 of 1 member also runs other groups: {MAILS}"


def test_a_forecast_of_one_group_says_what_it_leaves_out(cluster: RocketMQCluster, tmp_path: Path) -> None:
    others_of(cluster, ORDERS)
    policy, snap = tmp_path / "policy.yaml", tmp_path / "snap.json"
    policy.write_text(POLICY.format(group=ORDERS, servers=cluster.name_server))
    taken = planner("snapshot", "-p", policy, "-o", snap, "--observe-seconds", 10)
    assert taken.returncode == 0, taken.stderr
    assert SNAPSHOT.read(snap).other_groups == (OtherGroup(MAILS, (CLIENT,)),)
    simulated = planner("simulate", snap, "--counts", "2", "--format", "json")
    assert simulated.returncode == 0, simulated.stderr
    assert f"what the rebalances of {MAILS} do to this group" in simulated.stdout
