"""The committed observations and what the forecasts make of them: what was reached does not rot.

Red when a change of the simulation covers fewer of the RocketMQ transitions of the check half than before, widens an
interval, or names other queues. The floors are what was reached, less one case in ten; raise them when it gets better.
"""

from dataclasses import replace
from functools import cache
from statistics import fmean

import pytest

from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.answers.answer import forecast_rocketmq
from planner.forecast.rocketmq.timing import DEFAULT
from tests.conformance.page import PAGE, read_table
from tests.conformance.record import Document
from tests.conformance.report import MEASURES, Compared, compare, table
from tests.conformance.rocketmq.changes import BEFORE_S
from tests.conformance.split import CHECK, of_half
from tests.conformance.store import OBSERVATIONS, Store

MOST_BYTES = 3_000_000
LEAST_COVERAGE = {"pause_s": 0.79, "stall_s": 0.82, "duplicates": 0.82, "settle_s": 0.77}
WIDEST = {"leave crash": 0.8, "leave graceful": 1.0, "join": 1.1}
"""Of means: an interval of a crash is 0.1 or 1.05 s wide, by the client's version, so that medians jump by one case."""


@cache
def compared() -> tuple[Compared, ...]:
    return tuple(compare(record) for record in of_half(Store("rocketmq").records(), CHECK))


@cache
def mostly() -> tuple[Compared, ...]:
    """Beside forecasts in which no heartbeat is lost: one start in thirty loses one, and that is half a minute wide."""

    def ask(request: Document) -> Document:
        return forecast_rocketmq(read_request(request), replace(DEFAULT, heartbeat_lost=0.0)).document()

    return tuple(compare(record, ask) for record in of_half(Store("rocketmq").records(), CHECK))


def test_every_record_is_there_once_and_the_files_stay_small() -> None:
    for path in OBSERVATIONS.glob("*.jsonl"):
        ids = [record.id for record in Store(path.stem).records()]
        assert len(ids) == len(set(ids)), path.name
    assert sum(path.stat().st_size for path in OBSERVATIONS.iterdir()) < MOST_BYTES


def test_every_group_was_at_rest_when_its_change_began() -> None:
    for record in Store("rocketmq").records():
        ended_s = [hold[-1] for holds in record.observed["course"].values() for hold in holds if hold[-1] is not None]
        assert not [at_s for at_s in ended_s if -BEFORE_S < at_s < -0.1], record.setup["series"]


def test_exactly_the_forecast_queues_moved() -> None:
    assert [one.record.setup["series"] for one in compared() if not one.is_moved_right] == []


def test_the_page_has_what_the_forecasts_say_now() -> None:
    page = read_table(PAGE.read_text(encoding="utf-8"), "rocketmq")
    assert page == table(compared()), "make conformance-report writes the page"


@pytest.mark.parametrize("measure", MEASURES)
def test_the_intervals_hold_as_often_as_they_did(measure: str) -> None:
    points = [point for one in compared() for point in one.points if point.measure == measure]
    assert sum(point.is_covered for point in points) >= LEAST_COVERAGE[measure] * len(points)


@pytest.mark.parametrize("kind", WIDEST)
def test_pauses_are_not_covered_by_being_vague(kind: str) -> None:
    points = [p for one in mostly() if one.record.kind == kind for p in one.points if p.measure == "pause_s"]
    assert fmean(point.width for point in points) <= WIDEST[kind] * fmean(point.seen for point in points)
