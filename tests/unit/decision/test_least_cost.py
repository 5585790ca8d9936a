"""The choice by the horizon: what it grows and shrinks for, what it does not, and the bill that it shows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from planner.decision.bill_words import describe_bill, describe_difference, describe_payback
from planner.decision.choose import decide
from planner.decision.decision import BillLine, Decision, DecisionBill, HoldCause
from planner.decision.group_weighing import weighing_of
from planner.decision.horizon import DEFAULT_HORIZON, Costs, GroupState, choose_count, horizon_periods, itemise
from planner.decision.objective import WaitObjective
from planner.decision.prices import DEFAULT_PRICES, Prices, change_price
from planner.demand.events import DateSpan, Event
from planner.model.snapshot import Capacity, GroupSnapshot, SeriesPoint
from planner.simulation.candidates import candidate_counts, simulate_candidate
from planner.simulation.outcome import CandidateOutcome, Messages, Seconds, Transition
from tests.builders import AT, OBJECTIVE, clients, parts, queues, snapshot

WAIT = WaitObjective()
WEIGHED = replace(OBJECTIVE, max_utilisation=float("inf"), backlog_gone_s=None, wait=WAIT)


def outcomes_of(taken: GroupSnapshot) -> list[CandidateOutcome]:
    """Return one outcome for each useful count; what the changes cost in pauses and duplicates is not among them."""
    return [simulate_candidate(taken, count, taken.strategy or "") for count in candidate_counts(taken, 1, 16)]


def weighed(taken: GroupSnapshot, **changes: Any) -> Decision:
    return decide(taken, outcomes_of(taken), replace(WEIGHED, **changes), AT)


def billed(decision: Decision) -> DecisionBill:
    assert decision.bill is not None
    return decision.bill


def line_of(decision: Decision, count: int) -> BillLine:
    line = billed(decision).line(count)
    assert line is not None
    return line


def past(rates: Sequence[float], **changes: Any) -> tuple[SeriesPoint, ...]:
    """Return one point a minute that ends at ``AT``."""
    first = AT - timedelta(minutes=len(rates) - 1)
    made = (SeriesPoint(first + timedelta(minutes=n), 60.0, rate, rate, 0, 3, 0, False) for n, rate in enumerate(rates))
    return tuple(replace(point, **changes) for point in made)


def test_what_a_bill_is_made_of_adds_up_to_it() -> None:
    periods = horizon_periods(DEFAULT_HORIZON, 60.0)
    minutes = [length for period in periods for length in period]
    loads = np.random.default_rng(1).uniform(0.5, 6.0, (5, len(minutes)))
    counts, shares = (1, 2, 4, 8), np.array([1.0, 0.5, 0.25, 0.125])
    costs = Costs((100.0, 300.0, 250.0, 700.0), 3600.0, 60.0, 30.0, 60.0)
    inputs = (counts, shares, loads, periods, GroupState(2, 2, 0.0, 200.0), costs, DEFAULT_HORIZON)
    bill, items = choose_count(*inputs), itemise(*inputs)
    assert items.consumers + items.changes + items.late == pytest.approx(bill.costs)
    # Each first action is paid once, and no path of 2 hours lives without consumers.
    assert (items.changes >= np.array([100.0, 0.0, 250.0, 700.0]) - 0.01).all()
    assert (items.consumers >= 60 * sum(minutes) - 0.01).all()
    assert items.late.max() > 0
    free = replace(costs, late_minute=0.0, change=0.0)
    assert itemise(*inputs[:5], free, DEFAULT_HORIZON).late == pytest.approx(0.0)


def test_a_calm_group_of_the_right_size_holds_and_shows_its_bill() -> None:
    # 16 queues of 10 messages/s are 1.6 consumers, the busiest of 2 has 80 %.
    decision = weighed(snapshot(clients=clients(2), recent=past([160.0] * 360)))
    assert decision.hold_cause is HoldCause.RIGHT_ALREADY
    bill, stay = billed(decision), line_of(decision, 2)
    assert stay.consumer_hours == pytest.approx(2 * bill.horizon_seconds / 3600, abs=0.001)
    assert (stay.late_minutes, stay.change_hours) == (0.0, 0.0)
    assert bill.source == "the errors that forecasts of this load made in the last 6 h"
    assert bill.level == pytest.approx(1.6)
    assert "the least of all counts" in decision.reason


def test_where_nobody_was_busy_the_count_is_right_and_whether_fewer_would_do_is_said_to_be_unknown() -> None:
    """Red when a bound from below is taken for what a consumer can do: nobody knows that one would be late."""
    least = Capacity(100.0, "at least 100 messages/s, the most that one did", low=100.0, is_lower_bound=True)
    decision = weighed(replace(snapshot(clients=clients(2), recent=past([160.0] * 360)), capacity=least))
    assert decision.hold_cause is HoldCause.RIGHT_ALREADY
    assert "whether fewer would do is not known, as what one can do is known as at least 100" in decision.reason
    assert decision.bill is not None
    fewer = weighed(replace(snapshot(clients=clients(8), recent=past([160.0] * 360)), capacity=least))
    assert fewer.target == 2


def test_a_backlog_is_named_where_more_waits_than_the_last_seconds_bring_and_never_said_to_stay_for_good() -> None:
    """Loads may fall: by the recent upper rate alone nobody says that a backlog never goes."""
    few = weighed(snapshot(clients=clients(8), lags=dict.fromkeys(queues(), 20), recent=past([160.0] * 360)))
    assert "backlog" not in few.reason
    many = weighed(snapshot(clients=clients(8), lags=dict.fromkeys(queues(), 2000), recent=past([160.0] * 360)))
    assert "the backlog of 32,000 messages will be gone after" in many.reason
    rising = snapshot(capacity=65.0, rates=dict.fromkeys(queues(), 80.0), lags=dict.fromkeys(queues(), 2000))
    assert "; at the recent upper rate the backlog of 32,000 messages would not be gone" in weighed(rising).reason


def test_a_group_that_falls_behind_grows_and_late_minutes_are_what_it_saves() -> None:
    taken = snapshot(capacity=65.0, lags=dict.fromkeys(queues(), 1000), recent=past([160.0] * 360))
    decision = weighed(taken)
    assert decision.target > 3
    assert line_of(decision, decision.target).late_minutes < line_of(decision, 3).late_minutes
    assert line_of(decision, decision.target).change_hours > 0
    assert f"; staying at 3 would cost {line_of(decision, 3).total_hours:.2f} consumer-hours" in decision.reason
    # The price of lateness decides it: who does not mind waiting pays for no consumer.
    patient = weighed(taken, wait=replace(WAIT, prices=replace(DEFAULT_PRICES, late_minute_s=1.0)))
    assert patient.target <= 3


def test_fewer_consumers_only_where_they_pay_back() -> None:
    taken = snapshot(clients=clients(8), recent=past([160.0] * 360))
    decision = weighed(taken)
    assert decision.target == 2
    price = line_of(decision, 2).change_hours
    assert 0 < price < 6 * billed(decision).horizon_seconds / 3600
    assert f"; the change costs {price:.2f} consumer-hours, 6 consumers less pay that back in " in decision.reason
    dear = weighed(taken, wait=replace(WAIT, prices=Prices(moved_queue_s=4000.0)))
    assert dear.hold_cause is HoldCause.RIGHT_ALREADY
    assert all(line.total_hours >= line_of(dear, 8).total_hours for line in billed(dear).lines)


def test_a_count_stays_until_the_group_is_decided_on_again() -> None:
    taken = snapshot(lags=dict.fromkeys(queues(), 300), recent=past([160.0] * 360))
    often, seldom = (weighed(taken, wait=replace(WAIT, decided_every_s=every_s)) for every_s in (60.0, 900.0))
    assert [billed(decision).first_change_seconds for decision in (often, seldom)] == [60.0, 900.0]
    # The third consumer, which is not needed for long, stays 14 minutes longer.
    paid = [line_of(decision, 3).consumer_hours for decision in (often, seldom)]
    assert paid[1] - paid[0] == pytest.approx(14 / 60, abs=0.001)


def test_the_past_load_is_what_the_futures_are_made_of() -> None:
    """An hourly peak that passes is waited for; the same group on a steady load lets its consumers go."""
    hourly = ([160.0] * 45 + [700.0] * 15) * 6
    wait = replace(WAIT, prices=replace(DEFAULT_PRICES, moved_queue_s=300.0))
    calm = weighed(snapshot(clients=clients(8), recent=past([160.0] * 360)), wait=wait)
    peaks = weighed(snapshot(clients=clients(8), recent=past([*hourly[20:], *[160.0] * 20])), wait=wait)
    assert calm.target < peaks.target


def test_without_a_past_the_level_alone_is_spread_wider_and_says_so() -> None:
    decision = weighed(snapshot(clients=clients(8)))
    assert "the level alone, spread wider, as only 1 min of the load are known" in billed(decision).source
    assert 2 <= decision.target < 8


def test_bounds_that_a_policy_states_stay_hard() -> None:
    taken = snapshot(clients=clients(2), recent=past([160.0] * 360))
    assert weighed(taken).is_hold
    # The busiest of 3 would be used at 72 % of the upper rate, of 4 at 48 %.
    decision = weighed(taken, max_utilisation=0.5)
    assert decision.target == 4
    three = next(rejection for rejection in decision.rejected if rejection.count == 3)
    assert three.reasons == ("the busiest consumer would be used at 72%, above the bound of 50%",)
    assert weighed(taken, lowest=4).target == 4


def test_a_backlog_that_is_gone_too_late_is_on_the_bill() -> None:
    taken = snapshot(lags=dict.fromkeys(queues(), 300), recent=past([160.0] * 360))
    decision = weighed(taken, backlog_gone_s=60.0)
    unbound = weighed(taken)
    assert line_of(unbound, 3).bound_hours == 0.0
    # With 3 consumers 1 800 messages of the busiest are gone after 64 s at 28/s to spare.
    assert next(line for line in billed(decision).lines if line.count == 3).bound_hours == pytest.approx(0.07, abs=0.01)


def test_where_no_count_meets_a_stated_bound_the_closest_is_taken() -> None:
    decision = weighed(snapshot(capacity=14.0), max_utilisation=0.8)
    assert (decision.target, decision.bill) == (16, None)
    assert "comes closest" in decision.reason


def test_an_overload_beyond_all_counts_is_answered_by_the_largest() -> None:
    taken = snapshot(capacity=5.0, recent=past([160.0] * 360))
    assert weighed(taken).target == 16
    assert weighed(taken, highest=8).target == 8
    at_best = weighed(replace(snapshot(clients=clients(16), capacity=5.0), recent=taken.recent))
    assert at_best.hold_cause is HoldCause.NO_COUNT_MEETS
    backlog = snapshot(capacity=5.0, lags=dict.fromkeys(queues(), 50_000), recent=past([160.0] * 360))
    assert weighed(backlog, highest=8).target == 8


def test_backlog_that_no_count_helps_is_no_reason_for_one() -> None:
    first = queues()[0]
    steady = snapshot(clients=clients(2), recent=past([160.0] * 360))
    calm, behind = weighed(steady), snapshot(clients=clients(2), lags={first: 50_000}, recent=past([160.0] * 360))
    assert weighed(behind).target > 2
    blocked = replace(behind, blocked_queues=(first,))
    assert weighed(blocked).target == calm.target
    owner = next(state.owner for state in behind.queues if state.queue == first)
    slow = replace(behind, capacity=Capacity(100.0, "learned", slow_clients=(owner or "",)))
    assert weighed(slow).hold_cause is HoldCause.SLOW_MEMBERS


def test_a_queue_that_is_too_much_for_any_consumer_is_left_out_and_named() -> None:
    hot = queues()[5]
    taken = snapshot(clients=clients(2), rates={hot: 150.0}, lags={hot: 50_000}, recent=past([300.0] * 360))
    group = weighing_of(taken, outcomes_of(taken), WAIT)
    assert group is not None
    assert group.hot == hot
    assert float(group.weighing.series.level[-1]) == pytest.approx(1.5)
    assert group.weighing.state.backlog == 0.0
    decision = weighed(taken)
    assert decision.target in (2, 3)
    assert f", without queue {hot}, which alone takes more than a consumer" in billed(decision).source
    # Nor does a group shrink beside it: fewer consumers would leave it less of one.
    many = weighed(snapshot(clients=clients(8), rates={hot: 150.0}, recent=past([300.0] * 360)))
    assert many.hold_cause is HoldCause.NO_COUNT_MEETS
    assert f"Hold at 8 consumers: queue {hot} alone takes more than a consumer can do, so that no" in many.reason
    three = next(rejection for rejection in many.rejected if rejection.count == 3)
    assert three.reasons == (f"queue {hot} alone takes more than a consumer, and with fewer there is less for it",)


def test_what_waits_in_one_queue_is_weighed_as_what_no_count_parts() -> None:
    in_one = weighing_of(
        taken := snapshot(lags={queues()[0]: 5000}, recent=past([160.0] * 360)), outcomes_of(taken), WAIT
    )
    evenly = weighing_of(taken := snapshot(lags=dict.fromkeys(queues(), 5000)), outcomes_of(taken), WAIT)
    assert in_one is not None
    assert evenly is not None
    ratios = dict(zip(in_one.weighing.counts, in_one.weighing.state.backlog_ratios or (), strict=True))
    assert ratios[16] == pytest.approx(1.0, abs=0.05)
    even = dict(zip(evenly.weighing.counts, evenly.weighing.state.backlog_ratios or (), strict=True))
    assert even[16] == pytest.approx(1 / 6)


def test_half_a_commit_interval_of_the_lag_is_worked_off() -> None:
    taken = snapshot(lags=dict.fromkeys(queues(), 25))
    group = weighing_of(taken, outcomes_of(taken), WAIT)
    assert group is not None
    assert group.weighing.state.backlog == 0.0


def test_rest_binds_down_only() -> None:
    moved = past([160.0] * 360)
    moved = (*moved[:-3], replace(moved[-3], moved=4), *moved[-2:])
    resting = weighed(snapshot(clients=clients(8), recent=moved), quiet_s=600.0)
    assert resting.hold_cause is HoldCause.RECENTLY_CHANGED
    assert billed(resting).line(2)
    behind = snapshot(capacity=65.0, lags=dict.fromkeys(queues(), 1000), recent=moved)
    assert weighed(behind, quiet_s=600.0).target > 3


def test_a_capacity_known_from_below_is_no_reason_to_grow() -> None:
    taken = snapshot(lags=dict.fromkeys(queues(), 25), recent=past([160.0] * 360))
    taken = replace(taken, capacity=Capacity(40.0, "the most that was seen", is_lower_bound=True))
    assert weighed(replace(taken, capacity=Capacity(40.0, "stated"))).target > 3
    assert weighed(taken).is_hold


def test_data_that_carry_no_decision_hold_as_ever() -> None:
    assert weighed(snapshot(capacity=None)).hold_cause is HoldCause.UNKNOWN_CAPACITY
    assert weighed(snapshot(parts=parts(age_s=500.0))).hold_cause is HoldCause.OLD_DATA


def test_equal_snapshots_have_equal_decisions() -> None:
    taken = snapshot(clients=clients(8), recent=past(list(np.linspace(100.0, 200.0, 360))))
    assert weighed(taken) == weighed(taken)


def test_the_price_of_a_change_is_that_of_its_own_forecast() -> None:
    outcome = next(one for one in outcomes_of(snapshot()) if one.count == 4)
    assert outcome.moved_fewest is not None
    assert outcome.moved_most is not None
    second, none = Seconds(1.0, 2.0, 3.0), Messages(0, 0, 0)
    known = replace(outcome, transition=Transition(second, second, Messages(1, 7, 9), none, second, None))
    moves = 30.0 * (outcome.moved_fewest + outcome.moved_most) / 2
    assert change_price(replace(outcome, transition=None), 3, DEFAULT_PRICES) == moves
    # 7 duplicates, 3 consumers that stand still for 2 s at 10 each, one consumer missing for 2 s.
    assert change_price(known, 3, DEFAULT_PRICES) == moves + 7 + 60 + 2
    unknown = replace(outcome, moved_fewest=None, moved_most=None, transition=None)
    assert change_price(unknown, 3, DEFAULT_PRICES) == 16 * 30.0
    assert change_price(replace(outcome, is_current=True), 4, DEFAULT_PRICES) == 0.0


def test_the_bill_in_words_names_every_item_and_what_is_not_known() -> None:
    costs = {"later_change_hours": 0.0, "late_minutes": 0.0, "late_hours": 0.0, "bound_hours": 0.0}
    lines = (
        BillLine(count=4, consumer_hours=8.0, change_hours=0.5, total_hours=8.5, is_change_known=False, **costs),
        BillLine(count=6, consumer_hours=12.0, change_hours=0.0, total_hours=12.0, **costs),
    )
    bill = DecisionBill(
        horizon_seconds=7200.0, futures=12, source="made up", level=2.5, lines=lines, first_change_seconds=60.0
    )
    assert list(describe_bill(bill, 6, 4)) == [
        "Bill for the next 2 h, the mean of 12 possible loads around a level of 2.5 consumers, made of made up; each "
        "count stays for 1 min at least, then come the best changes:",
        "4 consumers (chosen): 8.50 consumer-hours (8.00 for consumers, 0.50 for changes, 0.00 for 0.0 late minutes); "
        "pauses and duplicates of this change are not known.",
        "6 consumers (as now): 12.00 consumer-hours (12.00 for consumers, 0.00 for 0.0 late minutes).",
        "The change costs 0.50 consumer-hours, 2 consumers less pay that back in 15 min.",
    ]


def test_what_is_saved_is_the_difference_of_the_sums_that_are_shown() -> None:
    costs = {"change_hours": 0.0, "later_change_hours": 0.0, "late_minutes": 0.0, "late_hours": 0.0, "bound_hours": 0.0}
    sums = {2: 8.504, 3: 8.226}
    lines = tuple(
        BillLine(count=count, consumer_hours=total, total_hours=total, **costs) for count, total in sums.items()
    )
    bill = DecisionBill(
        horizon_seconds=7200.0, futures=12, source="made up", level=2.5, lines=lines, first_change_seconds=60.0
    )
    assert describe_payback(bill, 2, 3) == "Against staying it saves 0.27 consumer-hours."
    assert describe_difference(bill, lines[0], lines[1]).endswith(", 0.27 more than 3 consumers")


def test_pods_start_before_a_known_event_and_no_sooner_than_they_must() -> None:
    taken = snapshot(clients=clients(2), recent=past([160.0] * 360))
    slow = replace(WAIT, decided_every_s=60.0, pod_start_s=180.0)

    def before(minutes: float, length: float = 60.0) -> Decision:
        begins = AT + timedelta(minutes=minutes)
        event = Event("sale", DateSpan(begins, begins + timedelta(minutes=length)), 3.0)
        return weighed(taken, wait=slow, events=(event,), answered_after_s=240.0)

    assert [before(minutes).target for minutes in (100, 30, 9)] == [2, 2, 2]
    soon = before(4)
    # Three times the load is 4.8 consumers' work; the wait that the objective allows bridges the way to all of them.
    assert soon.target > 2
    assert line_of(soon, 2).late_minutes > line_of(soon, soon.target).late_minutes
    assert soon.reason.endswith("; event sale begins in 4 min: ×3.")
    assert "; known beforehand: event sale begins in 4 min: ×3" in billed(soon).source
    assert [billed(before(minutes)).has_events for minutes in (4, 300)] == [True, False]
    # It has begun, and the load is what it brings: nothing more comes of it.
    sold = snapshot(clients=clients(2), recent=past([53.3] * 300 + [160.0] * 60))
    event = Event("sale", DateSpan(AT - timedelta(minutes=60), AT + timedelta(minutes=90)), 3.0)
    assert weighed(sold, events=(event,)).target == 2


def test_the_smallest_count_minds_an_event_before_the_next_decision_can() -> None:
    taken = snapshot()

    def before(minutes: float) -> Decision:
        event = Event("batch", DateSpan(AT + timedelta(minutes=minutes), AT + timedelta(minutes=90)), floor=400.0)
        return decide(taken, outcomes_of(taken), replace(OBJECTIVE, events=(event,)), AT)

    assert before(12).target == decide(taken, outcomes_of(taken), OBJECTIVE, AT).target
    assert before(10).target > before(12).target
    assert "at the recent upper rate times 2.08, as events raise it; event batch" in before(10).reason
    assert "; event batch begins in 10 min: 400 messages/s at least" in before(10).reason


def test_a_price_in_money_weighs_nothing_and_is_beside_every_sum() -> None:
    taken = snapshot(clients=clients(8), recent=past([160.0] * 360))
    plain = weighed(taken)
    priced = weighed(taken, wait=replace(WAIT, prices=Prices(consumer_hour=0.5)))
    assert billed(priced) == replace(billed(plain), consumer_hour=0.5)
    total, change = line_of(priced, 2).total_hours, line_of(priced, 2).change_hours
    assert f"{total:.2f} consumer-hours worth {total / 2:.2f} (" in priced.reason
    assert f"the change costs {change:.2f} consumer-hours worth {change / 2:.2f}, 6 consumers less" in priced.reason
    assert "worth" not in plain.reason
    dear = next(rejection for rejection in priced.rejected if rejection.count == 8)
    assert "consumer-hours worth " in dear.reasons[0]
    # A pod of three consumers costs three times as much.
    pods = replace(billed(priced), members_per_pod=3)
    assert f"{total:.2f} pod-hours worth {total * 1.5:.2f} (" in "".join(describe_bill(pods, 8, 2))
    with pytest.raises(ValueError, match="0 or more for an hour of one consumer"):
        Prices(consumer_hour=-1.0)
