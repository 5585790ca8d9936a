"""Consumers that brokers do not list: clients of a cluster-mode proxy, which pops and acknowledges on their behalf.

What the brokers know of them: the last pop (request 345 answers from the pops of the last ten minutes), the rate of
acknowledgements (315), and which proxies are connected (203 of the group by which proxies exchange their clients).
"""

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Final

from planner.errors import PlannerError
from planner.model.membership import UnlistedActivity
from planner.model.queues import RETRY_PREFIX
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.answers import GroupConnections
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.look import Look, failure_of
from planner.sources.rocketmq.views import BROADCASTING, BrokerView

PROXY_GROUP: Final = "CID_DefaultHeartBeatSyncerTopic"
"""Each cluster-mode proxy is a member of it at every broker (``HeartbeatSyncer``, since 5.1.0)."""

_GRPC_ID: Final = re.compile(r"[^@]+@\d+@\d+@[0-9a-z]+")
"""Host name, process id, number of the client within the process, start time in base 36 (``ClientId``)."""

_POP: Final = "CONSUME_POP"


def grpc_ids(views: Sequence[BrokerView], group: str) -> frozenset[str]:
    """Return which of the listed members are gRPC clients of a proxy in the broker's process.

    Their ids say so. A remoting client whose instance name looks the same subscribes the group's ``%RETRY%`` topic,
    or broadcasts, which no gRPC client does.
    """
    listed = {client_id for view in views for client_id in view.present_ids}
    alike = frozenset(client_id for client_id in listed if _GRPC_ID.fullmatch(client_id))
    retries = any(f"{RETRY_PREFIX}{group}" in view.topics for view in views)
    broadcasts = any(view.message_model == BROADCASTING for view in views)
    return frozenset() if alike == listed and (retries or broadcasts) else alike


def no_retry_topic(views: Sequence[BrokerView], activity: UnlistedActivity | None, group: str) -> frozenset[str]:
    """Return the group's ``%RETRY%`` topic where it may be missing: no gRPC client makes it, nor does a proxy."""
    is_spared = _pops_behind_proxy(views, activity, group)
    return frozenset({f"{RETRY_PREFIX}{group}"}) if is_spared else frozenset()


def unlisted_activity(
    look: Look, views: Sequence[BrokerView], group: str
) -> tuple[UnlistedActivity | None, tuple[str, ...]]:
    """Return what brokers know of consumers that they do not list, and problems.

    ``None`` where nothing is left to ask: the listed members pop themselves, or no proxy is connected beside them.
    """
    is_offline = not any(view.present_ids for view in views)
    pops = any(view.consume_type == _POP for view in views) or bool(grpc_ids(views, group))
    if not is_offline and pops:
        return None, ()
    proxies, failures = _proxies(look)
    if not is_offline and proxies == ():
        return None, ()
    pops_at = list(_subscriptions(look, views, group)) if is_offline else []
    acknowledged = list(_acknowledgements(look, views, group))
    errors = [*failures, *_failures(pops_at)]
    uncounted = list(_failures(acknowledged))  # refused to accounts without a right on the cluster
    unanswered = [view.broker.broker for view in views if view.offsets is None]
    activity = UnlistedActivity(
        proxies=proxies,
        last_pop_s=_since_last_pop(pops_at),
        acknowledged_per_s=_rate(acknowledged),
        is_complete=not (errors or uncounted or unanswered),
    )
    return activity, _problems(errors) if is_offline and not unanswered else ()


def hidden_lag(views: Sequence[BrokerView], activity: UnlistedActivity | None, group: str) -> tuple[str, ...]:
    """Say that what clients of a proxy hold is not among the lag: a pop commits when it hands out, unless in order."""
    if not _pops_behind_proxy(views, activity, group):
        return ()
    return (
        "the lag leaves out what clients of a proxy hold and have not acknowledged: up to 1 024 messages each "
        "(maxCacheMessageCount), and one batch",
    )


def _pops_behind_proxy(views: Sequence[BrokerView], activity: UnlistedActivity | None, group: str) -> bool:
    return bool(grpc_ids(views, group)) or (activity is not None and activity.has_popped)


def _proxies(look: Look) -> tuple[tuple[str, ...] | None, tuple[PlannerError, ...]]:
    """Return the hosts of the connected proxies, or ``None`` with the reasons; asked for once a minute."""
    asked = [look.ask(broker, _proxy_connections, look.admin) for broker in look.brokers]
    if failures := tuple(_failures(asked)):
        return None, failures
    answers = [future.result() for future in asked]
    addresses = {one.address for answer in answers if answer for one in answer.connections}
    return tuple(sorted({address.rpartition(":")[0] for address in addresses})), ()


def _proxy_connections(address: str, admin: RocketMQAdmin) -> GroupConnections | None:
    return admin.standing.get(("proxies", address), lambda: admin.connections(address, PROXY_GROUP))


def _subscriptions(look: Look, views: Sequence[BrokerView], group: str) -> Iterator["Future[Any]"]:
    for broker, topic in _places(views):
        yield look.ask(broker, look.admin.subscription, group, topic)


def _acknowledgements(look: Look, views: Sequence[BrokerView], group: str) -> Iterator["Future[Any]"]:
    for broker, topic in _places(views):
        yield look.ask(broker, look.admin.counter, "GROUP_ACK_NUMS", f"{topic}@{group}")


def _places(views: Sequence[BrokerView]) -> Iterator[tuple[BrokerAddress, str]]:
    """Yield each broker with each topic that the group has committed on there: the first pop of a queue commits."""
    for view in views:
        for topic in sorted({one.queue.topic for one in view.offsets or () if not one.queue.is_retry}):
            yield view.broker, topic


def _since_last_pop(asked: Sequence["Future[Any]"]) -> float | None:
    """Return seconds since the newest of them by our clock, which a broker's may differ from."""
    told = [future.result() for future in asked if failure_of(future) is None]
    newest = max((one.version for one in told if one is not None), default=None)
    return None if newest is None else round(max(0.0, time.time() - newest / 1000), 1)


def _rate(asked: Sequence["Future[Any]"]) -> float | None:
    counters = [future.result() for future in asked if failure_of(future) is None]
    rates = [counter.minute.per_s for counter in counters if counter is not None]
    return round(sum(rates), 3) if rates else None


def _failures(asked: Sequence["Future[Any]"]) -> Iterator[PlannerError]:
    for future in asked:
        if (error := failure_of(future)) is not None:
            yield error


def _problems(errors: Sequence[PlannerError]) -> tuple[str, ...]:
    if not errors:
        return ()
    return (f"whether clients behind a proxy consume is not known for certain: {errors[0]}",)
