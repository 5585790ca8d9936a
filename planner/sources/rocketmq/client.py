"""``RocketMQAdmin``: one typed method per request, over connections that it opens when needed and keeps.

Only this package talks to RocketMQ. Everything below the protocol (``OSError``, time-outs) becomes
``OutOfReachError`` or one of its kinds; nothing else passes through.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Self, TypeVar

from planner.errors import OutOfReachError, UnknownNameError
from planner.model.queues import MessageQueue
from planner.sources.listener import check_system
from planner.sources.rocketmq import answers, broker_answers, codec, requests
from planner.sources.rocketmq.broker_connections import BrokerConnections, TimeLimits
from planner.sources.rocketmq.credentials import Credentials
from planner.sources.rocketmq.errors import AnswerError, BodyError, JsonError, ProtocolError
from planner.sources.rocketmq.name_servers import NameServers
from planner.sources.rocketmq.once import Once
from planner.sources.rocketmq.requests import AnswerCode, Request
from planner.sources.rocketmq.transport import Address, Tls, parse_address

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_NO_MEMBERS: Final = "no consumer for this group"
_ASK_ANOTHER: Final = {
    AnswerCode.SYSTEM_BUSY,
    AnswerCode.NOT_SUPPORTED,
    AnswerCode.SERVICE_NOT_AVAILABLE,
    AnswerCode.GO_AWAY,
}
_MAX_REMARK: Final = 160
_STANDING_S: Final = 60.0
"""How long settings are kept that operators change by hand, so that a watch does not read them every few seconds."""
_ANSWER_NAMES: Final = {int(code): code.name for code in AnswerCode}
_NEXT_STEP: Final = "look into that server's log"
_NEXT_STEPS: Final[dict[int, str]] = {
    AnswerCode.SYSTEM_BUSY: "it is overloaded, try again later",
    AnswerCode.FLOW_CONTROL: "it is overloaded, try again later",
    AnswerCode.NOT_SUPPORTED: "check that the address is a name server's where one is wanted, else a broker's",
    AnswerCode.NO_PERMISSION: "grant the account the permission to read (docs/connect-rocketmq.md)",
    AnswerCode.CONSUME_MSG_TIMEOUT: "see whether that client hangs",
}


class RocketMQAdmin:
    """A read-only client of one RocketMQ installation; a context manager, safe to use from many threads.

    ``name_servers`` is ``host:port;host:port`` or a sequence of such; they are tried in order, starting with the
    one that answered last; a name that stands for several addresses is as many name servers. Brokers are asked at
    the addresses that the name server gives. ``proxies`` are ``host:port`` of proxies' remoting port, which are asked
    for the members of groups and nothing else. ``credentials`` sign every request, ``tls`` is for all servers.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        limits: TimeLimits | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        proxies: Sequence[str] = (),
    ) -> None:
        self.limits = limits or TimeLimits()
        self.proxies = tuple(dict.fromkeys(str(parse_address(proxy)) for proxy in proxies))
        self._credentials = credentials
        self._connections = BrokerConnections(self.limits, credentials, tls)
        self._name_servers = NameServers(name_servers, self._connections.name_servers_as)
        self._versions: dict[str, int] = {}
        self.standing = Once(_STANDING_S, keeps_errors=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name_servers(self) -> tuple[Address, ...]:
        """The name servers as they were given."""
        return self._name_servers.configured

    def close(self) -> None:
        """Close all connections; a later request opens them anew."""
        self._connections.close()

    def version_of(self, address: str) -> int | None:
        """Return the version (ordinal of ``MQVersion.Version``) of a server that has answered, ``None`` before."""
        return self._versions.get(address)

    def cluster_info(self) -> answers.ClusterInfo:
        """Return all brokers and clusters that the name server knows (request 106)."""
        return self._ask_name_servers(requests.cluster_info(), answers.cluster_info)

    def topic_route(self, topic: str) -> answers.Route:
        """Return which brokers hold ``topic`` (request 105); ``UnknownNameError`` when none does."""
        try:
            return self._ask_name_servers(requests.topic_route(topic), lambda body: answers.topic_route(body, topic))
        except AnswerError as error:
            if error.code != AnswerCode.TOPIC_NOT_EXIST:
                raise
            raise UnknownNameError(
                f"topic {topic} has no route at the name server ({self._name_servers}): check the spelling, "
                f"and that the topic exists on a broker that is up"
            ) from error

    def member_ids(self, broker: str, group: str) -> tuple[str, ...]:
        """Return the client ids of ``group`` at the broker's address, sorted (request 38); empty without members."""
        try:
            return self._ask(broker, requests.member_ids(group), answers.member_ids)
        except AnswerError as error:
            if error.code == AnswerCode.SYSTEM_ERROR and error.remark.startswith(_NO_MEMBERS):
                return ()
            raise

    def connections(self, broker: str, group: str) -> answers.GroupConnections | None:
        """Return connections and subscriptions of ``group`` at a broker or proxy (203), ``None`` when it is offline."""
        try:
            return self._ask(broker, requests.connections(group), answers.connections)
        except AnswerError as error:
            if error.code == AnswerCode.CONSUMER_NOT_ONLINE:
                return None
            raise

    def consume_stats(self, broker: str, group: str, topic: str | None = None) -> answers.ConsumeStats:
        """Return offsets of ``group`` at a broker, in messages (request 208).

        Topics are those that the group has committed on at this broker and, while it has members, subscribes to;
        queues of such a topic without a commit come with consumer offset 0. An unknown group has no offsets.
        """
        return self._ask(broker, requests.consume_stats(group, topic), answers.consume_stats)

    def running_info(self, broker: str, group: str, client_id: str) -> answers.RunningInfo:
        """Return what a member reports of itself, by way of a broker that it is connected to (request 307).

        Raises ``AnswerError`` with code 1 when it is not connected there, 207 when it did not answer the broker.
        """
        request = requests.running_info(group, client_id)
        return self._ask(broker, request, answers.running_info, within_s=self.limits.running_info_s)

    def topic_names(self) -> tuple[str, ...]:
        """Return all topics of the name server, sorted (request 206), with ``%RETRY%``, ``%DLQ%`` and its own."""
        return self._ask_name_servers(requests.topic_names(), broker_answers.topic_list)

    def topics_of_cluster(self, cluster: str) -> tuple[str, ...]:
        """Return the topics of a cluster, sorted (request 224); none for a cluster that is not there."""
        return self._ask_name_servers(requests.topics_of_cluster(cluster), broker_answers.topic_list)

    def topic_stats(self, broker: str, topic: str) -> broker_answers.TopicStats | None:
        """Return the offsets that a topic's queues hold at a broker (request 202), ``None`` where it is not."""
        try:
            return self._ask(broker, requests.topic_stats(topic), broker_answers.topic_stats)
        except AnswerError as error:
            if error.code == AnswerCode.TOPIC_NOT_EXIST:
                return None
            raise

    def groups_of_topic(self, broker: str, topic: str) -> tuple[str, ...]:
        """Return the groups that subscribe to a topic or have committed on it, sorted (request 300).

        Brokers 5.3.3 list the topic's own name among them: compare the answer with ``group_configs``.
        """
        return self._ask(broker, requests.groups_of_topic(topic), broker_answers.group_list)

    def topics_of_group(self, broker: str, group: str) -> tuple[str, ...] | None:
        """Return the topics that a group subscribes to or has committed on, sorted (request 343).

        ``None`` from brokers before 5.0, which do not report it.
        """
        return self._ask_newer(broker, requests.topics_of_group(group), broker_answers.topic_list)

    def subscription(self, broker: str, group: str, topic: str) -> broker_answers.Subscription | None:
        """Return what a group wants of a topic (request 345).

        ``None`` when it is offline, does not subscribe to the topic, or the broker is older than 5.0 and does not
        report it.
        """
        return self._ask_newer(broker, requests.subscription(group, topic), broker_answers.subscription)

    def group_configs(self, broker: str) -> tuple[broker_answers.GroupConfig, ...]:
        """Return the settings of all groups of a broker, sorted by name (request 201)."""
        return self._ask(broker, requests.group_configs(), broker_answers.group_configs)

    def topic_configs(self, broker: str) -> tuple[broker_answers.TopicConfig, ...]:
        """Return the settings of all topics of a broker, sorted by name (request 21)."""
        return self._ask(broker, requests.topic_configs(), broker_answers.topic_configs)

    def member_offsets(
        self, broker: str, group: str, topic: str, client_id: str = ""
    ) -> tuple[broker_answers.MemberOffsets, ...]:
        """Return offsets in the memory of one member, or of all (request 223), by way of a broker.

        Waits like ``running_info``. For a group without members at this broker real ones answer code 1 and name a
        ``NullPointerException``: that is an ``AnswerError`` here.
        """
        request = requests.member_offsets(group, topic, client_id)
        return self._ask(broker, request, broker_answers.member_offsets, within_s=self.limits.running_info_s)

    def all_offsets(self, broker: str) -> tuple[broker_answers.CommittedOffsets, ...]:
        """Return every commit that a broker has stored, sorted by group and topic (request 43)."""
        return self._ask(broker, requests.all_offsets(), broker_answers.all_offsets)

    def broker_consume_stats(self, broker: str, *, is_orderly: bool = False) -> broker_answers.BrokerConsumeStats:
        """Return offsets and lags in messages of all groups at a broker (request 317).

        ``is_orderly`` asks for the groups that are orderly by their settings, which is not what push consumers are.
        Dear to the broker: it reads the store for each queue of each group.
        """
        request = requests.broker_consume_stats(is_orderly=is_orderly)
        return self._ask(broker, request, broker_answers.broker_consume_stats, within_s=self.limits.running_info_s)

    def committed_offset(self, broker: str, group: str, queue: MessageQueue) -> int | None:
        """Return the next offset that a group would consume in a queue (request 14), ``None`` without a commit.

        Brokers 4.9 answer 0 for a young queue without a commit, even for a topic that is not there: from them 0 may
        mean either.
        """
        try:
            return self._ask_offset(broker, requests.committed_offset(group, queue))
        except AnswerError as error:
            if error.code == AnswerCode.QUERY_NOT_FOUND:
                return None
            raise

    def max_offset(self, broker: str, queue: MessageQueue) -> int:
        """Return the offset that a queue's next message will get (request 30); 0 for a queue that is not there."""
        return self._ask_offset(broker, requests.max_offset(queue))

    def min_offset(self, broker: str, queue: MessageQueue) -> int:
        """Return the offset of the oldest message in a queue (request 31); 0 for a queue that is not there."""
        return self._ask_offset(broker, requests.min_offset(queue))

    def offset_at(self, broker: str, queue: MessageQueue, at: datetime) -> int:
        """Return the offset of the first message that was stored at ``at`` or later (request 29)."""
        return self._ask_offset(broker, requests.offset_at(queue, round(at.timestamp() * 1000)))

    def counter(self, broker: str, name: str, key: str) -> broker_answers.BrokerCounter | None:
        """Return one counter of a broker (request 315), ``None`` while it has not counted anything.

        Names and keys: ``TOPIC_PUT_NUMS``, ``TOPIC_PUT_SIZE`` (topic); ``GROUP_GET_NUMS``, ``GROUP_GET_SIZE``,
        ``GROUP_ACK_NUMS`` (of pops only), ``SNDBCK_PUT_NUMS`` (``topic@group``); ``BROKER_PUT_NUMS``,
        ``BROKER_GET_NUMS`` (cluster). Numbers are messages, sizes bytes.
        """
        try:
            return self._ask(broker, requests.counter(name, key), broker_answers.counter)
        except AnswerError as error:
            if error.code == AnswerCode.SYSTEM_ERROR and error.remark.endswith("not exist"):
                return None
            raise

    def broker_runtime(self, broker: str) -> broker_answers.BrokerRuntime:
        """Return what a broker reports of itself (request 28)."""
        return self._ask(broker, requests.broker_runtime(), broker_answers.runtime)

    def broker_config(self, broker: str) -> dict[str, str]:
        """Return a broker's settings by name (request 26); what is secret comes as ``(hidden)``."""
        return self._ask(broker, requests.broker_config(), broker_answers.properties)

    def _ask_newer(self, address: str, request: Request, read: Callable[[bytes], _T]) -> _T | None:
        """Ask what only newer brokers can answer; ``None`` from the others."""
        try:
            return self._ask(address, request, read)
        except AnswerError as error:
            if error.code == AnswerCode.NOT_SUPPORTED:
                return None
            raise

    def _ask_offset(self, address: str, request: Request) -> int:
        def read(answer: codec.Command) -> int:
            return broker_answers.header_offset(answer.fields)

        return self._ask_whole(address, request, read, self.limits.request_s)

    def _ask_name_servers(self, request: Request, read: Callable[[bytes], _T]) -> _T:
        failures: list[str] = []
        addresses = self._name_servers.in_order()
        for address in addresses:
            try:
                result = self._ask(str(address), request, read)
            except OutOfReachError as error:
                if isinstance(error, AnswerError) and error.code not in _ASK_ANOTHER:
                    raise
                log.info("name server failed", extra={"address": str(address), "cause": str(error)})
                if not isinstance(error, AnswerError):
                    check_system("rocketmq", address.host, address.port, error)
                failures.append(str(error))
            else:
                self._name_servers.prefer(address)
                return result
        raise OutOfReachError(f"no name server answers: {'; '.join(dict.fromkeys(failures))}")

    def _ask(self, address: str, request: Request, read: Callable[[bytes], _T], *, within_s: float | None = None) -> _T:
        limit_s = self.limits.request_s if within_s is None else within_s
        return self._ask_whole(address, request, lambda answer: read(answer.body), limit_s)

    def _ask_whole(self, address: str, request: Request, read: Callable[[codec.Command], _T], within_s: float) -> _T:
        answer = self._connections.ask(parse_address(address), request, within_s)
        self._versions[address] = answer.version
        if answer.code != AnswerCode.SUCCESS:
            raise _refusal(address, request, self._without_secrets(answer))
        try:
            return read(answer)
        except (BodyError, JsonError) as error:
            raise ProtocolError(
                f"{address} answered {request} with a body that cannot be read ({error}): "
                f"report it with the server's version (ordinal {answer.version})"
            ) from error

    def _without_secrets(self, answer: codec.Command) -> codec.Command:
        if self._credentials is None:
            return answer
        return replace(answer, remark=self._credentials.redacted(answer.remark))


def _refusal(address: str, request: Request, answer: codec.Command) -> AnswerError:
    name = _ANSWER_NAMES.get(answer.code, "unknown to us")
    remark = answer.remark.strip().partition("\n")[0] or "without remark"
    remark = remark if len(remark) <= _MAX_REMARK else f"{remark[:_MAX_REMARK]}..."
    return AnswerError(
        f"{address} answered {request} with code {answer.code} ({name}), expected 0, and says: {remark}; "
        f"{_NEXT_STEPS.get(answer.code, _NEXT_STEP)}",
        code=answer.code,
        remark=answer.remark,
    )
