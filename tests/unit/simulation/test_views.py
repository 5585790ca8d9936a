"""Split brain: the rows of rocketmq.md 3.13 and 4.4, and what it leaves alone."""

from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import MachineRoom
from planner.model.queues import MessageQueue
from planner.simulation.rocketmq.ownership import MemberView, Ownership, ownership, views_with

AVG = find_strategy("AVG")
CIRCLE = find_strategy("AVG_BY_CIRCLE")
MEMBERS = ("c0", "c1")


def queues(count: int, topic: str = "T", broker: str = "b") -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue(topic, broker, queue_id) for queue_id in range(count))


def ids(found: tuple[MessageQueue, ...]) -> list[int]:
    return [queue.queue_id for queue in found]


def owned_by(found: Ownership, client: str) -> list[int]:
    return [queue.queue_id for queue, clients in found.owners.items() if client in clients]


def test_mixed_strategies() -> None:
    found = ownership(views_with([("c0", AVG), ("c1", CIRCLE)], queues(8)))
    assert (owned_by(found, "c0"), owned_by(found, "c1")) == ([0, 1, 2, 3], [1, 3, 5, 7])
    assert (ids(found.doubled), ids(found.orphans)) == ([1, 3], [4, 6])


def test_mixed_queue_views() -> None:
    found = ownership([MemberView("c0", AVG, queues(16), MEMBERS), MemberView("c1", AVG, queues(8), MEMBERS)])
    assert (owned_by(found, "c0"), owned_by(found, "c1")) == (list(range(8)), [4, 5, 6, 7])
    assert (ids(found.doubled), ids(found.orphans)) == ([4, 5, 6, 7], list(range(8, 16)))


def test_mixed_member_views() -> None:
    found = ownership([MemberView("c0", AVG, queues(8), ("c0",)), MemberView("c1", AVG, queues(8), MEMBERS)])
    assert (ids(found.doubled), ids(found.orphans)) == ([4, 5, 6, 7], [])


def test_a_member_that_its_broker_does_not_list_owns_nothing() -> None:
    found = ownership([MemberView("c0", AVG, queues(8), ("c1",)), MemberView("c1", AVG, queues(8), MEMBERS)])
    assert ids(found.orphans) == [0, 1, 2, 3]


def test_different_topics_leave_half_of_each_unread() -> None:
    """rocketmq.md 4.4: T1 queues 4 to 7 and T2 queues 0 to 3 are unread."""
    first, second = queues(8, "T1"), queues(8, "T2")
    found = ownership([MemberView("c0", AVG, first, MEMBERS), MemberView("c1", AVG, second, MEMBERS)])
    assert found.orphans == (*first[4:], *second[:4])
    assert found.doubled == ()


def test_duplicate_ids_double_the_first_share_and_orphan_the_second() -> None:
    members = ("a", "a", "b")
    found = ownership(MemberView(client, AVG, queues(6), members) for client in members)
    assert found.owners[queues(6)[0]] == ("a", "a")
    assert (ids(found.doubled), ids(found.orphans)) == ([0, 1], [2, 3])


def test_members_of_other_rooms_leave_holes() -> None:
    """Shares are counted over the whole group: each room's members hold only their part of it."""
    first, second = queues(4, broker="r1@b"), queues(4, broker="r2@b")
    views = views_with([("c0", MachineRoom(frozenset({"r1"}))), ("c1", MachineRoom(frozenset({"r2"})))], first + second)
    found = ownership(views)
    assert found.orphans == (*first[2:], *second[:2])


def test_one_view_for_all_is_whole() -> None:
    found = ownership(views_with([("c0", AVG), ("c1", AVG)], queues(8)))
    assert found.is_whole
    assert not ownership(views_with([("c0", AVG), ("c1", CIRCLE)], queues(8))).is_whole
