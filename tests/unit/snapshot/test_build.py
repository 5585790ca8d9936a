from dataclasses import replace
from datetime import timedelta

from planner.history.intervals import queue_intervals
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.snapshot.build import build_snapshot
from planner.snapshot.settings import SnapshotSettings
from tests.sample_builders import deployment, steady, tuning, watch

SETTINGS = SnapshotSettings(window_s=120.0)


def snapshot_of(samples: tuple[GroupSample, ...], settings: SnapshotSettings = SETTINGS) -> GroupSnapshot:
    return build_snapshot(samples[-1], queue_intervals(samples, 5.0), samples[-1].at, settings)


def completeness(snapshot: GroupSnapshot) -> dict[str, float]:
    return {part.name: part.completeness for part in snapshot.parts}


def test_a_watched_group_is_complete() -> None:
    taken = snapshot_of(watch(25, steady(50, 40)))
    assert set(completeness(taken).values()) == {1.0}
    assert (taken.strategy, taken.clients[0], len(taken.queues), taken.problems) == ("AVG", "10.0.0.1@1", 22, ())
    assert {state.arrival_rate for state in taken.queues} == {10.0}
    assert taken.lag == 22 * 10 * 24


def test_the_strategy_is_unknown_when_members_differ() -> None:
    samples = watch(3)
    first, *others = samples[-1].members
    circle = tuning("org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle")
    mixed = replace(samples[-1], members=(replace(first, tuning=circle), *others))
    taken = snapshot_of((*samples[:-1], mixed))
    assert taken.strategy is None
    assert "split brain" in taken.strategy_source


def test_a_strategy_of_the_users_own_is_unknown_and_named() -> None:
    taken = snapshot_of(watch(3, client_tuning=tuning("com.shop.MyStrategy")))
    assert taken.strategy is None
    assert "com.shop.MyStrategy" in taken.strategy_source


def test_the_policy_states_the_strategy_where_the_members_cannot() -> None:
    silent = watch(3, client_tuning=tuning(None))
    assert snapshot_of(silent).strategy is None
    assert snapshot_of(silent, replace(SETTINGS, strategy="AVG")).strategy == "AVG"


def test_a_policy_that_contradicts_the_members_is_not_believed() -> None:
    taken = snapshot_of(watch(3), replace(SETTINGS, strategy="AVG_BY_CIRCLE"))
    assert taken.strategy is None
    assert "the policy says AVG_BY_CIRCLE" in taken.strategy_source


def test_capacity_is_threads_over_consume_time() -> None:
    capacity = snapshot_of(watch(3, client_tuning=tuning(rt_ms=40.0, threads=8))).capacity
    assert capacity is not None
    assert capacity.messages_per_s == 200.0
    assert "3 of 3 members" in capacity.source


def test_capacity_is_unknown_while_nothing_is_consumed() -> None:
    assert snapshot_of(watch(3, client_tuning=tuning(rt_ms=0.0))).capacity is None


def test_a_policy_states_the_capacity() -> None:
    capacity = snapshot_of(watch(3), replace(SETTINGS, capacity_messages_per_s=77.0)).capacity
    assert capacity is not None
    assert (capacity.messages_per_s, capacity.source) == (77.0, "stated by the policy")
    assert (capacity.measured_high, capacity.measured_source) == (None, ""), "nobody was busy all the time"


def test_a_queue_without_offsets_is_a_named_problem() -> None:
    samples = watch(3)
    missing = samples[-1].offsets[0].queue
    taken = snapshot_of((*samples[:-1], replace(samples[-1], offsets=samples[-1].offsets[1:])))
    assert completeness(taken)["offsets"] == round(21 / 22, 4)
    assert any(str(missing) in problem for problem in taken.problems)


def test_a_queue_with_two_owners_has_none_and_is_a_named_problem() -> None:
    samples = watch(3)
    first, second, third = samples[-1].members
    assert first.owned is not None
    assert second.owned is not None
    greedy = replace(second, owned=(*second.owned, first.owned[0]))
    taken = snapshot_of((*samples[:-1], replace(samples[-1], members=(first, greedy, third))))
    assert next(state.owner for state in taken.queues if state.queue == first.owned[0]) is None
    assert any("owned by 2 clients" in problem for problem in taken.problems)


def test_a_silent_member_lowers_the_completeness_of_ownership() -> None:
    samples = watch(3)
    first, *others = samples[-1].members
    taken = snapshot_of((*samples[:-1], replace(samples[-1], members=(replace(first, owned=None), *others))))
    assert completeness(taken)["ownership"] == round(2 / 3, 4)


def test_rates_are_only_as_complete_as_the_window_is_covered() -> None:
    assert completeness(snapshot_of(watch(13)))["rates"] == 0.5


def test_ages_count_from_the_snapshots_time() -> None:
    samples = watch(25)
    late = build_snapshot(samples[-1], queue_intervals(samples, 5.0), samples[-1].at + timedelta(seconds=90), SETTINGS)
    assert {part.age_s for part in late.parts} == {90.0}


def test_retry_queues_are_no_data_queues() -> None:
    samples = watch(2, topics={"orders": 2, "%RETRY%shop": 1})
    taken = snapshot_of(samples)
    assert len(taken.queues) == 6
    assert {state.queue.topic for state in taken.data_queues} == {"orders"}
    assert MessageQueue("%RETRY%shop", "broker-a", 0).is_retry


def test_each_client_has_its_pod_and_what_does_not_fit_is_a_problem() -> None:
    newest = watch(3)[-1]
    addresses = ("10.0.0.1", "10.0.0.2", "10.0.0.9")
    taken = snapshot_of((*watch(3)[:-1], replace(newest, deployment=deployment(addresses))))
    assert [(link.client, link.pod) for link in taken.pods] == [
        ("10.0.0.1@1", "shop-consumer-0"),
        ("10.0.0.2@1", "shop-consumer-1"),
    ]
    assert any("10.0.0.3@1" in problem for problem in taken.problems)
    assert any("shop-consumer-2" in problem for problem in taken.problems)


def test_pods_that_could_not_be_read_leave_their_reason() -> None:
    unread = deployment(("10.0.0.1",), pods=None, problems=("pods: forbidden",))
    newest = replace(watch(3)[-1], deployment=unread)
    taken = snapshot_of((*watch(3)[:-1], newest))
    assert (taken.pods, "pods: forbidden" in taken.problems) == ((), True)


def test_a_group_that_pops_shares_every_queue() -> None:
    popping = replace(tuning(), properties=(("clientRebalance", "false"),))
    samples = watch(5, client_tuning=popping)
    shared = tuple(
        replace(sample, members=tuple(replace(member, owned=()) for member in sample.members)) for sample in samples
    )
    assert snapshot_of(shared).shared_queues == len(snapshot_of(shared).data_queues) > 0
    assert snapshot_of(samples).shared_queues == 0, "the broker gives each of them queues of its own"
