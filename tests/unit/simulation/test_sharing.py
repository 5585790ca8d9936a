"""Groups that pop share messages: no queue moves, none is hot, and every member more relieves the others."""

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.decision.choose import decide
from planner.errors import RefusedError
from planner.execution.group_observation import observe_group
from planner.history.intervals import queue_intervals
from planner.model.snapshot import GroupSnapshot
from planner.rollout.build import build_plan
from planner.rollout.migrations.migration import read_context
from planner.rollout.settings import RolloutSettings
from planner.simulation.candidates import (
    candidate_counts,
    leaving,
    shares_messages,
    simulate_candidate,
    unsettled_queues,
)
from planner.simulation.transition import with_transition
from planner.snapshot.build import build_snapshot
from planner.snapshot.settings import SnapshotSettings
from tests.builders import AT, OBJECTIVE, clients, queues, snapshot
from tests.sample_builders import deployment, steady, tuning, watch

POPS = {"pop_share_queues": -1}


def popping(capacity: float = 65.0, **others: object) -> GroupSnapshot:
    """Return 16 queues of 12 messages/s (upper rate) each that three members share."""
    taken = snapshot(capacity=capacity, **others)  # type: ignore[arg-type]
    states = tuple(replace(state, owner=None) for state in taken.queues)
    return replace(taken, queues=states, strategy_options=POPS, shared_queues=len(taken.data_queues))


def test_every_member_takes_an_equal_share() -> None:
    """Red where the queues are given to the first member, as the plain strategy's owners would have it."""
    total = sum(state.upper_arrival_rate or 0.0 for state in popping().data_queues)
    for count in (1, 2, 3, 5, 20):
        outcome = simulate_candidate(popping(lags=dict.fromkeys(queues(), 100)), count, "AVG")
        assert {load.arrival_rate for load in outcome.loads} == {round(total / count, 6)}
        assert outcome.utilisation == pytest.approx(total / count / 65.0, abs=1e-6)
        assert sum(load.lag or 0 for load in outcome.loads) == 1_600
        assert (outcome.moved_fewest, outcome.moved_most, outcome.hot_queue) == (0, 0, None)


def test_a_drain_is_that_of_the_whole_group() -> None:
    rate = sum(state.upper_arrival_rate or 0.0 for state in popping().data_queues)
    outcome = simulate_candidate(popping(lags=dict.fromkeys(queues(), 100)), 4, "AVG")
    assert outcome.drain_s == pytest.approx(1_600 / (4 * 65.0 - rate), abs=1e-5)


def test_every_count_is_a_candidate_and_the_smallest_that_meets_the_bound_wins() -> None:
    taken = popping()
    counts = candidate_counts(taken, 1, 20)
    assert counts == tuple(range(1, 21)), "more members than queues relieve the others, too"
    decision = decide(taken, [simulate_candidate(taken, count, "AVG") for count in counts], OBJECTIVE, AT)
    assert (decision.target, decision.hold_cause) == (4, None)
    hot = popping(rates={queues()[5]: 90.0}, capacity=100.0)
    outcomes = [simulate_candidate(hot, count, "AVG") for count in counts]
    assert decide(hot, outcomes, OBJECTIVE, AT).target == 4, "whoever has time takes from the hot queue"


def test_no_leave_moves_a_queue() -> None:
    taken = popping()
    assert leaving(taken).range_of(taken.clients[1:]).most == 0
    assert simulate_candidate(taken, 2, "AVG", taken.clients[1:]).loads[0].client == taken.clients[1]
    assert unsettled_queues(taken) == 0


def test_a_group_is_known_to_pop_by_its_members_and_the_engine_sees_it_settled() -> None:
    samples = tuple(
        replace(sample, members=tuple(replace(member, owned=()) for member in sample.members))
        for sample in watch(
            25, steady(50, 40), client_tuning=replace(tuning(), properties=(("clientRebalance", "false"),))
        )
    )
    settings = SnapshotSettings(window_s=120.0)
    taken = build_snapshot(samples[-1], queue_intervals(samples, 5.0), samples[-1].at, settings)
    assert shares_messages(taken)
    assert taken.strategy_options == POPS
    look = observe_group(samples[-1], taken)
    assert (look.owners, look.misplaced, look.is_calm) == ((), 0, True)
    stated = replace(settings, strategy="AVG", strategy_options={"pop_share_queues": 1})
    some = build_snapshot(samples[-1], queue_intervals(samples, 5.0), samples[-1].at, stated)
    assert not shares_messages(some), "the policy says that each member is given only some queues"


def test_a_plan_names_no_queue_and_a_migration_is_refused() -> None:
    taken = replace(popping(), clients=clients(3), deployment=deployment(("10.0.0.1", "10.0.0.2", "10.0.0.3")))
    outcome = with_transition(simulate_candidate(taken, 4, "AVG"), taken, "sha256:0")
    decision = decide(taken, [simulate_candidate(taken, count, "AVG") for count in range(1, 9)], OBJECTIVE, AT)
    plan = build_plan(taken, "sha256:0", decision, outcome, RolloutSettings(policy="shop", deployment="shop-consumer"))
    assert (plan.forecast.moved_queues.fewest, plan.forecast.moved_queues.most) == (0, 0)
    assert not any(owned.queues for owned in plan.forecast.owners_after)
    assert plan.valid_until > AT + timedelta(seconds=1)
    settings = RolloutSettings(policy="shop", deployment="shop-consumer")
    with pytest.raises(RefusedError, match="share messages"):
        read_context(taken, "sha256:0", settings)
