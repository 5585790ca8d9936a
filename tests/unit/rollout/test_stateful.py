"""A StatefulSet as a target: who stops, who comes, and what no plan may do to it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.documents.plan import PLAN
from planner.errors import BadInputError, RefusedError
from planner.model.deployments import Ordinals
from planner.model.membership import KafkaMember
from planner.model.pods import Workload
from planner.model.queues import TopicPartition
from planner.model.snapshot import GroupSnapshot, MemberPod
from planner.rollout.autoscalers import REFUSE
from planner.rollout.bounds import outside_policy
from planner.rollout.explain import explain_plan
from planner.rollout.feasibility import why_no_plan
from planner.rollout.migrations.migration import read_context
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitReady, MarkVictims, StartConsumers, StopConsumers
from planner.rollout.victims import choose_victims
from planner.simulation.candidates import simulate_candidate
from planner.simulation.newcomers import known_newcomers
from planner.simulation.transition import transition_requests, with_transition
from tests.builders import AT, kafka_snapshot, queues, snapshot
from tests.decidable import policy_of
from tests.unit.workload.builders import deployment, pod

APP = Workload("StatefulSet", "shop", "app")


def stateful(count: int, strategy: str = "AVG", by_address: bool = False, **facts: object) -> GroupSnapshot:
    """Return a settled group whose pods ``app-0`` and on run one member each, named after its pod."""
    names = [f"app-{number}" for number in range(count)]
    hosts = [f"10.0.0.{90 - number}" if by_address else name for number, name in enumerate(names)]
    homes = {f"{host}@{name}": name for host, name in zip(hosts, names, strict=True)}
    taken = snapshot(queues(each=6), tuple(homes), strategy=strategy, capacity=40.0)
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), count)
    pods = tuple(pod(name, workload=APP, ready_at=AT, created_at=AT - timedelta(days=1)) for name in names)
    made = deployment(at=AT, pods=pods, **{"ordinals": Ordinals(), **counts, **facts})
    return replace(taken, pods=tuple(MemberPod(client, homes[client]) for client in taken.clients), deployment=made)


def plan_to(taken: GroupSnapshot, count: int) -> RolloutPlan:
    """Return the plan to exactly that count."""
    policy = policy_of(taken)
    spec = policy.spec.model_copy(update={"min_replicas": count, "max_replicas": count})
    policy = policy.model_copy(update={"spec": spec})
    outcomes = tuple(simulate_candidate(taken, each, taken.strategy or "") for each in (len(taken.clients), count))
    made = pipeline.plan(taken, pipeline.decide(taken, outcomes, policy), policy, outcomes)
    assert made is not None
    return made


@pytest.mark.parametrize("by_address", [False, True])
def test_the_highest_numbers_stop_and_nothing_is_marked(by_address: bool) -> None:
    """``app-10`` goes before ``app-9``: numbers count, not names; also where another choice would move fewer queues."""
    taken = stateful(12, by_address=by_address)
    made = plan_to(taken, 9)
    (stop,) = [step for step in made.steps if isinstance(step, StopConsumers)]
    assert [victim.pod for victim in stop.stopping or ()] == ["app-11", "app-10", "app-9"]
    assert not [step for step in made.steps if isinstance(step, MarkVictims)]
    assert made.target == "StatefulSet app"
    assert "cluster DefaultCluster, StatefulSet app." in "".join(explain_plan(made))
    assert made.forecast.moved_queues.fewest == made.forecast.moved_queues.most
    assert stop.time_limit_seconds == 3 * 300, "one pod stops after the other"
    assert "stop 3 pods, 12 to 9 replicas (app-11, app-10, app-9)" in stop.action


def test_parallel_pods_have_the_time_of_one() -> None:
    made = plan_to(stateful(2, ordinals=Ordinals(is_ordered=False)), 5)
    limits = [step.time_limit_seconds for step in made.steps if isinstance(step, StartConsumers | AwaitReady)]
    assert limits == [300, 300]


def test_a_first_number_of_its_own_is_kept() -> None:
    assert deployment(ordinals=Ordinals(first=5)).pod_names(2) == ("app-5", "app-6")


def test_the_ids_of_new_pods_are_known_where_present_ones_are_their_pods_names() -> None:
    known = known_newcomers(stateful(3), 5)
    assert known is not None
    assert [new.client for new in known] == ["app-3@app-3", "app-4@app-4"]
    assert known_newcomers(stateful(3, by_address=True), 5) is None, "an address is drawn by the cluster"
    assert known_newcomers(replace(stateful(3), deployment=deployment(pods=())), 5) is None, "a Deployment draws names"


def test_a_strategy_that_goes_by_ids_decides_where_they_are_known() -> None:
    """Exact owners, so that the moves are one number; unknown ids are drawn, and the moves are a range."""
    known, drawn = stateful(3, "CONSISTENT_HASH"), stateful(3, "CONSISTENT_HASH", by_address=True)
    outcome = simulate_candidate(known, 5, "CONSISTENT_HASH")
    assert outcome.moved_fewest == outcome.moved_most is not None
    assert {owned.owner for owned in outcome.owners} <= {f"app-{number}@app-{number}" for number in range(5)}
    assert outcome.drawn is None
    assert simulate_candidate(drawn, 5, "CONSISTENT_HASH").drawn is not None


def test_a_static_member_of_kafka_joins_where_its_name_sorts() -> None:
    """``app-10`` sorts between ``app-1`` and ``app-2``: of the range that a drawn name has, one number is left."""
    names = [f"app-{number}" for number in range(10)]
    members = tuple(KafkaMember(f"{name}-x", name, "10.0.0.1", name, topics=("t",)) for name in names)
    base = kafka_snapshot()
    ring = sorted(f"{name}-x" for name in names)
    states = tuple(
        replace(base.queues[0], queue=TopicPartition("t", number), owner=ring[number % 10]) for number in range(20)
    )
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), 10)
    taken = replace(
        base,
        strategy="roundrobin",
        clients=tuple(ring),
        members=members,
        queues=states,
        pods=tuple(MemberPod(f"{name}-x", name) for name in names),
        deployment=deployment(pods=tuple(pod(name, workload=APP) for name in names), ordinals=Ordinals(), **counts),
    )
    exact = simulate_candidate(taken, 11, "roundrobin")
    drawn = simulate_candidate(replace(taken, deployment=None), 11, "roundrobin")
    assert exact.moved_fewest == exact.moved_most == moved_if_third(20, 10)
    assert drawn.moved_fewest is not None
    assert drawn.moved_most is not None
    assert drawn.moved_fewest < drawn.moved_most


def moved_if_third(partitions: int, members: int) -> int:
    """Return how many partitions move when a newcomer takes the third place of a round robin."""
    places = [*range(2), *range(3, members + 1)]
    return sum(number % (members + 1) != places[number % members] for number in range(partitions))


def test_a_missing_number_and_a_half_done_update_are_refused() -> None:
    """Red when victims are taken from whatever pods there are, or when new pods may be of another template."""
    taken = stateful(3)
    assert taken.deployment is not None
    holes = replace(taken.deployment, pods=taken.deployment.pods[1:])  # type: ignore[index]
    with pytest.raises(RefusedError, match="app-0 is missing or too many"):
        choose_victims(replace(taken, deployment=holes, pods=taken.pods[1:], clients=taken.clients[1:]), 1)
    partial = stateful(3, updated=1, ordinals=Ordinals(partition=2))
    refusal = why_no_plan(partial, 4, REFUSE)
    assert refusal is not None
    assert "1 of 3 pods of StatefulSet shop/app have its newest template, held at number 2" in str(refusal)


def test_a_plan_that_marks_pods_of_a_stateful_set_is_no_plan() -> None:
    made = plan_to(stateful(3), 2)
    (stop,) = [step for step in made.steps if isinstance(step, StopConsumers)]
    assert stop.stopping is not None
    with pytest.raises(ValueError, match="to mark no pods"):
        replace(made, steps=(MarkVictims(stop.stopping, 60), *made.steps))
    with pytest.raises(ValueError, match="to name 2 pods that stop, not 1"):
        replace(stop, from_replicas=4)
    assert PLAN.parse(PLAN.document(made, "x"), "x") == made


def test_a_plan_of_another_kind_than_the_policys_is_outside() -> None:
    made = plan_to(stateful(3), 2)
    assert outside_policy(made, replace(policy_of(stateful(3)).bounds, policy="billing")) == ()
    told = outside_policy(made, replace(policy_of(stateful(3)).bounds, policy="billing", kind="Deployment"))
    assert "the plan changes StatefulSet app, policy billing names Deployment app" in told


def test_a_snapshot_of_a_deployment_keeps_its_digest() -> None:
    """Plans name the digest of the snapshot that they rest on."""
    with_ordinals, without = stateful(2), stateful(2, ordinals=None)
    assert "ordinals" not in SNAPSHOT.body(without)["deployment"]
    assert SNAPSHOT.parse(SNAPSHOT.dump(with_ordinals), "x") == with_ordinals


def test_the_forecast_has_the_ids_that_will_come() -> None:
    """And says of pods that wait for each other what it leaves out: one at a time it leaves out nothing."""
    taken = stateful(3)
    several, one = (simulate_candidate(taken, count, "AVG") for count in (5, 4))
    (request, *_) = transition_requests(several, taken, "digest", 2)
    assert [client.id for client in request.change.clients] == ["app-3@app-3", "app-4@app-4"]
    waits = "how long pods wait for each other"
    assert [unknown for unknown in with_transition(several, taken, "digest", 2).unknowns if unknown.startswith(waits)]
    assert not [unknown for unknown in with_transition(one, taken, "digest", 2).unknowns if unknown.startswith(waits)]


def test_no_migration_of_a_stateful_set_is_planned() -> None:
    with pytest.raises(BadInputError, match="is StatefulSet shop/app: migrations change templates of Deployments only"):
        read_context(stateful(3), "digest", policy_of(stateful(3)).rollout_settings)
