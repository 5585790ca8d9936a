"""Groups in pods whose subscription changes by ``planner migrate subscription``, on a real broker and control plane."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import libversion

from tests.clusters.kafka import KafkaCluster
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.consumers import kafka_consumer
from tests.clusters.kubernetes.rest import Json
from tests.contract.test_strategy_migration_live import TOPIC, Shop, counted, produce_to, shop, since
from tests.loops import WAIT_S, Loop, exactly, kafka_loop
from tests.unit.cli.test_cli import planner

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

__all__ = ["shop"]
SHOP_GROUP, SHOP_MORE = "subscribing-rocketmq", "subscribing-rocketmq-more"
GROUP, MORE, PARTITIONS, RATE, PODS = "subscribing", "subscribing-more", 6, 4.0, 3


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    kafka_cluster.create_topic(MORE, PARTITIONS)
    kafka_cluster.produce(MORE, dict.fromkeys(range(PARTITIONS), 10))

    def container(logs: Path) -> Json:
        log = f"{logs}/$(POD_NAME).tsv"
        made = kafka_consumer(kafka_cluster.bootstrap, group=GROUP, topic="$(TOPICS)", delivery_log=log)
        return {**made, "env": [*made["env"], {"name": "TOPICS", "value": GROUP}]}

    with kafka_loop(
        control_plane_with_plans,
        kafka_cluster,
        tmp_path_factory.mktemp(GROUP),
        GROUP,
        container,
        partitions=PARTITIONS,
        rate=RATE,
        client=f"librdkafka {libversion()[0]}",
        settings={},
    ) as running:
        yield running


def test_a_kafka_group_reads_a_second_topic_after_a_roll(loop: Loop) -> None:
    """Red where the new topic makes the executor take the group for one that changed by itself, or nobody reads it."""
    policy, before = loop.write_policy(exactly(PODS)), loop.pods()
    topics = ("--to", GROUP, "--to", MORE, "--env", f"TOPICS={GROUP},{MORE}")
    changed = loop.apply(loop.migrate(policy, "subscription", *topics), policy)
    assert (changed.status["phase"], changed.status["ended"]) == ("Succeeded", "new"), changed.status
    assert not set(before) & set(loop.pods())

    def both_are_read() -> bool:
        return {(topic, str(number)) for topic in (GROUP, MORE) for number in range(PARTITIONS)} <= loop.owners().keys()

    loop.cluster.wait_until("every partition of both topics to be read", both_are_read, WAIT_S)


def test_a_rocketmq_group_reads_a_second_topic_once_all_have_stopped(shop: Shop) -> None:
    """Red where old and new clients mix, where the new topic makes the executor stop, or a message is lost."""
    shop.brokers.create_topic(SHOP_MORE, 2)
    producer = produce_to(shop.brokers, SHOP_MORE)
    try:
        shop.start("one-topic", SHOP_GROUP)
        policy = shop.policy(SHOP_GROUP, "one-topic", "duplicateSeconds: 1")
        topics = ("--to", TOPIC, "--to", SHOP_MORE, "--env", f"TOPICS={TOPIC},{SHOP_MORE}")
        plan = shop.planned(policy, "subscription", "two-topics", *topics)
        mixed = planner("migrate", "subscription", shop.folder / "two-topics.json", "-p", policy, *topics)
        assert mixed.returncode == 1, mixed.stdout
        assert f"{SHOP_MORE} would have owners that do not subscribe to it" in " ".join(mixed.stderr.split())
        shop.run("apply", plan, "-p", policy, "--kubeconfig", shop.cluster.kubeconfig)
    finally:
        producer.stop()
    moved = shop.verdict("two-topics")["moved queues"]
    assert moved["fit"] == "inside", moved["sentence"]
    old, new = (shop.deliveries(SHOP_GROUP, name) for name in ("one-topic", "two-topics"))
    assert {delivery.topic for delivery in old} == {TOPIC}
    assert old[-1].epoch_ms < new[0].epoch_ms, "two subscriptions never share one group"
    ends = {TOPIC: shop.stop_producing(), SHOP_MORE: shop.brokers.produced(SHOP_MORE)}
    for topic, of_topic in ends.items():

        def all_are_read(topic: str = topic, of_topic: dict[tuple[str, int], int] = of_topic) -> bool:
            read = [delivery for delivery in shop.deliveries(SHOP_GROUP) if delivery.topic == topic]
            return set(counted(read)) == since(dict.fromkeys(of_topic, 0), of_topic)

        shop.cluster.wait_until(f"every message of {topic}", all_are_read, WAIT_S)
