"""How many random valid groups get a plan: ``python -m tests.decidable [GROUPS]`` prints strategy x shape.

Every group is complete, fresh and at rest, and its policy allows the counts that suit it: what is held beside the right
count is held for a reason that is ours.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from planner import pipeline
from planner.allocation.registry import find_strategy
from planner.decision.decision import Decision, HoldCause
from planner.documents.policy import ConsumerScalingPolicy
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment, Ordinals, ScaleTarget, together
from planner.model.pods import Pod, Workload
from planner.model.snapshot import POP, SHARE, Capacity, GroupSnapshot, MemberPod
from planner.simulation.candidates import simulate_candidate
from planner.simulation.kafka.mixed_partitions import assigned
from planner.simulation.kafka.partitions import in_ring_order
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.rocketmq.topics import topics_of
from tests.builders import AT
from tests.unit.rollout.random_groups import KAFKA, ROCKETMQ, random_group
from tests.unit.workload.builders import deployment, pod

STRATEGIES = (*ROCKETMQ, *(name for name in KAFKA if name != "range-server"))
BASE_OF = {"POP": "AVG", "gRPC clients": "AVG", "Share group": "range"}
"""Kinds of group whose members share the messages of queues, and whose random groups each is made of."""
MOST_PODS = 12


class Answer(StrEnum):
    """What a group got. ``RIGHT``: held, and no data could turn that into a plan; or with all lists that come first."""

    PLANNED = "planned"
    RIGHT = "held for a good reason"
    OTHERWISE = "held otherwise"


RIGHT = frozenset({HoldCause.RIGHT_ALREADY, HoldCause.NO_COUNT_MEETS})
"""The present count is the best that there is: for the load, or among those that the policy allows."""


@dataclass(frozen=True)
class Got:
    """The answer to one random group, and the cause where it was held."""

    strategy: str
    shape: str
    answer: Answer
    cause: str


def one_each(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a Deployment whose pods run one member each."""
    return _deployed(draw, strategy, _ids(draw, draw.randint(1, MOST_PODS), 1))


def several_each(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a Deployment whose pods run two to four members each."""
    return _deployed(draw, strategy, _ids(draw, draw.randint(1, MOST_PODS // 2), draw.randint(2, 4)))


def stateful(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a StatefulSet whose members' ids are made of their pods' names."""
    pods = draw.randint(1, MOST_PODS)
    names = [f"app-{number}" for number in range(pods)]
    made = random_group(draw, tuple(sorted(f"{name}@{name}" for name in names)), strategy).snapshot
    if made.system == "kafka":
        made = _static(made)
    links = tuple(MemberPod(client, client.partition("@")[0]) for client in made.clients)
    return _at_rest(draw, replace(made, pods=links), names, Ordinals())


def _static(made: GroupSnapshot) -> GroupSnapshot:
    """Return a Kafka group whose members have their pods' names as static ids, at rest in the order of those."""
    members = tuple(replace(m, instance_id=m.member_id.partition("@")[0]) for m in made.members)
    before, after = in_ring_order(made.members), in_ring_order(members)
    heirs = {old.member_id: new.member_id for old, new in zip(before, after, strict=True)}
    states = tuple(replace(state, owner=state.owner and heirs[state.owner]) for state in made.queues)
    return replace(made, members=members, queues=states)


def unread(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a group whose policy lets nobody read Kubernetes: each member has an address of its own."""
    taken = one_each(draw, strategy)
    return replace(taken, deployment=None, pods=())


def at_zero(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a group of which no pod runs; messages wait in half of them. The policy states the strategy."""
    taken = one_each(draw, strategy)
    lag = draw.choice((0, 7))
    states = tuple(
        replace(state, owner=None, lag=lag, arrival_rate=None, upper_arrival_rate=None) for state in taken.queues
    )
    none = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), 0)
    return replace(
        taken,
        clients=(),
        members=(),
        pods=(),
        queues=states,
        capacity=None,
        deployment=deployment(at=AT, pods=(), **none),
    )


def differing(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a Kafka group whose members lie in two racks, as one replica of each partition does, and in half of
    the groups differ in their topics, too."""
    taken = _deployed(draw, strategy, _ids(draw, draw.randint(2, MOST_PODS), 1))
    topics = sorted({state.queue.topic for state in taken.queues})
    mixes = draw.random() < 0.5 and len(topics) > 1
    members = tuple(
        replace(member, rack=draw.choice(("r1", "r2")), topics=tuple(topics[mixes * (number % 2) :]))
        for number, member in enumerate(taken.members)
    )
    states = tuple(replace(state, racks=(draw.choice(("r1", "r2")),), owner=None) for state in taken.queues)
    fresh = replace(taken, members=members, queues=states)
    owners = assigned(fresh, strategy, members)
    # As the assignor gives it to members that have that already: what they kept is what they claim.
    for _ in range(MOST_ROUNDS):
        fresh = replace(fresh, queues=tuple(replace(state, owner=owners[state.queue]) for state in states))
        before, owners = owners, assigned(fresh, strategy, members)
        if owners == before:
            break
    return fresh


def autoscaled(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a Deployment whose replicas an HPA sets, under a policy that says to set its bounds."""
    taken = one_each(draw, strategy)
    assert taken.deployment is not None
    scaler = Autoscaler("HorizontalPodAutoscaler", "app", 1, 64)
    return replace(taken, deployment=replace(taken.deployment, autoscalers=(scaler,)))


def several_deployments(draw: random.Random, strategy: str) -> GroupSnapshot:
    """Return a group whose pods two Deployments run, under a policy that names both."""
    taken = _deployed(draw, strategy, _ids(draw, draw.randint(2, MOST_PODS), 1))
    assert taken.deployment is not None
    pods = taken.deployment.pods or ()
    first = draw.randint(1, len(pods) - 1)
    parts = {"app": pods[:first], "app-next": pods[first:]}
    return replace(taken, deployment=together([_part(taken.deployment, *part) for part in parts.items()]))


def _part(whole: Deployment, name: str, pods: Sequence[Pod]) -> Deployment:
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), len(pods))
    workload = Workload("Deployment", "shop", name)
    own = tuple(replace(each, workload=workload) for each in pods)
    return replace(whole, name=name, pods=own, **counts)  # type: ignore[arg-type]


def scaled(draw: random.Random, strategy: str, scale: ScaleTarget) -> GroupSnapshot:
    """Return a group whose pods another kind with ``/scale`` runs."""
    taken = one_each(draw, strategy)
    assert taken.deployment is not None
    workload = Workload(scale.kind, "shop", "app")
    pods = tuple(replace(each, workload=workload) for each in taken.deployment.pods or ())
    return replace(taken, deployment=replace(taken.deployment, scale=scale, pods=pods))


ROLLOUT = ScaleTarget("argoproj.io/v1alpha1", "Rollout", takes_cost=True, template_label="rollouts-pod-template-hash")
FLEET = ScaleTarget("example.com/v1", "Fleet", takes_cost=False)
"""A kind that the planner does not know, and whose controller alone decides which pods stop."""


def two_groups(draw: random.Random, strategy: str) -> tuple[GroupSnapshot, GroupSnapshot]:
    """Return two groups that the same pods serve, one member each; the second has any strategy of the system."""
    ids = _ids(draw, draw.randint(1, MOST_PODS), 1)
    second = draw.choice([name for name in STRATEGIES if (name in KAFKA) is (strategy in KAFKA)])
    return _deployed(draw, strategy, ids), replace(_deployed(draw, second, ids), group="mails")


def sharing(kind: str, taken: GroupSnapshot) -> GroupSnapshot:
    """Return the group as one whose members share the messages of all its queues; of another kind as it is."""
    shared = len(taken.data_queues)
    if kind == "Share group":
        return replace(
            taken,
            strategy=SHARE,
            shared_queues=shared,
            members=tuple(
                replace(
                    member,
                    protocol="share",
                    owned=tuple(state.queue for state in taken.queues if state.owner == member.member_id),
                )
                for member in taken.members
            ),
        )
    if kind not in BASE_OF:
        return taken
    states = tuple(replace(state, owner=None) for state in taken.queues)
    pops = replace(taken, queues=states, shared_queues=shared)
    return replace(pops, strategy=POP) if kind == "gRPC clients" else replace(pops, strategy_options={SHARES: -1})


SHARES = "pop_share_queues"
ONLY_KAFKA = "Topics and racks differ"
AT_ZERO = "No pod runs"
TWO_GROUPS = "Two groups in the same pods"
AUTOSCALED = "An HPA sets the replicas"
TWO_DEPLOYMENTS = "Two Deployments"
MOST_ROUNDS = 20

SHAPES: Mapping[str, Callable[[random.Random, str], GroupSnapshot]] = {
    "Deployment, one member a pod": one_each,
    "Deployment, several a pod": several_each,
    "StatefulSet": stateful,
    "Kubernetes not read": unread,
    AT_ZERO: at_zero,
    ONLY_KAFKA: differing,
    AUTOSCALED: autoscaled,
    TWO_DEPLOYMENTS: several_deployments,
    "Argo Rollout": partial(scaled, scale=ROLLOUT),
    "Another kind with `/scale`": partial(scaled, scale=FLEET),
}

ROWS = (*STRATEGIES, *BASE_OF)
COLUMNS = (*SHAPES, TWO_GROUPS)


def _ids(draw: random.Random, pods: int, per_pod: int) -> Mapping[str, str]:
    """Return the pod of each member by its client id."""
    addresses = draw.sample(range(1, 250), pods)
    return {
        f"10.0.0.{address}@{40 + number}#7": f"app-{address:x}" for address in addresses for number in range(per_pod)
    }


def _deployed(draw: random.Random, strategy: str, ids: Mapping[str, str]) -> GroupSnapshot:
    per_pod = len(ids) // len(set(ids.values()))
    made = random_group(draw, tuple(sorted(ids)), strategy).snapshot
    links = tuple(MemberPod(client, ids[client]) for client in made.clients)
    taken = replace(made, pods=links, members_per_pod=per_pod, members_per_pod_source="made so")
    return _at_rest(draw, taken, sorted(set(ids.values())), None)


def _at_rest(draw: random.Random, taken: GroupSnapshot, names: list[str], ordinals: Ordinals | None) -> GroupSnapshot:
    """Return the group with its pods ready, each queue with its owner, and a capacity that may be little or much."""
    workload = Workload("StatefulSet" if ordinals else "Deployment", "shop", "app")
    pods = tuple(pod(name, workload=workload, ready_at=AT, created_at=AT) for name in names)
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), len(names))
    load = sum(state.upper_arrival_rate or 0.0 for state in taken.data_queues)
    capacity = load / len(taken.clients) * draw.choice((0.5, 0.8, 1.1, 1.6, 3.0, 8.0))
    return _settled(
        replace(
            taken,
            setups=(),
            timing=None,
            capacity=Capacity(capacity, "stated by the policy"),
            deployment=deployment(at=AT, pods=pods, ordinals=ordinals, **counts),
        )
    )


def _settled(taken: GroupSnapshot) -> GroupSnapshot:
    """Return the group with every queue owned as its strategy says; Kafka's are made so."""
    if taken.system == "kafka":
        return taken
    strategy, topics = find_strategy(taken.strategy or "", taken.strategy_options), topics_of(taken)
    owned = zip(topics.states, topics.owners(strategy, taken.clients), strict=True)
    states = [
        replace(state, owner=taken.clients[place] if place >= 0 else None)
        for states, places in owned
        for state, place in zip(states, places, strict=True)
    ]
    return replace(taken, queues=tuple(states))


def policy_of(taken: GroupSnapshot, name: str = "billing", shared_with: Sequence[str] = ()) -> ConsumerScalingPolicy:
    """Return a policy under which any count to 64 may be chosen: from one, or from none for a group that has none.

    ``shared_with`` are the policies of the other groups that the same pods serve.
    """
    servers = {"bootstrapServers": ["k:9092"]} if taken.system == "kafka" else {"nameServers": ["n:9876"]}
    kind = taken.deployment.kind if taken.deployment else "Deployment"
    version = {"apiVersion": taken.deployment.api_version} if taken.deployment else {}
    several = [{"name": each.name} for each in taken.deployment.targets] if taken.deployment else []
    target = {**version, "kind": kind, "name": "app", **({"sharedWith": [*shared_with]} if shared_with else {})}
    spec = {
        "source": {"system": taken.system, "cluster": taken.cluster, "group": taken.group, **servers},
        **({"scaleTargetRefs": several} if several else {"scaleTargetRef": target}),
        "minReplicas": 0 if taken.deployment and not taken.clients else 1,
        "maxReplicas": 64,
        **({"kubernetes": {}} if taken.deployment else {}),
        **({"autoscaler": {"mode": "setBounds"}} if taken.deployment and taken.deployment.autoscalers else {}),
        **({} if taken.clients else {"strategy": taken.strategy or "AVG"}),
    }
    return ConsumerScalingPolicy.model_validate({"metadata": {"name": name, "namespace": "shop"}, "spec": spec})


def ask(strategy: str, shape: str, taken: GroupSnapshot) -> Got:
    """Return what the group gets: the whole path from candidates to plan, without what the change costs in time."""
    policy = policy_of(taken)
    outcomes = _outcomes(taken, policy)
    record = pipeline.decide(taken, outcomes, policy)
    if record.decision.is_hold:
        answer = Answer.RIGHT if _is_right(record.decision) else Answer.OTHERWISE
        return Got(strategy, shape, answer, str(record.decision.hold_cause))
    assert pipeline.plan(taken, record, policy, outcomes) is not None
    return Got(strategy, shape, Answer.PLANNED, "")


def ask_together(strategy: str, groups: Sequence[GroupSnapshot]) -> Got:
    """Return what groups of the same pods get: one plan for all, or a hold; the first one has the strategy."""
    names = [taken.group for taken in groups]
    cases = []
    for taken in groups:
        policy = policy_of(taken, taken.group, [name for name in names if name != taken.group])
        own = pipeline.decide_alone(taken, _outcomes(taken, policy), policy)
        cases.append(pipeline.GroupCase(policy, taken, own))
    records = pipeline.decide_shared(cases)
    for case in cases:
        record, others = records[case.name], [other for other in cases if other is not case]
        if not record.decision.is_hold:
            outcomes = _outcomes(case.snapshot, case.policy)
            assert pipeline.plan(case.snapshot, record, case.policy, outcomes, others) is not None
            return Got(strategy, TWO_GROUPS, Answer.PLANNED, "")
    held = [record.decision for record in records.values()]
    needed = [decision for decision in held if decision.hold_cause is not HoldCause.SHARED_TARGET]
    is_right = bool(needed) and all(_is_right(decision) for decision in needed)
    causes = ", ".join(sorted(str(decision.hold_cause) for decision in held))
    return Got(strategy, TWO_GROUPS, Answer.RIGHT if is_right else Answer.OTHERWISE, causes)


def _outcomes(taken: GroupSnapshot, policy: ConsumerScalingPolicy) -> tuple[CandidateOutcome, ...]:
    own = [count for name, count in pipeline.candidates(taken, policy) if name == taken.strategy]
    return tuple(simulate_candidate(taken, count, taken.strategy or "") for count in own)


def _is_right(held: Decision) -> bool:
    return held.hold_cause in RIGHT or names_all_lists(held.reason, held.current)


def names_all_lists(reason: str, current: int) -> bool:
    """Return whether a hold says which lists ``CONFIG`` needs before the count that would be right, one for each."""
    wanted = re.search(r"(\d+) would be right, but CONFIG gives queues by lists", reason)
    if wanted is None:
        return False
    newcomers = range(1, int(wanted[1]) - current + 1)
    return all(f"new consumer {number}: " in reason for number in newcomers)


def is_possible(strategy: str, shape: str) -> bool:
    """Return whether there are groups of that strategy, or kind, in that shape."""
    if strategy in BASE_OF:
        return shape not in (ONLY_KAFKA, AT_ZERO)
    return shape != ONLY_KAFKA or strategy in KAFKA


def survey(groups: int, seed: int = 24) -> Iterator[Got]:
    """Yield what so many random groups of each strategy and shape get; the same seed gives the same groups."""
    for strategy in ROWS:
        base = BASE_OF.get(strategy, strategy)
        for shape, make in ((shape, make) for shape, make in SHAPES.items() if is_possible(strategy, shape)):
            draw = random.Random(f"{seed} {strategy} {shape}")
            for _ in range(groups):
                yield ask(strategy, shape, sharing(strategy, make(draw, base)))
        draw = random.Random(f"{seed} {strategy} {TWO_GROUPS}")
        for _ in range(groups):
            first, second = two_groups(draw, base)
            yield ask_together(strategy, (sharing(strategy, first), second))


def share_decided(answers: Iterable[Got]) -> float:
    """Return the share of groups that are planned for or held for a good reason, 0 to 1."""
    counts = Counter(got.answer for got in answers)
    return 1 - counts[Answer.OTHERWISE] / counts.total()


def table(answers: Iterable[Got]) -> str:
    """Return the answers as a table in Markdown: planned / held for a good reason / held otherwise."""
    counts = Counter((got.strategy, got.shape, got.answer) for got in answers)
    lines = ["| Strategy | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    cell = partial(_cell, counts)
    lines += [f"| {name} | " + " | ".join(cell(name, shape) for shape in COLUMNS) + " |" for name in ROWS]
    return "\n".join(lines)


def _cell(counts: Counter[tuple[str, str, Answer]], strategy: str, shape: str) -> str:
    if not is_possible(strategy, shape):
        return "–"
    return " / ".join(str(counts[strategy, shape, answer]) for answer in Answer)


def main() -> None:
    """Print the table, the share of all groups that got an answer, and the causes of what was held otherwise."""
    answers = tuple(survey(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
    print(table(answers))
    print(f"\n{share_decided(answers):.1%} of {len(answers)} groups planned for, or held for a good reason")
    for (cause, strategy), number in Counter(
        (got.cause, got.strategy) for got in answers if got.answer is Answer.OTHERWISE
    ).most_common():
        print(f"{number:6} {cause}: {strategy}")


if __name__ == "__main__":
    main()
