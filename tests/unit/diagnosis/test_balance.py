"""How the work lies on the members: idle ones, tilt, hot queues, slow members."""

from dataclasses import replace

import pytest

from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.membership import TopicFigures
from planner.model.queues import MessageQueue
from tests.unit.diagnosis.patients import at, codes, each, finding, gaps, healthy, member, tuned


def test_more_members_than_queues() -> None:
    picture = healthy(topics={"orders": 2}, clients=("c1", "c2", "c3", "c4", "c5", "c6"))
    assert codes(picture) == {"idle-members": Severity.WARNING}
    found = finding(picture, "idle-members")
    assert found.title == "2 of 6 members own no queue"
    assert found.evidence == ("idle: c5, c6", "queues by topic: orders 4")
    assert "33% of the members do nothing: more than 4 cannot help" in found.consequence


def test_as_many_members_as_queues_is_not_too_many() -> None:
    assert codes(healthy(topics={"orders": 2}, clients=("c1", "c2", "c3", "c4"))) == {}


def test_idle_members_that_do_not_tell_are_a_gap() -> None:
    crowd = healthy(topics={"orders": 2}, clients=("c1", "c2", "c3", "c4", "c5"))
    quiet = each(crowd, member("c5", owned=None))
    assert "c5" in gaps(quiet)["idle-members"]


def test_two_topics_of_two_queues_and_four_members_tilt() -> None:
    """2, 2, 0, 0 (rocketmq.md 4.2): two members carry the same, and no strategy without settings does better."""
    picture = healthy(topics={"topic-x": 1, "topic-y": 1}, clients=("c1", "c2", "c3", "c4"))
    assert codes(picture) == {"tilt": Severity.WARNING}
    found = finding(picture, "tilt")
    assert found.evidence[0] == "queues by member: 2, 2, 0, 0"
    assert found.consequence == "the busiest member carries 2.0 times the mean, and 2 members do nothing"
    assert found.advice.startswith("run 2: nobody carries more than now (2 queues a member)")


def test_ten_topics_of_four_queues_and_six_members_tilt() -> None:
    """Members 0 to 3 own 10 each, 4 and 5 none (rocketmq.md 4.2)."""
    topics = {f"t{n}": 2 for n in range(10)}
    found = finding(healthy(topics=topics, clients=tuple(f"c{n}" for n in range(6))), "tilt")
    assert found.evidence[0] == "queues by member: 10, 10, 10, 10, 0, 0"
    assert found.advice.startswith("run 4: nobody carries more than now")


def test_a_little_uneven_is_not_tilted() -> None:
    """3 topics x 10 queues, 4 members: 9, 9, 6, 6 is 1.2 times the mean."""
    assert codes(healthy(topics={"a": 5, "b": 5, "c": 5}, clients=("c1", "c2", "c3", "c4"))) == {}


def test_balance_is_not_judged_while_members_change() -> None:
    picture = healthy(topics={"topic-x": 1, "topic-y": 1}, clients=("c1", "c2", "c3", "c4"))
    moving = at(picture, 0, lambda sample: replace(sample, members=sample.members[:3]))
    assert codes(moving) == {}
    assert "may be under way" in gaps(moving)["tilt"]


def heated(hot: int, others: int, looks: int = 7, clients: tuple[str, ...] = ("c1", "c2", "c3", "c4")) -> GroupEvidence:
    """8 queues; the first gets ``hot`` messages between two looks, the others ``others`` each."""

    def offsets(queue: MessageQueue, number: int) -> tuple[int, int]:
        here = 1000 + number * (hot if (queue.broker, queue.queue_id) == ("broker-a", 0) else others)
        return here, here

    return healthy(looks, offsets=offsets, clients=clients)


def test_a_hot_queue_bounds_what_more_members_can_do() -> None:
    found = finding(heated(660, 60), "hot-queue")  # 660 of 1080
    assert found.title == "Hot queue: orders/broker-a/0 alone has 61% of the load"
    assert "more consumers cannot help: beyond 2 the busiest still carries 61%" in found.consequence
    assert found.about == ("orders/broker-a/0", "c1")


@pytest.mark.parametrize(("hot", "is_hot"), [(300, False), (480, True)])
def test_hot_is_one_and_a_half_even_shares_of_the_members(hot: int, is_hot: bool) -> None:
    """4 members: 37.5 % is the bound. 300 of 860 is 35 %, 480 of 900 is 53 %."""
    assert ("hot-queue" in codes(heated(hot, 60 if is_hot else 80))) == is_hot


def test_one_member_alone_has_no_hot_queue() -> None:
    assert codes(heated(600, 10, clients=("c1",))) == {}


def test_few_messages_say_nothing_of_shares() -> None:
    picture = heated(10, 0)
    assert "hot-queue" not in codes(picture)
    assert "only 60 messages" in gaps(picture)["hot-queue"]


def test_one_look_tells_no_rates() -> None:
    assert "one sample gives no rates" in gaps(heated(600, 10, looks=1))["hot-queue"]


def paced(*call_ms: float) -> GroupEvidence:
    clients = tuple(f"c{n}" for n in range(len(call_ms)))
    picture = healthy(clients=clients)
    for client, ms in zip(clients, call_ms, strict=True):
        picture = each(picture, tuned(client, figures=(TopicFigures("orders", ms, 5.0, 0.0),)))
    return picture


def test_a_slow_member_is_named_against_the_median_of_its_peers() -> None:
    found = finding(paced(10, 20, 30, 90), "slow-member")
    assert found.title == "c3 is much slower than its peers"
    assert found.evidence == ("orders: one call takes 90 ms, its peers' 20 ms (median)",)


@pytest.mark.parametrize("call_ms", [(20, 20, 59), (1, 1, 49), (500,), (0.5, 0.6)])
def test_members_that_differ_little_or_in_fractions_of_a_moment_are_not_slow(call_ms: tuple[float, ...]) -> None:
    assert codes(paced(*call_ms)) == {}
