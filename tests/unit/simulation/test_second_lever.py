"""What more threads or more consumers a process would do instead of pods, and when neither is advised."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.plan import DECISION, PLAN
from planner.documents.policy import parse_policy
from planner.model.snapshot import Capacity, ClientSetup, GroupSnapshot
from planner.pipeline import decide, plan
from planner.rollout.explain import explain_hold, explain_plan
from planner.simulation.candidates import simulate_candidate
from planner.simulation.rocketmq.threads import pool_of, threads_instead
from planner.simulation.second_lever import next_useful, second_lever
from tests.builders import kafka_snapshot, snapshot
from tests.sample_builders import POLICY

FULL: dict[str, Any] = {"threads": 20, "call_s": 0.2, "handled_per_s": 100.0}
"""100 messages a second with 0.2 s each keep 20 threads busy."""


def client(name: str = "c", settings: tuple[tuple[str, str], ...] = (), **changes: Any) -> ClientSetup:
    made = ClientSetup(name, "JAVA", "5.5.0", orderly=False, threads=20, call_s=0.01, settings=settings)
    return replace(made, **changes)


def said(setup: ClientSetup, owned: int = 8, factor: float = 1.5) -> str:
    return threads_instead("Instead of 2 more pods", [setup], {setup.client: owned}, factor)


def test_a_full_pool_would_serve_in_proportion_at_most() -> None:
    sentence = said(client(**FULL))
    assert sentence.startswith("Instead of 2 more pods: 30 instead of 20 threads a member would serve at most 150 ")
    assert "(all 20 are busy now), if what the listener calls and the processors keep up" in sentence
    assert "consumeThreadMin and consumeThreadMax 30" in sentence
    assert "larger batches (consumeMessageBatchMaxSize, now 1, at most 32) help is unknown" in sentence


def test_a_single_thread_is_not_called_all_one() -> None:
    sentence = said(client(threads=1, call_s=0.05, handled_per_s=20.0))
    assert sentence.startswith("Instead of 2 more pods: 2 instead of 1 threads a member would serve at most 40 ")
    assert "(the only one is busy now), if what" in sentence


def test_a_pool_with_free_threads_is_no_reason_for_more() -> None:
    sentence = said(client(threads=20, call_s=0.01, handled_per_s=600.0, cached_messages=0))
    assert sentence.startswith("More threads would not help: at most 6 of a member's 20 threads were busy at a time")
    assert sentence.endswith("its cache is empty, so that it waits for messages")


def test_nothing_is_known_where_no_client_reports_its_calls_or_their_messages() -> None:
    assert said(client(call_s=None)).startswith("What more threads would do is unknown: no member reports")
    batches = client("c", (("consumeMessageBatchMaxSize", "16"),), threads=20, call_s=0.2, handled_per_s=400.0)
    assert said(batches).startswith("What more threads would do is unknown: 5 to 20 of 20 are busy")
    full = replace(batches, handled_per_s=1600.0)
    assert said(full).startswith("Instead of 2 more pods: 30 instead of 20 threads")


@pytest.mark.parametrize(
    ("batch", "pulled", "real"), [(20, 32, 16), (32, 32, 32), (64, 32, 32), (1, 32, 1), (3, 8, 8 / 3)]
)
def test_a_pull_is_cut_into_equal_calls(batch: int, pulled: int, real: float) -> None:
    settings = (("consumeMessageBatchMaxSize", str(batch)), ("pullBatchSize", str(pulled)))
    pool = pool_of(client("c", settings, threads=1000, call_s=0.1, handled_per_s=960.0), 8)
    assert pool is not None
    assert (pool.least_busy, pool.most_busy) == (pytest.approx(96.0 / real), 96.0)


def test_in_order_a_queue_has_one_thread_and_no_more_help_than_there_are_queues() -> None:
    ordered = client(orderly=True, threads=20, call_s=0.1, handled_per_s=40.0)
    assert "it has work for 4 of its 20 threads" in said(ordered, owned=4)
    few = client(orderly=True, threads=4, call_s=0.1, handled_per_s=40.0)
    assert "6 instead of 4 threads a member would serve at most 60 " in said(few, owned=16)
    assert "5 instead of 4 threads a member would serve at most 50 " in said(few, owned=5)


def test_pauses_between_pulls_bound_what_threads_can_do() -> None:
    paused = client("c", (("pullInterval", "1000"), ("pullBatchSize", "10")), **FULL)
    assert "(pullInterval) let a member fetch at most 100 messages/s" in said(paused, owned=10)
    assert "30 instead of 20 threads a member would serve at most 120 " in said(paused, owned=12)


def test_no_client_has_more_than_a_thousand_threads() -> None:
    assert "1000 instead of 900 threads" in said(client(threads=900, call_s=1.0, handled_per_s=900.0))


def busy_group(setup: dict[str, Any]) -> GroupSnapshot:
    """Return three members on 16 queues of 18 messages/s, which can do 100 messages/s each: 6, 5 and 5 queues."""
    made = snapshot(rates={}, capacity=100.0)
    states = tuple(replace(state, arrival_rate=18.0, upper_arrival_rate=18.0) for state in made.queues)
    return replace(made, queues=states, setups=tuple(client(name, **setup) for name in made.clients))


def test_the_sentence_is_about_the_pods_in_question() -> None:
    taken = busy_group(FULL)
    staying, more = (simulate_candidate(taken, count, "AVG") for count in (3, 4))
    assert next_useful((staying, more), 3) is more
    # 6 queues are 108 messages/s, 4 are 72: a member has to do half as much again.
    sentence = second_lever(taken, staying, more)
    assert sentence is not None
    assert sentence.startswith("Instead of 1 more consumer: 30 instead of 20 threads")
    without = second_lever(taken, staying, None, 0.9)
    assert without is not None
    assert without.startswith("Without another consumer: 24 instead of 20 threads")


def test_nothing_is_said_of_a_group_that_needs_no_more() -> None:
    taken = snapshot()
    assert second_lever(taken, simulate_candidate(taken, 3, "AVG"), None) is None
    assert second_lever(taken, simulate_candidate(taken, 3, "AVG"), simulate_candidate(taken, 2, "AVG")) is None


def kafka_group(pods: int, per_pod: int, partitions: int, **changes: Any) -> GroupSnapshot:
    made = kafka_snapshot(**changes)
    names = [f"{pod}-{number}" for pod in "abcdefgh"[:pods] for number in range(per_pod)]
    members = tuple(replace(made.members[0], member_id=name, client_id=name) for name in names)
    topic = made.queues[0].queue
    states = tuple(
        replace(made.queues[0], queue=replace(topic, partition=number), owner=names[number * len(names) // partitions])  # type: ignore[arg-type]
        for number in range(partitions)
    )
    return replace(made, clients=tuple(names), members=members, queues=states, members_per_pod=per_pod)


def instead(taken: GroupSnapshot, count: int) -> str | None:
    staying, chosen = (simulate_candidate(taken, number, "range") for number in (taken.count, count))
    used = replace(staying, utilisation=0.95)
    return second_lever(taken, used, chosen)


def test_more_kafka_consumers_a_process_are_bounded_by_the_partitions() -> None:
    sentence = instead(kafka_group(2, 2, 12), 3)
    assert sentence is not None
    assert sentence.startswith("Instead of 1 more pod: 3 instead of 2 consumers a process (Spring: concurrency)")
    assert "leave the busiest 2 instead of 3 partitions and so serve at most 1.5 times as much" in sentence
    assert "max.poll.records changes nothing" in sentence
    full = second_lever(
        kafka_group(2, 2, 4), replace(simulate_candidate(kafka_group(2, 2, 4), 2, "range"), utilisation=0.9), None
    )
    assert full == "More consumers a process would not help: the busiest would keep 1 partition"


def test_kafka_members_that_share_a_limit_or_have_time_are_no_reason_for_more() -> None:
    limit = Capacity(100.0, "measured", 95.0, 105.0, 5, pod_messages_per_s=120.0, pod_low=110.0, pod_source="measured")
    sentence = instead(kafka_group(2, 2, 12, capacity=limit), 3)
    assert sentence == (
        "More consumers a process would not help: the 2 of a pod together did 120 messages/s and one alone 100: they "
        "share a limit"
    )
    taken = kafka_group(2, 2, 12)
    idle = replace(simulate_candidate(taken, 2, "range"), utilisation=0.3)
    more = second_lever(taken, idle, simulate_candidate(taken, 3, "range"))
    assert more == "More consumers a process would not help: the busiest is used at 30%"
    assert instead(replace(taken, members_per_pod=None), 6) is None


def test_a_partition_that_is_more_than_one_consumer_can_do_is_no_reason_for_more() -> None:
    taken = kafka_group(2, 2, 12)
    hot = taken.data_queues[0]
    states = tuple(replace(one, upper_arrival_rate=160.0) if one is hot else one for one in taken.queues)
    more = instead(replace(taken, queues=states), 3)
    assert more == f"More consumers a process would not help: partition {hot.queue} alone takes 160% of what one can do"


def test_snapshots_of_clients_that_report_no_calls_keep_their_digest() -> None:
    body = SNAPSHOT.body(snapshot())
    assert not {"handled_per_s", "cached_messages"} & {name for setup in body["setups"] for name in setup}


def test_a_plan_and_its_words_have_the_sentence_and_a_decision_without_it_keeps_its_digest() -> None:
    taken, policy = busy_group(FULL), parse_policy(POLICY, "policy.yaml")
    outcomes = tuple(simulate_candidate(taken, count, "AVG") for count in (3, 4, 6))
    record = decide(taken, outcomes, policy)
    made = plan(taken, record, policy, outcomes)
    assert made is not None
    assert made.second_lever is not None
    assert made.second_lever.startswith(f"Instead of {made.target_replicas - 3} more consumer")  # type: ignore[operator]
    assert f"{made.second_lever}." in explain_plan(made, is_short=True)
    assert PLAN.parse(PLAN.document(made, "made"), "made").second_lever == made.second_lever
    assert "secondLever" in DECISION.spec(record)
    assert "secondLever" not in DECISION.spec(replace(record, second_lever=None))


@pytest.mark.parametrize("has_lever", [True, False])
def test_a_hold_has_the_sentence_unless_its_data_is_doubtful(has_lever: bool) -> None:
    taken = busy_group(FULL)
    policy = parse_policy(POLICY.replace("maxReplicas: 16", "maxReplicas: 3"), "policy.yaml")
    outcomes = tuple(simulate_candidate(taken, count, "AVG") for count in (1, 2, 3))
    record = decide(taken, outcomes, policy, taken.at if has_lever else taken.at + timedelta(days=1))
    assert record.decision.is_hold, record.decision.reason
    assert (record.second_lever is not None) is has_lever, record
    assert (f"{record.second_lever}." in explain_hold(record)) is has_lever
