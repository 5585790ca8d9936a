"""How far a group is on each queue, and on which queues it never committed.

Request 208 reports consumer offset 0 for a queue that the group never committed on, and leaves a topic out on which it
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
from planner.sources.rocketmq.broker_reports import BrokerReport
from planner.sources.rocketmq.query_session import QuerySession, failure_of
from planner.sources.rocketmq.wording import short, some

V5_0_0: Final = 413
"""From this version on a broker reports that there is no commit; 4.9 answers 0 then."""
_ASKED_SINGLY: Final = 16
"""Queues of one broker up to which each is asked for; beyond, all commits of the broker are cheaper."""


def offsets_of(
    session: QuerySession,
    reports: Sequence[BrokerReport],
    routes: Sequence[TopicRoute],
    topics: Iterable[str],
    group: str,
) -> tuple[tuple[QueueOffsets, ...], tuple[str, ...]]:
    """Return the offsets of all queues of ``topics`` that are known, sorted by queue, and problems."""
    named = frozenset(topics)
    reported = {
        entry.queue: entry
        for report in reports
        for entry in report.offsets or ()
        if isinstance(entry.queue, MessageQueue) and entry.queue.topic in named
    }
    uncommitted, problems = _uncommitted_queues(session, reports, reported, group)
    read = [queue for route in routes for queue in route.read_queues]
    answered = {report.broker.broker for report in reports if report.offsets is not None}
    silent_topics = {queue for queue in read if queue not in reported and queue.broker in answered}
    ranges, range_problems = _ranges(session, uncommitted | silent_topics)
    known = reported | {queue: replace(reported[queue], consumer_offset=None) for queue in uncommitted}
    known |= {
        queue: QueueOffsets(queue, entry.max_offset, None, 0, entry.min_offset) for queue, entry in ranges.items()
    }
    offsets = tuple(known[queue] for queue in sorted(known))
    return offsets, (
        *problems,
        *range_problems,
        *_unknown_lags(offsets),
        *_missing(routes, known),
        *_unread(routes, reported),
    )


def _uncommitted_queues(
    session: QuerySession, reports: Sequence[BrokerReport], reported: Mapping[MessageQueue, QueueOffsets], group: str
) -> tuple[set[MessageQueue], tuple[str, ...]]:
    """Return the queues that hold messages and for which an offset 0 was reported without a commit, or perhaps without.

    A queue that never held a message is not asked for: committed or not, all members begin there at 0.
    """
    uncommitted: set[MessageQueue] = set()
    problems = []
    doubtful = [queue for queue, entry in reported.items() if entry.consumer_offset == 0 and entry.broker_offset > 0]
    for report in reports:
        queues = [queue for queue in doubtful if queue.broker == report.broker.broker]
        if not queues:
            continue
        try:
            uncommitted |= set(queues) - _committed_queues(session, report.broker, group, queues)
        except OutOfReachError as error:
            uncommitted |= set(queues)
            problems.append(
                f"broker {report.broker.broker}: whether the group ever committed on {len(queues)} queues is not "
                f"known, so that their offsets are not ({some(map(str, queues))}): {error}"
            )
    return uncommitted, tuple(problems)


def _committed_queues(
    session: QuerySession, broker: BrokerAddress, group: str, queues: Sequence[MessageQueue]
) -> set[MessageQueue]:
    """Return those of a broker's ``queues`` that the group has committed on. Raises ``OutOfReachError``."""
    is_new = (session.admin.version_of(broker.address) or 0) >= V5_0_0
    if is_new and not session.is_wide and len(queues) <= _ASKED_SINGLY:
        asked = [(queue, session.ask(broker, session.admin.committed_offset, group, queue)) for queue in queues]
        return {queue for queue, future in asked if future.result() is not None}
    known = session.ask(broker, lambda _: session.commits(broker)).result().get(group, {})
    return {queue for queue in queues if queue.queue_id in known.get(queue.topic, ())}


def _ranges(
    session: QuerySession, queues: Iterable[MessageQueue]
) -> tuple[Mapping[MessageQueue, QueueRange], tuple[str, ...]]:
    """Return what those queues hold (request 202, once for all queues of a topic at a broker), and problems."""
    missing = set(queues)
    brokers = {broker.broker: broker for broker in session.brokers}
    topics_at_brokers = sorted({(queue.topic, queue.broker) for queue in missing})
    asked = [(topic, broker, session.topic_stats(brokers[broker], topic)) for topic, broker in topics_at_brokers]
    failures = [(topic, broker, failure_of(future)) for topic, broker, future in asked]
    answers = [future.result() for _, _, future in asked if failure_of(future) is None]
    return (
        {
            queue_range.queue: queue_range
            for stats in answers
            if stats
            for queue_range in stats.queues
            if queue_range.queue in missing
        },
        tuple(
            f"broker {broker}: what topic {topic} holds there is not known: {error}"
            for topic, broker, error in failures
            if error is not None
        ),
    )


def _unknown_lags(offsets: Iterable[QueueOffsets]) -> tuple[str, ...]:
    """Return problems where the group never committed although messages wait: its start there is not known."""
    by_topic: dict[str, list[QueueOffsets]] = {}
    for entry in offsets:
        if entry.lag is None and isinstance(entry.queue, MessageQueue):
            by_topic.setdefault(entry.queue.topic, []).append(entry)
    return tuple(_unknown_lag(topic, queues) for topic, queues in by_topic.items())


def _unknown_lag(topic: str, queues: Sequence[QueueOffsets]) -> str:
    counted = [entry.broker_offset - entry.first_offset for entry in queues if entry.first_offset is not None]
    amount = f", which hold {sum(counted)} messages" if counted else ""
    silent = len(queues) - len(counted)
    unknown = f" (of {silent} that is not known)" if amount and silent else ""
    names = some(short(entry.queue) for entry in queues if isinstance(entry.queue, MessageQueue))
    return (
        f"topic {topic}: the brokers know of no commit of the group on {len(queues)} queues{amount}{unknown}: {names}"
    )


def _missing(routes: Iterable[TopicRoute], known: Mapping[MessageQueue, QueueOffsets]) -> tuple[str, ...]:
    problems = []
    for route in routes:
        queues = [queue for queue in route.read_queues if queue not in known]
        if queues:
            problems.append(
                f"topic {route.topic} has no offsets for {len(queues)} queues, as their brokers were not asked, "
                f"did not answer or reported none: {some(map(short, queues))}"
            )
    return tuple(problems)


def _unread(routes: Sequence[TopicRoute], reported: Mapping[MessageQueue, QueueOffsets]) -> tuple[str, ...]:
    read = {queue for route in routes for queue in route.read_queues}
    topics = {route.topic for route in routes}
    extra = sorted(queue for queue in reported if queue not in read and queue.topic in topics)
    if not extra:
        return ()
    return (
        f"offsets are reported for {len(extra)} queues that no consumer reads by the route: {some(map(str, extra))}",
    )
