"""Three pods with four real consumers each, Kafka's in one JVM and RocketMQ's: counts, plans and victims are pods."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner.documents.data import SNAPSHOT
from planner.rollout.steps import AwaitSettled, MarkVictims
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import java_kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.loop_checks import check_grown, check_shrunk
from tests.loops import WATCH_S, Loop, exactly, kafka_loop, names_in_pod, rocketmq_loop
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

KAFKA, ROCKETMQ = "pods-kafka", "pods-rocketmq"
PER_POD, QUEUES, RATE = 4, 24, 2.0
"""Members of each pod, queues in all, and messages per second to each of them."""
SETTINGS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 30_000, "heartbeat.interval.ms": 1000}


@pytest.fixture(scope="module")
def kafka(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    def container(logs: Path) -> Json:
        return java_kafka_consumer(
            kafka_cluster.bootstrap,
            group=KAFKA,
            topic=KAFKA,
            client_version=CLIENT,
            delivery_log=f"{logs}/$(POD_NAME).tsv",
            settings=SETTINGS,
            service_ms=5,
            client=names_in_pod(PER_POD),
        )

    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        tmp_path_factory.mktemp(KAFKA),
        KAFKA,
        container,
        partitions=QUEUES,
        rate=RATE,
        client=CLIENT,
        settings=SETTINGS,
        per_pod=PER_POD,
    ) as loop:
        yield loop


@pytest.fixture(scope="module")
def rocketmq(
    control_plane_with_plans: ControlPlane,
    rocketmq_cluster: Callable[[str], RocketMQCluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Loop]:
    cluster, folder = rocketmq_cluster(NEW), tmp_path_factory.mktemp(ROCKETMQ)
    each = QUEUES // len(cluster.brokers)
    cluster.create_topic(ROCKETMQ, each)
    with rocketmq_loop(
        control_plane_with_plans, cluster, folder, ROCKETMQ, 3, rate=RATE, per_pod=PER_POD, queues_each=each
    ) as loop:
        yield loop


@pytest.mark.parametrize("system", ["kafka", "rocketmq"])
def test_pods_with_four_members_shrink_and_grow_as_whole_pods(system: str, request: pytest.FixtureRequest) -> None:
    loop: Loop = request.getfixturevalue(system)
    check_counts_are_pods(loop)
    check_shrunk(loop, exactly(2), 2)
    check_grown(loop, exactly(3), 3)
    stopped, grown = loop.changes
    (mark,) = [step for step in stopped.plan.steps if isinstance(step, MarkVictims)]
    (victim,) = mark.victims
    assert len(victim.members) == PER_POD
    assert all(victim.pod in member for member in victim.members)
    assert "from 3 to 2 pods (12 to 8 consumers)" in stopped.plan.reason
    assert "from 2 to 3 pods (8 to 12 consumers)" in grown.plan.reason
    for change, members in ((stopped, 8), (grown, 12)):
        assert [step.members for step in change.plan.steps if isinstance(step, AwaitSettled)] == [members]
        assert len(change.plan.forecast.owners_after) == members


def check_counts_are_pods(loop: Loop) -> None:
    """Check what the snapshot knows of the pods, and that the same group without Kubernetes holds until it is said."""
    policy = loop.write_policy(exactly(3))
    taken = SNAPSHOT.read(loop.snapshot(policy))
    assert (taken.count, len(taken.clients), taken.members_per_pod) == (3, 12, PER_POD)
    simulated = planner("simulate", loop.folder / "snapshot.json", "-o", "json")
    assert simulated.returncode == 0, simulated.stderr
    outcomes = json.loads(simulated.stdout)
    assert [outcome["count"] for outcome in outcomes] == [1, 2, 3, 6]
    whole = policy.read_text(encoding="utf-8")
    stated = decide_blind(loop, f"{whole}  membersPerPod: 4\n")
    assert (stated["from"], stated["cause"]) == (3, "RightAlready")


def decide_blind(loop: Loop, text: str) -> Json:
    """Return the decision under a policy of this text without its access to Kubernetes."""
    policy, snapshot = loop.folder / "blind.yaml", loop.folder / "blind.json"
    policy.write_text(text.replace("  kubernetes:", "  # kubernetes:"), encoding="utf-8")
    for words in (
        ("snapshot", "-p", policy, "-o", snapshot, "--observe-seconds", WATCH_S),
        ("plan", snapshot, "-p", policy, "-o", loop.folder / "blind-plan.yaml", "--format", "json"),
    ):
        found = planner(*words)
        assert found.returncode == 0, found.stderr
    return dict(json.loads(found.stdout))
