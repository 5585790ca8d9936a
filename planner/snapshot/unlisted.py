"""Consumers that no broker lists: what shows that they exist, and what rules them out."""

from collections.abc import Iterable, Iterator
from typing import Final

from planner.model.intervals import QueueInterval
from planner.model.membership import BrokerMembers, UnlistedActivity
from planner.model.queues import Queue
from planner.model.samples import GroupSample
from planner.model.systems import system_named
from planner.text.words import duration, some

ALIVE_S = 60.0
"""A client behind a proxy that waits for messages pops at least every 20 s: three times that, for a slow machine."""

GRPC_CLIENTS: Final = "are gRPC clients of a proxy"
"""What ``strategy_source`` says of a group with members that own no queue, so that no statement gives it a strategy."""

PROXIES_FIELD: Final = "spec.source.proxies"
"""Where a policy names the proxies that list the members; ``--proxy`` without a policy."""


def unlisted_consumers(newest: GroupSample, intervals: Iterable[QueueInterval]) -> str | None:
    """Return why the group's members are not known, as a sentence, ``None`` where the listed members are all.

    A proxy that the policy names did not answer, or consumption shows that no listed member explains, or nobody is
    listed and clients of a proxy would not be.
    """
    proxies = _asked_proxies(newest)
    if silent := silent_proxies(newest):
        return f"{some(silent)} of {PROXIES_FIELD} did not list the group's members: see whether it runs"
    if signs := unlisted_consumption(newest, intervals):
        through = "through a proxy" if is_behind_proxy(newest) else "by clients that no broker lists"
        return f"consumed {through}: {', '.join(signs)}; {_what_to_add(newest)}"
    activity = newest.unlisted_activity
    if newest.members or proxies or activity is None or not may_have_unlisted_consumers(newest):
        return None
    return (
        f"no broker lists a member, and clients of a proxy would not be listed: {_doubt(activity)}; "
        f"{_what_to_add(newest)}"
    )


def unlisted_consumption(newest: GroupSample, intervals: Iterable[QueueInterval]) -> tuple[str, ...]:
    """Return what shows that consumers are at work which neither broker nor proxy lists; empty where nothing does.

    Any one proxy lists the clients of all: where each that was asked answered, its gRPC members explain what is
    consumed through proxies.
    """
    if lists_all_members(newest):
        return ()
    return tuple(_signs(newest, intervals))


def lists_all_members(newest: GroupSample) -> bool:
    """Return whether every proxy that was asked answered, and some listed members of the group."""
    proxies = _asked_proxies(newest)
    return any(proxy.clients for proxy in proxies) and not silent_proxies(newest)


def silent_proxies(newest: GroupSample) -> tuple[str, ...]:
    """Return the addresses of the proxies that were asked for the group's members and did not list them."""
    return tuple(proxy.broker for proxy in _asked_proxies(newest) if proxy.clients is None)


def _asked_proxies(newest: GroupSample) -> tuple[BrokerMembers, ...]:
    return newest.rocketmq.proxies if newest.rocketmq else ()


def _what_to_add(newest: GroupSample) -> str:
    """Return in a clause which proxy to name, and where."""
    if _asked_proxies(newest):
        return f"the proxies of {PROXIES_FIELD} list no member of it: add one that its clients are connected to"
    activity = newest.unlisted_activity
    if not system_named(newest.system).has_proxies:
        return "clients that assign their partitions themselves are in no list"
    host = activity.proxies[0] if activity and activity.proxies else "PROXY"
    return f"a proxy lists them: add {PROXIES_FIELD}: [{host}:8080], its remoting port (or --proxy {host}:8080)"


def is_behind_proxy(newest: GroupSample) -> bool:
    """Return whether consumers that brokers do not list come through a proxy: it pops, or one is connected."""
    activity = newest.unlisted_activity
    return activity is not None and (activity.has_popped or bool(activity.proxies))


def may_have_unlisted_consumers(newest: GroupSample) -> bool:
    """Return whether consumers may exist that no broker lists, although nothing shows them now.

    False only on knowledge: every broker answered, no proxy is connected, and no broker remembers a pop of the group.
    """
    activity = newest.unlisted_activity
    if activity is None or not activity.is_complete:
        return True  # and always for Kafka: a client that assigns its partitions itself is no member
    return activity.proxies != () or activity.has_popped


def grpc_members(newest: GroupSample) -> tuple[str, ...]:
    """Return the ids of the listed members that are gRPC clients of a proxy."""
    return tuple(member.client_id for member in newest.members if member.is_grpc)


def is_of_grpc_clients(newest: GroupSample) -> bool:
    """Return whether all listed members are gRPC clients, so that they share messages and no queue has an owner."""
    return bool(newest.members) and len(grpc_members(newest)) == len(newest.members)


def is_share_group(newest: GroupSample) -> bool:
    """Return whether it is a Kafka share group, whose members share the records of a partition."""
    return newest.kafka is not None and newest.kafka.is_share


def consumes_in_order(newest: GroupSample) -> bool | None:
    """Return whether gRPC clients get the group's messages in order (FIFO); ``None`` where no broker said."""
    states = newest.rocketmq.brokers if newest.rocketmq else ()
    known = [state.settings.in_order for state in states if state.settings and state.settings.in_order is not None]
    return any(known) if known else None


def _doubt(activity: UnlistedActivity) -> str:
    if activity.last_pop_s is not None:
        return f"the group's last pop was {duration(activity.last_pop_s)} ago"
    if activity.proxies:
        hosts = "host" if len(activity.proxies) == 1 else "hosts"
        return f"a proxy is connected (on {hosts} {', '.join(activity.proxies)})"
    return "not every broker answered" if activity.proxies is None else "the group has popped before"


def _signs(newest: GroupSample, intervals: Iterable[QueueInterval]) -> Iterator[str]:
    activity = newest.unlisted_activity
    if activity is not None and activity.acknowledged_per_s:
        yield f"{activity.acknowledged_per_s:.1f} messages/s acknowledged"
    if activity is not None and activity.last_pop_s is not None and activity.last_pop_s <= ALIVE_S:
        yield f"last pop {duration(activity.last_pop_s)} ago"
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
