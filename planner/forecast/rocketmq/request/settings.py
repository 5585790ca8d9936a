"""Settings of clients and brokers by their own property names: known ones, their defaults, what a client refuses.

Bounds as ``DefaultMQPushConsumerImpl#checkConfig`` has them (4.9.8, 5.5.0). A name in milliseconds is in milliseconds.
Those of lite pull consumers are fields of ``DefaultLitePullConsumer`` (4.9.8, 5.5.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from planner.allocation import fields
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version

_DAY_MS = 86_400_000
_JVM = "rocketmq.client."
_FIRST = Version(0, 0)
CLUSTERING, BROADCASTING = "CLUSTERING", "BROADCASTING"
MODELS = (CLUSTERING, BROADCASTING)


class Consumer(StrEnum):
    """Which class of the client consumes: its rebalance is the same, its pulls and commits are not."""

    PUSH = "push"
    LITE_PULL = "lite_pull"
    PULL = "pull"


@dataclass(frozen=True, slots=True)
class Known:
    """One setting: its default, its bounds, and the first client or broker that has it."""

    default: int | bool | str
    least: int = 0
    most: int = _DAY_MS
    since: Version = _FIRST


KNOWN: dict[str, Known] = {
    "awaitTerminationMillisWhenShutdown": Known(0),
    "consumeThreadMin": Known(20, 1, 1000),
    "consumeThreadMax": Known(20, 1, 1000),
    "consumeMessageBatchMaxSize": Known(1, 1, 1024),
    "pullBatchSize": Known(32, 1, 1024),
    "pullThresholdForQueue": Known(1000, 1, 65535),
    "pullThresholdForTopic": Known(-1, -1, 6_553_500),
    "pullInterval": Known(0, 0, 65_535),
    "consumeConcurrentlyMaxSpan": Known(2000, 1, 65_535),
    "pollNameServerInterval": Known(30_000, 10),
    "heartbeatBrokerInterval": Known(30_000, 10),
    "persistConsumerOffsetInterval": Known(5_000, 10),
    "pullTimeDelayMillsWhenException": Known(1_000, 0),
    "messageModel": Known(CLUSTERING),
    "autoCommit": Known(True),
    "autoCommitIntervalMillis": Known(5_000, 1_000),
    "pollTimeoutMillis": Known(5_000),
    "pullThreadNums": Known(20, 1, 1000),
    "pullThresholdForAll": Known(10_000, 1, 2**31 - 1),
    "clientRebalance": Known(True, since=Version(5, 0)),
    "enableHeartbeatChannelEventListener": Known(True, since=Version(5, 2)),
    _JVM + "rebalance.waitInterval": Known(20_000, 10),
    _JVM + "rebalance.minInterval": Known(1_000, 0, since=Version(5, 2)),
    _JVM + "rebalance.lockInterval": Known(20_000, 10),
    _JVM + "rebalance.lockMaxLiveTime": Known(30_000, 10),
    _JVM + "unlockDelayTimeMills": Known(20_000, 0),
    "popInvisibleTime": Known(60_000, 5_000, 300_000, since=Version(5, 0)),
    "timerWheelEnable": Known(True, since=Version(5, 0)),
    "loadBalancePollNameServerInterval": Known(30_000, 10, since=Version(5, 0)),
    "notifyConsumerIdsChangedEnable": Known(True),
    "realTimeNotifyConsumerChange": Known(True, since=Version(5, 0)),
    "channelExpiredTimeout": Known(120_000, 10, since=Version(5, 0)),
    "serverChannelMaxIdleTimeSeconds": Known(120, 1, 86_400),
    "rocketmq.broker.rebalance.lockMaxLiveTime": Known(60_000, 10),
}

WITHOUT_INFLUENCE: dict[str, Known] = {
    "consumeFromWhere": Known("CONSUME_FROM_LAST_OFFSET"),
    "consumeTimeout": Known(15, 1, _DAY_MS),
    "maxReconsumeTimes": Known(-1, -1, 2**31 - 1),
    "mqClientApiTimeout": Known(3_000, 1),
    "popBatchNums": Known(32, 1, 32),
    "pullThresholdSizeForQueue": Known(100, 1, 1024),
    "pullThresholdSizeForTopic": Known(-1, -1, 102_400),
    "suspendCurrentQueueTimeMillis": Known(1_000, 10, 30_000),
    "autoCreateSubscriptionGroup": Known(True),
    "autoCreateTopicEnable": Known(True),
    "flushConsumerOffsetInterval": Known(5_000, 1_000),
}
"""Settings that people have in their files and that change nothing here: accepted, with a warning."""

REASONS: Mapping[str, str] = {
    "pullThresholdSizeForQueue": "a request has no message sizes",
    "pullThresholdSizeForTopic": "a request has no message sizes",
}
"""Why some of them have none, where that is not the nature of the setting."""

_POLLING = ("autoCommit", "autoCommitIntervalMillis", "pollTimeoutMillis", "pullThreadNums", "pullThresholdForAll")
_LISTENING = (
    "awaitTerminationMillisWhenShutdown",
    "clientRebalance",
    "consumeConcurrentlyMaxSpan",
    "consumeMessageBatchMaxSize",
    "consumeThreadMax",
    "consumeThreadMin",
    "popInvisibleTime",
    "pullInterval",
    "pullThresholdForTopic",
    "pullThresholdSizeForTopic",
)
_BUFFERING = (
    "pullBatchSize",
    "pullThresholdForQueue",
    "pullThresholdSizeForQueue",
    "pullTimeDelayMillsWhenException",
)
LACKS: Mapping[Consumer, tuple[str, ...]] = {
    Consumer.PUSH: _POLLING,
    Consumer.LITE_PULL: _LISTENING,
    Consumer.PULL: (*_POLLING, *_LISTENING, *_BUFFERING),
}
"""Settings that a class of the client does not have."""

POLLING_THREADS = 1
"""How many messages an application that polls works on at once, unless the request says more."""

OWN_DEFAULTS: Mapping[Consumer, Mapping[str, int]] = {Consumer.LITE_PULL: {"pullBatchSize": 10}}
"""Where a class begins with another value than a push consumer (``DefaultLitePullConsumer``)."""

OF_BROKERS = (
    "realTimeNotifyConsumerChange",
    "channelExpiredTimeout",
    "timerWheelEnable",
    "loadBalancePollNameServerInterval",
)
"""Settings with a first version that belong to the broker, not to the client."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked settings of one group; what is not given has the default of the client and broker."""

    given: Mapping[str, int | bool | str]
    consumer: Consumer = Consumer.PUSH

    def value(self, name: str) -> int:
        """Return a number as it is written: milliseconds, messages, threads."""
        default = OWN_DEFAULTS.get(self.consumer, {}).get(name, KNOWN[name].default)
        return int(self.given.get(name, default))

    def seconds(self, name: str) -> float:
        """Return a setting that is written in milliseconds as seconds."""
        return self.value(name) / 1000

    def is_on(self, name: str) -> bool:
        """Return a switch."""
        return bool(self.given.get(name, KNOWN[name].default))

    def text(self, name: str) -> str:
        """Return a name."""
        return str(self.given.get(name, KNOWN[name].default))


def read_settings(
    document: Mapping[str, Any], client: Version, broker: Version, consumer: Consumer = Consumer.PUSH
) -> Settings:
    """Return the settings, checked; refuse unknown ones, wrong values, and those that this client does not have."""
    fields.only_known(document, (*KNOWN, *WITHOUT_INFLUENCE), "settings")
    given = {name: _checked(name, value) for name, value in document.items()}
    for name in given:
        if name in LACKS[consumer]:
            raise BadInputError(f"settings.{name}: found with {consumer} consumers, which do not have it")
    for name in given:
        version = broker if name in OF_BROKERS else client
        if version < _known(name).since:
            side = "broker" if name in OF_BROKERS else "client"
            raise BadInputError(
                f"settings.{name}: found with {side} {version}, which does not have it; it is there since "
                f"{_known(name).since}"
            )
    settings = Settings(given, consumer)
    if settings.value("consumeThreadMin") > settings.value("consumeThreadMax"):
        raise BadInputError(
            f"settings.consumeThreadMin: found {settings.value('consumeThreadMin')}, expected at most consumeThreadMax "
            f"({settings.value('consumeThreadMax')}): the client refuses to start"
        )
    for shorter, longer, harm in _ORDER:
        if settings.value(shorter) >= settings.value(longer):
            raise BadInputError(
                f"settings.{shorter}: found {settings.value(shorter)}, expected less than {longer} "
                f"({settings.value(longer)}): {harm}, which has no forecast"
            )
    return settings


_ORDER = (
    ("heartbeatBrokerInterval", "channelExpiredTimeout", "brokers would drop members between two heartbeats"),
    (_JVM + "rebalance.lockInterval", _JVM + "rebalance.lockMaxLiveTime", "clients would stop between two renewals"),
    (
        _JVM + "rebalance.lockInterval",
        "rocketmq.broker.rebalance.lockMaxLiveTime",
        "locks would end before they are renewed",
    ),
)
"""Settings of which the first must stay below the second, and what comes of it otherwise."""


def _known(name: str) -> Known:
    return KNOWN[name] if name in KNOWN else WITHOUT_INFLUENCE[name]


def _checked(name: str, value: object) -> int | bool | str:
    known, field = _known(name), f"settings.{name}"
    if isinstance(known.default, bool):
        if not isinstance(value, bool):
            raise fields.refusal(field, value, "true or false")
        return value
    if isinstance(known.default, str):
        if name == "messageModel" and value not in MODELS:
            raise fields.refusal(field, value, f"one of {', '.join(MODELS)}")
        return fields.text(value, field)
    number = fields.whole_number(value, field, known.least, known.most)
    if known.least == -1 and number == 0 and name.startswith("pullThreshold"):
        raise fields.refusal(field, value, f"-1 for no bound, or a number from 1 to {known.most}")
    return number
