"""RocketMQ requests that are refused by name: better no forecast than a wrong one."""

from planner.allocation import fields
from planner.allocation.rocketmq.pop import SERVER_SIDE_STRATEGIES
from planner.errors import BadInputError
from planner.forecast.common.changes import check_seconds, expect_known, refuse_none
from planner.forecast.common.request_fields import MOST_RATE, MOST_SECONDS, Version, number
from planner.forecast.rocketmq.request.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Join,
    OfMembers,
    QueueCount,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    Upgrade,
    newcomers,
    refuse_present,
)
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.request.settings import Consumer

MOST_QUEUES = 20_000
MOST_CLIENTS = 2_000
MOST_LAG = 1e15
MOST_THREADS = 1_000
MOST_READ_QUEUES = 10_000
MOST_CELLS = 200_000_000
FIRST_ALLOCATING = Version(5, 0)
"""Brokers answer QUERY_ASSIGNMENT since then."""
FIRST_LOOKING_EACH_SECOND = Version(5, 2)
"""A round that is not balanced is followed by the next one a second later since then (``RebalanceService#run``)."""
FIRST_LITE_PULLING = Version(5, 0)
"""Lite pull clients send LITE_PULL_MESSAGE since then (``MQClientAPIImpl#pullMessage``), and brokers know it."""


def refuse_what_has_no_model(request: ForecastRequest) -> None:
    """Raise ``BadInputError`` for what the simulation does not cover."""
    if len({client.orderly for client in (*request.clients, *newcomers(request.change))}) > 1:
        raise BadInputError("clients: found orderly ones beside others, which has no model yet; make them all alike")
    if not request.clients and not isinstance(request.change, Join):
        raise BadInputError("clients: found none, expected at least one client, or a change of kind join")
    if isinstance(request.change, BlueGreen):
        _refuse_blue_green(request, request.change)
    if isinstance(request.change, SubscriptionChange):
        _check_subscription(request, request.change)
    if request.polls:
        _refuse_what_polls_cannot(request)
    if request.pops:
        _refuse_what_pop_cannot(request)
    if request.is_broker_allocated:
        _refuse_what_brokers_cannot_allocate(request)


def _refuse_blue_green(request: ForecastRequest, change: BlueGreen) -> None:
    if change.to_group == request.group:
        raise BadInputError(f"change.to_group: found {request.group}, the group itself, expected another group")
    if request.broadcasts:
        raise BadInputError(
            "change.kind: found blue_green of a broadcasting group, whose clients keep their offsets themselves: there "
            "is nothing that could be copied for another group; start it beside this one and stop this one later"
        )


def _check_subscription(request: ForecastRequest, change: SubscriptionChange) -> None:
    """Refuse a subscription that is none, that is there already, or of clients for which nobody has watched one."""
    topics = {queue.topic for queue in request.queues}
    for name, subscription in (("from", change.before), ("to", change.to)):
        if not subscription:
            raise BadInputError(f"change.{name}: found no topic, expected at least one with its tags")
        for topic in subscription:
            expect_known(topic, sorted(topics), f"change.{name}", "topics")
    if change.before == change.to:
        raise BadInputError("change.to: found what the clients subscribe to already, expected another subscription")
    if request.broadcasts or request.pops or request.polls:
        kind = "broadcasting" if request.broadcasts else "popping" if request.pops else f"{request.consumer}"
        raise BadInputError(
            f"change.kind: found subscription of {kind} clients, expected push consumers that cluster and pull: what "
            "others read while subscriptions differ nobody has watched"
        )


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
    if request.orderly or request.broadcasts or settings.given.get("clientRebalance"):
        raise BadInputError(
            "options.pop_share_queues: found with clients that allocate for themselves, expected clientRebalance false "
            "and clients that are neither orderly nor broadcasting: only those pop"
        )
    if not settings.is_on("timerWheelEnable"):
        raise BadInputError("settings.timerWheelEnable: found false, expected true: such a broker lets nobody pop")
    if request.service_time_s >= settings.seconds("popInvisibleTime"):
        raise BadInputError(
            f"service_time_s: found {request.service_time_s:g}, expected less than popInvisibleTime "
            f"({settings.seconds('popInvisibleTime'):g} s): no call would be acknowledged in time, and each "
            "message would come again and again"
        )


def _refuse_what_brokers_cannot_allocate(request: ForecastRequest) -> None:
    """Refuse what ``QueryAssignmentProcessor`` (5.0.0 to 5.5.0) has no answer to: its clients would own nothing."""
    if request.broker < FIRST_ALLOCATING:
        raise BadInputError(
            f"versions.broker: found {request.broker} with clientRebalance false, expected {FIRST_ALLOCATING} or "
            "later: older brokers refuse to allocate, and the clients would get no queue"
        )
    changes_route = isinstance(request.change, BrokerDown | BrokerUp | QueueCount)
    if changes_route and not request.pops and request.client < FIRST_LOOKING_EACH_SECOND:
        raise BadInputError(
            f"versions.client: found {request.client} with clientRebalance false and a change of routes, expected "
            f"{FIRST_LOOKING_EACH_SECOND} or later: queues go back and forth until all brokers have renewed their "
            "copies of the route, and how older clients do that, who look every 20 s, nobody has watched"
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


def check_figures(request: ForecastRequest) -> None:
    """Refuse more queues and clients than one request may have, and figures out of their bounds."""
    for noun, count, most in (
        ("queues", len(request.queues), MOST_QUEUES),
        ("clients", len(request.clients), MOST_CLIENTS),
    ):
        if count > most:
            raise BadInputError(f"{noun}: found {count}, expected at most {most} in one request")
    if not request.queues:
        raise BadInputError("queues: found no data queue, expected at least one that is not of a %RETRY% topic")
    for index, (rate, lag) in enumerate(zip(request.rates, request.lags, strict=True)):
        number(rate, f"queues[{index}].rate", 0, MOST_RATE)
        number(lag, f"queues[{index}].lag", 0, MOST_LAG)
    for index, client in enumerate(request.clients):
        fields.whole_number(client.threads, f"clients[{index}].threads", 1, MOST_THREADS)
    number(request.service_time_s, "service_time_s", 0, MOST_SECONDS)


def check_change(request: ForecastRequest) -> None:
    """Refuse a change of no client, of newcomers that are in the group, and figures out of their bounds."""
    change = request.change
    if isinstance(change, OfMembers):
        refuse_none(change.clients, "client", "changes")
    if isinstance(change, Join):
        refuse_none(change.clients, "client", "joins")
    if isinstance(change, QueueCount):
        fields.whole_number(change.read_queues, "change.read_queues", 0, MOST_READ_QUEUES)
        fields.whole_number(change.write_queues, "change.write_queues", 0, MOST_READ_QUEUES)
    refuse_present(newcomers(change), request.clients)
    check_seconds(change.rolling if isinstance(change, RollingUpdate) else change)


def check_size(request: ForecastRequest) -> None:
    """Refuse what would not fit into some gigabytes of memory: it takes far more than any group on record."""
    change, clients = request.change, len(request.clients)
    waking = clients if isinstance(change, BrokerDown | BrokerUp | QueueCount) else len(change.clients)
    cells = request.trials * max(clients, 1) * max(len(request.queues), clients + waking)
    if cells > MOST_CELLS:
        fitting = MOST_CELLS // (cells // request.trials)
        raise BadInputError(
            f"trials: found {request.trials} for {len(request.queues)} queues and {clients} clients, "
            f"of whom {waking} change, expected {fitting} trials at most for a group of that size"
        )
