"""Strategies that go by client ids: drawn outcomes compared with every id that can come, and the decisions on them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from planner.allocation.ordering import java_sorted
from planner.allocation.registry import find_strategy
from planner.decision.choose import decide
from planner.decision.decision import HoldCause
from planner.errors import BadInputError
from planner.model.queues import MessageQueue
from planner.model.snapshot import Capacity, GroupSnapshot, MemberPod, NewPods
from planner.rollout.autoscalers import REFUSE
from planner.rollout.feasibility import why_no_plan
from planner.simulation.candidates import candidate_counts, simulate_candidate
from planner.simulation.draws import Names
from planner.simulation.outcome import DrawnIds
from planner.simulation.rocketmq.client_ids import draw_clients
from planner.simulation.rocketmq.topics import topics_of
from planner.simulation.transition import with_transition
from tests.builders import AT, OBJECTIVE, decided, queues, snapshot

HASH, NEARBY = "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY"
PODS = tuple(f"10.244.{node}.{host}@1#{71_833_902_193_345 + host}" for node, host in ((1, 17), (2, 9), (2, 200)))
NETWORK = "10.244.9.0/28"
"""Fourteen addresses that a pod may have: few enough to try them all."""
ROOMS = {"brokers": {"broker-a": "r1", "broker-b": "r2"}, "clients": {"10.244.1.*": "r1", "10.244.2.*": "r2"}}
STATED_ROOMS = {**ROOMS, "clients": {**ROOMS["clients"], "10.244.9.*": "r2"}}
CAPACITY = Capacity(80.0, "stated by the policy")
NAMED = tuple(f"{pod.partition('@')[0]}@orders" for pod in PODS)


def under(strategy: str, clients: Sequence[str] = PODS, **changes: Any) -> GroupSnapshot:
    """Return a settled group of these clients under the strategy."""
    options = changes.pop("strategy_options", {})
    made = replace(
        snapshot(queues(each=8), clients, strategy=None), strategy=strategy, strategy_options=options, **changes
    )
    topics, runs = topics_of(made), find_strategy(strategy, options)
    owners = [made.clients[place] for places in topics.owners(runs, made.clients) for place in places.tolist()]
    states = [state for of_topic in topics.states for state in of_topic]
    return replace(made, queues=tuple(replace(state, owner=owner) for state, owner in zip(states, owners, strict=True)))


def drawn_at(taken: GroupSnapshot, count: int) -> DrawnIds:
    outcome = simulate_candidate(taken, count, taken.strategy or "")
    assert outcome.drawn is not None
    assert (outcome.moved_fewest, outcome.moved_most) == (outcome.drawn.moved.p05, outcome.drawn.moved.p95)
    return outcome.drawn


def every_outcome(taken: GroupSnapshot, newcomers: int) -> tuple[list[int], list[int]]:
    """Return moved queues and largest shares of every set of addresses that new clients can have in ``NETWORK``."""
    topics, strategy = topics_of(taken), find_strategy(taken.strategy or "", taken.strategy_options)
    before = {state.queue: state.owner for state in taken.data_queues}
    moved, shares = [], []
    for hosts in combinations(range(1, 15), newcomers):
        clients = java_sorted([*taken.clients, *(f"10.244.9.{host}@orders" for host in hosts)])
        owners = [clients[place] for places in topics.owners(strategy, clients) for place in places.tolist()]
        after = dict(zip((state.queue for of_topic in topics.states for state in of_topic), owners, strict=True))
        moved.append(sum(owner != after[queue] for queue, owner in before.items()))
        shares.append(max(owners.count(client) for client in clients))
    return moved, shares


@pytest.mark.parametrize("newcomers", [1, 2])
@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        (HASH, {}),
        (HASH, {"virtual_nodes": 100}),
        (NEARBY, {"machine_rooms": {**STATED_ROOMS, "inner": "AVG"}}),
        (NEARBY, {"machine_rooms": {**STATED_ROOMS, "inner": HASH}}),
    ],
)
def test_drawn_intervals_hold_what_every_possible_id_brings(
    strategy: str, options: dict[str, Any], newcomers: int
) -> None:
    """Red where draws are of the wrong ids, or bounds are rounded inwards: the exact middle 90 % is left out then."""
    taken = under(strategy, NAMED, strategy_options=options, new_pods=NewPods(pod_cidr=NETWORK))
    drawn = drawn_at(taken, len(NAMED) + newcomers)
    for span, values in zip((drawn.moved, drawn.largest_share), every_outcome(taken, newcomers), strict=True):
        exact = np.array(values)
        assert exact.min() <= span.p05 <= span.p95 <= exact.max()
        assert ((exact >= span.p05) & (exact <= span.p95)).mean() >= 0.85
        inner = np.quantile(exact, (0.15, 0.85))
        assert span.p05 <= inner[0] <= inner[1] <= span.p95


def test_drawn_ids_are_like_those_that_run() -> None:
    drawn = draw_clients(under(HASH), 3, 50)
    ids = {client.id for future in drawn for client in future}
    assert all(re.fullmatch(r"10\.244\.[12]\.\d{1,3}@1#\d{13,15}", name) for name in ids)
    assert not ids & set(PODS)
    assert len(ids) > 140
    assert all(client.id.rpartition(".")[0] == client.like.rpartition(".")[0] for future in drawn for client in future)
    assert [future[:2] for future in drawn] == list(draw_clients(under(HASH), 2, 50))


@pytest.mark.parametrize(
    ("clients", "form"),
    [
        (("127.0.0.1@c1", "127.0.0.1@c2", "127.0.0.1@c3"), r"127\.0\.0\.1@c\d+"),
        (
            ("10.0.0.1@orders-7f9c5-x2bcd", "10.0.0.2@orders-7f9c5-k7wqz"),
            r"10\.0\.0\.\d+@orders-7f9c5-[bcdfghjklmnpqrstvwxz2456789]{5}",
        ),
        (("10.0.0.1@4711#99123456789", "10.0.0.1@812#99123456999"), r"10\.0\.0\.1@\d{1,4}#\d{11,12}"),
        (("10.0.0.1@orders@unitA@STREAM", "10.0.0.2@orders@unitA@STREAM"), r"10\.0\.0\.\d+@orders@unitA@STREAM"),
        (("host-a", "host-b"), r"host-.+"),
    ],
)
def test_names_keep_their_form(clients: tuple[str, ...], form: str) -> None:
    ids = {client.id for future in draw_clients(under(HASH, clients), 2, 30) for client in future}
    assert all(re.fullmatch(form, name) for name in ids), ids
    assert not ids & set(clients)


def test_the_clients_of_one_new_pod_share_address_and_process() -> None:
    ids = tuple(f"10.0.{pod}.5@{10 + pod}#{nanos}" for pod in (1, 2) for nanos in (500_000_001, 500_000_777))
    pods = tuple(MemberPod(client, client.partition("@")[0]) for client in sorted(ids))
    taken = under(HASH, ids, pods=pods, members_per_pod=2)
    for future in draw_clients(taken, 4, 20):
        for one, other in (future[:2], future[2:]):
            assert one.id.partition("#")[0] == other.id.partition("#")[0]
            assert one.id != other.id
    outcome = simulate_candidate(taken, 3, HASH)
    assert (outcome.count, outcome.members) == (3, 6)


def test_a_series_of_names_goes_on() -> None:
    assert Names(["c1", "c2"]).series == ("c", 2, "")
    assert Names(["alice", "bob"]).series is None
    assert not Names(["alice", "bob"]).is_generated


def test_decisions_go_by_the_percentile_that_the_policy_names() -> None:
    """Red where every policy gets the same percentile: a bolder one takes fewer consumers."""
    targets = {}
    for percentile in (50.0, 90.0):
        taken = under(HASH, capacity=CAPACITY, new_pods=NewPods(ids_percentile=percentile))
        outcomes = [simulate_candidate(taken, count, HASH) for count in candidate_counts(taken, 1, 14)]
        decision = decide(taken, outcomes, OBJECTIVE, AT)
        targets[percentile] = decision.target
        chosen = next(outcome for outcome in outcomes if outcome.count == decision.target)
        assert chosen.drawn is not None
        assert chosen.utilisation is not None
        assert chosen.utilisation <= 0.8
    assert targets[50.0] < targets[90.0]


def test_plans_say_what_they_rest_on_and_wait_for_the_ids_that_come() -> None:
    taken = under(HASH, capacity=CAPACITY, new_pods=NewPods(ids_percentile=50.0))
    plan = decided(taken, replace(OBJECTIVE, highest=10), strategies=(HASH,), trials=20).plan
    assert plan is not None
    assert plan.forecast.cost is not None
    told = " ".join(plan.forecast.unknowns)
    assert "new client ids will be, and CONSISTENT_HASH goes by them" in told
    assert "with 90 of 100 possible ids" in told
    assert "virtual nodes each client has: taken to be 10" in told


def test_new_pods_are_in_the_stated_room_else_spread_as_present_ones_are() -> None:
    taken = under(NEARBY, strategy_options={"machine_rooms": {**ROOMS, "inner": "AVG"}})
    spread = simulate_candidate(taken, 6, NEARBY)
    assert spread.drawn is not None
    assert any("drawn as present ones are spread, r1 (1 of 3), r2 (2 of 3)" in unknown for unknown in spread.unknowns)
    stated = simulate_candidate(replace(taken, new_pods=NewPods(room="r1", pod_cidr="10.9.0.0/16")), 6, NEARBY)
    assert stated.drawn is not None
    assert {room for _, room in stated.drawn.rooms} == {"r1"}
    assert stated.drawn.largest_share.p05 == stated.drawn.largest_share.p95 == 4  # two of room r2 share its eight
    timed = with_transition(stated, taken, "sha256:0", 16)
    assert timed.transition is not None
    assert not [unknown for unknown in stated.unknowns if "room" in unknown and "NEARBY" not in unknown]


def test_a_member_without_a_room_is_named() -> None:
    taken = under(NEARBY, strategy_options={"machine_rooms": {**ROOMS, "inner": "AVG"}})
    lacking = {"machine_rooms": {**ROOMS, "clients": {"10.244.1.*": "r1"}, "inner": "AVG"}}
    with pytest.raises(BadInputError, match=r"no room for member 10\.244\.2"):
        simulate_candidate(replace(taken, strategy_options=lacking), 5, NEARBY)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("VIP", {"vip_queues": [{"topic": "orders", "broker": "broker-a", "queue_id": 0}], "vip_clients": ["gold"]}),
        ("STATIC", {"reserved": {"gold": [{"topic": "orders", "broker": "broker-a", "queue_id": 0}]}}),
        ("SPECIFIED_MACHINE", {"hosts": ["10.244.1.17"]}),
    ],
)
def test_strategies_by_name_draw_names_or_say_what_is_not_known(strategy: str, options: dict[str, Any]) -> None:
    assert drawn_at(under(strategy, strategy_options=options), 5).draws == 200
    own = ("10.0.0.1@gold", "10.0.0.2@silver", "10.244.1.17@bronze")
    named = under(strategy, own, strategy_options=options)
    decision = decide(named, (), OBJECTIVE, AT)
    assert decision.hold_cause is HoldCause.UNSUPPORTED_STRATEGY
    assert "nobody knows what a new one is named" in decision.reason


@pytest.mark.parametrize("count", [1, 2])
def test_leaves_by_name_are_exact_over_every_choice(count: int) -> None:
    options = {"machine_rooms": {**ROOMS, "inner": "AVG"}}
    taken = under(NEARBY, strategy_options=options)
    tried = [simulate_candidate(taken, count, NEARBY, stay).moved_most for stay in combinations(PODS, count)]
    outcome = simulate_candidate(taken, count, NEARBY)
    assert (outcome.moved_fewest, outcome.moved_most) == (min(filter(None, tried)), max(filter(None, tried)))


LISTS = {
    "10.0.0.1@a": [queue for queue in queues(each=8) if queue.queue_id < 4],
    "10.0.0.2@b": [queue for queue in queues(each=8) if queue.queue_id >= 4],
}


def listed(lists: dict[str, list[MessageQueue]]) -> dict[str, Any]:
    return {
        "config": {
            client: [{"topic": one.topic, "broker": one.broker, "queue_id": one.queue_id} for one in of_client]
            for client, of_client in lists.items()
        }
    }


def test_config_says_which_lists_come_first_and_plans_once_they_are_there() -> None:
    """Red where a new member is taken to own something that no list gives to it."""
    taken = under("CONFIG", tuple(LISTS), strategy_options=listed(LISTS), capacity=CAPACITY)
    more = simulate_candidate(taken, 4, "CONFIG")
    assert (more.largest_share, more.moved_fewest, more.moved_most) == (4, 8, 8)
    refusal = why_no_plan(taken, 4, REFUSE)
    assert refusal is not None
    assert "new consumer 1: orders/broker-b/0-3; new consumer 2: orders/broker-b/4-7" in refusal.sentence
    moved = {client: [queue for queue in of_client if queue.queue_id % 4 < 2] for client, of_client in LISTS.items()}
    others = {
        f"10.0.0.{number + 3}@c": [queue for queue in of_client if queue.queue_id % 4 >= 2]
        for number, of_client in enumerate(LISTS.values())
    }
    written = replace(taken, strategy_options=listed(moved | others))
    assert why_no_plan(written, 4, REFUSE) is None
    assert {load.client for load in simulate_candidate(written, 4, "CONFIG").loads} == {*moved, *others}
    fewer = why_no_plan(taken, 1, REFUSE)
    assert fewer is not None
    assert "10.0.0.2@b: none" in fewer.sentence
    cost = with_transition(more, taken, "digest", 4)
    assert cost.transition is None, "by the present lists the newcomers would own nothing, and nothing would move"
    assert "lists of CONFIG have to be written first" in cost.unknowns[-1]
    assert with_transition(simulate_candidate(written, 4, "CONFIG"), written, "digest", 4).transition is not None
