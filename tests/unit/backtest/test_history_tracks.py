"""Rows of the lag history as a group's past: in any order, with unknown figures, several within a minute."""

import numpy as np
import pytest

from planner.backtest.history_tracks import NO_OWNER, NO_SPAN, HistorySpans, tracks_of_history
from planner.backtest.tracks import GroupTracks, MemberTrack
from planner.model.queues import MessageQueue, Queue, TopicPartition

NAN = float("nan")
SECOND, FIRST = MessageQueue("orders", "broker-a", 1), MessageQueue("orders", "broker-a", 0)
START = 1_790_000_040.0


def spans(
    *rows: tuple[int, float, float, float, float, float], queues: tuple[Queue, ...] = (SECOND, FIRST)
) -> HistorySpans:
    """Return rows of (queue, end behind the start, seconds, arrival, consumption, lag)."""
    table = np.array(rows, dtype=float).reshape(-1, 6).T
    return HistorySpans(queues, table[0].astype(np.intp), START + table[1], *table[2:])


def counts(*rows: tuple[float, float, float]) -> MemberTrack:
    """Return rows of (end behind the start, seconds, members)."""
    ends, seconds, members = np.array(rows, dtype=float).T
    return MemberTrack(START + ends, seconds, members)


def tracks(of_queues: HistorySpans, of_members: MemberTrack | None = None) -> GroupTracks:
    made = tracks_of_history("rocketmq", "shop", of_queues, of_members or counts((60, 60, 2), (120, 60, 3)))
    assert isinstance(made, GroupTracks), made
    return made


def test_rows_in_any_order_become_queues_in_the_clients_order_and_times_in_theirs() -> None:
    shown = tracks(
        spans((0, 120, 60, 4, 3, 9), (1, 60, 60, 1, 1, 0), (0, 60, 60, 2, NAN, 5), (1, 120, 60, NAN, 1, NAN)),
        counts((120, 60, 3), (60, 60, 2)),
    )
    assert [list(track.queues) for track in shown.queues] == [[FIRST], [SECOND]]
    first, second = shown.queues
    assert (second.ends - START).tolist() == [60, 120]
    assert (second.arrival.tolist(), second.lag.tolist()) == ([2, 4], [5, 9])
    np.testing.assert_equal(first.arrival, [1, NAN])
    np.testing.assert_equal(first.lag, [0, NAN])
    np.testing.assert_equal(second.consumption, [NAN, 3])
    assert (shown.members.members.tolist(), shown.period_s) == ([2, 3], 60)


def test_spans_within_a_minute_are_weighed_by_their_time_and_unknown_where_any_is() -> None:
    shown = tracks(
        spans(
            (0, 60, 60, 1, 1, 1),
            (0, 80, 20, 3, 1, 7),
            (0, 120, 40, 6, NAN, 8),
            (0, 150, 30, 2, 2, 3),
            (0, 180, 30, 4, 2, 2),
        ),
        counts((60, 60, 1), (80, 20, 1), (120, 40, 4), (150, 30, 5), (180, 30, 2)),
    )
    (track,) = shown.queues
    assert (track.ends - START).tolist() == [60, 120, 180]
    assert track.seconds.tolist() == [60, 60, 60]
    assert track.arrival.tolist() == pytest.approx([1, (3 * 20 + 6 * 40) / 60, 3])
    np.testing.assert_equal(track.consumption, [1, NAN, 2])
    assert track.lag.tolist() == [1, 8, 2]
    assert (shown.members.ends - START).tolist() == [60, 120, 180]
    assert (shown.members.members.tolist(), shown.members.seconds.tolist()) == ([1, 4, 2], [60, 60, 60])


def test_samples_a_moment_off_their_minute_stay_apart() -> None:
    shown = tracks(spans((0, 60.4, 60.4, 1, 1, 0), (0, 119.1, 58.7, 2, 1, 0), (0, 180.2, 61.1, 3, 1, 0)))
    assert shown.queues[0].arrival.tolist() == [1, 2, 3]


def test_a_hole_has_no_span_in_which_anything_is_known() -> None:
    rows = [(0, 60.0 * minute, 60.0, 1.0, 1.0, 0.0) for minute in (1, 2, 3)]
    shown = tracks(spans(*rows, (0, 3000, 2820, 5, 1, 0)), counts((60, 60, 1), (3000, 2940, 2)))
    np.testing.assert_equal(shown.queues[0].seconds, [60, 60, 60, NAN])
    np.testing.assert_equal(shown.members.seconds, [60, NAN])


def test_partitions_have_no_broker_and_little_is_a_reason() -> None:
    partitions = TopicPartition("orders", 10), TopicPartition("orders", 9)
    shown = tracks(spans((0, 60, 60, 1, 1, 0), (1, 60, 60, 2, 1, 0), queues=partitions))
    assert [track.queues[0] for track in shown.queues] == sorted(partitions)
    none = np.empty(0)
    nobody = MemberTrack(none, none, none)
    assert tracks_of_history("kafka", "shop", spans(), nobody) == NO_SPAN
    assert tracks_of_history("kafka", "shop", spans((0, 60, 60, 1, 1, 0)), counts((60, 60, 0))) == NO_OWNER
