"""Who is in the group: ids that run twice, lists that differ, nobody at all, membership that never rests."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.membership import BrokerMembers
from planner.model.samples import GroupSample
from tests.sample_builders import START, steady
from tests.unit.diagnosis.patients import at, codes, each, finding, gaps, healthy, member, tuning


def listed(*clients: str) -> tuple[BrokerMembers, ...]:
    return tuple(
        BrokerMembers(name, clients, tuple(f"{c}:{n}" for n, c in enumerate(clients)))
        for name in ("broker-a", "broker-b")
    )


def twins(looks: int = 7) -> GroupEvidence:
    """6 queues, members [a, a, b]: the class gives both a's 0 1, b 4 5, and nobody 2 3 (rocketmq.md 2.2)."""
    picture = healthy(looks, {"orders": 3}, ("a", "b"))
    queues = picture.queues
    owned = each(each(picture, member("a", owned=queues[0:2])), member("b", owned=queues[4:6]))
    return each(owned, lambda sample: replace(sample, listed=listed("a", "a", "b")))


def test_two_processes_with_one_id_orphan_the_queues_of_the_second_place() -> None:
    found = finding(twins(), "duplicate-client-id")
    assert found.severity is Severity.ERROR
    assert found.evidence == ("a is connected to broker-a 2 times, from a:0, a:1",)
    assert "2 queues are consumed by every process of the id, so each message comes 2 times" in found.consequence
    assert "2 queues of its second place belong to nobody" in found.consequence
    assert {"orders/broker-a/2", "orders/broker-b/0"} <= set(found.about)


def test_a_cause_is_told_once() -> None:
    assert codes(twins()) == {"duplicate-client-id": Severity.ERROR}


def test_an_id_that_was_connected_twice_in_one_look_has_just_reconnected() -> None:
    once = at(healthy(), -1, lambda sample: replace(sample, listed=listed("c1", "c1", "c2")))
    assert codes(once) == {}


def test_without_the_brokers_lists_twins_cannot_be_seen_and_that_is_said() -> None:
    blind = each(healthy(), lambda sample: replace(sample, listed=()))
    assert "duplicate-client-id" in gaps(blind)


@pytest.mark.parametrize(("looks", "severity"), [(7, Severity.ERROR), (6, Severity.WARNING)])
def test_brokers_that_list_different_members(looks: int, severity: Severity) -> None:
    """30 s is a heartbeat: before that it may be a broker that has just started."""
    lists = (BrokerMembers("broker-a", ("c1", "c2")), BrokerMembers("broker-b", ("c1",)))
    picture = each(healthy(looks), lambda sample: replace(sample, listed=lists))
    found = finding(picture, "brokers-disagree")
    assert found.severity is severity
    assert found.evidence == ("broker-b does not list c2",)
    assert "up to 4 queues with two owners or none" in found.consequence


def test_a_broker_without_the_groups_topics_misses_nobody() -> None:
    lists = (*listed("c1", "c2"), BrokerMembers("broker-z", ()))
    assert codes(each(healthy(), lambda sample: replace(sample, listed=lists))) == {}


def test_a_broker_that_did_not_tell_disagrees_with_nobody_but_does_not_answer() -> None:
    lists = (BrokerMembers("broker-a", ("c1", "c2")), BrokerMembers("broker-b", None))
    assert codes(each(healthy(), lambda sample: replace(sample, listed=lists))) == {"broker-gone": Severity.ERROR}


def gone(stored_ago: timedelta, waiting: int) -> GroupEvidence:
    def leave(sample: GroupSample) -> GroupSample:
        stored = round((sample.at - stored_ago).timestamp() * 1000)
        offsets = tuple(
            replace(one, consumer_offset=one.broker_offset - waiting, last_timestamp_ms=stored)
            for one in sample.offsets
        )
        return replace(sample, members=(), offsets=offsets, listed=listed())

    return each(healthy(offsets=steady(0, 0)), leave)


@pytest.mark.parametrize(
    ("stored_ago", "waiting", "severity"),
    [
        (timedelta(hours=23), 5, Severity.ERROR),
        (timedelta(hours=25), 5, Severity.WARNING),
        (timedelta(hours=1), 0, Severity.NOTICE),
    ],
)
def test_nobody_consumes(stored_ago: timedelta, waiting: int, severity: Severity) -> None:
    found = finding(gone(stored_ago, waiting), "no-members")
    assert found.severity is severity
    assert ("40 messages wait" in found.consequence) == bool(waiting)


def comes_and_goes(looks: int, every: int) -> GroupEvidence:
    """c3 is there, and then not, ``every`` looks each."""
    picture = healthy(looks, clients=("c1", "c2", "c3"))
    with_two = healthy(looks, clients=("c1", "c2"))
    chosen = [picture if (n // every) % 2 else with_two for n in range(looks)]
    return replace(picture, samples=tuple(one.samples[n] for n, one in enumerate(chosen)))


def test_a_member_that_comes_and_goes_is_named_with_its_turns() -> None:
    found = finding(comes_and_goes(13, 3), "frequent-rebalances")
    assert found.evidence[0].startswith("4 rebalances within 1 min")
    assert "c3 came twice and went twice" in found.evidence
    assert found.title == "The group rebalances 240 times an hour"


@pytest.mark.parametrize("make", [lambda n: f"10.0.0.7@{n}#1", lambda n: f"shop-7-{n:08x}-7d44-4c8e-9b1a-0123456789ab"])
def test_a_member_that_restarts_under_new_ids_is_named_by_its_place(make: Callable[[int], str]) -> None:
    turns = [make(4711), None, make(4712), make(4713), None]
    picture = healthy(13)
    looks = [healthy(13, clients=("c1", "c2", *([one] if one else []))).samples for one in turns]
    restless = replace(picture, samples=tuple(looks[n * len(turns) // 13][n] for n in range(13)))
    place = make(4711).partition("@")[0].partition("-00")[0]
    expected = f"{place} came twice and went 3 times, under 3 ids"
    assert expected in finding(restless, "frequent-rebalances").evidence


def test_two_rebalances_are_no_habit() -> None:
    assert "frequent-rebalances" not in codes(comes_and_goes(9, 3))


def test_few_rebalances_over_a_long_time_are_no_habit() -> None:
    slow = comes_and_goes(13, 3)
    day = replace(
        slow,
        samples=tuple(replace(one, at=START + timedelta(hours=n)) for n, one in enumerate(slow.samples)),
        sample_every_s=3600,
    )
    assert "frequent-rebalances" not in codes(day)


def started(*minutes_ago: float) -> GroupEvidence:
    clients = tuple(f"c{n}" for n in range(len(minutes_ago)))
    picture = healthy(looks=2, clients=clients, topics={"orders": 4})
    for client, minutes in zip(clients, minutes_ago, strict=True):
        picture = each(picture, member(client, tuning=tuning(started_s_ago=60 * minutes)))
    return picture


def test_starts_spread_over_the_hour_are_rebalances_that_nobody_had_to_watch() -> None:
    assert "4 different times" in finding(started(50, 35, 20, 5), "frequent-rebalances").title


def test_a_rolling_update_is_one_change() -> None:
    assert "frequent-rebalances" not in codes(started(8, 7, 6, 5))


def mute(picture: GroupEvidence, language: str) -> GroupEvidence:
    return each(picture, member("c2", tuning=None, owned=None, subscriptions=None, language=language))


def test_a_java_member_that_does_not_answer_hangs() -> None:
    assert codes(mute(healthy(), "JAVA")) == {"silent-member": Severity.ERROR}
    assert "no-owner" in gaps(mute(healthy(), "JAVA"))


def test_what_a_frozen_member_owned_last_is_told() -> None:
    picture = healthy()
    frozen = replace(picture, samples=(picture.samples[0], *mute(picture, "JAVA").samples[1:]))
    assert finding(frozen, "silent-member").consequence.startswith("4 queues that they owned last may stand still")


def test_a_member_that_was_silent_once_may_have_just_left() -> None:
    picture = healthy()
    once = replace(picture, samples=(*picture.samples[:-1], mute(picture, "JAVA").samples[-1]))
    assert codes(once) == {}
    assert "may have left: c2" in gaps(once)["silent-member"]


def test_other_languages_cannot_answer() -> None:
    picture = mute(healthy(), "GO")
    assert codes(picture) == {}
    assert "1 member (GO) cannot report what they run: c2" in gaps(picture)["silent-member"]


def test_broadcasting_is_a_fact_and_not_an_error() -> None:
    def broadcast(sample: GroupSample) -> GroupSample:
        everything = sample.routes.read_queues
        model = tuning(properties=(("messageModel", "BROADCASTING"),))
        return replace(sample, members=tuple(replace(one, owned=everything, tuning=model) for one in sample.members))

    assert codes(each(healthy(), broadcast)) == {"broadcasting": Severity.NOTICE}


def test_one_broadcasting_member_among_others_is_an_error() -> None:
    picture = each(healthy(), member("c2", tuning=tuning(properties=(("messageModel", "BROADCASTING"),))))
    assert codes(picture)["broadcasting"] is Severity.ERROR
