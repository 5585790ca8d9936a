"""Which strategy the group runs, by its members' own word."""

from collections.abc import Sequence

from planner.model.membership import GroupMember
from planner.model.samples import KafkaGroup
from planner.model.snapshot import SHARE

STRATEGY_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance"

STRATEGY_OF_CLASS = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
}
"""Names by class of ``STRATEGY_PACKAGE``; their parameters are not visible from outside."""


def strategy_name(strategy_class: str) -> str | None:
    """Return the planner's name of one of RocketMQ's own strategy classes, ``None`` for any other.

    ``org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely`` gives ``AVG``. A class of the same
    name in another package is a user's own.
    """
    package, _, simple_name = strategy_class.rpartition(".")
    return STRATEGY_OF_CLASS.get(simple_name) if package == STRATEGY_PACKAGE else None


def observed_strategy(members: Sequence[GroupMember]) -> tuple[str | None, str]:
    """Return the strategy that all members run and a sentence that says how it is known.

    ``None`` when members report nothing, report a class that is not RocketMQ's own, or report different ones.
    """
    classes = sorted({m.tuning.strategy_class for m in members if m.tuning and m.tuning.strategy_class})
    if not classes:
        return None, "no member reports its allocation strategy"
    if len(classes) > 1:
        return None, f"members run different strategies ({', '.join(classes)}): a split brain"
    name = strategy_name(classes[0])
    if name is None:
        return None, f"the members run a strategy of their own, {classes[0]}"
    return name, f"running info of the members ({classes[0].rpartition('.')[2]})"


def observed_assignor(group: KafkaGroup) -> tuple[str | None, str]:
    """Return the assignor that a Kafka group agreed on and a sentence that says how it is known.

    The server's own ``range`` is ``range-server``: it computes other answers than the clients' one. ``share`` is the
    built-in assignor of share groups, ``simple``.
    """
    if group.assignor is None:
        return None, f"the coordinator names no assignor while the group is {group.state}"
    if group.is_share:
        name = SHARE if group.assignor == "simple" else group.assignor
        return name, f"the coordinator (share group, assignor {group.assignor})"
    name = f"{group.assignor}-server" if (group.protocol, group.assignor) == ("consumer", "range") else group.assignor
    return name, f"the coordinator ({group.protocol} protocol)"
