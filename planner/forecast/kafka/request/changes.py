"""What may happen to a Kafka group, one class a kind, read from ``change`` of a request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.allocation import fields
from planner.errors import BadInputError
from planner.forecast.common.changes import (
    Document,
    exit_mode,
    expect_known,
    read_kind,
    read_named_members,
    refuse_none,
)
from planner.forecast.common.request_fields import Version, require_fields, seconds, version
from planner.forecast.common.rolling_update import ROLLING_FIELDS, Rolling, read_rolling

MOST_PARTITIONS = 10_000


@dataclass(frozen=True, slots=True)
class Member:
    """One member: its id (``None``: not known yet), its ``group.instance.id``, rack and topics, and what it owns.

    ``owned`` is ``None`` where the request does not say it.
    """

    id: str | None
    instance_id: str | None
    rack: str
    topics: frozenset[str]
    owned: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """These members start, one every ``stagger_s`` seconds (0: all at once)."""

    members: tuple[Member, ...]
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leave:
    """These members end, one every ``stagger_s`` seconds: closed, killed, or gone without a word."""

    members: tuple[str, ...]
    how: str
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Restart:
    """These members end one after the other, each starting again ``interval_s`` later.

    ``stagger_s`` lies between two ends: by default, the next one ends when the one before starts again.
    """

    members: tuple[str, ...]
    how: str
    interval_s: float
    stagger_s: float


@dataclass(frozen=True, slots=True)
class Freeze:
    """These members stand still for ``for_s`` seconds and then go on as if nothing had been."""

    members: tuple[str, ...]
    for_s: float


@dataclass(frozen=True, slots=True)
class CutOff:
    """The network between these members and all brokers is down for ``for_s`` seconds."""

    members: tuple[str, ...]
    for_s: float


@dataclass(frozen=True, slots=True)
class RollingUpdate:
    """A Deployment replaces the pods of all members by new ones, whose members these are.

    ``to``: the assignor that new ones ask for. One of the server's comes to a classic group by the consumer protocol;
    one of the clients' must be in the list of every old member already. ``beside``: a clients' assignor that new ones
    list behind the group's own.
    """

    members: tuple[Member, ...]
    rolling: Rolling
    to: str | None = None
    beside: str | None = None


@dataclass(frozen=True, slots=True)
class Upgrade:
    """These members are closed in order, one every ``interval_s``, and start at once with another release."""

    to: Version
    members: tuple[str, ...]
    interval_s: float


@dataclass(frozen=True, slots=True)
class BlueGreen:
    """Another group takes over: it gets this one's offsets at ``clone_s``, and its members start at ``start_s``.

    All members of this one are closed at ``stop_s``.
    """

    to_group: str
    members: tuple[Member, ...]
    clone_s: float
    stop_s: float
    start_s: float


@dataclass(frozen=True, slots=True)
class BrokerDown:
    """This broker dies; others take over what it led."""

    broker: str


@dataclass(frozen=True, slots=True)
class BrokerUp:
    """This broker comes back and in time leads again what it prefers to lead."""

    broker: str


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """A topic has so many partitions from now on."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """These members are closed in order, one every ``interval_s``, and start at once with another assignor."""

    to: str
    members: tuple[str, ...]
    interval_s: float


OfMembers = Leave | Restart | Freeze | CutOff | Upgrade | StrategyChange
"""What happens to members that are there, by name."""
Change = OfMembers | Join | RollingUpdate | BlueGreen | BrokerDown | BrokerUp | PartitionCount


def newcomers(change: Change) -> tuple[Member, ...]:
    """Return the members that a change brings, in the order in which they start."""
    return change.members if isinstance(change, Join | RollingUpdate | BlueGreen) else ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a change is checked against: members, partition counts by topic, brokers that lead (empty: unknown)."""

    members: Sequence[Member]
    partitions: Mapping[str, int]
    brokers: Sequence[str]
    strategies: Sequence[str]
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
    to, beside = (
        None if document.get(name) is None else _assignor(document, around, name) for name in ("to", "beside")
    )
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
    members = _new_members(document["clients"], around, _IDS[:1])
    refuse_none(members, "member", "starts")
    clone_s, stop_s = seconds(document, "clone_s", "change"), seconds(document, "stop_s", "change", 0.0)
    start_s = seconds(document, "start_s", "change", max(clone_s, stop_s))
    if start_s < clone_s:
        raise BadInputError(
            f"change.start_s: found {start_s:g}, expected at least clone_s ({clone_s:g}): the broker takes offsets for "
            "a group only while it has no members"
        )
    return BlueGreen(to_group, members, clone_s, stop_s, start_s)


_IDS = (("id", "id"), ("instance_id", "instance id"))
"""What no two members of a group share: the field, and what messages call it."""


def _new_members(value: object, around: Surroundings, apart: Sequence[tuple[str, str]] = _IDS) -> tuple[Member, ...]:
    """Return members that differ from those who are in the group by these fields."""
    members = around.read_members(value, "change.clients")
    for name, what in apart:
        present = {getattr(member, name) for member in around.members} - {None}
        for member in members:
            if getattr(member, name) in present:
                shown = fields.shown(getattr(member, name))
                raise BadInputError(f"change.clients: {shown} is in the group already, expected a new {what}")
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
    counts = {fields.whole_number(document[name], f"change.{name}", 0, MOST_PARTITIONS) for name in given}
    if len(counts) > 1:
        raise BadInputError(
            f"change: found {' and '.join(given)} apart, expected one number: Kafka knows no difference"
        )
    (count,) = counts
    if count < present:
        raise BadInputError(
            f"change.{given[0]}: found {count}, expected at least {present}: Kafka cannot take partitions away"
        )
    return PartitionCount(topic, count)


def _strategy(document: Document, around: Surroundings) -> StrategyChange:
    require_fields(document, "change", {"to": "an assignor's name"})
    to = _assignor(document, around, "to")
    fields.only_known(fields.mapping(document.get("options") or {}, "change.options"), (), "change.options")
    return StrategyChange(to, _named(document, around), seconds(document, "interval_s", "change"))


def _assignor(document: Document, around: Surroundings, field: str) -> str:
    name = fields.text(document[field], f"change.{field}", "an assignor's name")
    if name not in around.strategies:
        raise fields.refusal(f"change.{field}", name, f"one of {', '.join(around.strategies)}")
    return name


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
}
"""Every kind of change: the names it may carry, and its reader."""
