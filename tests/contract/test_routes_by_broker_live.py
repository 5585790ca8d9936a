"""Brokers of a real 5.5.0 cluster that allocate, and a topic that gets more queues: each broker learns it by itself."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.clusters import rocketmq_remoting as remoting
from tests.clusters.rocketmq import NEW, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import Delivery
from tests.conformance.measure import owners_of
from tests.conformance.rocketmq.cells import Config
from tests.conformance.rocketmq.group import LiveGroup
from tests.conftest import TOLD
from tests.patience import await_steady

pytestmark = pytest.mark.cluster

TOPIC, QUEUES, MORE, RATE, SERVICE_S = "routed", 4, 2, 8.0, 0.2
BY_BROKER, RENEWS_MS = {"clientRebalance": False}, 10_000
CONFIG = Config(NEW, NEW, "AVG", {}, members=3, queues=QUEUES, rate=RATE, service_s=SERVICE_S, settings=BY_BROKER)
STEADY_S, MOST_S = 4.0, 600.0

Owners = dict[Any, set[str]]


@dataclass(frozen=True)
class Watched:
    """What was seen of the change: owners before and after it, all deliveries, and what was forecast."""

    before: Owners
    after: Owners
    deliveries: list[Delivery]
    answer: dict[str, Any]

    @property
    def twice(self) -> Counter[tuple[str, int]]:
        """How many deliveries of each queue, by broker and number, were not the first ones of their messages."""
        times = Counter((one.broker, one.queue, one.offset) for one in self.deliveries)
        found: Counter[tuple[str, int]] = Counter()
        for (broker, queue, _), count in times.items():
            found[broker, queue] += count - 1
        return found


@pytest.fixture(scope="module", name="seen")
def _seen() -> Iterator[Watched]:
    with RocketMQCluster.start(NEW, settings={"loadBalancePollNameServerInterval": str(RENEWS_MS)}) as cluster:
        group = LiveGroup(CONFIG, cluster, cluster.load(), TOPIC, random.Random(TOPIC))
        group.start(group.flat_curves())
        grown = cluster.brokers[0]
        change = {
            "kind": "queues",
            "topic": TOPIC,
            "broker": grown.name,
            "read_queues": QUEUES + MORE,
            "write_queues": QUEUES,
        }
        request = group.request(change, "AVG", {}, [life.client_id for life in group.members], {})
        request["settings"]["loadBalancePollNameServerInterval"] = RENEWS_MS
        answer = forecast(request)
        await_steady(lambda: group.owners() == owners_of(answer["before"]), STEADY_S, MOST_S)
        before, begun_ms = group.owners(), deliveries(group)[-1].epoch_ms
        remoting.update_topic(grown.address, TOPIC, QueueCounts(QUEUES + MORE, QUEUES))
        await_steady(lambda: group.owners() == owners_of(answer["after"]), STEADY_S, MOST_S)
        later = [one for one in deliveries(group) if one.epoch_ms >= begun_ms]
        yield Watched(before, group.owners(), later, answer)
        group.stop()


def deliveries(group: LiveGroup) -> list[Delivery]:
    found = [one for life in group.lives for one in life.process.deliveries()]
    return sorted(found, key=lambda one: one.epoch_ms)


def test_all_brokers_give_what_is_forecast_in_the_end(seen: Watched) -> None:
    assert seen.before == owners_of(seen.answer["before"])
    assert seen.after == owners_of(seen.answer["after"])
    assert seen.after.keys() - seen.before.keys() == {(TOPIC, "broker-a", QUEUES), (TOPIC, "broker-a", QUEUES + 1)}


def test_only_what_moves_comes_twice(seen: Watched, record_property: Callable[[str, object], None]) -> None:
    moved = {(broker, queue) for _, broker, queue in seen.answer["moved"]}
    assert moved
    assert {place for place, count in seen.twice.items() if count} <= moved
    told = seen.answer["total"]["duplicates"]
    record_property(TOLD, f"duplicates {sum(seen.twice.values())}, forecast {told['p05']} to {told['p95']}")


def test_no_message_is_left_out(seen: Watched) -> None:
    places = {(one.broker, one.queue) for one in seen.deliveries}
    assert places == {(broker, queue) for broker in ("broker-a", "broker-b") for queue in range(QUEUES)}
    for place in places:
        offsets = {one.offset for one in seen.deliveries if (one.broker, one.queue) == place}
        assert offsets == set(range(min(offsets), max(offsets) + 1)), place
