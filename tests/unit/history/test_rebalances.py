"""Rebalances as the samples show them."""

from dataclasses import replace
from datetime import timedelta

from planner.history.intervals import queue_intervals
from planner.history.rebalances import BrokerAbsence, Rebalance, broker_absences, rebalances
from planner.model.samples import GroupSample
from tests.sample_builders import START, members, routes, watch

THREE = ("10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1")
TOPICS = {"orders": 3}
ROUTES = routes(TOPICS)


def seen(*clients: tuple[str, ...], every_s: float = 5.0) -> tuple[GroupSample, ...]:
    """Return one sample for each list of clients, who own what AVG gives them; nobody told for an empty list."""
    samples = watch(len(clients), every_s=every_s, topics=TOPICS)
    return tuple(
        replace(sample, members=members(ROUTES, present) if present else ())
        for sample, present in zip(samples, clients, strict=True)
    )


def events(samples: tuple[GroupSample, ...], every_s: float = 5.0) -> tuple[Rebalance, ...]:
    return rebalances(queue_intervals(samples, every_s))


def test_a_settled_group_has_none() -> None:
    assert events(seen(*[THREE] * 5)) == ()


def test_a_join_moves_queues_and_names_who_came() -> None:
    (event,) = events(seen(THREE[:2], THREE[:2], THREE, THREE))
    assert (event.came, event.left, event.restarted) == (("10.0.0.3@1",), (), ())
    # Six queues in order: 3 and 3 become 2, 2 and 2.
    assert [queue.number for queue in event.moved] == [2, 1, 2]
    assert (event.started_at, event.ended_at) == (START + timedelta(seconds=5), START + timedelta(seconds=10))
    assert event.duration_s == 5.0


def test_a_restart_is_one_rebalance_with_the_old_and_the_new_id() -> None:
    renamed = (*THREE[:2], "10.0.0.3@77")
    (event,) = events(seen(THREE, THREE[:2], THREE[:2], renamed, renamed))
    assert event.restarted == (("10.0.0.3@1", "10.0.0.3@77"),)
    assert event.duration_s == 15.0


def test_far_apart_they_are_two() -> None:
    away, back = events(seen(THREE, THREE[:2], *[THREE[:2]] * 5, THREE))
    assert (away.left, back.came) == (("10.0.0.3@1",), ("10.0.0.3@1",))


def test_a_queue_that_is_back_has_not_moved() -> None:
    assert events(seen(THREE, THREE[:2], THREE)) == ()


def test_silence_between_two_owners_is_no_owner_and_no_move() -> None:
    assert events(seen(THREE, (), (), THREE)) == ()
    (event,) = events(seen(THREE, (), (), THREE[:2]))
    assert event.left == ("10.0.0.3@1",)


def test_a_kafka_member_comes_back_under_its_client_id() -> None:
    old, new = (f"shop-1-{n}b1f3c52-7d44-4c8e-9b1a-0123456789ab" for n in (1, 2))
    event = Rebalance(START, START, (), (new,), ("shop-2", old))
    assert event.restarted == ((old, new),)


def test_a_broker_is_away_when_only_its_queues_are_missing() -> None:
    samples = list(seen(*[THREE] * 6))
    for number in (2, 3):
        offsets = tuple(told for told in samples[number].offsets if told.queue.broker != "broker-b")  # type: ignore[union-attr]
        samples[number] = replace(samples[number], offsets=offsets)
    absence = BrokerAbsence("broker-b", START + timedelta(seconds=5), START + timedelta(seconds=20))
    assert broker_absences(queue_intervals(samples, 5.0)) == (absence,)


def test_samples_that_are_missing_altogether_are_no_brokers_fault() -> None:
    samples = seen(*[THREE] * 6)
    assert broker_absences(queue_intervals((*samples[:2], *samples[4:]), 5.0)) == ()
