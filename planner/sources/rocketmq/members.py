"""The members of a group, by what they report of themselves by way of a broker (request 307)."""

from collections.abc import Sequence
from concurrent.futures import Future

from planner.errors import PlannerError
from planner.model.membership import Member
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.answers import ClientConnection, RunningInfo
from planner.sources.rocketmq.broker_reports import BrokerReport
from planner.sources.rocketmq.errors import AnswerError, NoAnswerError
from planner.sources.rocketmq.query_session import QuerySession, failure_of
from planner.sources.rocketmq.requests import AnswerCode
from planner.sources.rocketmq.unlisted import grpc_ids


def members_of(
    session: QuerySession, reports: Sequence[BrokerReport], through_proxies: Sequence[BrokerReport], group: str
) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """Return the group's members, sorted by client id, and what could not be learned of them.

    ``reports`` are the brokers', ``through_proxies`` the proxies'; a member that both list is one. No gRPC client is
    asked: it answers no broker, and each question would take the broker's 10 s. Nor is a remoting client of a proxy:
    proxies do not relay the question (``ClusterProxyRelayService``, 5.5.0).
    """
    everywhere = (*reports, *through_proxies)
    at_brokers = {client_id for report in reports for client_id in report.present_ids}
    at_proxies = {client_id for report in through_proxies for client_id in report.present_ids} - at_brokers
    clients = grpc_ids(everywhere, group)
    asked = []
    for number, client_id in enumerate(sorted(at_brokers - clients)):
        first, *others = _brokers_of(client_id, number, reports)
        asked.append((client_id, session.relay(first, _running_info, session, others, group, client_id)))
    answers = [_member(client_id, reports, future) for client_id, future in asked]
    behind = sorted(at_proxies - clients)
    members = [
        *(member for member, _ in answers),
        *(_listed_member(client_id, everywhere, is_grpc=True) for client_id in clients),
        *(_listed_member(client_id, everywhere, is_grpc=False) for client_id in behind),
    ]
    problems = (
        *(problem for _, problems in answers for problem in problems),
        *(f"remoting client {each} is connected to a proxy, which relays no question to it" for each in behind),
    )
    return tuple(sorted(members, key=lambda member: member.client_id)), problems


def _listed_member(client_id: str, reports: Sequence[BrokerReport], *, is_grpc: bool) -> Member:
    """Return a member as broker or proxy lists it; the version listed for a gRPC client is the proxy's own."""
    connection = next(
        (each for report in reports for each in report.connections or () if each.client_id == client_id),
        ClientConnection(client_id, "", "", 0),
    )
    if is_grpc:
        return Member(client_id, connection.address, connection.language, version=0, owned=(), protocol="grpc")
    return Member(client_id, connection.address, connection.language, connection.version)


def _brokers_of(client_id: str, number: int, reports: Sequence[BrokerReport]) -> tuple[BrokerAddress, ...]:
    """Return the brokers that know the member, from another one on for each ``number``.

    A broker holds one of its few admin threads for each member that it waits for, so they are spread.
    """
    brokers = [report.broker for report in reports if client_id in report.present_ids]
    first = number % len(brokers)
    return (*brokers[first:], *brokers[:first])


def _running_info(
    address: str, session: QuerySession, others: Sequence[BrokerAddress], group: str, client_id: str
) -> RunningInfo:
    """Ask by way of the first broker, then of the next ones if it has just lost the member or cannot be reached."""
    for now, after in zip((address, *(broker.address for broker in others)), (*others, None), strict=True):
        if (known := session.silent.get(client_id)) is not None:
            raise known
        try:
            return session.admin.running_info(now, group, client_id)
        except PlannerError as error:
            if _is_silence(error):
                session.silent[client_id] = error
                raise
            if after is None or not _may_be_elsewhere(error):
                raise
    raise AssertionError("the last broker either answers or raises")


def _is_silence(error: PlannerError) -> bool:
    """True when the member did not answer its broker: it does not answer the others either."""
    return isinstance(error, NoAnswerError) or (
        isinstance(error, AnswerError) and error.code == AnswerCode.CONSUME_MSG_TIMEOUT
    )


def _may_be_elsewhere(error: PlannerError) -> bool:
    return not isinstance(error, AnswerError) or error.code == AnswerCode.SYSTEM_ERROR


def _member(
    client_id: str, reports: Sequence[BrokerReport], info: "Future[RunningInfo]"
) -> tuple[Member, tuple[str, ...]]:
    connections = [each for report in reports for each in report.connections or () if each.client_id == client_id]
    problems = (
        [] if connections else [f"client id {client_id} is in the list of members, but no broker has its connection"]
    )
    connection = connections[0] if connections else ClientConnection(client_id, "", "", 0)
    failure = failure_of(info)
    if failure:
        problems.append(f"client {client_id} did not report what it runs: {failure}")
    running_info = None if failure else info.result()
    member = Member(
        client_id=client_id,
        address=connection.address,
        language=connection.language,
        version=connection.version,
        tuning=running_info.tuning if running_info else None,
        owned=running_info.owned if running_info else None,
        subscriptions=running_info.subscriptions if running_info else None,
    )
    return member, tuple(problems)
