"""When a consumer was really busy."""

from dataclasses import replace

from planner.history.busy import ClientSpan, client_spans
from planner.history.intervals import queue_intervals
from planner.model.queues import MessageQueue
from tests.sample_builders import Offsets, watch

ONE = ("10.0.0.1@1",)
TOPICS = {"orders": 1}
"""One queue on each of two brokers, both of them the one consumer's."""


def spans(offsets: Offsets, count: int = 13, clients: tuple[str, ...] = ONE) -> tuple[ClientSpan, ...]:
    return client_spans(queue_intervals(watch(count, offsets, topics=TOPICS, clients=clients), 5.0))


def test_a_backlog_that_lasts_makes_a_consumer_busy() -> None:
    found = spans(lambda _, number: (10_000 + 60 * number, 50 * number))
    assert [(span.seconds, span.consumed, span.is_saturated) for span in found] == [(30.0, 600, True)] * 2
    assert found[0].rate == 20.0


def test_a_consumer_that_keeps_up_shows_only_what_it_has_not_committed_yet() -> None:
    # 10 messages/s of each queue, committed every 5 s: up to 50 of each look as if they waited.
    found = spans(lambda _, number: (1000 + 50 * number, 950 + 50 * number))
    assert [span.is_saturated for span in found] == [False, False]


def test_work_for_fifteen_seconds_must_wait_all_the_time() -> None:
    def draining(_: MessageQueue, number: int) -> tuple[int, int]:
        return 1000, min(50 * number, 1000)

    # 20 messages/s in all, so 300 must wait; 2 000 - 100 a sample is below that from the eighteenth sample on.
    assert [span.is_saturated for span in spans(draining, 25)] == [True, True, False, False]


def test_a_queue_that_stands_still_with_messages_waiting_is_blocked() -> None:
    def one_blocked(queue: MessageQueue, number: int) -> tuple[int, int]:
        return 10_000, 0 if queue.broker == "broker-a" else 50 * number

    assert [span.is_saturated for span in spans(one_blocked)] == [False, False]


def test_a_retry_queue_that_never_held_a_message_says_nothing() -> None:
    def offsets(queue: MessageQueue, number: int) -> tuple[int, int | None]:
        return (0, None) if queue.is_retry else (10_000, 50 * number)

    samples = watch(13, offsets, topics=TOPICS | {"%RETRY%shop": 1}, clients=ONE)
    found = client_spans(queue_intervals(samples, 5.0))
    assert [(span.consumed, span.is_saturated) for span in found] == [(600, True)] * 2


def test_an_unknown_offset_of_a_queue_with_messages_makes_a_rate_unknown() -> None:
    assert spans(lambda queue, number: (10_000, 50 * number if queue.broker == "broker-a" else None)) == ()


def test_nothing_consumed_is_not_busy() -> None:
    assert [span.is_saturated for span in spans(lambda _, __: (10_000, 0))] == [False, False]


def test_each_client_has_spans_of_its_own() -> None:
    found = spans(
        lambda queue, n: (10_000, (50 if queue.broker == "broker-a" else 20) * n), clients=(*ONE, "10.0.0.2@1")
    )
    assert [(span.client, span.rate) for span in found] == [("10.0.0.1@1", 10.0)] * 2 + [("10.0.0.2@1", 4.0)] * 2


def test_resets_gaps_and_moves_belong_to_no_span() -> None:
    reset = spans(lambda _, number: (10_000, 5000 + 50 * number - (2000 if number > 8 else 0)))
    assert [span.consumed for span in reset] == [600]
    samples = watch(16, lambda _, number: (10_000, 50 * number), topics=TOPICS, clients=ONE)
    missing = client_spans(queue_intervals((*samples[:4], *samples[7:]), 5.0))
    assert [span.started_at for span in missing] == [samples[7].at]
    later = tuple(
        replace(sample, members=tuple(replace(member, client_id="10.0.0.2@1") for member in sample.members))
        for sample in samples[4:]
    )
    moved = client_spans(queue_intervals((*samples[:4], *later), 5.0))
    assert [(span.client, span.started_at) for span in moved] == [("10.0.0.2@1", samples[4].at)]


def test_a_queue_that_a_sample_misses_ends_the_span_of_both() -> None:
    samples = list(watch(13, lambda _, number: (10_000, 50 * number), topics=TOPICS, clients=ONE))
    samples[6] = replace(samples[6], offsets=samples[6].offsets[:1])
    assert client_spans(queue_intervals(samples, 5.0)) == ()


def test_two_owners_are_nobodys_rate() -> None:
    samples = tuple(
        replace(sample, members=(*sample.members, replace(sample.members[0], client_id="10.0.0.2@1")))
        for sample in watch(13, lambda _, number: (10_000, 50 * number), topics=TOPICS, clients=ONE)
    )
    assert client_spans(queue_intervals(samples, 5.0)) == ()
