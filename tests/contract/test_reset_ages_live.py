"""``planner migrate reset --ask-brokers`` on real brokers: counts and ages are those of the messages themselves."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from planner.deployments.offsets.ages import ask_brokers
from planner.deployments.offsets.installations import installation
from planner.documents.policy import ConsumerScalingPolicy
from planner.rollout.migrations.requests import ResetMessages
from planner.rollout.steps import ResetOffsets
from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import NEW, OLD, RocketMQCluster
from tests.contract.test_offsets_live import Shop, _consume, policy

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_200)]

APART_S = 8.0
"""So much later the messages come that wait: their age and that of the consumed ones cannot be taken for each other."""


def ask(policy: ConsumerScalingPolicy, group: str, to: str) -> ResetMessages:
    step = ResetOffsets(group, f"set the offsets of {group}", 60, to_end=to)
    with installation(policy) as offsets:
        return ask_brokers(offsets, step, datetime.now(UTC))


def is_age_of(age_s: float | None, stored_ms: int, at: datetime) -> bool:
    """Return whether the age is that of a message stored then, to a twentieth and half a second."""
    true_s = at.timestamp() - stored_ms / 1000
    return age_s is not None and true_s - 0.1 <= age_s <= max(true_s * 1.05, true_s + 0.5) + 0.1


@pytest.mark.parametrize("version", [OLD, NEW])
def test_rocketmq_tells_how_many_messages_how_old(
    rocketmq_cluster: Callable[[str], RocketMQCluster], version: str
) -> None:
    shop = Shop(rocketmq_cluster(version))
    shop.topic = f"{shop.topic}-ages"
    shop.old, shop.green = f"{shop.topic}-old", f"{shop.topic}-green"
    shop.cluster.create_topic(shop.topic, 2)
    shop.policy = policy(
        f"system: rocketmq, nameServers: ['{shop.cluster.name_server}'], cluster: DefaultCluster", shop.old, shop.topic
    )
    shop.produce(1.0, 40.0)
    sent = shop.cluster.produced(shop.topic)
    shop.stop(shop.consume(shop.old, sum(sent.values())), shop.old)
    time.sleep(APART_S)
    shop.produce(1.0, 40.0)
    ends = shop.cluster.produced(shop.topic)

    back, ahead = ask(shop.policy, shop.old, "earliest"), ask(shop.policy, shop.old, "latest")
    everything = shop.stop(shop.consume(shop.green, sum(ends.values())), shop.green)
    consumed = [one.stored_ms for one in everything if one.offset < sent[one.broker, one.queue]]
    waiting = [one.stored_ms for one in everything if one.offset >= sent[one.broker, one.queue]]
    assert (back.repeated, back.skipped, back.unknowns) == (len(consumed), 0, ())
    assert (ahead.repeated, ahead.skipped, ahead.unknowns) == (0, len(waiting), ())
    assert is_age_of(back.oldest_repeated_s, min(consumed), back.at), (back, min(consumed))
    assert is_age_of(ahead.oldest_skipped_s, min(waiting), ahead.at), (ahead, min(waiting))


def test_kafka_tells_how_many_records_how_old(kafka_cluster: KafkaCluster) -> None:
    topic, group = "reset-ages", "reset-ages-old"
    kafka_cluster.create_topic(topic, 3)
    kafka_cluster.produce(topic, dict.fromkeys(range(3), 20))
    kafka_cluster.commit(group, {(topic, number): 20 for number in range(3)})
    time.sleep(APART_S)
    kafka_cluster.produce(topic, {0: 7, 2: 5})
    asked = policy(f"system: kafka, bootstrapServers: {kafka_cluster.bootstrap.split(',')}, cluster: c", group, topic)

    back, ahead = ask(asked, group, "earliest"), ask(asked, group, "latest")
    clients = kafka_cluster.load("librdkafka").start()
    _consume(clients, "all", f"{group}-all", topic, "classic", 72)
    made = [(one.offset, one.made_ms) for one in clients.deliveries() if one.client == "all"]
    clients.stop_consumer("all")
    consumed, waiting = ([ms for offset, ms in made if (offset < 20) is is_old] for is_old in (True, False))
    assert (back.repeated, back.skipped, back.unknowns) == (60, 0, ())
    assert (ahead.repeated, ahead.skipped, ahead.unknowns) == (0, 12, ())
    assert is_age_of(back.oldest_repeated_s, min(consumed), back.at), (back, min(consumed))
    assert is_age_of(ahead.oldest_skipped_s, min(waiting), ahead.at), (ahead, min(waiting))
