"""Real groups on a real 5.5.0 cluster: what they run is found, by the class they tell and by what they own alone."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.inference import Inference, Observation, Search, infer, observation_of
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.rocketmq import GHOSTS_GONE_S, NEW, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import RocketMQLoad
from tests.patience import PATIENT

pytestmark = pytest.mark.cluster

QUICK = {"poll-ms": 1000, "heartbeat-ms": 2000, "persist-ms": 1000}
TOPICS = ("orders", "skewed")
BROKER_ROOMS = {"r1@broker-a": "r1", "r2@broker-b": "r2"}
CLIENT_ROOMS = {"127.0.0.1@c1": "r1", "127.0.0.1@c10": "r1", "127.0.0.1@c2": "r3"}
INSTANCES = ("c1", "c10", "c2")
LISTED = [("orders", "r1@broker-a", 0), ("orders", "r2@broker-b", 3), ("skewed", "r1@broker-a", 2)]


@dataclass(frozen=True)
class Real:
    """One group that runs for the whole test: its strategy, what its clients are started with, what we should find."""

    name: str
    strategy: str
    options: Mapping[str, Any]
    flags: Mapping[str, str | int] = field(default_factory=dict)
    instances: tuple[str, ...] = INSTANCES

    @property
    def group(self) -> str:
        return f"inferred-{self.name}"

    def start(self, load: RocketMQLoad) -> None:
        load.start_consumer(
            group=self.group,
            topics=TOPICS,
            instance=self.instances,
            strategy=self.strategy,
            strategy_options=self.flags,
            options=QUICK,
        )


_LISTS = [dict(zip(("topic", "broker", "queue_id"), one, strict=True)) for one in LISTED]
REAL = (
    Real("avg", "AVG", {}),
    Real("circle", "AVG_BY_CIRCLE", {}),
    Real("hash", "CONSISTENT_HASH", {"virtual_nodes": 10}),
    Real("hash-160", "CONSISTENT_HASH", {"virtual_nodes": 160}, {"virtual-nodes": 160}),
    Real(
        "config",
        "CONFIG",
        {"config": {f"127.0.0.1@{one}": _LISTS for one in INSTANCES}},
        {"queues": ",".join("/".join(map(str, one)) for one in LISTED)},
    ),
    Real("room", "MACHINE_ROOM", {"consumer_rooms": ["r1"]}, {"rooms": "r1"}),
    Real(
        "nearby",
        "MACHINE_ROOM_NEARBY-AVG",
        {"machine_rooms": {"brokers": BROKER_ROOMS, "clients": {**CLIENT_ROOMS, "127.0.0.1@c2": "elsewhere"}}},
        {
            "broker-rooms": ",".join(f"{broker}={room}" for broker, room in BROKER_ROOMS.items()),
            "client-rooms": ",".join(f"{client}={room}" for client, room in CLIENT_ROOMS.items()),
        },
    ),
)
SPLIT = (
    Real("split", "AVG", {}, instances=("c1", "c3")),
    Real("split", "AVG_BY_CIRCLE", {}, instances=("c2", "c4")),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RocketMQCluster]:
    """Two brokers in two rooms, and all groups."""
    with RocketMQCluster.start(NEW, brokers=list(BROKER_ROOMS)) as found:
        found.create_topic("orders", 4)
        found.create_topic("skewed", per_broker={"r1@broker-a": QueueCounts(read=3, write=3)})
        load = found.load()
        with ThreadPoolExecutor(max_workers=2) as together:
            list(together.map(lambda real: real.start(load), (*REAL, *SPLIT)))
        yield found
        for process in load.processes:
            process.kill()  # nothing is left to be seen; graceful leaves would take half a minute


@pytest.fixture(scope="module")
def admin(cluster: RocketMQCluster) -> Iterator[RocketMQAdmin]:
    with RocketMQAdmin(cluster.name_server, limits=PATIENT) as found:
        yield found


def observe(admin: RocketMQAdmin, group: str, members: int) -> Observation:
    """Return what is seen once every member, and both brokers' retry queues, are there."""
    deadline = time.monotonic() + GHOSTS_GONE_S
    while True:
        sample = observe_group(admin, group=group, cluster=None, topics=None, at=datetime.now(UTC))
        told = [member for member in sample.members if member.owned is not None]
        retry = [queue for queue in sample.routes.read_queues if queue.is_retry]
        if len(told) == members and len(retry) == len(BROKER_ROOMS):
            return observation_of(sample)
        assert time.monotonic() < deadline, sample
        time.sleep(0.5)


def infer_settled(
    admin: RocketMQAdmin, group: str, members: int, expected: str | None
) -> tuple[Observation, Inference]:
    """Return the answer as soon as it is the expected one: a rebalance under way is explained by nothing."""
    deadline = time.monotonic() + GHOSTS_GONE_S
    while True:
        seen = observe(admin, group, members)
        found = infer([seen])
        if any(one.strategy == expected for one in found.explanations) or (expected is None and found.members):
            return seen, found
        assert time.monotonic() < deadline, (found.sentence, seen)
        time.sleep(0.5)


def untold(seen: Observation) -> Observation:
    """Return the observation as a client shows it that hides its settings, as subclasses and other languages do."""
    members = (replace(one, tuning=one.tuning and replace(one.tuning, strategy_class=None)) for one in seen.members)
    return Observation(seen.queues, tuple(members))


@pytest.mark.parametrize("real", REAL, ids=lambda real: real.name)
def test_a_real_groups_strategy_is_found_with_its_parameters(admin: RocketMQAdmin, real: Real) -> None:
    seen, found = infer_settled(admin, real.group, len(real.instances), real.strategy)
    assert found.named == (real.strategy.partition("-")[0],)
    named = next(one for one in found.explanations if one.strategy == real.strategy)
    assert named.evidence.queues_observed == len(seen.queues)
    if real.name == "config":  # what the lists hold beside the group's queues is not to be seen, nor is their order
        lists = named.options["config"]
        assert {client: sorted(map(str, held)) for client, held in lists.items()} == {
            client: sorted(map(str, held)) for client, held in real.options["config"].items()
        }
    else:
        assert dict(real.options) in [dict(one) for one in named.parameters]
    guessed = infer([untold(seen)])
    assert real.strategy in {one.strategy for one in guessed.explanations}
    if real.name in ("avg", "circle", "hash", "hash-160"):
        assert guessed.strategy == real.strategy, guessed.sentence
        assert found.strategy == real.strategy


def test_another_number_of_virtual_nodes_is_told_from_the_default(
    admin: RocketMQAdmin, cluster: RocketMQCluster
) -> None:
    """One more member tells more: fewer numbers fit both memberships."""
    seen, found = infer_settled(admin, "inferred-hash-160", 3, "CONSISTENT_HASH")
    numbers = {one["virtual_nodes"] for one in found.explanations[0].parameters}
    assert 160 in numbers
    assert 10 not in numbers
    more = replace(REAL[3], instances=("c7",))
    more.start(cluster.load())
    again, _ = infer_settled(admin, "inferred-hash-160", 4, "CONSISTENT_HASH")
    both = infer([again, seen])
    assert both.evidence.snapshots == 2
    left = {one["virtual_nodes"] for one in both.explanations[0].parameters}
    assert 160 in left < numbers


def test_two_strategies_in_one_group_are_told_member_by_member(admin: RocketMQAdmin) -> None:
    wanted = {f"127.0.0.1@{name}": real.strategy for real in SPLIT for name in real.instances}
    deadline = time.monotonic() + GHOSTS_GONE_S
    while True:
        seen = observe(admin, "inferred-split", 4)
        found, guessed = infer([seen]), infer([untold(seen)], Search())
        if {one.client: one.strategy for one in found.members} == wanted and guessed.members:
            break
        assert time.monotonic() < deadline, (found.sentence, guessed.sentence, seen)
        time.sleep(0.5)
    assert found.is_mixed
    assert found.named == ("AVG", "AVG_BY_CIRCLE")
    assert {one.client: one.strategy for one in guessed.members} == wanted, guessed.sentence
    assert guessed.is_mixed
