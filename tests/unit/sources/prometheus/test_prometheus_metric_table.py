"""From readings to rates and sums, without a server."""

import math
from datetime import UTC, datetime, timedelta
from typing import cast

import numpy as np
import pytest

from planner.sources.prometheus.answers import Series
from planner.sources.prometheus.client import Prometheus
from planner.sources.prometheus.errors import AnswerError
from planner.sources.prometheus.families import KAFKA_EXPORTER
from planner.sources.prometheus.metric_table import MetricTable, expected_rows, period_of, rates, read_table, total

NAN = math.nan


def table(
    *rows: list[float], times: list[list[float]] | None = None, lowest: list[list[float]] | None = None
) -> MetricTable:
    """Return a sheet of brokers b0, b1, ... with a minute between columns; scrapes are those of the columns."""
    values = np.array(rows, dtype=np.float64)
    grid = np.arange(values.shape[1]) * 60.0
    known = np.where(np.isfinite(values), grid, NAN)
    return MetricTable(
        dimensions=("broker",),
        keys=tuple((f"b{number}",) for number in range(len(rows))),
        grid=grid,
        values=values,
        times=known if times is None else np.array(times),
        lowest=values if lowest is None else np.array(lowest),
    )


def test_a_rate_needs_two_scrapes() -> None:
    np.testing.assert_array_equal(rates(table([0, 60, 180]), 60).by_row, [[NAN, 1, 2]])


def test_a_rate_goes_by_the_time_between_scrapes_not_between_columns() -> None:
    found = rates(table([0, 60, 120], times=[[0, 50, 120]]), 60).by_row
    np.testing.assert_allclose(found, [[NAN, 60 / 50, 60 / 70]])


def test_a_column_without_a_new_scrape_has_the_rate_around_it() -> None:
    found = rates(table([0, 0, 120, 120], times=[[0, 0, 120, 120]]), 60).by_row
    np.testing.assert_array_equal(found, [[NAN, 1, 1, NAN]])


def test_a_fall_is_a_reset() -> None:
    np.testing.assert_array_equal(rates(table([500, 10, 70]), 60).by_row, [[NAN, NAN, 1]])


def test_a_dip_between_columns_is_a_reset() -> None:
    found = rates(table([500, 560, 620], lowest=[[500, 500, 7]]), 60).by_row
    np.testing.assert_array_equal(found, [[NAN, 1, NAN]])


def test_a_long_way_between_scrapes_is_a_gap_with_a_mean() -> None:
    found = rates(table([0, NAN, 120, 180, 240]), 60)
    np.testing.assert_array_equal(found.by_row, [[NAN, 1, 1, 1, 1]])
    np.testing.assert_array_equal(found.is_gap, [[False, True, True, False, False]])


def test_a_sum_without_an_expected_row_is_unknown() -> None:
    lines = table([1, 2, 3], [NAN, 20, NAN])
    np.testing.assert_array_equal(total(lines.values, expected_rows(lines)), [1, 22, NAN])


def test_a_row_is_gone_an_hour_after_its_last_value() -> None:
    lines = table([1.0] * 63, [2.0, *[NAN] * 62])
    summed = total(lines.values, expected_rows(lines))
    assert math.isnan(summed[60])
    assert summed[61] == 1


def test_nothing_expected_is_unknown_and_not_zero() -> None:
    lines = table([NAN, NAN])
    np.testing.assert_array_equal(total(lines.values, expected_rows(lines)), [NAN, NAN])


def test_counters_of_one_scrape_add_up_and_one_that_is_not_there_yet_is_zero() -> None:
    pair = MetricTable(
        dimensions=("broker", "kind"),
        keys=(("a", "x"), ("a", "y")),
        grid=np.array([0.0, 60.0]),
        values=np.array([[10, 20], [NAN, 5]]),
        times=np.array([[0, 60], [NAN, 60.0]]),
        lowest=np.array([[10, 20], [NAN, 5]]),
    )
    joined = pair.onto(["broker"])
    assert joined.keys == (("a",),)
    np.testing.assert_array_equal(joined.values, [[10, 25]])
    np.testing.assert_array_equal(rates(joined, 60).by_row, [[NAN, 0.25]])


@pytest.mark.parametrize(("step_s", "period_s"), [(10, 60), (300, 300)])
def test_the_period_is_the_scrapes_or_the_step(step_s: float, period_s: float) -> None:
    assert period_of((table([1, 2, 3, 4]),), step_s) == period_s


class _Scraped:
    """A server with one value, of a scrape of this age."""

    def __init__(self, age_s: float) -> None:
        self.age_s = age_s

    def range(self, _query: str, since: datetime, _until: datetime, _step_s: float) -> tuple[Series, ...]:
        at = np.array([since.timestamp()])
        readings = {"value": at * 0 + 7, "time": at - self.age_s}
        labels = {"topic": "t" * 1_000}
        return tuple(Series({"planner_reads": name} | labels, at, values) for name, values in readings.items())


@pytest.mark.parametrize("age_s", [-59.0, 0.0, 300.0, 3_599.0])
def test_a_value_is_of_a_scrape_not_long_before(age_s: float) -> None:
    since = datetime(2026, 11, 1, tzinfo=UTC)
    server = cast("Prometheus", _Scraped(age_s))
    found = read_table(server, KAFKA_EXPORTER, KAFKA_EXPORTER.lag, ["lag"], since, since + timedelta(minutes=1), 60.0)
    assert found.times[0, 0] == since.timestamp() - age_s


@pytest.mark.parametrize("age_s", [-61.0, 3_601.0, 1.7e9])
def test_a_scrape_of_another_day_is_refused_with_both_times(age_s: float) -> None:
    since = datetime(2026, 11, 1, tzinfo=UTC)
    server = cast("Prometheus", _Scraped(age_s))
    with pytest.raises(AnswerError, match=r"at 1793491200\.000 the server shows a scrape of time ") as raised:
        read_table(server, KAFKA_EXPORTER, KAFKA_EXPORTER.lag, ["lag"], since, since + timedelta(minutes=1), 60.0)
    assert str(raised.value).startswith("topic=tt")
    assert len(str(raised.value)) < 350
