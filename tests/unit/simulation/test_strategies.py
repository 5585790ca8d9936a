"""All strategies side by side, compared with every set of ids that can come, counted one by one here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil
from typing import cast

import numpy as np
import pytest

from planner.allocation.ordering import java_sorted
from planner.allocation.registry import find_strategy
from planner.errors import BadInputError
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot, NewPods
from planner.report.case import Case
from planner.report.strategies import strategies
from planner.rollout.plan import DecisionRecord
from planner.simulation.rocketmq.topics import topics_of
from planner.simulation.strategies import StrategyFigures, advise, compare_strategies, excesses
from tests.builders import clients
from tests.unit.simulation.test_newcomer_draws import CAPACITY, NAMED, NETWORK, under
from tests.unit.simulation.test_sharing import popping

PERCENTILE = 90
HOSTS = range(1, 15)
"""The hosts of ``NETWORK`` that a pod may have: few enough to try all sets of them."""

Owners = Mapping[Queue, str]


def group(seed: int, strategy: str = "AVG") -> GroupSnapshot:
    """Return three clients on two brokers of 8 queues each, whose rates differ much."""
    taken = under(strategy, NAMED, capacity=CAPACITY, new_pods=NewPods(pod_cidr=NETWORK, ids_percentile=PERCENTILE))
    rates = np.random.default_rng(seed).pareto(1.5, len(taken.queues)) * 10 + 1
    return replace(
        taken,
        queues=tuple(
            replace(state, arrival_rate=rate, upper_arrival_rate=rate)
            for state, rate in zip(taken.queues, rates.tolist(), strict=True)
        ),
    )


def without(taken: GroupSnapshot, broker: str) -> GroupSnapshot:
    """Return the group without one of its two brokers, whose keyed messages go to the queue of the same number."""
    rates = {(state.queue.place[-1], state.queue.number): state.upper_arrival_rate or 0.0 for state in taken.queues}
    left = [state for state in taken.queues if state.queue.place[-1] != broker]
    carried = [rates["broker-a", state.queue.number] + rates["broker-b", state.queue.number] for state in left]
    return replace(
        taken,
        queues=tuple(replace(state, upper_arrival_rate=rate) for state, rate in zip(left, carried, strict=True)),
    )


def owners(taken: GroupSnapshot, row: StrategyFigures, ids: Sequence[str]) -> Owners:
    topics, strategy = topics_of(taken), find_strategy(row.strategy, dict(row.options))
    names = java_sorted(ids)
    places = [names[place] for of_topic in topics.owners(strategy, names) for place in of_topic.tolist()]
    return dict(zip((state.queue for states in topics.states for state in states), places, strict=True))


def every_set(count: int) -> Iterator[tuple[str, ...]]:
    for hosts in combinations(HOSTS, count):
        yield tuple(f"10.244.9.{host}@orders" for host in hosts)


def busiest(taken: GroupSnapshot, row: StrategyFigures, count: int) -> list[float]:
    """Return the busiest member's load for every set of ids, ascending."""
    rates = {state.queue: state.upper_arrival_rate or 0.0 for state in taken.queues}
    loads = []
    for ids in every_set(count):
        carried = dict.fromkeys(ids, 0.0)
        for queue, owner in owners(taken, row, ids).items():
            carried[owner] += rates[queue]
        loads.append(max(carried.values()))
    return sorted(loads)


def percentile(values: Sequence[float], percent: float) -> float:
    return values[ceil(percent / 100 * len(values)) - 1]


def mean_moved(taken: GroupSnapshot, row: StrategyFigures, count: int) -> float:
    """Return how many queues of ``count`` members move when one leaves, on average over all sets and leavers."""
    moved = []
    for ids in every_set(count):
        before = owners(taken, row, ids)
        for leaver in ids:
            after = owners(taken, row, [client for client in ids if client != leaver])
            moved.append(sum(before[queue] != after[queue] for queue in before))
    return float(np.mean(moved))


def futures(taken: GroupSnapshot) -> tuple[tuple[GroupSnapshot, int], ...]:
    """Return now, one more, one less (useful counts and a lost member alike), and without either broker."""
    return ((taken, 3), (taken, 4), (taken, 2), (without(taken, "broker-a"), 3), (without(taken, "broker-b"), 3))


@pytest.mark.parametrize("seed", range(4))
def test_the_advice_is_that_of_all_ids_counted_one_by_one(seed: int) -> None:
    """Red where only the present count or the present ids are weighed, and where a lost broker's inflow is left out."""
    taken = group(seed)
    rows = compare_strategies(taken)
    assert [row.label for row in rows][:3] == ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]
    worst = dict.fromkeys((row.label for row in rows), 1.0)
    for number, (future, count) in enumerate(futures(taken)):
        every = {row.label: busiest(future, row, count) for row in rows}
        loads = {label: percentile(values, PERCENTILE) for label, values in every.items()}
        if number < 3:
            for row in rows:
                situation = (row.now, row.more, row.fewer)[number]
                assert situation is not None
                assert situation.count == count
                values = every[row.label]
                assert percentile(values, PERCENTILE - 8) - 1e-6 <= situation.busiest
                assert situation.busiest <= percentile(values, PERCENTILE + 6) + 1e-6
        if number < 3:
            least = min(loads.values())
            worst = {label: max(worst[label], load / least) for label, load in loads.items()}
    lost = {
        row.label: max(percentile(busiest(future, row, count), PERCENTILE) for future, count in futures(taken)[3:])
        for row in rows
    }
    worst = {label: max(worst[label], lost[label] / min(lost.values())) for label in worst}
    for row, excess in zip(rows, excesses(rows), strict=True):
        assert excess == pytest.approx(worst[row.label], rel=0.15)
        assert row.broken is not None
        assert row.broken.busiest == pytest.approx(lost[row.label], rel=0.15)
    best = advise(rows)
    assert best is not None
    assert worst[best.label] <= 1.1 * 1.15 * min(worst.values())
    even = [row for row in rows if worst[row.label] * 1.15 <= 1.1 * min(worst.values())]
    if not best.is_current:
        assert all(mean_moved(taken, best, 4) <= 1.1 * 1.15 * mean_moved(taken, row, 4) for row in even)


def test_moved_queues_of_drawn_ids_are_those_of_all_ids() -> None:
    row = next(row for row in compare_strategies(group(1)) if row.strategy == "CONSISTENT_HASH")
    for situation, count in ((row.more, 4), (row.lost, 3)):
        assert situation is not None
        assert situation.mean_moved == pytest.approx(mean_moved(group(1), row, count), rel=0.1)


def test_luck_of_the_present_ids_is_no_advice() -> None:
    """Ids under which CONSISTENT_HASH is as even as can be: the next rollout makes others, so that AVG stays."""
    hash_ring = next(row for row in compare_strategies(group(0)) if row.strategy == "CONSISTENT_HASH")

    def most_owned(ids: Sequence[str]) -> int:
        owned = list(owners(group(0), hash_ring, ids).values())
        return max(owned.count(client) for client in ids)

    lucky = min(every_set(3), key=most_owned)
    assert most_owned(lucky) == 6, "by the present ids it would be as even as AVG, and moves fewer"
    taken = under("AVG", lucky, capacity=CAPACITY, new_pods=NewPods(pod_cidr=NETWORK))
    best = advise(compare_strategies(taken))
    assert best is not None
    assert best.strategy == "AVG"


def test_the_strategy_that_moves_least_of_the_even_ones_is_advised_and_the_present_one_wins_a_tie() -> None:
    rows = compare_strategies(under("AVG_BY_CIRCLE", clients(4)))
    best = advise(rows)
    assert best is not None
    assert best.strategy == "AVG"
    kept = advise(compare_strategies(under("AVG", clients(4))))
    assert kept is not None
    assert kept.is_current


def test_one_more_is_the_next_count_that_relieves_somebody() -> None:
    """16 queues over 4: five to seven consumers leave somebody with three queues or four, eight with two."""
    taken = under("AVG", clients(5))
    for row in compare_strategies(taken):
        assert row.more is not None
        assert row.fewer is not None
        assert row.lost is not None
        assert (row.more.count, row.fewer.count, row.lost.count) == (6, 4, 4)
    seven = compare_strategies(under("AVG", clients(7)))[0]
    assert seven.more is not None
    assert seven.fewer is not None
    assert seven.lost is not None
    assert (seven.more.count, seven.fewer.count, seven.lost.count) == (8, 6, 6)


def test_every_strategys_changes_have_a_price() -> None:
    """Red where the count and the strategy are taken to change together, which no forecast knows."""
    for row in compare_strategies(group(2), "digest", trials=8):
        for situation in (row.more, row.fewer, row.lost, row.broken):
            assert situation is not None
            assert situation.cost is not None, situation.why
    unknown = compare_strategies(replace(group(2), setups=()), "digest", trials=8)[1]
    assert unknown.more is not None
    assert unknown.more.cost is None
    assert "how its clients are set up" in str(unknown.more.why)


def test_members_that_share_messages_are_refused_with_the_reason() -> None:
    """Red where POP is looked up as a strategy: a page of such a group would not be made at all."""
    for taken in (popping(), replace(popping(), strategy="POP", strategy_options={}, orderly=False)):
        with pytest.raises(BadInputError, match="share the messages of every queue"):
            compare_strategies(taken)
        assert strategies(Case(taken, (), cast("DecisionRecord", None), None)) is None
