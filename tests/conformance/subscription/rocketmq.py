"""RocketMQ groups on one broker, all at a time: each client in turn comes back with other tags or topics."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import NEW, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Delivery, QueueCurve, RocketMQLoad
from tests.conformance.subscription.cases import (
    CALM_S,
    MOST_S,
    QUEUES,
    RATE,
    SETTLED_S,
    STEP_S,
    Document,
    Outcome,
    Queue,
    Read,
    RocketMQCase,
    Turns,
)
from tests.patience import await_steady

TAGS = "x,y,z"
HEARTBEAT_MS = 5_000
CONNECTIONS = 203
OBSERVER = "subscription-observer"
SERVICE_S = 0.002


class Group:
    """One group: topics and clients bear its case's name."""

    def __init__(self, case: RocketMQCase, cluster: RocketMQCluster, load: RocketMQLoad) -> None:
        self.case, self.cluster, self.load = case, cluster, load
        self.names = [f"{case.name}-c{number}" for number in range(case.members)]
        self.old: list[ConsumerProcess] = []
        self.new: list[ConsumerProcess] = []
        self.winners: Counter[str] = Counter()
        self.is_over = threading.Event()
        self.began = 0.0

    def topic(self, letter: str) -> str:
        """Return a topic's name."""
        return f"{self.case.name.replace('.', '-')}-{letter}"

    @property
    def topics(self) -> list[str]:
        """Return all topics of the case."""
        return [self.topic(letter) for letter in sorted({*self.case.before, *self.case.after})]

    def spawn(self, name: str, subscription: Mapping[str, str]) -> ConsumerProcess:
        """Return a client's process that is up and waits for the order to start."""
        (tags,) = set(subscription.values())
        return self.load.start_consumer(
            group=self.topic("group"),
            topics=[self.topic(letter) for letter in subscription],
            instance=name,
            strategy=self.case.strategy,
            service_ms=SERVICE_S * 1000,
            options={"tags": tags, "heartbeat-ms": HEARTBEAT_MS},
            watched=True,
            on_order=True,
            tells_messages=True,
        )

    def prepare(self) -> None:
        """Start all processes; the first ones become members."""
        self.old = [self.spawn(name, self.case.before) for name in self.names]
        self.new = [self.spawn(name, self.case.after) for name in self.names]
        for process in self.old:
            process.begin()

    def reads(self) -> list[Delivery]:
        """Return all deliveries of the group."""
        return [delivery for process in (*self.old, *self.new) for delivery in process.deliveries()]

    def is_settled(self) -> bool:
        """Return whether each queue of the present topics has been read by one client, and each client reads some."""
        recent = [one for one in self.reads() if one.epoch_ms > time.time() * 1000 - 2_000]
        queues = {(one.topic, one.queue): one.client_id for one in recent}
        return len(queues) == QUEUES * len(self.case.before) and len(set(queues.values())) == self.case.members

    def watch_broker(self) -> None:
        """Note now and then which subscription the broker has for the group."""
        address = self.cluster.brokers[0].address
        while not self.is_over.wait(0.25):
            answer = remoting.ask(address, CONNECTIONS, {"consumerGroup": self.topic("group")})
            if answer.body:
                table = answer.body["subscriptionTable"]
                mine = {topic: entry["subString"] for topic, entry in table.items() if not topic.startswith("%")}
                self.winners[", ".join(f"{topic[-1]}: {tags}" for topic, tags in sorted(mine.items()))] += 1

    def run(self, turns: Turns, index: int) -> Outcome:
        """Change it and return what was seen."""
        await_steady(self.is_settled, 1.0, SETTLED_S)
        time.sleep(turns.sleep_s(index))
        watcher = threading.Thread(target=self.watch_broker)
        self.began = began = time.time()
        steps = []
        watcher.start()
        for number, (old, new) in enumerate(zip(self.old, self.new, strict=True)):
            time.sleep(max(0.0, began + number * STEP_S - time.time()))
            old.stop()
            new.begin()
            if number == len(self.old) - 1:
                self.is_over.set()
            time.sleep(max(0.0, began + (number + 1) * STEP_S - 0.5 - time.time()))
            steps.append(self.owners(number))
        time.sleep(STEP_S)
        watcher.join()
        reads = [
            Read(one.epoch_ms / 1000 - began, one.client_id, (one.topic, one.broker, one.queue), one.offset, one.tag)
            for one in self.reads()
            if one.topic in self.topics and one.epoch_ms / 1000 >= began - CALM_S / 2
        ]
        until_s = time.time() - began
        return Outcome(self.case.name, self.request(), reads, steps, until_s, {}, self.winners)

    def owners(self, number: int) -> dict[Queue, str]:
        """Return who owns what by the clients' own last looks, of those that run."""
        running = [*self.new[: number + 1], *self.old[number + 1 :]]
        found: dict[Queue, str] = {}
        for process in running:
            last = {look.topic: look for look in process.looks() if look.topic in self.topics}
            for look in last.values():
                found.update({(look.topic, broker, queue): process.client_id for broker, queue in look.queues})
        return found

    def request(self) -> Document:
        """Return the forecast's request."""
        case, broker = self.case, self.cluster.brokers[0].name

        def named(subscription: Mapping[str, str]) -> Document:
            return {self.topic(letter): tags for letter, tags in subscription.items()}

        return {
            "system": "rocketmq",
            "versions": {"client": case.version or NEW, "broker": NEW},
            "group": self.topic("group"),
            "strategy": case.strategy,
            "queues": [
                {"topic": topic, "broker": broker, "queue_id": number, "rate": RATE, "lag": 0}
                for topic in self.topics
                for number in range(QUEUES)
            ],
            "clients": [{"id": process.client_id, "threads": 20} for process in self.old],
            "service_time_s": SERVICE_S,
            "settings": {"heartbeatBrokerInterval": HEARTBEAT_MS},
            "change": {
                "kind": "subscription",
                "from": named(case.before),
                "to": named(case.after),
                "clients": [process.client_id for process in self.old],
                "interval_s": STEP_S,
            },
        }


def watch_rocketmq(cluster: RocketMQCluster, cases: Sequence[RocketMQCase]) -> list[Outcome]:
    """Run the cases side by side and return what was seen of each; an observer of all topics knows every message."""
    groups = [Group(case, cluster, cluster.load(case.version or NEW)) for case in cases]
    topics = [topic for group in groups for topic in group.topics]
    for topic in topics:
        cluster.create_topic(topic, per_broker={cluster.brokers[0].name: QueueCounts(QUEUES, QUEUES)})
    for group in groups:
        cluster.create_group(group.topic("group"))
    cluster.create_group(OBSERVER)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Group.prepare, groups))
    load = cluster.load()
    observer = load.start_consumer(group=OBSERVER, topics=topics, instance=OBSERVER, tells_messages=True)
    name = cluster.brokers[0].name
    points = (0.0, RATE), (MOST_S, RATE)
    load.start_producer(
        [QueueCurve(topic, name, number, points) for topic in topics for number in range(QUEUES)],
        options={"tags": TAGS},
    )
    turns = Turns(len(groups))
    with ThreadPoolExecutor(len(groups)) as pool:
        outcomes = list(pool.map(lambda index: groups[index].run(turns, index), range(len(groups))))
    sent = observer.deliveries()
    return [_with_filtered(outcome, group, sent) for outcome, group in zip(outcomes, groups, strict=True)]


def _with_filtered(outcome: Outcome, group: Group, sent: Sequence[Delivery]) -> Outcome:
    """Return the outcome with how many messages of the topics that stay some client got, and how many none did.

    By phase, tag and ``got`` or ``lost``: ``mixed`` is from the first new client's start to the last one's.
    """
    case, counts = group.case, Counter[str]()
    kept = {group.topic(letter) for letter in case.before if letter in case.after}
    begins_s, ends_s = (process.moment("STARTING") / 1000 - group.began for process in (group.new[0], group.new[-1]))
    got = {(read.queue, read.offset) for read in outcome.reads}
    for one in sent:
        at_s = one.stored_ms / 1000 - group.began
        if one.topic not in kept or not -CALM_S / 4 < at_s < outcome.until_s - CALM_S:
            continue
        phase = "before" if at_s < begins_s else "mixed" if at_s < ends_s else "after"
        is_read = ((one.topic, one.broker, one.queue), one.offset) in got
        counts[f"{phase} {one.tag} {'got' if is_read else 'lost'}"] += 1
    return replace(outcome, filtered=dict(counts))
