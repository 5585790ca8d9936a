"""A classic Kafka group whose members come again by the consumer protocol, one after the other (KIP-848)."""

from typing import Any

import numpy as np
import pytest

from planner.errors import BadInputError
from planner.simulation.dynamics import forecast
from planner.simulation.dynamics.kafka.reader import read_request
from planner.simulation.dynamics.kafka.simulate import Simulation, simulate
from planner.simulation.dynamics.kafka.timing import DEFAULT
from planner.simulation.dynamics.kafka.world import World, build_world

MEMBERS = ("g-m1", "g-m2", "g-m3")
OWNED = ((0, 1, 2), (3, 4, 5), (6, 7))
ROLL = {"kind": "strategy", "to": "uniform", "clients": list(MEMBERS), "interval_s": 15}
SURGE = {"kind": "rolling_update", "to": "uniform", "max_surge": 1, "max_unavailable": 0, "ready_s": 12, "start_s": 4}
Document = dict[str, Any]


def request(change: Document, strategy: str = "range", **more: Any) -> Document:
    return {
        "system": "kafka",
        "versions": {"client": "4.4.0", "broker": "4.3.1"},
        "protocol": "classic",
        "strategy": strategy,
        "partitions": {"t": [{"rate": 10.0, "lag": 0}] * 8},
        "members": [
            {"id": name, "topics": ["t"], "owned": [["t", number] for number in numbers]}
            for name, numbers in zip(MEMBERS, OWNED, strict=True)
        ],
        "service_time_s": 0.002,
        "since_rebalance_s": 100.0,
        "change": change,
        "trials": 200,
        "seed": 3,
        **more,
    }


def simulated(change: Document, strategy: str = "range", **more: Any) -> tuple[World, Simulation]:
    world = build_world(read_request(request(change, strategy, **more)))
    return world, simulate(world, DEFAULT)


def drops(found: Simulation, life: int, before_s: float) -> Any:
    """By trial and partition: that life gives something up before a moment."""
    holds = found.course.holds
    return ((holds.life == life) & (holds.dropped < before_s)).any(axis=0)


@pytest.mark.parametrize("change", [ROLL, SURGE], ids=str)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_every_partition_ends_with_a_member_of_the_consumer_protocol(change: Document, strategy: str) -> None:
    world, found = simulated(change, strategy)
    last = found.assignments.table[found.course.state]
    assert np.isin(last, np.flatnonzero(world.by_server)).all()
    shares = np.array([np.bincount(trial, minlength=len(world.lives)) for trial in last])
    assert sorted(set(shares[shares > 0].tolist())) == [2, 3]


def test_one_roll_is_enough_as_both_protocols_fit_into_one_group() -> None:
    world, _ = simulated(ROLL)
    assert [life.assignors for life in world.lives] == [("range",)] * 3 + [("uniform",)] * 3


def test_eager_members_stop_all_they_have_at_their_next_heartbeat_and_cooperative_ones_nothing() -> None:
    """The last one to switch (g-m3) sees the first two switch: 48 rolls on a real broker showed nothing else."""
    _, eager = simulated(ROLL, "range")
    _, cooperative = simulated(ROLL, "cooperative-sticky")
    mine = list(OWNED[2])
    assert drops(eager, 2, 14.0)[:, mine].all()
    assert drops(cooperative, 2, 14.0)[:, mine].mean() < 0.5


def test_the_successor_takes_over_what_its_predecessor_had_in_most_rolls() -> None:
    """Targets are computed at heartbeats, so that the coordinator sees a leave and the join after it together."""
    answer = forecast(request(ROLL, "cooperative-sticky"))
    assert answer["total"]["moved_queues"]["p50"] <= 2
    assert answer["total"]["duplicates"]["p95"] <= 3
    assert 30 < answer["total"]["settle_s"]["p05"] < 31.5


def test_without_a_batch_interval_nothing_waits_for_a_second_target() -> None:
    slow, quick = (
        forecast(request(ROLL, settings={"group.consumer.assignment.interval.ms": wait})) for wait in (20_000, 0)
    )
    assert slow["total"]["settle_s"]["p50"] > quick["total"]["settle_s"]["p50"] + 3


def test_new_pods_take_what_old_ones_give_up_a_heartbeat_of_theirs_later() -> None:
    slow, quick = (
        forecast(request(SURGE, settings={"group.consumer.heartbeat.interval.ms": beat})) for beat in (10_000, 1_000)
    )
    assert quick["total"]["settle_s"]["p95"] < slow["total"]["settle_s"]["p95"] - 4
    assert quick["moved"] == slow["moved"] == [["t", number] for number in range(8)]


def test_the_same_seed_gives_the_same_answer_and_what_is_drawn_is_said() -> None:
    one, other = forecast(request(ROLL)), forecast(request(ROLL))
    assert one == other
    assert any("made up as they come" in warning for warning in one["warnings"])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"versions": {"client": "3.9.2", "broker": "4.3.1"}}, "change.to: found uniform with client 3.9.2"),
        ({"versions": {"client": "4.4.0", "broker": "3.9.2"}}, "change.to: found uniform with broker 3.9.2"),
        ({"versions": {"client": "librdkafka 2.16.1", "broker": "4.3.1"}}, "of librdkafka"),
        ({"members": [{"id": "g-m1", "instance_id": "i", "topics": ["t"]}]}, "with an instance_id"),
        ({"protocol": "consumer", "strategy": "uniform", "change": {**ROLL, "to": "range"}}, "has no forecast"),
    ],
)
def test_what_nobody_has_watched_is_refused_by_name(changed: Document, words: str) -> None:
    wanted = request({**ROLL, "clients": ["g-m1"]}) | changed
    with pytest.raises(BadInputError, match="found") as error:
        forecast(wanted)
    assert words in str(error.value)
