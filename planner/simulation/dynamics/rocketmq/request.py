"""Requests of ``planner forecast`` for RocketMQ, checked: design.md section 4."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import PopSharing
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
    QueueCount,
    Upgrade,
    newcomers,
    newest_client,
    read_change,
    read_clients,
)
from planner.simulation.dynamics.rocketmq.settings import BROADCASTING, WITHOUT_INFLUENCE, Settings, read_settings

MOST_QUEUES = 20_000
MOST_CLIENTS = 2_000
MOST_LAG = 1e15
MOST_CELLS = 200_000_000
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

    @property
    def generation(self) -> timing.Generation:
        """Return the client generation that models this request."""
        return timing.generation(self.client)

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
    settings = read_settings(fields.mapping(document.get("settings") or {}, "settings"), newest, broker)
    clients = _clients(document["clients"], settings)
    group = document.get("group", "")
    if not isinstance(group, str):
        raise fields.refusal("group", group, "a text")
    trials, seed = reading.trials_and_seed(document)
    change = read_change(document["change"], clients, [(queue.topic, queue.broker) for queue in queues])
    request = ForecastRequest(
        client,
        broker,
        group,
        _strategy(document),
        queues,
        rates,
        lags,
        clients,
        number(document["service_time_s"], "service_time_s", 0, MOST_SECONDS),
        settings,
        change,
        trials,
        seed,
        (*warnings, *_about_target(change), *unknown_lags, *_about_settings(settings)),
    )
    _refuse_what_has_no_model(request)
    _check_size(request)
    return request


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
    clients = read_clients(value, "clients", settings.value("consumeThreadMin"), orderly=False)
    for index, client in enumerate(clients):
        if client.id is None:
            raise BadInputError(f"clients[{index}].id: found null, expected the id of a client that is in the group")
    return clients


def _strategy(document: Mapping[str, Any]) -> Strategy:
    name = fields.text(document["strategy"], "strategy", "a strategy's name")
    return find_strategy(name, fields.mapping(document.get("options") or {}, "options"))


def _refuse_what_has_no_model(request: ForecastRequest) -> None:
    """Refuse by name what the simulation does not cover: better no forecast than a wrong one."""
    if len({client.orderly for client in (*request.clients, *newcomers(request.change))}) > 1:
        raise BadInputError("clients: found orderly ones beside others, which has no model yet; make them all alike")
    if not request.clients and not isinstance(request.change, Join):
        raise BadInputError("clients: found none, expected at least one client, or a change of kind join")
    if isinstance(request.change, BlueGreen) and request.change.to_group == request.group:
        raise BadInputError(f"change.to_group: found {request.group}, the group itself, expected another group")
    if isinstance(request.strategy, PopSharing):
        raise BadInputError("options.pop_share_queues: POP consumers have no forecast yet; they move without a pause")
    allocates = request.orderly or request.settings.text("messageModel") == BROADCASTING
    if not request.settings.is_on("clientRebalance") and not allocates:
        raise BadInputError(
            "settings.clientRebalance: found false; allocation by the broker has no forecast yet, other than for "
            "orderly and broadcasting clients, which allocate for themselves all the same"
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
