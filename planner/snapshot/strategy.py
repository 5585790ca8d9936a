"""Which strategy the group runs, by its members' own word."""

from collections.abc import Sequence

from planner.model.membership import Member

STRATEGY_OF_CLASS = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
}
"""Names by class of ``org.apache.rocketmq.client.consumer.rebalance``; parameters are not visible from outside."""


def observed_strategy(members: Sequence[Member]) -> tuple[str | None, str]:
    """Return the strategy that all members run and a sentence that says how it is known.

    ``None`` when members tell nothing, tell a class that is not RocketMQ's own, or tell different ones.
    """
    classes = sorted({m.tuning.strategy_class for m in members if m.tuning and m.tuning.strategy_class})
    if not classes:
        return None, "no member tells its allocation strategy"
    if len(classes) > 1:
        return None, f"members run different strategies ({', '.join(classes)}): a split brain"
    simple_name = classes[0].rpartition(".")[2]
    name = STRATEGY_OF_CLASS.get(simple_name)
    if name is None:
        return None, f"the members run a strategy of their own, {classes[0]}"
    return name, f"running info of the members ({simple_name})"
