"""Our read-only RocketMQ admin client: what name servers, brokers and members say of one consumer group.

From the wire up, each module knows only those before it: ``errors``, ``requests`` (the allow-list), ``fastjson``,
``codec`` (frames), ``connection`` (one TCP connection), ``shapes`` and
``answers``, ``broker_answers`` (bodies to our types), ``client`` (``RocketMQAdmin``), ``observe`` (``observe_group``). Standard library only.
"""

from planner.sources.rocketmq.client import RocketMQAdmin, TimeLimits
from planner.sources.rocketmq.errors import (
    AnswerError,
    BodyError,
    ConnectionEndedError,
    FrameError,
    JsonError,
    ProtocolError,
)
from planner.sources.rocketmq.observe import observe_group

__all__ = [
    "AnswerError",
    "BodyError",
    "ConnectionEndedError",
    "FrameError",
    "JsonError",
    "ProtocolError",
    "RocketMQAdmin",
    "TimeLimits",
    "observe_group",
]
