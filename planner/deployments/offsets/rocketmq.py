"""A RocketMQ group's offsets, set at the masters of all brokers that hold its topics."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import inf
from typing import Final

from planner.deployments.offsets.actions import KeptOffsets, Offsets
from planner.deployments.offsets.rocketmq_writes import OffsetWrite, OffsetWriter, clone_request, commit_request
from planner.documents.source import RocketMQSource
from planner.errors import OutOfReachError
from planner.execution.ports import ConflictError
from planner.model.queues import RETRY_PREFIX, MessageQueue, Queue, message_queues
from planner.model.routes import BrokerAddress
from planner.snapshot.unlisted import ALIVE_S
from planner.sources.rocketmq import Credentials, RocketMQAdmin, Tls
from planner.sources.rocketmq.query_session import brokers_of
from planner.sources.rocketmq.topics import DEAD_LETTER_PREFIX

WRITE_WITHIN_S: Final = 10.0
"""A write reaches its broker within so many seconds of the check that the group has no members, or not at all."""
_MILLISECOND: Final = timedelta(milliseconds=1)


class RocketMQOffsets:
    """Offsets of groups on the brokers of one cluster, limited to the policy's topics where it names them."""

    def __init__(
        self,
        admin: RocketMQAdmin,
        cluster: str,
        topics: Sequence[str] | None,
        credentials: Credentials | None,
        tls: Tls | None,
    ) -> None:
        self._admin = admin
        self._cluster = cluster
        self._topics = frozenset(topics) if topics is not None else None
        self._credentials = credentials
        self._tls = tls

    def committed(self, group: str) -> Offsets:
        """Return the group's commits at all masters (request 43, which never makes up a 0)."""
        return {
            MessageQueue(group_offsets.topic, broker.broker, queue_id): offset
            for broker in self._masters()
            for group_offsets in self._admin.all_offsets(broker.address)
            if group_offsets.group == group and self._is_selected(group_offsets.topic)
            for queue_id, offset in group_offsets.offsets
        }

    def since(self, group: str, time: datetime) -> Offsets:
        """Return where the first message at or after a time lies (request 29), never behind it.

        A broker up to 5.1.0 answers with the nearest message, and with any of those of one millisecond
        (``ConsumeQueue#getOffsetInQueueByTime``). So all are asked for a millisecond earlier: then such a one begins
        one message too early at most, and leaves none out.
        """
        return {
            queue: self._admin.offset_at(address, queue, time - _MILLISECOND)
            for queue, address in self._addresses(group).items()
        }

    def kept(self, group: str) -> Mapping[Queue, KeptOffsets]:
        """Return the offset of each queue's oldest message (request 31) and of its next one (request 30)."""
        return {
            queue: KeptOffsets(self._admin.min_offset(address, queue), self._admin.max_offset(address, queue))
            for queue, address in self._addresses(group).items()
        }

    def _addresses(self, group: str) -> Mapping[MessageQueue, str]:
        """Return all queues of the group's topics with the masters that have them."""
        addresses = {broker.broker: broker.address for broker in self._masters()}
        return {
            queue: addresses[queue.broker]
            for topic in sorted(self._topics_of(group))
            for queue in self._admin.topic_route(topic).topic.read_queues
            if queue.broker in addresses
        }

    def clone(self, origin: str, group: str) -> None:
        """Give ``group`` the commits of ``origin``, topic by topic, in one step at each broker (request 314)."""
        broker_topics = sorted({(queue.broker, queue.topic) for queue in message_queues(self.committed(origin))})
        self._write(group, [(broker, clone_request(origin, group, topic)) for broker, topic in broker_topics])

    def commit(self, group: str, offsets: Offsets) -> None:
        """Set the group's offsets where they differ, queue by queue (request 15)."""
        present = self.committed(group)
        differing = [queue for queue in message_queues(offsets) if present.get(queue) != offsets[queue]]
        self._write(
            group, [(queue.broker, commit_request(group, queue, offsets[queue])) for queue in sorted(differing)]
        )

    def _write(self, group: str, requests: Sequence[tuple[str, OffsetWrite]]) -> None:
        deadline = time.monotonic() + WRITE_WITHIN_S
        masters = self._masters()
        self._check_unused(group, masters)
        self._check_not_popped(group, [broker for broker in masters if _requests_at(broker, requests)], requests)
        for broker in masters:
            broker_requests = _requests_at(broker, requests)
            if not broker_requests:
                continue
            left_s = deadline - time.monotonic()
            with OffsetWriter(broker.address, left_s, self._credentials, self._tls) as writer:
                for request in broker_requests:
                    writer.write(request)

    def _check_unused(self, group: str, masters: Iterable[BrokerAddress]) -> None:
        for broker in masters:
            answer = self._admin.connections(broker.address, group)
            if answer is not None and answer.connections:
                names = ", ".join(sorted(connection.client_id for connection in answer.connections)[:3])
                raise ConflictError(f"group {group} has members at broker {broker.broker}: {names}")

    def _check_not_popped(
        self, group: str, brokers: Iterable[BrokerAddress], requests: Sequence[tuple[str, OffsetWrite]]
    ) -> None:
        """Raise ``ConflictError`` where clients that no broker lists consume: those of a proxy, which pops for them.

        A pop commits as it hands out, so that one of us would undo the other; brokers remember it (request 345).
        """
        for broker in brokers:
            for topic in sorted({request.topic for request in _requests_at(broker, requests)}):
                popped = self._admin.subscription(broker.address, group, topic)
                since_s = inf if popped is None else max(0.0, time.time() - popped.version / 1000)
                if since_s <= ALIVE_S:
                    raise ConflictError(
                        f"group {group} is consumed by clients that no broker lists, such as those of a proxy: "
                        f"its last pop on {topic} at broker {broker.broker} was {since_s:.0f} s ago. Stop them"
                    )

    def _masters(self) -> tuple[BrokerAddress, ...]:
        brokers = brokers_of(self._admin.cluster_info(), self._cluster)
        slaves = [broker.broker for broker in brokers if not broker.is_master]
        if slaves:
            raise OutOfReachError(f"broker {slaves[0]} has no master now: offsets are read and set at masters only")
        return brokers

    def _topics_of(self, group: str) -> frozenset[str]:
        if self._topics is not None:
            return self._topics
        return frozenset(queue.topic for queue in message_queues(self.committed(group)))

    def _is_selected(self, topic: str) -> bool:
        if topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX)):
            return False
        return self._topics is None or topic in self._topics


def _requests_at(broker: BrokerAddress, requests: Sequence[tuple[str, OffsetWrite]]) -> Sequence[OffsetWrite]:
    return [request for name, request in requests if name == broker.broker]


@contextmanager
def open_rocketmq(source: RocketMQSource) -> Iterator[RocketMQOffsets]:
    """Give the offsets of the groups of one cluster, by the policy's address and account."""
    spec = source.tls
    account = Credentials.read(source.credentials_file) if source.credentials_file else None
    tls = Tls(spec.ca_file, spec.verify, spec.verify_names, spec.certificate_file, spec.key_file) if spec else None
    with RocketMQAdmin(source.name_servers, credentials=account, tls=tls) as admin:
        yield RocketMQOffsets(admin, source.cluster, source.topics, account, tls)
