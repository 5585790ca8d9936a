"""Kafka members that restart one by one with another release of their client."""

import pytest

from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import Document, kafka_request


def upgrade(to: str, interval_s: float = 10.0) -> Document:
    return {"kind": "upgrade", "to": to, "clients": ["c0", "c1", "c2"], "interval_s": interval_s}


def restart(interval_s: float = 10.0) -> Document:
    kind = {"kind": "restart", "how": "graceful", "interval_s": 0.0, "stagger_s": interval_s}
    return {**kind, "clients": ["c0", "c1", "c2"]}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "uniform"])
def test_an_upgrade_is_a_restart_at_once_of_one_after_the_other(strategy: str) -> None:
    upgraded, restarted = (forecast(kafka_request(change, strategy)) for change in (upgrade("4.3.0"), restart()))
    assert upgraded["total"] == restarted["total"]
    assert upgraded["total"]["settle_s"]["p05"] > 20


def test_a_static_member_that_is_back_in_time_moves_nothing() -> None:
    found = forecast(kafka_request(upgrade("4.3.0"), static=True))
    assert found["moved"] == []
    assert found["total"]["duplicates"]["p95"] == 0


@pytest.mark.parametrize(
    ("change", "more", "words"),
    [
        (upgrade("3.9.2"), {"strategy": "uniform"}, "change.to: found consumer with client 3.9.2, expected 4.0"),
        (upgrade("newest"), {}, 'change.to: found "newest", expected a version'),
        ({**upgrade("4.3.0"), "clients": ["nobody"]}, {}, "nobody"),
    ],
)
def test_refusals(change: Document, more: Document, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        forecast(kafka_request(change, **more))
    assert words in str(caught.value)


def test_a_release_without_a_model_of_its_own_is_named() -> None:
    warnings = forecast(kafka_request(upgrade("9.0.0")))["warnings"]
    assert any("client 9.0.0 has no model of its own" in one for one in warnings)
