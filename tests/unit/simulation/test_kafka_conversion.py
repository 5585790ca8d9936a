"""A classic Kafka group whose members come again by the consumer protocol, one after the other (KIP-848)."""

from typing import Any

import numpy as np
import pytest

from planner.documents.forecast import forecast
from planner.documents.forecast.kafka import read_request
from planner.errors import BadInputError
from planner.forecast.kafka.membership.scenario import NOBODY, Scenario, build_scenario
from planner.forecast.kafka.simulate import Simulation, simulate
from planner.forecast.kafka.timing import DEFAULT

LIBRDKAFKA = {"client": "librdkafka 2.16.1", "broker": "4.3.1"}
MEMBERS = ("g-m1", "g-m2", "g-m3")
OWNED = ((0, 1, 2), (3, 4, 5), (6, 7))
ROLL = {"kind": "strategy", "to": "uniform", "clients": list(MEMBERS), "interval_s": 15}
STATIC = [{"id": name, "instance_id": f"i-{name}", "topics": ["t"]} for name in MEMBERS]
SURGE = {"kind": "rolling_update", "to": "uniform", "max_surge": 1, "max_unavailable": 0, "ready_s": 12, "start_s": 4}
CONSUMER: dict[str, Any] = {"protocol": "consumer", "strategy": "uniform"}
BACK: dict[str, Any] = {**ROLL, "to": "range"}
ONE_BACK = {**BACK, "clients": ["g-m1"]}
PODS_BACK = {**SURGE, "to": "range"}
MIXED = [STATIC[0], {"id": "g-m2", "topics": ["t"]}]
OLD_BROKER = {"client": "4.4.0", "broker": "3.9.2"}
POLICY = "group.consumer.migration.policy"
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


def simulated(change: Document, strategy: str = "range", **more: Any) -> tuple[Scenario, Simulation]:
    scenario = build_scenario(read_request(request(change, strategy, **more)))
    return scenario, simulate(scenario, DEFAULT)


def drops(found: Simulation, process: int, before_s: float) -> Any:
    """By trial and partition: that life gives something up before a moment."""
    tenures = found.membership.tenures
    return ((tenures.process == process) & (tenures.revoked_at < before_s)).any(axis=0)


@pytest.mark.parametrize("change", [ROLL, SURGE], ids=str)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_every_partition_ends_with_a_member_of_the_consumer_protocol(change: Document, strategy: str) -> None:
    scenario, found = simulated(change, strategy)
    last = found.assignments.owners_in(found.membership.state)
    assert np.isin(last, np.flatnonzero(scenario.by_server)).all()
    shares = np.array([np.bincount(trial, minlength=len(scenario.processes)) for trial in last])
    assert sorted(set(shares[shares > 0].tolist())) == [2, 3]


def test_one_roll_is_enough_as_both_protocols_fit_into_one_group() -> None:
    scenario, _ = simulated(ROLL)
    assert [process.assignors for process in scenario.processes] == [("range",)] * 3 + [("uniform",)] * 3


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


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_static_member_takes_over_what_it_had_and_nobody_else_notices(strategy: str) -> None:
    """The coordinator puts it into the place of its former process, epoch and all: nobody computes a target."""
    answer = forecast(request({**ROLL, "clients": ["g-m1"]}, strategy, members=STATIC))
    (mine,) = (found for name, found in answer["before"].items() if name == "g-m1")
    assert (answer["moved"], answer["before"]) == ([], answer["after"])
    assert [one["queue"] for one in answer["queues"]] == mine
    assert 0.2 < answer["total"]["settle_s"]["p50"] < 2
    assert answer["total"]["duplicates"]["p95"] == 0
    assert any("g-m1 takes over what its former process had" in one for one in answer["warnings"])
    assert not any("made up as they come" in one for one in answer["warnings"])


def test_a_static_member_that_comes_back_fetches_as_the_protocol_does_by_which_it_comes() -> None:
    back = {"kind": "restart", "how": "graceful", "clients": ["g-m1"], "interval_s": 0}
    rolled, restarted = (
        forecast(request(change, members=STATIC))["total"]["stall_s"]["p50"]
        for change in ({**ROLL, "clients": ["g-m1"]}, back)
    )
    assert rolled > restarted + 0.1


def test_a_member_that_restarts_at_once_starts_when_its_loop_has_ended() -> None:
    _, found = simulated(ROLL, members=STATIC, service_time_s=1.0, partitions={"t": [{"rate": 0.1, "lag": 0}] * 8})
    away = found.times.resumed_at[:, 0] - found.times.suspended_at[:, 0]
    assert found.times.suspended_at[:, 0].max() > 0.5, "some are in the midst of a record"
    assert away.min() >= DEFAULT.start_s[0]


def test_what_a_static_pod_leaves_waits_for_its_session_that_no_commit_renews() -> None:
    """A commit keeps a session alive in a classic group only, and this one is converted by the first new pod."""
    pods = [{"id": None, "instance_id": f"new-{number}"} for number in range(3)]
    kept = {"members": STATIC, "settings": {"session.timeout.ms": 20_000, "auto.commit.interval.ms": 1_000}}
    scenario, found = simulated({**SURGE, "clients": pods}, **kept)
    old = list(scenario.initial)
    waited = found.times.leaves[:, old] - found.times.stops[:, old]
    assert (waited <= 20.0).all()
    assert waited.min() < 17.5


def test_librdkafka_has_its_first_records_as_soon_by_the_consumer_protocol_as_by_the_classic_one() -> None:
    """Java's client of the consumer protocol does each step in another thread: 0.2 s and more."""
    java, other = (
        forecast(request(ROLL, "cooperative-sticky", **more))["total"]["settle_s"]["p05"]
        for more in ({}, {"versions": LIBRDKAFKA})
    )
    assert other < java - 0.1


def test_librdkafka_commits_what_it_gives_up_so_that_nothing_comes_twice() -> None:
    java, other = (
        forecast(request(SURGE, "cooperative-sticky", service_time_s=0.02, **more))["total"]["duplicates"]["p95"]
        for more in ({}, {"versions": LIBRDKAFKA})
    )
    assert (java > 0, other) == (True, 0)


def test_the_same_seed_gives_the_same_answer_and_what_is_drawn_is_said() -> None:
    one, other = forecast(request(ROLL)), forecast(request(ROLL))
    assert one == other
    assert any("made up as they come" in warning for warning in one["warnings"])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"versions": {"client": "3.9.2", "broker": "4.3.1"}}, "change.to: found uniform with client 3.9.2"),
        ({"versions": OLD_BROKER}, "change.to: found uniform with broker 3.9.2"),
        ({"versions": {"client": "librdkafka 2.11.1", "broker": "4.3.1"}}, "found uniform with client 2.11.1"),
        ({"members": STATIC, "change": SURGE}, "null without an instance_id"),
        (CONSUMER | {"change": PODS_BACK, "members": MIXED}, "without an instance_id"),
        ({"settings": {POLICY: "downgrade"}}, "expected bidirectional or upgrade: the broker knows no such group"),
        (CONSUMER | {"change": ONE_BACK, "settings": {POLICY: "upgrade"}}, "or downgrade: the group stays one"),
        (CONSUMER | {"change": ONE_BACK, "settings": {POLICY: "disabled"}}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"settings": {POLICY: "sideways"}}, 'found "sideways", expected one of bidirectional'),
        ({"settings": {POLICY: "upgrade"}, "versions": OLD_BROKER}, "it is there since 4.0"),
    ],
)
def test_what_nobody_has_watched_is_refused_by_name(changed: Document, words: str) -> None:
    wanted = request({**ROLL, "clients": ["g-m1"]}) | changed
    with pytest.raises(BadInputError, match="found") as error:
        forecast(wanted)
    assert words in str(error.value)


def back(to: str = "range", change: Document | None = None, **more: Any) -> Document:
    """A group of the consumer protocol, one by one restarted with an assignor of the classic one."""
    return request({**(change or BACK), "to": to}, **CONSUMER, **more)


def turned_back(to: str = "range", change: Document | None = None, **more: Any) -> tuple[Scenario, Simulation]:
    scenario = build_scenario(read_request(back(to, change, **more)))
    return scenario, simulate(scenario, DEFAULT)


@pytest.mark.parametrize("change", [BACK, SURGE], ids=str)
@pytest.mark.parametrize("to", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_the_last_one_of_the_consumer_protocol_that_leaves_makes_all_others_rejoin(change: Document, to: str) -> None:
    scenario, found = turned_back(to, change)
    left = found.times.leaves[:, scenario.by_server].max(axis=1)
    first = found.membership.rounds[0]
    assert np.array_equal(first.begins, left)
    assert (first.barrier > left).all()
    last = found.assignments.owners_in(found.membership.state)
    assert not scenario.by_server[last].any()
    shares = np.array([np.bincount(trial, minlength=len(scenario.processes)) for trial in last])
    assert sorted(set(shares[shares > 0].tolist())) == [2, 3]


def test_while_one_of_the_consumer_protocol_stays_the_server_assigns() -> None:
    scenario, found = turned_back(change={**BACK, "clients": list(MEMBERS[:2])})
    last = found.assignments.owners_in(found.membership.state)
    assert found.membership.rounds == ()
    assert set(np.unique(scenario.by_server[last])) == {False, True}


def test_who_joins_by_the_classic_protocol_has_a_target_computed_at_once() -> None:
    """``classicGroupJoinToConsumerGroup``: others of the consumer protocol may be silent for a minute."""
    settings = {"group.consumer.heartbeat.interval.ms": 60_000}
    scenario, found = turned_back(change={**BACK, "clients": ["g-m1"]}, settings=settings)
    newcomer = len(scenario.initial)
    assigned_at = np.where(
        found.membership.tenures.process == newcomer, found.membership.tenures.assigned_at, np.inf
    ).min(axis=(0, 2))
    assert np.median(assigned_at) < 3.0


def test_members_rejoin_at_their_classic_heartbeats() -> None:
    slow, quick = (
        forecast(back(settings={"heartbeat.interval.ms": beat}))["total"]["settle_s"] for beat in (10_000, 1_000)
    )
    assert quick["p95"] < slow["p50"] - 2


def test_who_cooperates_keeps_what_it_holds_as_the_group_becomes_classic() -> None:
    eager, cooperative = (forecast(back(to))["total"]["moved_queues"]["p50"] for to in ("range", "cooperative-sticky"))
    assert cooperative <= 3 < eager


def test_the_sticky_assignor_knows_what_the_server_gave_to_hosted_members() -> None:
    """All stop, as it is eager, and go on with what they had: of nine real rolls six moved nothing, three two."""
    eager, sticky = (forecast(back(to)) for to in ("range", "sticky"))
    assert sticky["total"]["moved_queues"]["p50"] <= 2 < eager["total"]["moved_queues"]["p50"]
    assert sticky["total"]["stall_s"]["p05"] > 0


def test_what_a_target_has_promised_is_void_once_the_group_is_classic() -> None:
    _, found = turned_back("cooperative-sticky", {**BACK, "interval_s": 0.5})
    since, barrier = found.membership.rounds[0].begins, found.membership.rounds[0].barrier
    assigned_at = found.membership.tenures.assigned_at
    late = np.isfinite(assigned_at) & (found.membership.tenures.process != NOBODY) & (assigned_at > since[:, None])
    assert late.any()
    assert (~late | (assigned_at >= barrier[:, None])).all()


def test_the_only_member_leaves_an_empty_group_whose_next_one_waits_for_more() -> None:
    """``group.initial.rebalance.delay.ms``: an empty group is no longer one of the consumer protocol."""
    alone = {"members": [{"id": "g-m1", "topics": ["t"]}], "change": {**BACK, "clients": ["g-m1"]}}
    assert forecast(back() | alone)["total"]["settle_s"]["p05"] > 3


def test_a_static_member_that_goes_back_takes_over_what_it_had() -> None:
    answer = forecast(back(members=STATIC))
    assert (answer["moved"], answer["before"]) == ([], answer["after"])
    assert answer["total"]["duplicates"]["p95"] == 0
    assert 30 < answer["total"]["settle_s"]["p50"] < 31.5


def test_ids_of_those_who_come_back_are_drawn_and_it_is_said() -> None:
    answer = forecast(back())
    assert any("come by the classic protocol are made up" in one for one in answer["warnings"])
    assert {queue["queue"][1] for queue in answer["queues"] if 0 < queue.get("moves_in", 0) < 1}


def test_who_has_joined_since_the_last_target_has_to_rejoin_as_well() -> None:
    settings = {"group.consumer.assignment.interval.ms": 60_000}
    scenario, found = turned_back(change={**BACK, "interval_s": 3}, settings=settings)
    first = found.membership.rounds[0]
    is_present = ~scenario.by_server & (found.times.arrives < first.begins[:, None])
    assert is_present.sum(axis=1).min() >= 1
    assert (first.joins[is_present] > np.broadcast_to(first.begins[:, None], is_present.shape)[is_present]).all()
    assert np.isfinite(first.joins[is_present]).all()


def test_a_static_member_that_goes_back_fetches_as_the_classic_protocol_does() -> None:
    both = request(ROLL, members=STATIC), back(members=STATIC)
    rolled, returned = (forecast(one)["total"]["stall_s"]["p50"] for one in both)
    assert returned < rolled - 0.1


def test_a_shorter_classic_heartbeat_shortens_the_way_back() -> None:
    levers = {
        cause["cause"]: cause.get("lever") for cause in forecast(back())["causes"] if cause["effect"] == "pause_s"
    }
    assert levers["barrier"] == {"heartbeat.interval.ms": 1_000}


def mixed(to: str, statics: int = 1, **more: Any) -> Document:
    """A group of the consumer protocol, static members first, restarted one by one with a classic assignor."""
    there = request(BACK)["members"]
    members = [{**there[place], **({"instance_id": f"i-{place}"} if place < statics else {})} for place in range(3)]
    return back(to, members=members, **more)


def test_a_static_member_that_comes_last_makes_a_classic_group_of_which_nobody_rejoins() -> None:
    """``validateOnlineDowngradeWithReplacedMember``: where a dynamic one is the last, its leave makes all rejoin."""
    static_last = mixed("range", change={**BACK, "clients": ["g-m2", "g-m3", "g-m1"]})
    dynamic_last = mixed("range", change={**BACK, "clients": ["g-m1", "g-m2", "g-m3"]})
    quiet, loud = (
        simulate(build_scenario(read_request(one)), DEFAULT).membership.rounds for one in (static_last, dynamic_last)
    )
    assert not any(round_.played.any() for round_ in quiet)
    assert loud[0].played.all()


def test_static_members_beside_others_keep_what_they_have_on_the_way_to_the_consumer_protocol() -> None:
    """Of eight real rolls seven moved nothing, one moved a partition."""
    members = [
        {**one, "instance_id": "i-0"} if place == 0 else one for place, one in enumerate(request(ROLL)["members"])
    ]
    answer = forecast(request(ROLL, members=members))
    assert answer["total"]["moved_queues"]["p50"] <= 2
    assert not [cause for cause in answer["causes"] if cause["cause"] == "expiry"]
    assert answer["total"]["duplicates"]["p95"] <= 1


def test_pods_with_other_instance_ids_wait_for_the_sessions_of_the_old_ones() -> None:
    """Eleven real rolls: paused 12 to 46 s where a session takes 8 s; in four of them 32 to 41 came twice."""
    settings = {"group.consumer.session.timeout.ms": 8_000}
    pods = [{"id": None, "instance_id": f"new-{number}"} for number in range(3)]
    change = {**SURGE, "to": "range", "clients": pods, "ready_s": 7}
    members = [{**one, "instance_id": f"i-{place}"} for place, one in enumerate(request(BACK)["members"])]
    answer = forecast(back(change=change, members=members, settings=settings))
    assert answer["total"]["pause_s"]["p50"] > 8
    assert [cause for cause in answer["causes"] if cause["cause"] == "expiry"]
    assert answer["total"]["duplicates"]["p05"] == 0 < answer["total"]["duplicates"]["p95"]


def test_a_static_member_of_the_consumer_protocol_is_missed_from_its_last_heartbeat() -> None:
    """``consumerGroupStaticMemberGroupLeave``: its leave is no sign of life."""
    leave = {"kind": "leave", "clients": ["g-m1"], "how": "graceful"}
    members = [{**one, "instance_id": f"i-{place}"} for place, one in enumerate(request(BACK)["members"])]
    settings = {"group.consumer.session.timeout.ms": 45_000, "group.consumer.heartbeat.interval.ms": 15_000}
    answer = forecast(request(leave, members=members, settings=settings) | CONSUMER)
    assert answer["total"]["settle_s"]["p05"] < 45
