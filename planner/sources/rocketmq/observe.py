"""``observe_group`` and ``observe_groups``: one look at groups, all masters asked, disagreements named.

Steps 1 to 5 of our snapshot recipe. The sixth (allocate again and compare) is the model's work: a sample holds
what was said, not what it means.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Final

from planner.errors import PlannerError
from planner.model.routes import RouteTable
from planner.model.samples import GroupSample, RocketMQGroup
from planner.sources.rocketmq.broker_states import broker_states
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.groups import groups_in
from planner.sources.rocketmq.look import Look
from planner.sources.rocketmq.members import members_of
from planner.sources.rocketmq.offsets import offsets_of
from planner.sources.rocketmq.topics import dead_letters, missed_topics, routes_of, wanted_topics
from planner.sources.rocketmq.unlisted import hidden_lag, no_retry_topic, unlisted_activity
from planner.sources.rocketmq.views import (
    BrokerView,
    broker_views,
    check_group,
    cluster_name,
    membership_problems,
    model_problems,
)

log = logging.getLogger(__name__)

_GROUPS_AT_ONCE: Final = 48
"""Groups under way in one look: enough that those with a silent member do not hold up the others."""


def observe_group(
    admin: RocketMQAdmin, *, cluster: str | None, group: str, topics: Sequence[str] | None, at: datetime
) -> GroupSample:
    """Return routes, members, ownership and offsets of ``group``, and what of it could not be read.

    ``cluster`` limits the look to one cluster of the name server; ``None`` asks all brokers and names the one that
    has the group. ``topics`` limits it to some topics; ``None`` takes all that the group subscribes to or has
    committed on. The group's ``%RETRY%`` topic is always among them. ``at`` becomes the sample's time.

    A group with offsets but without members comes back with ``members=()`` and a problem; what brokers know of
    consumers that they do not list is in ``rocketmq.unlisted``. Raises
    ``UnknownNameError`` for a cluster, a named topic or a group that is not there, ``OutOfReachError`` when no name
    server or no broker answers.
    """
    with Look.at(admin, cluster, is_wide=False) as look:
        return _sample(look, cluster, group, topics, at)


def observe_groups(
    admin: RocketMQAdmin, *, groups: Sequence[str] | None, cluster: str | None, at: datetime
) -> Iterator[tuple[str, GroupSample | PlannerError]]:
    """Yield (group, its sample as ``observe_group`` gives it, or the error that it would raise), as they are done.

    ``groups`` are looked at as often as they are named. ``groups=None`` takes all that the brokers know, RocketMQ's own
    left out; the iterator then yields ``UnknownNameError`` for one that has settings but neither members nor commits.
    Routes, topics and commits are read once for all groups. Raises what keeps the look from beginning, as
    ``observe_group`` does for the cluster.

    What silent members and servers may cost is bounded for the look as a whole (``TimeLimits.members_s``).
    """
    done: SimpleQueue[tuple[str, Future[GroupSample]]] = SimpleQueue()
    with Look.at(admin, cluster, is_wide=True) as look:
        wanted = groups_in(look).names if groups is None else tuple(groups)
        workers = ThreadPoolExecutor(_GROUPS_AT_ONCE, thread_name_prefix="rocketmq-observe")
        try:
            for group in wanted:
                future = workers.submit(_sample, look, cluster, group, None, at)
                future.add_done_callback(partial(_put, done, group))
            for _ in wanted:
                group, future = done.get()
                error = future.exception()
                if error is not None and not isinstance(error, PlannerError):
                    raise error
                yield group, error or future.result()
        finally:
            workers.shutdown(wait=True, cancel_futures=True)


def _put(done: "SimpleQueue[tuple[str, Future[GroupSample]]]", group: str, future: "Future[GroupSample]") -> None:
    done.put((group, future))


def _sample(look: Look, cluster: str | None, group: str, topics: Sequence[str] | None, at: datetime) -> GroupSample:
    start = time.monotonic()
    views = broker_views(look, group)
    check_group(views, group)
    wanted = wanted_topics(views, group, topics)
    unlisted, unlisted_problems = unlisted_activity(look, views, group)
    spared = no_retry_topic(views, unlisted, group)
    routes, route_problems = routes_of(look, wanted, named=frozenset(topics or ()), spared=spared)
    offsets, offset_problems = offsets_of(look, views, routes, wanted, group)
    letters, letter_problems = dead_letters(look, group)
    states, state_problems = broker_states(look, group)
    # Last: a silent member takes its time, and the offsets would be read so much later than the members.
    members, member_problems = members_of(look, views, group)
    if topics is None and (missed := missed_topics(members, wanted)):
        more_routes, more_route_problems = routes_of(look, missed, named=frozenset())
        more_offsets, more_offset_problems = offsets_of(look, views, more_routes, missed, group)
        routes = tuple(sorted((*routes, *more_routes), key=lambda route: route.topic))
        offsets = tuple(sorted((*offsets, *more_offsets), key=lambda one: one.queue))
        route_problems, offset_problems = route_problems + more_route_problems, offset_problems + more_offset_problems
    cluster_told, cluster_problems = cluster_name(views, cluster)
    problems = (
        *cluster_problems,
        *_broker_problems(look),
        *(problem for view in views for problem in view.problems),
        *route_problems,
        *model_problems(views, group),
        *membership_problems(views, routes, group),
        *member_problems,
        *offset_problems,
        *letter_problems,
        *state_problems,
        *unlisted_problems,
        *hidden_lag(views, unlisted, group),
    )
    took_s = time.monotonic() - start
    log.debug("group observed", extra={"group": group, "took_s": took_s, "problems": len(problems)})
    return GroupSample(
        system="rocketmq",
        cluster=cluster_told,
        group=group,
        at=at,
        took_s=took_s,
        routes=RouteTable(topics=routes, brokers=look.brokers),
        members=members,
        offsets=offsets,
        problems=problems,
        dead_letters=letters,
        listed=tuple(view.listed for view in views),
        rocketmq=RocketMQGroup(
            consume_types=_told(views, "consume_type"),
            message_models=_told(views, "message_model"),
            brokers=states,
            unlisted=unlisted,
        ),
    )


def _broker_problems(look: Look) -> tuple[str, ...]:
    slaves = (
        f"broker {one.broker} has no master: its slave {one.address} was asked, which may be behind"
        for one in look.brokers
        if not one.is_master
    )
    nowhere = (f"broker {name} is listed by the name server without any address" for name in look.info.unreachable)
    return (*slaves, *nowhere)


def _told(views: Sequence[BrokerView], what: str) -> tuple[str, ...]:
    return tuple(sorted({getattr(view, what) for view in views} - {""}))
