"""What one consumer can do: learned, told, or at least so much."""

from dataclasses import replace

import pytest

from planner.history.busy import ClientSpan, client_spans
from planner.history.intervals import queue_intervals
from planner.model.samples import GroupSample
from planner.model.snapshot import Capacity
from planner.snapshot.capacity import known_capacity, learned_capacity
from tests.sample_builders import START, Offsets, tuning, watch

TOPICS = {"orders": 1}
BUSY: Offsets = lambda _, number: (10_000 + 60 * number, 50 * number)  # noqa: E731  20 messages/s of two queues
IDLE: Offsets = lambda _, number: (1000 + 50 * number, 950 + 50 * number)  # noqa: E731


def span(consumed: int, is_saturated: bool = True, client: str = "c1") -> ClientSpan:
    return ClientSpan(client, START, 30.0, consumed, is_saturated, slack_s=5.0)


def watched(offsets: Offsets, rt_ms: float = 0.0, count: int = 37) -> tuple[GroupSample, ...]:
    return watch(count, offsets, topics=TOPICS, clients=("10.0.0.1@1",), client_tuning=tuning(rt_ms=rt_ms))


def capacity_of(samples: tuple[GroupSample, ...]) -> Capacity:
    found = known_capacity(queue_intervals(samples, 5.0), samples[-1].members)
    assert found is not None
    return found


def test_busy_spans_give_a_mean_and_how_sure_it_is() -> None:
    learned = learned_capacity([span(300), span(330), span(270), span(600, is_saturated=False)])
    assert learned is not None
    assert (learned.messages_per_s, learned.observations, learned.is_lower_bound) == (10.0, 3, False)
    # The standard deviation of 10, 11 and 9 is 1: 4.30 x 1 / sqrt(3).
    assert (learned.low, learned.high) == (pytest.approx(7.517, abs=0.001), pytest.approx(12.483, abs=0.001))
    assert learned.sure_messages_per_s == learned.low


def test_more_spans_make_it_surer() -> None:
    few, many = ([span(300), span(330), span(270)] * times for times in (1, 20))
    widths = [
        found.high - found.low for found in map(learned_capacity, (few, many)) if found and found.high and found.low
    ]
    assert widths[1] < widths[0] / 5


def test_never_seen_saturated_is_a_lower_bound_that_a_late_commit_cannot_raise() -> None:
    learned = learned_capacity([span(350, is_saturated=False), span(70, is_saturated=False)])
    assert learned is not None
    assert (learned.is_lower_bound, learned.messages_per_s, learned.observations) == (True, 10.0, 0)
    assert "at least 10.0 messages/s" in learned.source


def test_two_busy_spans_are_as_sure_as_the_times_of_their_commits() -> None:
    learned = learned_capacity([span(350), span(315)])
    assert learned is not None
    assert (learned.is_lower_bound, learned.observations, learned.messages_per_s) == (False, 2, 11.083)
    # 315 messages within 35 s at most, 350 within 25 s at least.
    assert (learned.low, learned.high) == (9.0, 14.0)


def test_a_member_that_is_slow_for_a_reason_of_its_own_is_left_out_and_named() -> None:
    slow = [span(300, client="c3")] * 3
    idle = [span(1500, is_saturated=False, client=client) for client in ("c1", "c2")]
    learned = learned_capacity([*slow, *idle])
    assert learned is not None
    assert (learned.slow_clients, learned.is_lower_bound, learned.messages_per_s) == (("c3",), True, 42.857)
    busy = learned_capacity([*slow, *(replace(one, is_saturated=True) for one in idle)])
    assert busy is not None
    assert (busy.slow_clients, busy.is_lower_bound, busy.messages_per_s) == (("c3",), False, 50.0)
    assert "c3 left out" in busy.source


def test_a_busy_member_below_one_with_time_to_spare_is_slow() -> None:
    learned = learned_capacity([span(480, client="c3"), span(900, is_saturated=False), span(900, is_saturated=False)])
    assert learned is not None
    assert (learned.slow_clients, learned.is_lower_bound) == (("c3",), True)


def test_members_of_much_the_same_pace_are_none_of_them_slow() -> None:
    learned = learned_capacity([span(300), span(500, client="c2"), span(400, client="c3", is_saturated=False)])
    assert learned is not None
    assert learned.slow_clients == ()


def test_nothing_consumed_says_nothing() -> None:
    assert learned_capacity([]) is None
    assert learned_capacity([span(0, is_saturated=False)]) is None


def test_what_was_seen_while_busy_comes_before_the_members_own_figures() -> None:
    found = capacity_of(watched(BUSY, rt_ms=20.0))
    assert found.messages_per_s == 20.0
    assert "threads / consume time" in found.source


def test_the_members_own_figures_come_before_a_lower_bound() -> None:
    found = capacity_of(watched(IDLE, rt_ms=20.0))
    assert found.messages_per_s == 100.0


def test_own_figures_below_what_was_seen_are_refuted() -> None:
    found = capacity_of(watched(IDLE, rt_ms=1000.0))
    assert found.is_lower_bound
    assert found.messages_per_s == round(600 / 35, 3)


def test_without_own_figures_the_bound_is_what_is_known() -> None:
    samples = watched(IDLE)
    silent = tuple(
        replace(sample, members=tuple(replace(m, tuning=None) for m in sample.members)) for sample in samples
    )
    assert capacity_of(silent).is_lower_bound


def test_a_capacity_that_may_be_zero_is_unknown() -> None:
    """Nearly all was done in one span of six, so that the interval of the mean begins at 0: own figures come first."""
    lumps: Offsets = lambda _, number: (1_000_000, 10 * number + (20_000 if number > 18 else 0))  # noqa: E731
    samples = watched(lumps, rt_ms=20.0)
    intervals = queue_intervals(samples, 5.0)
    learned = learned_capacity(client_spans(intervals))
    assert learned is not None
    assert (learned.low, learned.is_lower_bound) == (0.0, False)
    assert known_capacity(intervals, ()) is None
    assert capacity_of(samples).messages_per_s == 100.0
