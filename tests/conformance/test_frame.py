"""Records, their file, their halves, and the arithmetic of the report."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.documents.forecast import forecast
from tests.conformance.record import Record, packed, read_record, record_id, unpacked
from tests.conformance.report import Compared, Point, compare, lateness_table, markdown, rows
from tests.conformance.split import CALIBRATION, CHECK, half, of_half
from tests.conformance.store import Store
from tests.unit.dynamics.small_groups import leave, rocketmq_request


@cache
def as_forecast() -> dict[str, Any]:
    total = forecast(rocketmq_request(leave("graceful", 2), "5.5.0"))["total"]
    return {name: total[name] for name in ("pause_s", "stall_s", "settle_s", "duplicates", "burst_messages")}


def made(number: int = 0, **total: Any) -> Record:
    """A graceful leave of the second of two 5.5.0 clients that went as forecast, but for the figures that are named."""
    request = rocketmq_request(leave("graceful", 2), "5.5.0")
    seen = {name: expected["p50"] for name, expected in as_forecast().items()}
    moved = [[queue["topic"], queue["broker"], queue["queue_id"]] for queue in request["queues"][4:]]
    observed = {"moved": moved, "pause_s": {}, "duplicates": {}, "total": {**seen, **total}, "course": {}}
    return Record(record_id("rocketmq", {"n": number}, 0), "rocketmq", request, observed, {"load": 0.5})


def test_a_record_is_one_line_and_comes_back_the_same() -> None:
    line = made().line()
    assert "\n" not in line
    assert read_record(line) == made()


def test_what_queues_share_is_written_once_and_each_of_them_comes_back() -> None:
    queues = made().request["queues"]
    assert len(queues) > 2
    assert made().line().count(f'"topic":"{queues[0]["topic"]}"') == 1
    assert read_record(made().line()).request["queues"] == queues


@pytest.mark.parametrize(
    "value",
    [
        [{"a": 1}],
        [{"a": 1}, {"a": 1}],
        [{"a": 1, "b": [1]}, {"a": 1, "b": [2]}],
        [{"a": 1}, {"b": 1}],
        [{"a": 1}, 1],
        {"x": [{"a": None, "b": {}}, {"a": None, "b": {"c": []}}]},
        [[{"a": 1}, {"a": 2}], []],
    ],
)
def test_a_packed_value_comes_back_the_same(value: Any) -> None:
    assert unpacked(packed(value)) == value


def test_an_id_rests_on_the_cell_and_the_repetition_alone() -> None:
    assert record_id("kafka", {"a": 1, "b": 2}, 0) == record_id("kafka", {"b": 2, "a": 1}, 0)
    ids = {record_id(system, {"a": a}, n) for system in ("kafka", "rocketmq") for a in (1, 2) for n in (0, 1)}
    assert len(ids) == 8


def test_records_are_added_and_never_lost(tmp_path: Path) -> None:
    Store("rocketmq", tmp_path).add([made(1)])
    Store("rocketmq", tmp_path).add([made(2), made(3)])
    assert Store("rocketmq", tmp_path).records() == [made(1), made(2), made(3)]
    assert Store("rocketmq", tmp_path).ids() == {made(number).id for number in (1, 2, 3)}


def test_half_a_line_is_not_read_and_gives_way_to_the_next_record(tmp_path: Path) -> None:
    store = Store("rocketmq", tmp_path)
    store.add([made(1)])
    with store.path.open("a") as file:
        file.write(made(2).line()[:40])
    assert store.records() == [made(1)]
    store.add([made(3)])
    assert store.records() == [made(1), made(3)]


def seen_at(number: int, when: str) -> Record:
    return replace(made(number), setup={"when": when})


def test_either_half_holds_about_half_and_never_changes() -> None:
    records = [seen_at(number, "2026-11-21T21:00:00+00:00") for number in range(1000)]
    assert 450 < len(of_half(records, CHECK)) < 550
    assert len(of_half(records, CHECK)) + len(of_half(records, CALIBRATION)) == len(records)
    # Pinned: a transition that changed sides would have been fitted and then judged by itself.
    pinned = [replace(records[0], id=one) for one in ("000000000000", "0123456789ab", "ffffffffffff")]
    assert [half(one) for one in pinned] == [CALIBRATION, CALIBRATION, CHECK]


def test_what_was_looked_at_before_the_split_judges_nothing() -> None:
    records = [seen_at(number, "2026-11-21T19:59:59+00:00") for number in range(20)] + [made(n) for n in range(20)]
    assert of_half(records, CHECK) == []


def test_a_figure_within_the_interval_is_covered_and_one_outside_is_not() -> None:
    inside = {point.measure: point for point in compare(made()).points}
    assert all(point.is_covered for point in inside.values())
    wrong = compare(made(pause_s=2.0, stall_s=7.0, duplicates=99, settle_s=9.0))
    outside = {point.measure: point for point in wrong.points}
    assert not any(point.is_covered for point in outside.values())
    assert outside["settle_s"].error == pytest.approx(9.0 - outside["settle_s"].forecast["p50"])


def test_what_was_not_seen_is_not_judged() -> None:
    assert {point.measure for point in compare(made(pause_s=None)).points} == {"stall_s", "duplicates", "settle_s"}


def test_moved_queues_are_right_when_exactly_those_moved() -> None:
    assert compare(made()).is_moved_right
    wrong = made()
    wrong.observed["moved"].pop()
    assert not compare(wrong).is_moved_right


@pytest.mark.parametrize(("moved", "is_right"), [([0], True), ([0, 1], True), ([1], False), ([0, 2], False)])
def test_a_queue_that_moves_in_some_trials_may_stay_or_move(moved: list[int], is_right: bool) -> None:
    answer = {
        "moved": [["T", "b", 0]],
        "queues": [{"queue": ["T", "b", 0]}, {"queue": ["T", "b", 1], "moves_in": 0.5}],
        "total": {"moved_queues": {"p05": 1, "p50": 1, "p95": 2}},
    }
    record = made()
    record.observed["moved"] = [["T", "b", number] for number in moved]
    assert Compared(record, answer, ()).is_moved_right is is_right


def test_stalls_longer_than_nothing_have_a_row_of_their_own() -> None:
    """Red where zeros, which are easily forecast, hide how many of the stalls that came are covered."""
    found = {row.measure: row for row in rows([compare(made(1, stall_s=0.0)), compare(made(2, stall_s=7.0))])}
    assert (found["stall_s"].cases, found["stall_s > 0"].cases, found["stall_s > 0"].coverage) == (2, 1, 0.0)
    assert "Of 1 stalls longer than nothing 0 are covered." in markdown([compare(made(2, stall_s=7.0))])


def test_a_stall_of_nothing_agrees_with_any_that_no_log_shows_and_with_no_longer_one() -> None:
    """Ten messages a second: a stall of less than 0.15 s is measured as nothing. Red where one of 0.2 s is, too."""
    record = made(stall_s=0.0)
    for queue in record.request["queues"]:
        queue["rate"] = 10.0
    told = {"p05": 0.14, "p50": 0.3, "p95": 0.8}
    assert Point(record, "stall_s", told, 0.0).is_covered
    assert not Point(record, "stall_s", told | {"p05": 0.2}, 0.0).is_covered
    assert not Point(record, "stall_s", told, 0.1).is_covered, "what was measured is taken as it is"
    assert not Point(record, "pause_s", told, 0.0).is_covered


def test_stalls_are_counted_by_how_late_the_machine_was() -> None:
    late = made(2, stall_s=7.0)
    late.setup["late_s"] = 0.2
    calm = made(1, stall_s=0.0)
    calm.setup["late_s"] = 0.0
    rows_of_table = lateness_table([compare(calm), compare(late)]).splitlines()[2:]
    assert rows_of_table[0] == "| 0 to 10 ms | 1 | 100% | 0 | – |"
    assert rows_of_table[-1] == "| 100 ms or more | 1 | 0% | 1 | 0% |"


def test_a_row_gives_coverage_and_medians_of_its_kind() -> None:
    found = rows([compare(made(1)), compare(made(2)), compare(made(3, pause_s=2.0))])
    pause = next(row for row in found if row.measure == "pause_s")
    usual = as_forecast()["pause_s"]["p50"]
    assert (pause.kind, pause.cases, round(pause.coverage, 2), pause.seen) == ("leave graceful", 3, 0.67, usual)
    assert pause.relative_width == pytest.approx(pause.width / usual)
    assert "| leave graceful | pause_s | 3 (few) | 67% |" in markdown(
        [compare(made(n)) for n in (1, 2)] + [compare(made(3, pause_s=2.0))]
    )
