"""What members subscribe to: it must be the same for all of a RocketMQ group (rocketmq.md 4.4)."""

from collections.abc import Iterator, Mapping

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import percent, some
from planner.diagnosis.split_ownership import split_ownership
from planner.model.queues import MessageQueue, Queue, message_queues
from planner.simulation.rocketmq.ownership import MemberView, ownership
from planner.text.words import counted


def different_topics(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that subscribe different topics.

    A topic's queues are divided over the whole group, also over members that do not subscribe it: their shares have
    no owner. Each heartbeat replaces the broker's table, which notifies all members again and again.
    """
    if not evidence.has_owners:
        return
    by_client = {member.client_id: member.data_topics for member in evidence.rocketmq_members}
    silent = sorted(client for client, topics in by_client.items() if topics is None)
    if silent:
        yield Gap(f"{counted(len(silent), 'member')} did not report what they subscribe to: {some(silent)}")
    subscriptions = {client: topics for client, topics in by_client.items() if topics is not None}
    if len(set(subscriptions.values())) < 2:
        return
    orphans = _orphans(evidence, subscriptions) if not silent else []
    queues = _queues_of(evidence, {topic for topics in subscriptions.values() for topic in topics})
    by_topics: dict[tuple[str, ...], list[str]] = {}
    for client, topics in sorted(subscriptions.items()):
        by_topics.setdefault(topics, []).append(client)
    lost = f"{percent(len(orphans) / len(queues))} of the queues belong to nobody: " if orphans and queues else ""
    yield Symptom(
        severity=Severity.ERROR,
        title=f"Members subscribe to different topics ({counted(len(by_topics), 'set')})",
        evidence=(
            *(f"{some(clients)}: {some(topics) or 'no topic'}" for topics, clients in list(by_topics.items())[:5]),
            *([f"owned by nobody: {some(orphans)}"] if orphans else []),
        ),
        consequence=f"{lost}{split_ownership(evidence, {}, orphans).consequence}. Every heartbeat of one set replaces "
        "the other at the broker, so the group rebalances every few seconds",
        advice="give each set of topics a consumer group of its own, or make all members subscribe to all topics",
        about=(*evidence.clients, *map(str, orphans)),
    )


def _orphans(evidence: GroupEvidence, subscriptions: Mapping[str, tuple[str, ...]]) -> list[Queue]:
    """Return the queues that stay without owner, by computation where that is possible, else as it is now."""
    queues = _queues_of(evidence, {topic for topics in subscriptions.values() for topic in topics})
    if evidence.strategy is None:
        return [queue for queue in queues if not evidence.owners.get(queue)] if not evidence.silent else []
    strategy, members = evidence.strategy, evidence.clients
    views = [
        MemberView(client, strategy, tuple(queue for queue in queues if queue.topic in topics), members)
        for client, topics in subscriptions.items()
    ]
    return list(ownership(views).orphans)


def _queues_of(evidence: GroupEvidence, topics: set[str]) -> list[MessageQueue]:
    return [queue for queue in message_queues(evidence.queues) if queue.topic in topics]


def different_tags(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that subscribe one topic with different expressions.

    The broker keeps one entry for each topic, whichever version came last, and filters everybody's queues by it:
    messages that only the others wanted are skipped, and the offset goes past them.
    """
    if evidence.is_broadcasting:
        return
    by_topic: dict[str, dict[str, list[str]]] = {}
    for member in evidence.rocketmq_members:
        for subscription in member.subscriptions or ():
            if not subscription.topic.startswith("%RETRY%"):
                by_topic.setdefault(subscription.topic, {}).setdefault(
                    f"{subscription.kind} {subscription.expression}", []
                ).append(member.client_id)
    for topic, by_expression in sorted(by_topic.items()):
        if len(by_expression) > 1:
            yield _split_topic(evidence, topic, by_expression)


def _split_topic(evidence: GroupEvidence, topic: str, by_expression: Mapping[str, list[str]]) -> Symptom:
    queues = [queue for queue in evidence.queues if queue.topic == topic]
    members = sum(len(clients) for clients in by_expression.values())
    most = max(len(clients) for clients in by_expression.values())
    return Symptom(
        severity=Severity.ERROR,
        title=f"Members filter topic {topic} by {len(by_expression)} different expressions",
        evidence=tuple(f"{expression}: {some(clients)}" for expression, clients in sorted(by_expression.items())),
        consequence=f"the broker keeps one of them at a time and filters all {counted(len(queues), 'queue')} by it: "
        f"at any time {members - most} or more of {counted(members, 'member')} are not served, "
        "and messages that only they want are skipped for good",
        advice="give each expression a consumer group of its own, or subscribe to all tags (TagA || TagB) in every "
        "member and choose in the listener",
        about=tuple(sorted(client for clients in by_expression.values() for client in clients)),
    )
