import pytest

from planner.snapshot.strategy import strategy_name

REBALANCE = "org.apache.rocketmq.client.consumer.rebalance."


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("AllocateMessageQueueAveragely", "AVG"),
        ("AllocateMessageQueueAveragelyByCircle", "AVG_BY_CIRCLE"),
        ("AllocateMessageQueueByConfig", "CONFIG"),
        ("AllocateMessageQueueByMachineRoom", "MACHINE_ROOM"),
        ("AllocateMachineRoomNearby", "MACHINE_ROOM_NEARBY"),
        ("AllocateMessageQueueConsistentHash", "CONSISTENT_HASH"),
        ("AllocateMessageQueueSticky", None),
        ("", None),
    ],
)
def test_strategies_by_class(class_name: str, name: str | None) -> None:
    assert strategy_name(REBALANCE + class_name) == name


def test_custom_strategy_has_no_name() -> None:
    assert strategy_name("com.acme.AllocateMessageQueueAveragely") is None
    assert strategy_name("AllocateMessageQueueAveragely") is None
