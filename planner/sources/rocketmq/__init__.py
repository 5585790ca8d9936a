"""Our read-only RocketMQ admin client: what name servers, brokers and members say of one consumer group.

From the wire up, each module knows only those before it: ``errors``, ``requests`` (the allow-list), ``fastjson``,
``credentials`` (signing), ``codec`` (frames), ``transport`` (TCP and TLS), ``connection`` (one connection),
``shapes``, ``answers`` and ``broker_answers`` (bodies to our types), ``client`` (``RocketMQAdmin``), ``observe``
(``observe_group``). Standard library only.
"""

from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.credentials import Credentials
from planner.sources.rocketmq.errors import (
    AnswerError,
    BodyError,
    ConnectionEndedError,
    FrameError,
    JsonError,
    ProtocolError,
)
from planner.sources.rocketmq.links import TimeLimits
from planner.sources.rocketmq.observe import observe_group
from planner.sources.rocketmq.transport import Tls, UnverifiedTlsWarning

__all__ = [
    "AnswerError",
    "BodyError",
    "ConnectionEndedError",
    "Credentials",
    "FrameError",
    "JsonError",
    "ProtocolError",
    "RocketMQAdmin",
    "TimeLimits",
    "Tls",
    "UnverifiedTlsWarning",
    "observe_group",
]
