"""The committed Kafka observations and what the forecasts make of them: what was reached does not rot.

Red when a change of the simulation covers fewer transitions of the check half than before, widens its intervals, or
names other partitions. The floors are what was reached, less one case in ten; raise them when it gets better.
"""

from functools import cache
from statistics import median

import pytest

from tests.conformance.page import LATENESS, PAGE, read_table
from tests.conformance.report import MEASURES, Compared, compare, lateness_table
from tests.conformance.split import CHECK, of_half
from tests.conformance.store import Store

LEAST_COVERAGE = {"pause_s": 0.86, "stall_s": 0.78, "duplicates": 0.86, "settle_s": 0.88}
WIDEST = {"join": 0.5, "leave crash": 0.3, "leave graceful": 0.7}


@cache
def compared() -> tuple[Compared, ...]:
    return tuple(compare(record) for record in of_half(Store("kafka").records(), CHECK))


@pytest.mark.parametrize("measure", MEASURES)
def test_the_intervals_hold_as_often_as_they_did(measure: str) -> None:
    points = [point for one in compared() for point in one.points if point.measure == measure]
    assert sum(point.is_covered for point in points) >= LEAST_COVERAGE[measure] * len(points)


def test_stalls_hold_where_the_machine_woke_sleepers_in_time() -> None:
    """Red where a queue that stays waits longer than forecast for another reason than a machine that has no time."""
    points = [point for one in compared() for point in one.points if point.measure == "stall_s"]
    calm = [point for point in points if point.record.setup["late_s"] < 0.1]
    assert len(calm) > 100
    assert sum(point.is_covered for point in calm) >= 0.85 * len(calm)


def test_the_page_has_what_the_forecasts_say_of_stalls_now() -> None:
    page = read_table(PAGE.read_text(encoding="utf-8"), LATENESS)
    assert page == lateness_table(compared()), "make conformance-report writes the page"


@pytest.mark.parametrize("kind", WIDEST)
def test_pauses_are_not_covered_by_being_vague(kind: str) -> None:
    points = [p for one in compared() if one.record.kind == kind for p in one.points if p.measure == "pause_s"]
    assert median(point.width for point in points) <= WIDEST[kind] * median(point.seen for point in points)


def test_the_forecast_partitions_moved() -> None:
    assert [one.record.id for one in compared() if not one.is_moved_right] == []


def test_every_record_was_measured_on_a_machine_that_was_not_late() -> None:
    assert max(record.setup["late_s"] for record in Store("kafka").records()) <= 0.5
