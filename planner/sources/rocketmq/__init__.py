"""Our read-only RocketMQ admin client: what name servers, brokers and members report of one consumer group.

From the wire up, each module knows only those before it: ``errors``, ``requests`` (the allow-list), ``fastjson``,
``credentials`` (signing), ``codec`` (frames), ``transport`` (TCP and TLS), ``connection`` (one connection),
``broker_connections`` (all of them), ``name_servers``, ``shapes``, ``answers`` and ``broker_answers`` (bodies to our
types), ``client`` (``RocketMQAdmin``); then samples of groups: ``query_session`` (what groups share),
``broker_reports`` (one of each broker), ``broker_states``, ``topics``, ``offsets``, ``members``, ``groups`` (which
there are), ``observe``. Standard library only.
"""

from planner.sources.rocketmq.broker_connections import TimeLimits
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.credentials import Credentials
from planner.sources.rocketmq.errors import (
    AnswerError,
    BodyError,
    ConnectionEndedError,
    FrameError,
    JsonError,
    NoAnswerError,
    ProtocolError,
)
from planner.sources.rocketmq.groups import GroupList, group_names, list_groups
from planner.sources.rocketmq.observe import observe_group, observe_groups
from planner.sources.rocketmq.transport import Tls, UnverifiedTlsWarning

__all__ = [
    "AnswerError",
    "BodyError",
    "ConnectionEndedError",
    "Credentials",
    "FrameError",
    "GroupList",
    "JsonError",
    "NoAnswerError",
    "ProtocolError",
    "RocketMQAdmin",
    "TimeLimits",
    "Tls",
    "UnverifiedTlsWarning",
    "group_names",
    "list_groups",
    "observe_group",
    "observe_groups",
]
