"""A Kafka group: no broker knows how its members are set up, so the policy's ``spec.timing`` states it."""

from collections.abc import Iterator
from dataclasses import replace

from planner.allocation import fields
from planner.errors import BadInputError
from planner.forecast.common.changes import GRACEFUL
from planner.forecast.common.request_fields import version
from planner.forecast.kafka.request.changes import Change, Join, Leave, Member, RollingUpdate, StrategyChange
from planner.forecast.kafka.request.completion import assignor_of, checked, release_of, settings_for
from planner.forecast.kafka.request.refusals import check_knows_consumer
from planner.forecast.kafka.request.request import OF_PROTOCOL, ForecastRequest, Partition
from planner.forecast.kafka.request.settings import CLASSIC, CONSUMER
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.snapshot import GroupSnapshot, KafkaTiming
from planner.simulation.bounds import at, fastest_and_slowest, leaving, rate_and_lag, refuse_two_changes
from planner.simulation.kafka.mixed_partitions import own_options, partition_racks
from planner.simulation.newcomers import known_newcomers
from planner.simulation.outcome import CandidateOutcome

ROLL_S = 10.0
"""Between two members of a roll to another assignor, as long as nobody plans it."""

_DECISIVE = {
    CLASSIC: ("session.timeout.ms", "heartbeat.interval.ms", "enable.auto.commit", "auto.commit.interval.ms"),
    CONSUMER: ("group.consumer.heartbeat.interval.ms", "enable.auto.commit", "auto.commit.interval.ms"),
}
"""Settings that decide most of a forecast: where the policy does not say them, an outcome says so."""


def request(
    outcome: CandidateOutcome, snapshot: GroupSnapshot, end: int, change: Change | None = None
) -> ForecastRequest:
    """Return the request at one end of everything that is known as an interval only.

    ``change`` is what happens, if not the change to ``outcome``. Raises ``BadInputError`` with what is not known and
    has no interval either.
    """
    timing = snapshot.timing
    if timing is None:
        raise BadInputError(
            "no broker knows version, settings and time per record of a Kafka group's clients: state them in the "
            "policy's spec.timing"
        )
    partitions, members = _partitions(snapshot, end), tuple(_member(member, snapshot) for member in snapshot.members)
    record_s, protocol = _record_s(timing, snapshot, end), _protocol(snapshot)
    topics = members[0].topics if members else frozenset(partitions)
    asked = _change(outcome, snapshot, topics) if change is None else _with_newcomers(change, len(members), topics)
    (client, is_java), broker = release_of(timing.client), version(timing.broker, "versions.broker")
    if protocol == CONSUMER:
        check_knows_consumer("protocol", protocol, client, broker, is_java=is_java)
    name = fields.text(snapshot.strategy, "strategy", "an assignor's name")
    strategy = assignor_of(name, protocol, is_java=is_java, options=snapshot.strategy_options)
    if isinstance(asked, StrategyChange):
        assignor_of(asked.to, CONSUMER if asked.to in OF_PROTOCOL[CONSUMER] else CLASSIC, is_java=is_java)
    settings = settings_for(asked, dict(timing.settings), protocol, client, broker, is_java=is_java)
    racks = partition_racks(snapshot, snapshot.strategy or "")
    return checked(
        ForecastRequest(
            client,
            is_java,
            broker,
            protocol,
            strategy,
            partitions,
            racks,
            members,
            record_s,
            settings,
            timing.commits_on_revoke,
            None,
            asked,
            assignor_options=own_options(snapshot, strategy),
        )
    )


def assumed(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Iterator[str]:
    """Yield in sentences what the forecast of the change takes for granted."""
    stated = dict(snapshot.timing.settings) if snapshot.timing else {}
    silent = [name for name in _DECISIVE[_protocol(snapshot)] if name not in stated]
    if silent:
        yield f"{', '.join(silent)}: taken to be the defaults, as the policy's spec.timing does not say"
    yield "when the group rebalanced last, which sets its heartbeats: sampled from ten seconds to a day ago"
    if outcome.members < len(snapshot.clients):
        yield "whether stopped consumers close in order when they get SIGTERM: taken to be so"
    if outcome.strategy != snapshot.strategy:
        yield f"how fast a rollout switches the assignor: taken to be one member every {ROLL_S:g} s"


def _protocol(snapshot: GroupSnapshot) -> str:
    return CONSUMER if snapshot.strategy in OF_PROTOCOL[CONSUMER] else CLASSIC


def _change(outcome: CandidateOutcome, snapshot: GroupSnapshot, topics: frozenset[str]) -> Change:
    """Return the change: newcomers with unknown ids, a graceful leave of those that would go, or a roll."""
    present, count = snapshot.clients, outcome.members
    refuse_two_changes(outcome, snapshot)
    if outcome.strategy != snapshot.strategy:
        return StrategyChange(outcome.strategy, tuple(present), ROLL_S)
    if count > len(present):
        return Join(_newcomers(outcome, snapshot, topics))
    return Leave(tuple(leaving(outcome, snapshot)), GRACEFUL)


def _with_newcomers(change: Change, count: int, topics: frozenset[str]) -> Change:
    """Return the change; pods that replace others have members whose ids nobody knows yet, and present topics.

    They have other topics where the change says so.
    """
    if not isinstance(change, RollingUpdate) or change.members:
        return change
    return replace(change, members=(Member(None, None, "", topics),) * count)


def _newcomers(outcome: CandidateOutcome, snapshot: GroupSnapshot, topics: frozenset[str]) -> tuple[Member, ...]:
    """Return who joins: by instance id where a StatefulSet's names make it known, else without an id."""
    known = known_newcomers(snapshot, outcome.count)
    if known and all(new.instance for new in known):
        return tuple(Member(None, new.instance, "", topics) for new in known)
    return (Member(None, None, "", topics),) * (outcome.members - len(snapshot.clients))


def _partitions(snapshot: GroupSnapshot, end: int) -> dict[str, tuple[Partition, ...]]:
    """Return the partitions of each topic by their numbers, which leave out none."""
    by_topic: dict[str, list[Partition]] = {}
    for state in sorted(snapshot.data_queues, key=lambda state: state.queue):
        queue = state.queue
        if not isinstance(queue, TopicPartition):
            raise BadInputError(f"queue {queue} is a RocketMQ queue")
        of_topic = by_topic.setdefault(queue.topic, [])
        if queue.number != len(of_topic):
            raise BadInputError(f"partition {len(of_topic)} of topic {queue.topic} is not in the snapshot")
        of_topic.append(Partition(*rate_and_lag(state, end), leader=None))
    return {topic: tuple(partitions) for topic, partitions in by_topic.items()}


def _member(member: KafkaMember, snapshot: GroupSnapshot) -> Member:
    if member.topics is None:
        raise BadInputError(f"member {member.member_id} does not show what it subscribes to")
    owned = [state.queue for state in snapshot.data_queues if state.owner == member.member_id]
    claims = tuple((queue.topic, queue.number) for queue in owned if isinstance(queue, TopicPartition))
    return Member(member.member_id, member.instance_id, member.rack or "", frozenset(member.topics), claims)


def _record_s(timing: KafkaTiming, snapshot: GroupSnapshot, end: int) -> float:
    """Return the time of one record in the poll loop: the policy's, else what the capacity leaves one loop."""
    if timing.record_s is not None:
        return timing.record_s
    capacity = snapshot.capacity
    if capacity is None or capacity.is_lower_bound:
        raise BadInputError(
            "how long one record takes is unknown: no consumer was seen busy; the policy's spec.timing can state it"
        )
    fastest, slowest = fastest_and_slowest(capacity)
    return at(end, (1 / fastest, 1 / slowest))
