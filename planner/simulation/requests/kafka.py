"""A Kafka group: no broker knows how its members are set up, so the policy's ``spec.timing`` states it."""

from collections.abc import Iterator

from planner.errors import BadInputError
from planner.forecast.kafka.request.request import OF_PROTOCOL
from planner.forecast.kafka.request.settings import CLASSIC, CONSUMER
from planner.forecast.trials import Document
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.snapshot import GroupSnapshot, KafkaTiming
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.requests.ends import at, fastest_and_slowest, leaving, rate_and_lag, refuse_two_changes

ROLL_S = 10.0
"""Between two members of a roll to another assignor, as long as nobody plans it."""

_DECISIVE = {
    CLASSIC: ("session.timeout.ms", "heartbeat.interval.ms", "enable.auto.commit", "auto.commit.interval.ms"),
    CONSUMER: ("group.consumer.heartbeat.interval.ms", "enable.auto.commit", "auto.commit.interval.ms"),
}
"""Settings that decide most of a forecast: where the policy does not say them, an outcome says so."""


def request(outcome: CandidateOutcome, snapshot: GroupSnapshot, end: int) -> Document:
    """Return the request at one end of everything that is known as an interval only.

    Raises ``BadInputError`` with what is not known and has no interval either.
    """
    timing = snapshot.timing
    if timing is None:
        raise BadInputError(
            "no broker knows version, settings and time per record of a Kafka group's clients: tell them in the "
            "policy's spec.timing"
        )
    return {
        "system": snapshot.system,
        "versions": {"client": timing.client, "broker": timing.broker},
        "group": snapshot.group,
        "protocol": _protocol(snapshot),
        "strategy": snapshot.strategy,
        "options": {"commit_on_revoke": timing.commits_on_revoke},
        "partitions": _partitions(snapshot, end),
        "members": [_member(member, snapshot) for member in snapshot.members],
        "service_time_s": _record_s(timing, snapshot, end),
        "settings": dict(timing.settings),
        "change": _change(outcome, snapshot),
    }


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


def _change(outcome: CandidateOutcome, snapshot: GroupSnapshot) -> Document:
    """Return the change: newcomers with unknown ids, a graceful leave of those that would go, or a roll."""
    present, count = snapshot.clients, outcome.members
    refuse_two_changes(outcome, snapshot)
    if outcome.strategy != snapshot.strategy:
        return {"kind": "strategy", "to": outcome.strategy, "clients": list(present), "interval_s": ROLL_S}
    if count > len(present):
        return {"kind": "join", "clients": [{"id": None} for _ in range(count - len(present))]}
    return {"kind": "leave", "how": "graceful", "clients": leaving(outcome, snapshot)}


def _partitions(snapshot: GroupSnapshot, end: int) -> dict[str, list[Document]]:
    """Return the partitions of each topic by their numbers, which leave out none."""
    by_topic: dict[str, list[Document]] = {}
    for state in sorted(snapshot.data_queues, key=lambda state: state.queue):
        queue = state.queue
        if not isinstance(queue, TopicPartition):
            raise BadInputError(f"queue {queue} is a RocketMQ queue")
        of_topic = by_topic.setdefault(queue.topic, [])
        if queue.number != len(of_topic):
            raise BadInputError(f"partition {len(of_topic)} of topic {queue.topic} is not in the snapshot")
        of_topic.append(rate_and_lag(state, end))
    return by_topic


def _member(member: KafkaMember, snapshot: GroupSnapshot) -> Document:
    if member.topics is None:
        raise BadInputError(f"member {member.member_id} does not show what it subscribes to")
    owned = [state.queue for state in snapshot.data_queues if state.owner == member.member_id]
    return {
        "id": member.member_id,
        "instance_id": member.instance_id,
        "rack": member.rack,
        "topics": list(member.topics),
        "owned": [[queue.topic, queue.number] for queue in owned if isinstance(queue, TopicPartition)],
    }


def _record_s(timing: KafkaTiming, snapshot: GroupSnapshot, end: int) -> float:
    """Return the time of one record in the poll loop: the policy's, else what the capacity leaves one loop."""
    if timing.record_s is not None:
        return timing.record_s
    capacity = snapshot.capacity
    if capacity is None or capacity.is_lower_bound:
        raise BadInputError(
            "how long one record takes is unknown: no consumer was seen busy; the policy's spec.timing can tell it"
        )
    fastest, slowest = fastest_and_slowest(capacity)
    return at(end, (1 / fastest, 1 / slowest))
