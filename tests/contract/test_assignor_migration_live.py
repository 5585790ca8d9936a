"""A Kafka group changes its assignor from range to cooperative-sticky: real consumers in pods, brokers, an API server.

Java's in two rolls, turned back in the second one before they are carried out; librdkafka's, which refuse lists that
mix protocols, in a window in which all stop before any starts. The commands do it all; every delivery is logged, and
compared with what was sent, what was forecast and what was seen.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import libversion

from planner.documents.plan import read_document
from planner.model.membership import KafkaMember
from planner.model.samples import GroupSample
from planner.rollout.migrations.kafka import JAVA_ASSIGNORS
from planner.sources.kafka import KafkaAdmin, observe_group
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import java_kafka_consumer, kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.loops import WAIT_S, Changed, Loop, exactly, kafka_loop
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

ROLLS, WINDOW = "assignor-rolls", "assignor-window"
PARTITIONS, RATE, MEMBERS = 10, 4.0, 3
"""How many, messages per second to each of them, and consumers."""
EAGER, COOPERATIVE = "range", "cooperative-sticky"
VARIABLE = "PARTITION_ASSIGNMENT_STRATEGY"
OLD, NEW = JAVA_ASSIGNORS[EAGER], JAVA_ASSIGNORS[COOPERATIVE]
BOTH = f"{OLD},{NEW}"
CLIENTS = {"auto.commit.interval.ms": 1000, "session.timeout.ms": 30_000, "heartbeat.interval.ms": 1000}
TOLD = {**CLIENTS, "group.initial.rebalance.delay.ms": 0}
"""What the policy tells of clients and brokers (see the fixture ``kafka_cluster``)."""
LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class Glance:
    """What one look showed: the list of each pod that has not ended, how many are ready and stay, how often one was
    started again, and the assignor that the group has agreed on, ``None`` amid a rebalance."""

    list_by_pod: Mapping[str, str]
    ready: int
    restarts: int
    assignor: str | None

    @property
    def lists(self) -> Counter[str]:
        """How many pods have each list."""
        return Counter(self.list_by_pod.values())


def observed(kafka: KafkaCluster, group: str) -> GroupSample:
    with KafkaAdmin(kafka.bootstrap.split(",")) as admin:
        return observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))


def glance(loop: Loop, kafka: KafkaCluster, group: str) -> Glance:
    pods = loop.cluster.rest.get(f"/api/v1/namespaces/{loop.namespace}/pods")["items"]
    states = [state for pod in pods for state in pod["status"].get("containerStatuses", ())]
    found = observed(kafka, group).kafka
    return Glance(
        {pod["metadata"]["name"]: list_of(pod["spec"]) for pod in pods},
        sum(_is_ready(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]),
        sum(state["restartCount"] for state in states),
        found.assignor if found else None,
    )


def _is_ready(pod: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def list_of(pod: Json) -> str:
    """Return the value of the variable in a pod, or a pod's template."""
    (container,) = pod["containers"]
    (value,) = [one["value"] for one in container["env"] if one["name"] == VARIABLE]
    return str(value)


@contextmanager
def watched(loop: Loop, kafka: KafkaCluster, group: str) -> Iterator[list[Glance]]:
    """Give the looks at pods and group that are taken until it is over."""
    glances: list[Glance] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_EVERY_S):
            glances.append(glance(loop, kafka, group))

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            yield glances
        finally:
            is_over.set()
        watching.result()


@pytest.fixture(scope="module")
def rolls(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    def container(logs: Path) -> Json:
        made = java_kafka_consumer(
            kafka_cluster.bootstrap,
            group=ROLLS,
            topic=ROLLS,
            client_version=CLIENT,
            delivery_log=f"{logs}/$(POD_NAME).tsv",
            settings={**CLIENTS, "partition.assignment.strategy": f"$({VARIABLE})"},
            service_ms=5,
        )
        made["env"].append({"name": VARIABLE, "value": OLD})
        return made

    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        tmp_path_factory.mktemp(ROLLS),
        ROLLS,
        container,
        partitions=PARTITIONS,
        rate=RATE,
        client=CLIENT,
        settings=TOLD,
    ) as loop:
        yield loop


@pytest.fixture(scope="module")
def window(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    def container(logs: Path) -> Json:
        made = kafka_consumer(
            kafka_cluster.bootstrap,
            group=WINDOW,
            topic=WINDOW,
            delivery_log=f"{logs}/$(POD_NAME).tsv",
            settings={**CLIENTS, "partition.assignment.strategy": f"$({VARIABLE})"},
        )
        made["env"].append({"name": VARIABLE, "value": EAGER})
        return made

    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        tmp_path_factory.mktemp(WINDOW),
        WINDOW,
        container,
        partitions=PARTITIONS,
        rate=RATE,
        client=f"librdkafka {libversion()[0]}",
        settings=TOLD,
    ) as loop:
        yield loop


def test_an_abort_in_the_second_roll_brings_the_old_assignor_back(rolls: Loop, kafka_cluster: KafkaCluster) -> None:
    policy = rolls.write_policy(exactly(MEMBERS))
    path = rolls.migrate(policy, "assignor", "--to", COOPERATIVE, "--variable", VARIABLE)
    name = str(read_document(path)["metadata"]["name"])
    with watched(rolls, kafka_cluster, ROLLS) as glances:
        applying = rolls.start_apply(path, policy)
        try:
            rolls.cluster.wait_until("a new one alone", lambda: any(one.lists[NEW] for one in glances[-1:]), WAIT_S)
            place = ("--namespace", rolls.namespace, "--policy", policy, "--kubeconfig", rolls.cluster.kubeconfig)
            aborted = planner("abort", name, *place)
            assert aborted.returncode == 0, aborted.stderr
            assert applying.wait(WAIT_S) == 1
        finally:
            applying.kill()
            applying.communicate()
    status = rolls.status(name)
    assert (status["phase"], status["ended"]) == ("RolledBack", "old"), status
    _check_never_torn(glances)
    _check_owned(kafka_cluster, ROLLS, EAGER, rolls, OLD)


def test_java_consumers_become_cooperative_in_two_rolls(rolls: Loop, kafka_cluster: KafkaCluster) -> None:
    policy, before = rolls.write_policy(exactly(MEMBERS)), rolls.pods()
    path = rolls.migrate(policy, "assignor", "--to", COOPERATIVE, "--variable", VARIABLE)
    with watched(rolls, kafka_cluster, ROLLS) as glances:
        done = rolls.apply(path, policy)
    _check_never_torn(glances)
    assert {one.assignor for one in glances if one.lists[OLD]} <= {EAGER, None}
    assert EAGER in {one.assignor for one in glances if one.lists == {BOTH: MEMBERS}}, "both are listed, one is used"
    assert not set(before) & set(rolls.pods()), "every pod is a new one"
    assert list_of(rolls.deployment()["spec"]["template"]["spec"]) == NEW
    _check_owned(kafka_cluster, ROLLS, COOPERATIVE, rolls, NEW)
    _check_forecast(rolls, path, done)
    lists = {pod: found for one in glances for pod, found in one.list_by_pod.items()}
    assert {lists[one.client] for one in done.course.repeated()} <= {NEW}, "only cooperative ones do not commit all"


def test_librdkafka_consumers_become_cooperative_once_all_have_stopped(
    window: Loop, kafka_cluster: KafkaCluster
) -> None:
    policy = window.write_policy(exactly(MEMBERS))
    change = ("--green", "green", "--env", f"{VARIABLE}={COOPERATIVE}")
    path = window.migrate(policy, "assignor", "--to", COOPERATIVE, *change)
    with watched(window, kafka_cluster, WINDOW) as glances:
        done = window.apply(path, policy)
    both = [one for one in glances if len(one.lists) > 1]
    assert not both, "two protocols never meet in one group"
    assert not glances[-1].restarts
    assert window.deployment()["spec"]["replicas"] == 0
    _check_owned(kafka_cluster, WINDOW, COOPERATIVE, window, COOPERATIVE)
    _check_forecast(window, path, done, unseen=("settled after",))
    duplicates = done.figure("duplicates")
    assert duplicates["low"] <= done.course.twice() <= duplicates["high"], duplicates


def _check_never_torn(glances: Sequence[Glance]) -> None:
    """Check that members always shared an assignor, that none was refused, and that as many as before were ready."""
    assert not [one for one in glances if one.lists[OLD] and one.lists[NEW]], "nobody would know a common assignor"
    assert not [one for one in glances if one.restarts]
    assert min(one.ready for one in glances) >= MEMBERS


def _check_owned(kafka: KafkaCluster, group: str, assignor: str, loop: Loop, listed: str) -> None:
    """Check that pods of that list, once the others have closed, are the members and own each partition once."""

    def is_alone() -> bool:
        return glance(loop, kafka, group).lists == {listed: MEMBERS} and len(observed(kafka, group).members) == MEMBERS

    def is_stable() -> bool:
        found = observed(kafka, group).kafka
        return found is not None and found.state == "Stable"

    loop.cluster.wait_until("these pods alone", is_alone, WAIT_S)
    loop.cluster.wait_until("a stable group", is_stable, WAIT_S)
    found = observed(kafka, group)
    assert found.kafka is not None
    assert (found.kafka.state, found.kafka.assignor) == ("Stable", assignor)
    assert sorted(one.client_id for one in found.members if isinstance(one, KafkaMember)) == loop.pods()
    owned = [partition.number for one in found.members for partition in one.owned or ()]
    assert sorted(owned) == list(range(PARTITIONS))


def _check_forecast(loop: Loop, path: Path, done: Changed, unseen: Sequence[str] = ()) -> None:
    """Check the plan's end, and its forecast against what the consumers logged and what ``planner verify`` says.

    How long something takes is compared with what was seen alone: a machine that gets busy misses any forecast of that.
    """
    assert (done.status["phase"], done.status["ended"]) == ("Succeeded", "new"), done.status
    found = planner("verify", path, "--kubeconfig", loop.cluster.kubeconfig, "-o", "json")
    figures = json.loads(found.stdout)["status"]["verdict"]["figures"]
    assert figures == done.status["verdict"]["figures"]
    print(*(one["sentence"] for one in figures), f"twice: {done.course.twice()}", sep="\n")
    done.check_seen(unseen)
    missed = [one["sentence"] for one in figures if one["fit"] == "outside"]
    assert found.returncode == bool(missed), found.stderr
    assert done.figure("moved queues")["fit"] == "inside"
    assert not {done.figure(name)["fit"] for name in ("duplicates", "busiest consumer")} & {"outside"}, missed
