"""Members that let the broker allocate (``clientRebalance=false``): who decides, how soon, and what has no forecast."""

from typing import Any

import pytest

from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import JOIN, Document, client_id, leave, rocketmq_request

BY_BROKER = {"clientRebalance": False}
SWITCH = {
    "kind": "strategy",
    "to": "CONSISTENT_HASH",
    "options": {"virtual_nodes": 10},
    "clients": [client_id(1), client_id(2)],
    "interval_s": 2,
}
SILENT = {"notifyConsumerIdsChangedEnable": False}


def asked(change: Document, **more: Any) -> Document:
    """The answer for a group whose queues the broker allocates."""
    settings = {**BY_BROKER, **more.pop("settings", {})}
    return forecast(rocketmq_request(change, settings=settings, **more))


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_the_broker_gives_what_the_strategy_of_that_name_gives(strategy: str) -> None:
    change = leave("crash", 2)
    answer = asked(change, clients=3, strategy=strategy)
    same = forecast(rocketmq_request(change, clients=3, strategy=strategy))
    assert (answer["before"], answer["after"], answer["moved"]) == (same["before"], same["after"], same["moved"])


def test_members_look_every_second_though_nobody_tells_them() -> None:
    told_by_none = asked(leave("crash", 2), settings=SILENT)["total"]["pause_s"]
    waits_for_ticks = forecast(rocketmq_request(leave("crash", 2), settings=SILENT))["total"]["pause_s"]
    assert told_by_none["p95"] < 2.5
    assert waits_for_ticks["p50"] > 5


def test_clients_before_5_2_look_by_their_ticks_alone() -> None:
    assert asked(leave("crash", 2), client="5.1.4", settings=SILENT)["total"]["pause_s"]["p50"] > 5


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (rocketmq_request(JOIN, strategy="CONSISTENT_HASH", options={"virtual_nodes": 10}), "brokers know no other"),
        (rocketmq_request(SWITCH), "brokers know no other"),
        (rocketmq_request(JOIN, versions={"client": "5.5.0", "broker": "4.9.7"}), "expected 5.0"),
    ],
)
def test_what_brokers_cannot_allocate_is_refused(request_: Document, why: str) -> None:
    with pytest.raises(BadInputError, match=why):
        forecast({**request_, "settings": BY_BROKER})
