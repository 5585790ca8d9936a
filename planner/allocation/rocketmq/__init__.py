"""RocketMQ's strategies (``org.apache.rocketmq.client.consumer.rebalance``), exactly as the clients run them."""

from planner.allocation.rocketmq.averagely import Averagely, AveragelyByCircle
from planner.allocation.rocketmq.config import Config
from planner.allocation.rocketmq.consistent_hash import ConsistentHash
from planner.allocation.rocketmq.machine_room import MachineRoom
from planner.allocation.rocketmq.nearby import MachineRoomNearby
from planner.allocation.rocketmq.pop import PopSharing

__all__ = [
    "Averagely",
    "AveragelyByCircle",
    "Config",
    "ConsistentHash",
    "MachineRoom",
    "MachineRoomNearby",
    "PopSharing",
]
