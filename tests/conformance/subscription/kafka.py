"""Kafka groups on one broker, all at a time: each member in turn closes and comes back with other topics."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.clusters.kafka_load import ClientProcess, PartitionCurve
from tests.conformance.kafka.coordinator import look
from tests.conformance.subscription.cases import (
    CALM_S,
    MOST_S,
    RATE,
    SETTLED_S,
    STEP_S,
    Document,
    KafkaCase,
    Outcome,
    Queue,
    Read,
    Turns,
)
from tests.patience import await_steady

JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
AGE_MS = 8_000
SETTINGS = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": "1000"}
BROKER = {"group.initial.rebalance.delay.ms": "0"}


class Group:
    """One group: topics and members bear its case's name."""

    def __init__(self, case: KafkaCase, cluster: KafkaCluster, clients: ClientProcess) -> None:
        self.case, self.cluster, self.clients = case, cluster, clients
        self.names = [f"{case.name}.c{number}" for number in range(case.members)]

    def topics(self, letters: str) -> list[str]:
        """Return the topics' names."""
        return [f"{self.case.name}.{letter}" for letter in letters]

    @property
    def created(self) -> list[str]:
        """Return the topics that are there from the beginning."""
        case = self.case
        return self.topics(case.before if case.pattern else "".join(sorted({*case.before, *case.after})))

    def start(self, name: str, letters: str) -> None:
        """Start a member."""
        case, topics = self.case, self.topics(letters)
        own = {"metadata.max.age.ms": str(AGE_MS)} if case.pattern else {}
        if case.pattern:
            topics = [f"{'~' if case.pattern == 'broker' else '^'}{case.name}[.].*"]
        protocol = {"group.protocol": "consumer", "group.remote.assignor": case.assignor}
        if case.protocol == "classic":
            protocol = {
                "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{JAVA[case.assignor]}",
            }
        config = {**SETTINGS, **own, **protocol}
        self.clients.start_consumer(name, group=case.name, topics=topics, config=config, service_ms=1.0)

    def owners(self) -> dict[Queue, str]:
        """Return who owns what, as the coordinator has it."""
        picture = look(self.cluster, self.case.name)
        return {} if picture is None else {tuple(queue): owner for queue, owner in picture.owners.items()}

    def is_settled(self) -> bool:
        """Return whether all partitions of the present topics have an owner, and every member has one."""
        picture = look(self.cluster, self.case.name)
        topics = self.topics(self.case.before)
        return (
            picture is not None
            and picture.is_stable
            and len(picture.ids) == self.case.members
            and len(picture.owners) == self.case.queues * len(topics)
        )

    def request(self, ids: Mapping[str, str], owners: Mapping[Queue, str], change: Document) -> Document:
        """Return the forecast's request as of now."""
        case = self.case
        used = sorted({*case.before, *case.after})
        settings: Document = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000}
        if case.pattern == "client":
            settings["metadata.max.age.ms"] = AGE_MS
        if case.protocol == "classic":
            settings["group.initial.rebalance.delay.ms"] = 0
        return {
            "system": "kafka",
            "versions": {"client": CLIENT, "broker": self.cluster.version},
            "group": case.name,
            "protocol": case.protocol,
            "strategy": case.assignor,
            "partitions": {topic: [{"rate": RATE, "lag": 0}] * case.queues for topic in self.topics("".join(used))},
            "members": [
                {
                    "id": ids[name],
                    "topics": self.topics(case.before),
                    "owned": [list(queue) for queue, owner in owners.items() if owner == name],
                }
                for name in self.names
            ],
            "service_time_s": 0.001,
            "settings": settings,
            "change": change,
        }

    def run(self, turns: Turns, index: int) -> Outcome:
        """Change it and return what was seen."""
        case = self.case
        for name in self.names:
            self.start(name, case.before)
        await_steady(self.is_settled, 1.0, SETTLED_S)
        time.sleep(turns.sleep_s(index))
        picture = look(self.cluster, case.name)
        assert picture is not None
        owners = self.owners()
        if case.pattern:
            topic = self.topics("b")[0]
            change: Document = {"kind": "subscription", "matches": topic, "evaluated_by": case.pattern}
            request, began = self.request(picture.ids, owners, change), time.time()
            self.cluster.create_topic(topic, case.queues)
            self.clients.produce(f"{case.name}.late", curves([topic], case.queues))
            time.sleep(STEP_S + AGE_MS / 1000)
            return self.seen(request, began, [], picture.ids)
        change = {
            "kind": "subscription",
            "to": self.topics(case.after),
            "clients": [picture.ids[name] for name in self.names],
            "interval_s": STEP_S,
        }
        request, began, steps = self.request(picture.ids, owners, change), time.time(), []
        for number, name in enumerate(self.names):
            time.sleep(max(0.0, began + number * STEP_S - time.time()))
            self.clients.stop_consumer(name)
            self.start(name, case.after)
            time.sleep(max(0.0, began + (number + 1) * STEP_S - 1.0 - time.time()))
            steps.append(self.owners())
        time.sleep(STEP_S)
        return self.seen(request, began, steps, picture.ids)

    def seen(
        self, request: Document, began: float, steps: Sequence[Mapping[Queue, str]], ids: Mapping[str, str]
    ) -> Outcome:
        """Return what was delivered since a little before ``began``."""
        until_s, mine = time.time() - began, set(self.names)
        reads = [
            Read(one.epoch_ms / 1000 - began, ids[one.client], (one.topic, one.partition), one.offset)
            for one in self.clients.deliveries()
            if one.client in mine and one.epoch_ms / 1000 >= began - CALM_S / 2
        ]
        named = [{queue: ids[owner] for queue, owner in step.items()} for step in steps]
        for name in self.names:
            self.clients.ask_to_stop(name)
        return Outcome(self.case.name, request, reads, named, until_s)


def curves(topics: Sequence[str], queues: int) -> list[PartitionCurve]:
    """Return the same rate for each partition."""
    return [
        PartitionCurve(topic, number, ((0.0, RATE), (MOST_S, RATE))) for topic in topics for number in range(queues)
    ]


def watch_kafka(cluster: KafkaCluster, cases: Sequence[KafkaCase]) -> list[Outcome]:
    """Run the cases side by side and return what was seen of each."""
    load = cluster.load()
    clients, producer = load.start(), load.start()
    groups = [Group(case, cluster, clients) for case in cases]
    for group in groups:
        for topic in group.created:
            cluster.create_topic(topic, group.case.queues)
    producer.produce("all", [curve for group in groups for curve in curves(group.created, group.case.queues)])
    turns = Turns(len(groups))
    with ThreadPoolExecutor(len(groups)) as pool:
        return list(pool.map(lambda index: groups[index].run(turns, index), range(len(groups))))
