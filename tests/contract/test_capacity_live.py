"""Learned capacity against real consumers whose service time is known.

``CONSUMER_PLANNER_BUSY_SECONDS`` watches them for longer than a test has time for.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from planner.documents.policy import parse_policy
from planner.history.intervals import queue_intervals
from planner.model.samples import GroupSample
from planner.model.snapshot import Capacity
from planner.snapshot.capacity import known_capacity, observed_capacity
from planner.sources.live import SAMPLE_EVERY_S, watch
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import Delivery, QueueCurve
from tests.sample_builders import POLICY

pytestmark = pytest.mark.cluster

BUSY_S = float(os.environ.get("CONSUMER_PLANNER_BUSY_SECONDS", "95"))
THREADS, SERVICE_MS = 10, 100
CAN_DO = THREADS * 1000 / SERVICE_MS
CLIENTS = ("c1", "c2")


def of_group(cluster: RocketMQCluster, group: str) -> str:
    return POLICY.replace("127.0.0.1:9876", cluster.name_server).replace(
        "group: shop", f"group: {group}, topics: [{group}]"
    )


def learned(samples: Sequence[GroupSample]) -> Capacity:
    """Return what is learned from offsets and owners alone."""
    silent = [replace(member, tuning=None) for member in samples[-1].members]  # type: ignore[type-var]
    found = known_capacity(queue_intervals(samples, SAMPLE_EVERY_S), silent)
    assert found is not None
    return found


def rate(deliveries: Sequence[Delivery], samples: Sequence[GroupSample]) -> float:
    """Return what one client really did, in messages per second, while it was watched."""
    first, last = (sample.at.timestamp() * 1000 for sample in (samples[0], samples[-1]))
    seen = sum(first <= delivery.epoch_ms < last for delivery in deliveries)
    return seen / (last - first) * 1000 / len(CLIENTS)


def test_busy_consumers_are_learned_to_within_a_tenth(
    rocketmq_cluster: Callable[[str], RocketMQCluster],
) -> None:
    cluster = rocketmq_cluster(NEW)
    group = "capacity-busy"
    cluster.create_topic(group, 4)
    load = cluster.load(NEW)
    backlog = (BUSY_S + 60) * CAN_DO * len(CLIENTS)
    curves = [
        QueueCurve(group, broker.name, queue, ((0, backlog / 80), (10, backlog / 80)))
        for broker in cluster.brokers
        for queue in range(4)
    ]
    load.start_producer(curves).wait(120)
    consumer = load.start_consumer(
        group=group, topics=[group], instance=CLIENTS, threads=THREADS, service_ms=SERVICE_MS
    )
    time.sleep(10)  # the two share the queues by then
    samples = list(watch(parse_policy(of_group(cluster, group), "p.yaml"), BUSY_S))
    consumer.stop()
    found, told = learned(samples), observed_capacity(samples[-1].members)
    truth = rate(consumer.deliveries(), samples)
    figures = f"{found.messages_per_s} ({found.low} to {found.high}, {found.observations} spans), really {truth:.1f}"
    print(f"learned {figures}, by service time {CAN_DO}, by their own figures {told}")
    assert not found.is_lower_bound, figures
    assert found.messages_per_s == pytest.approx(truth, rel=0.1), figures
    assert found.messages_per_s <= CAN_DO * 1.1, figures
    assert found.low is not None
    assert found.low < truth


def test_consumers_with_time_to_spare_give_a_lower_bound(
    rocketmq_cluster: Callable[[str], RocketMQCluster],
) -> None:
    cluster = rocketmq_cluster(NEW)
    group = "capacity-idle"
    cluster.create_topic(group, 1)
    load = cluster.load(NEW)
    consumer = load.start_consumer(group=group, topics=[group], instance="c1", threads=THREADS, service_ms=SERVICE_MS)
    curves = [QueueCurve(group, broker.name, 0, ((0, 20), (120, 20))) for broker in cluster.brokers]
    producer = load.start_producer(curves)
    time.sleep(6)  # the first messages are committed
    samples = list(watch(parse_policy(of_group(cluster, group), "p.yaml"), 40))
    producer.stop()
    consumer.stop()
    found = learned(samples)
    assert found.is_lower_bound
    assert 20 < found.messages_per_s <= 40
