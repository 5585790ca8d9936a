"""A RocketMQ request of ``planner forecast``, read and checked: clients, queues, settings, producers, what changes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.allocation import fields
from planner.allocation.registry import find_strategy
from planner.documents.forecast.common import require_fields, trials_and_seed
from planner.documents.forecast.rocketmq_changes import newest_client, read_change, read_clients
from planner.errors import BadInputError
from planner.forecast.common.request_fields import MOST_RATE, MOST_SECONDS, Version, number, version
from planner.forecast.rocketmq.request.changes import Change, Client, Join
from planner.forecast.rocketmq.request.completion import completed
from planner.forecast.rocketmq.request.producers import ProducerKind, Producers
from planner.forecast.rocketmq.request.refusals import MOST_CLIENTS, MOST_LAG, MOST_QUEUES, check_size
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.request.settings import POLLING_THREADS, Consumer, Settings, read_settings
from planner.model.queues import MessageQueue

COMMITS = ("commit_after_poll", "commit_on_shutdown")
"""Options by which a request states when an application that polls commits by itself."""
MOST_PROCESSES = 10_000
"""How many processes of producers a request may state."""
_QUEUE = '{"topic": "T", "broker": "broker-a", "queue_id": 0, "rate": 25.0, "lag": 0}'
_REQUIRED = {
    "versions": 'an object such as {"client": "5.5.0", "broker": "5.5.0"}',
    "strategy": "a strategy's name",
    "queues": f"a list of queues such as {_QUEUE}",
    "clients": 'a list of clients such as {"id": "10.0.0.1@c1", "threads": 20}',
    "service_time_s": "seconds that one listener call takes",
    "change": 'an object such as {"kind": "join", "clients": [{"id": null}]}',
}
_PRODUCERS = 'one of round_robin, keyed, fixed, or an object such as {"kind": "round_robin", "processes": 4}'
_KNOWN = ("system", "group", "options", "settings", "producers", "trials", "seed", *_REQUIRED)


def read_request(document: Mapping[str, Any]) -> ForecastRequest:
    """Return the request, checked; raise ``BadInputError`` naming field, found and expected."""
    fields.only_known(document, _KNOWN, "request")
    require_fields(document, "", _REQUIRED)
    client, broker = _versions(document["versions"])
    queues, rates, lags, unknown_lags = _queues(document["queues"])
    newest = newest_client(document["change"], client)
    options, consumer, commits = _consumer(fields.mapping(document.get("options") or {}, "options"))
    settings = read_settings(fields.mapping(document.get("settings") or {}, "settings"), newest, broker, consumer)
    clients = _clients(document["clients"], settings)
    group = document.get("group", "")
    if not isinstance(group, str):
        raise fields.refusal("group", group, "a text")
    trials, seed = trials_and_seed(document)
    producers = read_producers(document.get("producers"), client)
    expect_topics(producers, frozenset(queue.topic for queue in queues))
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
        change,
        trials,
        seed,
        consumer=consumer,
        commits=commits,
        producers=producers,
    )
    complete = completed(request, unknown_lags)
    check_size(complete)
    return complete


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


def _versions(value: object) -> tuple[Version, Version]:
    document = fields.mapping(value, "versions", _REQUIRED["versions"])
    fields.only_known(document, ("client", "broker"), "versions")
    require_fields(document, "versions", {"client": "a version such as 5.5.0", "broker": "a version such as 5.5.0"})
    versions = {side: version(document[side], f"versions.{side}") for side in ("client", "broker")}
    return versions["client"], versions["broker"]


def _queues(value: object) -> tuple[tuple[MessageQueue, ...], tuple[float, ...], tuple[float, ...], list[str]]:
    documents = fields.sequence(value, "queues", _REQUIRED["queues"])
    if len(documents) > MOST_QUEUES:
        raise BadInputError(f"queues: found {len(documents)}, expected at most {MOST_QUEUES} in one request")
    queues = fields.distinct(fields.message_queues(documents, "queues"), "queues")
    rates, lags, unknown = [], [], 0
    for index, document in enumerate(documents):
        field_name = f"queues[{index}]"
        fields.only_known(document, ("topic", "broker", "queue_id", "rate", "lag"), field_name)
        require_fields(document, field_name, {"rate": f"messages per second from 0 to {MOST_RATE:g}"})
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


def read_producers(value: object, client: Version) -> Producers:
    """Return the producers of a request; their release is the consumers' where it is not stated.

    Raises ``BadInputError`` naming field, found and expected.
    """
    if value is None:
        return Producers(version=client)
    if isinstance(value, str):
        return Producers(_kind(value, "producers"), version=client)
    document = fields.mapping(value, "producers", _PRODUCERS)
    fields.only_known(document, ("kind", "topics", "processes", "sendLatencyFaultEnable", "version"), "producers")
    avoids = document.get("sendLatencyFaultEnable", False)
    if not isinstance(avoids, bool):
        raise fields.refusal("producers.sendLatencyFaultEnable", avoids, "true or false")
    topics = fields.mapping(document.get("topics") or {}, "producers.topics", 'an object such as {"T": "keyed"}')
    return Producers(
        _kind(document.get("kind"), "producers.kind"),
        {topic: _kind(kind, f"producers.topics.{topic}") for topic, kind in topics.items()},
        fields.whole_number(document.get("processes", 1), "producers.processes", 1, MOST_PROCESSES),
        avoids,
        version(document["version"], "producers.version") if "version" in document else client,
    )


def _kind(value: Any, field_name: str) -> ProducerKind | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in list(ProducerKind):
        raise fields.refusal(field_name, value, _PRODUCERS)
    return ProducerKind(value)


def expect_topics(producers: Producers, topics: frozenset[str]) -> None:
    """Raise ``BadInputError`` where a topic is named that the request does not have."""
    unknown = sorted(set(producers.by_topic) - topics)
    if unknown:
        raise BadInputError(f"producers.topics: found {unknown[0]}, expected topics of the request's queues")
