"""Real groups on real brokers: after every join and leave the members own what we predict, for each strategy."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.simulation.changes import owners_by_queue
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.errors import StartFailedError
from tests.clusters.rocketmq import GHOSTS_GONE_S, NEW, OLD, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, RocketMQLoad
from tests.clusters.rocketmq_remoting import ask
from tests.patience import PATIENT

pytestmark = pytest.mark.cluster

AT_ONCE = 2
"""Processes that start at the same time: more only take each other's time away."""

QUICK = {"poll-ms": 1000, "heartbeat-ms": 2000, "persist-ms": 1000}
TOPICS = ("orders", "skewed")
BROKER_ROOMS = {"r1@broker-a": "r1", "r2@broker-b": "r2"}
BATCHES: dict[str, tuple[str, tuple[str, ...]]] = {
    "first": ("127.0.0.1", ("c2", "c10")),
    "second": ("10.0.0.9", ("c1",)),
    "third": ("127.0.0.1", ("c1", "c20")),
}
"""Each batch is one process: its host, and the instances in it, which sort as text around those of the others."""

STEPS: tuple[tuple[str, str], ...] = (
    ("join", "first"),
    ("join", "second"),
    ("join", "third"),
    ("leave", "first"),
    ("leave", "second"),
)


def _ids(batch: str) -> tuple[str, ...]:
    host, instances = BATCHES[batch]
    return tuple(f"{host}@{instance}" for instance in instances)


CLIENT_ROOMS = {client: "r1" if batch == "first" else "r3" for batch in BATCHES for client in _ids(batch)}
CONFIGURED = {
    "first": [("orders", "r1@broker-a", 0), ("orders", "r2@broker-b", 3)],
    "second": [("orders", "r1@broker-a", 0), ("skewed", "r1@broker-a", 2)],
    "third": [("%RETRY%live-CONFIG", "r1@broker-a", 0)],
}


@dataclass
class LiveGroup:
    """One group under one strategy: how its members are set up, and how we predict them."""

    strategy: str
    options: dict[str, Any]
    flags: dict[str, str] = field(default_factory=dict)
    running: dict[str, ConsumerProcess] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return f"live-{self.strategy}"

    def join(self, load: RocketMQLoad, batch: str) -> None:
        """Start the batch's process; once more when it could not reach its brokers, as on a very busy machine."""
        try:
            self._start(load, batch)
        except StartFailedError:
            self._start(load, batch)

    def _start(self, load: RocketMQLoad, batch: str) -> None:
        host, instances = BATCHES[batch]
        flags = dict(self.flags)
        if self.strategy == "CONFIG":
            flags["queues"] = ",".join("/".join(map(str, queue)) for queue in CONFIGURED[batch])
        self.running[batch] = load.start_consumer(
            group=self.group,
            topics=TOPICS,
            instance=instances,
            client_ip=host,
            strategy=self.strategy,
            strategy_options=flags,
            options=QUICK,
        )

    def leave(self, batch: str) -> None:
        """Stop the batch's process gracefully."""
        self.running.pop(batch).stop()

    def expected_members(self) -> list[str]:
        return sorted(client for batch in self.running for client in _ids(batch))

    def predicted(self, sample: GroupSample) -> dict[MessageQueue, tuple[str, ...]]:
        """Return the owners of every queue in the route, as we compute them."""
        queues = sample.routes.read_queues
        answer = allocate_group(find_strategy(self.strategy, self.options), queues, self.expected_members()).answer()
        owners = owners_by_queue(answer)
        return {queue: owners.get(queue, ()) for queue in queues}


def _groups() -> list[LiveGroup]:
    config = {
        client: [dict(zip(("topic", "broker", "queue_id"), queue, strict=True)) for queue in CONFIGURED[batch]]
        for batch in BATCHES
        for client in _ids(batch)
    }
    rooms = {"brokers": BROKER_ROOMS, "clients": CLIENT_ROOMS}
    flags = {
        "broker-rooms": ",".join(f"{broker}={room}" for broker, room in BROKER_ROOMS.items()),
        "client-rooms": ",".join(f"{client}={room}" for client, room in CLIENT_ROOMS.items()),
    }
    return [
        LiveGroup("AVG", {}),
        LiveGroup("AVG_BY_CIRCLE", {}),
        LiveGroup("CONSISTENT_HASH", {}),
        LiveGroup("CONFIG", {"config": config}),
        LiveGroup("MACHINE_ROOM", {"consumer_rooms": ["r1"]}, {"rooms": "r1"}),
        LiveGroup("MACHINE_ROOM_NEARBY-AVG", {"machine_rooms": rooms}, flags),
    ]


@pytest.fixture(scope="module", params=[OLD, NEW])
def cluster(request: pytest.FixtureRequest) -> Iterator[RocketMQCluster]:
    """Two brokers whose names carry rooms."""
    with RocketMQCluster.start(request.param, brokers=list(BROKER_ROOMS)) as found:
        found.create_topic("orders", 4)
        found.create_topic("skewed", per_broker={"r1@broker-a": QueueCounts(read=3, write=3)})
        yield found


def test_members_own_what_is_predicted_after_every_join_and_leave(cluster: RocketMQCluster) -> None:
    groups, load = _groups(), cluster.load()
    with ExitStack() as undo:
        admin = undo.enter_context(RocketMQAdmin(cluster.name_server, limits=PATIENT))
        together = undo.enter_context(ThreadPoolExecutor(max_workers=AT_ONCE))
        for change, batch in STEPS:
            if change == "join":
                list(together.map(lambda group, batch=batch: group.join(load, batch), groups))
            else:
                list(together.map(lambda group, batch=batch: group.leave(batch), groups))
            for group in groups:
                _await_prediction(admin, group, f"{change} of {batch}")


def _await_prediction(admin: RocketMQAdmin, group: LiveGroup, step: str) -> None:
    """Return once the members' own word equals the prediction; a rebalance under way is no defect, a lasting one is."""
    deadline = time.monotonic() + GHOSTS_GONE_S
    while True:
        sample = observe_group(admin, group=group.group, cluster=None, topics=None, at=datetime.now(UTC))
        members = [member.client_id for member in sample.members]
        retry = {queue for queue in sample.routes.read_queues if queue.is_retry}
        found = {queue: sample.owners.get(queue, ()) for queue in sample.routes.read_queues}
        predicted = group.predicted(sample)
        if members == group.expected_members() and len(retry) == len(BROKER_ROOMS) and found == predicted:
            return
        if time.monotonic() > deadline:
            wrong = {
                str(queue): (found[queue], predicted[queue]) for queue in found if found[queue] != predicted[queue]
            }
            raise AssertionError(
                f"{group.strategy}, {step}: members {members}, retry queues {len(retry)}, found and predicted {wrong}"
            )
        time.sleep(0.5)


QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE, NO_PERMISSION = 400, 401, 16
SHARERS = ("c1", "c10", "c2", "c3")


@pytest.fixture(scope="module")
def assigning() -> Iterator[RocketMQCluster]:
    """A 5.x cluster with a group of four, whose broker is asked who gets what."""
    with RocketMQCluster.start(NEW, brokers=2) as found:
        found.create_topic("orders", 4)
        members = found.load().start_consumer(group="pop", topics=["orders"], instance=SHARERS, options=QUICK)
        yield found
        members.kill()  # nothing is left to be seen; four graceful leaves would take half a minute


def _await_sharers(cluster: RocketMQCluster) -> None:
    """Return once every broker lists all members: one that was answered late connects anew."""
    deadline = time.monotonic() + GHOSTS_GONE_S
    while any(len(known) != len(SHARERS) for known in cluster.members("pop").values()):
        assert time.monotonic() < deadline, cluster.members("pop")
        time.sleep(0.2)


def _assigned(cluster: RocketMQCluster, client: str, strategy: str) -> set[MessageQueue]:
    """Return what the broker itself would give the client (``QueryAssignmentProcessor``)."""
    question = {
        "topic": "orders",
        "consumerGroup": "pop",
        "clientId": client,
        "strategyName": strategy,
        "messageModel": "CLUSTERING",
    }
    answer = ask(cluster.brokers[0].address, QUERY_ASSIGNMENT, body=json.dumps(question).encode())
    assert answer.code == 0, answer
    queues = [assignment["messageQueue"] for assignment in answer.body["messageQueueAssignments"]]
    return {MessageQueue(queue["topic"], queue["brokerName"], queue["queueId"]) for queue in queues}


def _set_mode(cluster: RocketMQCluster, topic: str, mode: str, share: int) -> int:
    body = {"topic": topic, "consumerGroup": "pop", "mode": mode, "popShareQueueNum": share}
    return ask(cluster.brokers[0].address, SET_MESSAGE_REQUEST_MODE, body=json.dumps(body).encode()).code


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
@pytest.mark.parametrize("share", [None, -1, 1, 2, 3])
def test_the_broker_assigns_what_is_predicted(assigning: RocketMQCluster, strategy: str, share: int | None) -> None:
    """PULL mode (``None``) and POP mode with every kind of sharing, each member's answer."""
    mode = ("PULL", 0) if share is None else ("POP", share)
    assert _set_mode(assigning, "orders", *mode) == 0
    queues = [MessageQueue("orders", broker.name, number) for broker in assigning.brokers for number in range(4)]
    clients = [f"127.0.0.1@{name}" for name in SHARERS]
    options = {} if share is None else {"pop_share_queues": share}
    predicted = allocate_group(find_strategy(strategy, options), queues, clients).answer()
    _await_sharers(assigning)
    assert {client: _assigned(assigning, client, strategy) for client in clients} == {
        client: set(owned) for client, owned in predicted.items()
    }


def test_a_retry_topic_is_never_in_pop_mode(assigning: RocketMQCluster) -> None:
    """rocketmq.md 8, row 14; the reason why we allocate it by the strategy alone."""
    assert _set_mode(assigning, "%RETRY%pop", "POP", 1) == NO_PERMISSION
