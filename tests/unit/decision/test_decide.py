import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.allocation.plugins import FILES_VARIABLE
from planner.allocation.registry import find_strategy
from planner.decision.choose import decide
from planner.decision.decision import Decision, HoldCause
from planner.decision.objective import Objective, WaitObjective
from planner.model.autoscalers import Autoscaler
from planner.model.queues import MessageQueue
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.simulation.candidates import candidate_counts, simulate_candidate
from planner.snapshot.unlisted import GRPC_CLIENTS
from tests.builders import AT, OBJECTIVE, clients, owned, parts, queues, snapshot
from tests.sample_builders import deployment


def decision_on(taken: GroupSnapshot, objective: Objective = OBJECTIVE, age_s: float = 0.0) -> Decision:
    can_simulate = bool(taken.clients and taken.data_queues)
    counts = candidate_counts(taken, objective.lowest, objective.highest) if can_simulate else ()
    strategies = dict.fromkeys((taken.strategy or "AVG", "AVG", "AVG_BY_CIRCLE"))
    outcomes = [simulate_candidate(taken, count, name) for name in strategies for count in counts]
    return decide(taken, outcomes, objective, AT + timedelta(seconds=age_s))


def test_the_smallest_useful_count_that_meets_the_bound_wins() -> None:
    # 16 queues at an upper rate of 12: shares of 6, 4, 3 queues are 72, 48, 36 messages/s of 50.
    decision = decision_on(snapshot(capacity=65.0))
    assert (decision.current, decision.target, decision.is_hold) == (3, 4, False)
    assert decision.reason.startswith("Scale from 3 to 4 consumers: the busiest consumer is used at 74%")


def test_every_other_count_has_its_reason() -> None:
    rejected = {one.count: one.reasons for one in decision_on(snapshot(capacity=65.0)).rejected}
    assert set(rejected) == {1, 2, 3, 6, 8, 16}
    assert "above the bound of 80%" in rejected[3][0]
    assert rejected[6] == ("4 consumers are enough",)
    quick = {one.count: one.reasons for one in decision_on(snapshot(capacity=1_000.0)).rejected}
    assert quick[2] == ("1 consumer is enough",)


def test_fewer_consumers_when_fewer_are_enough() -> None:
    decision = decision_on(snapshot(clients=clients(8), capacity=100.0))
    assert decision.target == 3


def test_hold_when_the_present_count_is_the_right_one() -> None:
    decision = decision_on(snapshot(capacity=100.0))
    assert (decision.is_hold, decision.hold_cause) == (True, HoldCause.RIGHT_ALREADY)


def test_hold_when_no_count_meets_the_objective_and_the_hot_queue_is_named() -> None:
    hot = queues()[5]
    decision = decision_on(snapshot(rates={hot: 90.0}, capacity=100.0))
    assert decision.hold_cause is HoldCause.NO_COUNT_MEETS
    assert f"queue {hot} alone takes 108%, which no count changes" in decision.reason
    # With one consumer all but the hot queue would be within the bound: yet its busiest is the furthest from it.
    closest = re.search(r"with (\d+), which comes closest, .* would be used at (\d+)%", decision.reason)
    assert closest is not None, decision.reason
    assert (int(closest[1]), closest[2]) == (16, "108"), decision.reason


def test_a_count_that_relieves_nobody_is_never_chosen() -> None:
    decision = decision_on(snapshot(clients=clients(5), capacity=65.0))
    assert decision.target == 4
    five = next(one for one in decision.rejected if one.count == 5)
    assert "it relieves nobody" in five.reasons[0]


def test_the_policys_lowest_count_can_be_chosen_though_it_relieves_nobody() -> None:
    decision = decision_on(snapshot(clients=clients(8), capacity=100.0), replace(OBJECTIVE, lowest=5))
    assert decision.target == 5


def test_a_group_below_the_policys_lowest_count_is_scaled_up() -> None:
    decision = decision_on(snapshot(clients=clients(2), capacity=1000.0), replace(OBJECTIVE, lowest=4))
    assert decision.target == 4


def test_backlog_asks_for_more_than_utilisation_does() -> None:
    lags = dict.fromkeys(queues(), 2000)
    taken = snapshot(lags=lags, capacity=100.0)
    # With 3: 6 queues, 12 000 messages at 28/s spare = 429 s; with 6: 3 queues, 6 000 at 64/s spare = 94 s.
    assert decision_on(taken, replace(OBJECTIVE, backlog_gone_s=430.0)).is_hold
    assert decision_on(taken, replace(OBJECTIVE, backlog_gone_s=100.0)).target == 6


def test_a_wait_above_the_objective_may_last_as_long_as_a_backlog() -> None:
    lags = dict.fromkeys(queues(), 2000)
    taken = snapshot(lags=lags, capacity=100.0)
    # With 3: wait 120 s, gone in 429 s, so above 60 s for 214 s.
    wait = replace(OBJECTIVE, oldest_message_s=60.0, backlog_gone_s=None)
    assert decision_on(taken, wait).is_hold
    decision = decision_on(taken, replace(wait, oldest_message_s=1.0, backlog_gone_s=60.0))
    reasons = next(rejection.reasons for rejection in decision.rejected if rejection.count == 3)
    assert reasons == (
        "a new message would wait longer than 1 s for another 7 min 5 s, the objective allows 1 min",
        "the backlog would be gone after 7 min 9 s, 6 min 9 s later than the objective of 1 min",
    )


def test_a_short_delay_is_not_worth_twice_the_consumers() -> None:
    taken = snapshot(lags=dict.fromkeys(queues(), 2000), capacity=100.0)
    # With 3 it takes 429 s, with 4 it takes 154 s: 19 s too late are a third of an hour, a consumer more is 0.46 h.
    decision = decision_on(taken, replace(OBJECTIVE, backlog_gone_s=410.0))
    assert decision.is_hold
    assert "19 s later than the objective asks for, which more consumers are not worth" in decision.reason
    four = next(rejection.reasons for rejection in decision.rejected if rejection.count == 4)
    assert four == ("the 19 s that it saves are not worth 1 consumer more",)
    assert decision_on(taken, replace(OBJECTIVE, backlog_gone_s=100.0)).target == 6


def test_a_chosen_count_says_for_how_long_a_stated_wait_stays_broken() -> None:
    taken = snapshot(lags=dict.fromkeys(queues(), 2000), capacity=65.0)
    decision = decision_on(taken, replace(OBJECTIVE, oldest_message_s=30.0))
    assert decision.target == 4
    assert decision.reason.endswith("; a new message waits 2 min 3 s now, below 30 s in 5 min 56 s.")


def test_where_no_count_meets_the_objective_the_best_one_is_better_than_none() -> None:
    taken = snapshot(capacity=14.0)
    # 16 queues at 12: with 16 consumers the busiest is used at 86 %, with 3 at 514 %.
    decision = decision_on(taken)
    assert decision.target == 16
    assert decision.reason.startswith(
        "Scale from 3 to 16 consumers: no allowed count meets the objective, and this one comes closest: the busiest "
        "consumer would be used at 86%, above the bound of 80%"
    )
    at_best = decision_on(snapshot(clients=clients(16), capacity=14.0))
    assert at_best.hold_cause is HoldCause.NO_COUNT_MEETS
    assert decision_on(taken, replace(OBJECTIVE, highest=8)).target == 8


def test_a_hot_queue_is_not_answered_with_consumers_but_those_beside_it_are_relieved() -> None:
    hot = queues()[5]
    decision = decision_on(snapshot(rates={hot: 90.0}, capacity=65.0))
    assert decision.target == 4, "with 4 all but the hot queue's owner are below the bound, with 3 they are not"


@pytest.mark.parametrize(("hot_rate", "capacity", "target", "used"), [(37.5, 50.0, 16, 90), (112.5, 150.0, 8, 98)])
def test_a_hot_queue_that_one_consumer_can_work_off_gets_one_that_does(
    hot_rate: float, capacity: float, target: int, used: int
) -> None:
    """Beside the present other queues its owner falls behind for good; with the chosen count it keeps up."""
    hot = queues()[5]
    decision = decision_on(snapshot(rates={hot: hot_rate}, capacity=capacity))
    assert decision.target == target, decision.reason
    assert "this one is the smallest that leaves only a hot queue's owner above it" in decision.reason
    assert f"used at {used}%, above the bound of 80%" in decision.reason
    assert f"queue {hot} alone takes 90%, which no count changes" in decision.reason
    assert "never be gone" not in decision.reason


def test_a_hot_queue_gets_a_consumer_of_its_own_although_nobody_else_is_relieved() -> None:
    """Of eight consumers one has the hot queue and another one, 120 %; the busiest other one 76 %, later 75 %."""
    first, *_, beside, hot = queues()[:6]
    rates = {**dict.fromkeys(queues(), 0.01), first: 62.5, beside: 25.0, hot: 75.0}
    decision = decision_on(snapshot(rates=rates, capacity=100.0, clients=clients(8)))
    assert decision.target == 16, decision.reason


def test_hold_on_old_data() -> None:
    decision = decision_on(snapshot(capacity=65.0), age_s=200.0)
    assert decision.hold_cause is HoldCause.OLD_DATA
    assert decision.reason == "Hold at 3 consumers: its routes are 3 min 23 s old, the policy allows 2 min."


def test_hold_on_incomplete_data() -> None:
    decision = decision_on(replace(snapshot(capacity=65.0), parts=parts(completeness=0.5)))
    assert decision.hold_cause is HoldCause.INCOMPLETE_DATA
    assert "50% complete" in decision.reason


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"clients": (), "unlisted_consumers": "consumed through a proxy"}, HoldCause.MEMBERS_UNKNOWN),
        ({"strategy": None, "strategy_source": f"2 of 3 members {GRPC_CLIENTS}"}, HoldCause.UNKNOWN_STRATEGY),
        ({"shared_queues": 16}, HoldCause.UNSUPPORTED_STRATEGY),
        ({"shared_queues": 2}, HoldCause.INCOMPLETE_DATA),
        ({"strategy": None, "strategy_source": "no member named one"}, HoldCause.INCOMPLETE_DATA),
    ],
)
def test_after_a_short_watch_the_reason_that_no_longer_watch_mends_comes_first(
    changes: dict[str, Any], cause: HoldCause
) -> None:
    """Red where somebody watches for the whole window only to read then that his clients are behind a proxy."""
    short = replace(snapshot(), parts=parts(completeness=0.1), **changes)
    assert decision_on(short).hold_cause is cause
    assert decision_on(short, age_s=500.0).hold_cause is HoldCause.OLD_DATA


def test_hold_on_an_unknown_strategy() -> None:
    taken = replace(snapshot(), strategy=None, strategy_source="members run different strategies: a split brain")
    assert decision_on(taken).hold_cause is HoldCause.UNKNOWN_STRATEGY


def test_ids_that_nobody_knows_yet_are_drawn_and_decided_on() -> None:
    decision = decision_on(snapshot(capacity=130.0, strategy="CONSISTENT_HASH"))
    assert (decision.hold_cause, decision.strategy) == (None, "CONSISTENT_HASH")
    assert decision.target > decision.current


def test_hold_on_a_strategy_whose_parameters_are_not_seen() -> None:
    taken = replace(snapshot(), strategy="MACHINE_ROOM")
    decision = decide(taken, (), OBJECTIVE, AT)
    assert decision.hold_cause is HoldCause.UNSUPPORTED_STRATEGY


def test_a_strategy_is_planned_with_once_its_parameters_are_stated() -> None:
    rooms = tuple(MessageQueue("orders", f"north@{name}", number) for name in ("a", "b") for number in range(8))
    options = {"consumer_rooms": ["north"]}
    plain = snapshot(rooms, rates=dict.fromkeys(rooms, 10.0))
    owned_by = find_strategy("MACHINE_ROOM", options).owners(rooms, plain.clients)
    states = tuple(
        replace(state, owner=plain.clients[place]) for state, place in zip(plain.queues, owned_by, strict=True)
    )
    taken = replace(plain, strategy="MACHINE_ROOM", strategy_options=options, queues=states)
    outcomes = [simulate_candidate(taken, count, "MACHINE_ROOM") for count in candidate_counts(taken, 1, 16)]
    decision = decide(taken, outcomes, OBJECTIVE, AT)
    assert (decision.hold_cause, decision.strategy) != (HoldCause.UNSUPPORTED_STRATEGY, None)
    assert {outcome.strategy for outcome in outcomes} == {"MACHINE_ROOM"}
    assert decision.hold_cause in (None, HoldCause.RIGHT_ALREADY)
    unstated = decide(replace(taken, strategy_options={}), (), OBJECTIVE, AT)
    assert "spec.strategyOptions" in unstated.reason


def test_hold_on_unknown_capacity_and_unknown_rates() -> None:
    assert decision_on(snapshot(capacity=None)).hold_cause is HoldCause.UNKNOWN_CAPACITY
    assert decision_on(snapshot(rates={queues()[0]: None})).hold_cause is HoldCause.UNKNOWN_RATES


def test_hold_where_only_the_least_that_a_consumer_can_do_asks_for_more_of_them() -> None:
    least = Capacity(65.0, "at least 65.0 messages/s", low=65.0, is_lower_bound=True)
    waiting = snapshot(lags=dict.fromkeys(queues(), 300))
    held = decision_on(replace(waiting, capacity=least))
    assert held.hold_cause == HoldCause.UNKNOWN_CAPACITY
    assert "known as at least 65.0 messages/s; whether more are needed shows when one is busy" in held.reason
    fine = decision_on(replace(snapshot(), capacity=least))
    assert fine.hold_cause == HoldCause.RIGHT_ALREADY
    assert "3 consumers keep up, nothing but the last 15 s of arrivals waits" in fine.reason
    fewer = decision_on(replace(snapshot(clients=clients(8)), capacity=least))
    assert fewer.target == 4, "what is enough for the least is enough"
    lowest = decision_on(replace(snapshot(), capacity=least), replace(OBJECTIVE, lowest=4))
    assert lowest.target == 4, "the policy asks for four, whatever they can do"


STATED = Capacity(100.0, "stated by the policy", measured_high=31.0, measured_source="measured in 9 spans: 29 to 31")


def test_a_stated_figure_that_busy_consumers_refute_takes_no_consumer_away() -> None:
    """Red where a group that was seen to be busy shrinks by a figure that is only stated."""
    many = snapshot(clients=clients(8))
    held = decision_on(replace(many, capacity=STATED))
    assert held.hold_cause is HoldCause.REFUTED_CAPACITY
    assert "states 100 messages/s for one consumer, and less was seen: measured in 9 spans: 29 to 31" in held.reason
    near = replace(STATED, measured_high=51.0)
    assert decision_on(replace(many, capacity=near)).target == 3, "what slowed them down may be over"
    drowning = replace(snapshot(clients=clients(8), lags=dict.fromkeys(queues(), 700)), capacity=near)
    assert decision_on(drowning).hold_cause is HoldCause.REFUTED_CAPACITY, "it is not"


def test_a_group_that_drowns_is_not_right_by_a_refuted_figure() -> None:
    """Red where the reason says that the present count is enough, or a growth that is needed waits for the figure."""
    calm = replace(snapshot(), capacity=STATED)
    assert decision_on(calm).hold_cause is HoldCause.RIGHT_ALREADY, "nothing waits: what was seen may be past"
    drowning = replace(snapshot(lags=dict.fromkeys(queues(), 700)), capacity=replace(STATED, measured_high=79.0))
    assert decision_on(drowning).hold_cause is HoldCause.REFUTED_CAPACITY
    true = replace(drowning, capacity=replace(STATED, measured_high=81.0))
    assert decision_on(true).hold_cause is HoldCause.RIGHT_ALREADY, "a fifth is what a statement may be off"
    assert decision_on(replace(drowning, capacity=replace(STATED, messages_per_s=50.0))).target > 3


def test_a_group_that_falls_behind_shows_what_its_consumers_can_do() -> None:
    least = Capacity(40.0, "at least 40.0 messages/s", low=40.0, is_lower_bound=True)
    drowning = snapshot(lags=dict.fromkeys(queues(), 500), capacity=40.0)
    behind = tuple(replace(state, consumption_rate=7.5) for state in drowning.queues)
    assert decision_on(replace(drowning, capacity=least, queues=behind)).target > 3
    assert decision_on(replace(drowning, capacity=least)).hold_cause is HoldCause.UNKNOWN_CAPACITY


def test_a_slow_member_is_not_answered_with_consumers_while_the_others_are_not_busy() -> None:
    least = Capacity(40.0, "at least 40.0 messages/s", low=40.0, is_lower_bound=True, slow_clients=("c3",))
    drowning = snapshot(lags=dict.fromkeys(queues(), 500))
    behind = tuple(replace(state, consumption_rate=7.5) for state in drowning.queues)
    decision = decision_on(replace(drowning, capacity=least, queues=behind))
    assert decision.hold_cause is HoldCause.SLOW_MEMBERS
    measured = Capacity(40.0, "measured", low=40.0, slow_clients=("c3",))
    assert decision_on(replace(drowning, capacity=measured, queues=behind)).target > 3


def test_nobody_is_taken_away_while_a_queue_stands_still() -> None:
    taken = snapshot(clients=clients(8), capacity=100.0)
    first, *others = taken.queues
    standing = replace(first, lag=40_000, consumption_rate=0.0)
    held = decision_on(replace(taken, queues=(standing, *others)))
    assert held.hold_cause is HoldCause.BLOCKED_QUEUES
    assert f"nothing is consumed of {first.queue} although" in held.reason
    empty = replace(standing, lag=0)
    assert decision_on(replace(taken, queues=(empty, *others))).target == 3
    few = snapshot(capacity=65.0)
    assert decision_on(replace(few, queues=(replace(standing, owner=few.queues[0].owner), *few.queues[1:]))).target == 4


def test_nobody_is_taken_away_while_a_member_is_slow() -> None:
    """Whoever is left without the fast ones would depend on it: red when a slow member is left out and forgotten."""
    taken = snapshot(clients=clients(8), capacity=100.0)
    assert taken.capacity is not None
    held = decision_on(replace(taken, capacity=replace(taken.capacity, slow_clients=("c3",))))
    assert held.hold_cause is HoldCause.SLOW_MEMBERS
    assert decision_on(taken).target == 3


def test_a_blocked_queue_is_known_before_it_stood_for_the_whole_window() -> None:
    least = Capacity(40.0, "at least 40.0 messages/s", low=40.0, is_lower_bound=True)
    taken = snapshot(lags=dict.fromkeys(queues(), 500), capacity=40.0)
    states = tuple(
        replace(state, lag=900, consumption_rate=5.0) if number < 5 else replace(state, lag=0, consumption_rate=10.0)
        for number, state in enumerate(taken.queues)
    )
    behind = replace(taken, capacity=least, queues=states)
    assert decision_on(behind).hold_cause is not HoldCause.BLOCKED_QUEUES
    blocked = tuple(state.queue for state in states[:5])
    assert decision_on(replace(behind, blocked_queues=blocked)).hold_cause is HoldCause.BLOCKED_QUEUES


def test_a_member_that_hangs_is_not_answered_with_consumers_while_the_others_keep_up() -> None:
    least = Capacity(40.0, "at least 40.0 messages/s", low=40.0, is_lower_bound=True)
    taken = owned(snapshot())
    hung = tuple(
        replace(state, lag=9_000, consumption_rate=0.0) if state.owner == taken.clients[0] else state
        for state in taken.queues
    )
    decision = decision_on(replace(taken, capacity=least, queues=hung))
    assert decision.hold_cause is HoldCause.BLOCKED_QUEUES
    drowning = tuple(replace(state, lag=900, consumption_rate=state.consumption_rate and 7.5) for state in hung)
    assert decision_on(replace(taken, capacity=least, queues=drowning)).target > 3


STUCK_OBJECTIVES = (
    OBJECTIVE,
    replace(OBJECTIVE, backlog_gone_s=600.0),
    replace(OBJECTIVE, backlog_gone_s=None, oldest_message_s=30.0),
    replace(OBJECTIVE, backlog_gone_s=600.0, oldest_message_s=1.0),
    replace(OBJECTIVE, max_utilisation=float("inf"), backlog_gone_s=None, wait=WaitObjective()),
)


@pytest.mark.parametrize("objective", STUCK_OBJECTIVES)
@pytest.mark.parametrize("highest", [3, 8, 16])
@pytest.mark.parametrize("capacity", [Capacity(1_000.0, "the policy states it"), None])
def test_a_blocked_queue_is_no_reason_for_consumers_under_any_objective(
    objective: Objective, highest: int, capacity: Capacity | None
) -> None:
    taken = snapshot()
    first, *others = taken.queues
    stuck = replace(first, lag=60_000, consumption_rate=0.0)
    blocked = replace(taken, capacity=capacity, queues=(stuck, *others))
    decision = decision_on(blocked, replace(objective, highest=highest))
    assert decision.hold_cause is HoldCause.BLOCKED_QUEUES, decision.reason
    assert str(first.queue) in decision.reason


def test_what_other_queues_need_beside_a_blocked_one_leaves_that_one_out_and_says_so() -> None:
    taken = snapshot(capacity=65.0, clients=clients(2))
    first, *others = taken.queues
    blocked = replace(taken, queues=(replace(first, lag=60_000, consumption_rate=0.0), *others))
    decision = decision_on(blocked, replace(OBJECTIVE, backlog_gone_s=600.0))
    assert decision.target == 4
    assert f"what waits in {first.queue}, of which nothing is consumed, is left out" in decision.reason


def test_what_comes_into_a_blocked_queue_is_no_load() -> None:
    first = queues()[0]
    hot = snapshot(rates={first: 900.0}, capacity=100.0)
    assert decision_on(hot).hold_cause is HoldCause.NO_COUNT_MEETS
    assert decision_on(replace(hot, blocked_queues=(first,))).hold_cause is HoldCause.BLOCKED_QUEUES


@pytest.mark.parametrize("objective", STUCK_OBJECTIVES[:4])
def test_a_group_that_keeps_up_is_right_where_its_queues_allow_no_more_and_nobody_was_busy(
    objective: Objective,
) -> None:
    """One queue each, and the most that a member did is below what comes into its queue: red as "no count helps"."""
    least = Capacity(11.0, "at least 11 messages/s", low=11.0, is_lower_bound=True)
    one_each = replace(snapshot(clients=clients(16)), capacity=least)
    decision = decision_on(one_each, objective)
    assert decision.hold_cause is HoldCause.RIGHT_ALREADY, decision.reason
    assert "keep up" in decision.reason
    late = decision_on(
        replace(one_each, queues=tuple(replace(state, lag=900, consumption_rate=9.0) for state in one_each.queues)),
        objective,
    )
    assert late.hold_cause is HoldCause.NO_COUNT_MEETS, late.reason
    waiting = decision_on(replace(one_each, queues=tuple(replace(s, lag=900) for s in one_each.queues)), objective)
    assert waiting.hold_cause is HoldCause.UNKNOWN_CAPACITY, waiting.reason


def test_it_is_so_for_the_count_that_costs_least_which_would_be_late_with_any() -> None:
    least = Capacity(9.0, "at least 9 messages/s", low=9.0, is_lower_bound=True)
    one_each = replace(snapshot(clients=clients(16)), capacity=least)
    assert decision_on(one_each, STUCK_OBJECTIVES[4]).hold_cause is HoldCause.RIGHT_ALREADY
    known = replace(one_each, capacity=Capacity(9.0, "the policy states it"))
    assert decision_on(known, STUCK_OBJECTIVES[4]).hold_cause is HoldCause.NO_COUNT_MEETS


def test_a_message_that_has_just_come_into_a_quiet_queue_is_not_blocked() -> None:
    taken = snapshot(capacity=100.0)
    first, *others = taken.queues
    quiet = replace(first, lag=1, arrival_rate=1 / 600, upper_arrival_rate=1 / 60, consumption_rate=0.0)
    assert decision_on(replace(taken, queues=(quiet, *others))).hold_cause is HoldCause.RIGHT_ALREADY


@pytest.mark.parametrize("capacity", [20.0, 65.0, 1_000.0])
def test_commits_that_go_back_are_a_reason_to_hold_whatever_the_load_seems_to_be(capacity: float) -> None:
    first = queues()[0]
    decision = decision_on(replace(snapshot(capacity=capacity), rewound_queues=(first,)))
    assert decision.hold_cause is HoldCause.COMMITS_WENT_BACK
    assert f"commits on {first} went back" in decision.reason


def test_hold_where_members_share_queues() -> None:
    every = decision_on(replace(snapshot(), shared_queues=16))
    assert (every.hold_cause, "broadcasting, or POP" in every.reason) == (HoldCause.UNSUPPORTED_STRATEGY, True)
    some = decision_on(replace(snapshot(), shared_queues=2))
    assert (some.hold_cause, "2 of 16 queues" in some.reason) == (HoldCause.UNSETTLED, True)


def test_decisions_go_by_the_lower_end_of_what_was_learned() -> None:
    learned = Capacity(100.0, "12 spans", low=65.0, high=135.0, observations=12)
    assert decision_on(replace(snapshot(), capacity=learned)).target == decision_on(snapshot(capacity=65.0)).target == 4


def test_hold_on_an_unknown_lag_of_a_data_queue_only() -> None:
    taken = snapshot()
    unknown = replace(taken.queues[0], consumer_offset=None, lag=None)
    decision = decision_on(replace(taken, queues=(unknown, *taken.queues[1:])))
    assert (decision.hold_cause, "lag of 1 queue is" in decision.reason) == (HoldCause.UNKNOWN_LAG, True)
    retry = replace(unknown, queue=MessageQueue("%RETRY%shop", "broker-a", 0))
    assert decision_on(replace(taken, queues=(retry, *taken.queues))).hold_cause is not HoldCause.UNKNOWN_LAG


def test_a_group_that_drowns_is_relieved_though_some_queues_have_no_commit_yet() -> None:
    taken = snapshot(lags=dict.fromkeys(queues(), 500), capacity=40.0)
    first, *others = (replace(state, consumption_rate=7.5) for state in taken.queues)
    unknown = replace(first, consumer_offset=None, lag=None, consumption_rate=None)
    decision = decision_on(replace(taken, queues=(unknown, *others)))
    assert decision.target == 8
    assert "how long the backlog takes is not known" in decision.reason


def test_hold_where_somebody_else_scales_or_nobody_knows() -> None:
    addresses = tuple(client.partition("@")[0] for client in snapshot().clients)
    scaler = Autoscaler("HorizontalPodAutoscaler", "shop", 1, 8)
    cases = {(): HoldCause.RIGHT_ALREADY, (scaler,): HoldCause.OTHER_SCALER, None: HoldCause.OTHER_SCALER}
    for autoscalers, cause in cases.items():
        taken = replace(snapshot(), deployment=deployment(addresses, autoscalers))
        assert decision_on(taken).hold_cause == cause
    paused = replace(snapshot(), deployment=deployment(addresses, (replace(scaler, is_paused=True),)))
    assert decision_on(paused).hold_cause is HoldCause.RIGHT_ALREADY


def test_hold_while_pods_and_members_differ_in_number() -> None:
    addresses = tuple(client.partition("@")[0] for client in snapshot().clients)
    decision = decision_on(replace(snapshot(), deployment=deployment((*addresses, "10.9.9.9"))))
    assert decision.hold_cause is HoldCause.UNSETTLED
    assert "asks for 4 pods, but the group has 3 members" in decision.reason


def test_hold_without_consumers() -> None:
    assert decision_on(snapshot(clients=())).hold_cause is HoldCause.NO_CONSUMERS


def test_hold_while_ownership_differs_from_the_strategy() -> None:
    settled = owned(snapshot(capacity=65.0))
    first, *others = settled.queues
    moving = replace(settled, queues=(replace(first, owner=settled.clients[-1]), *others))
    decision = decision_on(moving)
    assert decision.hold_cause is HoldCause.UNSETTLED
    assert "1 queue with another owner than AVG gives" in decision.reason


def test_a_decision_cannot_say_hold_and_scale_at_once() -> None:
    with pytest.raises(ValueError, match="hold cause"):
        Decision("g", AT, "AVG", 3, 4, "", (), HoldCause.RIGHT_ALREADY)
    with pytest.raises(ValueError, match="hold cause"):
        Decision("g", AT, "AVG", 3, 3, "", ())


REVERSED = """
class Backwards:
    name = "BACKWARDS"
    is_positional = {positional}

    def allocate(self, client, queues, clients):
        place = len(clients) - 1 - clients.index(client)
        return queues[place::len(clients)]
"""


def test_a_strategy_of_the_users_own_is_planned_with_when_places_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILES_VARIABLE, str(tmp_path))
    path = tmp_path / "backwards.py"
    path.write_text(REVERSED.format(positional=True))
    decision = decision_on(snapshot(capacity=65.0, strategy=str(path)))
    assert (decision.target, decision.strategy) == (4, str(path))


def test_a_strategy_of_the_users_own_that_goes_by_ids_is_planned_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILES_VARIABLE, str(tmp_path))
    path = tmp_path / "backwards.py"
    path.write_text(REVERSED.format(positional=False))
    assert decision_on(snapshot(capacity=65.0, strategy=str(path))).target == 4
