"""Which strategy do a thousand groups run: 16 queues on two brokers and 4 members each, one snapshot or three."""

import time
from collections.abc import Sequence

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.inference import Observation, infer
from planner.inference.even_strategies import _point_table
from planner.model.membership import ClientTuning, Member
from planner.model.queues import MessageQueue

GROUPS, QUEUES, MEMBERS = 1_000, 16, 4
UNTOLD = 200
"""Groups measured where nobody tells a class and everything is tried; the figure is scaled to all."""

_REBALANCE = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueue"
_CLASSES = {
    "AVG": f"{_REBALANCE}Averagely",
    "AVG_BY_CIRCLE": f"{_REBALANCE}AveragelyByCircle",
    "CONSISTENT_HASH": f"{_REBALANCE}ConsistentHash",
}


def main() -> None:
    """Print seconds for all groups, by strategy, with and without the members' own word."""
    print(f"{GROUPS} groups × {QUEUES} queues × {MEMBERS} members; seconds of processor time")
    print(f"{'strategy':18} {'told, 1 snapshot':>17} {'told, 3':>9} {'untold, 1':>11}")
    for name in _CLASSES:
        told = _seconds([_group(name, number, told=True, snapshots=1) for number in range(GROUPS)], name)
        more = _seconds([_group(name, number, told=True, snapshots=3) for number in range(GROUPS)], name)
        untold = _seconds([_group(name, number, told=False, snapshots=1) for number in range(UNTOLD)], name)
        print(f"{name:18} {told:17.2f} {more:9.2f} {untold * GROUPS / UNTOLD:11.1f}", flush=True)


def _group(name: str, number: int, *, told: bool, snapshots: int) -> tuple[Observation, ...]:
    """Return a group of its own ids, seen with one member fewer each time."""
    queues = [MessageQueue("orders", broker, one) for broker in ("broker-a", "broker-b") for one in range(QUEUES // 2)]
    clients = [f"10.{number // 250}.{number % 250}.{place}@{place}#71833{number}" for place in range(MEMBERS)]
    tuning = ClientTuning(_CLASSES[name] if told else None, False, 20, 1, 1000, 0)
    return tuple(_seen(name, queues, clients[: MEMBERS - gone], tuning) for gone in range(snapshots))


def _seen(name: str, queues: Sequence[MessageQueue], clients: Sequence[str], tuning: ClientTuning) -> Observation:
    owned = allocate_group(find_strategy(name), queues, clients).answer()
    members = (Member(client, "127.0.0.1:1", "JAVA", 513, tuning, tuple(owned[client])) for client in clients)
    return Observation(tuple(queues), tuple(members))


def _seconds(groups: Sequence[Sequence[Observation]], expected: str) -> float:
    """Return the time to infer them all, with nothing remembered from before."""
    _point_table.cache_clear()
    started = time.process_time()
    found = [infer(group) for group in groups]
    took = time.process_time() - started
    wrong = sum(one.strategy != expected for one in found)
    if wrong:
        print(f"{expected}: {wrong} of {len(found)} groups are not determined")
    return took


if __name__ == "__main__":
    main()
