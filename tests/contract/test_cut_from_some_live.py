"""Real clients of 5.5.0 of whom one is cut off from one of two brokers until the others are given its messages.

Three groups consume one topic at once: lite pull, orderly, and one whose queues the broker allocates. Brokers give up
who is silent for 12 s instead of 120, so that a minute is enough.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.clusters.network import apart
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.clusters.rocketmq_load import Delivery, QueueCurve
from tests.conformance.measure import Queue, owners_of
from tests.conformance.rocketmq.cuts import CUT_OFF, LOCKED, LOST, MOST_S, QUEUES, RATE, TOPIC, Group, await_rest
from tests.conftest import TOLD

pytestmark = pytest.mark.cluster

LITE_PULL, ORDERLY, BY_BROKER = "lite-pull", "orderly", "by-broker"
KINDS = (LITE_PULL, ORDERLY, BY_BROKER)
TIMERS = {"heartbeatBrokerInterval": 5_000, "serverChannelMaxIdleTimeSeconds": 12}
"""Brokers must wait for more than two heartbeats, as theirs of 120 s do."""
VICTIM = f"127.0.0.1@{CUT_OFF}"
ON_ITS_WAY_S = 2.0
"""What a client had read and not begun as the cut came, it works off."""
COME_S = 600.0


@dataclass(frozen=True)
class Watched:
    """One group through the cut: who owned what before and afterwards, all deliveries, and the forecast."""

    answer: Mapping[str, Any]
    before: Mapping[Queue, set[str]]
    after: Mapping[Queue, set[str]]
    deliveries: tuple[Delivery, ...]
    began_ms: float
    ended_ms: float
    produced: int

    def mine(self, is_lost: bool) -> set[Queue]:
        """The victim's queues of the broker out of reach, or of the other one."""
        owned = {queue for queue, owners in self.before.items() if owners == {VICTIM}}
        return {queue for queue in owned if (queue[1] == LOST) == is_lost}

    def meanwhile(self, queues: set[Queue], by_victim: bool) -> list[Delivery]:
        """What of these queues the victim, or all others, were given while it was cut off."""
        since_ms = self.began_ms + 1000 * ON_ITS_WAY_S
        return [
            one
            for one in self.deliveries
            if since_ms < one.epoch_ms < self.ended_ms
            and (one.client_id == VICTIM) == by_victim
            and place(one) in queues
        ]


def place(one: Delivery) -> Queue:
    return (one.topic, one.broker, one.queue)


def until(holds: Callable[[], bool]) -> None:
    """Wait until that holds, at most so long: what follows says what is wrong."""
    deadline = time.monotonic() + COME_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.25)


def is_taken_over(group: Group, since_ms: float) -> bool:
    """Whether others were given messages of queues that the victim had of the broker out of reach."""
    mine = {queue for queue, owners in before(group).items() if owners == {VICTIM} and queue[1] == LOST}
    later = [one for one in group.deliveries() if one.epoch_ms > since_ms + 1000 * ON_ITS_WAY_S]
    return any(place(one) in mine and one.client_id != VICTIM for one in later)


def before(group: Group) -> dict[Queue, set[str]]:
    return owners_of(forecast(group.request(1.0))["before"])


@pytest.fixture(scope="module", name="seen")
def _seen() -> Iterator[Mapping[str, Watched]]:
    settings = {"serverChannelMaxIdleTimeSeconds": str(TIMERS["serverChannelMaxIdleTimeSeconds"])}
    properties = {name: str(value) for name, value in LOCKED.items()}
    with RocketMQCluster.start(NEW, settings=settings, java_properties=properties) as cluster, ExitStack() as undo:
        cluster.create_topic(TOPIC, QUEUES)
        groups = [Group(cluster, name, undo.enter_context(apart()), TIMERS) for name in KINDS]
        for process in [process for group in groups for process in group.processes]:
            process.await_ready()
        places = [(broker.name, queue) for broker in cluster.brokers for queue in range(QUEUES)]
        curves = [QueueCurve(TOPIC, *one, ((0.0, RATE), (MOST_S, RATE))) for one in places]
        producer = cluster.load().start_producer(curves, options={"poll-ms": 1000})
        await_rest(groups)
        owned, begun = [group.owners() for group in groups], []
        for group in groups:
            group.network.cut(cluster.broker(LOST).address)
            begun.append(time.time() * 1000)
        until(lambda: is_taken_over(groups[-1], begun[-1]))
        ended = []
        for group in groups:
            ended.append(time.time() * 1000)
            group.network.heal()
        await_rest(groups)
        producer.stop()
        produced = sum(cluster.produced(TOPIC).values())
        until(lambda: all(len(messages(group.deliveries())) >= produced for group in groups))
        yield {
            group.name: Watched(
                forecast(group.request((ended_ms - began_ms) / 1000)),
                owners,
                group.owners(),
                tuple(group.deliveries()),
                began_ms,
                ended_ms,
                produced,
            )
            for group, owners, began_ms, ended_ms in zip(groups, owned, begun, ended, strict=True)
        }
        for group in groups:
            for process in group.processes:
                process.kill()  # nothing is left to be seen; brokers wait for graceful ones


def messages(deliveries: list[Delivery] | tuple[Delivery, ...]) -> set[tuple[Queue, int]]:
    return {(place(one), one.offset) for one in deliveries}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_moves_for_good(
    seen: Mapping[str, Watched], kind: str, record_property: Callable[[str, object], None]
) -> None:
    watched = seen[kind]
    assert watched.before == owners_of(watched.answer["before"])
    assert watched.after == owners_of(watched.answer["after"]) == watched.before
    assert watched.answer["moved"] == []
    twice = len(watched.deliveries) - len(messages(watched.deliveries))
    record_property(TOLD, f"{kind}: {twice} come twice, forecast {watched.answer['total']['duplicates']}")


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_cut_off_goes_on_with_the_other_broker_alone(seen: Mapping[str, Watched], kind: str) -> None:
    watched = seen[kind]
    assert watched.mine(is_lost=True)
    assert not watched.meanwhile(watched.mine(is_lost=True), by_victim=True)
    assert watched.meanwhile(watched.mine(is_lost=False), by_victim=True)


def test_others_take_over_where_brokers_have_given_it_up(seen: Mapping[str, Watched]) -> None:
    watched = seen[BY_BROKER]
    assert watched.meanwhile(watched.mine(is_lost=True), by_victim=False)
    assert watched.answer["total"]["duplicates"]["p95"] > 0


def test_nobody_else_is_given_an_orderly_queue_whose_lock_is_renewed(seen: Mapping[str, Watched]) -> None:
    watched = seen[ORDERLY]
    assert not watched.meanwhile(watched.mine(is_lost=False), by_victim=False)


@pytest.mark.parametrize("kind", KINDS)
def test_every_message_comes_to_somebody(seen: Mapping[str, Watched], kind: str) -> None:
    assert len(messages(seen[kind].deliveries)) == seen[kind].produced > 0
