"""What routes and offsets show: queues that nobody can read, brokers in trouble, failures."""

from dataclasses import replace

import pytest

from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.membership import TopicFigures
from planner.model.queues import MessageQueue
from planner.model.routes import BrokerQueues, TopicRoute
from planner.model.samples import QueueOffsets
from tests.unit.diagnosis.patients import at, codes, each, finding, gaps, healthy, offset, queue, routed, tuned


def route(read: int = 4, write: int = 4, permission: int = 6, *, is_static: bool = False) -> GroupEvidence:
    """Return a group whose topic has these figures on broker-b."""
    a, b = BrokerQueues("broker-a", 4, 4, 6), BrokerQueues("broker-b", read, write, permission)
    return each(healthy(), routed("orders", a, b, is_static=is_static))


def test_queues_that_are_written_and_never_read() -> None:
    picture = route(write=6)
    assert codes(picture) == {"unread-queues": Severity.ERROR}
    found = finding(picture, "unread-queues")
    assert found.about == ("orders/broker-b/4", "orders/broker-b/5")
    assert found.consequence.startswith("20% of what producers send lands where no group reads")


def test_queues_that_are_read_and_never_written() -> None:
    picture = each(
        route(write=2),
        lambda s: replace(s, offsets=tuple(replace(o, consumer_offset=o.broker_offset) for o in s.offsets)),
    )
    assert codes(picture) == {"empty-queues": Severity.NOTICE}
    assert finding(picture, "empty-queues").consequence.startswith("25% of the topic's queues carry nothing")


def test_queues_that_are_being_drained_are_not_called_empty() -> None:
    picture = each(route(write=2), offset(queue(3, "broker-b"), broker_offset=99_999))
    assert "empty-queues" not in codes(picture)


def test_a_read_only_broker_is_a_warning_and_an_unreadable_one_an_error() -> None:
    assert codes(route(permission=4)) == {"broker-permission": Severity.WARNING}
    assert finding(route(permission=4), "broker-permission").title == "Broker broker-b is read-only for orders"
    assert codes(route(permission=2))["broker-permission"] is Severity.ERROR


def test_a_broker_that_leaves_the_routes_is_gone() -> None:
    lost = at(healthy(), -1, routed("orders", BrokerQueues("broker-a", 4, 4, 6)))
    found = finding(lost, "broker-gone")
    assert found.title == "Broker broker-b is gone"
    assert found.consequence.startswith("4 queues of the group stand still")


def test_a_slave_that_serves() -> None:
    picture = each(
        healthy(),
        lambda s: replace(
            s,
            routes=replace(
                s.routes, brokers=tuple(replace(b, is_master=b.broker != "broker-b") for b in s.routes.brokers)
            ),
        ),
    )
    assert codes(picture) == {"no-master": Severity.ERROR}
    assert "4 queues take no new messages" in finding(picture, "no-master").consequence


def test_a_static_topic_is_a_fact() -> None:
    assert codes(route(is_static=True)) == {"static-topic": Severity.NOTICE}


def test_a_topic_that_nobody_subscribes_any_more() -> None:
    old = MessageQueue("old", "broker-a", 0)
    picture = each(
        healthy(),
        lambda s: replace(
            s,
            routes=replace(
                s.routes, topics=(*s.routes.topics, TopicRoute("old", (BrokerQueues("broker-a", 1, 1, 6),)))
            ),
            offsets=(*s.offsets, QueueOffsets(old, 700, 100)),
        ),
    )
    assert codes(picture) == {"left-topic": Severity.NOTICE}
    assert finding(picture, "left-topic").consequence.startswith("600 messages count as lag")


def test_messages_that_retention_removed() -> None:
    picture = each(healthy(), lambda s: replace(s, offsets=tuple(replace(o, first_offset=900) for o in s.offsets)))
    assert codes(picture) == {}
    lost = each(picture, offset(queue(0), broker_offset=2000, consumer_offset=850))
    assert finding(lost, "expired-unread").consequence == "50 messages are lost for this group"


def test_a_commit_of_0_is_one_whose_messages_may_have_been_removed() -> None:
    lost = each(healthy(), offset(queue(0), broker_offset=2000, consumer_offset=0, first_offset=900))
    assert finding(lost, "expired-unread").consequence == "900 messages are lost for this group"
    assert "expired-unread" not in codes(each(lost, offset(queue(0), consumer_offset=None)))


@pytest.mark.parametrize(("end", "committed", "is_left"), [(600, 0, True), (600, None, False), (0, 0, False)])
def test_a_left_topic_may_have_been_left_at_0(end: int, committed: int | None, is_left: bool) -> None:
    left = QueueOffsets(MessageQueue("refunds", "broker-a", 0), end, committed)
    picture = each(healthy(), lambda s: replace(s, offsets=(*s.offsets, left)))
    assert ("left-topic" in codes(picture)) == is_left


def test_commits_beyond_the_end_in_every_look() -> None:
    picture = each(healthy(), offset(queue(0), broker_offset=10, consumer_offset=25))
    assert codes(picture) == {"beyond-end": Severity.ERROR}
    assert codes(at(healthy(), -1, offset(queue(0), broker_offset=1600, consumer_offset=1601))) == {}


def failing(arrived: int, failed_per_s: float) -> GroupEvidence:
    retry = MessageQueue("%RETRY%shop", "broker-a", 0)
    numbers = iter(range(7))
    picture = each(
        healthy(),
        lambda s: replace(s, offsets=(*s.offsets, QueueOffsets(retry, 100 + arrived * next(numbers), 100))),
    )
    return each(picture, tuned("c1", figures=(TopicFigures("orders", 2.0, 9.0, failed_per_s),)))


def test_messages_that_fail_are_retried() -> None:
    found = finding(failing(5, 1.0), "retries")
    assert found.evidence[0] == "30 messages came into the retry queues within 30 s"
    assert "1 messages/s failed within the last minute, 3% of all calls" in found.evidence[1]
    assert codes(failing(0, 0.0)) == {}


def test_dead_letters_are_a_warning_and_growing_ones_an_error() -> None:
    old = each(healthy(), lambda s: replace(s, dead_letters=3))
    assert codes(old) == {"dead-letters": Severity.WARNING}
    assert codes(at(old, -1, lambda s: replace(s, dead_letters=4)))["dead-letters"] is Severity.ERROR
    assert "dead-letters" in gaps(each(old, lambda s: replace(s, dead_letters=None)))
