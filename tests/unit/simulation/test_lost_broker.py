"""A group without one of its brokers: its whole inflow lies on the queues that are left."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.main import app
from planner.documents.data import SNAPSHOT
from planner.errors import BadInputError
from planner.model.snapshot import GroupSnapshot
from planner.pipeline import simulate_candidates, with_loss
from planner.simulation.lost_broker import lose_broker, producer_kinds
from tests.builders import clients, kafka_snapshot, snapshot

LOST = "broker-b"


def group(count: int = 3) -> GroupSnapshot:
    return snapshot(clients=clients(count))


def total(taken: GroupSnapshot) -> float:
    return sum(state.upper_arrival_rate or 0.0 for state in taken.data_queues)


def test_nothing_of_the_inflow_is_lost() -> None:
    taken = group()
    loss = lose_broker(taken, LOST)
    assert {state.queue.place[-1] for state in loss.without.data_queues} == {"broker-a"}
    assert total(loss.without) == pytest.approx(total(taken))
    assert loss.waiting == sum(state.lag or 0 for state in taken.data_queues if state.queue.place[-1] == LOST)


def test_each_topic_keeps_its_own_inflow() -> None:
    taken = group()
    for topic in {state.queue.topic for state in taken.data_queues}:
        rates = [
            sum(state.arrival_rate or 0.0 for state in of.data_queues if state.queue.topic == topic)
            for of in (taken, lose_broker(taken, LOST).without)
        ]
        assert rates[0] == pytest.approx(rates[1])


def test_an_unknown_rate_stays_unknown() -> None:
    taken = group()
    first, *others = taken.queues
    unknown = replace(taken, queues=(replace(first, arrival_rate=None, upper_arrival_rate=None), *others))
    states = lose_broker(unknown, LOST).without.data_queues
    assert all(state.upper_arrival_rate is None for state in states if state.queue.topic == first.queue.topic)


def test_the_present_count_shows_what_the_death_costs_and_no_other() -> None:
    taken = group()
    loss = lose_broker(taken, LOST)
    outcomes = simulate_candidates(loss.without, [("AVG", 3), ("AVG", 4)])
    current, more = with_loss(outcomes, taken, loss)
    assert current.transition is not None and current.transition.settle_s is not None
    assert current.transition.settle_s.p95 > 20  # members learn of the route within 30 s and look within 20 s
    assert more.transition == outcomes[1].transition
    busiest = max(load.arrival_rate or 0.0 for load in current.loads)
    assert sum(load.arrival_rate or 0.0 for load in current.loads) == pytest.approx(total(taken))
    assert busiest > total(taken) / 3


def test_even_shares_are_taken_for_producers_that_go_round() -> None:
    states = tuple(replace(state, arrival_rate=100.0) for state in group().queues)
    assert set(producer_kinds(replace(group(), queues=states)).values()) == {"round_robin"}


def test_a_broker_that_cannot_be_lost_is_refused_by_name() -> None:
    with pytest.raises(BadInputError, match=r"broker broker-x: not found, expected one of broker-a, broker-b"):
        lose_broker(group(), "broker-x")
    alone = group()
    alone = replace(alone, queues=tuple(one for one in alone.queues if one.queue.place[-1] != LOST))
    with pytest.raises(BadInputError, match="it has all"):
        lose_broker(alone, "broker-a")
    with pytest.raises(BadInputError, match="found a Kafka broker"):
        lose_broker(kafka_snapshot(), "1")


def test_the_command_says_whether_the_present_count_survives(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_bytes(SNAPSHOT.dump(group()))
    result = CliRunner().invoke(app, ["simulate", str(path), "--counts", "3,4", "--without-broker", LOST])
    assert result.exit_code == 0, result.output
    assert "without broker broker-b" in result.output
    assert "Until broker-b is back" in result.output
