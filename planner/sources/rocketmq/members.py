"""Who the members of a group are, by what they say of themselves by way of a broker (request 307)."""

from collections.abc import Sequence
from concurrent.futures import Future

from planner.errors import PlannerError
from planner.model.membership import Member
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.answers import ClientConnection, RunningInfo
from planner.sources.rocketmq.errors import AnswerError, NoAnswerError
from planner.sources.rocketmq.look import Look, failure_of
from planner.sources.rocketmq.requests import AnswerCode
from planner.sources.rocketmq.unlisted import grpc_ids
from planner.sources.rocketmq.views import BrokerView


def members_of(look: Look, views: Sequence[BrokerView], group: str) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """Return the group's members, sorted by client id, and what could not be learned of them.

    No gRPC client is asked: it answers nobody, and each question would take the broker's 10 s.
    """
    client_ids = sorted({client_id for view in views for client_id in view.present_ids})
    through_proxy = grpc_ids(views, group)
    asked = []
    for turn, client_id in enumerate(one for one in client_ids if one not in through_proxy):
        first, *others = _brokers_of(client_id, turn, views)
        asked.append((client_id, look.relay(first, _running_info, look, others, group, client_id)))
    found = [_member(client_id, views, future) for client_id, future in asked]
    members = [*(member for member, _ in found), *(_grpc_member(client_id, views) for client_id in through_proxy)]
    problems = tuple(problem for _, problems in found for problem in problems)
    return tuple(sorted(members, key=lambda member: member.client_id)), problems


def _grpc_member(client_id: str, views: Sequence[BrokerView]) -> Member:
    """Return the member as the broker lists it; the version that it tells is the proxy's own."""
    connections = [one for view in views for one in view.connections or () if one.client_id == client_id]
    address, language = (connections[0].address, connections[0].language) if connections else ("", "")
    return Member(client_id, address, language, version=0, owned=(), protocol="grpc")


def _brokers_of(client_id: str, turn: int, views: Sequence[BrokerView]) -> tuple[BrokerAddress, ...]:
    """Return the brokers that know the member, from another one on at each ``turn``.

    A broker holds one of its few admin threads for each member that it waits for, so they are spread.
    """
    brokers = [view.broker for view in views if client_id in view.present_ids]
    first = turn % len(brokers)
    return (*brokers[first:], *brokers[:first])


def _running_info(address: str, look: Look, others: Sequence[BrokerAddress], group: str, client_id: str) -> RunningInfo:
    """Ask by way of the first broker, then of the next ones if it has just lost the member or cannot be reached."""
    for now, after in zip((address, *(one.address for one in others)), (*others, None), strict=True):
        if (known := look.silent.get(client_id)) is not None:
            raise known
        try:
            return look.admin.running_info(now, group, client_id)
        except PlannerError as error:
            if _is_silence(error):
                look.silent[client_id] = error
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


def _member(client_id: str, views: Sequence[BrokerView], info: "Future[RunningInfo]") -> tuple[Member, tuple[str, ...]]:
    seen = [one for view in views for one in view.connections or () if one.client_id == client_id]
    problems = [] if seen else [f"client id {client_id} is in the list of members, but no broker has its connection"]
    connection = seen[0] if seen else ClientConnection(client_id, "", "", 0)
    failure = failure_of(info)
    if failure:
        problems.append(f"client {client_id} did not tell what it runs: {failure}")
    said = None if failure else info.result()
    member = Member(
        client_id=client_id,
        address=connection.address,
        language=connection.language,
        version=connection.version,
        tuning=said.tuning if said else None,
        owned=said.owned if said else None,
        subscriptions=said.subscriptions if said else None,
    )
    return member, tuple(problems)
