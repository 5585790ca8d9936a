"""Bodies of answers about topics, groups and brokers as a whole as our types; ``answers`` has those about one group.

Pure functions with the same promise: ``JsonError`` for what is not JSON, ``BodyError`` for another shape.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.model.queues import MessageQueue
from planner.sources.rocketmq import answers, fastjson, shapes
from planner.sources.rocketmq.errors import BodyError
from planner.sources.rocketmq.fastjson import Json, Key

HIDDEN: Final = "(hidden)"
"""Stands in a broker's configuration where a password or key was."""
_SECRET_KEY: Final = re.compile(r"(?i)secret|passw|credential|accesskey|authenticationuser|token")
_ESCAPED: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY_END: Final = re.compile(r"(?<!\\)(?:\\\\)*([=:])")


@dataclass(frozen=True, slots=True)
class QueueRange:
    """Offsets that one queue holds: ``min_offset`` is the oldest message's, ``max_offset`` the next one's to come.

    ``last_update_ms`` is the store time of the newest message, 0 for a queue that holds none.
    """

    queue: MessageQueue
    min_offset: int
    max_offset: int
    last_update_ms: int


@dataclass(frozen=True, slots=True)
class TopicStats:
    """A topic on one broker; ``puts_per_s`` is messages sent, last minute, ``None`` from brokers before 5.3.3."""

    queues: tuple[QueueRange, ...]
    puts_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a group wants of a topic, as the broker has merged it; ``version`` is milliseconds of the client's clock."""

    topic: str
    expression: str
    expression_type: str
    version: int


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """A subscription group's settings on one broker (``SubscriptionGroupConfig``).

    ``retry_max_times`` is how often a failed message comes again before it is dead (concurrent consumers),
    ``retry_queues`` how many queues its ``%RETRY%`` topic gets. ``notifies_changes`` is False where members learn
    of others only at their own tick (20 s). ``in_order`` is ``consumeMessageOrderly``, which proxies hand to their
    gRPC clients as FIFO.
    """

    group: str
    can_consume: bool
    can_broadcast: bool
    retry_queues: int
    retry_max_times: int
    notifies_changes: bool
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic's settings on one broker; ``permission`` is 4 for read plus 2 for write."""

    topic: str
    read_queues: int
    write_queues: int
    permission: int
    is_ordered: bool


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """Offsets that a group committed on a topic's queues at one broker: (queue id, next offset to consume), sorted."""

    group: str
    topic: str
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class MemberOffsets:
    """Offsets in one member's memory (``consumer_offset`` per queue), sorted; queues it never consumed may miss."""

    client_id: str
    offsets: tuple[tuple[MessageQueue, int], ...]


@dataclass(frozen=True, slots=True)
class BrokerConsumeStats:
    """All groups of one broker; lags in messages.

    ``in_flight`` is what was pulled but not committed; ``None`` before 5.1, and where the broker reports less than 0:
    5.5.0 takes pull offsets for 0 in this answer, so that its sum is minus all commits.
    """

    address: str
    lag: int
    in_flight: int | None
    groups: tuple[tuple[str, tuple[answers.ConsumeStats, ...]], ...]


@dataclass(frozen=True, slots=True)
class StatsWindow:
    """One window of a broker's counter: its sum, per second, and per increment (``avgpt``)."""

    total: int
    per_s: float
    mean: float


@dataclass(frozen=True, slots=True)
class BrokerCounter:
    """One of a broker's counters over the last minute, hour and day; the latter two fill once a minute and hour."""

    minute: StatsWindow
    hour: StatsWindow
    day: StatsWindow


@dataclass(frozen=True, slots=True)
class BrokerRuntime:
    """What a broker reports of itself: version, start in epoch milliseconds, and all its figures as text, by name."""

    version: int | None
    version_name: str
    started_at_ms: int | None
    figures: Mapping[str, str]

    def per_s(self, name: str) -> tuple[float, ...]:
        """Return messages per second over the last 10, 60 and 600 s of ``putTps`` and the like; fewer after a start."""
        try:
            return tuple(float(figure) for figure in self.figures.get(name, "").split())
        except ValueError:
            return ()


def topic_list(body: bytes) -> tuple[str, ...]:
    """Return the names in the answer to 206, 224 and 343, sorted."""
    return _names(body, "topicList")


def group_list(body: bytes) -> tuple[str, ...]:
    """Return the names in the answer to 300, sorted."""
    return _names(body, "groupList")


def _names(body: bytes, field: str) -> tuple[str, ...]:
    return shapes.texts(shapes.mapping(fastjson.parse(body), "names").get(field) or [], field)


def topic_stats(body: bytes) -> TopicStats:
    """Return the offsets in the answer to 202, sorted by queue."""
    fields = shapes.mapping(fastjson.parse(body), "topic stats")
    table = shapes.mapping(fields.get("offsetTable") or {}, "offsetTable")
    puts = fields.get("topicPutTps")
    return TopicStats(
        queues=tuple(
            sorted((_range(key, entry) for key, entry in table.items()), key=lambda queue_range: queue_range.queue)
        ),
        puts_per_s=None if puts is None else shapes.number(puts, "topicPutTps"),
    )


def _range(key: Key, entry: Json) -> QueueRange:
    queue = shapes.queue(key, "offsetTable")
    fields = shapes.mapping(entry, f"offsetTable of {queue}")
    return QueueRange(
        queue=queue,
        min_offset=shapes.integer(fields.get("minOffset"), f"minOffset of {queue}"),
        max_offset=shapes.integer(fields.get("maxOffset"), f"maxOffset of {queue}"),
        last_update_ms=shapes.integer(fields.get("lastUpdateTimestamp", 0), f"lastUpdateTimestamp of {queue}"),
    )


def subscription(body: bytes) -> Subscription | None:
    """Return what the answer to 345 holds; ``None`` when the group is offline or does not want the topic."""
    entry = shapes.mapping(fastjson.parse(body), "subscription").get("subscriptionData")
    if entry is None:
        return None
    fields = shapes.mapping(entry, "subscriptionData")
    return Subscription(
        topic=shapes.text(fields.get("topic"), "topic"),
        expression=shapes.text(fields.get("subString") or "", "subString"),
        expression_type=shapes.text(fields.get("expressionType") or "TAG", "expressionType"),
        version=shapes.integer(fields.get("subVersion", 0), "subVersion"),
    )


def group_configs(body: bytes) -> tuple[GroupConfig, ...]:
    """Return the groups in the answer to 201, sorted by name, the broker's own (``CID_...``) among them."""
    fields = shapes.mapping(fastjson.parse(body), "group configs")
    table = shapes.mapping(fields.get("subscriptionGroupTable") or {}, "subscriptionGroupTable")
    configs = [_group_config(str(name), shapes.mapping(entry, f"group {name}")) for name, entry in table.items()]
    return tuple(sorted(configs, key=lambda config: config.group))


def _group_config(name: str, fields: Mapping[Key, Json]) -> GroupConfig:
    # What is left out has the default of SubscriptionGroupConfig: newer servers may stop writing defaults.
    return GroupConfig(
        group=name,
        can_consume=shapes.flag(fields.get("consumeEnable", True), f"consumeEnable of {name}"),
        can_broadcast=shapes.flag(fields.get("consumeBroadcastEnable", True), f"consumeBroadcastEnable of {name}"),
        retry_queues=shapes.integer(fields.get("retryQueueNums", 1), f"retryQueueNums of {name}"),
        retry_max_times=shapes.integer(fields.get("retryMaxTimes", 16), f"retryMaxTimes of {name}"),
        notifies_changes=shapes.flag(
            fields.get("notifyConsumerIdsChangedEnable", True), f"notifyConsumerIdsChangedEnable of {name}"
        ),
        in_order=shapes.flag(fields.get("consumeMessageOrderly", False), f"consumeMessageOrderly of {name}"),
    )


def topic_configs(body: bytes) -> tuple[TopicConfig, ...]:
    """Return the topics in the answer to 21, sorted by name, the broker's own among them."""
    fields = shapes.mapping(fastjson.parse(body), "topic configs")
    table = shapes.mapping(fields.get("topicConfigTable") or {}, "topicConfigTable")
    configs = [_topic_config(str(name), shapes.mapping(entry, f"topic {name}")) for name, entry in table.items()]
    return tuple(sorted(configs, key=lambda config: config.topic))


def _topic_config(name: str, fields: Mapping[Key, Json]) -> TopicConfig:
    return TopicConfig(
        topic=name,
        read_queues=shapes.integer(fields.get("readQueueNums"), f"readQueueNums of {name}"),
        write_queues=shapes.integer(fields.get("writeQueueNums"), f"writeQueueNums of {name}"),
        permission=shapes.integer(fields.get("perm"), f"perm of {name}"),
        is_ordered=shapes.flag(fields.get("order", False), f"order of {name}"),
    )


def member_offsets(body: bytes) -> tuple[MemberOffsets, ...]:
    """Return what members hold in memory by the answer to 223, sorted by client id."""
    table = shapes.mapping(fastjson.parse(body), "consumer status").get("consumerTable") or {}
    members = []
    for name, entry in shapes.mapping(table, "consumerTable").items():
        where = f"consumerTable of {name}"
        offsets = shapes.mapping(entry, where).items()
        pairs = sorted((shapes.queue(key, where), shapes.integer(value, where)) for key, value in offsets)
        members.append(MemberOffsets(str(name), tuple(pairs)))
    return tuple(sorted(members, key=lambda member: member.client_id))


def all_offsets(body: bytes) -> tuple[CommittedOffsets, ...]:
    """Return all commits in the answer to 43 (or in ``consumerOffset.json``), sorted by group and topic.

    Entries whose key is not ``topic@group`` are left out, as brokers themselves do.
    """
    fields = shapes.mapping(fastjson.parse(body), "consumer offsets")
    table = shapes.mapping(fields.get("offsetTable") or {}, "offsetTable")
    commits = []
    for key, entry in table.items():
        topic, at_sign, group = str(key).partition("@")
        if at_sign and topic and group and "@" not in group:
            offsets = shapes.mapping(entry, f"offsetTable of {key}").items()
            pairs = sorted((_queue_id(name, str(key)), shapes.integer(value, str(key))) for name, value in offsets)
            commits.append(CommittedOffsets(group, topic, tuple(pairs)))
    return tuple(sorted(commits, key=lambda commit: (commit.group, commit.topic)))


def _queue_id(key: Key, where: str) -> int:
    number = fastjson.integer_key(key)
    if not isinstance(number, int):
        raise BodyError(f"queue id in {where} is {key!r:.60}, expected an integer")
    return number


def broker_consume_stats(body: bytes) -> BrokerConsumeStats:
    """Return the offsets of all groups in the answer to 317, one ``ConsumeStats`` per topic, sorted by group."""
    fields = shapes.mapping(fastjson.parse(body), "broker consume stats")
    groups = []
    for entry in shapes.mappings(fields.get("consumeStatsList") or [], "consumeStatsList"):
        for name, listed in entry.items():
            stats = shapes.mappings(listed, f"consumeStatsList of {name}")
            groups.append((str(name), tuple(answers.stats_of(of_topic) for of_topic in stats)))
    pulled = fields.get("totalInflightDiff")
    in_flight = None if pulled is None else shapes.integer(pulled, "totalInflightDiff")
    return BrokerConsumeStats(
        address=shapes.text(fields.get("brokerAddr") or "", "brokerAddr"),
        lag=shapes.integer(fields.get("totalDiff", 0), "totalDiff"),
        in_flight=in_flight if in_flight is not None and in_flight >= 0 else None,
        groups=tuple(sorted(groups, key=lambda of_topic: of_topic[0])),
    )


def counter(body: bytes) -> BrokerCounter:
    """Return the counter in the answer to 315."""
    fields = shapes.mapping(fastjson.parse(body), "broker stats")
    return BrokerCounter(*(_window(fields, name) for name in ("statsMinute", "statsHour", "statsDay")))


def _window(fields: Mapping[Key, Json], name: str) -> StatsWindow:
    window = shapes.mapping(fields.get(name), name)
    return StatsWindow(
        total=shapes.integer(window.get("sum"), f"sum of {name}"),
        per_s=shapes.number(window.get("tps"), f"tps of {name}"),
        mean=shapes.number(window.get("avgpt"), f"avgpt of {name}"),
    )


def runtime(body: bytes) -> BrokerRuntime:
    """Return the table in the answer to 28."""
    table = shapes.mapping(shapes.mapping(fastjson.parse(body), "runtime info").get("table"), "table")
    figures = {str(name): value for name, value in table.items() if isinstance(value, str)}
    return BrokerRuntime(
        version=_whole(figures.get("brokerVersion", "")),
        version_name=figures.get("brokerVersionDesc", ""),
        started_at_ms=_whole(figures.get("bootTimestamp", "")),
        figures=figures,
    )


def _whole(text: str) -> int | None:
    number = fastjson.integer_key(text)
    return number if isinstance(number, int) else None


def properties(body: bytes) -> dict[str, str]:
    """Return the settings in the answer to 26, which is Java properties text, with secrets as ``HIDDEN``.

    A setting is secret by its name: passwords, keys, credentials, and the user that 5.x sets up with its password.
    """
    try:
        lines = body.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise BodyError(f"broker config is not UTF-8, near byte {error.start}") from None
    settings: dict[str, str] = {}
    for line in lines:
        end = _KEY_END.search(line)
        if end is None or line.startswith(("#", "!")):
            continue
        name = _unescape_text(line[: end.start(1)].strip())
        value = _unescape_text(line[end.end() :].lstrip())
        settings[name] = HIDDEN if value and _SECRET_KEY.search(name) else value
    return settings


def _unescape_text(text: str) -> str:
    return _ESCAPED.sub(_unescape, text)


def _unescape(match: re.Match[str]) -> str:
    letter = match[1]
    if len(letter) == 5:
        return chr(int(letter[1:], 16))
    return _ESCAPES.get(letter, letter)


def header_offset(fields: Mapping[str, str]) -> int:
    """Return the offset in the header of the answer to 14, 29, 30 and 31, which has no body."""
    offset = fastjson.integer_key(fields.get("offset", ""))
    if not isinstance(offset, int):
        raise BodyError(f"offset in the header is {fields.get('offset')!r:.60}, expected an integer")
    return offset
