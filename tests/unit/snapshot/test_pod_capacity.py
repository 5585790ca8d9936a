"""What one pod can do is another number than what its members can do alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.documents.policy import parse_policy
from planner.errors import DocumentError
from planner.history.busy import ClientSpan
from planner.model.snapshot import Capacity
from planner.simulation.candidates import simulate_candidate
from planner.snapshot.pod_capacity import STATED, pod_spans, with_pod_capacity
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.today import under_policy
from tests.builders import AT, podded
from tests.sample_builders import POLICY

PODS = {"a": "p", "b": "p", "c": "q", "d": "q"}


def span(client: str, begin_s: float, seconds: float, rate: float, *, is_busy: bool = True) -> ClientSpan:
    return ClientSpan(client, AT + timedelta(seconds=begin_s), seconds, round(rate * seconds), is_busy, slack_s=1.0)


def test_a_pods_capacity_is_seen_where_all_of_its_members_had_work_at_once() -> None:
    spans = [
        span("a", 0, 60, 80.0),  # alone: b has none
        span("b", 0, 60, 5.0, is_busy=False),
        span("a", 60, 60, 50.0),
        span("b", 80, 60, 50.0),
        span("c", 0, 60, 50.0),
        span("d", 30, 60, 50.0),
    ]
    together = [(one.client, one.seconds, one.rate) for one in pod_spans(spans, PODS)]
    assert together == [("p", 40.0, 100.0), ("q", 30.0, 100.0)]
    learned = with_pod_capacity(Capacity(80.0, "measured", 78.0, 82.0), spans, PODS, 2)
    assert learned is not None
    assert (learned.messages_per_s, learned.pod_messages_per_s) == (80.0, 100.0)
    assert "2 pods whose 2 consumers all had work" in learned.pod_source
    stated = Capacity(80.0, STATED)
    assert with_pod_capacity(stated, spans, PODS, 2) == stated
    beside = learned.within_pod(2)
    assert (beside.messages_per_s, beside.high) == (50.0, 50.0)
    assert 45.0 < beside.sure_messages_per_s <= 50.0


def test_a_pod_that_was_never_seen_all_busy_teaches_nothing() -> None:
    known = Capacity(80.0, "measured")
    assert with_pod_capacity(known, [span("a", 0, 600, 80.0), span("c", 0, 600, 80.0)], PODS, 2) == known
    outcome = simulate_candidate(podded(3, 4, 24), 3, "AVG")
    assert any("what one pod can do when all of its 4 consumers are busy" in text for text in outcome.unknowns)


def test_a_pod_that_may_do_nothing_teaches_nothing() -> None:
    known = Capacity(80.0, "measured")
    rates = (1.0, 1.0, 900.0, 1.0, 1.0)
    lumps = [span(name, 60.0 * index, 60, rate) for index, rate in enumerate(rates) for name in "ab"]
    assert with_pod_capacity(known, lumps, PODS, 2) == known


def test_a_pods_limit_bounds_what_each_of_its_consumers_is_taken_to_do() -> None:
    free = podded(3, 4, 24, capacity=100.0)
    bound = replace(free, capacity=Capacity(100.0, "stated", pod_messages_per_s=160.0, pod_source="stated"))
    alone, beside = (simulate_candidate(taken, 3, "AVG").utilisation for taken in (free, bound))
    assert alone is not None
    assert beside == pytest.approx(alone * 100.0 / 40.0)


def test_a_policy_states_a_pods_capacity_alone_or_beside_a_consumers() -> None:
    def policy(capacity: str) -> SnapshotSettings:
        return parse_policy(f"{POLICY}  membersPerPod: 4\n  capacity: {capacity}\n", "p.yaml").snapshot_settings

    taken = replace(podded(3, 4, 24), capacity=None)
    alone = under_policy(taken, policy("{podMessagesPerSecond: 160}")).consumer_capacity
    assert (alone and alone.messages_per_s) == 40.0
    both = under_policy(taken, policy("{messagesPerSecond: 100, podMessagesPerSecond: 200}")).consumer_capacity
    assert (both and both.messages_per_s) == 50.0
    with pytest.raises(DocumentError, match="messagesPerSecond, podMessagesPerSecond or both"):
        policy("{}")
