"""A name server and brokers on loopback that answer from plain tables; a test changes the tables to break things."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.sources.rocketmq.codec import Command
from tests.unit.sources.rocketmq import java_json
from tests.unit.sources.rocketmq.fake_server import FakeServer, Wire
from tests.unit.sources.rocketmq.java_json import queue_key

SILENT = -1
"""Instead of an answer code: no answer at all."""


@dataclass
class FakeBroker:
    """One broker: who is connected, which offsets it tells, and what it does instead of answering.

    ``members`` maps client id to the addresses it is connected from, ``offsets`` (topic, queue id) to broker and
    consumer offset, ``held`` (topic, queue id) to its first and last offset, ``fails`` a request code to the answer
    code that is given for it. ``uncommitted`` queues have offset 0 among ``offsets`` without a commit; ``version``
    heads the answers; ``ahead_s`` is how wrong its clock is. ``groups`` are those with settings or commits, ``others``
    has the members of groups that have other ones than those above.
    """

    name: str
    cluster: str = "C"
    broker_id: int = 0
    members: dict[str, list[str]] = field(default_factory=dict)
    model: str = "CLUSTERING"
    unlisted: set[str] = field(default_factory=set)
    subscribed: list[str] = field(default_factory=list)
    offsets: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    held: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    fails: dict[int, int] = field(default_factory=dict)
    running: dict[str, object] = field(default_factory=dict)
    uncommitted: set[tuple[str, int]] = field(default_factory=set)
    version: int = 513
    ahead_s: float = 0.0
    groups: list[str] = field(default_factory=lambda: ["g"])
    others: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    proxies: list[str] = field(default_factory=list)
    popped_ms: int | None = None
    acknowledged_per_s: float | None = None
    server: FakeServer = field(init=False)

    def script(self, request: Command, wire: Wire) -> None:
        wire.version = self.version
        failure = self.fails.get(request.code)
        if failure == SILENT:
            return
        if failure is not None:
            wire.answer(request, code=failure, remark="made to fail\nwith a second line")
            return
        answers = {
            14: self._commit,
            26: self._config,
            28: self._runtime,
            38: self._ids,
            43: self._commits,
            201: self._groups,
            202: self._held,
            203: self._connections,
            208: self._stats,
            307: self._running,
            315: self._counter,
            345: self._subscription,
        }
        answers[request.code](request, wire)

    def _ids(self, request: Command, wire: Wire) -> None:
        ids = [one for one, addresses in self.members.items() for _ in addresses if one not in self.unlisted]
        if ids:
            wire.answer(request, body=java_json.body({"consumerIdList": ids}))
        else:
            wire.answer(request, code=1, remark=f"no consumer for this group, {request.fields['consumerGroup']}")

    def _counter(self, request: Command, wire: Wire) -> None:
        if self.acknowledged_per_s is None:
            wire.answer(request, code=1, remark=f"The stats <{request.fields['statsName']}> not exist")
            return
        per_s = self.acknowledged_per_s
        windows = {f"stats{name}": {"sum": 60, "tps": per_s, "avgpt": 1.0} for name in ("Minute", "Hour", "Day")}
        wire.answer(request, body=java_json.body(windows))

    def _subscription(self, request: Command, wire: Wire) -> None:
        popped = {"topic": request.fields["topic"], "subString": "*", "subVersion": self.popped_ms}
        told = {"group": request.fields["group"], "subscriptionData": None if self.popped_ms is None else popped}
        wire.answer(request, body=java_json.body(told))

    def _connections(self, request: Command, wire: Wire) -> None:
        if request.fields["consumerGroup"] == "CID_DefaultHeartBeatSyncerTopic" and self.proxies:
            proxies = [
                {"clientAddr": address, "clientId": f"{address}@DEFAULT", "language": "JAVA", "version": 513}
                for address in self.proxies
            ]
            wire.answer(request, body=java_json.body({"connectionSet": proxies, "messageModel": "BROADCASTING"}))
            return
        if not self.members or request.fields["consumerGroup"].startswith("CID_"):
            wire.answer(request, code=206, remark=f"the consumer group[{request.fields['consumerGroup']}] not online")
            return
        connections = [
            {"clientAddr": address, "clientId": client_id, "language": "JAVA", "version": 513}
            for client_id, addresses in self.others.get(request.fields["consumerGroup"], self.members).items()
            for address in addresses
        ]
        subscribed = {topic: {"topic": topic} for topic in self.subscribed}
        told = {"connectionSet": connections, "messageModel": self.model, "subscriptionTable": subscribed}
        wire.answer(request, body=java_json.body(told))

    def _stats(self, request: Command, wire: Wire) -> None:
        if request.fields["consumerGroup"] not in self.groups:
            wire.answer(request, body=java_json.body({"consumeTps": 0.0, "offsetTable": {}}))
            return
        table = {
            queue_key(topic, self.name, queue_id): {"brokerOffset": end, "consumerOffset": read, "lastTimestamp": 5}
            for (topic, queue_id), (end, read) in self.offsets.items()
        }
        wire.answer(request, body=java_json.body({"consumeTps": 0.0, "offsetTable": table}))

    def _held(self, request: Command, wire: Wire) -> None:
        table = {
            queue_key(topic, self.name, queue_id): {"minOffset": first, "maxOffset": end, "lastUpdateTimestamp": 5}
            for (topic, queue_id), (first, end) in self.held.items()
            if topic == request.fields["topic"]
        }
        wire.answer(request, body=java_json.body({"offsetTable": table}))

    def _commit(self, request: Command, wire: Wire) -> None:
        where = (request.fields["topic"], int(request.fields["queueId"]))
        if where in self.uncommitted:
            wire.answer(request, code=22, remark="Not found, maybe this group consumer boot first")
        else:
            wire.answer(request, fields={"offset": str(self.offsets[where][1])})

    def _commits(self, request: Command, wire: Wire) -> None:
        table: dict[str, dict[int, int]] = {}
        for (topic, queue_id), (_, read) in self.offsets.items():
            if (topic, queue_id) not in self.uncommitted:
                for group in self.groups:
                    table.setdefault(f"{topic}@{group}", {})[queue_id] = read
        wire.answer(request, body=java_json.body({"offsetTable": table}))

    def _groups(self, request: Command, wire: Wire) -> None:
        table = {name: {"groupName": name, "retryMaxTimes": 3} for name in (*self.groups, "TOOLS_CONSUMER")}
        wire.answer(request, body=java_json.body({"subscriptionGroupTable": table}))

    def _config(self, request: Command, wire: Wire) -> None:
        wire.answer(request, body=b"brokerPermission=6\nbrokerRole=ASYNC_MASTER\n")

    def _runtime(self, request: Command, wire: Wire) -> None:
        started_at = round((time.time() + self.ahead_s - 5.5) * 1000)
        uptime = "[ 0 days, 0 hours, 0 minutes, 5 seconds ]"
        table = {
            "bootTimestamp": str(started_at),
            "runtime": uptime,
            "brokerVersionDesc": "V5_5_0",
            "commitLogDiskRatio": "0.21",
        }
        wire.answer(request, body=java_json.body({"table": table}))

    def _running(self, request: Command, wire: Wire) -> None:
        client_id = request.fields["clientId"]
        told = self.running.get(client_id)
        if isinstance(told, int):
            if told != SILENT:
                wire.answer(request, code=told, remark="made to fail")
        elif told is None:
            wire.answer(request, code=1, remark=f"The Consumer <g> <{client_id}> not online")
        else:
            wire.answer(request, body=java_json.body(told))


@dataclass
class FakeCluster:
    """``routes`` maps topic to broker name to (read queues, write queues, permission)."""

    brokers: list[FakeBroker]
    routes: dict[str, dict[str, tuple[int, int, int]]] = field(default_factory=dict)
    extra_addresses: dict[str, dict[int, str]] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)
    server: FakeServer = field(init=False)

    def broker(self, name: str) -> FakeBroker:
        return next(broker for broker in self.brokers if broker.name == name)

    def script(self, request: Command, wire: Wire) -> None:
        {105: self._route, 106: self._info, 206: self._topics}[request.code](request, wire)

    def _info(self, request: Command, wire: Wire) -> None:
        table = {
            one.name: {
                "brokerAddrs": {one.broker_id: one.server.address, **self.extra_addresses.get(one.name, {})},
                "brokerName": one.name,
                "cluster": one.cluster,
            }
            for one in reversed(self.brokers)
        }
        nowhere = {name: {"brokerAddrs": {}, "cluster": "C"} for name in self.extra_addresses if name not in table}
        wire.answer(request, body=java_json.body({"brokerAddrTable": {**table, **nowhere}, "clusterAddrTable": {}}))

    def _topics(self, request: Command, wire: Wire) -> None:
        wire.answer(request, body=java_json.body({"topicList": list(self.routes)}))

    def _route(self, request: Command, wire: Wire) -> None:
        topic = request.fields["topic"]
        if topic not in self.routes:
            wire.answer(request, code=17, remark=f"No topic route info in name server for the topic: {topic}")
            return
        queues = [
            {"brokerName": name, "perm": permission, "readQueueNums": read, "writeQueueNums": write}
            for name, (read, write, permission) in self.routes[topic].items()
        ]
        mapping = {"topicQueueMappingByBroker": {"b": {}}} if topic in self.static else {}
        wire.answer(request, body=java_json.body({"brokerDatas": [], "queueDatas": queues, **mapping}))


def running_info(*queues: tuple[str, str, int], dropped: tuple[tuple[str, str, int], ...] = ()) -> dict[str, object]:
    """Return a member's running info: it owns ``queues``, uses AVG and has 20 threads."""
    table = {queue_key(*queue): {"droped": False} for queue in queues}
    table |= {queue_key(*queue): {"droped": True} for queue in dropped}
    strategy = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1f"
    properties = {"allocateMessageQueueStrategy": strategy, "consumeThreadMax": "20", "PROP_CONSUMEORDERLY": "false"}
    return {"mqTable": table, "properties": properties, "statusTable": {}, "subscriptionSet": []}


def two_by_two() -> FakeCluster:
    """Return a healthy world: brokers a and b, topic T with 2 queues on each, members m1 and m2 of group g."""
    retry = "%RETRY%g"
    owned = {
        "m1": running_info(("T", "a", 0), ("T", "a", 1), (retry, "a", 0), dropped=(("T", "b", 1),)),
        "m2": running_info(("T", "b", 0), ("T", "b", 1), (retry, "b", 0)),
    }
    brokers = [
        FakeBroker(
            name,
            members={"m1": [f"10.0.0.1:{port}"], "m2": [f"10.0.0.2:{port}"]},
            subscribed=["T", retry],
            offsets={("T", 0): (10, 4), ("T", 1): (20, 20), (retry, 0): (0, 0)},
            running=dict(owned),
        )
        for name, port in (("a", 1), ("b", 2))
    ]
    routes = {"T": {"b": (2, 2, 6), "a": (2, 2, 6)}, retry: {"b": (1, 1, 6), "a": (1, 1, 6)}}
    return FakeCluster(brokers, routes)


@contextlib.contextmanager
def running(cluster: FakeCluster) -> Iterator[FakeCluster]:
    """Run all servers of ``cluster``."""
    with contextlib.ExitStack() as stack:
        for broker in cluster.brokers:
            broker.server = stack.enter_context(FakeServer(broker.script))
        cluster.server = stack.enter_context(FakeServer(cluster.script))
        yield cluster
