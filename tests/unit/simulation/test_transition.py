"""What an outcome says of the change to it: pause, duplicates, burst, settling, or why they are not known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import pipeline
from planner.allocation.custom import CheckedStrategy
from planner.decision.choose import decide
from planner.decision.decision import HoldCause
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.forecast import read_request
from planner.forecast import run_trials
from planner.forecast.kafka.request.changes import Join as KafkaJoin
from planner.forecast.kafka.request.changes import Leave as KafkaLeave
from planner.forecast.rocketmq.request.changes import Client, Join, Leave
from planner.forecast.rocketmq.request.settings import Settings
from planner.forecast.trials import Totals
from planner.model.membership import KafkaMember, OtherGroup
from planner.model.snapshot import Capacity, GroupSnapshot
from planner.simulation.bounds import LOWER
from planner.simulation.candidates import simulate_candidate
from planner.simulation.group_model import group_model
from planner.simulation.outcome import NO_TRANSITION, CandidateOutcome, LongTail, Seconds, Transition
from planner.simulation.transition import _share_trials, _transition, seed_of, transition_requests, with_transition
from tests.builders import AT, OBJECTIVE, TIMING, clients, kafka_snapshot, queues, setups, snapshot

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


def test_a_forecast_names_the_other_groups_of_the_same_clients() -> None:
    taken = exact()
    shared = replace(taken, other_groups=(OtherGroup("mails", taken.clients[:2]),))
    (left_out,) = set(foreseen(shared, 4).unknowns) - set(foreseen(taken, 4).unknowns)
    assert left_out.startswith(
        "what the rebalances of mails do to this group, and this change to them: 2 clients of this group are members "
        "there, too, and one client (MQClientInstance) looks after all of them"
    )
    assert SNAPSHOT.parse(SNAPSHOT.dump(shared), "here") == shared
    assert b"other_groups" not in SNAPSHOT.dump(taken), "the digest of a group without any stays as it was"


@pytest.mark.parametrize(("count", "kind"), [(5, Join), (2, Leave)])
def test_the_change_is_the_one_that_planner_forecast_plays(count: int, kind: type) -> None:
    taken = exact()
    outcome = foreseen(taken, count)
    (request,) = transition_requests(simulate_candidate(taken, count, "AVG"), taken, DIGEST, 60)
    assert isinstance(request.change, kind)
    answer = run_trials(request).document()
    assert outcome.transition is not None
    (body,) = OUTCOMES.body((outcome,))
    transition = body["transition"]
    tails = {name: figure.pop("tail", None) for name, figure in transition.items() if figure}
    assert transition == {name: answer["total"][name] for name in transition}
    assert transition["pause_s"]["p95"] > 0
    expected = {name: tail["share"] for name, tail in answer.get("tails", {}).items()}
    assert {name: tail["share"] for name, tail in tails.items() if tail} == expected


def test_newcomers_have_no_names_and_the_usual_threads() -> None:
    (request,) = transition_requests(simulate_candidate(exact(), 5, "AVG"), exact(), DIGEST)
    assert request.change.clients == (Client(None, 20, orderly=False),) * 2


def test_those_leave_whose_absence_the_outcome_shows() -> None:
    taken = exact()
    outcome = simulate_candidate(taken, 1, "AVG")
    (request,) = transition_requests(outcome, taken, DIGEST)
    (load,) = outcome.loads
    assert sorted([*request.change.clients, load.client]) == list(taken.clients)


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
    assert (lower.service_time_s, upper.service_time_s) == (0.05, 0.5)
    assert (lower.trials, upper.trials) == (31, 30)
    assert lower.seed != upper.seed
    alike = known(exact(), 2).duplicates
    mixed = known(taken, 2).duplicates
    assert alike.p95 < mixed.p95


def test_a_strategy_of_a_users_own_is_no_interval() -> None:
    """Each end of what is known builds it once more, and two of its objects are not equal."""
    (request,) = transition_requests(simulate_candidate(exact(), 4, "AVG"), exact(), DIGEST)
    lower, upper = (replace(request, strategy=CheckedStrategy(object())) for _ in range(2))  # type: ignore[arg-type]
    assert lower != upper
    assert len(_share_trials(lower, upper, 1, 60)) == 1


def test_the_upper_rate_is_the_upper_end() -> None:
    lower, upper = transition_requests(simulate_candidate(snapshot(), 4, "AVG"), snapshot(), DIGEST)
    assert set(lower.rates) == {10.0}
    assert set(upper.rates) == {12.0}


def test_retry_queues_are_left_out() -> None:
    retry = queues("%RETRY%billing", each=1)
    taken = snapshot((*queues(), *retry))
    lower, _ = transition_requests(simulate_candidate(taken, 4, "AVG"), taken, DIGEST)
    assert len(lower.queues) == len(queues())


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
        assert request.consumer == "lite_pull"
        assert {client.threads for client in request.clients} == {1}
        assert request.settings.given["autoCommitIntervalMillis"] == 5000
    seldom, often = known(taken, 2).duplicates, known(polling(autoCommitIntervalMillis="1000"), 2).duplicates
    assert seldom.p50 > 3 * often.p50 > 3 * known(exact(), 2).duplicates.p50
    assert any("how the applications poll: taken to be" in word for word in foreseen(taken, 2).unknowns)
    assert not any("how the applications poll" in word for word in foreseen(exact(), 2).unknowns)


@pytest.mark.parametrize(
    ("taken", "why"),
    [
        (polling(autoCommit="false"), "commit by themselves (autoCommit false)"),
        (broken(settings=POLLS[:1]), "report no autoCommit: they are of DefaultMQPullConsumer"),
        (
            mixed(settings=(("PROP_CONSUME_TYPE", "CONSUME_POP"), *POLLS[1:])),
            "consume by CONSUME_POP: the forecast knows push and lite pull",
        ),
        (replace(exact(), setups=()), "does not have how its clients are set up"),
        (one_queue(arrival_rate=None, upper_arrival_rate=None), "arrival rate of queue orders/broker-a/0 is unknown"),
        (one_queue(lag=None), "lag of queue orders/broker-a/0 is unknown"),
        (broken(version=None), "version is older than 4.9 or unknown"),
        (broken(threads=None), "no member reports its threads"),
        (broken(threads=0), "clients[0].threads: found 0, expected a whole number from 1 to 1000"),
        (broken(orderly=None), "no member reports its order"),
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
    assert (lower.service_time_s, upper.service_time_s) == (0.2, 0.25)


def test_silent_members_and_brokers_are_named() -> None:
    outcome = foreseen(replace(mixed(threads=None, call_s=None, settings=()), notifies_changes=None), 4)
    assert outcome.transition is not None
    assert "how 1 of 3 members are set up: taken to be like the others" in outcome.unknowns
    assert any(unknown.startswith("whether the brokers notify members") for unknown in outcome.unknowns)


def test_kafka_without_timing_is_unknown_by_name() -> None:
    assert "state them in the policy's spec.timing" in why_not(kafka_snapshot(timing=None), 3, "range")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "uniform"])
def test_the_change_of_a_kafka_group_is_the_one_that_planner_forecast_plays(strategy: str) -> None:
    timing = replace(TIMING, settings=()) if strategy == "uniform" else TIMING
    taken = kafka_snapshot(strategy, timing)
    for count, kind in ((3, KafkaJoin), (1, KafkaLeave)):
        requests = transition_requests(simulate_candidate(taken, count, strategy), taken, DIGEST, 60)
        assert [type(request.change) for request in requests] == [kind, kind]
        assert {partition.rate for request in requests for partition in request.partitions["t"]} == {10.0, 12.0}
        alone = run_trials(replace(requests[0], trials=500)).document()["total"]
        pause = known(taken, count, strategy).pause_s
        assert pause is not None
        assert pause.p50 == pytest.approx(alone["pause_s"]["p50"], rel=0.5, abs=0.1)


def test_a_kafka_group_begins_with_what_its_members_own() -> None:
    taken = kafka_snapshot()
    (request, _) = transition_requests(simulate_candidate(taken, 3, "range"), taken, DIGEST)
    assert [member.owned for member in request.members] == [(("t", 0), ("t", 1)), (("t", 2), ("t", 3))]
    assert [member.id for member in request.change.members] == [None]
    assert request.settings.given == {"session.timeout.ms": 10_000}


def test_the_capacity_tells_the_time_of_a_record_where_the_policy_does_not() -> None:
    silent = replace(TIMING, record_s=None)
    learned = kafka_snapshot(timing=silent, capacity=Capacity(200.0, "learned", low=100.0, high=250.0, observations=9))
    lower, upper = transition_requests(simulate_candidate(learned, 3, "range"), learned, DIGEST)
    assert (lower.service_time_s, upper.service_time_s) == (1 / 250, 1 / 100)
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


def test_a_few_late_trials_are_a_tail_of_the_figure_and_outcomes_without_one_stay_as_they_were() -> None:
    settled = np.array([2.0] * 97 + [30.0] * 3)
    still = np.zeros(100)
    totals = Totals(still, still, still, still, settled, still, still.astype(int))
    assert _transition(totals).settle_s == Seconds(2.0, 2.0, 2.0, LongTail(0.03, 2.0, 2.0, 30.0, 30.0))
    (body,) = OUTCOMES.body((replace(foreseen(exact(), 4), transition=_transition(totals)),))
    assert body["transition"]["pause_s"] == {"p05": 0.0, "p50": 0.0, "p95": 0.0}
    assert body["transition"]["settle_s"]["tail"]["share"] == 0.03
    (read,) = OUTCOMES.validate([body], "outcomes.json")
    assert read.transition == _transition(totals)


def test_a_capacity_that_may_be_zero_gives_no_load_no_cost_and_no_decision() -> None:
    """As snapshots of an earlier release have it: red where a rate is divided by it, or the mean stands for it."""
    taken = snapshot(setups=setups(clients(3), call_s=None), capacity=None)
    taken = replace(taken, capacity=Capacity(50.0, "measured", low=0.0, high=120.0, observations=3))
    outcome = with_transition(simulate_candidate(taken, 4, "AVG"), taken, "digest", 4)
    assert (outcome.utilisation, outcome.keeps_up, outcome.transition) == (None, None, None)
    assert "allows for none in a second" in outcome.unknowns[-1]
    assert decide(taken, [outcome], OBJECTIVE, AT).hold_cause is HoldCause.UNKNOWN_CAPACITY


def test_a_snapshot_makes_the_request_that_its_document_is_read_into() -> None:
    taken = exact()
    client = {"threads": 20, "orderly": False}
    document = {
        "system": "rocketmq",
        "versions": dict.fromkeys(("client", "broker"), "5.5.0"),
        "group": taken.group,
        "strategy": "AVG",
        "queues": [
            {
                "topic": q.queue.topic,
                "broker": q.queue.place[-1],
                "queue_id": q.queue.number,
                "rate": 10.0,
                "lag": q.lag,
            }
            for q in taken.data_queues
        ],
        "clients": [{"id": name, **client} for name in taken.clients],
        "service_time_s": 0.05,
        "settings": {},
    }
    model, present = group_model(taken), list(taken.clients)
    roll = {"kind": "rolling_update", "max_surge": 1, "max_unavailable": 0, "ready_s": 5.0, "grace_s": 9.0}
    for made, read in (
        (None, {"kind": "join", "clients": [{"id": None, **client}] * 2}),
        (
            model.leave_change(taken.clients[:1], "crash"),
            {"kind": "leave", "how": "crash", "clients": [taken.clients[0]]},
        ),
        (model.roll_change(1, 0, ready_s=5.0, min_ready_s=0.0, grace_s=9.0), roll),
        (
            model.restart_change(present, "graceful", 2.0, 1.0),
            {"kind": "restart", "how": "graceful", "interval_s": 2, "stagger_s": 1, "clients": present},
        ),
    ):
        outcome = simulate_candidate(taken, 5, "AVG")
        assert replace(model.request(outcome, LOWER, made), settings=Settings({})) == read_request(
            {**document, "change": read}
        )
