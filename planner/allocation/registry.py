"""Strategies by name, built from the options that a user writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields, plugins
from planner.allocation.extra import SpecifiedMachine, Static, Vip
from planner.allocation.rocketmq import (
    Averagely,
    AveragelyByCircle,
    Config,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
    PopSharing,
)
from planner.allocation.rocketmq.consistent_hash import DEFAULT_VIRTUAL_NODES
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError, UnknownNameError
from planner.model.queues import MessageQueue

Options = Mapping[str, Any]

MOST_VIRTUAL_NODES = 100_000
NEARBY = "MACHINE_ROOM_NEARBY"

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (Averagely(), AveragelyByCircle(), ConsistentHash())
}
"""The strategies that need no options, ready to use."""

INNER = tuple(STRATEGIES)
"""The strategies that may stand inside another one."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one strategy is built: the options that it takes, and the function that makes it of them."""

    options: tuple[str, ...]
    build: Callable[[Options], Strategy]


def find_strategy(name: str, options: Options | None = None) -> Strategy:
    """Return the strategy of that name with these options.

    A name may also be an installed entry point, or a path to a user's file, ``strategy.py`` or
    ``strategy.py:ClassName``, where that was allowed (``plugins.check_allowed``). Raises ``UnknownNameError``, which
    lists the known names, and ``BadInputError`` for options that are missing, unknown or wrong.
    """
    options = options or {}
    if plugins.is_path(name):
        plugins.check_allowed(name)
        return plugins.from_path(name, options)
    base, inner = _split_nearby(name)
    kind = KINDS.get(base)
    if kind is None:
        custom = plugins.from_entry_point(name, options)
        if custom is not None:
            return custom
        raise UnknownNameError(f"strategy {name!r} is not known here: choose one of {', '.join(known_names())}")
    fields.only_known(options, kind.options, "options")
    strategy = kind.build(options if inner is None else _with_inner(options, inner))
    if inner is not None and strategy.name != name:
        raise BadInputError(f"strategy: found {name}, but its options make it {strategy.name}")
    return strategy


def runnable_strategy(name: str | None, options: Options | None = None) -> Strategy | None:
    """Return the strategy if name and options are enough to run it, ``None`` if it needs more or is not known."""
    if name is None:
        return None
    try:
        return find_strategy(name, options)
    except BadInputError:
        return None


def known_names() -> list[str]:
    """Return the names that ``find_strategy`` knows, paths aside."""
    return sorted([*KINDS, *plugins.installed_names()])


def _split_nearby(name: str) -> tuple[str, str | None]:
    """Return base and inner name: ``MACHINE_ROOM_NEARBY-AVG`` is how the Java class spells itself."""
    base, separator, inner = name.partition("-")
    return (base, inner) if separator and base == NEARBY else (name, None)


def _with_inner(options: Options, inner: str) -> Options:
    rooms = options.get("machine_rooms")
    if isinstance(rooms, Mapping) and "inner" not in rooms:
        return {**options, "machine_rooms": {**rooms, "inner": inner}}
    return options


def _averagely(options: Options) -> Strategy:
    return _with_sharing(Averagely(), options)


def _circle(options: Options) -> Strategy:
    return _with_sharing(AveragelyByCircle(), options)


def _with_sharing(strategy: Strategy, options: Options) -> Strategy:
    if "pop_share_queues" not in options:
        return strategy
    share = fields.whole_number(options["pop_share_queues"], "options.pop_share_queues", -1, fields.LARGEST_QUEUE_ID)
    return PopSharing(strategy, share)


def _consistent_hash(options: Options) -> ConsistentHash:
    nodes = options.get("virtual_nodes", DEFAULT_VIRTUAL_NODES)
    return ConsistentHash(fields.whole_number(nodes, "options.virtual_nodes", 0, MOST_VIRTUAL_NODES))


def _config(options: Options) -> Config:
    field, expected = "options.config", "an object from client id to its list of queues"
    if "config" not in options:
        raise fields.missing(field, expected)
    lists = fields.mapping(options["config"], field, expected)
    return Config(
        {
            fields.text(client, field): fields.message_queues(queues, f"{field}[{client!r}]")
            for client, queues in lists.items()
        }
    )


def _machine_room(options: Options) -> MachineRoom:
    field, expected = "options.consumer_rooms", "a list of room names"
    if "consumer_rooms" not in options:
        raise fields.missing(field, expected)
    return MachineRoom(frozenset(fields.texts(options["consumer_rooms"], field, expected)))


def _nearby(options: Options) -> MachineRoomNearby:
    field = "options.machine_rooms"
    expected = '{"brokers": {broker: room}, "clients": {client: room}, "inner": "AVG"}'
    if "machine_rooms" not in options:
        raise fields.missing(field, expected)
    rooms = fields.mapping(options["machine_rooms"], field, expected)
    fields.only_known(rooms, ("brokers", "clients", "inner", "virtual_nodes"), field)
    for side in ("brokers", "clients"):
        if side not in rooms:
            raise fields.missing(f"{field}.{side}", "an object from name to room")
    return MachineRoomNearby(
        _inner(rooms, f"{field}.inner", {**rooms, **options}),
        _room_table(rooms["brokers"], f"{field}.brokers"),
        _room_table(rooms["clients"], f"{field}.clients"),
    )


def _room_table(value: object, field: str) -> Mapping[str, str]:
    table = fields.mapping(value, field, "an object from name to room")
    for name, room in table.items():
        fields.text(room, f"{field}[{name!r}]", "a room name that is not empty")
    return table


def _inner(holder: Options, field: str, options: Options) -> Strategy:
    name = holder.get("inner", "AVG")
    if name not in INNER:
        raise fields.refusal(field, name, f"one of {', '.join(INNER)}")
    if name == "CONSISTENT_HASH":
        return _consistent_hash(options)
    if "virtual_nodes" in options:
        raise BadInputError(f"options.virtual_nodes: found with {field} {name}, expected with CONSISTENT_HASH only")
    return STRATEGIES[name]


def _specified_machine(options: Options) -> SpecifiedMachine:
    if "hosts" not in options:
        raise fields.missing("options.hosts", "a list of host names")
    hosts = fields.texts(options["hosts"], "options.hosts", "a list of host names")
    return SpecifiedMachine(frozenset(hosts), _inner(options, "options.inner", options))


def _vip(options: Options) -> Vip:
    for name, expected in (("vip_queues", "a list of queues"), ("vip_clients", "a list of instance names")):
        if name not in options:
            raise fields.missing(f"options.{name}", expected)
    queues = fields.message_queues(options["vip_queues"], "options.vip_queues")
    clients = fields.texts(options["vip_clients"], "options.vip_clients", "a list of instance names")
    return Vip(frozenset(queues), frozenset(clients), _inner(options, "options.inner", options))


def _static(options: Options) -> Static:
    field, expected = "options.reserved", "an object from instance name to its list of queues"
    if "reserved" not in options:
        raise fields.missing(field, expected)
    reserved: dict[MessageQueue, str] = {}
    for name, queues in fields.mapping(options["reserved"], field, expected).items():
        for queue in fields.message_queues(queues, f"{field}[{name!r}]"):
            if queue in reserved:
                raise BadInputError(
                    f"{field}: found {fields.shown(str(queue))} for {reserved[queue]!r} and for {name!r}, "
                    f"expected each queue once"
                )
            reserved[queue] = name
    return Static(reserved, _inner(options, "options.inner", options))


KINDS: dict[str, Kind] = {
    "AVG": Kind(("pop_share_queues",), _averagely),
    "AVG_BY_CIRCLE": Kind(("pop_share_queues",), _circle),
    "CONFIG": Kind(("config",), _config),
    "CONSISTENT_HASH": Kind(("virtual_nodes",), _consistent_hash),
    "MACHINE_ROOM": Kind(("consumer_rooms",), _machine_room),
    NEARBY: Kind(("machine_rooms", "virtual_nodes"), _nearby),
    "SPECIFIED_MACHINE": Kind(("hosts", "inner", "virtual_nodes"), _specified_machine),
    "STATIC": Kind(("reserved", "inner", "virtual_nodes"), _static),
    "VIP": Kind(("vip_queues", "vip_clients", "inner", "virtual_nodes"), _vip),
}
"""Every strategy by the name that the client spells."""
