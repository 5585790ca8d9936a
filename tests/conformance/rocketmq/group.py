"""A living group: a process a member, a producer, and the logs of both put together."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.clusters.network import Apart
from tests.clusters.rocketmq import RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, Look, ProducerProcess, QueueCurve, RocketMQLoad
from tests.conformance.measure import Delivered, Hold, Log, parts
from tests.conformance.record import PINNED
from tests.conformance.rocketmq.cells import Config

MOST_SECONDS = 3600.0
OPTIONS = {
    "awaitTerminationMillisWhenShutdown": "await-termination-ms",
    "consumeMessageBatchMaxSize": "batch",
    "heartbeatBrokerInterval": "heartbeat-ms",
    "persistConsumerOffsetInterval": "persist-ms",
    "pollNameServerInterval": "poll-ms",
    "pullBatchSize": "pull-batch",
}
"""What the load program calls a setting of the client."""
PROPERTIES = ("autoCommitIntervalMillis", "clientRebalance", "popInvisibleTime")
"""Settings that only some clients have: the load program takes them by their own names."""
OF_CLIENT_JVM, OF_BROKER_JVM = ("rocketmq.client.", "rocketmq.broker.")
"""Settings that are properties of the one JVM or the other; those of brokers, who starts the cluster gives them."""
OF_BROKER = ("serverChannelMaxIdleTimeSeconds",)
"""Settings of broker.conf: who starts the cluster gives them, too."""
NO_OPTIONS = (OF_CLIENT_JVM, OF_BROKER_JVM, *OF_BROKER, *PROPERTIES)
BACKLOG_S = 8.0
"""How long a producer takes to make a backlog."""
API_TIMEOUT_MS = 3_000
"""What clients have by default: who was frozen or cut off for longer hangs up."""
PRODUCER_POLL_MS = 1000
"""A broker that comes back gets messages at once: what its queues wait for is consumers."""
Queue = tuple[str, str, int]
Document = dict[str, Any]


@dataclass
class Life:
    """One process of one member; ``ended_ms``: when its last hold ends, by signal or death.

    ``away``: from when to when it stood still or was cut off; it holds nothing then, whatever it believes.
    """

    process: ConsumerProcess
    ended_ms: float = math.inf
    away: list[tuple[float, float]] = field(default_factory=list)

    @property
    def client_id(self) -> str:
        """Whose life it is."""
        return self.process.client_id


@dataclass
class LiveGroup:
    """One topic, one group, its members; everything is drawn from ``random``.

    ``group`` is the group that newcomers join, at first called as the topic. Where ``apart`` is given, each member gets
    a network of its own from it, which can be cut. ``patient`` members wait longer than usual for answers.
    """

    config: Config
    cluster: RocketMQCluster
    load: RocketMQLoad
    name: str
    random: random.Random
    strategy: str = ""
    options: Mapping[str, int] = field(default_factory=dict)
    rate: float = 0.0
    queues: dict[str, int] = field(default_factory=dict)
    lives: list[Life] = field(default_factory=list)
    producer: ProducerProcess | None = None
    began_ms: int = 0
    group: str = ""
    apart: Callable[[], Apart] | None = None
    patient: bool = False
    networks: dict[str, Apart] = field(default_factory=dict)

    def start(self, curves: Sequence[QueueCurve], within_s: float = 0.0) -> None:
        """Create topic and group, start the first members, then the producer.

        ``within_s`` spreads the members' starts: a client polls routes every 30 s from its own start.
        """
        self.strategy, self.options = self.config.strategy, self.config.options
        self.rate = self.config.rate
        self.queues = {broker.name: self.config.queues for broker in self.cluster.brokers}
        self.cluster.create_topic(self.name, self.config.queues)
        self.group = self.name
        self.cluster.create_group(self.group)
        if self.config.backlog:
            self._produce(curves)
            time.sleep(BACKLOG_S)
        for life in [self.spawn(self.new_id()) for _ in range(self.config.members)]:
            time.sleep(self.random.uniform(0, within_s / self.config.members))
            self.begin(life)
        if not self.config.backlog:
            self._produce(curves)

    def _produce(self, curves: Sequence[QueueCurve]) -> None:
        self.producer = self.load.start_producer(curves, options={"poll-ms": PRODUCER_POLL_MS})
        self.began_ms = self.producer.await_ready()

    def flat_curves(self) -> list[QueueCurve]:
        """Return the same rate for every queue, for as long as anybody may watch, after the backlog if there is one."""
        points = [(0.0, self.config.rate), (MOST_SECONDS, self.config.rate)]
        if self.config.backlog:
            high = self.config.backlog / BACKLOG_S
            points = [(0.0, high), (BACKLOG_S, high), (BACKLOG_S, self.config.rate), points[1]]
        return [
            QueueCurve(self.name, broker.name, queue, tuple(points))
            for broker in self.cluster.brokers
            for queue in range(self.config.queues)
        ]

    def new_id(self) -> str:
        """Return an instance name that was not used yet, anywhere in the order of ids."""
        used = {life.client_id.rpartition("@")[2] for life in self.lives}
        free = [name for number in range(100) if (name := f"c{number:02}") not in used]
        return self.random.choice(free)

    def spawn(self, instance: str, strategy: str = "", options: Mapping[str, int] | None = None) -> Life:
        """Return a member's process that is up and waits for the order to start."""
        options = self.options if options is None else options
        settings = self.config.settings
        network = self.apart() if self.apart else None
        process = self.load.start_consumer(
            group=self.group,
            topics=[self.name],
            instance=instance,
            strategy=strategy or self.strategy,
            strategy_options={name.replace("_", "-"): value for name, value in options.items()},
            threads=self.config.threads,
            service_ms=self.config.service_s * 1000,
            orderly=self.config.orderly,
            options={
                **({} if self.patient else {"api-timeout-ms": API_TIMEOUT_MS}),
                **{OPTIONS[name]: value for name, value in settings.items() if not name.startswith(NO_OPTIONS)},
            },
            properties={name: value for name, value in settings.items() if name in PROPERTIES},
            java_properties={name: value for name, value in settings.items() if name.startswith(OF_CLIENT_JVM)},
            watched=True,
            on_order=True,
            polls=self.config.consumer == "lite_pull",
            fetches=self.config.consumer == "pull",
            prefix=network.prefix if network else (),
        )
        life = Life(process)
        if network:
            self.networks[life.client_id] = network
        self.lives.append(life)
        return life

    def begin(self, life: Life) -> int:
        """Start it and return the epoch milliseconds of its ``start()``."""
        life.process.begin()
        return life.process.moment("STARTING")

    def end(self, life: Life, how: str) -> float:
        """Signal it and return the epoch milliseconds of that; a graceful one goes on for a while."""
        at_ms = time.time() * 1000
        if how == "graceful":
            life.process.process.ask_to_stop()
        elif how == "crash":
            life.process.kill()
        else:
            life.process.freeze()
        life.ended_ms = at_ms
        return at_ms

    @property
    def members(self) -> list[Life]:
        """Return those that nobody ended, by client id."""
        return sorted((life for life in self.lives if math.isinf(life.ended_ms)), key=lambda life: life.client_id)

    def owners(self, at_ms: float = math.inf) -> dict[Queue, set[str]]:
        """Return who owns each queue, as the last looks say of those who were members then; without a moment, now."""
        found: dict[Queue, set[str]] = {}
        for life in self.lives:
            looks = [look for look in life.process.looks() if look.epoch_ms <= at_ms <= life.ended_ms]
            for look in _of_topic(looks, self.name)[-1:]:
                for broker, queue in look.queues:
                    found.setdefault((self.name, broker, queue), set()).add(life.client_id)
        return found

    def lags(self, at_ms: float) -> dict[tuple[str, int], int]:
        """Return by broker and queue what waited at a moment just past: stored, and not delivered yet.

        Empty where the group began without a backlog: it keeps up.
        """
        if not self.config.backlog:
            return {}
        stored = self.cluster.produced(self.name)
        later = self.rate * (time.time() - at_ms / 1000)
        seen = {
            (one.broker, one.queue, one.offset)
            for life in self.lives
            for one in life.process.deliveries()
            if one.epoch_ms <= at_ms
        }
        delivered = Counter(queue[:2] for queue in seen)
        return {queue: max(round(count - later) - delivered[queue], 0) for queue, count in stored.items()}

    def request(
        self,
        change: Document,
        strategy: str,
        options: Mapping[str, int],
        members: Sequence[str],
        lags: Mapping[tuple[str, int], int],
    ) -> Document:
        """Return the forecast request of a change of these members; a queue without a lag has none."""
        return {
            "system": "rocketmq",
            "versions": {"client": self.config.client, "broker": self.config.broker},
            "group": self.group or self.name,
            "strategy": strategy,
            "options": {**options, **({"consumer": self.config.consumer} if self.config.consumer else {})},
            "queues": [
                {
                    "topic": self.name,
                    "broker": broker,
                    "queue_id": queue,
                    "rate": round(self.rate, 4),
                    "lag": lags.get((broker, queue), 0),
                }
                for broker, count in self.queues.items()
                for queue in range(count)
            ],
            "clients": [
                {"id": member, "threads": self.config.threads, "orderly": self.config.orderly} for member in members
            ],
            "service_time_s": self.config.call_s,
            "settings": dict(self.config.settings),
            "change": change,
            **({"producers": PINNED} if change["kind"] == "broker_down" else {}),
            "trials": 200,
            "seed": 1,
        }

    def log(self, changed_ms: float, before_s: float) -> Log:
        """Return all that was logged from ``before_s`` before the change until now."""
        ends_s = time.time() - changed_ms / 1000 - 0.2
        deliveries, holds = [], []
        for life in self.lives:
            deliveries += _delivered(life, self.name, changed_ms, before_s)
            holds += _holds(life, self.name, changed_ms)
        return Log(deliveries, holds, -before_s, ends_s)

    def stop(self) -> None:
        """End all its processes at once; nobody looks any more."""
        for life in self.lives:
            if life.process.running:
                life.process.kill()
        if self.producer is not None:
            self.producer.kill()


def _of_topic(looks: Sequence[Look], topic: str) -> list[Look]:
    return [look for look in looks if look.topic == topic]


def _delivered(life: Life, topic: str, changed_ms: float, before_s: float) -> list[Delivered]:
    since_ms = changed_ms - before_s * 1000
    return [
        Delivered(
            (one.epoch_ms - changed_ms) / 1000,
            one.client_id,
            (topic, one.broker, one.queue),
            one.offset,
            (one.stored_ms - changed_ms) / 1000,
        )
        for one in life.process.deliveries()
        if one.topic == topic and one.epoch_ms >= since_ms
    ]


def _holds(life: Life, topic: str, changed_ms: float) -> list[Hold]:
    """Return the holds that its looks tell; whatever it still owns at its end ends with it."""
    found: list[Hold] = []
    gained: dict[tuple[str, int], float] = {}
    for look in _of_topic(life.process.looks(), topic):
        at_s = (look.epoch_ms - changed_ms) / 1000
        if look.epoch_ms > life.ended_ms:
            break
        for queue in gained.keys() - set(look.queues):
            found.append(Hold(life.client_id, (topic, *queue), gained.pop(queue), at_s))
        for queue in set(look.queues) - gained.keys():
            gained[queue] = at_s
    ended_s = (life.ended_ms - changed_ms) / 1000
    found += (Hold(life.client_id, (topic, *queue), at_s, ended_s) for queue, at_s in gained.items())
    away = [((gone - changed_ms) / 1000, (back - changed_ms) / 1000) for gone, back in life.away]
    return [part for hold in found for part in parts(hold, away)]
