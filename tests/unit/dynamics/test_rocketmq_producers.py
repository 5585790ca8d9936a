"""What a broker's death sends to the queues that are left, and how long the backlog is."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.errors import BadInputError
from planner.forecast.rocketmq.membership.inflow import Inflow, find_inflow
from planner.forecast.rocketmq.membership.scenario import build_scenario

Document = dict[str, Any]
PER_BROKER, RATE = 4, 8.0


def request(producers: object = None, *, lag: int = 0, **other: object) -> Document:
    """Two members that each do 50 messages a second; 64 come in, half of them into the broker that dies."""
    return {
        "system": "rocketmq",
        "versions": {"client": "5.5.0", "broker": "5.5.0"},
        "strategy": "AVG",
        "queues": [
            {"topic": "T", "broker": broker, "queue_id": queue, "rate": RATE, "lag": lag * (broker == "a")}
            for broker in ("a", "b")
            for queue in range(PER_BROKER)
        ],
        "clients": [{"id": f"10.0.0.{number}@c", "threads": 2} for number in (1, 2)],
        "service_time_s": 0.04,
        "change": {"kind": "broker_down", "broker": "b"},
        "producers": producers,
        "trials": 400,
        **other,
    }


def inflow_of(producers: object) -> Inflow | None:
    scenario = build_scenario(read_request(request(producers)))
    owners = np.repeat([0, 1], PER_BROKER)
    waits = np.zeros(2 * PER_BROKER, dtype=bool)
    return find_inflow(scenario, owners, np.array([50.0, 50.0]), waits, np.random.default_rng(1))


@pytest.mark.parametrize("producers", ["round_robin", "keyed", None])
def test_nothing_that_is_sent_is_lost_once_routes_are_renewed(producers: str | None) -> None:
    inflow = inflow_of(producers)
    assert inflow is not None
    assert inflow.after.sum(axis=1) == pytest.approx(2 * PER_BROKER * RATE)
    assert not inflow.after[:, PER_BROKER:].any()


def test_round_robin_shifts_at_once_and_keys_as_the_process_renews_its_route() -> None:
    evenly, keyed = inflow_of("round_robin"), inflow_of("keyed")
    assert evenly is not None and keyed is not None
    assert (evenly.rate_at(0.0)[:, :PER_BROKER] == 2 * RATE).all()
    assert (keyed.first[:, :PER_BROKER] == RATE).all()
    assert keyed.shift_s.min() >= 0 and 25 < keyed.shift_s.max() <= 30
    unknown = inflow_of(None)
    assert unknown is not None and {*unknown.first[:, 0]} == {RATE, 2 * RATE}


def test_a_client_that_avoids_brokers_favours_the_next_queue_before_5_1_4() -> None:
    favours = inflow_of({"kind": "round_robin", "sendLatencyFaultEnable": True, "version": "4.9.8"})
    newer = inflow_of({"kind": "round_robin", "sendLatencyFaultEnable": True, "version": "5.1.4"})
    assert favours is not None and newer is not None
    assert favours.first[0, :PER_BROKER].tolist() == [RATE * (PER_BROKER + 1), RATE, RATE, RATE]
    assert newer.first[0, :PER_BROKER].tolist() == [2 * RATE] * PER_BROKER


def test_fixed_producers_change_nothing_and_others_lengthen_the_backlog() -> None:
    assert inflow_of("fixed") is None
    drained = {
        kind: forecast(request(kind, lag=120))["total"]["drained_s"]["p50"]
        for kind in ("fixed", "keyed", "round_robin")
    }
    assert drained["fixed"] < drained["keyed"] < drained["round_robin"]


def test_a_group_that_cannot_carry_the_rest_never_drains_and_says_so() -> None:
    answer = forecast(request("round_robin", service_time_s=0.065))
    assert answer["total"]["drained_s"] is None
    assert sum("cannot keep up: 32 messages a second come" in line for line in answer["warnings"]) == 2
    assert forecast(request("fixed", service_time_s=0.065))["total"]["drained_s"] is not None


def test_orderly_queues_are_limited_to_one_call_at_a_time() -> None:
    members = [{"id": f"10.0.0.{number}@c", "threads": 20, "orderly": True} for number in (1, 2)]
    slow, fast = (
        forecast(request("round_robin", clients=members, service_time_s=each_s))["total"]["drained_s"]
        for each_s in (0.07, 0.05)
    )
    assert slow is None and fast is not None


@pytest.mark.parametrize(
    ("producers", "message"),
    [
        ("sticky", 'producers: found "sticky", expected one of round_robin, keyed, fixed'),
        ({"kind": "keyed", "processes": 0}, "producers.processes: found 0"),
        ({"kind": "keyed", "sendLatencyFaultEnable": 1}, "producers.sendLatencyFaultEnable: found 1"),
        ({"topics": {"U": "keyed"}}, "producers.topics: found U, expected topics of the request's queues"),
        ({"topics": {"T": 3}}, "producers.topics.T: found 3"),
    ],
)
def test_what_producers_cannot_be_is_refused_by_name(producers: object, message: str) -> None:
    with pytest.raises(BadInputError, match=message.replace("(", r"\(")):
        read_request(request(producers))


def test_keys_stay_together_by_the_remainder_of_their_hash() -> None:
    """8 queues to 4: the hash modulo 4 joins both queues 0, and so on; 6 to 4: even ones, and odd ones."""
    document = request("keyed")
    for number, queue in enumerate(document["queues"]):
        queue["rate"] = float(2**number)
    inflow = _inflow(document)
    assert (inflow.after[:, :PER_BROKER] == [1 + 16, 2 + 32, 4 + 64, 8 + 128]).all()
    document["queues"] = [
        queue for queue in document["queues"] if (queue["broker"], queue["queue_id"] > 1) != ("b", True)
    ]
    inflow = _inflow(document)
    assert inflow.after[:, [0, 2]].sum(axis=1) == pytest.approx(1 + 4 + 16)
    assert inflow.after[:, [1, 3]].sum(axis=1) == pytest.approx(2 + 8 + 32)


def _inflow(document: Document) -> Inflow:
    scenario = build_scenario(read_request(document))
    count = len(scenario.queues)
    nobody, idle = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=bool)
    inflow = find_inflow(scenario, nobody, np.array([1e6]), idle, np.random.default_rng(1))
    assert inflow is not None
    return inflow
