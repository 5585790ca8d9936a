"""The matrix, the curves of a topic that grows, and the fit's arithmetic: what needs no broker."""

import random
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conformance.fit import even_spread
from tests.conformance.rocketmq.cells import QUEUES, VERSIONS, Config, matrix
from tests.conformance.rocketmq.changes import CREATED_S, Resize, resized_curves
from tests.conformance.rocketmq.group import LiveGroup


def test_no_two_transitions_of_the_matrix_are_the_same() -> None:
    ids = [one for series in matrix() for one in series.ids()]
    assert len(ids) == len(set(ids))


def test_a_longer_matrix_begins_like_a_shorter_one() -> None:
    assert list(matrix(2)) == list(islice(matrix(8), len(list(matrix(2)))))


def test_every_kind_of_series_meets_every_pair_of_versions() -> None:
    first = list(matrix(4))
    for kind in ("members", "switches", "queues", "orderly"):
        pairs = {(one.config.client, one.config.broker) for one in first if one.kind == kind}
        assert pairs == set(VERSIONS), kind


def group(queues: int = 2, rate: float = 10.0) -> LiveGroup:
    """A group on two brokers that is never started."""
    brokers = [SimpleNamespace(name=name) for name in ("broker-a", "broker-b")]
    config = Config("5.5.0", "5.5.0", "AVG", {}, 2, queues, rate, 0.05)
    nothing: Any = None
    return LiveGroup(config, cast("Any", SimpleNamespace(brokers=brokers)), nothing, "T", random.Random(1))


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


def test_an_even_spread_has_the_percentiles_of_what_was_seen() -> None:
    assert even_spread([number / 1000 for number in range(1001)]) == pytest.approx((0.0, 1.0), abs=1e-9)
    low, high = even_spread([0.5] * 20)
    assert low == high == 0.5
