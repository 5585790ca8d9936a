"""What may happen to a RocketMQ group, read from ``change`` of a request."""

from collections.abc import Callable, Mapping, Sequence

from planner.allocation import fields
from planner.allocation.registry import find_strategy
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
from planner.forecast.common.request_fields import Version, number, version
from planner.forecast.rocketmq.request.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Change,
    Client,
    Freeze,
    Join,
    Leave,
    Partition,
    QueueCount,
    Restart,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    Tags,
    Upgrade,
    refuse_present,
)
from planner.forecast.rocketmq.request.refusals import MOST_READ_QUEUES, MOST_THREADS

DEFAULT_THREADS = 20


LONGEST_STANDSTILL_S = 3_600.0


def newest_client(change: object, client: Version) -> Version:
    """Return the newest release that a client has before or after the change of a request, read ahead of the rest."""
    if isinstance(change, Mapping) and change.get("kind") == "upgrade" and "to" in change:
        return max(client, version(change["to"], "change.to"))
    return client


def read_change(value: object, members: Sequence[Client], locations: Sequence[tuple[str, str]]) -> Change:
    """Return the change, checked against the group's members and its (topic, broker) places."""
    document, read = read_kind(value, KINDS)
    change: Change = read(document, members, locations)
    return change


def read_clients(value: object, field: str, threads: int, orderly: bool) -> tuple[Client, ...]:
    """Return clients of objects; ``threads`` and ``orderly`` count where one does not say. An id may be null."""
    clients = []
    for index, item in enumerate(fields.sequence(value, field, "a list of clients")):
        field_name = f"{field}[{index}]"
        document = fields.mapping(item, field_name, 'an object such as {"id": "10.0.0.1@c1", "threads": 20}')
        fields.only_known(document, ("id", "threads", "orderly"), field_name)
        if document.get("id") is not None:
            fields.text(document["id"], f"{field_name}.id", "a client id that is not empty")
        if not isinstance(document.get("orderly", False), bool):
            raise fields.refusal(f"{field_name}.orderly", document["orderly"], "true or false")
        count = fields.whole_number(document.get("threads", threads), f"{field_name}.threads", 1, MOST_THREADS)
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
    refuse_present(clients, members)
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


def _subscription(
    document: Document, members: Sequence[Client], locations: Sequence[tuple[str, str]]
) -> SubscriptionChange:
    require_fields(document, "change", {"to": f"the tags of each topic that the clients then subscribe to: {_TAGS}"})
    topics = sorted({topic for topic, _ in locations})
    before = _tags_by_topic(document.get("from", dict.fromkeys(topics, "*")), "change.from")
    to = _tags_by_topic(document["to"], "change.to")
    return SubscriptionChange(before, to, _named(document, members), seconds(document, "interval_s", "change"))


_TAGS = 'an object such as {"orders": "paid || sent"}, with "*" for all messages'
_EXPRESSION = 'tags such as "paid || sent", or "*"'
_MOST_TAGS = 1_000


def _tags_by_topic(value: object, field: str) -> dict[str, Tags]:
    subscribed = fields.mapping(value, field, _TAGS)
    return {topic: _tags(expression, f"{field}[{topic!r}]") for topic, expression in subscribed.items()}


def _tags(value: object, field: str) -> Tags:
    """Return the tags that an expression names, as clients read it (``FilterAPI#buildSubscriptionData``)."""
    text = fields.text(value, field, f"{_EXPRESSION} for all messages")
    named = frozenset(tag.strip() for tag in text.split("||")) - {""}
    if len(named) > _MOST_TAGS:
        raise BadInputError(f"{field}: found {len(named)} tags, expected at most {_MOST_TAGS}")
    if any(" " in tag or (tag != "*" and "*" in tag) for tag in named) or ("*" in named and len(named) > 1):
        raise fields.refusal(field, value, f"{_EXPRESSION} alone: expressions of SQL have no forecast")
    return named - {"*"}


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
    "subscription": (("from", "to", "clients", "interval_s"), _subscription),
}
"""Every kind of change: the names it may carry, and its reader."""
