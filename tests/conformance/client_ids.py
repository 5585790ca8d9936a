"""Scale-ups and scale-downs of real groups whose strategies go by client ids, compared with what was drawn for them.

    python -m tests.conformance.client_ids --waves 4 --output tests/conformance/client_ids.jsonl

Each wave starts ten groups of real clients, takes their snapshots, has the planner say what so many more members would
mean, starts these, and looks who owns what then; after that they stop again. Addresses are those of pods on three nodes
a room, drawn here and not by the planner; what stands behind the ``@`` the clients make themselves.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import simulate_candidate, unsettled_queues
from planner.simulation.outcome import CandidateOutcome
from planner.snapshot.build import build_snapshot
from planner.snapshot.settings import SnapshotSettings
from planner.sources.rocketmq import RocketMQAdmin, observe_group
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.patience import PATIENT, if_known

GROUPS = 10
ROOMS = {"broker-a": "r1", "broker-b": "r2"}
NETWORKS = {"10.1.*": "r1", "10.2.*": "r2"}
STRATEGIES = ("CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG", "MACHINE_ROOM_NEARBY-CONSISTENT_HASH")
EACH = (2, 4, 8, 12)
"""Queues on each of two brokers, one topic for each number."""
SETTLED_S = 150.0
CONFORMANCE_SEED = 20261125


@dataclass(frozen=True)
class Case:
    """One group: its strategy, topic, and the addresses of its members now and of those to come.

    ``DEFAULT`` lets each client make its own instance name of process id and time, as clients in pods do.
    """

    group: str
    strategy: str
    topic: str
    present: tuple[str, ...]
    coming: tuple[str, ...]
    instance: str = "DEFAULT"

    @property
    def settings(self) -> SnapshotSettings:
        """What a policy would state of it."""
        if self.strategy == "CONSISTENT_HASH":
            return SnapshotSettings(strategy=self.strategy, strategy_options={"virtual_nodes": 10})
        inner = self.strategy.partition("-")[2]
        rooms = {"brokers": ROOMS, "clients": NETWORKS, "inner": inner}
        return SnapshotSettings(strategy="MACHINE_ROOM_NEARBY", strategy_options={"machine_rooms": rooms})

    def lines(self, addresses: Sequence[str]) -> Iterator[dict[str, str | int]]:
        """Yield the flags of each client."""
        for address in addresses:
            yield {
                "group": self.group,
                "topics": self.topic,
                "instances": self.instance,
                "client-ip": address,
                "strategy": self.strategy,
                "broker-rooms": ",".join(f"{broker}={room}" for broker, room in ROOMS.items()),
                "client-rooms": ",".join(f"{network}={room}" for network, room in NETWORKS.items()),
                "threads": 1,
            }


@dataclass(frozen=True)
class Transition:
    """What one scale-up or scale-down was predicted to do, and did: moved queues, and the most of one member."""

    strategy: str
    kind: str
    queues: int
    before: int
    after: int
    moved: int
    moved_low: float
    moved_high: float
    busiest: int
    busiest_low: float
    busiest_high: float

    @property
    def is_moved_inside(self) -> bool:
        """True when the moved queues are in their interval."""
        return self.moved_low <= self.moved <= self.moved_high

    @property
    def is_busiest_inside(self) -> bool:
        """True when the busiest member's queues are in their interval."""
        return self.busiest_low <= self.busiest <= self.busiest_high


def make_cases(wave: int, chance: random.Random) -> tuple[Case, ...]:
    """Return the groups of one wave."""
    return tuple(
        _case(f"ids-{wave}-{number}", STRATEGIES[number % len(STRATEGIES)], chance) for number in range(GROUPS)
    )


def _case(group: str, strategy: str, chance: random.Random) -> Case:
    rooms = [chance.choice((1, 2)) for _ in range(chance.randint(2, 5))]
    taken: set[str] = set()

    def address(room: int) -> str:
        made = f"10.{room}.{chance.randint(1, 3)}.{chance.randint(2, 254)}"
        if made in taken:
            return address(room)
        taken.add(made)
        return made

    present = tuple(address(room) for room in rooms)
    coming = tuple(address(chance.choice(rooms)) for _ in range(chance.randint(1, 3)))
    return Case(group, strategy, f"ids-{chance.choice(EACH)}", present, coming)


def look(cluster: RocketMQCluster, case: Case) -> GroupSnapshot:
    """Return the group's snapshot of one sample."""
    with RocketMQAdmin(cluster.name_server, limits=PATIENT) as admin:
        at = datetime.now(UTC)
        sample = observe_group(admin, cluster="DefaultCluster", group=case.group, topics=None, at=at)
    return build_snapshot(sample, (), sample.at, case.settings)


def await_settled(
    cluster: RocketMQCluster, cases: Sequence[Case], members: Sequence[int]
) -> list[GroupSnapshot | None]:
    """Return each group's snapshot once so many members own what the strategy gives to the ids that really came.

    ``None`` for a group that has not settled by the deadline, which is said: it counts neither way.
    """
    deadline = time.monotonic() + SETTLED_S
    settled: dict[str, GroupSnapshot] = {}
    while len(settled) < len(cases) and time.monotonic() < deadline:
        for case, expected in zip(cases, members, strict=True):
            if case.group not in settled:
                taken = if_known(lambda case=case: look(cluster, case))
                if taken and len(taken.clients) == expected and taken.data_queues and unsettled_queues(taken) == 0:
                    settled[case.group] = taken
        time.sleep(1.0)
    for case in cases:
        if case.group not in settled:
            print(f"not settled within {SETTLED_S:g} s, left out: {case}", file=sys.stderr, flush=True)
    return [settled.get(case.group) for case in cases]


def run_wave(cluster: RocketMQCluster, cases: Sequence[Case]) -> Iterator[Transition]:
    """Yield the scale-up and the scale-down of each group."""
    load = cluster.load(NEW)
    few, many = [len(case.present) for case in cases], [len(case.present) + len(case.coming) for case in cases]
    stayers = load.start_ward([line for case in cases for line in case.lines(case.present)], heap="768m")
    small = await_settled(cluster, cases, few)
    ups = [
        taken and simulate_candidate(taken, count, taken.strategy or "")
        for taken, count in zip(small, many, strict=True)
    ]
    newcomers = load.start_ward([line for case in cases for line in case.lines(case.coming)], heap="768m")
    large = await_settled(cluster, cases, many)
    for case, before, after, predicted in zip(cases, small, large, ups, strict=True):
        if before and after and predicted:
            yield compare(case, "up", before, after, predicted)
    newcomers.stop()
    again = await_settled(cluster, cases, few)
    for case, first, before, after in zip(cases, small, large, again, strict=True):
        if first and before and after:
            exact = simulate_candidate(before, len(first.clients), before.strategy or "", first.clients)
            yield compare(case, "down", before, after, exact)
    stayers.stop()


def compare(
    case: Case, kind: str, before: GroupSnapshot, after: GroupSnapshot, predicted: CandidateOutcome
) -> Transition:
    """Return prediction and observation side by side; what stops is known, so that a scale-down is exact."""
    owners_before, owners_after = owners_of(before), owners_of(after)
    drawn = predicted.drawn
    share = (predicted.largest_share,) * 2 if drawn is None else (drawn.largest_share.p05, drawn.largest_share.p95)
    assert predicted.moved_fewest is not None
    assert predicted.moved_most is not None
    return Transition(
        strategy=case.strategy,
        kind=kind,
        queues=len(owners_before),
        before=len(before.clients),
        after=len(after.clients),
        moved=sum(owner is not None and owners_after[queue] != owner for queue, owner in owners_before.items()),
        moved_low=predicted.moved_fewest,
        moved_high=predicted.moved_most,
        busiest=max(Counter(owner for owner in owners_after.values() if owner).values()),
        busiest_low=share[0],
        busiest_high=share[1],
    )


def owners_of(taken: GroupSnapshot) -> Mapping[Queue, str | None]:
    """Return who says of each data queue that he owns it."""
    return {state.queue: state.owner for state in taken.data_queues}


def table(transitions: Sequence[Transition]) -> Iterator[str]:
    """Yield a Markdown table: of how many transitions moved queues and busiest member lie inside."""
    yield "| strategy | change | transitions | moved queues inside | busiest member inside | mean width, moved |"
    yield "|---|---|---|---|---|---|"
    for strategy in STRATEGIES:
        for kind in ("up", "down"):
            some = [one for one in transitions if (one.strategy, one.kind) == (strategy, kind)]
            if some:
                width = sum(one.moved_high - one.moved_low for one in some) / len(some)
                yield (
                    f"| `{strategy}` | {kind} | {len(some)} | {_share(one.is_moved_inside for one in some)} | "
                    f"{_share(one.is_busiest_inside for one in some)} | {width:.1f} |"
                )


def _share(inside: Iterator[bool]) -> str:
    every = list(inside)
    return f"{sum(every)} of {len(every)}"


def read(path: Path) -> list[Transition]:
    """Return the transitions that were recorded."""
    return [Transition(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Record, or print the table of what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waves", type=int, default=0, help="how many waves of ten groups to run, 0 to print only")
    parser.add_argument("--output", type=Path, required=True, help="JSON lines, one a transition; new ones are added")
    parser.add_argument("--first", type=int, default=0, help="number of the first wave: each draws other groups")
    words = parser.parse_args(arguments)
    if words.waves:
        with RocketMQCluster.start(NEW, sorted(ROOMS)) as cluster:
            for each in EACH:
                cluster.create_topic(f"ids-{each}", each)
            for wave in range(words.first, words.first + words.waves):
                cases = make_cases(wave, random.Random(CONFORMANCE_SEED + wave))  # no secret
                for transition in run_wave(cluster, cases):
                    with words.output.open("a", encoding="utf-8") as file:
                        file.write(f"{json.dumps(asdict(transition))}\n")
                print(f"wave {wave} is over", file=sys.stderr, flush=True)
    print("\n".join(table(read(words.output))))


if __name__ == "__main__":
    main()
