"""The matrix, the curves of a topic that grows, and the fit's arithmetic: what needs no broker."""

import math
import random
from collections.abc import Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planner.documents.forecast import forecast
from tests.clusters.rocketmq_load import Delivery, QueueCurve
from tests.conformance.fit import even_spread
from tests.conformance.measure import Hold, parts
from tests.conformance.rocketmq.cells import QUEUES, SELDOM, SYSTEM, VERSIONS, Config, Series, matrix
from tests.conformance.rocketmq.changes import CREATED_S, Resize, resized_curves
from tests.conformance.rocketmq.group import MOST_SECONDS, NO_OPTIONS, OPTIONS, Life, LiveGroup
from tests.conformance.store import Store

POLLED = ("lite_pull", "polled_freezes", "polled_cuts", "polled_brokers", "fetched")
RARE = (*SELDOM, *POLLED, "allocated", "freezes", "cuts", "upgrades", "blue_green")
MATRIX_SINCE = "2026-11-21T18:40"
"""What was observed earlier is from the first runs, before the matrix was as it is."""


def test_no_two_transitions_of_the_matrix_are_the_same() -> None:
    ids = [one for series in matrix() for one in series.ids()]
    assert len(ids) == len(set(ids))


def test_a_longer_matrix_begins_like_a_shorter_one() -> None:
    assert list(matrix(2)) == list(islice(matrix(8), len(list(matrix(2)))))


def test_every_kind_of_series_meets_every_pair_of_versions() -> None:
    first = list(matrix(6))
    for kind in ("members", "switches", "queues", "orderly", *SELDOM):
        pairs = {(one.config.client, one.config.broker) for one in first if one.kind == kind}
        assert pairs == set(VERSIONS), kind


def test_what_was_observed_is_in_the_matrix_still() -> None:
    ids = {one for series in matrix() for one in series.ids()}
    later = [record.id for record in Store(SYSTEM).records() if record.setup["when"] > MATRIX_SINCE]
    assert len(later) > 80
    assert set(later) <= ids


class NoProcess:
    """A member that was never started and one day may have delivered this."""

    def __init__(self, client_id: str, deliveries: Sequence[Delivery] = ()) -> None:
        self.client_id = client_id
        self._deliveries = deliveries

    def deliveries(self) -> Sequence[Delivery]:
        return self._deliveries


def group(config: Config | None = None, produced: int = 0) -> LiveGroup:
    """A group on two brokers that is never started; each queue holds so many messages."""
    config = config or Config("5.5.0", "5.5.0", "AVG", {}, 2, 2, 10.0, 0.05)
    names = ("broker-a", "broker-b")
    lanes = {(name, queue): produced for name in names for queue in range(config.queues)}
    cluster = SimpleNamespace(brokers=[SimpleNamespace(name=name) for name in names], produced=lambda _: lanes)
    nothing: Any = None
    found = LiveGroup(config, cast("Any", cluster), nothing, "T", random.Random(1), config.strategy, config.options)
    found.rate, found.queues = config.rate, dict.fromkeys(names, config.queues)
    return found


@pytest.mark.parametrize("series", [one for one in matrix(12) if one.kind in RARE], ids=lambda one: str(one.number))
def test_every_rare_series_is_one_that_can_be_forecast(series: Series) -> None:
    alive = group(series.config)
    members = [f"127.0.0.1@c{number}" for number in range(series.config.members)]
    changes: dict[str, dict[str, object]] = {
        "join": {"clients": [{"id": "127.0.0.1@c99"}]},
        "leave": {"clients": members[:1]},
        "restart": {"clients": members[:1]},
        "broker_down": {"broker": "broker-b"},
        "broker_up": {"broker": "broker-b"},
        "freeze": {"clients": members[:1]},
        "partition": {"clients": members[:1]},
        "upgrade": {"clients": members},
        "blue_green": {"to_group": "T-v2", "clients": [{"id": "127.0.0.1@c98"}]},
    }
    for step in series.steps:
        figures = {name: value for name, value in step.items() if name not in {"count", "stagger_s"}}
        request = alive.request({**figures, **changes[step["kind"]]}, alive.strategy, alive.options, members, {})
        answer = forecast({**request, "trials": 2})
        assert answer["after"]
        assert not [word for word in answer["warnings"] if "influence" in word]


@pytest.mark.parametrize("series", [one for one in matrix(12) if one.kind in RARE], ids=lambda one: str(one.number))
def test_every_setting_reaches_the_client(series: Series) -> None:
    assert {name for name in series.config.settings if not name.startswith(NO_OPTIONS)} <= OPTIONS.keys()


def test_a_lag_is_what_was_stored_and_not_delivered_when_the_change_came() -> None:
    backlogged = next(one.config for one in matrix(1) if one.kind == "backlog")
    found = group(backlogged, produced=100)
    found.rate = 0.0
    offsets = [(900, 0), (950, 1), (950, 1), (1100, 2)]
    seen = [Delivery(at_ms, "c1", "T", "broker-a", 1, offset, 0) for at_ms, offset in offsets]
    found.lives = [Life(cast("Any", NoProcess("c1", seen)))]
    lags = found.lags(1000)
    assert lags["broker-a", 1] == 98
    assert lags["broker-b", 0] == 100
    assert group(produced=100).lags(1000) == {}


def test_a_backlog_is_made_before_the_members_start() -> None:
    backlogged = next(one.config for one in matrix(1) if one.kind == "backlog")
    curve = group(backlogged).flat_curves()[0]
    before = QueueCurve("T", "broker-a", 0, curve.points[:2])
    assert before.messages == pytest.approx(backlogged.backlog)
    assert curve.points[2:] == ((before.points[1][0], backlogged.rate), (MOST_SECONDS, backlogged.rate))


def test_a_topic_that_grows_gets_as_many_messages_as_before() -> None:
    curves = resized_curves(group(), [Resize(100.0, "broker-b", {"broker-a": 2, "broker-b": 6})])
    assert len(curves) == 8
    old = next(curve for curve in curves if (curve.broker, curve.queue) == ("broker-a", 0))
    new = next(curve for curve in curves if (curve.broker, curve.queue) == ("broker-b", 5))
    assert old.points[:3] == ((0.0, 10.0), (100.0, 10.0), (100.0, 5.0))
    assert new.points[0] == (100.0 + CREATED_S, 5.0)
    assert sum(curve.points[-1][1] for curve in curves) == pytest.approx(40.0)


def test_nothing_is_sent_to_a_queue_that_is_gone() -> None:
    curves = resized_curves(group(), [Resize(100.0, "broker-b", {"broker-a": 2, "broker-b": 1})])
    gone = next(curve for curve in curves if (curve.broker, curve.queue) == ("broker-b", 1))
    assert gone.points == ((0.0, 10.0), (100.0, 10.0), (100.0, 0.0))


def test_series_of_queues_grow_before_they_shrink() -> None:
    assert all(chain[0]["by"] > 0 > chain[1]["by"] for chain in QUEUES)


def test_who_is_away_holds_nothing() -> None:
    def holds(gained_s: float, dropped_s: float) -> list[tuple[float, float]]:
        held = Hold("c1", ("T", "broker-a", 0), gained_s, dropped_s)
        return [(part.gained_s, part.dropped_s) for part in parts(held, [(0.0, 10.0), (50.0, 60.0)])]

    assert holds(-5.0, math.inf) == [(-5.0, 0.0), (10.0, 50.0), (60.0, math.inf)]
    assert holds(-5.0, -1.0) == [(-5.0, -1.0)]
    assert holds(-5.0, 5.0) == [(-5.0, 0.0)]
    assert holds(2.0, 8.0) == []
    assert holds(2.0, 20.0) == [(10.0, 20.0)]
    assert holds(20.0, 55.0) == [(20.0, 50.0)]


def test_an_even_spread_has_the_percentiles_of_what_was_seen() -> None:
    assert even_spread([number / 1000 for number in range(1001)]) == pytest.approx((0.0, 1.0), abs=1e-9)
    low, high = even_spread([0.5] * 20)
    assert low == high == 0.5
