"""What a plan says of its change holds whenever it is carried out: at the backlog of now, and once none is left."""

from dataclasses import replace

import pytest

from planner.decision.pace import worked_off, works_off
from planner.model.snapshot import GroupSnapshot
from planner.rollout.plan_forecast import span_backlogs
from planner.simulation.candidates import simulate_candidate
from planner.simulation.outcome import CandidateOutcome, Transition
from planner.simulation.transition import with_transition
from tests.builders import decided, kafka_snapshot, snapshot

WAITING = 500


def behind(taken: GroupSnapshot, lag: int = WAITING, consumed: float = 10.0) -> GroupSnapshot:
    """Return the group with so many messages waiting in each queue, and what it consumes of each in a second."""
    states = [replace(state, lag=lag, consumption_rate=consumed) for state in taken.queues]
    return replace(taken, queues=tuple(states))


def forecast(taken: GroupSnapshot, count: int = 3) -> CandidateOutcome:
    return with_transition(simulate_candidate(taken, count, taken.strategy or ""), taken, "d")


def costs(outcome: CandidateOutcome) -> Transition:
    assert outcome.transition is not None
    return outcome.transition


@pytest.mark.parametrize("taken", [behind(kafka_snapshot()), behind(snapshot())], ids=["kafka", "rocketmq"])
def test_the_cost_spans_the_backlog_of_now_and_none(taken: GroupSnapshot) -> None:
    """Red where a plan that waits for its approval is judged by what waited when it was made (docs/soak.md)."""
    count = 1 if taken.system == "kafka" else 2
    now, later = costs(forecast(taken, count)), costs(forecast(worked_off(taken), count))
    assert now.settle_s is not None
    assert later.settle_s is not None
    spanning = span_backlogs(forecast(taken, count), taken, "d")
    told = costs(spanning).settle_s
    assert told is not None
    assert later.settle_s.p50 < now.settle_s.p50
    assert told.p05 <= later.settle_s.p50 < now.settle_s.p50 <= told.p95
    total = WAITING * len(taken.queues)
    assert spanning.unknowns[-1].startswith(f"how much waits when the plan is carried out: {total:,} messages now")


@pytest.mark.parametrize(
    ("taken", "is_so"),
    [
        (behind(snapshot()), True),
        (behind(snapshot(), lag=40), False),  # 4 s of arrivals: done perhaps, and not committed
        (behind(snapshot(), consumed=9.0), False),
        (behind(snapshot(), consumed=0.0), False),
        (behind(snapshot(rates=dict.fromkeys([state.queue for state in snapshot().queues]))), False),
    ],
    ids=["works off", "uncommitted", "falls behind", "stands still", "unknown rates"],
)
def test_a_backlog_is_worked_off_where_no_less_is_consumed_than_comes_in(taken: GroupSnapshot, is_so: bool) -> None:
    assert works_off(taken) is is_so
    if not is_so:
        before = simulate_candidate(taken, 2, "AVG")
        assert span_backlogs(before, taken, "d") is before


def test_what_waits_in_a_queue_that_stands_still_waits_for_ever() -> None:
    taken = behind(snapshot())
    blocked = taken.queues[0].queue
    left = worked_off(replace(taken, blocked_queues=(blocked,)))
    assert {state.queue: state.lag for state in left.queues if state.lag} == {blocked: WAITING}


def test_the_plan_of_a_group_that_works_a_backlog_off_says_so() -> None:
    quick = snapshot(capacity=400.0)
    calm, busy = decided(quick, trials=40).plan, decided(behind(quick), trials=40).plan
    assert calm is not None
    assert busy is not None
    assert not any("how much waits" in unknown for unknown in calm.forecast.unknowns)
    assert sum("how much waits" in unknown for unknown in busy.forecast.unknowns) == 1


def test_the_plan_of_a_group_that_falls_behind_says_how_fast() -> None:
    """Red where a plan that waits an hour for its approval is taken at the word of what waited when it was made."""
    busy = decided(behind(snapshot(), lag=5_000, consumed=8.0), trials=40).plan
    assert busy is not None
    queues = len(snapshot().queues)
    assert [unknown for unknown in busy.forecast.unknowns if "how much waits" in unknown] == [
        f"how much waits when the plan is carried out: {5_000 * queues:,} messages now, and {120 * queues:,} messages "
        "more with each minute until its approval; pause, duplicates and settling are for those of now"
    ]
