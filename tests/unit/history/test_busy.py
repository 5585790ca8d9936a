"""When a consumer was really busy."""

from dataclasses import replace

import pytest

from planner.history.busy import ClientSpan, client_spans
from planner.history.intervals import queue_intervals
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.snapshot.capacity import learned_capacity
from tests.sample_builders import Offsets, watch
from tests.unit.history.poll_loop import PollLoop

ONE = ("10.0.0.1@1",)
TOPICS = {"orders": 1}
"""One queue on each of two brokers, both of them the one consumer's."""


def spans_of(samples: tuple[GroupSample, ...]) -> tuple[ClientSpan, ...]:
    return client_spans(queue_intervals(samples, 5.0))


def spans(offsets: Offsets, count: int = 14, clients: tuple[str, ...] = ONE) -> tuple[ClientSpan, ...]:
    return spans_of(watch(count, offsets, topics=TOPICS, clients=clients))


def polled(loop: PollLoop, seconds: float) -> tuple[ClientSpan, ...]:
    samples = watch(int(seconds / 5) + 1, loop.run(seconds).offsets, topics={"orders": loop.queues // 2}, clients=ONE)
    return spans_of(samples)


def test_a_backlog_that_lasts_makes_a_consumer_busy() -> None:
    (first, second) = spans(lambda _, number: (10_000 + 60 * number, 50 * number))
    assert [(span.seconds, span.consumed, span.is_saturated) for span in (first, second)] == [(30.0, 600, True)] * 2
    assert (first.rate, first.least_rate, first.most_rate) == (20.0, pytest.approx(600 / 35), 24.0)


def test_a_consumer_that_keeps_up_shows_only_what_it_has_not_committed_yet() -> None:
    # 10 messages/s of each queue, committed every 5 s: up to 50 of each look as if they waited.
    assert not any(span.is_saturated for span in spans(lambda _, number: (1000 + 50 * number, 950 + 50 * number)))


@pytest.mark.parametrize(
    ("queues", "message_s", "batch", "seconds"),
    [(12, 0.02, 500, 300), (4, 0.2, 500, 600), (12, 0.2, 500, 600), (2, 0.005, 500, 120), (12, 0.05, 10, 120)],
)
def test_a_poll_loop_that_falls_behind_is_busy_whatever_it_works_off_at_once(
    queues: int, message_s: float, batch: int, seconds: float
) -> None:
    can_do = 1 / message_s
    spans_seen = polled(PollLoop(queues, message_s, 1.2 * can_do / queues, backlog=1000, batch=batch), seconds)
    learned = learned_capacity(spans_seen)
    assert learned is not None
    assert not learned.is_lower_bound
    assert learned.messages_per_s == pytest.approx(can_do, rel=0.1)
    assert learned.low is not None
    assert learned.high is not None
    assert learned.low <= can_do <= learned.high


@pytest.mark.parametrize("load", [0.3, 0.9])
@pytest.mark.parametrize("batch", [10, 500])
def test_a_poll_loop_that_keeps_up_is_never_busy(load: float, batch: int) -> None:
    spans_seen = polled(PollLoop(4, 0.02, load * 50 / 4, batch=batch), 300)
    assert spans_seen
    assert not any(span.is_saturated for span in spans_seen)


def test_a_lasting_standstill_is_no_pace() -> None:
    loop = PollLoop(4, 0.02, 15.0, backlog=5000, batch=100, pause_after_s=120.0, pause_s=120.0)
    learned = learned_capacity(polled(loop, 400))
    assert learned is not None
    assert learned.messages_per_s == pytest.approx(50, rel=0.1)


def test_busy_ends_where_what_waits_is_less_than_what_was_done_next() -> None:
    def draining(_: MessageQueue, number: int) -> tuple[int, int]:
        return 1000, min(50 * number, 1000)

    # 20 messages/s in all: the last commits take all that is left, which waited already.
    states = [span.is_saturated for span in spans(draining, 40)]
    assert states == [True] * 3


def test_what_waits_in_a_queue_that_never_moves_gives_no_work() -> None:
    def one_blocked(queue: MessageQueue, number: int) -> tuple[int, int]:
        return (10_000, 0) if queue.broker == "broker-a" else (1000 + 50 * number, 950 + 50 * number)

    assert [span.is_saturated for span in spans(one_blocked)] == [False, False]


def test_a_retry_queue_that_never_held_a_message_says_nothing() -> None:
    def offsets(queue: MessageQueue, number: int) -> tuple[int, int | None]:
        return (0, None) if queue.is_retry else (10_000, 50 * number)

    samples = watch(14, offsets, topics=TOPICS | {"%RETRY%shop": 1}, clients=ONE)
    assert [(span.consumed, span.is_saturated) for span in spans_of(samples)] == [(600, True)] * 2


def test_a_queue_without_a_commit_is_one_that_its_client_has_not_come_to_yet() -> None:
    seen = spans(lambda queue, number: (10_000, 50 * number if queue.broker == "broker-a" else None))
    assert [(span.consumed, span.is_saturated) for span in seen] == [(300, True)] * 2


def test_a_first_commit_counts_as_a_beginning_only() -> None:
    def late(queue: MessageQueue, number: int) -> tuple[int, int | None]:
        return 10_000, 50 * number if queue.broker == "broker-a" or number > 7 else None

    assert [(span.rate, span.is_saturated) for span in spans(late, 16)] == [(10.0, True), (20.0, True)]


def test_nothing_consumed_is_no_span() -> None:
    assert spans(lambda _, __: (10_000, 0)) == ()


def test_each_client_has_spans_of_its_own() -> None:
    seen = spans(
        lambda queue, n: (10_000, (50 if queue.broker == "broker-a" else 20) * n), clients=(*ONE, "10.0.0.2@1")
    )
    assert [(span.client, span.rate) for span in seen] == [("10.0.0.1@1", 10.0)] * 2 + [("10.0.0.2@1", 4.0)] * 2


def test_resets_gaps_and_moves_belong_to_no_span() -> None:
    reset = spans(lambda _, number: (10_000, 5000 + 50 * number - (2000 if number > 8 else 0)))
    assert [span.consumed for span in reset] == [600]
    samples = watch(17, lambda _, number: (10_000, 50 * number), topics=TOPICS, clients=ONE)
    missing = spans_of((*samples[:4], *samples[7:]))
    assert [span.started_at for span in missing] == [samples[8].at]
    later = tuple(
        replace(sample, members=tuple(replace(member, client_id="10.0.0.2@1") for member in sample.members))
        for sample in samples[4:]
    )
    moved = spans_of((*samples[:4], *later))
    assert [(span.client, span.started_at) for span in moved] == [("10.0.0.2@1", samples[5].at)]


def test_a_queue_that_a_sample_misses_ends_the_span_of_both() -> None:
    samples = list(watch(13, lambda _, number: (10_000, 50 * number), topics=TOPICS, clients=ONE))
    samples[6] = replace(samples[6], offsets=samples[6].offsets[:1])
    assert spans_of(tuple(samples)) == ()


def test_two_owners_are_nobodys_rate() -> None:
    samples = tuple(
        replace(sample, members=(*sample.members, replace(sample.members[0], client_id="10.0.0.2@1")))
        for sample in watch(13, lambda _, number: (10_000, 50 * number), topics=TOPICS, clients=ONE)
    )
    assert spans_of(samples) == ()
