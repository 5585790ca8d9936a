"""What the live tests call lost, twice and standing still, on logs of a few lines."""

from pathlib import Path

import pytest

from tests.clusters.deliveries import Course, Given, lost, read_given

Q, OTHER = ("orders", "broker-a", "0"), ("orders", "broker-a", "1")


def given(*told: tuple[float, str, int, float]) -> list[Given]:
    return [Given(at_s, client, Q, offset, came_s) for at_s, client, offset, came_s in told]


HANDED_OVER = given((1, "a", 0, 1), (2, "a", 1, 2), (7, "b", 1, 2), (8, "b", 2, 3), (9, "b", 3, 9))


def test_logs_of_all_pods_are_read_together_and_half_a_line_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text("2000\tb\torders\tbroker-a\t0\t1\t1500\n3000\tb\tord", encoding="utf-8")
    (tmp_path / "a.tsv").write_text("1000\ta\torders\t0\t7\t900\n", encoding="utf-8")
    assert read_given(tmp_path) == [Given(1.0, "a", ("orders", "0"), 7, 0.9), Given(2.0, "b", Q, 1, 1.5)]


def test_a_message_is_lost_when_nobody_was_given_it() -> None:
    assert lost({Q: 5, OTHER: 1}, HANDED_OVER) == {Q: [4], OTHER: [0]}
    assert lost({Q: 4}, HANDED_OVER) == {}


def test_only_what_comes_again_within_the_span_counts_as_twice() -> None:
    assert [Course(HANDED_OVER, since, 10).twice() for since in (0, 7, 7.5)] == [1, 1, 0]


def test_a_queue_stands_still_while_a_message_waits_and_none_is_delivered() -> None:
    assert Course(HANDED_OVER, 0, 10).longest_s([Q]) == 5, "message 1 comes again 5 s after its first delivery"
    assert Course(HANDED_OVER, 8.5, 10).longest_s([Q]) == 0, "message 3 was delivered as it came"
    assert Course(HANDED_OVER, 0, 10).longest_s([OTHER]) == 0


def test_first_deliveries_and_mean_waits() -> None:
    course = Course(HANDED_OVER, 0, 10)
    assert course.first_s(Q, "b", 0) == 7
    assert course.mean_wait_s() == pytest.approx((0 + 0 + 5 + 0) / 4), "what comes again has not waited again"
