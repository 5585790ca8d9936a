"""Random groups in pods over all strategies, and what a stop moves in them: each choice allocated anew."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.allocation.group import allocate_group
from planner.allocation.kafka import ASSIGNORS, Topics, equal_group
from planner.allocation.ordering import java_sorted, sorted_queues
from planner.allocation.registry import find_strategy
from planner.model.membership import KafkaMember
from planner.model.pods import Pod
from planner.model.queues import MessageQueue, TopicPartition
from planner.model.snapshot import GroupSnapshot, MemberPod, QueueState
from planner.simulation.kafka.partitions import in_ring_order
from tests.builders import AT, snapshot
from tests.unit.workload.builders import deployment, pod

KAFKA = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "range-server")
STICKY = ("sticky", "cooperative-sticky", "uniform")
ROCKETMQ = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH",
    "CONFIG",
    "MACHINE_ROOM",
    "MACHINE_ROOM_NEARBY-AVG",
    "SPECIFIED_MACHINE",
    "STATIC",
    "VIP",
)

Moved = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Case:
    """A group in pods, and how many queues move when just these members stay."""

    snapshot: GroupSnapshot
    moved: Moved


def random_case(draw: random.Random, strategy: str, fewest: int = 2, most: int = 14) -> Case:
    """Return a group of so many members, or twice as many, now and then several in one pod, that are all ready."""
    count = draw.choice((1, 1, 1, 2)) * draw.randint(fewest, most)
    members = tuple(sorted(f"10.0.{draw.randint(0, 9)}.{number}@{draw.randint(1, 9999)}" for number in range(count)))
    made = random_group(draw, members, strategy)
    return replace(made, snapshot=_in_pods(draw, made.snapshot))


def random_group(draw: random.Random, members: tuple[str, ...], strategy: str) -> Case:
    """Return a group of these members, of which no pod is known, on random queues under the strategy."""
    return _kafka(draw, members, strategy) if strategy in KAFKA else _rocketmq(draw, members, strategy)


def _rocketmq(draw: random.Random, members: tuple[str, ...], name: str) -> Case:
    queues = tuple(
        sorted_queues(
            MessageQueue(f"t{topic}", f"room{broker % 2}@b{broker}", number)
            for topic in range(draw.randint(1, 3))
            for broker in range(draw.randint(1, 3))
            for number in range(draw.randint(1, 9))
        )
    )
    options = _options(draw, name, members, queues)
    strategy = find_strategy(name, options)
    taken = replace(snapshot(queues, members), strategy=name, strategy_options=options)

    numbers = {member: number for number, member in enumerate(members)}

    def owners(staying: Sequence[str]) -> NDArray[np.intp]:
        found = allocate_group(strategy, queues, java_sorted(staying), is_sorted=True)
        # One entry more for what nobody owns, which has the index -1.
        return np.array([*(numbers[member] for member in found.clients), -1])[found.owners]

    before = owners(members)
    return Case(taken, lambda staying: int(((before >= 0) & (before != owners(staying))).sum()))


def _options(draw: random.Random, name: str, members: Sequence[str], queues: Sequence[MessageQueue]) -> dict[str, Any]:
    def listed(some: Sequence[MessageQueue]) -> list[dict[str, Any]]:
        return [{"topic": one.topic, "broker": one.broker, "queue_id": one.queue_id} for one in some]

    rooms = {member: draw.choice(("room0", "room1", "room2")) for member in members}
    hosts = [member.partition("@")[0] for member in members]
    some = draw.sample(queues, len(queues) // 2)
    found: dict[str, dict[str, Any]] = {
        "CONFIG": {"config": {m: listed(draw.sample(queues, draw.randint(0, min(4, len(queues))))) for m in members}},
        "CONSISTENT_HASH": {"virtual_nodes": draw.choice((1, 10, 40))},
        "MACHINE_ROOM": {"consumer_rooms": ["room0"]},
        "MACHINE_ROOM_NEARBY-AVG": {
            "machine_rooms": {"brokers": {one.broker: one.broker[:5] for one in queues}, "clients": rooms}
        },
        "SPECIFIED_MACHINE": {"hosts": hosts[: len(hosts) // 2]},
        "STATIC": {"reserved": {members[0]: listed(some)}},
        "VIP": {"vip_queues": listed(some), "vip_clients": list(members[:2])},
    }
    return found.get(name, {})


def _kafka(draw: random.Random, members: tuple[str, ...], assignor: str) -> Case:
    sizes = {f"t{topic}": draw.randint(1, 12) for topic in range(draw.randint(1, 3))}
    topics, partitions = Topics(tuple(sizes.values())), [TopicPartition(t, n) for t in sizes for n in range(sizes[t])]
    described = tuple(
        KafkaMember(name, name, "10.0.0.1", draw.choice((None, None, f"i{name}")), None, tuple(sizes), (assignor,))
        for name in members
    )
    ring = tuple(member.member_id for member in in_ring_order(described))
    before = ASSIGNORS[assignor](equal_group(topics, len(ring))).owners
    if assignor in STICKY and draw.random() < 0.3:
        before = np.array([draw.randrange(len(ring)) for _ in partitions], dtype=np.intp)
    states = [
        QueueState(queue, 100, 90, 10, 5.0, 6.0, 5.0, ring[owner])
        for queue, owner in zip(partitions, before, strict=True)
    ]
    taken = replace(
        snapshot(),
        system="kafka",
        strategy=assignor,
        clients=members,
        members=described,
        queues=tuple(states),
        setups=(),
    )

    def moved(staying: Sequence[str]) -> int:
        stays = set(staying)
        left = {member: place for place, member in enumerate(one for one in ring if one in stays)}
        places = np.array([*(left.get(member, -1) for member in ring), -1])
        claims = places[before]
        group = equal_group(topics, len(staying), claims) if assignor in STICKY else equal_group(topics, len(staying))
        after = ASSIGNORS[assignor](group).owners
        return int(((claims < 0) | (claims != after)).sum())

    return Case(taken, moved)


def _in_pods(draw: random.Random, taken: GroupSnapshot) -> GroupSnapshot:
    """Return the snapshot with its members in pods of one, or two to three where ``draw`` says so."""
    left, pods, links = list(taken.clients), list[Pod](), list[MemberPod]()
    draw.shuffle(left)
    most = draw.choice((1, 1, 1, 3))
    while left:
        name = f"shop-{draw.getrandbits(40):x}"
        links += [MemberPod(left.pop(), name) for _ in range(min(len(left), draw.randint(1, most)))]
        age = timedelta(seconds=draw.choice((30, 4_000, 90_000)) * draw.random())
        pods.append(
            pod(name, node=f"n{draw.randint(1, 4)}", ready_at=AT - age, created_at=AT - age - timedelta(seconds=9))
        )
    count = len(pods)
    return replace(
        taken,
        pods=tuple(links),
        deployment=deployment(at=AT, pods=tuple(pods), replicas=count, current=count, ready=count, available=count),
    )
