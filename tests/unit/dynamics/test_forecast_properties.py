"""What holds for every forecast, whatever the group and the change."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.documents.allocation import answer
from planner.documents.forecast import forecast
from planner.documents.forecast.rocketmq import read_request
from planner.documents.forecast.rocketmq_changes import DEFAULT_THREADS
from planner.forecast.common.changes import MOST_PLACEMENTS
from planner.forecast.rocketmq.membership.consume_rates import find_rates
from planner.forecast.rocketmq.membership.ownership import first_process, state_matrix
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import build_scenario
from planner.forecast.rocketmq.simulate import simulate
from planner.forecast.rocketmq.timing import DEFAULT
from tests.unit.dynamics.small_groups import JOIN, Document, client_id, leave, rocketmq_request

BROKERS = ("broker-a", "broker-b", "broker-10")
ways = st.sampled_from(["graceful", "crash", "silent"])
waits = st.floats(0, 40)


@st.composite
def changes(draw: st.DrawFn, clients: int, brokers: tuple[str, ...]) -> Document:
    """Return any change of a group with so many clients."""
    some = st.lists(st.integers(1, max(clients, 1)), min_size=1, max_size=3, unique=True)
    kinds = [
        "join",
        "broker_down",
        "broker_up",
        "queues",
        "leave",
        "restart",
        "freeze",
        "strategy",
        "rolling_update",
        "upgrade",
    ]
    kind = draw(st.sampled_from(kinds if clients else ["join"]))
    members = [client_id(number) for number in draw(some)]
    if kind == "join":
        ids = st.sampled_from([None, "10.0.0.0@a", "zz@z"])
        known = draw(st.lists(ids, min_size=1, max_size=3, unique_by=lambda name: name or object()))
        return {"kind": kind, "clients": [{"id": name} for name in known], "stagger_s": draw(waits)}
    of_members: dict[str, Document] = {
        "leave": {"how": draw(ways), "stagger_s": draw(waits)},
        "restart": {"how": draw(ways), "interval_s": draw(waits)},
        "freeze": {"for_s": draw(st.one_of(waits, st.floats(90, 300)))},
        "partition": {"for_s": draw(st.one_of(waits, st.floats(90, 300)))},
        "upgrade": {"to": draw(st.sampled_from(["4.9.4", "4.9.8", "5.5.0"])), "interval_s": draw(waits)},
        "strategy": {"to": "AVG_BY_CIRCLE", "interval_s": draw(waits)},
    }
    if kind in of_members:
        return {"kind": kind, "clients": members, **of_members[kind]}
    if kind == "blue_green":
        clone = draw(st.floats(0, 20))
        times = {"clone_s": clone, "stop_s": draw(waits), "start_s": clone + draw(waits)}
        return {"kind": kind, "to_group": "h", "clients": [{"id": None}, {"id": "zz@z"}], **times}
    if kind == "rolling_update":
        shares = st.sampled_from([1, 3, "25%", "100%"])
        seconds = {"ready_s": 12.0, "start_s": draw(st.floats(0, 12)), "grace_s": draw(st.sampled_from([0, 1, 30]))}
        return {"kind": kind, "max_surge": draw(shares), "max_unavailable": draw(shares), **seconds}
    broker = draw(st.sampled_from(brokers))
    if kind == "queues":
        counts = st.integers(0, 6)
        return {"kind": kind, "topic": "T", "broker": broker, "read_queues": draw(counts), "write_queues": draw(counts)}
    return {"kind": kind, "broker": broker}


@st.composite
def requests(draw: st.DrawFn) -> Document:
    """Return a small group with any change."""
    brokers = BROKERS[: draw(st.integers(1, 3))]
    clients = draw(st.integers(0, 4))
    return rocketmq_request(
        draw(changes(clients, brokers)),
        draw(st.sampled_from(["4.9.4", "4.9.8", "5.1.4", "5.5.0"])),
        queues=draw(st.integers(1, 4)) * len(brokers),
        clients=clients,
        brokers=brokers,
        rate=draw(st.sampled_from([0.0, 0.01, 25.0, 1e4])),
        lag=draw(st.sampled_from([0, 1, 5_000])),
        strategy=draw(st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])),
        orderly=draw(st.booleans()),
        service_time_s=draw(st.sampled_from([0.0, 0.05, 3.0])),
        settings=draw(
            st.sampled_from(
                [{}, {"awaitTerminationMillisWhenShutdown": 5000}, {"notifyConsumerIdsChangedEnable": False}]
            )
        ),
        trials=draw(st.sampled_from([1, 12])),
        seed=draw(st.integers(0, 5)),
    )


def intervals(document: Any) -> list[dict[str, float]]:
    """Return every interval anywhere in the answer."""
    if isinstance(document, dict):
        if "p05" in document:
            return [document]
        return [found for value in document.values() for found in intervals(value)]
    return [found for value in document for found in intervals(value)] if isinstance(document, list) else []


@settings(max_examples=120, deadline=None)
@given(requests())
def test_any_change_has_an_answer_in_order(request: Document) -> None:
    found = forecast(request)
    json.dumps(found, allow_nan=False)
    for interval in intervals(found):
        values = [interval[key] for key in ("p05", "p50", "p95") if key in interval]
        assert values == sorted(values) and values[0] >= 0
    moved = [
        queue["queue"] for queue in found["queues"] if queue["from"] != queue["to"] and queue["from"] and queue["to"]
    ]
    if all(client.get("id") for client in request["change"].get("clients", []) if isinstance(client, dict)):
        assert sorted(moved) == sorted(found["moved"])
    assert len(found["warnings"]) == len(set(found["warnings"]))


@settings(max_examples=25, deadline=None)
@given(requests())
def test_the_same_seed_gives_the_same_bytes(request: Document) -> None:
    assert json.dumps(forecast(request)) == json.dumps(forecast(request))


def test_a_heartbeat_that_is_lost_by_a_member_without_queues_delays_nothing() -> None:
    """Three join a group of two queues: in some trial the heartbeat is lost of the one that gets none."""
    joining = {"kind": "join", "clients": [{"id": "zz@z"}, {"id": None}, {"id": "10.0.0.0@a"}], "stagger_s": 0.0}
    request = rocketmq_request(joining, clients=0, queues=2, rate=0.0, seed=0, service_time_s=0.0)
    json.dumps(forecast({**request, "trials": 12}), allow_nan=False)


def test_another_seed_gives_other_trials() -> None:
    assert forecast(rocketmq_request(JOIN, seed=1)) != forecast(rocketmq_request(JOIN, seed=2))


@settings(max_examples=60, deadline=None)
@given(requests())
def test_every_message_is_delivered_and_what_comes_twice_is_counted(request: Document) -> None:
    """Deliveries = due + duplicates, counted message by message from each hold's start offset, first and last moment.

    The simulation counts by lengths of stretches; here every message is put into a set. Each hold may differ by one
    message, as parts of messages are drawn to whole ones.
    """
    request = {**request, "trials": 3}
    scenario = build_scenario(read_request(request))
    found = simulate(scenario, DEFAULT)
    owned = [
        state_matrix(scenario, found.names, side, processes)
        for side, processes in ((BEFORE, scenario.initial), (AFTER, scenario.final))
    ]
    rates = find_rates(scenario, *map(first_process, owned))
    for trial, column in np.ndindex(*found.tenures.process.shape[:2]):
        queue = found.tenures.queues[column]
        if scenario.rates[queue] > 100 or scenario.lags[queue] > 100:
            continue  # too many messages to count one by one
        total, distinct = 0, set[int]()
        stretches = []
        for number in np.flatnonzero(found.deliveries.delivers[trial, column]):
            taken, dropped = found.tenures.taken[trial, column, number], found.tenures.dropped[trial, column, number]
            is_old = np.isneginf(taken)
            first = max(found.starts.first[trial, column, number], 0.0)
            stretches.append((found.deliveries.start[trial, column, number], first, dropped, is_old))
        horizon = max([0.0, *(at for _, *span, _ in stretches for at in span if np.isfinite(at))])
        reached = []
        for start, first, dropped, is_old in stretches:
            until = min(dropped, horizon)
            limit = (rates.consumed if is_old else rates.limit)[queue]
            reached.append(max(start, min(scenario.rates[queue] * until, start + limit * max(until - first, 0))))
        staying = [index for index, (_, _, dropped, _) in enumerate(stretches) if np.isposinf(dropped)]
        for index, (start, _, _, is_old) in enumerate(stretches):
            # Who stays last delivers all in the end; who was there before delivered what lies before the change.
            end = max(reached) if staying and index == staying[-1] else reached[index]
            messages = range(int(np.floor(start)) - (1_000 if is_old else 0), int(np.floor(end)))
            total += len(messages)
            distinct.update(messages)
        twice = found.deliveries.duplicates[trial, column]
        assert abs(total - len(distinct) - twice) <= len(stretches) + 1


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
@pytest.mark.parametrize("change", [JOIN, leave("graceful", 2), leave("silent", 1, 3)])
def test_owners_are_those_of_planner_allocate(strategy: str, change: Document) -> None:
    request = rocketmq_request(change, strategy=strategy, queues=12, clients=4)
    found = forecast(request)
    for side in ("before", "after"):
        ids = list(found[side])
        queues = [{name: queue[name] for name in ("topic", "broker", "queue_id")} for queue in request["queues"]]
        allocated = answer({"system": "rocketmq", "strategy": strategy, "group": "g", "queues": queues, "clients": ids})
        assert list(allocated["assignments"].items()) == list(found[side].items())


def test_topics_are_shared_out_one_by_one_and_by_their_own_brokers() -> None:
    request = rocketmq_request(JOIN, queues=4)
    request["queues"] += [{"topic": "U", "broker": "broker-c", "queue_id": n, "rate": 5.0, "lag": 0} for n in range(5)]
    found = forecast(request)
    queues = [{name: queue[name] for name in ("topic", "broker", "queue_id")} for queue in request["queues"]]
    after = {"system": "rocketmq", "strategy": "AVG", "queues": queues, "clients": list(found["after"])}
    assert found["after"] == answer(after)["assignments"]
    assert {queue[0] for queue in found["moved"]} == {"T", "U"}
    registered = {event["broker"] for event in found["timeline"] if event["event"] == "registers"}
    assert registered == {"broker-a", "broker-b", "broker-c"}


def test_moved_queues_are_those_whose_owner_differs() -> None:
    found = forecast(rocketmq_request(leave("graceful", 2), queues=16, clients=3))
    owners = {
        side: {tuple(queue): client for client, queues in found[side].items() for queue in queues}
        for side in ("before", "after")
    }
    differing = [list(queue) for queue, client in owners["before"].items() if owners["after"][queue] != client]
    assert sorted(found["moved"]) == sorted(differing)
    assert len(differing) == 5


def test_join_then_leave_of_the_same_member_returns_the_owners() -> None:
    joined = forecast(rocketmq_request(JOIN, clients=3, queues=16))
    present = rocketmq_request({"kind": "leave", "clients": ["10.0.0.9@c9"], "how": "graceful"}, clients=3, queues=16)
    present["clients"] = [*present["clients"], {"id": "10.0.0.9@c9", "threads": 20}]
    left = forecast(present)
    assert left["before"] == joined["after"]
    assert left["after"] == joined["before"]
    assert left["moved"] == joined["moved"]


def test_a_change_that_changes_nothing_moves_nothing() -> None:
    same = {"kind": "queues", "topic": "T", "broker": "broker-a", "read_queues": 4, "write_queues": 4}
    found = forecast(rocketmq_request(same))
    assert (found["moved"], found["queues"]) == ([], [])
    assert all(value == 0 for interval in found["total"].values() for value in interval.values())


def test_an_idle_client_may_come_and_go() -> None:
    """A client beyond the queue count that sorts last owns nothing, so its leave moves nothing."""
    found = forecast(
        rocketmq_request({"kind": "leave", "clients": [client_id(5)], "how": "crash"}, queues=4, clients=5)
    )
    assert found["moved"] == []
    assert found["total"]["settle_s"]["p95"] == 0


def test_an_unknown_id_is_sampled_over_all_its_places() -> None:
    """With 8 queues, 3 clients become 4: 2 to 6 queues move, depending on where the new id sorts."""
    found = forecast(rocketmq_request({"kind": "join", "clients": [{"id": None}]}, clients=3, queues=8))
    assert "new-1" in found["after"]
    assert any("not known yet" in warning for warning in found["warnings"])
    shares = [queue["moves_in"] for queue in found["queues"] if "moves_in" in queue]
    assert shares
    assert all(0 < share < 1 for share in shares)


def test_many_unknown_ids_are_a_sample() -> None:
    newcomers = [{"id": None}] * 6
    found = forecast(
        rocketmq_request({"kind": "join", "clients": newcomers}, clients=4, queues=16, trials=MOST_PLACEMENTS)
    )
    assert sum(len(queues) for queues in found["after"].values()) == 16
    assert len(found["after"]) == 10


def test_newcomers_take_the_threads_of_the_group() -> None:
    slow = forecast(rocketmq_request(JOIN, threads=1))
    quick = forecast(rocketmq_request(JOIN, threads=DEFAULT_THREADS))
    assert any("cannot keep up" in warning for warning in slow["warnings"])
    assert not any("cannot keep up" in warning for warning in quick["warnings"])
