"""Counts of pods that run several members each: none that is dominated, none that is no whole number of pods."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from benchmarks.queue_weights import Loads, largest_loads, undominated_counts
from planner.allocation.kafka import ASSIGNORS, Topics, equal_group
from planner.allocation.rocketmq import Averagely, AveragelyByCircle, MachineRoom
from planner.allocation.strategy import Strategy
from planner.forecast.rocketmq.request.changes import Join, Leave
from planner.model.membership import KafkaMember
from planner.model.queues import MessageQueue, TopicPartition
from planner.model.snapshot import Capacity, GroupSnapshot, MemberPod
from planner.rollout.explain import explain_plan
from planner.rollout.steps import AwaitReady, AwaitSettled, StartConsumers, StopConsumers
from planner.simulation.bounds import ENDS
from planner.simulation.candidates import candidate_counts, leaving, simulate_candidate
from planner.simulation.counts import useful_counts
from planner.simulation.kafka import request as kafka
from planner.simulation.rocketmq import request as rocketmq
from tests.builders import OBJECTIVE, TIMING, decided, kafka_snapshot, podded, queues, state

MOST_QUEUES, MOST_PER_POD = 256, 16


def rocketmq_loads(strategy: Strategy, queues: int) -> Loads:
    """Return the most queues of one member under a RocketMQ strategy, for 1 to ``queues + 16`` members."""
    listed = [MessageQueue("t", "room@b", number) for number in range(queues)]
    return largest_loads(strategy, [(listed, np.ones(queues))], queues + MOST_PER_POD)


def kafka_loads(assignor: str, partitions: int) -> Loads:
    """Return the same under a Kafka assignor, by the assignor's own answers."""
    owners = (
        ASSIGNORS[assignor](equal_group(Topics((partitions,)), members)).owners
        for members in range(1, partitions + MOST_PER_POD + 1)
    )
    return np.array([np.bincount(of_all).max() for of_all in owners], dtype=np.float64)


LARGEST = {
    "AVG": lambda queues: rocketmq_loads(Averagely(), queues),
    "AVG_BY_CIRCLE": lambda queues: rocketmq_loads(AveragelyByCircle(), queues),
    "MACHINE_ROOM": lambda queues: rocketmq_loads(MachineRoom(frozenset({"room"})), queues),
    "range": lambda queues: kafka_loads("range", queues),
    "roundrobin": lambda queues: kafka_loads("roundrobin", queues),
}


@pytest.mark.parametrize("strategy", LARGEST)
def test_no_dominated_count_of_pods_is_offered_and_none_that_helps_is_left_out(strategy: str) -> None:
    """Every group of up to 256 queues and 16 members a pod, against what the strategy really gives the busiest."""
    for count in range(1, MOST_QUEUES + 1):
        largest = LARGEST[strategy](count)
        for per_pod in range(1, MOST_PER_POD + 1):
            of_pods = largest[per_pod - 1 :: per_pod]
            expected = undominated_counts(range(1, len(of_pods) + 1), of_pods)
            # Beyond, each member has one queue at most: a count among them would be dominated by the last one.
            offered = useful_counts((count,), 1, len(of_pods) + 2, per_pod)
            assert offered == expected, (count, per_pod)


def test_24_queues_and_4_members_a_pod_offer_3_and_6_pods_but_not_4_and_8() -> None:
    taken = podded(3, 4, 24)
    assert candidate_counts(taken, 1, 12) == (1, 2, 3, 6)
    outcome = simulate_candidate(taken, 6, "AVG")
    assert (outcome.count, outcome.members, outcome.members_per_pod, outcome.is_useful) == (6, 24, 4, True)
    assert simulate_candidate(taken, 3, "AVG").is_current
    assert not simulate_candidate(taken, 4, "AVG").is_useful


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
@pytest.mark.parametrize(("pods", "per_pod", "queues"), [(4, 3, 24), (5, 2, 17), (6, 4, 9)])
def test_what_a_stop_moves_is_exact_over_every_choice_of_whole_pods(
    strategy: str, pods: int, per_pod: int, queues: int
) -> None:
    taken = podded(pods, per_pod, queues, strategy=strategy)
    homes = {link.client: link.pod for link in taken.pods}
    for left in range(1, pods):
        outcome = simulate_candidate(taken, left, strategy)
        moved = [
            leaving(taken).range_of([client for client in taken.clients if homes[client] in stay]).fewest
            for stay in combinations(sorted(set(homes.values())), left)
        ]
        assert (outcome.moved_fewest, outcome.moved_most) == (min(moved), max(moved))
        shown = [homes[load.client] for load in outcome.loads]
        assert all(shown.count(pod) == per_pod for pod in shown), "a pod's members leave together"
        assert any("of pods" in text or "pod" in text for text in outcome.unknowns)


def test_without_known_pods_the_range_holds_for_every_choice_and_a_plan_names_nobody() -> None:
    taken = podded(3, 4, 24)
    exact, blind = (simulate_candidate(one, 2, "AVG") for one in (taken, replace(taken, pods=())))
    assert exact.moved_fewest is not None
    assert exact.moved_most is not None
    assert blind.moved_fewest is not None
    assert blind.moved_most is not None
    assert blind.moved_fewest <= exact.moved_fewest <= exact.moved_most <= blind.moved_most
    assert any("which members run in one pod" in text for text in blind.unknowns)
    plan = decided(replace(taken, pods=(), capacity=Capacity(500.0, "stated")), OBJECTIVE).plan
    assert plan is not None
    (stop,) = [step for step in plan.steps if isinstance(step, StopConsumers)]
    assert (stop.from_replicas, stop.to_replicas, stop.preferred_victims) == (3, 1, ())


def test_the_forecast_of_a_stop_takes_a_pods_members_together() -> None:
    taken = podded(3, 4, 24)
    outcome = simulate_candidate(taken, 2, "AVG")
    change = rocketmq.request(outcome, taken, ENDS[0]).change
    homes = {link.client: link.pod for link in taken.pods}
    assert isinstance(change, Leave)
    assert (len(change.clients), len({homes[client] for client in change.clients})) == (4, 1)
    grown = rocketmq.request(simulate_candidate(taken, 6, "AVG"), taken, ENDS[0]).change
    assert isinstance(grown, Join)
    assert len(grown.clients) == 12


@pytest.mark.parametrize("per_pod", [2, 3, 4, 7, 16])
@pytest.mark.parametrize(("queues", "capacity"), [(24, 30.0), (100, 25.0), (256, 40.0), (24, 500.0)])
def test_every_plans_replicas_are_pods_and_its_members_are_all_of_theirs(
    per_pod: int, queues: int, capacity: float
) -> None:
    taken = podded(3, per_pod, queues, capacity=capacity)
    world = decided(taken, replace(OBJECTIVE, highest=100))
    decision, plan = world.record.decision, world.plan
    assert decision.current == 3
    if plan is None:
        return
    assert f"({3 * per_pod} to {decision.target * per_pod} consumers)" in decision.reason
    assert f"Each pod runs {per_pod} consumers, which start and stop together." in list(explain_plan(plan))
    assert len(plan.forecast.owners_after) == decision.target * per_pod
    counts = [step.to_replicas for step in plan.steps if isinstance(step, StartConsumers | StopConsumers)]
    settled = [step.members for step in plan.steps if isinstance(step, AwaitSettled)]
    assert counts[-1] == decision.target == plan.target_replicas
    assert settled == [count * per_pod for count in counts]
    assert [step.replicas for step in plan.steps if isinstance(step, AwaitReady)] in ([], counts)


def test_an_unknown_number_of_members_a_pod_is_said_and_members_are_counted() -> None:
    taken = replace(podded(3, 4, 24), members_per_pod=None, members_per_pod_source="4 members share address 10.1.0.10")
    outcome = simulate_candidate(taken, 12, "AVG")
    assert outcome.is_current
    assert any("how many members a pod runs" in text for text in outcome.unknowns)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky", "uniform"])
def test_pods_of_a_kafka_group_leave_and_come_with_all_of_their_consumers(assignor: str) -> None:
    taken = kafka_pods(assignor)
    homes = {link.client: link.pod for link in taken.pods}
    assert candidate_counts(taken, 1, 12) == (1, 2, 3, 6)
    fewer, more = (simulate_candidate(taken, count, assignor) for count in (2, 6))
    stayed = [homes[load.client] for load in fewer.loads]
    assert sorted(stayed.count(pod) for pod in set(stayed)) == [4, 4]
    of_pod = {pod: [member for member in taken.clients if homes[member] != pod] for pod in set(homes.values())}
    moved = [leaving(taken).range_of(others).fewest for others in of_pod.values()]
    assert (fewer.moved_fewest, fewer.moved_most) == (min(moved), max(moved))
    if assignor in ("cooperative-sticky", "uniform"):
        assert moved == [8, 8, 8], "what a pod of the three owned, as the others keep theirs"
    assert (more.count, more.members, more.largest_share) == (6, 24, 1)
    (leave,) = {len(kafka.request(fewer, taken, end).change.members) for end in ENDS}
    (join,) = {len(kafka.request(more, taken, end).change.members) for end in ENDS}
    assert (leave, join) == (4, 12)


def kafka_pods(assignor: str) -> GroupSnapshot:
    """Return a settled Kafka group of 24 partitions on 3 pods with 4 consumers each, named as Spring names them."""
    names = [f"pod-{pod}-{number}" for pod in "abc" for number in range(4)]
    members = tuple(KafkaMember(f"{name}-uuid", name, f"10.0.0.{name[4]}", topics=("t",)) for name in names)
    ids = tuple(member.member_id for member in members)
    owners = [ids[number // 2] if assignor == "range" else ids[number % 12] for number in range(24)]
    states = tuple(
        replace(state(queues()[0]), queue=TopicPartition("t", number), owner=owner)
        for number, owner in enumerate(owners)
    )
    links = tuple(MemberPod(member, member.rpartition("-uuid")[0][:5]) for member in ids)
    timing = replace(TIMING, settings=()) if assignor == "uniform" else TIMING
    made = kafka_snapshot(assignor, timing, clients=ids, members=members, queues=states, pods=links)
    return replace(made, members_per_pod=4, members_per_pod_source="made so")
