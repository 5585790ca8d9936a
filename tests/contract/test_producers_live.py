"""Real producers that choose the queue themselves, and a broker that dies: what comes into the queues that are left."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.membership.inflow import Inflow, find_inflow
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.history.inflow_shares import are_shares_even
from tests.clusters.rocketmq import NEW, RocketMQCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

QUEUES, RATE, KEYS, POLL_S = 4, 80.0, 12, 6.0
EVENLY, KEYED = "rounds", "keys"
CALM_S, WATCHED_S = 20.0, 15.0
Counts = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RocketMQCluster]:
    """A cluster of our own, as one of its brokers is killed."""
    with RocketMQCluster.start(NEW, brokers=2) as running:
        for topic in (EVENLY, KEYED):
            running.create_topic(topic, QUEUES)
        yield running


def test_a_dead_brokers_messages_go_where_the_model_sends_them(cluster: RocketMQCluster) -> None:
    options = {"poll-ms": int(POLL_S * 1000)}
    cluster.load().start_sender({EVENLY: 0, KEYED: KEYS}, RATE, options=options)
    before = {topic: arrived(cluster, topic, CALM_S) for topic in (EVENLY, KEYED)}
    assert [are_shares_even(list(before[topic].values())) for topic in (EVENLY, KEYED)] == [True, False]
    dead = cluster.brokers[1]
    dead.kill()
    time.sleep(POLL_S + 1)  # every producer has renewed its route
    # The rate is judged by what came, not by the clock: shares of the whole, and nothing of the whole is missing.
    for topic, kind in ((EVENLY, "round_robin"), (KEYED, "keyed")):
        seen = arrived(cluster, topic, WATCHED_S)
        assert {broker for broker, _ in seen} == {"broker-a"}
        inflow = inflow_of(topic, kind, before[topic], dead.name)
        total = sum(seen.values())
        for (_, queue), count in seen.items():
            low, high = np.quantile(inflow.after[:, queue], [0.001, 0.999]) / RATE
            assert low - 0.02 <= count / total <= high + 0.02, (topic, queue, count, total, low, high)
        assert (are_shares_even(list(seen.values())) is True) == (kind == "round_robin")


def arrived(cluster: RocketMQCluster, topic: str, seconds: float) -> Counts:
    """Return how many messages come into each queue that is in the route."""
    first = cluster.produced(topic)
    time.sleep(seconds)
    return {queue: count - first.get(queue, 0) for queue, count in cluster.produced(topic).items()}


def inflow_of(topic: str, kind: str, counts: Counts, dead: str) -> Inflow:
    """Return what the model says of these queues, with the shares that were seen before."""
    total = sum(counts.values())
    document = {
        "system": "rocketmq",
        "versions": {"client": NEW, "broker": NEW},
        "strategy": "AVG",
        "queues": [
            {"topic": topic, "broker": broker, "queue_id": queue, "rate": RATE * count / total}
            for (broker, queue), count in sorted(counts.items())
        ],
        "clients": [{"id": "127.0.0.1@c"}],
        "service_time_s": 0.01,
        "settings": {"pollNameServerInterval": int(POLL_S * 1000)},
        "change": {"kind": "broker_down", "broker": dead},
        "producers": kind,
        "trials": 2000,
    }
    queues = len(counts)
    nobody, idle = np.zeros(queues, dtype=np.intp), np.zeros(queues, dtype=bool)
    inflow = find_inflow(
        build_scenario(read_request(document)), nobody, np.array([1000.0]), idle, np.random.default_rng(1)
    )
    assert inflow is not None
    return inflow
