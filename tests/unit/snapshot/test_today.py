"""A snapshot under the policy of today."""

from dataclasses import replace

from planner.model.snapshot import Capacity
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.today import STATED, differences, under_policy, unknown_settings
from tests.builders import TIMING, decided, kafka_snapshot, snapshot

LEARNED = replace(snapshot(), capacity=Capacity(80.0, "measured once"))


def test_the_same_policy_changes_nothing() -> None:
    assert under_policy(LEARNED, SnapshotSettings()) == LEARNED
    assert list(differences(LEARNED, under_policy(LEARNED, SnapshotSettings()))) == []


def test_the_stated_capacity_of_today_counts() -> None:
    adapted = under_policy(LEARNED, SnapshotSettings(capacity_messages_per_s=40.0))
    assert adapted.capacity == Capacity(40.0, STATED)
    assert [line.split(":")[0] for line in differences(LEARNED, adapted)] == ["capacity"]
    assert decided(adapted).record.decision.target > decided(LEARNED).record.decision.target


def test_what_was_measured_stays_beside_the_figure_of_today() -> None:
    """Red where a figure that today's policy states hides that busy consumers were seen to do less."""
    measured = replace(LEARNED, capacity=Capacity(80.0, "measured once", low=78.0, high=82.0, observations=5))
    stated = under_policy(measured, SnapshotSettings(capacity_messages_per_s=200.0))
    assert stated.capacity == Capacity(200.0, STATED, measured_high=82.0, measured_source="measured once")
    again = under_policy(stated, SnapshotSettings(capacity_messages_per_s=90.0))
    assert again.capacity == Capacity(90.0, STATED, measured_high=82.0, measured_source="measured once")
    least = replace(measured, capacity=replace(measured.capacity, is_lower_bound=True))
    assert under_policy(least, SnapshotSettings(capacity_messages_per_s=200.0)).capacity == Capacity(200.0, STATED)


def test_a_capacity_that_only_an_earlier_policy_stated_is_unknown() -> None:
    assert under_policy(snapshot(), SnapshotSettings()).capacity is None
    assert decided(under_policy(snapshot(), SnapshotSettings())).record.decision.hold_cause == "UnknownCapacity"


def test_a_longer_window_is_covered_in_part_only() -> None:
    adapted = under_policy(replace(LEARNED, window_s=120.0), SnapshotSettings(window_s=600.0))
    rates = next(part for part in adapted.parts if part.name == "rates")
    assert rates.completeness == 0.2
    held = decided(adapted).record.decision
    assert held.hold_cause == "IncompleteData"
    assert "samples of 2 min for a window of 10 min" in held.reason


def test_a_shorter_window_cannot_be_cut_out_of_means() -> None:
    adapted = under_policy(LEARNED, SnapshotSettings(window_s=120.0))
    assert decided(adapted).record.decision.hold_cause == "IncompleteData"
    assert "no window of 2 min can be cut" in decided(adapted).record.decision.reason


def test_a_strategy_that_the_members_contradict_is_unknown() -> None:
    adapted = under_policy(LEARNED, SnapshotSettings(strategy="AVG_BY_CIRCLE"))
    assert adapted.strategy is None
    assert "the policy says AVG_BY_CIRCLE, but" in adapted.strategy_source


def test_a_strategy_is_taken_where_nobody_told_one() -> None:
    silent = replace(LEARNED, strategy=None, strategy_source="no member reports its allocation strategy")
    assert under_policy(silent, SnapshotSettings(strategy="AVG")).strategy == "AVG"
    assert under_policy(silent, SnapshotSettings()).strategy is None


def test_ownership_that_refuted_the_statement_refutes_it_today_too() -> None:
    refuted = replace(LEARNED, strategy=None, strategy_source="the policy states AVG, but 3 queues speak against it")
    assert under_policy(refuted, SnapshotSettings(strategy="AVG")).strategy is None
    assert under_policy(refuted, SnapshotSettings(strategy="AVG_BY_CIRCLE")).strategy == "AVG_BY_CIRCLE"
    assert under_policy(refuted, SnapshotSettings()).strategy is None


def test_the_timing_of_today_counts() -> None:
    learned = replace(kafka_snapshot(timing=None), capacity=LEARNED.capacity)
    adapted = under_policy(learned, SnapshotSettings(timing=TIMING))
    assert adapted.timing == TIMING
    assert list(differences(learned, adapted)) == ["timing: the policy's of today"]


def test_upper_rates_of_another_percentile_are_unknown() -> None:
    """Red when another percentile is silently ignored."""
    made = replace(LEARNED, percentile=95.0)
    assert under_policy(made, SnapshotSettings(percentile=95.0)) == made
    adapted = under_policy(made, SnapshotSettings(percentile=99.0))
    held = decided(adapted).record.decision
    assert held.hold_cause == "IncompleteData"
    assert "upper rates of percentile 95, out of which no percentile 99 can be computed" in held.reason
    assert list(differences(made, adapted)) == ["percentile: 99, the snapshot has upper rates of percentile 95"]


def test_a_snapshot_without_its_percentile_says_that_it_cannot_be_compared() -> None:
    assert under_policy(LEARNED, SnapshotSettings(percentile=99.0)) == LEARNED
    assert [line.split(":")[0] for line in unknown_settings(LEARNED, SnapshotSettings())] == ["percentile"]
    assert list(unknown_settings(replace(LEARNED, percentile=95.0), SnapshotSettings())) == []


def test_options_of_a_strategy_are_compared() -> None:
    hashed = replace(LEARNED, strategy="CONSISTENT_HASH", strategy_options={"virtual_nodes": 10})
    adapted = under_policy(hashed, SnapshotSettings(strategy="CONSISTENT_HASH", strategy_options={"virtual_nodes": 20}))
    assert adapted.strategy_options == {"virtual_nodes": 20}
    assert [line.split(":")[0] for line in differences(hashed, adapted)] == ["strategy"]
