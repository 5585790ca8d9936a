"""One group over several Deployments: the split of its pods, and the plan that changes all of them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from planner import pipeline
from planner.decision.decision import HoldCause
from planner.documents.data import SNAPSHOT
from planner.documents.plan import PLAN
from planner.documents.policy import ConsumerScalingPolicy, policy_of
from planner.documents.policy_folder import twins
from planner.errors import BadInputError, RefusedError
from planner.execution.plan_targets import deployments, fewest_ready, replicas_after
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import AlsoServing, Deployment, TargetReplicas, together
from planner.model.pods import Pod, Workload
from planner.model.snapshot import Capacity, GroupSnapshot, MemberPod
from planner.rollout.bounds import outside_policy
from planner.rollout.explain import explain_plan
from planner.rollout.migrations.requests import ClusterRequest
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitReady, AwaitSettled, MarkVictims, StartConsumers, StopConsumers
from planner.rollout.targets import Target, split
from tests.builders import AT, queues, snapshot
from tests.unit.execution.worlds import CHANGE
from tests.unit.workload.builders import deployment, pod

REFS = [{"name": "app", "weight": 2, "minReplicas": 1}, {"name": "app-next"}]
DOCUMENT = {
    "apiVersion": "consumerplanner.dev/v1alpha1",
    "kind": "ConsumerScalingPolicy",
    "metadata": {"name": "billing", "namespace": "shop"},
}


def policy(refs: Sequence[dict[str, Any]] = REFS, **spec: object) -> ConsumerScalingPolicy:
    source = {"system": "rocketmq", "cluster": "DefaultCluster", "group": "billing", "nameServers": ["n:9876"]}
    known = {"source": source, "scaleTargetRefs": list(refs), "kubernetes": {}, "maxReplicas": 12}
    return policy_of({**DOCUMENT, "spec": {**known, "objective": {"maxUtilisation": 0.8}, **spec}}, "p.yaml")


def facts(name: str, pods: Sequence[Pod], **more: Any) -> Deployment:
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), len(pods))
    return deployment(name=name, at=AT, pods=tuple(pods), **counts, **more)


def split_group(*counts: int, capacity: float = 40.0, **more: Any) -> GroupSnapshot:
    """Return a settled group that so many pods of Deployments ``app`` and ``app-next`` run, with a member each."""
    pods = [
        [
            pod(
                f"{name}-{number}",
                f"10.0.{index}.{number + 10}",
                workload=Workload("Deployment", "shop", name),
                ready_at=AT,
                created_at=AT,
                labels=(("pod-template-hash", name),),
            )
            for number in range(count)
        ]
        for index, (name, count) in enumerate(zip(("app", "app-next"), counts, strict=True))
    ]
    homes = {f"{each.addresses[0]}@7": each.name for of_one in pods for each in of_one}
    taken = snapshot(queues(each=6), tuple(homes), capacity=capacity)
    links = tuple(MemberPod(client, homes[client]) for client in taken.clients)
    made = together([facts("app", pods[0], **more), facts("app-next", pods[1])])
    return replace(taken, pods=links, deployment=made)


def load(taken: GroupSnapshot) -> float:
    return sum(state.upper_arrival_rate or 0.0 for state in taken.data_queues)


def plan_for(taken: GroupSnapshot, asked: ConsumerScalingPolicy) -> RolloutPlan:
    outcomes = pipeline.simulate(taken, asked)
    record = pipeline.decide(taken, outcomes, asked)
    made = pipeline.plan(taken, record, asked, outcomes)
    assert made is not None, record.decision.reason
    assert outside_policy(made, asked.bounds) == ()
    assert PLAN.parse(PLAN.document(made, "p"), "p") == made
    return made


def random_targets(draw: random.Random) -> list[Target]:
    made = []
    for number in range(draw.randint(2, 5)):
        lowest = draw.randint(0, 4)
        highest = draw.choice((None, lowest + draw.randint(0, 6)))
        made.append(Target(f"d{number}", draw.randint(1, 9), lowest, highest))
    return made


def test_every_split_adds_up_keeps_the_bounds_and_never_moves_a_pod_between_deployments() -> None:
    for seed in range(300):
        check_splits(random.Random(seed))


def check_splits(draw: random.Random) -> None:
    """All totals that the bounds allow, from one random present: largest remainders are not monotone."""
    targets = random_targets(draw)
    present = [draw.randint(0, 9) for _ in targets]
    least = sum(min(target.lowest, count) for target, count in zip(targets, present, strict=True))
    most = sum(
        30 if target.highest is None else max(target.highest, count)
        for target, count in zip(targets, present, strict=True)
    )
    splits = [split(targets, present, total) for total in range(least, most + 1)]
    assert splits[sum(present) - least] == tuple(present)
    for total, counts in enumerate(splits, start=least):
        assert sum(counts) == total
        for target, before, after in zip(targets, present, counts, strict=True):
            assert min(target.lowest, before) <= after
            assert target.highest is None or after <= max(target.highest, before)
    for fewer, more in pairwise(splits):
        assert all(one <= other for one, other in zip(fewer, more, strict=True)), (fewer, more)
    with pytest.raises(ValueError, match="bounds of d0"):
        split(targets, present, least - 1)


def test_pods_go_where_a_deployment_is_furthest_below_its_weight() -> None:
    """The example of the documentation; red where the weights, or the order of equals, count otherwise."""
    targets = [Target("a", 2), Target("b")]
    assert [split(targets, (3, 1), total) for total in (4, 5, 6, 7)] == [(3, 1), (3, 2), (4, 2), (5, 2)]
    assert split(targets, (5, 2), 4) == (3, 1)
    equal = [Target("a"), Target("b")]
    assert (split(equal, (2, 2), 5), split(equal, (2, 2), 3)) == ((3, 2), (2, 1))


def test_a_plan_starts_pods_of_each_deployment_and_awaits_the_whole_group() -> None:
    taken = split_group(2, 1)
    made = plan_for(taken, policy(minReplicas=6))
    assert (made.preconditions.replicas, made.target_replicas, made.final_replicas) == (3, 6, 6)
    assert made.targets == (TargetReplicas("app", 2), TargetReplicas("app-next", 1))
    scaled = [(s.deployment, s.from_replicas, s.to_replicas) for s in made.steps if isinstance(s, StartConsumers)]
    assert scaled == [("app", 2, 4), ("app-next", 1, 2)]
    assert [type(step) for step in made.steps[:5]] == [StartConsumers] * 2 + [AwaitReady] * 2 + [AwaitSettled]
    assert [step.members for step in made.steps if isinstance(step, AwaitSettled)] == [6]
    told = "\n".join(explain_plan(made))
    assert "Deployments app and app-next" in told
    assert "Split by the weights 2 : 1: app goes from 2 to 4 and app-next goes from 1 to 2." in told
    assert deployments(made) == ("app", "app-next")
    assert [replicas_after(made, name, -1) for name in ("app", "app-next")] == [2, 1]
    assert fewest_ready(made) == 3


@pytest.mark.parametrize(("least", "after"), [((1, 0), (3, 1)), ((4, 0), (4, 0)), ((0, 3), (1, 3))])
def test_victims_are_pods_of_each_deployment_as_the_split_says(least: tuple[int, int], after: tuple[int, int]) -> None:
    """Red where the choice is not bound by the split: three other pods would then move as few queues."""
    taken = split_group(4, 3, capacity=400.0)
    refs = [{**ref, "minReplicas": lowest} for ref, lowest in zip(REFS, least, strict=True)]
    made = plan_for(taken, policy(refs, minReplicas=4, maxReplicas=4))
    stops = {step.deployment: step for step in made.steps if isinstance(step, StopConsumers)}
    expected = {
        name: (4 - i, n) for i, (name, n) in enumerate(zip(("app", "app-next"), after, strict=True)) if 4 - i != n
    }
    assert {name: (step.from_replicas, step.to_replicas) for name, step in stops.items()} == expected
    marks = {step.deployment: step.pods for step in made.steps if isinstance(step, MarkVictims)}
    assert {name: len(pods) for name, pods in marks.items()} == {name: b - a for name, (b, a) in expected.items()}
    homes = {link.client: link.pod for link in taken.pods}
    for name, pods in marks.items():
        assert name is not None
        assert all(each.rpartition("-")[0] == name for each in pods)
        assert {homes[member] for member in stops[name].preferred_victims} == set(pods)
    assert made.forecast.moved_queues.fewest == made.forecast.moved_queues.most


def test_a_deployment_that_keeps_its_count_is_awaited_claimed_and_never_scaled() -> None:
    refs = [{"name": "app"}, {"name": "app-next", "minReplicas": 1, "maxReplicas": 1}]
    made = plan_for(split_group(2, 1), policy(refs, minReplicas=5, maxReplicas=5))
    assert [(s.deployment, s.to_replicas) for s in made.steps if isinstance(s, StartConsumers)] == [("app", 4)]
    first = made.steps[0]
    assert isinstance(first, AwaitReady)
    assert (first.deployment, first.replicas) == ("app-next", 1)
    assert deployments(made) == ("app", "app-next")


def test_no_plan_leaves_the_policy_whatever_its_author_writes() -> None:
    asked = policy([{"name": "app", "maxReplicas": 4}, {"name": "app-next", "minReplicas": 1}], maxReplicas=8)
    made = plan_for(split_group(2, 1), policy(minReplicas=6))
    steps = tuple(
        replace(step, to_replicas=5) if isinstance(step, StartConsumers) and step.deployment == "app" else step
        for step in made.steps
    )
    wild = replace(made, steps=steps, target_replicas=7)
    assert "step 1 goes to 5 replicas, policy billing allows 4 of Deployment app at most" in outside_policy(
        wild, asked.bounds
    )
    other = policy([{"name": "app"}, {"name": "third"}])
    assert any("policy billing names app and third" in why for why in outside_policy(made, other.bounds))
    stops = StopConsumers(1, 0, (), 60, made.forecast.moved_queues, undo="set 1", deployment="app-next")
    emptied = replace(made, steps=(*made.steps[:1], stops, *made.steps[2:]), target_replicas=4)
    assert any("asks for 1 of Deployment app-next at least" in why for why in outside_policy(emptied, asked.bounds))
    with pytest.raises(ValueError, match="each of the targets to be scaled or awaited"):
        replace(made, steps=made.steps[:1])
    with pytest.raises(ValueError, match="only a migration's may"):
        replace(made, targets=None)
    with pytest.raises(ValueError, match="replicas of the preconditions together"):
        replace(made, targets=(TargetReplicas("app", 2), TargetReplicas("app-next", 2)))


def test_what_no_plan_may_rest_on_is_a_hold_that_says_why() -> None:
    asked = policy(minReplicas=6)
    own = split_group(2, 1)
    assert own.deployment is not None
    elsewhere = AlsoServing(Workload("Job", "shop", "batch"), 2)
    third = replace(own, deployment=replace(own.deployment, also_serving=(elsewhere,)))
    unread = replace(own, deployment=None)
    paused = Autoscaler("HorizontalPodAutoscaler", "hpa", 1, 9, is_paused=True)
    scaled = split_group(2, 1, autoscalers=(paused,))
    for taken, words in (
        (third, "spec.scaleTargetRefs"),
        (unread, "Deployments app and app-next were not all read"),
        (scaled, "no plan splits a group beside an autoscaler"),
    ):
        decision = pipeline.decide(taken, pipeline.simulate(taken, asked), asked).decision
        assert decision.is_hold
        assert words in decision.reason
    assert decision.hold_cause is not HoldCause.RIGHT_ALREADY


def test_a_migration_of_such_a_group_is_refused() -> None:
    with pytest.raises(RefusedError, match="is split over Deployments app and app-next"):
        pipeline.migrate(split_group(2, 1), ClusterRequest(to="k:9092", change=CHANGE, green="green"), policy())


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"scaleTargetRef": {"name": "app"}}, "exactly one of both"),
        ({"scaleTargetRefs": None}, "exactly one of both"),
        ({"scaleTargetRefs": [REFS[0], REFS[0]]}, "name each Deployment once"),
        ({"scaleTargetRefs": [REFS[0], {"kind": "StatefulSet", "name": "b"}]}, "not over a StatefulSet"),
        ({"kubernetes": None}, "kubernetes beside scaleTargetRefs"),
        ({"autoscaler": {"mode": "pause"}}, "refuse beside scaleTargetRefs"),
        ({"minReplicas": 0, "strategy": "AVG"}, "one of several may have 0, not all"),
        ({"scaleTargetRefs": [{**REFS[0], "minReplicas": 13}, REFS[1]]}, "to leave a count"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_in_one_sentence(spec: dict[str, object], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        policy(**spec)


def test_a_policy_of_one_target_keeps_its_digest_and_two_policies_never_share_one_of_several() -> None:
    one = policy_of(
        {
            **DOCUMENT,
            "spec": {
                **policy().spec.model_dump(by_alias=True),
                "scaleTargetRefs": None,
                "scaleTargetRef": {"name": "app"},
            },
        },
        "one.yaml",
    )
    assert one.digest == "sha256:a0b76b4eabc06a826be59d5234b046b4f170f3685c19fc5191201ab96ddc3f9f"
    source = one.spec.source.model_copy(update={"group": "other"})
    renamed = {"metadata": one.metadata.model_copy(update={"name": "other"})}
    other = one.model_copy(update={**renamed, "spec": one.spec.model_copy(update={"source": source})})
    assert "target Deployment shop/app" in next(iter(twins([("a", policy()), ("b", other)]).values()))


def test_a_snapshot_keeps_the_deployments_and_one_without_has_the_digest_that_it_had() -> None:
    taken = split_group(2, 1)
    assert SNAPSHOT.parse(SNAPSHOT.dump(taken), "x").deployment == taken.deployment
    alone = replace(taken, deployment=facts("app", ()))
    assert "targets" not in SNAPSHOT.body(alone)["deployment"]


def test_the_group_is_decided_on_as_one() -> None:
    """Eight pods' work for three: the whole group is counted, not the first Deployment's share."""
    taken = split_group(2, 1)
    busy = replace(taken, capacity=Capacity(load(taken) / 6, "stated by the policy"))
    made = plan_for(busy, policy())
    assert (made.preconditions.replicas, made.target_replicas) == (3, 12)
