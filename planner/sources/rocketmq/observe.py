"""``observe_group`` and ``observe_groups``: one sample of groups, all masters asked, disagreements named.

Steps 1 to 5 of our snapshot recipe. The sixth (allocate and compare) is the model's work: a sample holds
what was reported, not what it means.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Final

from planner.errors import PlannerError
from planner.model.routes import RouteTable, TopicRoute
from planner.model.samples import GroupSample, QueueOffsets, RocketMQGroup
from planner.sources.rocketmq.broker_reports import (
    BrokerReport,
    broker_reports,
    check_group,
    cluster_name,
    membership_problems,
    model_problems,
)
from planner.sources.rocketmq.broker_states import broker_states
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.groups import groups_in
from planner.sources.rocketmq.members import members_of
from planner.sources.rocketmq.offsets import offsets_of
from planner.sources.rocketmq.other_groups import other_groups
from planner.sources.rocketmq.proxies import proxy_reports, reports_a_member
from planner.sources.rocketmq.query_session import QuerySession
from planner.sources.rocketmq.topics import check_queues, dead_letters, missed_topics, routes_of, topics_to_read
from planner.sources.rocketmq.unlisted import hidden_lag, no_retry_topic, unlisted_activity

log = logging.getLogger(__name__)

_GROUPS_AT_ONCE: Final = 48
"""Groups under way in one session: enough that those with a silent member do not hold up the others."""


def observe_group(
    admin: RocketMQAdmin, *, cluster: str | None, group: str, topics: Sequence[str] | None, at: datetime
) -> GroupSample:
    """Return routes, members, ownership and offsets of ``group``, and what of it could not be read.

    ``cluster`` limits the sample to one cluster of the name server; ``None`` asks all brokers and names the one that
    has the group. ``topics`` limits it to some topics; ``None`` takes all that the group subscribes to or has
    committed on. The group's ``%RETRY%`` topic is always among them. ``at`` becomes the sample's time.

    A group with offsets but without members comes back with ``members=()`` and a problem; what brokers know of
    consumers that they do not list is in ``rocketmq.unlisted``. Raises
    ``UnknownNameError`` for a cluster, a named topic or a group that is not there, ``OutOfReachError`` when no name
    server or no broker answers.
    """
    with QuerySession.at(admin, cluster, is_wide=False) as session:
        return _sample(session, cluster, group, topics, at)


def observe_groups(
    admin: RocketMQAdmin, *, groups: Sequence[str] | None, cluster: str | None, at: datetime
) -> Iterator[tuple[str, GroupSample | PlannerError]]:
    """Yield (group, its sample as ``observe_group`` gives it, or the error that it would raise), as they are done.

    ``groups`` are read as often as they are named. ``groups=None`` takes all that the brokers know, RocketMQ's own
    left out; the iterator then yields ``UnknownNameError`` for one that has settings but neither members nor commits.
    Routes, topics and commits are read once for all groups. Raises what keeps the session from beginning, as
    ``observe_group`` does for the cluster.

    What silent members and servers may cost is bounded for the session as a whole (``TimeLimits.members_s``).
    """
    done: SimpleQueue[tuple[str, Future[GroupSample]]] = SimpleQueue()
    with QuerySession.at(admin, cluster, is_wide=True) as session:
        names = groups_in(session).names if groups is None else tuple(groups)
        workers = ThreadPoolExecutor(_GROUPS_AT_ONCE, thread_name_prefix="rocketmq-observe")
        try:
            for group in names:
                future = workers.submit(_sample, session, cluster, group, None, at)
                future.add_done_callback(partial(_put, done, group))
            for _ in names:
                group, future = done.get()
                error = future.exception()
                if error is not None and not isinstance(error, PlannerError):
                    raise error
                yield group, error or future.result()
        finally:
            workers.shutdown(wait=True, cancel_futures=True)


def _put(done: "SimpleQueue[tuple[str, Future[GroupSample]]]", group: str, future: "Future[GroupSample]") -> None:
    done.put((group, future))


@dataclass(frozen=True, slots=True)
class _TopicReading:
    """Routes and offsets of some topics, and what could not be read of them."""

    routes: tuple[TopicRoute, ...]
    route_problems: tuple[str, ...]
    offsets: tuple[QueueOffsets, ...]
    offset_problems: tuple[str, ...]

    def join(self, more: "_TopicReading") -> "_TopicReading":
        """Return both; raises ``BodyError`` where they state more queues than a group has."""
        routes = tuple(sorted((*self.routes, *more.routes), key=lambda route: route.topic))
        check_queues(routes)
        offsets = tuple(sorted((*self.offsets, *more.offsets), key=lambda entry: entry.queue))
        return _TopicReading(
            routes, self.route_problems + more.route_problems, offsets, self.offset_problems + more.offset_problems
        )


def _read_topics(
    session: QuerySession,
    reports: Sequence[BrokerReport],
    group: str,
    topics: Sequence[str],
    *,
    named: frozenset[str] = frozenset(),
    spared: frozenset[str] = frozenset(),
) -> _TopicReading:
    """Return the topics' routes, and the offsets by these."""
    routes, route_problems = routes_of(session, topics, named=named, spared=spared)
    return _TopicReading(routes, route_problems, *offsets_of(session, reports, routes, topics, group))


def _sample(
    session: QuerySession, cluster: str | None, group: str, topics: Sequence[str] | None, at: datetime
) -> GroupSample:
    start = time.monotonic()
    reports = broker_reports(session, group)
    through_proxies = proxy_reports(session, group)
    everywhere = (*reports, *through_proxies)
    check_group(everywhere, group)
    topic_names = topics_to_read(everywhere, group, topics)
    unlisted, unlisted_problems = unlisted_activity(session, reports, group)
    spared = no_retry_topic(reports, unlisted, group)
    read = _read_topics(session, reports, group, topic_names, named=frozenset(topics or ()), spared=spared)
    letters, letter_problems = dead_letters(session, group)
    states, state_problems = broker_states(session, group)
    # Last: a silent member takes its time, and the offsets would be read so much later than the members.
    members, member_problems = members_of(session, reports, through_proxies, group)
    if topics is None and (missed := missed_topics(members, topic_names)):
        read = read.join(_read_topics(session, reports, group, missed))
    remoting = [member.client_id for member in members if member.protocol != "grpc"]
    others, other_problems = other_groups(session, reports, group, remoting)
    sample_cluster, cluster_problems = cluster_name(reports, cluster)
    problems = (
        *cluster_problems,
        *_broker_problems(session),
        *(problem for report in reports for problem in report.problems),
        *read.route_problems,
        *model_problems(reports, group),
        *(membership_problems(reports, read.routes, group) if reports_a_member(reports, through_proxies) else ()),
        *(problem for report in through_proxies for problem in report.problems),
        *member_problems,
        *read.offset_problems,
        *letter_problems,
        *state_problems,
        *unlisted_problems,
        *other_problems,
        *hidden_lag(everywhere, unlisted, group),
    )
    took_s = time.monotonic() - start
    log.debug("group observed", extra={"group": group, "took_s": took_s, "problems": len(problems)})
    return GroupSample(
        system="rocketmq",
        cluster=sample_cluster,
        group=group,
        at=at,
        took_s=took_s,
        routes=RouteTable(topics=read.routes, brokers=session.brokers),
        members=members,
        offsets=read.offsets,
        problems=problems,
        dead_letters=letters,
        listed=tuple(report.listed for report in reports),
        rocketmq=RocketMQGroup(
            consume_types=_values_of(everywhere, "consume_type"),
            message_models=_values_of(everywhere, "message_model"),
            brokers=states,
            unlisted=unlisted,
            proxies=tuple(report.listed for report in through_proxies),
            other_groups=others,
        ),
    )


def _broker_problems(session: QuerySession) -> tuple[str, ...]:
    slaves = (
        f"broker {broker.broker} has no master: its slave {broker.address} was asked, which may be behind"
        for broker in session.brokers
        if not broker.is_master
    )
    nowhere = (f"broker {name} is listed by the name server without any address" for name in session.info.unreachable)
    return (*slaves, *nowhere)


def _values_of(reports: Sequence[BrokerReport], what: str) -> tuple[str, ...]:
    return tuple(sorted({getattr(report, what) for report in reports} - {""}))
