"""Learned capacity against real consumers whose service time is known.

``CONSUMER_PLANNER_BUSY_SECONDS`` watches them for longer than a test has time for.
"""

import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.history.intervals import queue_intervals
from planner.model.samples import GroupSample
from planner.model.snapshot import Capacity
from planner.simulation.rocketmq.threads import threads_instead
from planner.snapshot.capacity import known_capacity, observed_capacity
from planner.snapshot.setups import client_setups
from planner.sources.live import SAMPLE_EVERY_S, watch
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import Delivery, QueueCurve
from tests.sample_builders import POLICY

pytestmark = pytest.mark.cluster

BUSY_S = float(os.environ.get("CONSUMER_PLANNER_BUSY_SECONDS", "95"))
THREADS, SERVICE_MS = 10, 100
CAN_DO = THREADS * 1000 / SERVICE_MS
CLIENTS = ("c1", "c2")
QUEUES = 8
SHARED_S = 300.0
"""A limit against hanging only."""
SPARE_RATE = 20.0
"""Messages per second that come in for each consumer of the group with time to spare."""
PIECE_S = 5.0
BUSY, SPARE = GROUPS = ("capacity-busy", "capacity-spare")


def policy(cluster: RocketMQCluster, group: str) -> ConsumerScalingPolicy:
    text = POLICY.replace("127.0.0.1:9876", cluster.name_server)
    return parse_policy(text.replace("group: shop", f"group: {group}, topics: [{group}]"), "policy.yaml")


def learned(samples: Sequence[GroupSample]) -> Capacity:
    """Return what is learned from offsets and owners alone."""
    silent = [replace(member, tuning=None) for member in samples[-1].members]  # type: ignore[type-var]
    intervals = queue_intervals(samples, SAMPLE_EVERY_S)
    found = known_capacity(intervals, silent)
    assert found is not None, "\n".join(map(str, intervals))
    return found


def rate(deliveries: Sequence[Delivery], samples: Sequence[GroupSample]) -> float:
    """Return what one client really does, in messages per second: the median over pieces of the watch.

    A machine that stands still for a while takes from the mean what no consumer lacks.
    """
    first, last = (sample.at.timestamp() * 1000 for sample in (samples[0], samples[-1]))
    edges = np.arange(first, last, PIECE_S * 1000)
    seen, _ = np.histogram([delivery.epoch_ms for delivery in deliveries], edges)
    return float(np.median(seen)) / PIECE_S / len(CLIENTS)


@dataclass(frozen=True)
class Watched:
    """What was seen of a group, and what its consumers really did, in messages per second each."""

    samples: Sequence[GroupSample]
    truth: float


@pytest.fixture(scope="module")
def watched(rocketmq_cluster: Callable[[str], RocketMQCluster]) -> dict[str, Watched]:
    """Two groups watched at the same time: one has work for longer than that, the other has time to spare."""
    cluster = rocketmq_cluster(NEW)
    load = cluster.load(NEW)
    for group in GROUPS:
        cluster.create_topic(group, 4)
    backlog = (BUSY_S + 120) * CAN_DO * len(CLIENTS)
    load.start_producer(curves(cluster, BUSY, backlog / QUEUES / 10, 10)).wait(600)
    load.start_producer(curves(cluster, SPARE, SPARE_RATE * len(CLIENTS) / QUEUES, 3600))
    consumers = [
        load.start_consumer(group=group, topics=[group], instance=CLIENTS, threads=THREADS, service_ms=SERVICE_MS)
        for group in GROUPS
    ]
    for group in GROUPS:
        await_shared(policy(cluster, group))
    with ThreadPoolExecutor() as pool:
        samples = pool.map(lambda group: list(watch(policy(cluster, group), BUSY_S)), GROUPS)
        seen = dict(zip(GROUPS, samples, strict=True))
    load.stop()
    truths = {
        group: rate(consumer.deliveries(), seen[group]) for group, consumer in zip(GROUPS, consumers, strict=True)
    }
    return {group: Watched(seen[group], truths[group]) for group in GROUPS}


def await_shared(policy: ConsumerScalingPolicy) -> None:
    """Return once the clients share the queues and have committed on each: at first 10 s after their start."""
    deadline = time.monotonic() + SHARED_S
    while True:
        (sample,) = watch(policy, 0)
        owners = {queue: of_queue for queue, of_queue in sample.owners.items() if not queue.is_retry}
        committed = [one.queue for one in sample.offsets if one.consumer_offset is not None and not one.queue.is_retry]
        is_shared = {*owners.values()} == {(member.identity,) for member in sample.members}
        if is_shared and len(owners) == len(committed) == QUEUES and len(sample.members) == len(CLIENTS):
            return
        assert time.monotonic() < deadline, sample
        time.sleep(0.5)


def curves(cluster: RocketMQCluster, topic: str, each: float, seconds: float) -> list[QueueCurve]:
    return [
        QueueCurve(topic, broker.name, queue, ((0, each), (seconds, each)))
        for broker in cluster.brokers
        for queue in range(QUEUES // len(cluster.brokers))
    ]


def test_busy_consumers_are_learned_to_within_a_tenth(watched: dict[str, Watched]) -> None:
    samples, truth = watched[BUSY].samples, watched[BUSY].truth
    found, told = learned(samples), observed_capacity(samples[-1].members)
    figures = f"{found.messages_per_s} ({found.low} to {found.high}, {found.observations} spans), really {truth:.1f}"
    print(f"learned {figures}, by service time {CAN_DO}, by their own figures {told}")
    assert not found.is_lower_bound, figures
    assert found.messages_per_s == pytest.approx(truth, rel=0.1), figures
    assert found.messages_per_s <= CAN_DO * 1.1, figures
    assert found.low is not None
    assert found.low < truth


def test_threads_are_said_to_help_where_all_are_busy_and_nowhere_else(watched: dict[str, Watched]) -> None:
    sentences = {}
    for group in GROUPS:
        members = watched[group].samples[-1].members
        owned = {member.identity: QUEUES // len(CLIENTS) for member in members}
        sentences[group] = threads_instead("Instead of 1 more pod", client_setups(members), owned, 1.5)
    full = rf"Instead of 1 more pod: 15 instead of {THREADS} threads a member would serve at most ([\d.]+) instead of"
    told = re.match(full, sentences[BUSY])
    assert told, sentences
    assert float(told[1]) == pytest.approx(1.5 * watched[BUSY].truth, rel=0.1), sentences
    # 20 messages/s of 100 ms keep two threads busy.
    free = rf"More threads would not help: at most [23] of a member's {THREADS} threads were busy"
    assert re.match(free, sentences[SPARE]), sentences


def test_consumers_with_time_to_spare_give_a_lower_bound(watched: dict[str, Watched]) -> None:
    found = learned(watched[SPARE].samples)
    assert found.is_lower_bound
    assert SPARE_RATE / 2 < found.messages_per_s <= SPARE_RATE * 1.1
