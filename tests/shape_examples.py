"""What lies in ``examples/shapes``: a policy, a snapshot and a README for each shape of a group.

Run as ``python -m tests.shape_examples`` it writes them anew. Snapshots of ``RECORDED`` shapes are of real groups,
recorded with real brokers and clients; all others are simulated by the generator of random groups, and say so.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from planner import pipeline
from planner.decision.decision import Decision
from planner.documents.data import SNAPSHOT
from planner.documents.policy import ConsumerScalingPolicy
from planner.model.deployments import ScaleTarget
from planner.model.pods import Workload
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.pipeline import GroupCase
from planner.rollout.plan import RolloutPlan
from tests import decidable
from tests.recordings import Recording, members
from tests.unit.rollout.test_shared_pods import group as shared_group
from tests.unit.simulation.test_share_groups import share
from tests.unit.snapshot.test_unlisted import of_grpc_clients
from tests.unit.snapshot.test_unlisted import taken as taken_from

FOLDER: Final = Path(__file__).parents[1] / "examples" / "shapes"
SIMULATED: Final = "The snapshot is simulated (`tests/shape_examples.py`): no broker gave these answers."
RECORDED: Final = "The snapshot is of a real group, recorded as `{group}` in `tests/contract/recordings/{capture}`."
_SEEDS: Final = 400


@dataclass(frozen=True)
class Example:
    """One group of a shape: what is written into its folder."""

    policy: ConsumerScalingPolicy
    snapshot: GroupSnapshot


@dataclass(frozen=True)
class Shape:
    """A shape: what it is called, what is special about it, where its snapshot comes from, and its groups."""

    title: str
    lesson: str
    source: str
    make: Callable[[], Sequence[Example]]


def answers(examples: Sequence[Example]) -> list[tuple[Decision, RolloutPlan | None]]:
    """Return decision and plan of each group, of several in the same pods together."""
    cases = [
        GroupCase(
            each.policy,
            each.snapshot,
            pipeline.decide_alone(each.snapshot, pipeline.simulate(each.snapshot, each.policy), each.policy),
        )
        for each in examples
    ]
    if len(cases) > 1:
        return [(record.decision, None) for record in pipeline.decide_shared(cases).values()]
    (example,) = examples
    outcomes = pipeline.simulate(example.snapshot, example.policy)
    record = pipeline.decide(example.snapshot, outcomes, example.policy)
    made = None if record.decision.is_hold else pipeline.plan(example.snapshot, record, example.policy, outcomes)
    return [(record.decision, made)]


def policy_for(taken: GroupSnapshot, name: str, **changes: Any) -> ConsumerScalingPolicy:
    """Return a policy of up to twelve pods under which the busiest consumer may be used at 80 %."""
    content = decidable.policy_of(taken).model_dump(by_alias=True, exclude_unset=True)
    content["metadata"] = {"name": name, "namespace": "shop"}
    content["spec"] |= {"maxReplicas": 12, "objective": {"maxUtilisation": 0.8}, **changes}
    if taken.capacity is not None and taken.capacity.source == "stated by the policy":
        content["spec"]["capacity"] = {"messagesPerSecond": taken.capacity.messages_per_s}
    return ConsumerScalingPolicy.model_validate(content)


def one(taken: GroupSnapshot, **changes: Any) -> list[Example]:
    """Return a shape of one group."""
    return [Example(policy_for(taken, "orders", **changes), taken)]


def simulated(
    make: Callable[[random.Random, str], GroupSnapshot],
    strategy: str,
    grows: bool,
    change: Callable[[GroupSnapshot], GroupSnapshot] = lambda taken: taken,
) -> list[Example]:
    """Return the first random group of three pods or more for which a plan is made, of the wanted direction."""
    for seed in range(_SEEDS):
        taken = change(make(random.Random(seed), strategy))
        if taken.capacity is not None:
            taken = replace(taken, capacity=Capacity(round(taken.capacity.messages_per_s, 1), "stated by the policy"))
        examples = one(taken)
        ((decision, made),) = answers(examples)
        if made is not None and decision.current in (0, 3, 4, 5, 6) and (decision.target > decision.current) is grows:
            return examples
    raise LookupError(f"no group of {make.__name__} is planned for")


def recorded(system: str, group: str, **changes: Any) -> list[Example]:
    """Return a recorded group as of its last sample, under a policy with a window as long as the recording."""
    recording: Recording = members(f"{system}-members")[group]
    newest = recording.samples[-1]
    servers = {"bootstrapServers": ["10.0.0.1:9092"]} if system == "kafka" else {"nameServers": ["10.0.0.1:9876"]}
    spec = {
        "source": {"system": system, "cluster": newest.cluster, "group": group, **servers},
        "scaleTargetRef": {"name": "orders-consumer"},
        "maxReplicas": 12,
        "window": {"seconds": 120},
        "objective": {"maxUtilisation": 0.8},
        **changes,
    }
    policy = ConsumerScalingPolicy.model_validate({"metadata": {"name": "orders", "namespace": "shop"}, "spec": spec})
    return [Example(policy, pipeline.take_snapshot(recording.samples, recording.every_s, policy, newest.at))]


def of_kind(scale: ScaleTarget) -> Callable[[GroupSnapshot], GroupSnapshot]:
    """Return what makes a Deployment's group one of another kind."""

    def changed(taken: GroupSnapshot) -> GroupSnapshot:
        assert taken.deployment is not None
        workload = Workload(scale.kind, "shop", "app")
        pods = tuple(replace(pod, workload=workload) for pod in taken.deployment.pods or ())
        return replace(taken, deployment=replace(taken.deployment, scale=scale, pods=pods))

    return changed


def _streams() -> list[Example]:
    taken = decidable.one_each(random.Random(1), "range")
    return one(replace(taken, strategy="stream", strategy_source="the group's coordinator"))


def _connect() -> list[Example]:
    taken = decidable.one_each(random.Random(1), "range")
    tasks = tuple(
        replace(member, client_id=f"connector-consumer-orders-sink-{number}")
        for number, member in enumerate(taken.members)
    )
    return one(replace(taken, members=tasks))


def _grpc() -> list[Example]:
    taken = taken_from(of_grpc_clients(3), capacity_messages_per_s=60.0)
    spec = {"window": {"seconds": 60}, "membersPerPod": 1, "capacity": {"messagesPerSecond": 60.0}}
    return one(replace(taken, window_s=60.0), **spec)


def _share() -> list[Example]:
    return one(share(capacity=Capacity(20.0, "stated by the policy")))


def _several_groups() -> list[Example]:
    orders, mails = shared_group("orders", 40.0), shared_group("mails", 60.0)
    changes = {"minReplicas": 1, "maxReplicas": 6}
    refs = ({"name": "app", "sharedWith": ["mails"]}, {"name": "app", "sharedWith": ["orders"]})
    return [
        Example(policy_for(taken, name, scaleTargetRef=ref, **changes), taken)
        for name, taken, ref in zip(("orders", "mails"), (orders, mails), refs, strict=True)
    ]


ROLLOUT: Final = ScaleTarget("argoproj.io/v1alpha1", "Rollout", True, "rollouts-pod-template-hash")
CANARY: Final = replace(
    ROLLOUT,
    busy="Rollout shop/app is in the middle of a rollout, at step 1 of 4, with pods of two templates: promote or abort "
    "it",
)
FLEET: Final = ScaleTarget("example.com/v1", "Fleet", False)

SHAPES: Final[dict[str, Shape]] = {
    "rocketmq-kubernetes-not-read": Shape(
        "RocketMQ push consumers, Kubernetes not read",
        "Without `spec.kubernetes` the plan names the Deployment unread.",
        RECORDED.format(group="push-550-50ms-4q-load120-auto", capture="rocketmq-members"),
        lambda: recorded("rocketmq", "push-550-50ms-4q-load120-auto", membersPerPod=1),
    ),
    "kafka-kubernetes-not-read": Shape(
        "Kafka consumers, Kubernetes not read",
        "Members without a pod of their own name are taken for one a pod as long as their addresses differ.",
        RECORDED.format(group="overload", capture="kafka-members"),
        lambda: recorded("kafka", "overload", membersPerPod=1),
    ),
    "rocketmq-pop": Shape(
        "RocketMQ consumers that pop",
        "Members share messages instead of queues, so that no queue moves and each count is a candidate.",
        RECORDED.format(group="pop-50ms-4q-load120-each", capture="rocketmq-members"),
        lambda: recorded("rocketmq", "pop-50ms-4q-load120-each", membersPerPod=1),
    ),
    "deployment": Shape(
        "A Deployment, one member a pod",
        "The pods whose stop moves the fewest queues are marked, and stop first.",
        SIMULATED,
        lambda: simulated(decidable.one_each, "AVG", grows=False),
    ),
    "four-members-a-pod": Shape(
        "A Deployment whose pods run several members",
        "All counts are pods; a stop takes a pod with all its members.",
        SIMULATED,
        lambda: simulated(decidable.several_each, "AVG_BY_CIRCLE", grows=False),
    ),
    "statefulset": Shape(
        "A StatefulSet",
        "The highest numbers stop, the names of new pods are known: nothing is marked, and moves are exact.",
        SIMULATED,
        lambda: simulated(decidable.stateful, "AVG", grows=False),
    ),
    "two-deployments": Shape(
        "One group over two Deployments",
        "`scaleTargetRefs`: one decision for the group, split over both.",
        SIMULATED,
        lambda: simulated(decidable.several_deployments, "AVG", grows=True),
    ),
    "several-groups": Shape(
        "Two groups in the same pods",
        "`sharedWith`: the largest count that one of them needs is taken, in one plan.",
        SIMULATED,
        _several_groups,
    ),
    "at-zero": Shape(
        "No pod runs, and messages wait",
        "`minReplicas: 0`: the first pod starts when messages wait.",
        SIMULATED,
        lambda: simulated(decidable.at_zero, "AVG", grows=True),
    ),
    "autoscaled": Shape(
        "A Deployment that an HPA scales",
        "`autoscaler.mode: setBounds`: the plan sets the HPA's bounds instead of fighting it.",
        SIMULATED,
        lambda: simulated(decidable.autoscaled, "AVG", grows=True),
    ),
    "argo-rollout": Shape(
        "An Argo Rollout",
        "Its ReplicaSet's pods take the deletion cost: chosen and marked as a Deployment's.",
        SIMULATED,
        lambda: simulated(decidable.one_each, "AVG", False, of_kind(ROLLOUT)),
    ),
    "argo-rollout-in-canary": Shape(
        "An Argo Rollout in the middle of a canary",
        "A new count would be parted over two templates, so no plan is made.",
        SIMULATED,
        lambda: [
            Example(each.policy, of_kind(CANARY)(each.snapshot))
            for each in simulated(decidable.one_each, "AVG", False, of_kind(ROLLOUT))
        ],
    ),
    "other-scale-kind": Shape(
        "Any kind with a sub-resource `scale`",
        "Its own controller decides which pods stop: none is named, and moved queues are a range over every choice.",
        SIMULATED,
        lambda: simulated(decidable.one_each, "AVG", False, of_kind(FLEET)),
    ),
    "grpc-behind-proxies": Shape(
        "RocketMQ 5 gRPC clients behind proxies",
        "No queue has an owner: the decision goes by capacity alone.",
        SIMULATED,
        _grpc,
    ),
    "share-group": Shape(
        "A Kafka share group",
        "Members share records: the decision goes by capacity and by what the assignor gives one member.",
        SIMULATED,
        _share,
    ),
    "kafka-streams": Shape(
        "A Kafka Streams application",
        "Recognised by its assignor, and refused with the lever that is its own.",
        SIMULATED,
        _streams,
    ),
    "kafka-connect": Shape(
        "Tasks of a Kafka Connect sink",
        "Recognised by their client ids, and refused with the lever that is their own.",
        SIMULATED,
        _connect,
    ),
}


def read(folder: Path) -> list[Example]:
    """Return the groups in a shape's folder, by the names of their files."""
    from planner.documents.policy import read_policy

    return [
        Example(
            read_policy(path),
            SNAPSHOT.read(path.with_name(path.name.replace("policy", "snapshot")).with_suffix(".json")),
        )
        for path in sorted(folder.glob("*policy.yaml"))
    ]


def answer_lines(examples: Sequence[Example], decided: Sequence[tuple[Decision, RolloutPlan | None]]) -> Iterator[str]:
    """Yield what is decided of each group, and what its plan says of the queues that move."""
    for example, (decision, made) in zip(examples, decided, strict=True):
        name = f"{example.policy.metadata.name}: " if len(examples) > 1 else ""
        yield f"{name}{'hold, ' + str(decision.hold_cause) if decision.is_hold else 'plan'}: {decision.reason}"
        if made is not None:
            moved = made.forecast.moved_queues
            steps = ", ".join(step.kind for step in made.steps)
            yield f"{made.target}, {moved.fewest} to {moved.most} queues change owner; steps: {steps}."


def main() -> None:
    """Write every shape's folder, and the table of all."""
    rows = []
    for name, shape in SHAPES.items():
        folder, examples = FOLDER / name, shape.make()
        folder.mkdir(parents=True, exist_ok=True)
        for example in examples:
            prefix = f"{example.policy.metadata.name}-" if len(examples) > 1 else ""
            content = example.policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
            header = {"apiVersion": "consumerplanner.dev/v1alpha1", "kind": "ConsumerScalingPolicy"}
            text = yaml.safe_dump({**header, **content}, sort_keys=False)
            (folder / f"{prefix}policy.yaml").write_text(f"# {shape.title}. {shape.lesson}\n{text}", encoding="utf-8")
            (folder / f"{prefix}snapshot.json").write_bytes(SNAPSHOT.dump(example.snapshot))
        (folder / "README.md").write_text(_readme(name, shape, read(folder)), encoding="utf-8")
        decided = answers(read(folder))
        rows.append(f"| [{shape.title}]({name}/) | {'; '.join(_short(decision) for decision, _ in decided)} |")
    page = f"{_HEAD}| Shape | Answer |\n|---|---|\n" + "\n".join(rows) + "\n"
    (FOLDER / "README.md").write_text(page, encoding="utf-8")


_HEAD: Final = """# One group of each shape

Each folder has a policy, a snapshot of a group, and what the planner answers. Try one without any broker:

```console
$ planner plan examples/shapes/statefulset/snapshot.json -p examples/shapes/statefulset/policy.yaml --at snapshot
```

`python -m tests.shape_examples` writes all of it anew; a test asks every folder again and compares.

"""


def _short(decision: Decision) -> str:
    if decision.is_hold:
        return f"holds: `{decision.hold_cause}`"
    return f"{decision.current} to {decision.target} pods"


def _readme(name: str, shape: Shape, examples: Sequence[Example]) -> str:
    answer = "\n".join(answer_lines(examples, answers(examples)))
    prefix = f"{examples[0].policy.metadata.name}-" if len(examples) > 1 else ""
    files = f"examples/shapes/{name}/{prefix}"
    command = f"planner plan {files}snapshot.json -p {files}policy.yaml --at snapshot"
    several = "\nOne run of both policies (`planner run`) decides for them together; `planner plan` asks one alone.\n"
    return (
        f"# {shape.title}\n\n{shape.lesson}\n{shape.source}\n\n```console\n$ {command}\n```\n"
        f"{several if len(examples) > 1 else ''}\n```\n{answer}\n```\n"
    )


if __name__ == "__main__":
    main()
