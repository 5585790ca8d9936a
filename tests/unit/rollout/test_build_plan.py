"""Steps for a change of the count: victims by name, batches by their cost, refusals that become a hold."""

from dataclasses import replace
from typing import Any

import pytest

from planner.decision.prices import DEFAULT_PRICES, Prices
from planner.documents.policy import parse_policy
from planner.model.snapshot import GroupSnapshot, MemberPod
from planner.pipeline import candidates, decide, plan, simulate_candidates
from planner.rollout import batches
from planner.rollout.batches import Batch, BatchPlan, BatchPlans, Span, find_batch_plans, in_order
from planner.rollout.build import build_steps, explain_batches
from planner.rollout.plan import Cost, RolloutPlan
from planner.rollout.plan_forecast import costs_together
from planner.rollout.settings import RolloutSettings
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    MarkVictims,
    MovedQueues,
    StartConsumers,
    StopConsumers,
)
from planner.simulation.candidates import simulate_candidate
from planner.simulation.outcome import Messages, Seconds
from planner.simulation.transition import with_transition
from tests.builders import AT, clients, decided, podded, snapshot
from tests.unit.rollout.test_victims import in_pods
from tests.unit.workload.builders import deployment, pod

SETTINGS = RolloutSettings("billing", "billing-consumer")
BATCH = Batch(3, simulate_candidate(snapshot(), 4, "AVG"))


def batch_plans_to(
    taken: GroupSnapshot, target: int, prices: Prices = DEFAULT_PRICES, *, has_pods: bool = False
) -> BatchPlans:
    """Return the ways to so many consumers, all at once being forecast with some trials."""
    chosen = with_transition(simulate_candidate(taken, target, taken.strategy or ""), taken, "d", 40)
    return find_batch_plans(taken, "d", chosen, prices, has_pods=has_pods)


def plan_of(taken: GroupSnapshot, **settings: Any) -> RolloutPlan:
    made = decided(taken, **settings).plan
    assert made is not None
    return made


def in_whole_pods(taken: GroupSnapshot) -> GroupSnapshot:
    """Return the snapshot with one member a pod and a Deployment that asks for just these."""
    made = in_pods(taken)
    assert made.deployment
    return replace(made, deployment=replace(made.deployment, replicas=len(made.clients)))


def test_victims_are_marked_before_they_are_stopped_and_the_forecast_is_exact() -> None:
    taken = in_whole_pods(snapshot(clients=clients(8), capacity=100.0))
    made = plan_of(taken)
    mark, stop, settled, check = made.steps
    assert isinstance(mark, MarkVictims)
    assert isinstance(stop, StopConsumers)
    assert isinstance(settled, AwaitSettled)
    assert isinstance(check, CheckForecast)
    pods = {link.client: link.pod for link in taken.pods}
    assert sorted(mark.pods) == sorted(pods[client] for client in stop.preferred_victims)
    assert stop.forecast == made.forecast.moved_queues
    assert stop.forecast.fewest == stop.forecast.most
    staying = tuple(owned.consumer for owned in made.forecast.owners_after)
    assert set(staying) == set(taken.clients) - set(stop.preferred_victims)
    exact = simulate_candidate(taken, 3, "AVG", staying)
    assert (exact.moved_fewest, made.forecast.utilisation) == (stop.forecast.fewest, exact.utilisation)
    assert not any("consumers stop" in unknown for unknown in made.forecast.unknowns)
    assert made.forecast.cost is not None


def test_a_plan_in_batches_names_newcomers_as_all_at_once_does(monkeypatch: pytest.MonkeyPatch) -> None:
    # Batches win where each rebalance is told to be a bargain.
    monkeypatch.setattr(batches, "CLEARLY", -0.9)
    taken = snapshot(capacity=40.0)
    made = plan_of(taken, trials=20)
    starts = [step for step in made.steps if isinstance(step, StartConsumers)]
    assert len(starts) > 1
    newcomers = [owned.consumer for owned in made.forecast.owners_after[len(taken.clients) :]]
    assert newcomers == [f"new consumer {number}" for number in range(1, len(newcomers) + 1)]
    assert made.forecast.moved_queues.most == sum(step.forecast.most or 0 for step in starts)


def test_without_kubernetes_the_plan_names_a_range_and_marks_nobody() -> None:
    made = plan_of(snapshot(clients=clients(8), capacity=100.0))
    assert not any(isinstance(step, MarkVictims) for step in made.steps)
    assert "which 5 consumers stop: shown for those that move the fewest queues" in made.forecast.unknowns


def test_a_plan_says_why_not_in_batches() -> None:
    made = plan_of(snapshot(clients=clients(8), capacity=100.0), trials=20)
    assert "All at once costs least: " in made.ways[0]
    assert "; in 2 batches " in made.ways[0]
    # One consumer more or less can only go at once, so there is nothing to tell.
    assert plan_of(snapshot(capacity=65.0)).ways == ()


def test_all_at_once_costs_least_of_all_ways_and_each_way_ends_at_the_target() -> None:
    for target in (3, 12):
        ways = batch_plans_to(snapshot(clients=clients(6)), target).compared
        assert [len(way.batches) for way in ways] == [1, 2, 3]
        assert {way.batches[-1].count for way in ways} == {target}
        uppers = [way.cost.most for way in ways if way.cost]
        assert uppers == sorted(uppers)
        for way in ways:
            steps = [batch.count for batch in way.batches]
            assert [batch.before for batch in way.batches] == [6, *steps[:-1]]


def test_a_way_costs_its_moved_queues_what_comes_twice_and_the_time_until_all_is_settled() -> None:
    (at_once,) = (
        one
        for one in batch_plans_to(snapshot(clients=clients(6)), 3, Prices(7.0, 3.0)).compared
        if len(one.batches) == 1
    )
    found = at_once.batches[0].outcome.transition
    assert found
    assert found.settle_s
    assert found.duplicates.p05 > 0
    assert at_once.moved.fewest
    assert at_once.moved.most
    assert at_once.cost
    # Three consumers are not gone until then.
    least = 7.0 * at_once.moved.fewest + 3.0 * found.duplicates.p05 + 3 * found.settle_s.p05
    most = 7.0 * at_once.moved.most + 3.0 * found.duplicates.p95 + 3 * found.settle_s.p95
    assert (at_once.cost.least, at_once.cost.most) == (pytest.approx(least), pytest.approx(most))


def test_batches_win_only_where_they_are_clearly_cheaper() -> None:
    def ways(*most: float) -> list[int]:
        made = [BatchPlan((BATCH,) * number, Span(0.0, cost)) for number, cost in enumerate(most, start=1)]
        return [len(way.batches) for way in in_order(made)]

    assert ways(100.0, 95.0, 90.0) == [1, 2, 3]
    assert ways(100.0, 90.0, 90.0) == [2, 1, 3]
    assert ways(100.0, 95.0, 80.0) == [3, 1, 2]


def test_each_batch_starts_from_the_group_that_the_one_before_left() -> None:
    taken = in_whole_pods(snapshot(clients=clients(6)))
    ways = batch_plans_to(taken, 3, has_pods=True).compared
    three = next(way for way in ways if len(way.batches) == 3)
    gone: list[str] = []
    for batch in three.batches:
        assert batch.choice
        gone += [member for victim in batch.choice.victims for member in victim.members]
        assert set(batch.choice.staying) == set(taken.clients) - set(gone)
    assert len(set(gone)) == 3


def test_where_no_dynamics_can_be_run_moved_queues_decide_and_the_plan_says_so() -> None:
    # No member tells how it is set up: no forecast of pauses and duplicates.
    taken = replace(snapshot(clients=clients(8), capacity=100.0), setups=())
    ways = batch_plans_to(taken, 3, Prices(moved_queue_s=2.0))
    best = ways.best
    assert not any(way.is_timed for way in ways.compared)
    assert best.moved.fewest is not None
    assert best.moved.most is not None
    assert best.cost == Span(2.0 * best.moved.fewest, 2.0 * best.moved.most)
    assert "moves fewest, and pauses and duplicates are not known" in " ".join(explain_batches(ways, "rocketmq"))


def way(target: int, batches: int) -> BatchPlan:
    ways = batch_plans_to(snapshot(clients=clients(6)), target).compared
    return next(one for one in ways if len(one.batches) == batches)


def test_between_batches_the_group_settles() -> None:
    up = build_steps(snapshot(clients=clients(6)), way(12, 2), SETTINGS)
    assert [type(step) for step in up] == [
        *([StartConsumers, AwaitReady, AwaitSettled] * 2),
        CheckForecast,
    ]
    starts = [(step.from_replicas, step.to_replicas) for step in up if isinstance(step, StartConsumers)]
    assert starts == [(6, 9), (9, 12)]
    down = build_steps(snapshot(clients=clients(6)), way(3, 3), SETTINGS)
    assert [type(step) for step in down] == [*([StopConsumers, AwaitSettled] * 3), CheckForecast]
    victims = [name for step in down if isinstance(step, StopConsumers) for name in step.preferred_victims]
    assert len(set(victims)) == len(victims) == 3


def test_rebalances_one_after_the_other_cost_their_sum_and_the_longest_pause() -> None:
    def cost(pause: Seconds | None) -> Cost:
        settle = Seconds(1.0, 1.1, 1.2)
        return Cost(
            pause_seconds=pause,
            stall_seconds=None,
            duplicates=Messages(1, 2, 3),
            burst_messages=Messages(0, 0, 5),
            settle_seconds=settle,
            drained_seconds=settle,
        )

    both = costs_together([cost(Seconds(0.1, 0.5, 0.6)), cost(Seconds(0.2, 0.3, 0.9))])
    assert both.pause_seconds == Seconds(0.2, 0.5, 0.9)
    assert both.stall_seconds is None
    assert (both.duplicates, both.burst_messages) == (Messages(2, 4, 6), Messages(0, 0, 10))
    assert (both.settle_seconds, both.drained_seconds) == (Seconds(2.0, 2.2, 2.4), Seconds(1.0, 1.1, 1.2))
    assert costs_together([cost(None), cost(Seconds(0.1, 0.2, 0.3))]).pause_seconds is None


def test_prices_below_nothing_make_no_sense() -> None:
    with pytest.raises(ValueError, match="prices of 0 or more"):
        Prices(duplicate_s=-1.0)


POLICY = """
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {name: billing}
spec:
  source: {system: rocketmq, cluster: DefaultCluster, group: billing, nameServers: ["127.0.0.1:9876"]}
  scaleTargetRef: {name: app}
  minReplicas: 1
  maxReplicas: 16
"""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pods": ()}, "no pod of Deployment shop/app is known to run member"),
        ({"deployment": deployment(pods=None, replicas=8)}, "were not read"),
    ],
)
def test_a_change_that_no_plan_can_carry_out_is_a_hold_that_says_why(changes: dict[str, Any], words: str) -> None:
    taken = replace(in_whole_pods(snapshot(clients=clients(8), capacity=100.0)), **changes)
    policy = parse_policy(POLICY, "policy.yaml")
    outcomes = simulate_candidates(taken, candidates(taken, policy))
    record = decide(taken, outcomes, policy)
    assert record.decision.is_hold
    assert record.decision.hold_cause == "PlanRefused"
    assert words in record.decision.reason
    assert plan(taken, record, policy, outcomes) is None


def test_several_members_in_one_pod_are_no_count_of_pods() -> None:
    taken = snapshot(clients=clients(8), capacity=100.0)
    links = tuple(MemberPod(client, f"p{number // 2}") for number, client in enumerate(taken.clients))
    pods = tuple(pod(f"p{number}") for number in range(4))
    shared = replace(taken, pods=links, deployment=deployment(pods=pods, replicas=8))
    policy = parse_policy(POLICY, "policy.yaml")
    record = decide(shared, simulate_candidates(shared, candidates(shared, policy)), policy)
    assert "pod p0 runs 2 members, the snapshot counts 1 a pod: take a new snapshot" in record.decision.reason


def test_a_pod_stops_with_all_of_its_members_and_the_forecast_is_of_them_together() -> None:
    taken = podded(3, 4, 24, capacity=100.0)
    pods = tuple(pod(name) for name in dict.fromkeys(link.pod for link in taken.pods))
    served = replace(taken, deployment=deployment(at=AT, pods=pods, replicas=3))
    policy = parse_policy(POLICY, "policy.yaml")
    record = decide(served, outcomes := simulate_candidates(served, candidates(served, policy)), policy)
    made = plan(served, record, policy, outcomes)
    assert made is not None, record.decision.reason
    assert "from 3 to 1 pod (12 to 4 consumers)" in record.decision.reason
    mark, stop = made.steps[:2]
    assert isinstance(mark, MarkVictims)
    assert isinstance(stop, StopConsumers)
    assert [len(victim.members) for victim in mark.victims] == [4, 4]
    assert set(stop.preferred_victims) == {member for victim in mark.victims for member in victim.members}
    assert (stop.from_replicas, stop.to_replicas) == (3, 1)
    staying = tuple(owned.consumer for owned in made.forecast.owners_after)
    exact = simulate_candidate(served, 1, "AVG", staying)
    assert stop.forecast == MovedQueues(exact.moved_fewest, exact.moved_most)
    fewer = replace(served, clients=served.clients[:-1])
    assert decide(fewer, (), policy).decision.hold_cause == "Unsettled"
