"""What routes and offsets of the group's topics show: queues that no member can read, brokers in trouble, failures."""

from collections.abc import Iterable, Iterator

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import percent, rate, some, verb
from planner.diagnosis.waiting import waiting
from planner.model.queues import RETRY_PREFIX, MessageQueue, Queue, message_queues
from planner.model.routes import PERMISSION_WRITE, BrokerQueues, TopicRoute
from planner.model.samples import QueueOffsets
from planner.text.words import counted, duration


def _data_routes(evidence: GroupEvidence) -> list[TopicRoute]:
    subscribed = evidence.subscribers
    return [
        route
        for route in evidence.routes
        if not route.topic.startswith(RETRY_PREFIX) and (not subscribed or route.topic in subscribed)
    ]


def _is_writable(broker_queues: BrokerQueues) -> bool:
    return bool(broker_queues.permission & PERMISSION_WRITE)


def unread_queues(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Queues that producers write and consumers do not see: writeQueueNums above readQueueNums (rocketmq.md 1.2)."""
    for route in _data_routes(evidence):
        open_brokers = [
            broker_queues
            for broker_queues in route.brokers
            if broker_queues.is_readable and _is_writable(broker_queues)
        ]
        unread = [
            MessageQueue(route.topic, broker_queues.broker, number)
            for broker_queues in open_brokers
            for number in range(broker_queues.read_queues, broker_queues.write_queues)
        ]
        written = sum(broker_queues.write_queues for broker_queues in open_brokers)
        if unread:
            yield Symptom(
                severity=Severity.ERROR,
                title=f"Topic {route.topic}: {counted(len(unread), 'queue')} {verb(len(unread), 'is', 'are')} written "
                "and never read",
                evidence=tuple(
                    f"{broker_queues.broker}: {broker_queues.write_queues} write queues, "
                    f"{broker_queues.read_queues} read queues"
                    for broker_queues in open_brokers
                    if broker_queues.write_queues > broker_queues.read_queues
                ),
                consequence=f"{percent(len(unread) / written)} of what producers send lands where no group reads, and "
                "the lag does not show it",
                advice="raise readQueueNums to writeQueueNums (mqadmin updateTopic); to shrink, lower the write "
                "queues first and wait until the others are empty",
                about=tuple(map(str, unread)),
            )


def empty_queues(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Queues that consumers own and producers never write: readQueueNums above writeQueueNums, nothing left in them."""
    for route in _data_routes(evidence):
        spare = [
            MessageQueue(route.topic, broker_queues.broker, number)
            for broker_queues in route.brokers
            if broker_queues.is_readable and _is_writable(broker_queues)
            for number in range(broker_queues.write_queues, broker_queues.read_queues)
        ]
        empty = [queue for queue in spare if queue in evidence.offsets and evidence.offsets[queue].lag == 0]
        if empty and len(empty) == len(spare):
            total = sum(broker_queues.read_queues for broker_queues in route.brokers if broker_queues.is_readable)
            yield Symptom(
                severity=Severity.NOTICE,
                title=f"Topic {route.topic}: {counted(len(empty), 'read queue')} {verb(len(empty), 'is', 'are')} empty "
                "for good",
                evidence=(f"read, but not written: {some(empty)}",),
                consequence=f"{percent(len(empty) / total)} of the topic's queues carry nothing, so members that own "
                "them have less to do than allocation assumes",
                advice="lower readQueueNums to writeQueueNums once all groups of the topic have drained them",
                about=tuple(map(str, empty)),
            )


def broker_permissions(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Brokers that take no new messages of a topic (perm 4), or do not give out what they have (perm 2)."""
    shut: dict[str, list[str]] = {}
    unreadable: dict[str, list[str]] = {}
    for route in _data_routes(evidence):
        for broker_queues in route.brokers:
            if not broker_queues.is_readable:
                unreadable.setdefault(broker_queues.broker, []).append(route.topic)
            elif not _is_writable(broker_queues):
                shut.setdefault(broker_queues.broker, []).append(route.topic)
    for broker, topics in sorted(shut.items()):
        queues = [queue for queue in evidence.queues if queue.broker == broker]
        yield Symptom(
            severity=Severity.WARNING,
            title=f"Broker {broker} is read-only for {some(topics)}",
            evidence=(
                f"permission without write: {counted(len(queues), 'queue')} of the group's {len(evidence.queues)}",
            ),
            consequence=f"no new messages come there; {waiting(evidence, queues)}, and its "
            "queues count in the allocation although they will be empty",
            advice="if it is being drained, remove it only when no group has messages left there, those in flight "
            "behind a proxy included; else give it back its write permission",
            about=tuple(map(str, queues)),
        )
    for broker, topics in sorted(unreadable.items()):
        yield Symptom(
            severity=Severity.ERROR,
            title=f"Broker {broker} does not let {some(topics)} be read",
            evidence=("its permission lacks read, so consumers do not see its queues",),
            consequence="what lies there is consumed by nobody",
            advice="give the topic its read permission back on that broker (mqadmin updateTopic -p 6)",
            about=(broker,),
        )


def broker_gone(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Brokers of the group's topics that are not registered any more, or answered nothing."""
    registered = {broker.broker for broker in evidence.newest.routes.brokers}
    before = {
        broker_queues.broker
        for sample in evidence.samples
        for route in sample.routes.topics
        for broker_queues in route.brokers
    }
    now = {broker_queues.broker for route in evidence.newest.routes.topics for broker_queues in route.brokers}
    mute = {listing.broker for listing in evidence.newest.listed if listing.clients is None} & now
    owned = {queue.broker for queue in message_queues(evidence.owners)} if now else set()
    for broker in sorted((before - now) | (now - registered) | (owned - now) | mute):
        yield Symptom(
            severity=Severity.ERROR,
            title=f"Broker {broker} is gone" if broker not in mute else f"Broker {broker} does not answer",
            evidence=(_where_it_was(evidence, broker, mute),),
            consequence=_lost_with(evidence, broker),
            advice="see whether it runs and reaches the name server; its messages are read again once it is back",
            about=(broker,),
        )


def _where_it_was(evidence: GroupEvidence, broker: str, mute: set[str]) -> str:
    if broker in mute:
        return "registered at the name server, but it reported neither members nor offsets"
    if any(
        broker == broker_queues.broker for route in evidence.newest.routes.topics for broker_queues in route.brokers
    ):
        return "in the route of the group's topics, but not registered at the name server"
    if any(queue.broker == broker for queue in evidence.owners):
        return "members own queues there, and the name server does not know it any more"
    return "in the routes of an earlier sample, and not of the last one"


def _lost_with(evidence: GroupEvidence, broker: str) -> str:
    queues = {
        queue
        for sample in evidence.samples
        for queue in (*sample.routes.read_queues, *sample.owners)
        if queue.broker == broker and not queue.is_retry
    }
    flowing = [evidence.arrival_rates[queue] for queue in queues if queue in evidence.arrival_rates]
    flow = f" ({rate(sum(flowing))} until now)" if flowing and sum(flowing) > 0 else ""
    still = f"{counted(len(queues), 'queue')} of the group {verb(len(queues), 'stands', 'stand')} still{flow}"
    return f"{still}, and members share out the others anew"


def slave_serves(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Brokers without a master: a slave serves reads, producers cannot write there."""
    at_work = {queue.broker for queue in evidence.queues}
    for broker in evidence.newest.routes.brokers:
        if not broker.is_master and broker.broker in at_work:
            queues = [queue for queue in evidence.queues if queue.broker == broker.broker]
            yield Symptom(
                severity=Severity.ERROR,
                title=f"Broker {broker.broker} has no master: its slave serves",
                evidence=(f"only {broker.address} is registered, and it is a slave",),
                consequence=f"{counted(len(queues), 'queue')} {verb(len(queues), 'takes', 'take')} no new messages; "
                "commits to a slave are lost when the master returns, so messages may come twice",
                advice="bring the master back, or promote the slave (controller mode, or brokerRole by hand)",
                about=tuple(map(str, queues)),
            )


def static_topics(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Static topics (5.x): their queues are mapped ones that plain routes do not show (rocketmq.md 1.7)."""
    names = [route.topic for route in _data_routes(evidence) if route.is_static]
    if names:
        yield Symptom(
            severity=Severity.NOTICE,
            title=f"{counted(len(names), 'static topic')}: {some(names)}",
            evidence=("the route carries a queue mapping",),
            consequence="the queues shown here are those of the brokers, not the mapped ones that members share out",
            advice="judge this group by its members' own queues; the planner does not simulate static topics",
        )


def left_topics(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Topics that the group has committed on and nobody subscribes any more: their lag grows for ever.

    A queue that never held a message says nothing: its commit is the 0 where everybody begins.
    """
    subscribed = evidence.subscribers
    if not subscribed:
        return
    left: dict[str, int] = {}
    for queue, entry in evidence.offsets.items():
        is_left = not queue.is_retry and queue.topic not in subscribed and entry.broker_offset > 0
        if is_left and entry.consumer_offset is not None:
            left[queue.topic] = left.get(queue.topic, 0) + (entry.lag or 0)
    for topic, lag in sorted(left.items()):
        yield Symptom(
            severity=Severity.NOTICE,
            title=f"Topic {topic} was read once, and nobody subscribes to it now",
            evidence=("it has commits of the group, and no member names it",),
            consequence=f"{counted(lag, 'message')} count as lag of the group in many tools, and no consumer will ever "
            "take them",
            advice="take it out of the lag that scales the group; if it should be consumed, subscribe to it again",
        )


def expired_unread(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Commits before the oldest message that is still stored: retention removed what nobody had consumed."""
    gone = {queue: by for queue, entry in evidence.offsets.items() if (by := _removed_unread(entry)) > 0}
    if gone:
        total = sum(gone.values())
        yield Symptom(
            severity=Severity.ERROR,
            title=f"Messages were removed before they were consumed, on {counted(len(gone), 'queue')}",
            evidence=(some(f"{queue}: {by}" for queue, by in sorted(gone.items(), key=str)),),
            consequence=f"{counted(total, 'message')} {verb(total, 'is', 'are')} lost for this group",
            advice="keep messages longer than the group may be behind (fileReservedTime, retention.ms)",
            about=tuple(map(str, gone)),
        )


def _removed_unread(entry: QueueOffsets) -> int:
    """Return how many messages between the commit and the oldest one are gone; 0 where either is not known."""
    if entry.first_offset is None or entry.consumer_offset is None:
        return 0
    return max(0, entry.first_offset - entry.consumer_offset)


def beyond_the_end(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Commits beyond the newest message: the topic was recreated, or offsets were set by hand."""
    ahead = {
        queue: entry.consumer_offset - entry.broker_offset
        for queue, entry in evidence.offsets.items()
        if entry.consumer_offset is not None and entry.consumer_offset > entry.broker_offset and not queue.is_retry
    }
    always = {
        queue: by
        for queue, by in ahead.items()
        if all(_is_ahead(sample.offsets, queue) for sample in evidence.recent) and len(evidence.recent) > 1
    }
    if always:
        yield Symptom(
            severity=Severity.ERROR,
            title=f"Commits lie beyond the end of {counted(len(always), 'queue')}",
            evidence=(some(f"{queue} by {by}" for queue, by in sorted(always.items(), key=str)),),
            consequence=f"up to {counted(sum(always.values()), 'new message')} may be skipped before consumption "
            "starts, and lag reads 0 until then",
            advice="see whether the topic was recreated, or its broker lost its newest messages; set the group's "
            "offsets only once you know that none of its consumers runs, those behind a proxy included",
            about=tuple(map(str, always)),
        )


def _is_ahead(offsets: Iterable[QueueOffsets], queue: Queue) -> bool:
    return any(
        entry.queue == queue and entry.consumer_offset is not None and entry.consumer_offset > entry.broker_offset
        for entry in offsets
    )


def retries(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Messages that fail and come again through ``%RETRY%`` (10 s, 30 s, 1 min ... 2 h later, 16 times)."""
    if not evidence.members:
        return
    if len(evidence.samples) < 2:
        yield Gap("one sample gives no rates: watch for some seconds")
        return
    arrived = sum(
        max(0, interval.arrived)
        for queue, of_queue in evidence.intervals.items()
        if queue.is_retry
        for interval in of_queue
    )
    failing = sum(
        figure.failed_per_s for member in evidence.rocketmq_members if member.tuning for figure in member.tuning.figures
    )
    if not arrived and not failing:
        return
    good = sum(f.ok_per_s for member in evidence.rocketmq_members if member.tuning for f in member.tuning.figures)
    share = f", {percent(failing / (failing + good))} of all calls" if failing + good > 0 else ""
    yield Symptom(
        severity=Severity.WARNING,
        title="Messages fail and are retried",
        evidence=(
            f"{counted(arrived, 'message')} came into the retry queues within {duration(evidence.watched_s)}",
            f"members report {rate(failing)} failed within the last minute{share}",
        ),
        consequence=f"each failing message is consumed up to 17 times over nearly 5 hours, then it is dead; in the "
        f"retry queues {waiting(evidence, evidence.retry_queues)}",
        advice="see the listener's errors; a message that can never succeed should be stored away and acknowledged",
        about=tuple(map(str, evidence.retry_queues)),
    )


def dead_letters(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Messages in ``%DLQ%``: given up after the last retry, consumed by nobody."""
    count = evidence.newest.dead_letters
    if count is None:
        yield Gap("the brokers did not report how many messages are in the dead-letter topic")
        return
    if not count:
        return
    before = evidence.samples[0].dead_letters
    grown = count - before if before is not None else 0
    yield Symptom(
        severity=Severity.ERROR if grown > 0 else Severity.WARNING,
        title=f"{counted(count, 'message')} {verb(count, 'was', 'were')} given up (dead letters)",
        evidence=(
            f"topic %DLQ%{evidence.group}"
            + (f", {grown} more within {duration(evidence.watched_s)}" if grown > 0 else ""),
        ),
        consequence=f"{counted(count, 'message')} will not be consumed, and {verb(count, 'is', 'are')} removed with "
        "the broker's retention",
        advice="look at them (mqadmin queryMsgById, dashboard), mend the cause, and send them again",
    )
