"""The document of a RocketMQ request, read and checked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.allocation import fields
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq import PopSharing
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.forecast.common import request_fields
from planner.forecast.common.request_fields import MOST_RATE, MOST_SECONDS, Version, number
from planner.forecast.rocketmq import timing
from planner.forecast.rocketmq.request.changes import (
    Change,
    Client,
    Join,
    StrategyChange,
    Upgrade,
    newest_client,
    read_change,
    read_clients,
)
from planner.forecast.rocketmq.request.refusals import check_size, refuse_what_has_no_model
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.request.settings import WITHOUT_INFLUENCE, Consumer, Settings, read_settings
from planner.model.queues import MessageQueue

MOST_QUEUES = 20_000
MOST_CLIENTS = 2_000
MOST_LAG = 1e15
POLLING_THREADS = 1
"""How many messages an application that polls works on at once, unless the request says more."""
COMMITS = ("commit_after_poll", "commit_on_shutdown")
"""Options by which a request states when an application that polls commits by itself."""
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


def read_request(document: Mapping[str, Any]) -> ForecastRequest:
    """Return the request, checked; raise ``BadInputError`` naming field, found and expected."""
    fields.only_known(document, _KNOWN, "request")
    request_fields.require_fields(document, "", _REQUIRED)
    client, broker, warnings = _versions(document["versions"])
    queues, rates, lags, unknown_lags = _queues(document["queues"])
    newest = newest_client(document["change"], client)
    options, consumer, commits = _consumer(fields.mapping(document.get("options") or {}, "options"))
    settings = read_settings(fields.mapping(document.get("settings") or {}, "settings"), newest, broker, consumer)
    clients = _clients(document["clients"], settings)
    group = document.get("group", "")
    if not isinstance(group, str):
        raise fields.refusal("group", group, "a text")
    trials, seed = request_fields.trials_and_seed(document)
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
    refuse_what_has_no_model(request)
    check_size(request)
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
    are_stated = [isinstance(client, Mapping) and "threads" in client for client in document["clients"]]
    clients = zip(change.clients, are_stated, strict=True)
    return replace(
        change,
        clients=tuple(
            client if is_stated else replace(client, threads=POLLING_THREADS) for client, is_stated in clients
        ),
    )


def _versions(value: object) -> tuple[Version, Version, list[str]]:
    document = fields.mapping(value, "versions", _REQUIRED["versions"])
    fields.only_known(document, ("client", "broker"), "versions")
    request_fields.require_fields(
        document, "versions", {"client": "a version such as 5.5.0", "broker": "a version such as 5.5.0"}
    )
    versions = {side: request_fields.version(document[side], f"versions.{side}") for side in ("client", "broker")}
    return (
        versions["client"],
        versions["broker"],
        [line for version in versions.items() for line in _about_version(*version)],
    )


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
        field_name = f"queues[{index}]"
        fields.only_known(document, ("topic", "broker", "queue_id", "rate", "lag"), field_name)
        request_fields.require_fields(document, field_name, {"rate": f"messages per second from 0 to {MOST_RATE:g}"})
        rates.append(number(document["rate"], f"{field_name}.rate", 0, MOST_RATE))
        lag = document.get("lag")
        unknown += lag is None
        lags.append(0.0 if lag is None else number(lag, f"{field_name}.lag", 0, MOST_LAG))
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
    stated = [name for name in COMMITS if name in options]
    for name in stated:
        if not isinstance(options[name], bool):
            raise fields.refusal(f"options.{name}", options[name], "true or false")
        if consumer != Consumer.LITE_PULL:
            raise BadInputError(f"options.{name}: found with {consumer} consumers, expected {Consumer.LITE_PULL} ones")
    others = {name: value for name, value in options.items() if name not in ("consumer", *COMMITS)}
    return others, consumer, frozenset(name for name in stated if options[name])
