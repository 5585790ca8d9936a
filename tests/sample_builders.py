"""Samples made of a few words: one group watched every few seconds."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from planner.allocation.registry import find_strategy
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment, UpdateStrategy
from planner.model.membership import ClientTuning, Member, TopicFigures
from planner.model.pods import Container, Pod, Workload
from planner.model.queues import MessageQueue
from planner.model.routes import BrokerQueues, RouteTable, TopicRoute
from planner.model.samples import GroupSample, QueueOffsets

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
AVERAGELY = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"

Offsets = Callable[[MessageQueue, int], tuple[int, int | None]]
"""From a queue and a sample's number to (broker offset, consumer offset)."""


def routes(topics: dict[str, int], brokers: Sequence[str] = ("broker-a", "broker-b")) -> RouteTable:
    """Return routes with so many queues of each topic on every broker."""
    return RouteTable(
        tuple(
            TopicRoute(topic, tuple(BrokerQueues(broker, each, each, 6) for broker in brokers))
            for topic, each in sorted(topics.items())
        )
    )


def tuning(strategy_class: str | None = AVERAGELY, rt_ms: float = 20.0, threads: int = 2) -> ClientTuning:
    """Return the tuning of a busy client."""
    figures = (TopicFigures("orders", rt_ms, 50.0, 0.0),) if rt_ms else ()
    return ClientTuning(strategy_class, False, threads, 1, 1000, 0, figures)


def members(
    route_table: RouteTable, clients: Sequence[str], client_tuning: ClientTuning | None = None
) -> tuple[Member, ...]:
    """Return members that own what AVG gives them."""
    owned: dict[str, list[MessageQueue]] = {client: [] for client in clients}
    for _, of_topic in groupby(route_table.read_queues, key=lambda queue: queue.topic):
        queues = list(of_topic)
        for queue, position in zip(queues, find_strategy("AVG").owners(queues, clients), strict=True):
            owned[clients[position]].append(queue)
    return tuple(
        Member(client, "127.0.0.1:1", "JAVA", 513, client_tuning or tuning(), tuple(queues))
        for client, queues in owned.items()
    )


def steady(arriving: int = 10, consuming: int = 10) -> Offsets:
    """Return offsets that grow by so many messages a sample."""
    return lambda _, number: (1000 + arriving * number, 1000 + consuming * number)


def watch(
    count: int,
    offsets: Offsets | None = None,
    every_s: float = 5.0,
    topics: dict[str, int] | None = None,
    clients: Sequence[str] = ("10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1"),
    client_tuning: ClientTuning | None = None,
) -> tuple[GroupSample, ...]:
    """Return ``count`` samples of group ``shop``, one every ``every_s`` seconds from ``START`` on."""
    route_table = routes(topics or {"orders": 8, "payments": 3})
    told = offsets or steady()
    present = members(route_table, clients, client_tuning)
    return tuple(
        GroupSample(
            system="rocketmq",
            cluster="DefaultCluster",
            group="shop",
            at=START + timedelta(seconds=every_s * number),
            took_s=0.02,
            routes=route_table,
            members=present,
            offsets=tuple(QueueOffsets(queue, *told(queue, number)) for queue in route_table.read_queues),
        )
        for number in range(count)
    )


POLICY = """\
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {name: shop}
spec:
  source: {system: rocketmq, nameServers: ["127.0.0.1:9876"], cluster: DefaultCluster, group: shop}
  scaleTargetRef: {name: shop-consumer}
  minReplicas: 1
  maxReplicas: 16
  objective: {maxUtilisation: 0.8, backlogGoneSeconds: 600}
  window: {seconds: 120}
"""


def kafka_policy(bootstrap: str, group: str) -> str:
    """Return a policy for a Kafka group, with a target of its own, that is content with what a short watch shows."""
    servers = json.dumps(bootstrap.split(","))
    source = f"source: {{system: kafka, bootstrapServers: {servers}, cluster: test, group: {group}}}"
    rocketmq = next(line for line in POLICY.splitlines() if "source:" in line)
    spec = "  capacity: {messagesPerSecond: 50}\n  freshness: {minCompleteness: 0.1}\n"
    named = POLICY.replace("name: shop}", f"name: {group}}}").replace("shop-consumer", f"{group}-consumer")
    return named.replace(rocketmq, f"  {source}") + spec


def deployment(addresses: Sequence[str], autoscalers: tuple[Autoscaler, ...] | None = (), **changes: Any) -> Deployment:
    """Return a quiet Deployment ``shop-consumer`` with one ready pod at each address."""
    owner = Workload("Deployment", "default", "shop-consumer")
    count = len(addresses)
    made = Deployment(
        namespace="default",
        name="shop-consumer",
        uid="u",
        resource_version="1",
        at=START,
        replicas=count,
        current=count,
        updated=count,
        ready=count,
        available=count,
        is_observed=True,
        is_paused=False,
        strategy=UpdateStrategy("RollingUpdate", "25%", "25%"),
        containers=(Container("app", "shop:1"),),
        grace_s=30,
        min_ready_s=0,
        progress_deadline_s=600,
        uses_host_network=False,
        pods=tuple(
            Pod(
                "default", f"shop-consumer-{number}", f"u{number}", "Running", (address,), is_ready=True, workload=owner
            )
            for number, address in enumerate(addresses)
        ),
        autoscalers=autoscalers,
        replicas_set_by=(),
    )
    return replace(made, **changes)
