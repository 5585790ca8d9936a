"""``spec.behavior``: a decision goes no farther than the policy's step limits, and says what it would do without."""

from dataclasses import replace

import pytest

from planner.decision.decision import HoldCause
from planner.decision.objective import StepLimit
from planner.model.snapshot import SeriesPoint
from tests.builders import OBJECTIVE, clients, snapshot
from tests.unit.decision.test_decide import decision_on
from tests.unit.decision.test_last_change import point
from tests.unit.decision.test_least_cost import past, weighed


def test_growth_goes_as_far_as_the_limit_and_names_the_count_beyond_it() -> None:
    # 4 consumers are right at 65 messages/s each, 6 at 50: shares of 4 and 3 queues are 48 and 36 messages/s.
    taken = snapshot(capacity=50.0)
    assert decision_on(taken).target == 6
    decision = decision_on(taken, replace(OBJECTIVE, step_up=StepLimit(1), max_utilisation=0.96))
    assert decision.target == 4
    limited = decision_on(taken, replace(OBJECTIVE, step_up=StepLimit(2)))
    assert limited.target == 4
    assert limited.reason.endswith(
        "; 6 consumers would be right, but spec.behavior.scaleUp allows 2 more in one change."
    )
    assert (
        next(one for one in limited.rejected if one.count == 8).reasons
        == next(one for one in limited.rejected if one.count == 6).reasons
    )


def test_hold_where_no_count_within_the_limit_is_better() -> None:
    # From 8 consumers 4 and 3 would do, 7 relieves nobody.
    decision = decision_on(snapshot(clients=clients(8)), replace(OBJECTIVE, step_down=StepLimit(1)))
    assert decision.hold_cause is HoldCause.STEP_LIMIT
    assert decision.reason == (
        "Hold at 8 consumers: 3 consumers would be right, but spec.behavior.scaleDown allows 1 fewer in one change, "
        "and no count on the way there is better than now."
    )
    assert "spec.behavior.scaleDown" in next(one for one in decision.rejected if one.count == 3).reasons[0]


@pytest.mark.parametrize(("came", "target"), [(0, 4), (1, 3)])
def test_what_came_within_the_period_is_used_up(came: int, target: int) -> None:
    points: tuple[SeriesPoint, ...] = (point(540.0, consumers=3 - came), point(400.0), point(0.0))
    taken = replace(snapshot(capacity=65.0), recent=points)
    decision = decision_on(taken, replace(OBJECTIVE, step_up=StepLimit(1, period_s=600.0)))
    assert decision.target == target
    # What came before the period is not counted.
    assert decision_on(taken, replace(OBJECTIVE, step_up=StepLimit(1, period_s=300.0))).target == 4


def test_a_limit_in_the_other_direction_changes_nothing() -> None:
    assert decision_on(snapshot(capacity=65.0), replace(OBJECTIVE, step_down=StepLimit(1))).target == 4


def test_the_count_that_costs_least_within_the_limit_is_taken() -> None:
    taken = snapshot(clients=clients(16), recent=past([160.0] * 360))
    assert weighed(taken).target == 2
    limited = weighed(taken, step_down=StepLimit(8))
    assert limited.target == 8
    assert "2 consumers would be right, but spec.behavior.scaleDown allows 8 fewer in one change" in limited.reason


def test_the_bounds_of_the_policy_are_reached_at_once() -> None:
    fewer, more = StepLimit(1), StepLimit(1)
    limits = replace(OBJECTIVE, step_up=more, step_down=fewer)
    assert decision_on(snapshot(), replace(limits, lowest=6)).target == 6
    assert decision_on(snapshot(clients=clients(16)), replace(limits, highest=8)).target == 8
