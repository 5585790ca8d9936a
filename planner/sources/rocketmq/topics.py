"""The topics of a group: which ones, where their queues lie, and what was given up on."""

from collections.abc import Sequence

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.membership import Member
from planner.model.queues import RETRY_PREFIX
from planner.model.routes import MAX_GROUP_QUEUES, TopicRoute, count_read_queues
from planner.sources.rocketmq.broker_reports import BrokerReport
from planner.sources.rocketmq.errors import BodyError
from planner.sources.rocketmq.query_session import QuerySession, failure_of

DEAD_LETTER_PREFIX = "%DLQ%"


def topics_to_read(reports: Sequence[BrokerReport], group: str, topics: Sequence[str] | None) -> tuple[str, ...]:
    """Return the named topics, or else all that the group subscribes to or has committed on; its retry topic always."""
    retry = f"{RETRY_PREFIX}{group}"
    if topics is not None:
        return tuple(sorted({*topics, retry}))
    subscribed = {topic for report in reports for topic in report.topics}
    committed = {entry.queue.topic for report in reports for entry in report.offsets or ()}
    return tuple(sorted(subscribed | committed | {retry}))


def missed_topics(members: Sequence[Member], known: Sequence[str]) -> tuple[str, ...]:
    """Return the topics that members subscribe and brokers did not name, sorted.

    Members that subscribe differently overwrite each other's subscription at the brokers with every heartbeat.
    """
    subscribed = {subscription.topic for member in members for subscription in member.subscriptions or ()}
    return tuple(sorted(subscribed - set(known)))


def routes_of(
    session: QuerySession, topics: Sequence[str], *, named: frozenset[str], spared: frozenset[str] = frozenset()
) -> tuple[tuple[TopicRoute, ...], tuple[str, ...]]:
    """Return the routes of ``topics``, and problems; raises ``UnknownNameError`` for a named topic without one.

    ``spared`` topics need not exist. Raises ``BodyError`` where the routes together state more queues than a group has.
    """
    routes: list[TopicRoute] = []
    problems: list[str] = []
    for topic, future in [(topic, session.route(topic)) for topic in topics]:
        failure = failure_of(future)
        if failure is None:
            route = future.result()
            routes.append(route.topic)
            if route.is_static:
                problems.append(f"topic {topic} is a static topic: its mapped queues are not shown by this route")
        elif topic in named:
            raise failure
        elif isinstance(failure, UnknownNameError) and topic not in spared:
            problems.append(f"topic {topic} has no route at the name server, so its queues are not known")
        elif not isinstance(failure, UnknownNameError):
            problems.append(f"topic {topic}: its route is not known: {failure}")
    check_queues(routes)
    return tuple(routes), tuple(problems)


def check_queues(routes: Sequence[TopicRoute]) -> None:
    """Raise ``BodyError`` where the routes of a group's topics state more than ``MAX_GROUP_QUEUES`` queues."""
    if (queues := count_read_queues(routes)) > MAX_GROUP_QUEUES:
        raise BodyError(
            f"the routes of {len(routes)} topics state {queues} queues, expected {MAX_GROUP_QUEUES} at most: name the "
            "topics that count (source.topics)"
        )


def dead_letters(session: QuerySession, group: str) -> tuple[int | None, tuple[str, ...]]:
    """Return how many messages are in the group's ``%DLQ%`` topic, ``None`` with a problem where that is not known."""
    topic = f"{DEAD_LETTER_PREFIX}{group}"
    if not session.has_topic(topic):
        return 0, ()
    try:
        return _messages_in(session, topic), ()
    except UnknownNameError:  # made with the first dead letter
        return 0, ()
    except PlannerError as error:
        return None, (f"how many messages are in {topic} is not known: {error}",)


def _messages_in(session: QuerySession, topic: str) -> int:
    holders = {broker_queues.broker for broker_queues in session.route(topic).result().topic.brokers}
    asked = [session.topic_stats(broker, topic) for broker in session.brokers if broker.broker in holders]
    if len(asked) < len(holders):
        raise OutOfReachError(f"not all of {', '.join(sorted(holders))} were asked: look at all clusters")
    answers = [future.result() for future in asked]
    return sum(
        max(0, queue_range.max_offset - queue_range.min_offset)
        for stats in answers
        if stats
        for queue_range in stats.queues
    )
