"""What holds for every forecast of a Kafka group, whatever the change."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.documents.allocation import answer
from planner.documents.forecast import forecast
from planner.documents.forecast.kafka import read_request
from planner.forecast.kafka.membership.scenario import NOBODY, build_scenario
from planner.forecast.kafka.simulate import simulate
from planner.forecast.kafka.timing import DEFAULT
from tests.unit.dynamics.small_groups import Document, kafka_leave, kafka_request

CLASSIC = ("range", "roundrobin", "sticky", "cooperative-sticky")
ASSIGNORS = (*CLASSIC, "uniform", "range-server")
JOIN = {"kind": "join", "clients": [{"id": "c9"}]}
waits = st.floats(0, 60)
LONGEST_S = 4_000.0


@st.composite
def changes(draw: st.DrawFn, members: int, partitions: int, strategy: str) -> Document:
    """Return any change of a group of that size."""
    same, other = ("range", "uniform") if strategy in CLASSIC else ("uniform", "range")
    kinds = ["join", "leave", "restart", "freeze", "broker_down", "broker_up", "queues", "strategy"]
    kind = draw(st.sampled_from(kinds if members else ["join"]))
    some = st.lists(st.integers(0, max(members - 1, 0)), min_size=1, max_size=3, unique=True)
    clients = [f"c{number}" for number in draw(some)]
    how = draw(st.sampled_from(["graceful", "crash", "silent"]))
    if kind == "join":
        ids = st.sampled_from([None, "a", "z"])
        known = draw(st.lists(ids, min_size=1, max_size=3, unique_by=lambda name: name or object()))
        return {"kind": kind, "clients": [{"id": name} for name in known], "stagger_s": draw(waits)}
    if kind == "queues":
        return {"kind": kind, "topic": "t", "partitions": partitions + draw(st.integers(0, 4))}
    if kind in {"broker_down", "broker_up"}:
        return {"kind": kind, "broker": "b1"}
    rest: dict[str, Document] = {
        "leave": {"how": how, "stagger_s": draw(waits)},
        "restart": {"how": how, "interval_s": draw(waits)},
        "freeze": {"for_s": draw(waits)},
        "strategy": {"to": draw(st.sampled_from([same, other])), "interval_s": draw(waits)},
    }
    return {"kind": kind, "clients": clients, **rest[kind]}


@st.composite
def requests(draw: st.DrawFn) -> Document:
    """Return a small group with any change."""
    strategy = draw(st.sampled_from(ASSIGNORS))
    members, partitions = draw(st.integers(0, 4)), draw(st.integers(1, 9))
    is_classic, change = strategy in CLASSIC, draw(changes(members, partitions, strategy))
    static = draw(st.booleans())
    if change["kind"] == "strategy" and (static or is_classic):  # a part of a classic group cannot switch
        change["clients"] = [f"c{number}" for number in range(members)]
    clients = ["4.4.0"] if "uniform" in (strategy, change.get("to")) or not is_classic else ["3.9.2", "4.4.0"]
    return kafka_request(
        change,
        strategy,
        partitions=partitions,
        members=members,
        rate=draw(st.sampled_from([0.0, 0.01, 25.0, 1e4])),
        lag=draw(st.sampled_from([0, 1, 5_000])),
        static=static,
        service_time_s=draw(st.sampled_from([0.0, 0.002, 3.0])),
        settings=draw(
            st.sampled_from([{}, {"enable.auto.commit": False}, {"session.timeout.ms": 6_000} if is_classic else {}])
        ),
        versions={"client": draw(st.sampled_from(clients)), "broker": "4.3.1"},
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


@settings(max_examples=100, deadline=None)
@given(requests())
def test_any_change_has_an_answer_in_order(request: Document) -> None:
    found = forecast(request)
    json.dumps(found, allow_nan=False)
    for interval in intervals(found):
        values = [interval[key] for key in ("p05", "p50", "p95") if key in interval]
        assert values == sorted(values) and values[0] >= 0
    owned = [partition for partitions in found["after"].values() for partition in partitions]
    assert len(owned) == len({json.dumps(partition) for partition in owned})
    assert len(found["warnings"]) == len(set(found["warnings"]))
    for effect in ("pause_s", "duplicates"):
        assert sum(cause["share"] for cause in found["causes"] if cause["effect"] == effect) <= 1.001


@settings(max_examples=20, deadline=None)
@given(requests())
def test_the_same_seed_gives_the_same_bytes(request: Document) -> None:
    assert json.dumps(forecast(request)) == json.dumps(forecast(request))


def test_another_seed_gives_other_trials() -> None:
    assert forecast(kafka_request(JOIN, seed=1)) != forecast(kafka_request(JOIN, seed=2))


@settings(max_examples=50, deadline=None)
@given(requests())
def test_every_record_is_delivered_and_what_comes_twice_is_counted(request: Document) -> None:
    """Deliveries = due + duplicates, counted record by record over the holds that an observer would see.

    The simulation adds up stretches as they come; here every record of every hold is put into a set. Each hold may
    differ by one record, as parts of records are drawn to whole ones.
    """
    request = {**request, "trials": 3}
    scenario = build_scenario(read_request(request))
    found = simulate(scenario, DEFAULT)
    tenures, made = found.membership.tenures, found.deliveries
    for trial, column in np.ndindex(*tenures.process.shape[1:]):
        rate, lag = float(scenario.rates[column]), float(scenario.lags[column])
        if rate > 100 or lag > 100:
            continue  # too many records to count one by one
        ends = tenures.revoked_at[:, trial, column]
        if (np.isfinite(ends) & (ends > LONGEST_S)).any():
            continue  # counted only so far
        total, distinct, count = 0, set[int](), 0
        for number in np.flatnonzero(made.delivers[:, trial, column]).tolist():
            assigned_at, revoked_at = (of[number, trial, column] for of in (tenures.assigned_at, tenures.revoked_at))
            start, first = made.start[number, trial, column], made.first[number, trial, column]
            is_old = np.isneginf(assigned_at)
            at = min(revoked_at, LONGEST_S)
            speed = found.poll_loops.consumed[column] if is_old else made.limit[number, trial, column]
            end = min(rate * at, -lag + speed * at) if is_old else min(rate * at, start + speed * (at - first))
            begin = -lag - 1_000 if is_old else start
            assert begin >= -lag - 1_000  # else the records below would fill all memory
            records = range(int(np.floor(begin)), int(np.floor(max(end, begin))))
            if np.isposinf(revoked_at) and distinct:  # who stays delivers all in the end
                records = range(records.start, max(records.stop, *(one + 1 for one in distinct)))
            total, count = total + len(records), count + 1
            distinct.update(records)
        assert abs(total - len(distinct) - made.duplicates[trial, column]) <= count + 1


def test_who_gives_up_and_takes_at_once_begins_to_deliver() -> None:
    """Two of three leave at once: the third is to give up a partition, and takes it back with the next target."""
    change = kafka_leave("graceful", "c2", "c0")
    scenario = build_scenario(
        read_request(kafka_request(change, "range-server", partitions=2, members=3, trials=50, seed=0))
    )
    tenures = simulate(scenario, DEFAULT).membership.tenures
    final = tenures.process[-1] != NOBODY
    assert final.all()
    assert (tenures.assigned_at[-1] < np.inf).all()


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("change", [JOIN, kafka_leave("graceful", "c1"), kafka_leave("crash", "c0", "c2")])
def test_owners_are_those_of_planner_allocate(strategy: str, change: Document) -> None:
    request = kafka_request(change, strategy, partitions=12, members=4)
    found = forecast(request)
    for side in ("before", "after"):
        members = [{"id": name, "topics": ["t"]} for name in found[side]]
        allocated = answer({"system": "kafka", "strategy": strategy, "partitions": {"t": 12}, "members": members})
        told = {name: [list(one) for one in mine] for name, mine in allocated["assignments"].items()}
        assert list(told.items()) == list(found[side].items())


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_what_members_own_by_their_own_word_is_where_it_begins(strategy: str) -> None:
    request = kafka_request(JOIN, strategy, members=2, partitions=4)
    for member, owned in zip(request["members"], ([["t", 3], ["t", 0]], [["t", 1], ["t", 2]]), strict=True):
        member |= {"owned": owned, "generation": 4}
    assert forecast(request)["before"] == {"c0": [["t", 0], ["t", 3]], "c1": [["t", 1], ["t", 2]]}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "range-server"])
def test_join_then_leave_of_the_same_member_returns_the_owners(strategy: str) -> None:
    joined = forecast(kafka_request(JOIN, strategy, partitions=12))
    there = kafka_request(kafka_leave("graceful", "c9"), strategy, partitions=12)
    there["members"] += [{"id": "c9", "topics": ["t"]}]
    left = forecast(there)
    assert left["before"] == joined["after"]
    assert left["after"] == joined["before"]
    assert left["moved"] == joined["moved"]


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_a_change_that_changes_nothing_moves_nothing(strategy: str) -> None:
    same = {"kind": "queues", "topic": "t", "partitions": 8}
    found = forecast(kafka_request(same, strategy))
    assert (found["moved"], found["queues"]) == ([], [])
    assert all(value == 0 for interval in found["total"].values() for value in interval.values())


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky", "uniform"])
def test_sticky_assignors_move_no_more_than_the_newcomer_gets(strategy: str) -> None:
    found = forecast(kafka_request(JOIN, strategy, partitions=12))
    assert found["total"]["moved_queues"] == {"p05": 3, "p50": 3, "p95": 3}
    assert len(found["after"]["c9"]) == 3


def test_who_gives_to_the_second_of_two_newcomers_is_settled_by_their_hash_order() -> None:
    """3, 3 and 2 partitions of three members become 2, 2, 2, 2, and then somebody gives one: an old one or the new."""
    join = {"kind": "join", "clients": [{"id": "c8"}, {"id": "c9"}], "stagger_s": 10}
    moved = forecast(kafka_request(join, "sticky"))["total"]["moved_queues"]
    assert (moved["p05"], moved["p95"]) == (2, 3)


def test_an_unknown_id_is_sampled_over_all_its_places() -> None:
    found = forecast(kafka_request({"kind": "join", "clients": [{"id": None}]}))
    assert "new-1" in found["after"]
    assert any("not known yet" in warning for warning in found["warnings"])
    assert any(0 < queue.get("moves_in", 1) < 1 for queue in found["queues"])
