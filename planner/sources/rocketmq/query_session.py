"""``QuerySession``: what queries about one or many groups share, and how patiently it asks each server.

A server that stays silent costs a session a bounded time, however many groups are about: each server has a few workers,
and once these have waited in vain for long enough, further questions to it fail at once.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self, TypeVar

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.answers import ClusterInfo, Route
from planner.sources.rocketmq.broker_answers import TopicStats
from planner.sources.rocketmq.broker_connections import RELAYED_AT_ONCE
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.once import Once

_T = TypeVar("_T")
_AT_ONCE: Final = 8
"""Plain requests of one session under way at one server."""

Commits = Mapping[str, Mapping[str, frozenset[int]]]
"""Group -> topic -> ids of the queues that it has committed on."""


class Server:
    """One server's workers within one session. ``limit_s`` is how long they may wait in vain, summed up over them."""

    def __init__(self, name: str, at_once: int, limit_s: float) -> None:
        self.name = name
        self._limit_s = limit_s
        self._lost_s = 0.0
        self._lock = threading.Lock()
        self._workers = ThreadPoolExecutor(at_once, thread_name_prefix=f"rocketmq {name}")

    def submit(self, call: Callable[..., _T], *arguments: object) -> "Future[_T]":
        """Let the next free worker call it."""
        return self._workers.submit(self._call, call, *arguments)

    def close(self) -> None:
        """Drop what no worker has begun, and wait for the rest."""
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _call(self, call: Callable[..., _T], *arguments: object) -> _T:
        if self._lost_s >= self._limit_s:
            raise OutOfReachError(
                f"{self.name} was not asked any more: {self._lost_s:.0f} s were lost waiting for answers before, of at "
                f"most {self._limit_s:.0f} s for one sample: see which server does not answer"
            )
        start = time.monotonic()
        try:
            return call(*arguments)
        except OutOfReachError:
            with self._lock:
                self._lost_s += time.monotonic() - start
            raise


class QuerySession:
    """One session of queries through ``admin`` about groups of ``brokers``; a context manager that ends its workers.

    ``is_wide`` says that it is about many groups: then commits and topic names are read in one go for all of them.
    """

    def __init__(
        self, admin: RocketMQAdmin, info: ClusterInfo, brokers: Sequence[BrokerAddress], *, is_wide: bool
    ) -> None:
        limits = admin.limits
        self.admin = admin
        self.info = info
        self.brokers = tuple(brokers)
        self.is_wide = is_wide
        self.silent: dict[str, PlannerError] = {}
        """Client ids that did not answer, and why: one process may be a member of many groups."""
        self.once = Once()
        """What was learned for one group and goes for all."""
        self._name_server = Server("the name server", _AT_ONCE, limits.request_s * _AT_ONCE)
        self._plain = {
            broker.broker: Server(f"broker {broker.broker}", _AT_ONCE, limits.request_s * _AT_ONCE)
            for broker in brokers
        }
        self._relays = {
            broker.broker: Server(
                f"a member by way of broker {broker.broker}", RELAYED_AT_ONCE, limits.members_s * RELAYED_AT_ONCE
            )
            for broker in brokers
        }

        self._proxies = {
            proxy: Server(f"proxy {proxy}", _AT_ONCE, limits.request_s * _AT_ONCE) for proxy in admin.proxies
        }

    @classmethod
    def at(cls, admin: RocketMQAdmin, cluster: str | None, *, is_wide: bool) -> Self:
        """Return a session with all brokers, or those of one cluster.

        Raises ``UnknownNameError`` for a cluster that is not there, ``OutOfReachError`` when no name server answers or
        none knows a broker.
        """
        info = admin.cluster_info()
        return cls(admin, info, brokers_of(info, cluster), is_wide=is_wide)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()

    @property
    def _servers(self) -> tuple[Server, ...]:
        return (self._name_server, *self._plain.values(), *self._relays.values(), *self._proxies.values())

    def ask(self, broker: BrokerAddress, call: Callable[..., _T], *arguments: object) -> "Future[_T]":
        """Let ``call(address, *arguments)`` be answered by a broker."""
        return self._plain[broker.broker].submit(call, broker.address, *arguments)

    def relay(self, broker: BrokerAddress, call: Callable[..., _T], *arguments: object) -> "Future[_T]":
        """Let ``call(address, *arguments)`` be answered by a member, by way of a broker."""
        return self._relays[broker.broker].submit(call, broker.address, *arguments)

    def ask_proxy(self, proxy: str, call: Callable[..., _T], *arguments: object) -> "Future[_T]":
        """Let ``call(address, *arguments)`` be answered by one of ``admin.proxies``."""
        return self._proxies[proxy].submit(call, proxy, *arguments)

    def route(self, topic: str) -> "Future[Route]":
        """Return a topic's route, asked for once; ``UnknownNameError`` without one."""
        return self._name_server.submit(self.once.get, ("route", topic), lambda: self.admin.topic_route(topic))

    def has_topic(self, topic: str) -> bool:
        """Return whether the name server lists the topic; True where only its route shows it."""
        if not self.is_wide:
            return True
        try:
            names = self.once.get("topics", lambda: frozenset(self.admin.topic_names()))
        except OutOfReachError:  # switched off (``enableAllTopicList``): the routes show it, topic by topic
            return True
        return topic in names

    def topic_stats(self, broker: BrokerAddress, topic: str) -> "Future[TopicStats | None]":
        """Return the offsets that a topic's queues hold at a broker, asked for once; ``None`` where it is not."""
        address, key = broker.address, ("stats", broker.broker, topic)
        return self.ask(broker, lambda _: self.once.get(key, lambda: self.admin.topic_stats(address, topic)))

    def commits(self, broker: BrokerAddress) -> Commits:
        """Return on which queues of a broker each group has committed, asked for once. Raises ``OutOfReachError``."""
        return self.once.get(("commits", broker.broker), lambda: _commits(self.admin, broker))


def brokers_of(info: ClusterInfo, cluster: str | None) -> tuple[BrokerAddress, ...]:
    """Return the brokers of one cluster or of all; raises as ``QuerySession.at`` does."""
    if cluster is not None and cluster not in info.clusters:
        known = ", ".join(info.clusters) or "none"
        raise UnknownNameError(f"the name server knows no cluster {cluster}, but {known}: correct the name")
    brokers = tuple(broker for broker in info.brokers if cluster in (None, broker.cluster))
    if not brokers:
        raise OutOfReachError("the name server knows no broker at all: see whether the brokers are up and registered")
    return brokers


def failure_of(future: "Future[_T]") -> PlannerError | None:
    """Return why a request failed. Anything but an error of ours is a defect and passes through."""
    error = future.exception()
    if error is None or isinstance(error, PlannerError):
        return error
    raise error


def _commits(admin: RocketMQAdmin, broker: BrokerAddress) -> Commits:
    commits: dict[str, dict[str, frozenset[int]]] = {}
    for entry in admin.all_offsets(broker.address):
        commits.setdefault(entry.group, {})[entry.topic] = frozenset(queue_id for queue_id, _ in entry.offsets)
    return commits
