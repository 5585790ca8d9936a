"""Names that are read in a particular way: rooms in broker names, static topics, text order."""

import pytest

from planner.allocation.group import allocate_group
from planner.allocation.ordering import java_sorted, sorted_queues, topic_slices
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq.machine_room import room_of_broker
from planner.model.queues import MessageQueue


@pytest.mark.parametrize(
    ("broker", "room"),
    [
        ("r1@broker-a", "r1"),
        ("r1@", None),
        ("a@b@", "a"),
        ("a@b@@", "a"),
        ("a@@b", None),
        ("r1@x@y", None),
        ("@b", ""),
        ("@", None),
        ("@@", None),
        ("broker-a", None),
    ],
)
def test_the_room_in_a_broker_name_is_split_as_java_does(broker: str, room: str | None) -> None:
    """rocketmq.md 2.5."""
    assert room_of_broker(broker) == room


def test_names_sort_as_text_not_as_numbers() -> None:
    ids = ["10.0.0.2@1", "10.0.0.10@1", "10.0.0.1@99#5", "10.0.0.1@100#5"]
    assert java_sorted(ids) == ["10.0.0.10@1", "10.0.0.1@100#5", "10.0.0.1@99#5", "10.0.0.2@1"]
    brokers = [MessageQueue("T", broker, 0) for broker in ("broker-2", "broker-10", "broker-1")]
    assert [queue.broker for queue in sorted_queues(brokers)] == ["broker-1", "broker-10", "broker-2"]


def test_queue_ids_sort_as_numbers() -> None:
    queues = [MessageQueue("T", "b", number) for number in (10, 9, 2)]
    assert [queue.queue_id for queue in sorted_queues(queues)] == [2, 9, 10]


def test_text_order_is_by_utf16_code_unit() -> None:
    assert java_sorted(["\uff21", "\U0001f600"]) == ["\U0001f600", "\uff21"]
    queues = [MessageQueue("T", broker, 0) for broker in ("\uff21", "\U0001f600")]
    assert [queue.broker for queue in sorted_queues(queues)] == ["\U0001f600", "\uff21"]


def test_a_static_topic_is_allocated_by_its_global_ids() -> None:
    """rocketmq.md 1.7: logical queues carry a mock broker name, and allocation sees ordinary queues."""
    queues = [MessageQueue("T", "__syslo____global__", number) for number in range(4)]
    assert find_strategy("AVG").owners(queues, ["c0", "c1"]).tolist() == [0, 0, 1, 1]


def test_the_retry_topic_goes_to_the_first_ids_as_well() -> None:
    """rocketmq.md 1.5: one retry queue for each broker, allocated like any topic."""
    queues = [
        *(MessageQueue("T", broker, number) for broker in ("a", "b") for number in range(3)),
        *(MessageQueue("%RETRY%g", broker, 0) for broker in ("a", "b")),
    ]
    found = allocate_group(find_strategy("AVG"), queues, ["c0", "c1", "c2"]).answer()
    assert {client: len(owned) for client, owned in found.items()} == {"c0": 3, "c1": 3, "c2": 2}


def test_topics_are_slices_of_the_sorted_queues() -> None:
    queues = [MessageQueue(topic, "b", number) for topic, size in (("A", 2), ("B", 1)) for number in range(size)]
    assert topic_slices(queues) == [("A", slice(0, 2)), ("B", slice(2, 3))]
    assert topic_slices([]) == []
