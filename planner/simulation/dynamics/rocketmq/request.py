"""Requests of ``planner forecast`` for RocketMQ, checked: design.md section 4."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.allocation import fields
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import PopSharing
from planner.allocation.rocketmq.pop import SERVER_SIDE_STRATEGIES
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.model.queues import MessageQueue
from planner.simulation.dynamics import reading
from planner.simulation.dynamics.reading import MOST_RATE, MOST_SECONDS, Version, number
from planner.simulation.dynamics.rocketmq import timing
from planner.simulation.dynamics.rocketmq.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Change,
    Client,
    Join,
    Partition,
    QueueCount,
    StrategyChange,
    Upgrade,
    newcomers,
    newest_client,
    read_change,
    read_clients,
)
from planner.simulation.dynamics.rocketmq.settings import (
    BROADCASTING,
    WITHOUT_INFLUENCE,
    Consumer,
    Settings,
    read_settings,
)

MOST_QUEUES = 20_000
MOST_CLIENTS = 2_000
MOST_LAG = 1e15
MOST_CELLS = 200_000_000
FIRST_ALLOCATING = Version(5, 0)
"""Brokers answer QUERY_ASSIGNMENT since then."""
POLLING_THREADS = 1
"""How many messages an application that polls works on at once, unless the request says more."""
COMMITS = ("commit_after_poll", "commit_on_shutdown")
"""Options by which a request tells when an application that polls commits by itself."""
FIRST_LITE_PULLING = Version(5, 0)
"""Lite pull clients send LITE_PULL_MESSAGE since then (``MQClientAPIImpl#pullMessage``), and brokers know it."""
_QUEUE = '{"topic": "T", "broker": "broker-a", "queue_id": 0, "rate": 25.0, "lag": 0}'
_REQUIRED = {
    "versions": 'an object such as {"client": "5.5.0", "broker": "5.5.0"}',
    "strategy": "a strategy's name",
    "queues": f"a list of queues such as {_QUEUE}",
    "clients": 'a list of clients such as {"id": "10.0.0.1@c1", "threads": 20}',
    "service_time_s": "seconds that one listener call takes",
    "change": 'an object such as {"kind": "join", "clients": [{"id": null}]}',
}
_KNOWN = ("system", "group", "options", "settings", "trials", "seed", *_REQUIRED)


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """One checked request. ``rates`` are messages per second and ``lags`` messages, in the order of ``queues``."""

    client: Version
    broker: Version
    group: str
    strategy: Strategy
    queues: tuple[MessageQueue, ...]
    rates: tuple[float, ...]
    lags: tuple[float, ...]
    clients: tuple[Client, ...]
    service_time_s: float
    settings: Settings
    change: Change
    trials: int
    seed: int
    warnings: tuple[str, ...] = ()
    consumer: Consumer = Consumer.PUSH
    commits: frozenset[str] = frozenset()

    @property
    def generation(self) -> timing.Generation:
        """Return the client generation that models this request."""
        return timing.generation(self.client)

    @property
    def is_broker_allocated(self) -> bool:
        """True when members ask a broker for their queues, not for the members (``RebalancePushImpl#clientRebalance``).

        Orderly and broadcasting clients allocate for themselves whatever they are told.
        """
        allocates = self.orderly or self.settings.text("messageModel") == BROADCASTING
        return self.pops or not (self.settings.is_on("clientRebalance") or allocates)

    @property
    def is_never_balanced(self) -> bool:
        """True when no round of a member counts as balanced (``RebalanceImpl#updateMessageQueueAssignment``).

        Who lets the broker allocate and does not pop subscribes the group's POP retry topic, too. It is not there
        unless somebody popped, so that the broker has no answer for it.
        """
        return self.is_broker_allocated and not self.pops

    @property
    def pops(self) -> bool:
        """True when members share queues in POP mode."""
        return isinstance(self.strategy, PopSharing)

    @property
    def polls(self) -> bool:
        """True when the application asks for messages, by whichever class, and no listener is called."""
        return self.consumer != Consumer.PUSH

    @property
    def tells_commits(self) -> bool:
        """True when it is known which offsets are stored: how much comes twice follows from that."""
        commits = self.settings.is_on("autoCommit") or "commit_after_poll" in self.commits
        return self.consumer == Consumer.PUSH or (self.consumer == Consumer.LITE_PULL and commits)

    @property
    def orderly(self) -> bool:
        """True when the group consumes in order."""
        return any(client.orderly for client in (*self.clients, *newcomers(self.change)))


def read_request(document: Mapping[str, Any]) -> ForecastRequest:
    """Return the request, checked; raise ``BadInputError`` naming field, found and expected."""
    fields.only_known(document, _KNOWN, "request")
    reading.required(document, "", _REQUIRED)
    client, broker, warnings = _versions(document["versions"])
    queues, rates, lags, unknown_lags = _queues(document["queues"])
    newest = newest_client(document["change"], client)
    options, consumer, commits = _consumer(fields.mapping(document.get("options") or {}, "options"))
    settings = read_settings(fields.mapping(document.get("settings") or {}, "settings"), newest, broker, consumer)
    clients = _clients(document["clients"], settings)
    group = document.get("group", "")
    if not isinstance(group, str):
        raise fields.refusal("group", group, "a text")
    trials, seed = reading.trials_and_seed(document)
    change = read_change(document["change"], clients, [(queue.topic, queue.broker) for queue in queues])
    if consumer != Consumer.PUSH and not clients:
        change = _polling_newcomers(change, document["change"])
    strategy = find_strategy(fields.text(document["strategy"], "strategy", "a strategy's name"), options)
    request = ForecastRequest(
        client,
        broker,
        group,
        strategy,
        queues,
        rates,
        lags,
        clients,
        number(document["service_time_s"], "service_time_s", 0, MOST_SECONDS),
        settings,
        _shared_alike(change, strategy),
        trials,
        seed,
        (*warnings, *_about_target(change), *unknown_lags, *_about_settings(settings)),
        consumer,
        commits,
    )
    _refuse_what_has_no_model(request)
    _check_size(request)
    return request


def _shared_alike(change: Change, strategy: Strategy) -> Change:
    """Return the change of a group that pops with the share that it has: that is a setting of its brokers."""
    if not (isinstance(change, StrategyChange) and isinstance(strategy, PopSharing)):
        return change
    if isinstance(change.to, PopSharing):
        if change.to.share_queues != strategy.share_queues:
            raise BadInputError(
                f"change.options.pop_share_queues: found {change.to.share_queues}, expected {strategy.share_queues} as "
                "it is: a command to the brokers changes it, not a restart of the clients"
            )
        return change
    return replace(change, to=PopSharing(change.to, strategy.share_queues))


def _polling_newcomers(change: Change, document: Any) -> Change:
    """Return the change whose newcomers to an empty group work on one message at once, where they do not say more."""
    if not isinstance(change, Join):
        return change
    told = [isinstance(one, Mapping) and "threads" in one for one in document["clients"]]
    clients = zip(change.clients, told, strict=True)
    return replace(
        change, clients=tuple(one if says else replace(one, threads=POLLING_THREADS) for one, says in clients)
    )


def _versions(value: object) -> tuple[Version, Version, list[str]]:
    document = fields.mapping(value, "versions", _REQUIRED["versions"])
    fields.only_known(document, ("client", "broker"), "versions")
    reading.required(document, "versions", {"client": "a version such as 5.5.0", "broker": "a version such as 5.5.0"})
    found = {side: reading.version(document[side], f"versions.{side}") for side in ("client", "broker")}
    return found["client"], found["broker"], [line for one in found.items() for line in _about_version(*one)]


def _about_target(change: Change) -> list[str]:
    return _about_version("client", change.to) if isinstance(change, Upgrade) else []


def _about_version(side: str, version: Version) -> list[str]:
    if timing.has_model(version):
        return []
    return [f"{side} {version} has no model of its own; {_nearest(version)} is used instead"]


def _nearest(version: Version) -> str:
    if version < timing.OLDEST_MODELLED:
        return "the oldest one, of 4.9,"
    return "the nearest older one, of 5.5,"


def _about_settings(settings: Settings) -> list[str]:
    idle = [name for name in settings.given if name in WITHOUT_INFLUENCE]
    return [f"settings without influence on a forecast: {', '.join(idle)}"] if idle else []


def _queues(value: object) -> tuple[tuple[MessageQueue, ...], tuple[float, ...], tuple[float, ...], list[str]]:
    documents = fields.sequence(value, "queues", _REQUIRED["queues"])
    if len(documents) > MOST_QUEUES:
        raise BadInputError(f"queues: found {len(documents)}, expected at most {MOST_QUEUES} in one request")
    queues = fields.distinct(fields.message_queues(documents, "queues"), "queues")
    rates, lags, unknown = [], [], 0
    for index, document in enumerate(documents):
        place = f"queues[{index}]"
        fields.only_known(document, ("topic", "broker", "queue_id", "rate", "lag"), place)
        reading.required(document, place, {"rate": f"messages per second from 0 to {MOST_RATE:g}"})
        rates.append(number(document["rate"], f"{place}.rate", 0, MOST_RATE))
        lag = document.get("lag")
        unknown += lag is None
        lags.append(0.0 if lag is None else number(lag, f"{place}.lag", 0, MOST_LAG))
    warnings = [f"the lag of {unknown} of {len(queues)} queues is not known: forecast as if nothing waited there"]
    data = [index for index, queue in enumerate(queues) if not queue.is_retry]
    if not data:
        raise BadInputError("queues: found no data queue, expected at least one that is not of a %RETRY% topic")
    picked = tuple(queues[index] for index in data)
    return picked, tuple(rates[i] for i in data), tuple(lags[i] for i in data), warnings if unknown else []


def _clients(value: object, settings: Settings) -> tuple[Client, ...]:
    if isinstance(value, list) and len(value) > MOST_CLIENTS:
        raise BadInputError(f"clients: found {len(value)}, expected at most {MOST_CLIENTS} in one request")
    threads = settings.value("consumeThreadMin") if settings.consumer == Consumer.PUSH else POLLING_THREADS
    clients = read_clients(value, "clients", threads, orderly=False)
    for index, client in enumerate(clients):
        if client.id is None:
            raise BadInputError(f"clients[{index}].id: found null, expected the id of a client that is in the group")
    return clients


def _consumer(options: Mapping[str, Any]) -> tuple[Mapping[str, Any], Consumer, frozenset[str]]:
    """Return the strategy's own options, the client's class, and when its application commits by itself."""
    if "consumer" not in options:
        return options, Consumer.PUSH, frozenset()
    kinds = [str(kind) for kind in Consumer]
    if options["consumer"] not in kinds:
        raise fields.refusal("options.consumer", options["consumer"], f"one of {', '.join(kinds)}")
    consumer = Consumer(options["consumer"])
    told = [name for name in COMMITS if name in options]
    for name in told:
        if not isinstance(options[name], bool):
            raise fields.refusal(f"options.{name}", options[name], "true or false")
        if consumer != Consumer.LITE_PULL:
            raise BadInputError(f"options.{name}: found with {consumer} consumers, expected {Consumer.LITE_PULL} ones")
    others = {name: value for name, value in options.items() if name not in ("consumer", *COMMITS)}
    return others, consumer, frozenset(name for name in told if options[name])


def _refuse_what_has_no_model(request: ForecastRequest) -> None:
    """Refuse by name what the simulation does not cover: better no forecast than a wrong one."""
    if len({client.orderly for client in (*request.clients, *newcomers(request.change))}) > 1:
        raise BadInputError("clients: found orderly ones beside others, which has no model yet; make them all alike")
    if not request.clients and not isinstance(request.change, Join):
        raise BadInputError("clients: found none, expected at least one client, or a change of kind join")
    if isinstance(request.change, BlueGreen) and request.change.to_group == request.group:
        raise BadInputError(f"change.to_group: found {request.group}, the group itself, expected another group")
    if (
        isinstance(request.change, Partition)
        and request.change.brokers
        and (request.orderly or request.is_broker_allocated or request.polls)
    ):
        raise BadInputError(
            "change.brokers: found with clients that are orderly, let brokers allocate or poll, for whom a cut from "
            "some brokers has no forecast: nobody has watched one"
        )
    if request.polls:
        _refuse_what_polls_cannot(request)
    if request.pops:
        _refuse_what_pop_cannot(request)
    if request.is_broker_allocated:
        _refuse_what_brokers_cannot_allocate(request)


def _refuse_what_polls_cannot(request: ForecastRequest) -> None:
    """Refuse what only push consumers do, and what leaves those without messages that poll."""
    consumer = request.consumer
    if request.orderly:
        raise BadInputError(f"clients: found orderly {consumer} consumers: only push consumers lock queues")
    if request.pops:
        raise BadInputError(f"options.pop_share_queues: found with {consumer} consumers: only push consumers pop")
    newest = request.change.to if isinstance(request.change, Upgrade) else request.client
    if consumer == Consumer.LITE_PULL and newest >= FIRST_LITE_PULLING > request.broker:
        raise BadInputError(
            f"versions.broker: found {request.broker} with lite pull clients of {newest}, expected "
            f"{FIRST_LITE_PULLING} or later: they pull by a request of their own, older brokers answer that it is not "
            "supported, and the clients own queues and get nothing"
        )


def _refuse_what_pop_cannot(request: ForecastRequest) -> None:
    """Refuse what POP has no forecast for; some of it does not work at all (``PopMessageProcessor`` of 5.5.0)."""
    settings = request.settings
    if request.orderly or settings.text("messageModel") == BROADCASTING or settings.given.get("clientRebalance"):
        raise BadInputError(
            "options.pop_share_queues: found with clients that allocate for themselves, expected clientRebalance false "
            "and clients that are neither orderly nor broadcasting: only those pop"
        )
    if not settings.is_on("timerWheelEnable"):
        raise BadInputError("settings.timerWheelEnable: found false, expected true: such a broker lets nobody pop")
    change = request.change
    if isinstance(change, BlueGreen) and not _share_all(request, len(change.clients)):
        raise BadInputError(
            f"change.kind: found blue_green to {len(change.clients)} clients that share queues, which has no forecast: "
            "each takes whole brokers until the last ones are there, and then drops them in the midst of all that "
            "waited (three that were watched took 20 to 25 messages twice, 15 at most were forecast)"
        )
    if isinstance(change, BrokerUp) and not _share_all(request, len(request.clients)):
        raise BadInputError(
            "change.kind: found broker_up with clients that share queues, which has no forecast: the new broker lists "
            "few members at first, gives them other shares (two that were watched took 4 and 25 messages twice, 5 to "
            "22 were forecast)"
        )
    if request.service_time_s >= settings.seconds("popInvisibleTime"):
        raise BadInputError(
            f"service_time_s: found {request.service_time_s:g}, expected less than popInvisibleTime "
            f"({settings.seconds('popInvisibleTime'):g} s): no call would be acknowledged in time, and each "
            "message would come again and again"
        )


def _share_all(request: ForecastRequest, clients: int) -> bool:
    return isinstance(request.strategy, PopSharing) and request.strategy.shares_all(clients)


def _refuse_what_brokers_cannot_allocate(request: ForecastRequest) -> None:
    """Refuse what ``QueryAssignmentProcessor`` (5.0.0 to 5.5.0) has no answer to: its clients would own nothing."""
    if request.broker < FIRST_ALLOCATING:
        raise BadInputError(
            f"versions.broker: found {request.broker} with clientRebalance false, expected {FIRST_ALLOCATING} or "
            "later: older brokers refuse to allocate, and the clients would get no queue"
        )
    if isinstance(request.change, BrokerDown | BrokerUp | QueueCount) and not request.pops:
        raise BadInputError(
            "change.kind: found a change of routes with clientRebalance false and clients that pull, which has no "
            "forecast yet: brokers allocate by copies of the route that they renew every 30 s, clients ask any of them "
            "every second, and queues go back and forth until all copies are new"
        )
    strategies = (
        [request.strategy, request.change.to] if isinstance(request.change, StrategyChange) else [request.strategy]
    )
    unknown = [strategy.name for strategy in strategies if strategy.name not in SERVER_SIDE_STRATEGIES]
    if unknown:
        raise BadInputError(
            f"strategy: found {unknown[0]} with clientRebalance false, expected one of "
            f"{', '.join(SERVER_SIDE_STRATEGIES)}: brokers know no other, and the clients would get no queue"
        )


def _check_size(request: ForecastRequest) -> None:
    """Refuse what would not fit into some gigabytes of memory: it takes far more than any group that was ever seen."""
    change, clients = request.change, len(request.clients)
    waking = clients if isinstance(change, BrokerDown | BrokerUp | QueueCount) else len(change.clients)
    cells = request.trials * max(clients, 1) * max(len(request.queues), clients + waking)
    if cells > MOST_CELLS:
        fitting = MOST_CELLS // (cells // request.trials)
        raise BadInputError(
            f"trials: found {request.trials} for {len(request.queues)} queues and {clients} clients, "
            f"of whom {waking} change, expected {fitting} trials at most for a group of that size"
        )
