"""Victims: exact where that can be known, and never worse than chance or than the ReplicaSet."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from planner.errors import RefusedError
from planner.model.snapshot import GroupSnapshot, MemberPod
from planner.rollout.ranking import stop_order
from planner.rollout.victims import Choice, choose_victims
from planner.simulation.candidates import leaving
from tests.builders import AT, clients, queues, snapshot
from tests.unit.rollout.random_groups import KAFKA, ROCKETMQ, Case, random_case
from tests.unit.workload.builders import deployment, pod

GROUPS = 2_000
TRIES = 200
STRATEGIES = (*ROCKETMQ, *KAFKA)
BY_NAME = ("CONFIG", "MACHINE_ROOM_NEARBY-AVG", "SPECIFIED_MACHINE", "STATIC", "VIP")
OFTEN = tuple(name for name in STRATEGIES if name not in BY_NAME)
DRAWN = (*OFTEN, *OFTEN, *OFTEN, *BY_NAME)
"""Strategies that go by names take ten times as long."""


def in_pods(taken: GroupSnapshot) -> GroupSnapshot:
    """Return the snapshot with each client in a pod of its own, ``p0`` for the first."""
    names = [f"p{number}" for number in range(len(taken.clients))]
    links = tuple(MemberPod(client, name) for client, name in zip(taken.clients, names, strict=True))
    return replace(taken, pods=links, deployment=deployment(at=AT, pods=tuple(pod(name) for name in names)))


def own_pick(case: Case, stop: int) -> list[str]:
    """Return who stays when the ReplicaSet chooses."""
    taken = case.snapshot
    assert taken.deployment
    gone = {one.name for one in stop_order(taken.deployment.pods or (), AT)[:stop]}
    return [link.client for link in taken.pods if link.pod not in gone]


def moved_by(case: Case, choice: Choice) -> int:
    gone = {victim.pod for victim in choice.victims}
    return case.moved([link.client for link in case.snapshot.pods if link.pod not in gone])


def check_against_chance(case: Case, draw: random.Random, note: object) -> Choice:
    """Let some pods stop; the choice is exact, and no worse than 200 drawn ones and than the ReplicaSet's."""
    homes = {link.client: link.pod for link in case.snapshot.pods}
    pods = sorted(set(homes.values()))
    stop = draw.randint(1, len(pods))
    choice = choose_victims(case.snapshot, stop)
    assert len(choice.victims) == stop
    moved = moved_by(case, choice)
    assert (choice.moved.fewest, choice.moved.most) == (moved, moved), note
    assert choice.unmarked.fewest == case.moved(own_pick(case, stop)), note
    tried = {tuple(sorted(draw.sample(pods, stop))) for _ in range(TRIES)}
    best = min(case.moved([member for member, home in homes.items() if home not in gone]) for gone in tried)
    assert moved <= min(best, choice.unmarked.fewest), note
    return choice


@pytest.mark.slow
def test_victims_never_move_more_queues_than_chance_or_the_replica_set() -> None:
    for number in range(GROUPS):
        strategy = DRAWN[number % len(DRAWN)]
        draw = random.Random(number)
        check_against_chance(random_case(draw, strategy), draw, (number, strategy))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nor_where_not_all_choices_can_be_weighed(strategy: str) -> None:
    for number in range(3):
        draw = random.Random(f"large {strategy} {number}")
        choice = check_against_chance(random_case(draw, strategy, 16, 30), draw, number)
        assert (
            choice.is_best or strategy not in ("AVG", "sticky") or any(len(one.members) > 1 for one in choice.victims)
        )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_called_best_is_the_best_of_all(strategy: str) -> None:
    for number in range(4):
        draw = random.Random(f"{strategy} {number}")
        case = random_case(draw, strategy)
        homes = {link.client: link.pod for link in case.snapshot.pods}
        pods = sorted(set(homes.values()))
        stop = draw.randint(1, min(3, len(pods)))
        choice = choose_victims(case.snapshot, stop)
        assert choice.is_best
        every = combinations(pods, stop)
        assert moved_by(case, choice) == min(case.moved([m for m in homes if homes[m] not in gone]) for gone in every)


def test_the_last_in_order_are_the_worst_victims_under_avg() -> None:
    # 32 queues, 8 to 4 members: a stayer keeps all its 4 where its new 8 cover them. The first four do so only at the
    # very front, every second one does everywhere.
    taken = in_pods(snapshot(queues(each=16), clients(8)))
    assert leaving(taken).range_of(taken.clients[:4]).fewest == 28
    assert leaving(taken).range_of(taken.clients[::2]).fewest == 16
    choice = choose_victims(taken, 4)
    assert (choice.moved.fewest, choice.is_best) == (16, True)
    assert set(choice.staying) | {name for victim in choice.victims for name in victim.members} == set(taken.clients)


def test_the_same_snapshot_gives_the_same_victims() -> None:
    for strategy in ("AVG", "VIP", "sticky"):
        case = random_case(random.Random(5), strategy)
        assert choose_victims(case.snapshot, 1) == choose_victims(case.snapshot, 1)


def test_members_of_one_pod_go_together() -> None:
    taken = in_pods(snapshot(clients=clients(6)))
    links = tuple(MemberPod(client, f"p{number // 2}") for number, client in enumerate(taken.clients))
    shared = replace(taken, pods=links, deployment=deployment(at=AT, pods=tuple(pod(f"p{n}") for n in range(3))))
    (victim,) = choose_victims(shared, 1).victims
    assert victim.members == tuple(link.client for link in links if link.pod == victim.pod)
    assert len(victim.members) == 2


def test_among_equals_the_one_that_loses_least_goes_then_the_replica_sets() -> None:
    # CONSISTENT_HASH without nodes: nobody owns anything, so nothing moves whoever stops.
    taken = in_pods(
        replace(snapshot(clients=clients(4)), strategy="CONSISTENT_HASH", strategy_options={"virtual_nodes": 0})
    )
    asked = []

    def loss(staying: Sequence[str]) -> tuple[float, ...]:
        asked.append(staying)
        return (0.0 if taken.clients[2] not in staying else 1.0,)

    assert [victim.pod for victim in choose_victims(taken, 1, loss).victims] == ["p2"]
    assert len(asked) == 4
    assert [victim.pod for victim in choose_victims(taken, 1).victims] == ["p0"]


def broken(**changes: object) -> GroupSnapshot:
    return replace(in_pods(snapshot()), **changes)  # type: ignore[arg-type]


PODS = tuple(pod(f"p{number}") for number in range(3))
LINKS = in_pods(snapshot()).pods


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (broken(deployment=None), "were not read"),
        (broken(deployment=deployment(at=AT, pods=None)), "were not read"),
        (broken(pods=LINKS[1:]), "is known to run member 10.0.0.10@4000#7"),
        (broken(deployment=deployment(at=AT, pods=(*PODS, pod("p9")))), "pod p9 of Deployment shop/app runs no member"),
        (broken(deployment=deployment(at=AT, pods=(*PODS[:2], pod("p2", is_ready=False)))), "pod p2 .* is not ready"),
        (broken(deployment=deployment(at=AT, pods=(*PODS, pod("p8", is_ending=True)))), "pod p8 .* is ending"),
        (
            broken(deployment=deployment(at=AT, pods=(*PODS[:2], pod("p2", labels=(("pod-template-hash", "x"),))))),
            "pods of 2 templates",
        ),
        (broken(clients=(*snapshot().clients, snapshot().clients[0])), "a member id twice"),
    ],
)
def test_victims_that_cannot_be_told_are_refused_by_name(taken: GroupSnapshot, words: str) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        choose_victims(taken, 1)
    assert refused.value.name == "VictimsCannotBeChosen"
