"""Hand-written logs, and what the contract says of them."""

import math

import pytest

from tests.conformance.measure import Delivered, Hold, Log, NotSettledError, measure

Q = ("T", "broker-a", 0)
NAME = "T/broker-a/0"
OLD, NEW, THIRD = "c1", "c2", "c3"


def every(spacing_s: float, begin: float, end: float, member: str, offset: int) -> list[Delivered]:
    """One delivery every ``spacing_s`` from ``begin`` on, before ``end``, stored as it is delivered."""
    count = math.ceil((end - begin) / spacing_s)
    times = [begin + number * spacing_s for number in range(count)]
    return [Delivered(at, member, Q, offset + number, at) for number, at in enumerate(times)]


def handed_over(dropped_s: float, first_s: float, again: int = 0) -> Log:
    """Ten a second by the old owner until ``dropped_s``, then by the new one from ``first_s`` on, ``again`` twice."""
    old = every(0.1, -5.0, dropped_s, OLD, 0)
    new = every(0.1, first_s, 8.0, NEW, old[-1].offset + 1 - again)
    holds = [Hold(OLD, Q, -60.0, dropped_s), Hold(NEW, Q, min(dropped_s, first_s))]
    return Log([*old, *new], holds, -5.0, 10.0)


def test_a_pause_runs_from_the_drop_to_the_first_delivery_by_the_new_owner() -> None:
    found = measure(handed_over(dropped_s=1.05, first_s=1.6))
    assert found["moved"] == [list(Q)]
    assert found["pause_s"] == {NAME: pytest.approx(0.55)}
    assert found["total"]["settle_s"] == pytest.approx(1.6)


def test_an_owner_that_had_stopped_long_before_it_dropped_the_queue_ends_a_message_after_its_last_one() -> None:
    log = handed_over(dropped_s=1.05, first_s=4.0)
    late = [Hold(OLD, Q, -60.0, 3.5), *log.holds[1:]]
    assert measure(Log(log.deliveries, late, -5.0, 10.0))["pause_s"] == {NAME: pytest.approx(4.0 - 1.1)}


def test_owners_that_overlap_leave_no_pause_and_settle_with_the_first_delivery() -> None:
    found = measure(handed_over(dropped_s=2.05, first_s=1.3))
    assert found["pause_s"] == {NAME: 0.0}
    assert found["total"]["settle_s"] == pytest.approx(1.3)


def test_a_frozen_owner_that_wakes_up_too_late_leaves_the_pause_as_it_was() -> None:
    log = handed_over(dropped_s=0.05, first_s=8.0 - 1.0)
    zombie = every(0.1, 7.5, 7.85, OLD, 51)
    holds = [Hold(OLD, Q, -60.0, 7.95), Hold(NEW, Q, 6.9)]
    found = measure(Log([*log.deliveries, *zombie], holds, -5.0, 10.0))
    assert found["pause_s"] == {NAME: pytest.approx(7.0 - 0.1, abs=0.06)}
    assert found["duplicates"] == {NAME: 4}


def test_duplicates_are_deliveries_after_the_change_of_what_was_delivered_before() -> None:
    assert measure(handed_over(1.05, 1.6, again=3))["duplicates"] == {NAME: 3}
    assert measure(handed_over(1.05, 1.6))["duplicates"] == {}


def test_what_came_twice_before_the_change_does_not_count() -> None:
    log = handed_over(1.05, 1.6)
    earlier = [Delivered(-4.0, OLD, Q, 2, -4.8), *log.deliveries]
    assert measure(Log(earlier, log.holds, -5.0, 10.0))["total"]["duplicates"] == 0


def test_a_burst_is_what_was_stored_and_not_consumed_when_the_new_owner_began() -> None:
    """Stored at 1.1, 1.2 ... while the pause lasts: six are there at 1.6, and two more that come again."""
    old = every(0.1, -5.0, 1.05, OLD, 0)
    stored = [one.at_s + 0.001 for one in every(0.1, 1.1, 8.0, NEW, 0)]
    start = old[-1].offset + 1
    new = [Delivered(max(1.65, at), NEW, Q, start + number, at) for number, at in enumerate(stored)]
    again = [Delivered(1.65, NEW, Q, one.offset, one.at_s) for one in old[-2:]]
    holds = [Hold(OLD, Q, -60.0, 1.05), Hold(NEW, Q, 1.05)]
    assert measure(Log([*old, *again, *new], holds, -5.0, 10.0))["total"]["burst_messages"] == 8


def test_a_burst_is_unknown_where_the_log_does_not_tell_when_messages_came() -> None:
    log = handed_over(1.05, 1.6)
    silent = [Delivered(one.at_s, one.member, one.queue, one.offset) for one in log.deliveries]
    assert measure(Log(silent, log.holds, -5.0, 10.0))["total"]["burst_messages"] is None


def test_a_burst_is_unknown_where_the_log_ends_before_it_does() -> None:
    """A backlog: what is delivered at the end was there before the new owner began."""
    old = [Delivered(one.at_s, OLD, Q, one.offset, -9.0) for one in every(0.1, -5.0, 1.05, OLD, 0)]
    new = [Delivered(one.at_s, NEW, Q, one.offset, -9.0) for one in every(0.1, 1.6, 8.0, NEW, old[-1].offset + 1)]
    log = Log([*old, *new], [Hold(OLD, Q, -60.0, 1.05), Hold(NEW, Q, 1.05)], -5.0, 10.0)
    assert measure(log)["total"]["burst_messages"] is None


def test_a_third_owner_on_the_way_lengthens_the_pause_and_the_settling() -> None:
    old = every(0.1, -5.0, 1.0, OLD, 0)
    third = every(0.1, 2.0, 3.0, THIRD, 60)
    new = every(0.1, 4.0, 8.0, NEW, 70)
    holds = [Hold(OLD, Q, -60.0, 1.0), Hold(THIRD, Q, 1.0, 3.0), Hold(NEW, Q, 3.0)]
    found = measure(Log([*old, *third, *new], holds, -5.0, 10.0))
    assert found["pause_s"] == {NAME: pytest.approx(3.0)}
    assert found["total"]["settle_s"] == pytest.approx(4.0)
    assert [row[0] for row in found["course"][NAME]] == [OLD, THIRD, NEW]


def test_a_queue_that_stays_stalls_where_a_wait_is_longer_than_two_spacings() -> None:
    calm = every(0.1, -5.0, 8.0, OLD, 0)
    assert measure(Log(calm, [Hold(OLD, Q, -60.0)], -5.0, 10.0))["total"]["stall_s"] == 0.0
    stalled = [one for one in calm if not 1.0 <= one.at_s < 2.0]
    assert measure(Log(stalled, [Hold(OLD, Q, -60.0)], -5.0, 10.0))["total"]["stall_s"] == pytest.approx(1.05)


def test_a_restarted_owner_settles_with_its_second_hold_and_pauses_nothing() -> None:
    deliveries = [*every(0.1, -5.0, 0.0, OLD, 0), *every(0.1, 3.0, 8.0, OLD, 50)]
    found = measure(Log(deliveries, [Hold(OLD, Q, -60.0, 0.0), Hold(OLD, Q, 2.4)], -5.0, 10.0))
    assert found["moved"] == []
    assert found["total"]["pause_s"] is None
    assert found["total"]["settle_s"] == pytest.approx(3.0)
    assert found["total"]["stall_s"] == pytest.approx(3.05)


def test_a_queue_that_nobody_owned_before_does_not_move_and_settles() -> None:
    found = measure(Log([*every(0.1, -5, -4, OLD, 0), *every(0.1, 2.0, 8.0, NEW, 10)], [Hold(NEW, Q, 1.5)], -5.0, 10.0))
    assert found["moved"] == []
    assert found["pause_s"] == {}
    assert found["total"]["settle_s"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("holds", "word"),
    [
        ([Hold(OLD, Q, -9.0), Hold(NEW, Q, 1.0)], "at the end"),
        ([Hold(OLD, Q, -9.0, 1.0), Hold(NEW, Q, -8.0)], "before the change"),
        ([Hold(OLD, Q, -9.0, 1.0), Hold(THIRD, Q, 1.0)], "never delivered"),
        ([], "nobody"),
    ],
)
def test_a_log_without_a_whole_change_is_refused(holds: list[Hold], word: str) -> None:
    with pytest.raises(NotSettledError, match=word):
        measure(Log(handed_over(1.05, 1.6).deliveries, holds, -5.0, 10.0))
