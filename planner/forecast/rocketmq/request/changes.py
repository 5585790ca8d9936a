"""What may happen to a group, one class a kind, read from ``change`` of a request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.allocation import fields
from planner.allocation.registry import find_strategy
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.forecast.common.changes import (
    Document,
    exit_mode,
    expect_known,
    read_kind,
    read_named_members,
    refuse_none,
    refuse_repeated,
)
from planner.forecast.common.request_fields import Version, number, require_fields, seconds, version
from planner.forecast.common.rolling_update import ROLLING_FIELDS, Rolling, read_rolling

CUT = "cut"
"""How the process of a client that is cut off ends, besides the ways of every system."""
MOST_READ_QUEUES = 10_000
DEFAULT_THREADS = 20
LONGEST_STANDSTILL_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Client:
    """One member: its id (``None``: not known yet), its consume threads, and whether it consumes in order."""

    id: str | None
    threads: int
    orderly: bool


@dataclass(frozen=True, slots=True)
class Join:
    """These clients start, one every ``stagger_s`` seconds (0: all at once)."""

    clients: tuple[Client, ...]
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leave:
    """These clients end, one every ``stagger_s`` seconds: shut down, killed (TCP reset), or gone without a word."""

    clients: tuple[str, ...]
    how: str
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Restart:
    """These clients end one after the other, each starting again ``interval_s`` later.

    ``stagger_s`` lies between two ends: by default, the next one ends when the one before starts again.
    """

    clients: tuple[str, ...]
    how: str
    interval_s: float
    stagger_s: float


@dataclass(frozen=True, slots=True)
class Freeze:
    """These clients stand still for ``for_s`` seconds and then go on as if nothing had been."""

    clients: tuple[str, ...]
    for_s: float


@dataclass(frozen=True, slots=True)
class Partition:
    """The network between these clients and all brokers and name servers is down for ``for_s`` seconds.

    Where ``brokers`` names some, only these are out of reach.
    """

    clients: tuple[str, ...]
    for_s: float
    brokers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Upgrade:
    """These clients are shut down in order, one every ``interval_s``, and start at once with another release."""

    to: Version
    clients: tuple[str, ...]
    interval_s: float


@dataclass(frozen=True, slots=True)
class BlueGreen:
    """Another group takes over: it gets this one's offsets at ``clone_s``, and its clients start at ``start_s``.

    All clients of this one are shut down at ``stop_s``.
    """

    to_group: str
    clients: tuple[Client, ...]
    clone_s: float
    stop_s: float
    start_s: float


@dataclass(frozen=True, slots=True)
class RollingUpdate:
    """A Deployment replaces the pods of all clients by new ones, whose clients these are."""

    clients: tuple[Client, ...]
    rolling: Rolling


@dataclass(frozen=True, slots=True)
class BrokerDown:
    """This broker dies; the name server sees its connection close."""

    broker: str


@dataclass(frozen=True, slots=True)
class BrokerUp:
    """This broker, whose queues stand in the request, is started; nobody consumed from it before."""

    broker: str


@dataclass(frozen=True, slots=True)
class QueueCount:
    """A topic has so many queues on one broker from now on."""

    topic: str
    broker: str
    read_queues: int
    write_queues: int


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """These clients are shut down in order, one every ``interval_s``, and start at once with another strategy."""

    to: Strategy
    clients: tuple[str, ...]
    interval_s: float


OfMembers = Leave | Restart | Freeze | Partition | Upgrade | StrategyChange
"""Changes that name members of the group."""

Change = OfMembers | Join | RollingUpdate | BlueGreen | BrokerDown | BrokerUp | QueueCount


def newest_client(change: object, client: Version) -> Version:
    """Return the newest release that a client has before or after the change of a request, read ahead of the rest."""
    if isinstance(change, Mapping) and change.get("kind") == "upgrade" and "to" in change:
        return max(client, version(change["to"], "change.to"))
    return client


def newcomers(change: Change) -> tuple[Client, ...]:
    """Return the clients that a change brings, in the order in which they start."""
    return change.clients if isinstance(change, Join | RollingUpdate | BlueGreen) else ()


def read_change(value: object, members: Sequence[Client], locations: Sequence[tuple[str, str]]) -> Change:
    """Return the change, checked against the group's members and its (topic, broker) places."""
    document, read = read_kind(value, KINDS)
    change: Change = read(document, members, locations)
    return change


def read_clients(value: object, field: str, threads: int, orderly: bool) -> tuple[Client, ...]:
    """Return clients of objects; ``threads`` and ``orderly`` tenure where one does not say. An id may be null."""
    clients = []
    for index, item in enumerate(fields.sequence(value, field, "a list of clients")):
        field_name = f"{field}[{index}]"
        document = fields.mapping(item, field_name, 'an object such as {"id": "10.0.0.1@c1", "threads": 20}')
        fields.only_known(document, ("id", "threads", "orderly"), field_name)
        if document.get("id") is not None:
            fields.text(document["id"], f"{field_name}.id", "a client id that is not empty")
        if not isinstance(document.get("orderly", False), bool):
            raise fields.refusal(f"{field_name}.orderly", document["orderly"], "true or false")
        count = fields.whole_number(document.get("threads", threads), f"{field_name}.threads", 1, 1000)
        clients.append(Client(document.get("id"), count, document.get("orderly", orderly)))
    refuse_repeated([client.id for client in clients if client.id is not None], field, "client")
    return tuple(clients)


def _join(document: Document, members: Sequence[Client], _: object) -> Join:
    require_fields(document, "change", {"clients": "a list of clients that join"})
    clients = _new_clients(document["clients"], members)
    refuse_none(clients, "client", "joins")
    return Join(clients, seconds(document, "stagger_s", "change", 0.0))


def _new_clients(value: object, members: Sequence[Client]) -> tuple[Client, ...]:
    """Return clients that are not in the group yet; what they do not say is as with its first member."""
    threads = members[0].threads if members else DEFAULT_THREADS
    clients = read_clients(value, "change.clients", threads, bool(members and members[0].orderly))
    present = {client.id for client in members}
    for client in clients:
        if client.id in present:
            raise BadInputError(f"change.clients: {fields.shown(client.id)} is in the group already, expected a new id")
    return clients


def _leave(document: Document, members: Sequence[Client], _: object) -> Leave:
    return Leave(_named(document, members), exit_mode(document), seconds(document, "stagger_s", "change", 0.0))


def _restart(document: Document, members: Sequence[Client], _: object) -> Restart:
    interval = seconds(document, "interval_s", "change")
    return Restart(
        _named(document, members), exit_mode(document), interval, seconds(document, "stagger_s", "change", interval)
    )


def _freeze(document: Document, members: Sequence[Client], _: object) -> Freeze:
    return Freeze(_named(document, members), _standstill(document))


def _partition(document: Document, members: Sequence[Client], locations: Sequence[tuple[str, str]]) -> Partition:
    brokers: tuple[str, ...] = ()
    if "brokers" in document:
        known = sorted({name for _, name in locations})
        brokers = tuple(fields.texts(document["brokers"], "change.brokers", "a list of broker names"))
        for index, name in enumerate(brokers):
            expect_known(name, known, f"change.brokers[{index}]", "brokers")
        refuse_repeated(brokers, "change.brokers", "broker")
        if not 0 < len(brokers) < len(known):
            raise BadInputError(
                f"change.brokers: found {len(brokers)} of {len(known)}, expected some and not all of them; without the "
                "field clients are cut off from all brokers and name servers"
            )
    return Partition(_named(document, members), _standstill(document), brokers)


def _standstill(document: Document) -> float:
    require_fields(document, "change", {"for_s": f"seconds from 0 to {LONGEST_STANDSTILL_S:g}"})
    return number(document["for_s"], "change.for_s", 0, LONGEST_STANDSTILL_S)


def _upgrade(document: Document, members: Sequence[Client], _: object) -> Upgrade:
    require_fields(document, "change", {"to": "the version that the clients get"})
    to = version(document["to"], "change.to")
    return Upgrade(to, _named(document, members), seconds(document, "interval_s", "change"))


def _blue_green(document: Document, members: Sequence[Client], _: object) -> BlueGreen:
    require_fields(document, "change", {"to_group": "the name of the other group", "clients": "a list of its clients"})
    to_group = fields.text(document["to_group"], "change.to_group", "the name of the other group")
    clients = _new_clients(document["clients"], members)
    refuse_none(clients, "client", "starts")
    clone_s, stop_s = seconds(document, "clone_s", "change"), seconds(document, "stop_s", "change", 0.0)
    start_s = seconds(document, "start_s", "change", max(clone_s, stop_s))
    if start_s < clone_s:
        raise BadInputError(
            f"change.start_s: found {start_s:g}, expected at least clone_s ({clone_s:g}): clients that start before "
            "the offsets are there begin anywhere"
        )
    return BlueGreen(to_group, clients, clone_s, stop_s, start_s)


def _rolling_update(document: Document, members: Sequence[Client], _: object) -> RollingUpdate:
    unknown = [{"id": None, "threads": client.threads, "orderly": client.orderly} for client in members]
    clients = _new_clients(document.get("clients", unknown), members)
    if len(clients) != len(members):
        raise BadInputError(
            f"change.clients: found {len(clients)}, expected {len(members)}, one new client for each that is there"
        )
    return RollingUpdate(clients, read_rolling(document, len(members)))


def _named(document: Document, members: Sequence[Client]) -> tuple[str, ...]:
    return read_named_members(document, [client.id for client in members], "client")


def _broker_down(document: Document, _: object, locations: Sequence[tuple[str, str]]) -> BrokerDown:
    return BrokerDown(_broker(document, locations))


def _broker_up(document: Document, _: object, locations: Sequence[tuple[str, str]]) -> BrokerUp:
    return BrokerUp(_broker(document, locations))


def _queues(document: Document, _: object, locations: Sequence[tuple[str, str]]) -> QueueCount:
    require_fields(document, "change", {"topic": "a topic's name", "read_queues": "how many queues consumers see"})
    topic = fields.text(document["topic"], "change.topic")
    expect_known(topic, sorted({topic for topic, _ in locations}), "change.topic", "topics")
    broker = _broker(document, [location for location in locations if location[0] == topic])
    read = fields.whole_number(document["read_queues"], "change.read_queues", 0, MOST_READ_QUEUES)
    write = fields.whole_number(document.get("write_queues", read), "change.write_queues", 0, MOST_READ_QUEUES)
    return QueueCount(topic, broker, read, write)


def _strategy(document: Document, members: Sequence[Client], _: object) -> StrategyChange:
    require_fields(document, "change", {"to": "a strategy's name"})
    options = fields.mapping(document.get("options") or {}, "change.options")
    to = find_strategy(fields.text(document["to"], "change.to", "a strategy's name"), options)
    return StrategyChange(to, _named(document, members), seconds(document, "interval_s", "change"))


def _broker(document: Document, locations: Sequence[tuple[str, str]]) -> str:
    require_fields(document, "change", {"broker": "a broker's name"})
    broker = fields.text(document["broker"], "change.broker")
    expect_known(broker, sorted({name for _, name in locations}), "change.broker", "brokers")
    return broker


KINDS: dict[str, tuple[tuple[str, ...], Callable[[Document, Sequence[Client], Sequence[tuple[str, str]]], Change]]] = {
    "join": (("clients", "stagger_s"), _join),
    "leave": (("clients", "how", "stagger_s"), _leave),
    "restart": (("clients", "how", "interval_s", "stagger_s"), _restart),
    "freeze": (("clients", "for_s"), _freeze),
    "partition": (("clients", "for_s", "brokers"), _partition),
    "upgrade": (("to", "clients", "interval_s"), _upgrade),
    "blue_green": (("to_group", "clients", "clone_s", "stop_s", "start_s"), _blue_green),
    "rolling_update": (("clients", *ROLLING_FIELDS), _rolling_update),
    "broker_down": (("broker",), _broker_down),
    "broker_up": (("broker",), _broker_up),
    "queues": (("topic", "broker", "read_queues", "write_queues"), _queues),
    "strategy": (("to", "options", "clients", "interval_s"), _strategy),
}
"""Every kind of change: the names it may carry, and its reader."""
