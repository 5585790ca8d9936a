"""Broadcasting groups: nothing moves, each client goes through a change alone and by offsets of its own."""

from typing import Any

import pytest

from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import JOIN, client_id, leave, rocketmq_request

ONE, TWO = client_id(1), client_id(2)
RATE, SERVICE_S, QUEUES = 25.0, 0.05, 8
CHANGES: dict[str, dict[str, Any]] = {
    "join": JOIN,
    "leave": leave("crash", 2),
    "restart": {"kind": "restart", "clients": [ONE], "how": "graceful", "interval_s": 5},
    "freeze": {"kind": "freeze", "clients": [ONE], "for_s": 30},
    "partition": {"kind": "partition", "clients": [ONE], "for_s": 30},
    "partition of some": {"kind": "partition", "clients": [ONE], "for_s": 30, "brokers": ["broker-b"]},
    "upgrade": {"kind": "upgrade", "clients": [ONE, TWO], "to": "5.5.0", "interval_s": 20},
    "rolling update": {"kind": "rolling_update", "max_surge": 1, "max_unavailable": 0, "ready_s": 5},
    "broker down": {"kind": "broker_down", "broker": "broker-b"},
    "broker up": {"kind": "broker_up", "broker": "broker-b"},
    "queues": {"kind": "queues", "topic": "T", "broker": "broker-a", "read_queues": 6},
    "strategy": {"kind": "strategy", "to": "AVG_BY_CIRCLE", "clients": [ONE, TWO], "interval_s": 20},
}


def answer(change: dict[str, Any], **settings: int) -> dict[str, Any]:
    request = rocketmq_request(change, queues=QUEUES, rate=RATE)
    found: dict[str, Any] = forecast({**request, "settings": {"messageModel": "BROADCASTING", **settings}})
    return found


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_nothing_moves_whatever_changes(change: dict[str, Any]) -> None:
    found = answer(change)
    assert (found["moved"], found["total"]["moved_queues"]["p95"], found["total"]["pause_s"]["p95"]) == ([], 0, 0.0)
    assert len({len(queues) for side in ("before", "after") for queues in found[side].values()}) <= 2
    assert all(len(queues) == len(next(iter(found["after"].values()))) for queues in found["after"].values())


def test_every_client_has_the_queues_of_the_route() -> None:
    down, up = answer(CHANGES["broker down"]), answer(CHANGES["broker up"])
    assert down["before"] == up["after"] == dict.fromkeys((ONE, TWO), up["after"][ONE])
    assert (
        {broker for _, broker, _ in down["after"][TWO]}
        == {broker for _, broker, _ in up["before"][ONE]}
        == {"broker-a"}
    )
    assert len(answer(CHANGES["queues"])["after"][TWO]) == QUEUES + 2


def test_new_pods_stand_for_those_that_a_rolling_update_replaces() -> None:
    found = answer(CHANGES["rolling update"])
    assert sorted(found["after"]) == ["new-1", "new-2"]
    assert found["total"]["duplicates"]["p95"] == 0


def test_a_killed_client_repeats_what_it_has_not_written_into_its_file() -> None:
    killed = {**CHANGES["restart"], "how": "crash"}
    usual = answer(killed)["total"]["duplicates"]
    in_hand = QUEUES * RATE * SERVICE_S
    assert in_hand < usual["p05"] < QUEUES * RATE * 0.1 * 5 + 3 * in_hand  # one timer writes all queues at once
    assert QUEUES * RATE * 0.9 * 5 < usual["p95"] <= QUEUES * RATE * 5 + 3 * in_hand
    often = answer(killed, persistConsumerOffsetInterval=100)["total"]["duplicates"]
    assert often["p95"] <= QUEUES * RATE * 0.1 + 3 * in_hand < usual["p50"]
    assert answer(CHANGES["restart"], awaitTerminationMillisWhenShutdown=1000)["total"]["duplicates"]["p95"] == 0


def test_who_shuts_down_repeats_all_calls_that_it_interrupts() -> None:
    in_hand = QUEUES * RATE * SERVICE_S
    seen = answer(CHANGES["restart"])["total"]["duplicates"]
    assert 0.8 * in_hand <= seen["p05"] <= seen["p95"] <= 1.3 * in_hand + QUEUES


def test_what_happens_to_two_clients_comes_twice_as_often() -> None:
    one, two = (answer({**CHANGES["restart"], "clients": who, "how": "crash"})["total"] for who in ([ONE], [ONE, TWO]))
    assert two["duplicates"]["p50"] == pytest.approx(2 * one["duplicates"]["p50"], rel=0.2)
    assert two["settle_s"]["p50"] - one["settle_s"]["p50"] == pytest.approx(5.0, abs=1.0)


@pytest.mark.parametrize("kind", ["freeze", "partition", "partition of some"])
def test_who_is_away_gets_everything_late_and_once(kind: str) -> None:
    found = answer(CHANGES[kind])
    # TCP asks again after waits that are about as long as it was without an answer.
    assert 30 <= found["total"]["stall_s"]["p05"] <= found["total"]["stall_s"]["p95"] < 60
    assert found["total"]["duplicates"]["p95"] == 0
    brokers = {one["queue"][1] for one in found["queues"]}
    assert brokers == ({"broker-b"} if kind == "partition of some" else {"broker-a", "broker-b"})


def test_brokers_may_give_up_who_is_away_and_nothing_changes() -> None:
    patient = answer(CHANGES["freeze"])
    soon = answer(CHANGES["freeze"], serverChannelMaxIdleTimeSeconds=10, heartbeatBrokerInterval=5_000)
    assert patient["total"]["duplicates"] == soon["total"]["duplicates"]
    assert patient["total"]["stall_s"] == soon["total"]["stall_s"]


@pytest.mark.parametrize("kind", ["broker up", "queues"])
def test_new_queues_are_consumed_once_each_client_has_asked_for_the_route_and_looked(kind: str) -> None:
    usual, often = (
        answer(CHANGES[kind], **more)["total"]["settle_s"] for more in ({}, {"pollNameServerInterval": 1_000})
    )
    assert usual["p95"] < 30 + 20 + 10
    assert often["p95"] < 1 + 20 + 10 < usual["p95"]
    (told,) = (word for word in answer(CHANGES[kind])["warnings"] if "CONSUME_FROM_FIRST_OFFSET" in word)
    assert f"up to {usual['p95']:.0f} s" in told


def test_fewer_queues_and_a_dead_broker_leave_nothing_to_wait_for() -> None:
    for change in (CHANGES["broker down"], {**CHANGES["queues"], "read_queues": 1}):
        assert answer(change)["total"]["settle_s"]["p95"] == 0.0


def test_what_the_application_of_a_pull_consumer_decides_is_not_told() -> None:
    request = rocketmq_request(CHANGES["restart"], threads=1, options={"consumer": "pull"})
    total = forecast({**request, "settings": {"messageModel": "BROADCASTING"}})["total"]
    assert [total[name] for name in ("stall_s", "duplicates", "settle_s")] == [None] * 3


def test_another_group_cannot_take_over_what_lies_with_the_clients() -> None:
    change = {"kind": "blue_green", "to_group": "h", "clients": [{"id": "10.0.0.9@c9"}], "clone_s": 1}
    with pytest.raises(BadInputError, match="keep their offsets themselves"):
        answer(change)
