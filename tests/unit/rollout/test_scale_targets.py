"""Plans for targets of other kinds: victims where the controller goes by deletion cost, else bounds over all."""

from dataclasses import replace

import pytest

from planner import pipeline
from planner.documents.plan import PLAN
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.execution.backward import _drop
from planner.execution.fence import _ready_after
from planner.execution.observation import DeploymentObservation
from planner.model.deployments import ScaleTarget
from planner.model.pods import Workload
from planner.model.snapshot import GroupSnapshot
from planner.rollout.bounds import outside_policy
from planner.rollout.migrations.migration import read_context
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import MarkVictims, StopConsumers
from planner.simulation.candidates import simulate_candidate
from tests.decidable import policy_of
from tests.unit.rollout.test_stateful import stateful

ROLLOUT = ScaleTarget("argoproj.io/v1alpha1", "Rollout", takes_cost=True, template_label="rollouts-pod-template-hash")
FLEET = ScaleTarget("example.com/v1", "Fleet", takes_cost=False)


def group(scale: ScaleTarget, count: int = 4) -> GroupSnapshot:
    """Return a settled group whose pods are of that kind."""
    taken = stateful(count, ordinals=None, scale=scale)
    assert taken.deployment is not None
    assert taken.deployment.pods is not None
    workload = Workload(scale.kind, "shop", "app")
    pods = tuple(replace(pod, workload=workload) for pod in taken.deployment.pods)
    return replace(taken, deployment=replace(taken.deployment, pods=pods))


def policy_for(taken: GroupSnapshot, count: int) -> ConsumerScalingPolicy:
    made = policy_of(taken)
    bounds = {"min_replicas": count, "max_replicas": count}
    return made.model_copy(update={"spec": made.spec.model_copy(update=bounds)})


def plan_to(taken: GroupSnapshot, count: int) -> RolloutPlan | None:
    policy = policy_for(taken, count)
    outcomes = tuple(simulate_candidate(taken, each, taken.strategy or "") for each in (len(taken.clients), count))
    return pipeline.plan(taken, pipeline.decide(taken, outcomes, policy), policy, outcomes)


def test_a_rollouts_pods_are_marked_and_the_moves_exact() -> None:
    taken = group(ROLLOUT)
    made = plan_to(taken, 3)
    assert made is not None
    (mark,) = [step for step in made.steps if isinstance(step, MarkVictims)]
    assert len(mark.victims) == 1
    assert made.forecast.moved_queues.fewest == made.forecast.moved_queues.most
    assert (made.target, made.target_api_version) == ("Rollout app", "argoproj.io/v1alpha1")
    assert not outside_policy(made, policy_for(taken, 3).bounds)
    assert PLAN.parse(PLAN.document(made, "p"), "p") == made


def test_of_an_unknown_kind_no_pod_is_named_and_the_moves_are_bounds_over_every_choice() -> None:
    """The exact moves of each single choice lie within, and both bounds are met by some choice."""
    taken = group(FLEET)
    made = plan_to(taken, 3)
    assert made is not None
    assert not [step for step in made.steps if isinstance(step, MarkVictims)]
    (stop,) = [step for step in made.steps if isinstance(step, StopConsumers)]
    assert (stop.preferred_victims, stop.stopping) == ((), None)
    assert "best" not in stop.action
    assert any("the controller of Fleet app alone decides" in sentence for sentence in made.ways)
    moves = []
    for gone in taken.clients:
        staying = tuple(client for client in taken.clients if client != gone)
        outcome = simulate_candidate(taken, 3, "AVG", staying)
        moves += [outcome.moved_fewest, outcome.moved_most]
    assert (made.forecast.moved_queues.fewest, made.forecast.moved_queues.most) == (min(moves), max(moves))


def test_one_that_is_busy_is_held_with_its_sentence_and_the_cure() -> None:
    busy = replace(ROLLOUT, busy="Rollout shop/app is in the middle of a rollout: promote or abort it")
    taken = group(busy)
    policy = policy_for(taken, 3)
    outcomes = tuple(simulate_candidate(taken, each, "AVG") for each in (4, 3))
    decision = pipeline.decide(taken, outcomes, policy).decision
    assert decision.is_hold
    assert "promote or abort it, then plan again" in decision.reason


def test_a_plan_for_the_same_kind_of_another_group_is_outside_its_policy() -> None:
    taken = group(ROLLOUT)
    made = plan_to(taken, 3)
    assert made is not None
    other = replace(made, target_api_version="other.io/v1")
    (sentence,) = outside_policy(other, policy_for(taken, 3).bounds)
    assert "a kind of other.io/v1" in sentence
    with pytest.raises(ValueError, match="an API version with its group"):
        replace(made, target_api_version="v1")


def test_a_stop_of_unknown_choice_may_take_ready_pods_alone() -> None:
    """Three of four are ready: after a stop of two, one may be left, where a ReplicaSet would leave two."""
    for scale, left in ((FLEET, 1), (ROLLOUT, 2)):
        facts = group(scale).deployment
        assert facts is not None
        assert facts.pods is not None
        pods = (replace(facts.pods[0], is_ready=False), *facts.pods[1:])
        assert _ready_after(DeploymentObservation("app", replace(facts, pods=pods)), 2) == left


def test_what_is_written_at_the_end_names_the_kind_and_its_api_version() -> None:
    """Red where the claim is dropped from a ``Rollout`` of ``apps/v1``, which no server has (seen live)."""
    facts = group(ROLLOUT).deployment
    assert facts is not None
    assert (_drop(facts).kind, _drop(facts).api_version) == ("Rollout", "argoproj.io/v1alpha1")


def test_migrations_are_for_deployments_alone() -> None:

    taken = group(ROLLOUT)
    with pytest.raises(BadInputError, match="Rollout shop/app: migrations change templates of Deployments only"):
        read_context(taken, "sha256:x", policy_for(taken, 3).rollout_settings)
