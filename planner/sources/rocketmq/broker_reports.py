"""What each broker reports of a group: connected clients, commits; and where brokers disagree."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.membership import BrokerMembers
from planner.model.queues import RETRY_PREFIX
from planner.model.routes import BrokerAddress, TopicRoute
from planner.model.samples import QueueOffsets
from planner.sources.rocketmq.answers import ClientConnection, ConsumeStats, GroupConnections
from planner.sources.rocketmq.query_session import QuerySession, failure_of
from planner.sources.rocketmq.wording import some

BROADCASTING = "BROADCASTING"


@dataclass(frozen=True)
class BrokerReport:
    """What one broker reported of the group; ``None`` for what it did not answer.

    ``connections`` are known from request 203. Where only that one is refused, ``member_ids`` come from 38.
    """

    broker: BrokerAddress
    connections: tuple[ClientConnection, ...] | None
    member_ids: tuple[str, ...] | None
    topics: tuple[str, ...]
    consume_type: str
    message_model: str
    offsets: tuple[QueueOffsets, ...] | None
    problems: tuple[str, ...]

    @cached_property
    def present_ids(self) -> Counter[str]:
        """How often each client id is connected here."""
        return Counter(self.member_ids or ()) | Counter(connection.client_id for connection in self.connections or ())

    @property
    def lists_members(self) -> bool:
        """True when it reported its connected clients, be it none."""
        return self.member_ids is not None or self.connections is not None

    @property
    def has_group(self) -> bool:
        """True when the group has members or commits here."""
        return bool(self.present_ids or self.offsets)

    @property
    def listed(self) -> BrokerMembers:
        """The broker's own list of members."""
        clients = tuple(sorted(self.present_ids.elements())) if self.lists_members else None
        return BrokerMembers(
            self.broker.broker, clients, tuple(connection.address for connection in self.connections or ())
        )


def broker_reports(session: QuerySession, group: str) -> tuple[BrokerReport, ...]:
    """Return what each broker of the session reports of ``group``, in broker order."""
    asked = [
        (broker, session.ask(broker, session.admin.connections, group), _stats(session, broker, group))
        for broker in session.brokers
    ]
    refused = {
        broker.broker: session.ask(broker, session.admin.member_ids, group)
        for broker, connections, _ in asked
        if failure_of(connections)
    }
    return tuple(
        _report(broker, connections, refused.get(broker.broker), stats) for broker, connections, stats in asked
    )


def _stats(session: QuerySession, broker: BrokerAddress, group: str) -> "Future[ConsumeStats]":
    """Ask for offsets, unless all commits are known and the group has none: then the answer is known, too."""
    return session.ask(broker, lambda address: _stats_or_none(session, broker, address, group))


def _stats_or_none(session: QuerySession, broker: BrokerAddress, address: str, group: str) -> ConsumeStats:
    if session.is_wide and not _may_have_commits(session, broker, group):
        return ConsumeStats(0.0, ())
    return session.admin.consume_stats(address, group)


def _may_have_commits(session: QuerySession, broker: BrokerAddress, group: str) -> bool:
    try:
        return group in session.commits(broker)
    except OutOfReachError:
        return True


def _report(
    broker: BrokerAddress,
    connections: "Future[GroupConnections | None]",
    ids: "Future[tuple[str, ...]] | None",
    stats: "Future[ConsumeStats]",
) -> BrokerReport:
    answer = None if failure_of(connections) else connections.result()
    # "Offline" is an answer, too: there are no connections.
    no_connections = None if failure_of(connections) else ()
    asked: list[Future[Any]] = [connections, *([ids] if ids else []), stats]
    failures = [error for error in map(failure_of, asked) if error is not None]
    return BrokerReport(
        broker=broker,
        connections=answer.connections if answer else no_connections,
        member_ids=None if ids is None or failure_of(ids) else ids.result(),
        topics=answer.topics if answer else (),
        consume_type=answer.consume_type if answer else "",
        message_model=answer.message_model if answer else "",
        offsets=None if failure_of(stats) else stats.result().offsets,
        problems=_request_problems(broker, failures),
    )


def _request_problems(broker: BrokerAddress, failures: Sequence[PlannerError]) -> tuple[str, ...]:
    requests = 3  # connections, member ids in their stead, offsets
    if len(failures) < requests:
        return tuple(f"broker {broker.broker}: {error}" for error in failures)
    return (f"broker {broker.broker} answered none of {requests} requests: {failures[0]}",)


def check_group(reports: Sequence[BrokerReport], group: str) -> None:
    """Raise ``UnknownNameError`` when no broker knows the group, ``OutOfReachError`` when that is not known."""
    if any(report.has_group for report in reports):
        return
    problems = [problem for report in reports for problem in report.problems]
    asked = ", ".join(f"{report.broker.broker} ({report.broker.address})" for report in reports)
    if problems:
        raise OutOfReachError(
            f"cannot say whether group {group} exists, since of the brokers {asked} not all answered: "
            f"see whether they are up, then try again; {'; '.join(problems)}"
        )
    raise UnknownNameError(
        f"no broker knows group {group}: {asked} have neither members nor offsets of it; check the spelling and cluster"
    )


def cluster_name(reports: Sequence[BrokerReport], cluster: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the cluster where the group lives, and a problem when there are several.

    All clusters where no broker knows the group yet, but proxies list members of it.
    """
    if cluster is not None:
        return cluster, ()
    at_home = [report for report in reports if report.has_group] or reports
    names = sorted({report.broker.cluster for report in at_home})
    if len(names) > 1:
        return ",".join(names), (f"the group lives in {len(names)} clusters ({', '.join(names)}): name one of them",)
    return names[0], ()


def model_problems(reports: Sequence[BrokerReport], group: str) -> tuple[str, ...]:
    """Return a problem when the group is broadcasting."""
    if all(report.message_model != BROADCASTING for report in reports):
        return ()
    return (f"group {group} is broadcasting: each member reads every queue and keeps its offsets to itself",)


def membership_problems(reports: Sequence[BrokerReport], routes: Sequence[TopicRoute], group: str) -> tuple[str, ...]:
    """Return problems: ids that miss on a broker, ids that are connected twice.

    Clients keep a connection to the brokers of their topics only, so a broker without any of these misses no client.
    """
    everyone = sorted({client_id for report in reports for client_id in report.present_ids})
    if not everyone:
        return (f"group {group} is offline: it has offsets, but no broker that answered lists a member",)
    at_work = {
        broker_queues.broker
        for route in routes
        if not route.topic.startswith(RETRY_PREFIX)
        for broker_queues in route.brokers
    }
    problems = []
    for report in reports:
        name, present = report.broker.broker, report.present_ids
        missing = [client_id for client_id in everyone if client_id not in present]
        if missing and report.lists_members and name in at_work:
            problems.append(f"broker {name} does not list {some(missing)}, which other brokers do")
        for client_id in sorted(client_id for client_id, count in present.items() if count > 1):
            where = [connection.address for connection in report.connections or () if connection.client_id == client_id]
            problems.append(
                f"client id {client_id} is connected to broker {name} {present[client_id]} times ({some(where)})"
            )
    return tuple(problems)
