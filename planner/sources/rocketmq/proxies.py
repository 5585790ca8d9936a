"""What proxies list of a group: the gRPC clients that no broker knows, and remoting clients of the proxy.

A proxy answers 203 at its remoting port (8080 unless set; since 5.1.1), and nothing else that an administrator asks
(``RemotingProtocolServer``, 5.5.0). A cluster-mode proxy lists the clients of all proxies, as each publishes its own to
the others (``HeartbeatSyncer``, since 5.1.0); one within a broker's process lists that broker's members.
"""

from collections.abc import Sequence
from concurrent.futures import Future

from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.answers import GroupConnections
from planner.sources.rocketmq.broker_reports import BrokerReport
from planner.sources.rocketmq.query_session import QuerySession, failure_of


def proxy_reports(session: QuerySession, group: str) -> tuple[BrokerReport, ...]:
    """Return what each proxy of the client lists of ``group``, in their order; ``broker`` is the proxy.

    A proxy that does not answer has ``connections=None`` and a problem; no proxy reports offsets.
    """
    asked = [(proxy, session.ask_proxy(proxy, session.admin.connections, group)) for proxy in session.admin.proxies]
    return tuple(_report(proxy, connections) for proxy, connections in asked)


def reports_a_member(reports: Sequence[BrokerReport], through_proxies: Sequence[BrokerReport]) -> bool:
    """Return whether brokers are to agree on the members: not where proxies alone list any."""
    return any(report.present_ids for report in reports) or not any(report.present_ids for report in through_proxies)


def _report(proxy: str, connections: "Future[GroupConnections | None]") -> BrokerReport:
    failure = failure_of(connections)
    answer = None if failure else connections.result()
    problems = (f"proxy {proxy} does not list the group's members, so that some may be missing: {failure}",)
    return BrokerReport(
        broker=BrokerAddress(proxy, "", proxy, is_master=True),
        connections=None if failure else answer.connections if answer else (),
        member_ids=None,
        topics=answer.topics if answer else (),
        consume_type=answer.consume_type if answer else "",
        message_model=answer.message_model if answer else "",
        offsets=(),
        problems=problems if failure else (),
    )
