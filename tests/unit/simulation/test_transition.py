"""What an outcome says of the change to it: pause, duplicates, burst, settling, or why they are not known."""

from dataclasses import replace
from typing import Any

import pytest

from planner import pipeline
from planner.documents.data import OUTCOMES
from planner.forecast import forecast
from planner.model.membership import KafkaMember
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.simulation.candidates import simulate_candidate
from planner.simulation.outcome import NO_TRANSITION, CandidateOutcome, Transition
from planner.simulation.transition import seed_of, transition_requests, with_transition
from tests.builders import TIMING, clients, kafka_snapshot, queues, setups, snapshot

DIGEST = "sha256:0"


def exact(count: int = 3, **changes: Any) -> GroupSnapshot:
    """Return a snapshot whose mean rate is its upper rate, so that every input is one number."""
    taken = snapshot(clients=clients(count), **changes)
    states = tuple(replace(one, upper_arrival_rate=one.arrival_rate) for one in taken.queues)
    return replace(taken, queues=states)


def foreseen(taken: GroupSnapshot, count: int, strategy: str = "AVG", digest: str = DIGEST) -> CandidateOutcome:
    return with_transition(simulate_candidate(taken, count, strategy), taken, digest, trials=60)


def known(taken: GroupSnapshot, count: int, strategy: str = "AVG", digest: str = DIGEST) -> Transition:
    found = foreseen(taken, count, strategy, digest).transition
    assert found is not None
    return found


def why_not(taken: GroupSnapshot, count: int = 4, strategy: str = "AVG") -> str:
    outcome = foreseen(taken, count, strategy)
    assert outcome.transition is None
    return outcome.unknowns[-1]


def test_staying_moves_nothing() -> None:
    assert foreseen(snapshot(), 3).transition == NO_TRANSITION


@pytest.mark.parametrize(("count", "kind"), [(5, "join"), (2, "leave")])
def test_the_change_is_the_one_that_planner_forecast_plays(count: int, kind: str) -> None:
    taken = exact()
    outcome = foreseen(taken, count)
    (request,) = transition_requests(simulate_candidate(taken, count, "AVG"), taken, DIGEST, 60)
    assert request["change"]["kind"] == kind
    total = forecast(request)["total"]
    assert outcome.transition is not None
    (body,) = OUTCOMES.body((outcome,))
    assert body["transition"] == {name: total[name] for name in body["transition"]}
    assert body["transition"]["pause_s"]["p95"] > 0


def test_newcomers_have_no_names_and_the_usual_threads() -> None:
    (request,) = transition_requests(simulate_candidate(exact(), 5, "AVG"), exact(), DIGEST)
    assert request["change"]["clients"] == [{"id": None, "threads": 20, "orderly": False}] * 2


def test_those_leave_whose_absence_the_outcome_shows() -> None:
    taken = exact()
    outcome = simulate_candidate(taken, 1, "AVG")
    (request,) = transition_requests(outcome, taken, DIGEST)
    (load,) = outcome.loads
    assert sorted([*request["change"]["clients"], load.client]) == list(taken.clients)


def test_running_calls_come_twice_unless_the_shutdown_waits() -> None:
    patient = (("awaitTerminationMillisWhenShutdown", "5000"),)
    hasty = known(exact(), 2).duplicates
    waiting = known(replace(exact(), setups=setups(clients(3), settings=patient)), 2).duplicates
    assert hasty.p95 > 0
    assert waiting.p95 == 0


def test_what_is_known_as_an_interval_is_sampled_at_both_ends() -> None:
    one, *others = setups(clients(3))
    taken = replace(exact(), setups=(replace(one, call_s=0.5), *others))
    lower, upper = transition_requests(simulate_candidate(taken, 4, "AVG"), taken, DIGEST, 61)
    assert (lower["service_time_s"], upper["service_time_s"]) == (0.05, 0.5)
    assert (lower["trials"], upper["trials"]) == (31, 30)
    assert lower["seed"] != upper["seed"]
    alike = known(exact(), 2).duplicates
    mixed = known(taken, 2).duplicates
    assert alike.p95 < mixed.p95


def test_the_upper_rate_is_the_upper_end() -> None:
    lower, upper = transition_requests(simulate_candidate(snapshot(), 4, "AVG"), snapshot(), DIGEST)
    assert {queue["rate"] for queue in lower["queues"]} == {10.0}
    assert {queue["rate"] for queue in upper["queues"]} == {12.0}


def test_retry_queues_are_left_out() -> None:
    retry = queues("%RETRY%billing", each=1)
    taken = snapshot((*queues(), *retry))
    lower, _ = transition_requests(simulate_candidate(taken, 4, "AVG"), taken, DIGEST)
    assert len(lower["queues"]) == len(queues())


def test_a_switch_of_strategy_is_forecast_at_once_and_says_so() -> None:
    outcome = foreseen(exact(), 3, "AVG_BY_CIRCLE")
    assert outcome.transition is not None
    assert outcome.transition.settle_s is not None
    assert outcome.transition.settle_s.p50 > 0
    assert "how fast a rollout switches the strategy" in outcome.unknowns[-1]


def test_strategy_and_count_at_once_are_two_changes() -> None:
    assert "switch the strategy first" in why_not(exact(), 4, "AVG_BY_CIRCLE")


def test_equal_inputs_give_equal_numbers_in_any_order_and_other_ones_do_not() -> None:
    taken = snapshot()
    wanted = [("AVG", count) for count in (2, 4, 5)]
    there = pipeline.simulate_candidates(taken, wanted)
    back = pipeline.simulate_candidates(taken, reversed(wanted))
    assert OUTCOMES.body(there) == OUTCOMES.body(tuple(reversed(back)))
    assert known(taken, 4) != known(taken, 4, digest="sha256:1")


def test_seeds_tell_groups_strategies_and_counts_apart() -> None:
    named = [(digest, group, name, n) for digest in "ab" for group in "ab" for name in ("AVG", "X") for n in (1, 2)]
    seeds = {seed_of(*one) for one in named}
    assert len(seeds) == len(named)
    assert all(0 <= seed < 2**63 - 1 and seed % 2 == 0 for seed in seeds)


def broken(**changes: Any) -> GroupSnapshot:
    return replace(exact(), setups=setups(clients(3), **changes))


def one_queue(**changes: Any) -> GroupSnapshot:
    taken = exact()
    first, *others = taken.queues
    return replace(taken, queues=(replace(first, **changes), *others))


def mixed(**changes: Any) -> GroupSnapshot:
    first, *others = setups(clients(3))
    return replace(exact(), setups=(replace(first, **changes), *others))


def test_members_that_pop_give_up_nothing_and_those_that_go_have_calls_that_come_twice() -> None:
    popping = exact(strategy_options={"pop_share_queues": -1})
    more, fewer = known(popping, 4), known(popping, 2)
    assert (more.pause_s, more.duplicates, fewer.pause_s) == (
        NO_TRANSITION.pause_s,
        NO_TRANSITION.duplicates,
        more.pause_s,
    )
    assert fewer.duplicates is not None
    assert fewer.duplicates.p95 > 0


def test_members_that_leave_allocation_to_the_broker_notice_a_leave_later() -> None:
    taken = exact()
    by_broker = tuple(replace(one, settings=(*one.settings, ("clientRebalance", "false"))) for one in taken.setups)
    late, usual = known(replace(taken, setups=by_broker), 2).pause_s, known(taken, 2).pause_s
    assert late is not None
    assert usual is not None
    assert late.p50 > usual.p50


POLLS = (("PROP_CONSUME_TYPE", "CONSUME_ACTIVELY"), ("autoCommit", "true"), ("autoCommitIntervalMillis", "5000"))


def polling(**more: str) -> GroupSnapshot:
    """Members as ``DefaultLitePullConsumer`` tells of itself: no threads, no order, no time of a call."""
    settings = tuple({**dict(POLLS), **more}.items())
    return broken(threads=None, orderly=False, call_s=None, settings=settings)


def test_members_that_poll_store_their_offsets_seldom_and_that_costs() -> None:
    taken = polling()
    for request in transition_requests(simulate_candidate(taken, 2, "AVG"), taken, DIGEST):
        assert request["options"] == {"consumer": "lite_pull"}
        assert {client["threads"] for client in request["clients"]} == {1}
        assert request["settings"]["autoCommitIntervalMillis"] == 5000
    seldom, often = known(taken, 2).duplicates, known(polling(autoCommitIntervalMillis="1000"), 2).duplicates
    assert seldom.p50 > 3 * often.p50 > 3 * known(exact(), 2).duplicates.p50
    assert any("how the applications poll: taken to be" in word for word in foreseen(taken, 2).unknowns)
    assert not any("how the applications poll" in word for word in foreseen(exact(), 2).unknowns)


@pytest.mark.parametrize(
    ("taken", "why"),
    [
        (polling(autoCommit="false"), "commit by themselves (autoCommit false)"),
        (broken(settings=POLLS[:1]), "tell no autoCommit: they are of DefaultMQPullConsumer"),
        (
            mixed(settings=(("PROP_CONSUME_TYPE", "CONSUME_POP"), *POLLS[1:])),
            "consume by CONSUME_POP: the forecast knows push and lite pull",
        ),
        (replace(exact(), setups=()), "does not tell how its clients are set up"),
        (one_queue(arrival_rate=None, upper_arrival_rate=None), "arrival rate of queue orders/broker-a/0 is unknown"),
        (one_queue(lag=None), "lag of queue orders/broker-a/0 is unknown"),
        (broken(version=None), "version is older than 4.9 or unknown"),
        (broken(threads=None), "no member tells its threads"),
        (broken(orderly=None), "no member tells its order"),
        (broken(language="GO"), "written in GO"),
        (broken(settings=(("PROP_CONSUME_TYPE", "CONSUME_POP"),)), "CONSUME_POP"),
        (broken(settings=(("pullBatchSize", "many"),)), "pullBatchSize many"),
        (mixed(version="4.9.8"), "clients of several kinds"),
        (mixed(orderly=True), "some members consume in order"),
        (mixed(settings=(("messageModel", "BROADCASTING"),)), "members differ in messageModel"),
        (replace(broken(call_s=None), capacity=None), "how long one message takes is unknown"),
    ],
)
def test_what_cannot_be_told_is_named(taken: GroupSnapshot, why: str) -> None:
    assert why in why_not(taken)


def test_the_capacity_tells_the_time_of_a_call_where_members_do_not() -> None:
    taken = replace(broken(call_s=None), capacity=replace(exact().capacity, low=80.0, high=100.0))  # type: ignore[type-var]
    lower, upper = transition_requests(simulate_candidate(taken, 4, "AVG"), taken, DIGEST)
    assert (lower["service_time_s"], upper["service_time_s"]) == (0.2, 0.25)


def test_silent_members_and_brokers_are_named() -> None:
    outcome = foreseen(replace(mixed(threads=None, call_s=None, settings=()), notifies_changes=None), 4)
    assert outcome.transition is not None
    assert "how 1 of 3 members are set up: taken to be like the others" in outcome.unknowns
    assert any(unknown.startswith("whether the brokers tell members") for unknown in outcome.unknowns)


def test_kafka_without_timing_is_unknown_by_name() -> None:
    assert "tell them in the policy's spec.timing" in why_not(kafka_snapshot(timing=None), 3, "range")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "uniform"])
def test_the_change_of_a_kafka_group_is_the_one_that_planner_forecast_plays(strategy: str) -> None:
    timing = replace(TIMING, settings=()) if strategy == "uniform" else TIMING
    taken = kafka_snapshot(strategy, timing)
    for count, kind in ((3, "join"), (1, "leave")):
        requests = transition_requests(simulate_candidate(taken, count, strategy), taken, DIGEST, 60)
        assert [request["change"]["kind"] for request in requests] == [kind, kind]
        assert {one["rate"] for request in requests for one in request["partitions"]["t"]} == {10.0, 12.0}
        alone = forecast({**requests[0], "trials": 500})["total"]
        pause = known(taken, count, strategy).pause_s
        assert pause is not None
        assert pause.p50 == pytest.approx(alone["pause_s"]["p50"], rel=0.5, abs=0.1)


def test_a_kafka_group_begins_with_what_its_members_own() -> None:
    taken = kafka_snapshot()
    (request, _) = transition_requests(simulate_candidate(taken, 3, "range"), taken, DIGEST)
    assert [member["owned"] for member in request["members"]] == [[["t", 0], ["t", 1]], [["t", 2], ["t", 3]]]
    assert request["change"]["clients"] == [{"id": None}]
    assert request["settings"] == {"session.timeout.ms": 10_000}


def test_the_capacity_tells_the_time_of_a_record_where_the_policy_does_not() -> None:
    silent = replace(TIMING, record_s=None)
    learned = kafka_snapshot(timing=silent, capacity=Capacity(200.0, "learned", low=100.0, high=250.0, observations=9))
    lower, upper = transition_requests(simulate_candidate(learned, 3, "range"), learned, DIGEST)
    assert (lower["service_time_s"], upper["service_time_s"]) == (1 / 250, 1 / 100)
    assert "how long one record takes is unknown" in why_not(kafka_snapshot(timing=silent, capacity=None), 3, "range")


def test_what_is_supposed_of_a_kafka_group_is_said() -> None:
    said = " ".join(foreseen(kafka_snapshot(), 1, "range").unknowns)
    assert "heartbeat.interval.ms, enable.auto.commit, auto.commit.interval.ms: taken to be the defaults" in said
    assert "session.timeout.ms" not in said
    assert "SIGTERM" in said
    assert "one member every 10 s" in " ".join(foreseen(kafka_snapshot(), 2, "cooperative-sticky").unknowns)


@pytest.mark.parametrize(
    ("taken", "why"),
    [
        (kafka_snapshot("uniform"), "session.timeout.ms: found with protocol consumer"),
        (
            kafka_snapshot(members=(KafkaMember("a", "a", "h"), KafkaMember("b", "b", "h"))),
            "does not show what it subscribes",
        ),
        (kafka_snapshot(queues=kafka_snapshot().queues[1:]), "partition 0 of topic t is not in the snapshot"),
    ],
    ids=["setting of the other protocol", "subscription", "partition"],
)
def test_what_a_kafka_forecast_lacks_is_named(taken: GroupSnapshot, why: str) -> None:
    outcome = simulate_candidate(kafka_snapshot(taken.strategy or ""), 3, taken.strategy or "")
    assert why in with_transition(outcome, taken, DIGEST).unknowns[-1]
