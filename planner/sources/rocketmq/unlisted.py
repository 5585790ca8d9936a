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
from planner.sources.rocketmq.broker_reports import BROADCASTING, BrokerReport
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.query_session import QuerySession, failure_of

PROXY_GROUP: Final = "CID_DefaultHeartBeatSyncerTopic"
"""Each cluster-mode proxy is a member of it at every broker (``HeartbeatSyncer``, since 5.1.0)."""

_GRPC_ID: Final = re.compile(r"[^@]+@\d+@\d+@[0-9a-z]+")
"""Host name, process id, number of the client within the process, start time in base 36 (``ClientId``)."""

_POP: Final = "CONSUME_POP"


def grpc_ids(reports: Sequence[BrokerReport], group: str) -> frozenset[str]:
    """Return which of the members that brokers or proxies list are gRPC clients.

    Their ids show it. A remoting client whose instance name has the same form subscribes the group's ``%RETRY%`` topic,
    or broadcasts, which no gRPC client does.
    """
    listed = {client_id for report in reports for client_id in report.present_ids}
    alike = frozenset(client_id for client_id in listed if _GRPC_ID.fullmatch(client_id))
    retries = any(f"{RETRY_PREFIX}{group}" in report.topics for report in reports)
    broadcasts = any(report.message_model == BROADCASTING for report in reports)
    return frozenset() if alike == listed and (retries or broadcasts) else alike


def no_retry_topic(reports: Sequence[BrokerReport], activity: UnlistedActivity | None, group: str) -> frozenset[str]:
    """Return the group's ``%RETRY%`` topic where it may be missing: no gRPC client makes it, nor does a proxy."""
    is_spared = _pops_behind_proxy(reports, activity, group)
    return frozenset({f"{RETRY_PREFIX}{group}"}) if is_spared else frozenset()


def unlisted_activity(
    session: QuerySession, reports: Sequence[BrokerReport], group: str
) -> tuple[UnlistedActivity | None, tuple[str, ...]]:
    """Return what brokers know of consumers that they do not list, and problems.

    ``None`` where nothing is left to ask: the listed members pop themselves, or no proxy is connected beside them.
    """
    is_offline = not any(report.present_ids for report in reports)
    pops = any(report.consume_type == _POP for report in reports) or bool(grpc_ids(reports, group))
    if not is_offline and pops:
        return None, ()
    proxies, failures = _proxies(session)
    if not is_offline and proxies == ():
        return None, ()
    pops_at = list(_subscriptions(session, reports, group)) if is_offline else []
    acknowledged = list(_acknowledgements(session, reports, group))
    errors = [*failures, *_failures(pops_at)]
    uncounted = list(_failures(acknowledged))  # refused to accounts without a right on the cluster
    unanswered = [report.broker.broker for report in reports if report.offsets is None]
    activity = UnlistedActivity(
        proxies=proxies,
        last_pop_s=_since_last_pop(pops_at),
        acknowledged_per_s=_rate(acknowledged),
        is_complete=not (errors or uncounted or unanswered),
    )
    return activity, _problems(errors) if is_offline and not unanswered else ()


def hidden_lag(reports: Sequence[BrokerReport], activity: UnlistedActivity | None, group: str) -> tuple[str, ...]:
    """Return that the lag leaves out what clients of a proxy hold: a pop commits when it hands out, unless in order."""
    if not _pops_behind_proxy(reports, activity, group):
        return ()
    return (
        "the lag leaves out what clients of a proxy hold and have not acknowledged: up to 1 024 messages each "
        "(maxCacheMessageCount), and one batch",
    )


def _pops_behind_proxy(reports: Sequence[BrokerReport], activity: UnlistedActivity | None, group: str) -> bool:
    return bool(grpc_ids(reports, group)) or (activity is not None and activity.has_popped)


def _proxies(session: QuerySession) -> tuple[tuple[str, ...] | None, tuple[PlannerError, ...]]:
    """Return the hosts of the connected proxies, or ``None`` with the reasons; asked for once a minute."""
    asked = [session.ask(broker, _proxy_connections, session.admin) for broker in session.brokers]
    if failures := tuple(_failures(asked)):
        return None, failures
    answers = [future.result() for future in asked]
    addresses = {connection.address for answer in answers if answer for connection in answer.connections}
    return tuple(sorted({address.rpartition(":")[0] for address in addresses})), ()


def _proxy_connections(address: str, admin: RocketMQAdmin) -> GroupConnections | None:
    return admin.standing.get(("proxies", address), lambda: admin.connections(address, PROXY_GROUP))


def _subscriptions(session: QuerySession, reports: Sequence[BrokerReport], group: str) -> Iterator["Future[Any]"]:
    for broker, topic in _topics_at_brokers(reports):
        yield session.ask(broker, session.admin.subscription, group, topic)


def _acknowledgements(session: QuerySession, reports: Sequence[BrokerReport], group: str) -> Iterator["Future[Any]"]:
    for broker, topic in _topics_at_brokers(reports):
        yield session.ask(broker, session.admin.counter, "GROUP_ACK_NUMS", f"{topic}@{group}")


def _topics_at_brokers(reports: Sequence[BrokerReport]) -> Iterator[tuple[BrokerAddress, str]]:
    """Yield each broker with each topic that the group has committed on there: the first pop of a queue commits."""
    for report in reports:
        for topic in sorted({entry.queue.topic for entry in report.offsets or () if not entry.queue.is_retry}):
            yield report.broker, topic


def _since_last_pop(asked: Sequence["Future[Any]"]) -> float | None:
    """Return seconds since the newest of them by our clock, which a broker's may differ from."""
    answers = [future.result() for future in asked if failure_of(future) is None]
    newest = max((answer.version for answer in answers if answer is not None), default=None)
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
