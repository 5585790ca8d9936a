"""``observe_group``: one look at one group, all masters asked, disagreements named.

Steps 1 to 5 of our snapshot recipe. The sixth (allocate again and compare) is the model's work: a sample holds
what was said, not what it means.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.membership import BrokerMembers, Member
from planner.model.queues import RETRY_PREFIX, MessageQueue
from planner.model.routes import BrokerAddress, RouteTable, TopicRoute
from planner.model.samples import GroupSample, QueueOffsets
from planner.sources.rocketmq.answers import ClientConnection, ClusterInfo, ConsumeStats, GroupConnections, RunningInfo
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.errors import AnswerError
from planner.sources.rocketmq.requests import AnswerCode

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_AT_ONCE: Final = 16
"""Requests under way at the same time; more would only queue up at the brokers' admin threads."""
_REQUESTS: Final = 3
"""Requests that each broker is asked for the group: members, connections, offsets."""
_NAMED: Final = 5
"""Queues that one sentence names before it says "and N more"."""


@dataclass(frozen=True, slots=True)
class _BrokerView:
    """What one broker said of the group; ``None`` for a request that it did not answer."""

    broker: BrokerAddress
    member_ids: tuple[str, ...] | None
    connections: tuple[ClientConnection, ...] | None
    topics: tuple[str, ...]
    message_model: str
    offsets: tuple[QueueOffsets, ...] | None
    problems: tuple[str, ...]

    @property
    def present_ids(self) -> Counter[str]:
        """How often each client id is connected here, by whichever of the two requests says more."""
        return Counter(self.member_ids or ()) | Counter(one.client_id for one in self.connections or ())

    @property
    def tells_members(self) -> bool:
        return self.member_ids is not None or self.connections is not None

    @property
    def has_group(self) -> bool:
        return bool(self.present_ids or self.offsets)


def observe_group(
    admin: RocketMQAdmin, *, cluster: str | None, group: str, topics: Sequence[str] | None, at: datetime
) -> GroupSample:
    """Return routes, members, ownership and offsets of ``group``, and what of it could not be read.

    ``cluster`` limits the look to one cluster of the name server; ``None`` asks all brokers and names the one that
    has the group. ``topics`` limits it to some topics; ``None`` takes all that the group subscribes to or has
    committed on. The group's ``%RETRY%`` topic is always among them. ``at`` becomes the sample's time.

    A group with offsets but without members comes back with ``members=()`` and a problem. Raises
    ``UnknownNameError`` for a cluster, a named topic or a group that is not there, ``OutOfReachError`` when no name
    server or no broker answers.
    """
    start = time.monotonic()
    info = admin.cluster_info()
    brokers = _brokers(info, cluster)
    with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="rocketmq-observe") as pool:
        views = _views(pool, admin, brokers, group)
        _check_group(views, group)
        wanted = _wanted_topics(views, group, topics)
        routes, route_problems = _routes(pool, admin, wanted, named=frozenset(topics or ()))
        held = _held(pool, admin, views, routes)
        members, member_problems = _members(pool, admin, views, group)
    offsets, offset_problems = _offsets(views, routes, wanted, held)
    cluster_name, cluster_problems = _cluster_name(views, cluster)
    problems = (
        *cluster_problems,
        *_broker_problems(info, brokers),
        *(problem for view in views for problem in view.problems),
        *route_problems,
        *_model_problems(views, group),
        *_membership_problems(views, routes, group),
        *member_problems,
        *offset_problems,
    )
    took_s = time.monotonic() - start
    log.debug("group observed", extra={"group": group, "took_s": took_s, "problems": len(problems)})
    return GroupSample(
        system="rocketmq",
        cluster=cluster_name,
        group=group,
        at=at,
        took_s=took_s,
        routes=RouteTable(topics=routes, brokers=brokers),
        members=members,
        offsets=offsets,
        problems=problems,
        listed=tuple(_listed(view) for view in views),
    )


# Brokers.


def _brokers(info: ClusterInfo, cluster: str | None) -> tuple[BrokerAddress, ...]:
    if cluster is not None and cluster not in info.clusters:
        known = ", ".join(info.clusters) or "none"
        raise UnknownNameError(f"the name server knows no cluster {cluster}, but {known}: correct the name")
    brokers = tuple(one for one in info.brokers if cluster in (None, one.cluster))
    if not brokers:
        raise OutOfReachError("the name server knows no broker at all: see whether the brokers are up and registered")
    return brokers


def _broker_problems(info: ClusterInfo, brokers: Sequence[BrokerAddress]) -> tuple[str, ...]:
    slaves = (
        f"broker {one.broker} has no master: its slave {one.address} was asked, which may be behind"
        for one in brokers
        if not one.is_master
    )
    nowhere = (f"broker {name} is listed by the name server without any address" for name in info.unreachable)
    return (*slaves, *nowhere)


def _cluster_name(views: Sequence[_BrokerView], cluster: str | None) -> tuple[str, tuple[str, ...]]:
    if cluster is not None:
        return cluster, ()
    names = sorted({view.broker.cluster for view in views if view.has_group})
    if len(names) > 1:
        return ",".join(names), (f"the group lives in {len(names)} clusters ({', '.join(names)}): name one of them",)
    return names[0], ()


def _views(
    pool: ThreadPoolExecutor, admin: RocketMQAdmin, brokers: Sequence[BrokerAddress], group: str
) -> tuple[_BrokerView, ...]:
    asked = [
        (
            broker,
            pool.submit(admin.member_ids, broker.address, group),
            pool.submit(admin.connections, broker.address, group),
            pool.submit(admin.consume_stats, broker.address, group),
        )
        for broker in brokers
    ]
    return tuple(_view(*one) for one in asked)


def _view(
    broker: BrokerAddress,
    ids: "Future[tuple[str, ...]]",
    connections: "Future[GroupConnections | None]",
    stats: "Future[ConsumeStats]",
) -> _BrokerView:
    failures = [error for error in (_failure(ids), _failure(connections), _failure(stats)) if error is not None]
    said = None if _failure(connections) else connections.result()
    # "Offline" is an answer, too: it says that there are no connections.
    no_connections = None if _failure(connections) else ()
    return _BrokerView(
        broker=broker,
        member_ids=None if _failure(ids) else ids.result(),
        connections=said.connections if said else no_connections,
        topics=said.topics if said else (),
        message_model=said.message_model if said else "",
        offsets=None if _failure(stats) else stats.result().offsets,
        problems=_request_problems(broker, failures),
    )


def _failure(future: "Future[_T]") -> PlannerError | None:
    """Return why a request failed. Anything but an error of ours is a defect and passes through."""
    error = future.exception()
    if error is None or isinstance(error, PlannerError):
        return error
    raise error


def _request_problems(broker: BrokerAddress, failures: Sequence[PlannerError]) -> tuple[str, ...]:
    if len(failures) < _REQUESTS:
        return tuple(f"broker {broker.broker}: {error}" for error in failures)
    return (f"broker {broker.broker} answered none of {_REQUESTS} requests: {failures[0]}",)


def _check_group(views: Sequence[_BrokerView], group: str) -> None:
    if any(view.has_group for view in views):
        return
    problems = [problem for view in views for problem in view.problems]
    asked = ", ".join(f"{view.broker.broker} ({view.broker.address})" for view in views)
    if problems:
        raise OutOfReachError(
            f"cannot tell whether group {group} exists, since of the brokers {asked} not all answered: "
            f"see whether they are up, then try again; {'; '.join(problems)}"
        )
    raise UnknownNameError(
        f"no broker knows group {group}: {asked} have neither members nor offsets of it; check the spelling and cluster"
    )


# Topics and routes.


def _wanted_topics(views: Sequence[_BrokerView], group: str, topics: Sequence[str] | None) -> tuple[str, ...]:
    retry = f"{RETRY_PREFIX}{group}"
    if topics is not None:
        return tuple(sorted({*topics, retry}))
    subscribed = {topic for view in views for topic in view.topics}
    committed = {one.queue.topic for view in views for one in view.offsets or ()}
    return tuple(sorted(subscribed | committed | {retry}))


def _routes(
    pool: ThreadPoolExecutor, admin: RocketMQAdmin, topics: Sequence[str], *, named: frozenset[str]
) -> tuple[tuple[TopicRoute, ...], tuple[str, ...]]:
    routes: list[TopicRoute] = []
    problems: list[str] = []
    for topic, future in [(topic, pool.submit(admin.topic_route, topic)) for topic in topics]:
        try:
            route = future.result()
        except UnknownNameError:
            if topic in named:
                raise
            problems.append(f"topic {topic} has no route at the name server, so its queues are not known")
        else:
            routes.append(route.topic)
            if route.is_static:
                problems.append(f"topic {topic} is a static topic: its mapped queues are not shown by this route")
    return tuple(routes), tuple(problems)


# Members.


def _model_problems(views: Sequence[_BrokerView], group: str) -> tuple[str, ...]:
    if all(view.message_model != "BROADCASTING" for view in views):
        return ()
    return (f"group {group} is broadcasting: each member reads every queue and keeps its offsets to itself",)


def _membership_problems(views: Sequence[_BrokerView], routes: Sequence[TopicRoute], group: str) -> tuple[str, ...]:
    """Say which ids miss on a broker and which are connected twice.

    Clients keep a connection to the brokers of their topics only, so a broker without any of these misses nobody.
    """
    everyone = sorted({client_id for view in views for client_id in view.present_ids})
    if not everyone:
        return (f"group {group} is offline: it has offsets, but no broker that answered lists a member",)
    at_work = {part.broker for route in routes if not route.topic.startswith(RETRY_PREFIX) for part in route.brokers}
    problems = []
    for view in views:
        name, present = view.broker.broker, view.present_ids
        missing = [client_id for client_id in everyone if client_id not in present]
        if missing and view.tells_members and name in at_work:
            problems.append(f"broker {name} does not list {_some(missing)}, which other brokers do")
        for client_id in sorted(client_id for client_id, count in present.items() if count > 1):
            where = [one.address for one in view.connections or () if one.client_id == client_id]
            problems.append(
                f"client id {client_id} is connected to broker {name} {present[client_id]} times ({_some(where)})"
            )
    return tuple(problems)


def _listed(view: _BrokerView) -> BrokerMembers:
    """Return the broker's own list; addresses where its connections are all that it lists."""
    clients = tuple(sorted(view.present_ids.elements())) if view.tells_members else None
    told = view.connections or ()
    is_whole = clients == tuple(sorted(one.client_id for one in told))
    by_id = sorted(told, key=lambda one: one.client_id)
    return BrokerMembers(view.broker.broker, clients, tuple(one.address for one in by_id) if is_whole else ())


def _members(
    pool: ThreadPoolExecutor, admin: RocketMQAdmin, views: Sequence[_BrokerView], group: str
) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    client_ids = sorted({client_id for view in views for client_id in view.present_ids})
    asked = [
        (client_id, pool.submit(_running_info, admin, _brokers_of(client_id, turn, views), group, client_id))
        for turn, client_id in enumerate(client_ids)
    ]
    wait([future for _, future in asked], admin.limits.members_s)
    found = [_member(client_id, views, future, admin.limits.members_s) for client_id, future in asked]
    return tuple(member for member, _ in found), tuple(problem for _, problems in found for problem in problems)


def _running_info(admin: RocketMQAdmin, brokers: Sequence[BrokerAddress], group: str, client_id: str) -> RunningInfo:
    """Ask by way of the first broker, then of the next ones if it has just lost the member.

    A member that does not answer one broker does not answer the others either, so that is not tried again.
    """
    for broker in brokers[:-1]:
        try:
            return admin.running_info(broker.address, group, client_id)
        except AnswerError as error:
            if error.code != AnswerCode.SYSTEM_ERROR:
                raise
    return admin.running_info(brokers[-1].address, group, client_id)


def _brokers_of(client_id: str, turn: int, views: Sequence[_BrokerView]) -> tuple[BrokerAddress, ...]:
    """Return the brokers that know the member, from another one on at each ``turn``.

    A broker holds one of its few admin threads for each member that it waits for, so they are spread.
    """
    brokers = [view.broker for view in views if client_id in view.present_ids]
    first = turn % len(brokers)
    return (*brokers[first:], *brokers[:first])


def _member(
    client_id: str, views: Sequence[_BrokerView], info: "Future[RunningInfo]", limit_s: float
) -> tuple[Member, tuple[str, ...]]:
    seen = [one for view in views for one in view.connections or () if one.client_id == client_id]
    problems = [] if seen else [f"client id {client_id} is in the list of members, but no broker has its connection"]
    connection = seen[0] if seen else ClientConnection(client_id, "", "", 0)
    said = None
    if info.done():
        failure = _failure(info)
        said = None if failure else info.result()
        problems += [f"client {client_id} did not tell what it runs: {failure}"] if failure else []
    else:
        info.cancel()
        problems.append(f"client {client_id} was not waited for any longer: {limit_s:g} s for all members were over")
    member = Member(
        client_id=client_id,
        address=connection.address,
        language=connection.language,
        version=connection.version,
        tuning=said.tuning if said else None,
        owned=said.owned if said else None,
    )
    return member, tuple(problems)


# Offsets.


def _held(
    pool: ThreadPoolExecutor, admin: RocketMQAdmin, views: Sequence[_BrokerView], routes: Sequence[TopicRoute]
) -> Mapping[MessageQueue, int]:
    """Return how many messages those queues hold that their broker told no offsets of the group for.

    Where the group never committed on a topic, its brokers leave the topic out. How far the group is behind there
    cannot be known, since that depends on where it will begin; how much waits there can. What is not answered is
    left out.
    """
    told = {view.broker.broker: {one.queue for one in view.offsets} for view in views if view.offsets is not None}
    addresses = {view.broker.broker: view.broker.address for view in views}
    asked = {
        (queue.topic, queue.broker)
        for route in routes
        for queue in route.read_queues
        if queue.broker in told and queue not in told[queue.broker]
    }
    answers = [
        pool.submit(admin.topic_stats, addresses[broker], topic)  # one request for all queues of the topic there
        for topic, broker in sorted(asked)
    ]
    found = [stats.result() for stats in answers if _failure(stats) is None]
    return {one.queue: max(0, one.max_offset - one.min_offset) for stats in found if stats for one in stats.queues}


def _offsets(
    views: Sequence[_BrokerView],
    routes: Sequence[TopicRoute],
    wanted: Iterable[str],
    held: Mapping[MessageQueue, int],
) -> tuple[tuple[QueueOffsets, ...], tuple[str, ...]]:
    topics = frozenset(wanted)
    by_queue = {one.queue: one for view in views for one in view.offsets or () if one.queue.topic in topics}
    told = {view.broker.broker for view in views if view.offsets is not None}
    problems: list[str] = []
    for route in routes:
        missing = [queue for queue in route.read_queues if queue not in by_queue]
        at_told = [queue for queue in missing if queue.broker in told]
        if at_told:
            problems.append(
                f"topic {route.topic} has no offsets for {len(at_told)} queues, as their brokers know of no commit "
                f"of the group on the topic{_waiting(at_told, held)}: {_some(map(_short, at_told))}"
            )
        at_others = [_short(queue) for queue in missing if queue.broker not in told]
        if at_others:
            problems.append(
                f"topic {route.topic} has no offsets for {len(at_others)} queues, as their brokers were not asked "
                f"or did not answer: {_some(at_others)}"
            )
    routed = {queue for route in routes for queue in route.read_queues}
    known = {route.topic for route in routes}
    extra = sorted(queue for queue in by_queue if queue not in routed and queue.topic in known)
    if extra:
        problems.append(
            f"offsets are told for {len(extra)} queues that no consumer reads by the route: {_some(map(str, extra))}"
        )
    return tuple(by_queue[queue] for queue in sorted(by_queue)), tuple(problems)


def _waiting(queues: Sequence[MessageQueue], held: Mapping[MessageQueue, int]) -> str:
    """Return ``; they hold 5 messages``, and of how many queues that is not known."""
    known = [held[queue] for queue in queues if queue in held]
    unknown = sum(queue not in held for queue in queues)
    if not known:
        return ""
    return f"; they hold {sum(known)} messages" + (f" and {unknown} of them did not tell" if unknown else "")


def _short(queue: MessageQueue) -> str:
    return f"{queue.broker}/{queue.queue_id}"


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
