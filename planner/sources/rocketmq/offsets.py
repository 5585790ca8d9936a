"""How far a group is on each queue, and on which queues it never committed.

Request 208 tells consumer offset 0 for a queue that the group never committed on, and leaves a topic out on which it
never did. Neither is a position: such a queue has ``consumer_offset=None`` here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from planner.errors import OutOfReachError
from planner.model.queues import MessageQueue
from planner.model.routes import BrokerAddress, TopicRoute
from planner.model.samples import QueueOffsets
from planner.sources.rocketmq.broker_answers import QueueRange
from planner.sources.rocketmq.look import Look, failure_of
from planner.sources.rocketmq.views import BrokerView
from planner.sources.rocketmq.wording import short, some

V5_0_0: Final = 413
"""From this version on a broker says that there is no commit; 4.9 answers 0 then."""
_ASKED_ONE_BY_ONE: Final = 16
"""Queues of one broker up to which each is asked for; beyond, all commits of the broker are cheaper."""


def offsets_of(
    look: Look, views: Sequence[BrokerView], routes: Sequence[TopicRoute], topics: Iterable[str], group: str
) -> tuple[tuple[QueueOffsets, ...], tuple[str, ...]]:
    """Return the offsets of all queues of ``topics`` that are known, sorted by queue, and problems."""
    wanted = frozenset(topics)
    told = {
        one.queue: one
        for view in views
        for one in view.offsets or ()
        if isinstance(one.queue, MessageQueue) and one.queue.topic in wanted
    }
    uncommitted, problems = _uncommitted(look, views, told, group)
    read = [queue for route in routes for queue in route.read_queues]
    answered = {view.broker.broker for view in views if view.offsets is not None}
    silent_topics = {queue for queue in read if queue not in told and queue.broker in answered}
    ranges, range_problems = _ranges(look, uncommitted | silent_topics)
    known = told | {queue: replace(told[queue], consumer_offset=None) for queue in uncommitted}
    known |= {queue: QueueOffsets(queue, one.max_offset, None, 0, one.min_offset) for queue, one in ranges.items()}
    found = tuple(known[queue] for queue in sorted(known))
    return found, (*problems, *range_problems, *_unknown_lags(found), *_missing(routes, known), *_unread(routes, told))


def _uncommitted(
    look: Look, views: Sequence[BrokerView], told: Mapping[MessageQueue, QueueOffsets], group: str
) -> tuple[set[MessageQueue], tuple[str, ...]]:
    """Return the queues that hold messages and for which an offset 0 was told without a commit, or without knowing.

    Nobody asks for a queue that never held a message: committed or not, 0 is where everybody begins there.
    """
    found: set[MessageQueue] = set()
    problems = []
    doubtful = [queue for queue, one in told.items() if one.consumer_offset == 0 and one.broker_offset > 0]
    for view in views:
        queues = [queue for queue in doubtful if queue.broker == view.broker.broker]
        if not queues:
            continue
        try:
            found |= set(queues) - _committed(look, view.broker, group, queues)
        except OutOfReachError as error:
            found |= set(queues)
            problems.append(
                f"broker {view.broker.broker}: whether the group ever committed on {len(queues)} queues is not known, "
                f"so that their offsets are not ({some(map(str, queues))}): {error}"
            )
    return found, tuple(problems)


def _committed(look: Look, broker: BrokerAddress, group: str, queues: Sequence[MessageQueue]) -> set[MessageQueue]:
    """Return those of a broker's ``queues`` that the group has committed on. Raises ``OutOfReachError``."""
    is_new = (look.admin.version_of(broker.address) or 0) >= V5_0_0
    if is_new and not look.is_wide and len(queues) <= _ASKED_ONE_BY_ONE:
        asked = [(queue, look.ask(broker, look.admin.committed_offset, group, queue)) for queue in queues]
        return {queue for queue, future in asked if future.result() is not None}
    known = look.ask(broker, lambda _: look.commits(broker)).result().get(group, {})
    return {queue for queue in queues if queue.queue_id in known.get(queue.topic, ())}


def _ranges(look: Look, queues: Iterable[MessageQueue]) -> tuple[Mapping[MessageQueue, QueueRange], tuple[str, ...]]:
    """Return what those queues hold (request 202, once for all queues of a topic at a broker), and problems."""
    wanted = set(queues)
    brokers = {broker.broker: broker for broker in look.brokers}
    places = sorted({(queue.topic, queue.broker) for queue in wanted})
    asked = [(topic, broker, look.topic_stats(brokers[broker], topic)) for topic, broker in places]
    failures = [(topic, broker, failure_of(future)) for topic, broker, future in asked]
    told = [future.result() for _, _, future in asked if failure_of(future) is None]
    return (
        {one.queue: one for stats in told if stats for one in stats.queues if one.queue in wanted},
        tuple(
            f"broker {broker}: what topic {topic} holds there is not known: {error}"
            for topic, broker, error in failures
            if error is not None
        ),
    )


def _unknown_lags(offsets: Iterable[QueueOffsets]) -> tuple[str, ...]:
    """Say where the group never committed although messages wait: where it will begin there is not known."""
    by_topic: dict[str, list[QueueOffsets]] = {}
    for one in offsets:
        if one.lag is None and isinstance(one.queue, MessageQueue):
            by_topic.setdefault(one.queue.topic, []).append(one)
    return tuple(_unknown_lag(topic, queues) for topic, queues in by_topic.items())


def _unknown_lag(topic: str, queues: Sequence[QueueOffsets]) -> str:
    counted = [one.broker_offset - one.first_offset for one in queues if one.first_offset is not None]
    held = f", which hold {sum(counted)} messages" if counted else ""
    silent = len(queues) - len(counted)
    unknown = f" (of {silent} that is not known)" if held and silent else ""
    names = some(short(one.queue) for one in queues if isinstance(one.queue, MessageQueue))
    return f"topic {topic}: the brokers know of no commit of the group on {len(queues)} queues{held}{unknown}: {names}"


def _missing(routes: Iterable[TopicRoute], known: Mapping[MessageQueue, QueueOffsets]) -> tuple[str, ...]:
    found = []
    for route in routes:
        queues = [queue for queue in route.read_queues if queue not in known]
        if queues:
            found.append(
                f"topic {route.topic} has no offsets for {len(queues)} queues, as their brokers were not asked, "
                f"did not answer or told of none: {some(map(short, queues))}"
            )
    return tuple(found)


def _unread(routes: Sequence[TopicRoute], told: Mapping[MessageQueue, QueueOffsets]) -> tuple[str, ...]:
    read = {queue for route in routes for queue in route.read_queues}
    topics = {route.topic for route in routes}
    extra = sorted(queue for queue in told if queue not in read and queue.topic in topics)
    if not extra:
        return ()
    return (f"offsets are told for {len(extra)} queues that no consumer reads by the route: {some(map(str, extra))}",)
