from dataclasses import replace

import pytest

from planner.decision.decision import Rejection
from planner.documents.plan import PLAN
from planner.model.queues import MessageQueue
from planner.rollout.explain import describe_cost, explain_hold, explain_plan, tell_moves, why_not_others
from planner.rollout.plan import Cost, RolloutPlan
from planner.rollout.queue_ranges import compact_queues
from planner.rollout.steps import AwaitReady, AwaitSettled, CheckForecast, MovedQueues, StartConsumers, StopConsumers
from planner.simulation.outcome import LongTail, Messages, Seconds
from tests.builders import AT, World, clients, decided, snapshot


def plan_of(world: World) -> RolloutPlan:
    assert world.plan is not None
    return world.plan


def test_scaling_up_starts_then_waits_for_pods_then_for_the_group() -> None:
    plan = plan_of(decided(snapshot(capacity=65.0)))
    assert [type(step) for step in plan.steps] == [StartConsumers, AwaitReady, AwaitSettled, CheckForecast]
    start, ready, settled, _ = plan.steps
    assert isinstance(start, StartConsumers)
    assert isinstance(ready, AwaitReady)
    assert isinstance(settled, AwaitSettled)
    assert (start.from_replicas, start.to_replicas, ready.replicas, settled.members) == (3, 4, 4, 4)
    # AVG, 16 queues, 3 to 4 clients: the newcomer last moves 9 - 2, in front or between at most 9.
    assert start.forecast == plan.forecast.moved_queues
    assert 0 < start.forecast.fewest <= start.forecast.most


def test_scaling_down_stops_the_ones_that_move_fewest_queues_then_waits() -> None:
    world = decided(snapshot(clients=clients(8), capacity=100.0))
    plan = plan_of(world)
    assert [type(step) for step in plan.steps] == [StopConsumers, AwaitSettled, CheckForecast]
    stop, settled, _ = plan.steps
    assert isinstance(stop, StopConsumers)
    assert isinstance(settled, AwaitSettled)
    assert len(stop.preferred_victims) == 5
    staying = {owned.consumer for owned in plan.forecast.owners_after}
    assert staying == set(world.snapshot.clients) - set(stop.preferred_victims)


def test_a_plan_names_what_it_rests_on() -> None:
    world = decided(snapshot(capacity=65.0))
    plan = plan_of(world)
    assert plan.snapshot.digest == world.record.snapshot.digest
    assert plan.preconditions.members == world.snapshot.clients
    assert (plan.made_at, plan.preconditions.queues) == (AT, 16)
    assert plan.valid_until > plan.made_at


def test_every_queue_has_an_owner_before_and_after() -> None:
    plan = plan_of(decided(snapshot(capacity=65.0)))
    assert [owned.queues for owned in plan.forecast.owners_before] == [
        ("orders/broker-a/0-5",),
        ("orders/broker-a/6-7", "orders/broker-b/0-2"),
        ("orders/broker-b/3-7",),
    ]
    assert len(plan.forecast.owners_after) == 4


def test_queue_ids_are_written_as_ranges() -> None:
    ids = (0, 1, 2, 5, 7, 8)
    found = compact_queues([MessageQueue("t", "b", number) for number in ids] + [MessageQueue("t", "a", 10)])
    assert found == ("t/a/10", "t/b/0-2,5,7-8")


def test_a_plan_is_never_empty_and_never_over_before_it_begins() -> None:
    plan = plan_of(decided(snapshot(capacity=65.0)))
    with pytest.raises(ValueError, match="no steps"):
        replace(plan, steps=())
    with pytest.raises(ValueError, match="ends before it begins"):
        replace(plan, valid_until=plan.made_at)


def test_a_plan_is_told_with_every_rejected_count_and_every_step() -> None:
    plan = plan_of(decided(snapshot(capacity=65.0)))
    lines = list(explain_plan(plan))
    assert lines[0] == plan.reason
    for rejection in plan.rejected:
        assert any(line.startswith("Not ") and "; ".join(rejection.reasons) in line for line in lines)
    assert sum(line.startswith("Step ") for line in lines) == len(plan.steps)
    assert any("start 1 pod, 3 to 4 replicas" in line for line in lines)


COST = Cost(
    pause_seconds=Seconds(0.3, 0.4, 0.6),
    stall_seconds=Seconds(0.0, 0.0, 0.0),
    duplicates=Messages(12, 18, 25),
    burst_messages=Messages(1, 1, 1),
    settle_seconds=Seconds(1.9, 2.0, 3.1),
    drained_seconds=None,
)


def test_what_the_change_costs_is_told_in_one_sentence() -> None:
    plan = plan_of(decided(snapshot(capacity=65.0)))
    told = replace(plan.forecast, moved_queues=MovedQueues(5, 5), cost=COST)
    assert describe_cost(told, 16) == (
        "5 of 16 queues move; the longest pause is usually 0.4 s, at worst 0.6 s (1 in 20); messages that come twice: "
        "usually 18, at worst 25 (1 in 20); a burst of 1 message as the moved queues start again; "
        "settled after usually 2 s, at worst 3.1 s (1 in 20)"
    )
    stalled = replace(COST, pause_seconds=None, stall_seconds=Seconds(0.0, 0.5, 1.0))
    assert describe_cost(replace(told, cost=stalled), 16) == (
        "5 of 16 queues move; queues that stay stall usually 0.5 s, at worst 1 s (1 in 20); messages that come twice: "
        "usually 18, at worst 25 (1 in 20); a burst of 1 message as the moved queues start again; "
        "settled after usually 2 s, at worst 3.1 s (1 in 20)"
    )
    assert describe_cost(replace(told, cost=None), 16) == "5 queues change owner"


def test_a_long_tail_is_told_with_its_share_and_plans_without_one_stay_as_they_were() -> None:
    plan = plan_of(decided(snapshot(capacity=65.0)))
    late = replace(COST, settle_seconds=Seconds(1.9, 2.0, 3.1, LongTail(0.03, 1.9, 3.0, 29.0, 31.0)))
    made = replace(plan, forecast=replace(plan.forecast, cost=late))
    assert "; settled after usually 1.9–3 s, in 3% of cases 29–31 s" in describe_cost(made.forecast, 16)
    assert PLAN.parse(PLAN.document(made, "up"), "p.yaml") == made
    plain = PLAN.spec(replace(plan, forecast=replace(plan.forecast, cost=COST)))
    assert plain["forecast"]["cost"]["settleSeconds"] == {"p05": 1.9, "p50": 2, "p95": 3.1}


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (True, "the policy states that the consumers are idempotent, so these do no harm"),
        (False, "the policy states that the consumers are not idempotent, so a person has to accept that"),
        (None, "whether the consumers are idempotent is not known, so state spec.idempotent in the policy"),
    ],
)
def test_a_plan_after_which_messages_come_twice_says_once_what_is_stated_of_consumers(
    stated: bool | None, words: str
) -> None:
    made = plan_of(decided(snapshot(capacity=65.0)))
    made = replace(made, idempotent=stated, forecast=replace(made.forecast, cost=COST))
    lines = list(explain_plan(made))
    assert lines.count(f"Up to 25 messages come twice (1 in 20): {words}.") == 1
    assert sum("idempotent" in line for line in lines) == 1
    never = replace(COST, duplicates=Messages(0, 0, 0))
    assert not any(
        "idempotent" in line for line in explain_plan(replace(made, forecast=replace(made.forecast, cost=never)))
    )
    assert PLAN.spec(made).get("idempotent", None) is stated


def test_a_plan_carries_what_its_outcome_forecast() -> None:
    world = decided(snapshot(capacity=65.0), trials=20)
    plan = plan_of(world)
    chosen = next(o for o in world.outcomes if o.count == 4 and o.strategy == "AVG")
    assert chosen.transition is not None
    assert plan.forecast.cost is not None
    assert plan.forecast.cost.pause_seconds == chosen.transition.pause_s
    assert plan.forecast.cost.duplicates == chosen.transition.duplicates
    assert f"Expected: {describe_cost(plan.forecast, 16)}." in explain_plan(plan)


def test_a_hold_is_told_as_an_answer() -> None:
    world = decided(snapshot(capacity=100.0))
    assert world.plan is None
    lines = list(explain_hold(world.record))
    assert lines[0] == world.record.decision.reason
    assert "nothing is to be changed" in lines[1]


def test_counts_that_were_rejected_alike_are_folded() -> None:
    rejected = (
        Rejection(2, ("used at 165%, above 80%",)),
        Rejection(3, ("used at 128%, above 80%",)),
        *(Rejection(count, ("the policy allows 2 to 12 consumers",)) for count in range(13, 33)),
    )
    whole = list(why_not_others(rejected, 4, is_short=False))
    assert whole[-1] == "Not 13 to 32: the policy allows 2 to 12 consumers."
    assert len(whole) == 3
    assert list(why_not_others(rejected, 4, is_short=True)) == [
        "Not 3: used at 128%, above 80%. Not 2: for the same reasons, with other figures.",
        "Not 13 to 32: the policy allows 2 to 12 consumers.",
    ]


def test_kafka_moves_partitions() -> None:
    assert tell_moves(MovedQueues(1, 1), "kafka") == "1 partition changes owner"
    assert tell_moves(MovedQueues(2, 4), "kafka") == "2 to 4 partitions change owner"
    assert tell_moves(MovedQueues(), "rocketmq") == "how many queues move is not known beforehand"
