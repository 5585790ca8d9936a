"""``planner snapshot`` against a real name server and brokers: the good case, and each way it can go wrong."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.rocketmq import GHOSTS_GONE_S, NEW, RocketMQCluster
from tests.clusters.rocketmq_load import QueueCurve
from tests.patience import PATIENT
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import planner, refused

pytestmark = pytest.mark.cluster

Clusters = Callable[[str], RocketMQCluster]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live")


def policy_file(folder: Path, cluster: RocketMQCluster, group: str, extra: str = "") -> Path:
    path = folder / f"{group}.yaml"
    text = POLICY.replace("127.0.0.1:9876", cluster.name_server).replace("group: shop", f"group: {group}{extra}")
    path.write_text(text)
    return path


def await_true(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GHOSTS_GONE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def await_each_owned(cluster: RocketMQCluster, group: str, queues: int, members: int) -> None:
    """Return once the ownership of consumers that started one after the other has settled."""

    def is_settled() -> bool:
        sample = observe_group(admin, cluster=None, group=group, topics=[group], at=datetime.now(UTC))
        owners = [of_queue for queue, of_queue in sample.owners.items() if not queue.is_retry]
        return (
            len(owners) == queues
            and {*owners} == {(one.identity,) for one in sample.members}
            and (len(sample.members) == members and not sample.problems)
        )

    with RocketMQAdmin(cluster.name_server, limits=PATIENT) as admin:
        await_true(is_settled)


def test_a_running_group_is_read_once_and_planned(rocketmq_cluster: Clusters, folder: Path) -> None:
    cluster = rocketmq_cluster(NEW)
    cluster.create_topic("snapshot-live", 4)
    load = cluster.load(NEW)
    consumers = [
        load.start_consumer(group="snapshot-live", topics=["snapshot-live"], instance=f"c{n}", threads=2, service_ms=5)
        for n in (1, 2)
    ]
    curves = [
        QueueCurve("snapshot-live", broker.name, queue, ((0, 5), (3600, 5)))
        for broker in cluster.brokers
        for queue in range(4)
    ]
    producer = load.start_producer(curves)
    producer.await_ready()
    policy = policy_file(folder, cluster, "snapshot-live", ", topics: [snapshot-live]")
    await_each_owned(cluster, "snapshot-live", queues=8, members=2)
    found = planner("snapshot", "-p", policy, "-o", folder / "snap.json", "--observe-seconds", 10)
    assert found.returncode == 0, found.stderr
    taken = SNAPSHOT.read(folder / "snap.json")
    assert taken.clients == ("127.0.0.1@c1", "127.0.0.1@c2")
    assert len(taken.data_queues) == 8
    assert taken.strategy == "AVG"
    assert all(state.arrival_rate is not None for state in taken.data_queues)
    planned = planner("plan", folder / "snap.json", "-p", policy, "-o", folder / "plan.yaml")
    # Ten seconds are not the policy's two minutes: the planner holds, and says so.
    assert planned.returncode == 0
    assert re.search(r"Hold at 2 consumers: its rates are \d+% complete", planned.stdout), planned.stdout
    producer.stop()
    for consumer in consumers:
        consumer.stop()
    await_true(lambda: not any(cluster.members("snapshot-live").values()))
    offline = planner("snapshot", "-p", policy, "-o", folder / "offline.json", "--observe-seconds", 0)
    assert offline.returncode == 0
    assert "0 consumers" in offline.stdout
    held = planner("plan", folder / "offline.json", "-p", policy, "-o", folder / "hold.yaml")
    assert "no consumer is running" in held.stdout
    # The group is known by its offsets now; a topic that the policy names and nobody has is a mistake of the policy's.
    policy.write_text(policy.read_text().replace("topics: [snapshot-live]", "topics: [no-such-topic]"))
    unrouted = planner("snapshot", "-p", policy, "-o", folder / "y.json", "--observe-seconds", 0)
    refused(unrouted, 2, "no-such-topic")
    assert not (folder / "y.json").exists()


def test_an_unknown_group_is_named(rocketmq_cluster: Clusters, folder: Path) -> None:
    policy = policy_file(folder, rocketmq_cluster(NEW), "nobody")
    found = planner("snapshot", "-p", policy, "-o", folder / "x.json", "--observe-seconds", 0)
    refused(found, 2, "nobody")
    assert not (folder / "x.json").exists()


def test_an_unknown_cluster_is_named(rocketmq_cluster: Clusters, folder: Path) -> None:
    policy = policy_file(folder, rocketmq_cluster(NEW), "no-cluster")
    policy.write_text(policy.read_text().replace("cluster: DefaultCluster", "cluster: Elsewhere"))
    refused(planner("snapshot", "-p", policy, "-o", folder / "z.json", "--observe-seconds", 0), 2, "Elsewhere")
