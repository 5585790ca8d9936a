"""What may happen to a Kafka group, read from ``change`` of a request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.allocation import fields
from planner.documents.forecast.common import (
    ROLLING_FIELDS,
    Document,
    exit_mode,
    read_kind,
    read_named_members,
    read_rolling,
    require_fields,
    seconds,
)
from planner.errors import BadInputError
from planner.forecast.common.changes import expect_known, refuse_none, refuse_repeated
from planner.forecast.common.request_fields import version
from planner.forecast.kafka.request.changes import (
    IDS,
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Change,
    CutOff,
    Freeze,
    Join,
    Leave,
    Member,
    PartitionCount,
    Restart,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    TopicCreated,
    Upgrade,
    refuse_present,
)
from planner.forecast.kafka.request.refusals import MOST_RAISED, known_assignor, refuse_fewer

CLIENT, BROKER = "client", "broker"
"""The party that evaluates the pattern of a subscription."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a change is checked against: members, partition counts by topic, brokers that lead (empty: unknown)."""

    members: Sequence[Member]
    partitions: Mapping[str, int]
    brokers: Sequence[str]
    read_members: Callable[[object, str], tuple[Member, ...]]


def read_change(value: object, around: Surroundings) -> Change:
    """Return the change, checked against the group."""
    document, read = read_kind(value, KINDS)
    change: Change = read(document, around)
    return change


def _join(document: Document, around: Surroundings) -> Join:
    require_fields(document, "change", {"clients": "a list of members that join"})
    members = _new_members(document["clients"], around)
    refuse_none(members, "member", "joins")
    return Join(members, seconds(document, "stagger_s", "change", 0.0))


def _rolling_update(document: Document, around: Surroundings) -> RollingUpdate:
    count = len(around.members)
    members = _new_members(document.get("clients", [{"id": None}] * count), around)
    if len(members) != count:
        raise BadInputError(
            f"change.clients: found {len(members)}, expected {count}, one new member for each that is there"
        )
    to, beside = (None if document.get(name) is None else _assignor(document, name) for name in ("to", "beside"))
    if to is not None and beside is not None:
        raise BadInputError(
            f"change.beside: found {beside} with to {to}, expected one of them: new pods list another assignor behind "
            f"the group's own in a first roll, and alone in a second one"
        )
    return RollingUpdate(members, read_rolling(document, count), to, beside)


def _upgrade(document: Document, around: Surroundings) -> Upgrade:
    require_fields(document, "change", {"to": "the version that the members get"})
    to = version(document["to"], "change.to")
    return Upgrade(to, _named(document, around), seconds(document, "interval_s", "change"))


def _blue_green(document: Document, around: Surroundings) -> BlueGreen:
    require_fields(document, "change", {"to_group": "the name of the other group", "clients": "a list of its members"})
    to_group = fields.text(document["to_group"], "change.to_group", "the name of the other group")
    members = _new_members(document["clients"], around, IDS[:1])
    refuse_none(members, "member", "starts")
    clone_s, stop_s = seconds(document, "clone_s", "change"), seconds(document, "stop_s", "change", 0.0)
    start_s = seconds(document, "start_s", "change", max(clone_s, stop_s))
    if start_s < clone_s:
        raise BadInputError(
            f"change.start_s: found {start_s:g}, expected at least clone_s ({clone_s:g}): the broker takes offsets for "
            "a group only while it has no members"
        )
    return BlueGreen(to_group, members, clone_s, stop_s, start_s)


def _new_members(value: object, around: Surroundings, apart: Sequence[tuple[str, str]] = IDS) -> tuple[Member, ...]:
    """Return members that differ from those who are in the group by these fields."""
    members = around.read_members(value, "change.clients")
    refuse_present(members, around.members, apart)
    return members


def _leave(document: Document, around: Surroundings) -> Leave:
    return Leave(_named(document, around), exit_mode(document), seconds(document, "stagger_s", "change", 0.0))


def _restart(document: Document, around: Surroundings) -> Restart:
    interval = seconds(document, "interval_s", "change")
    stagger = seconds(document, "stagger_s", "change", interval)
    return Restart(_named(document, around), exit_mode(document), interval, stagger)


def _freeze(document: Document, around: Surroundings) -> Freeze:
    return Freeze(_named(document, around), seconds(document, "for_s", "change"))


def _cut_off(document: Document, around: Surroundings) -> CutOff:
    return CutOff(_named(document, around), seconds(document, "for_s", "change"))


def _named(document: Document, around: Surroundings) -> tuple[str, ...]:
    return read_named_members(document, [member.id for member in around.members], "member")


def _broker_down(document: Document, around: Surroundings) -> BrokerDown:
    return BrokerDown(_broker(document, around))


def _broker_up(document: Document, around: Surroundings) -> BrokerUp:
    return BrokerUp(_broker(document, around))


def _queues(document: Document, around: Surroundings) -> PartitionCount:
    require_fields(document, "change", {"topic": "a topic's name"})
    topic = fields.text(document["topic"], "change.topic")
    expect_known(topic, list(around.partitions), "change.topic", "topics")
    given = [name for name in ("partitions", "read_queues", "write_queues") if name in document]
    if not given:
        raise fields.missing("change.partitions", "how many partitions the topic has from now on")
    present = around.partitions[topic]
    counts = {fields.whole_number(document[name], f"change.{name}", 0, MOST_RAISED) for name in given}
    if len(counts) > 1:
        raise BadInputError(
            f"change: found {' and '.join(given)} apart, expected one number: Kafka knows no difference"
        )
    (count,) = counts
    refuse_fewer(count, present, f"change.{given[0]}")
    return PartitionCount(topic, count)


def _strategy(document: Document, around: Surroundings) -> StrategyChange:
    require_fields(document, "change", {"to": "an assignor's name"})
    to = _assignor(document, "to")
    fields.only_known(fields.mapping(document.get("options") or {}, "change.options"), (), "change.options")
    return StrategyChange(to, _named(document, around), seconds(document, "interval_s", "change"))


def _subscription(document: Document, around: Surroundings) -> SubscriptionChange | TopicCreated:
    if ("to" in document) == ("matches" in document):
        raise BadInputError(
            "change: expected to, the topics that members come back with, or matches, a new topic that their pattern "
            f"matches, found {'both' if 'to' in document else 'neither'}"
        )
    if "matches" in document:
        return _created(document, around)
    if "evaluated_by" in document:
        raise BadInputError("change.evaluated_by: found beside to, expected beside matches: it is about patterns")
    topics = fields.texts(document["to"], "change.to", "a list of topic names")
    for index, topic in enumerate(topics):
        expect_known(topic, list(around.partitions), f"change.to[{index}]", "topics")
    refuse_repeated(topics, "change.to", "topic")
    interval = seconds(document, "interval_s", "change")
    return SubscriptionChange(frozenset(topics), _named(document, around), interval)


def _created(document: Document, around: Surroundings) -> TopicCreated:
    for name in ("clients", "interval_s"):
        if name in document:
            raise BadInputError(
                f"change.{name}: found beside matches, expected none: the pattern is every member's, and no member "
                "restarts"
            )
    topic = fields.text(document["matches"], "change.matches", "a topic's name")
    expect_known(topic, list(around.partitions), "change.matches", "topics")
    evaluated_by = document.get("evaluated_by", CLIENT)
    if evaluated_by not in (CLIENT, BROKER):
        raise fields.refusal("change.evaluated_by", evaluated_by, f"{CLIENT} or {BROKER}")
    return TopicCreated(topic, evaluated_by == BROKER)


def _assignor(document: Document, field: str) -> str:
    name = fields.text(document[field], f"change.{field}", "an assignor's name")
    return known_assignor(name, f"change.{field}")


def _broker(document: Document, around: Surroundings) -> str:
    require_fields(document, "change", {"broker": "a broker's name or number"})
    broker = fields.text(document["broker"], "change.broker")
    if around.brokers:
        expect_known(broker, around.brokers, "change.broker", "leaders")
    return broker


KINDS: dict[str, tuple[tuple[str, ...], Callable[[Document, Surroundings], Change]]] = {
    "join": (("clients", "stagger_s"), _join),
    "leave": (("clients", "how", "stagger_s"), _leave),
    "restart": (("clients", "how", "interval_s", "stagger_s"), _restart),
    "freeze": (("clients", "for_s"), _freeze),
    "partition": (("clients", "for_s"), _cut_off),
    "upgrade": (("to", "clients", "interval_s"), _upgrade),
    "blue_green": (("to_group", "clients", "clone_s", "stop_s", "start_s"), _blue_green),
    "rolling_update": (("to", "beside", "clients", *ROLLING_FIELDS), _rolling_update),
    "broker_down": (("broker",), _broker_down),
    "broker_up": (("broker",), _broker_up),
    "queues": (("topic", "broker", "partitions", "read_queues", "write_queues"), _queues),
    "strategy": (("to", "options", "clients", "interval_s"), _strategy),
    "subscription": (("to", "clients", "interval_s", "matches", "evaluated_by"), _subscription),
}
"""Every kind of change: the names it may carry, and its reader."""
