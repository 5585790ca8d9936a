"""Consumers that no broker lists: what shows that they exist, and what rules them out."""

from collections.abc import Iterable, Iterator
from typing import Final

from planner.model.intervals import QueueInterval
from planner.model.membership import Member, UnlistedActivity
from planner.model.queues import Queue
from planner.model.samples import GroupSample

ALIVE_S = 60.0
"""A client behind a proxy that waits for messages pops at least every 20 s: three times that, for a slow machine."""

GRPC_CLIENTS: Final = "are gRPC clients of a proxy"
"""What ``strategy_source`` says of a group whose members own no queue at all, so that its strategy stays unknown."""


def unlisted_consumers(newest: GroupSample, intervals: Iterable[QueueInterval]) -> str | None:
    """Return why the group's members are not known, as a sentence, ``None`` where the listed members are all.

    Either consumption shows that no listed member explains, or nobody is listed and clients of a proxy would not be.
    """
    if signs := unlisted_consumption(newest, intervals):
        through = "through a proxy" if is_behind_proxy(newest) else "by clients that no broker lists"
        return f"consumed {through}: {', '.join(signs)}"
    activity = newest.rocketmq.unlisted if newest.rocketmq else None
    if newest.members or activity is None or not may_have_unlisted_consumers(newest):
        return None
    return f"no broker lists a member, and clients of a proxy would not be listed: {_doubt(activity)}"


def unlisted_consumption(newest: GroupSample, intervals: Iterable[QueueInterval]) -> tuple[str, ...]:
    """Return what shows that consumers are at work which no broker lists; empty where nothing does."""
    return tuple(_signs(newest, intervals))


def is_behind_proxy(newest: GroupSample) -> bool:
    """Return whether consumers that brokers do not list come through a proxy: it pops, or one is connected."""
    activity = newest.rocketmq.unlisted if newest.rocketmq else None
    return activity is not None and (activity.has_popped or bool(activity.proxies))


def may_have_unlisted_consumers(newest: GroupSample) -> bool:
    """Return whether consumers may exist that no broker lists, although nothing shows them now.

    False only on knowledge: every broker answered, no proxy is connected, and no broker remembers a pop of the group.
    """
    if newest.system != "rocketmq":
        return True  # a Kafka client that assigns its partitions itself is no member
    activity = newest.rocketmq.unlisted if newest.rocketmq else None
    if activity is None or not activity.is_complete:
        return True
    return activity.proxies != () or activity.has_popped


def grpc_members(newest: GroupSample) -> tuple[str, ...]:
    """Return the ids of the listed members that are gRPC clients of a proxy."""
    return tuple(member.client_id for member in newest.members if isinstance(member, Member) and member.is_grpc)


def _doubt(activity: UnlistedActivity) -> str:
    if activity.last_pop_s is not None:
        return f"the group's last pop was {activity.last_pop_s:.0f} s ago"
    if activity.proxies:
        hosts = "host" if len(activity.proxies) == 1 else "hosts"
        return f"a proxy is connected (on {hosts} {', '.join(activity.proxies)})"
    return "not every broker answered" if activity.proxies is None else "the group has popped before"


def _signs(newest: GroupSample, intervals: Iterable[QueueInterval]) -> Iterator[str]:
    activity = newest.rocketmq.unlisted if newest.rocketmq else None
    if activity is not None and activity.acknowledged_per_s:
        yield f"{activity.acknowledged_per_s:.1f} messages/s acknowledged"
    if activity is not None and activity.last_pop_s is not None and activity.last_pop_s <= ALIVE_S:
        yield f"last pop {activity.last_pop_s:.0f} s ago"
    if not newest.members and (advanced := _count_advancing(newest, intervals)):
        yield f"offsets of {advanced} {'queue' if advanced == 1 else 'queues'} advance"


def _count_advancing(newest: GroupSample, intervals: Iterable[QueueInterval]) -> int:
    """Return on how many queues the group's offset rose lately, without an owner of the queue before or after."""
    by_queue: dict[Queue, list[QueueInterval]] = {}
    for interval in intervals:
        if interval.ended_at <= newest.at:
            by_queue.setdefault(interval.queue, []).append(interval)
    latest = (sorted(of_queue, key=lambda interval: interval.ended_at)[-2:] for of_queue in by_queue.values())
    return sum(
        len(pair) == 2 and not pair[0].owners and not pair[1].owners and (pair[1].consumed or 0) > 0 for pair in latest
    )
