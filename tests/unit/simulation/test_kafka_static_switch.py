"""Static members that come again in their places with another assignor of their protocol."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.kafka import read_request
from planner.errors import BadInputError
from planner.forecast.kafka.membership.scenario import Scenario, build_scenario
from planner.forecast.kafka.simulate import Simulation, simulate
from planner.forecast.kafka.timing import DEFAULT
from tests.unit.dynamics.small_groups import kafka_request

MEMBERS, INTERVAL_S, BEAT_S = ["c1", "c0", "c2"], 20.0, 3.0
"""The last one keeps nothing of what it had, and is restarted with what it has then."""
FIRST_OF_SECOND_ROLL_S, LAST_S = 3 * INTERVAL_S, 5 * INTERVAL_S
SLOWEST_START_S = 5.0

Document = dict[str, Any]


def request(strategy: str, to: str, names: list[str] = MEMBERS, **more: Any) -> Document:
    change = {"kind": "strategy", "to": to, "clients": names, "interval_s": INTERVAL_S}
    return kafka_request(change, strategy, static=True, **more)


def simulated(strategy: str, to: str) -> tuple[Scenario, Simulation]:
    scenario = build_scenario(read_request(request(strategy, to)))
    return scenario, simulate(scenario, DEFAULT)


@pytest.mark.parametrize(("strategy", "to"), [("range", "roundrobin"), ("cooperative-sticky", "range")])
def test_only_the_first_that_lists_the_new_assignor_alone_makes_all_rejoin(strategy: str, to: str) -> None:
    _, found = simulated(strategy, to)
    (round_,) = found.membership.rounds
    assert round_.played.all()
    assert (round_.begins >= FIRST_OF_SECOND_ROLL_S).all()
    assert (round_.barrier < FIRST_OF_SECOND_ROLL_S + BEAT_S + 2 * SLOWEST_START_S).all()


def test_partitions_move_as_the_new_assignor_has_it_and_wait_for_no_session() -> None:
    answer = forecast(request("range", "roundrobin"))
    assert [owned for _, owned in sorted(answer["after"].items())] == [
        [["t", number] for number in range(first, 8, 3)] for first in range(3)
    ]
    assert answer["total"]["pause_s"]["p95"] < BEAT_S + SLOWEST_START_S
    assert not [cause for cause in answer["causes"] if cause["cause"] == "expiry"]
    assert answer["total"]["duplicates"]["p95"] == 0


def test_a_group_has_settled_when_the_last_one_is_back_in_its_place() -> None:
    settle = forecast(request("range", "roundrobin"))["total"]["settle_s"]
    assert LAST_S < settle["p05"] <= settle["p95"] < LAST_S + SLOWEST_START_S


def test_what_stays_waits_for_the_longer_one_of_two_restarts() -> None:
    """Of two draws the longer one lies above the median as often as one lies above its lower quartile."""
    once = {"kind": "restart", "clients": ["c0"], "how": "graceful", "interval_s": 0}
    alone = {"static": True, "members": 1, "trials": 2_000}
    both, single = (
        simulate(build_scenario(read_request(kafka_request(change, "range", **alone))), DEFAULT).observed.pause_s[:, 0]
        for change in (request("range", "roundrobin", ["c0"])["change"], once)
    )
    assert np.quantile(both, 0.25) > np.quantile(single, 0.4)


def test_others_hear_of_the_round_by_heartbeats_that_began_with_their_first_restart() -> None:
    """Where whole heartbeats lie between two turns, it is the starts alone that say how soon."""
    pair = request("range", "roundrobin", ["c0", "c1"], members=2, trials=400)
    in_step, out_of_step = (
        forecast({**pair, "change": {**pair["change"], "interval_s": beats * BEAT_S}})["total"]["pause_s"]["p05"]
        for beats in (3, 3.4)
    )
    assert in_step < 0.5 < out_of_step


def test_the_server_does_not_assign_anew_for_members_that_ask_for_another_assignor() -> None:
    answer = forecast(request("uniform", "range-server"))
    assert (answer["moved"], answer["total"]["moved_queues"]["p95"]) == ([], 0)
    assert answer["total"]["stall_s"]["p05"] > 0
    assert 2 * INTERVAL_S < answer["total"]["settle_s"]["p95"] < 2 * INTERVAL_S + SLOWEST_START_S
    assert [
        word for word in answer["warnings"] if "shares partitions out anew only when somebody comes or goes" in word
    ]


def test_a_part_of_a_classic_group_cannot_switch() -> None:
    with pytest.raises(BadInputError, match=r"change\.clients: found 2 of 3 members"):
        forecast(request("range", "roundrobin", MEMBERS[:2]))


def mixed(strategy: str, to: str, **more: Any) -> Document:
    """The member that comes last is not static."""
    found = request(strategy, to, **more)
    found["members"][2].pop("instance_id")
    return found


def test_static_members_beside_others_switch_to_what_the_new_assignor_says() -> None:
    """Of four real switches of classic groups all moved what was forecast."""
    answer = forecast(mixed("range", "roundrobin"))
    assert [len(owned) for owned in answer["after"].values()] == [3, 3, 2]
    assert answer["total"]["moved_queues"]["p05"] > 3
    assert not [cause for cause in answer["causes"] if cause["cause"] == "expiry"]
    # Who is not static leaves and joins twice; the others make one round.
    rounds = simulate(build_scenario(read_request(mixed("range", "roundrobin"))), DEFAULT).membership.rounds
    assert sum(round_.played.mean() for round_ in rounds) > 3


def test_beside_others_it_is_those_who_leave_that_make_the_server_assign_anew() -> None:
    static, beside = (
        forecast(one)["total"] for one in (request("uniform", "range-server"), mixed("uniform", "range-server"))
    )
    assert static["moved_queues"]["p95"] == 0
    assert beside["stall_s"]["p95"] > static["stall_s"]["p95"]


def test_a_part_of_a_group_of_dynamic_members_cannot_switch_either() -> None:
    """Seen: the broker refuses who lists the new assignor alone, and the client dies of it."""
    change = {"kind": "strategy", "to": "roundrobin", "clients": MEMBERS[:2], "interval_s": INTERVAL_S}
    with pytest.raises(BadInputError, match="INCONSISTENT_GROUP_PROTOCOL"):
        forecast(kafka_request(change, "range"))
