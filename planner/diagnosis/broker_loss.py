"""Whether the present members carry the load without any one of the brokers (N-1), and how long the backlog is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from planner.allocation.group import allocate_group
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import rate, some, verb
from planner.model.queues import Queue, message_queues
from planner.snapshot.capacity import known_capacity
from planner.text.words import counted, duration, number

OUTAGE_S = 1800.0
"""The outage whose backlog is shown: half an hour, in which a broker is replaced."""
NEEDED_S = 60.0
"""A watch of so many seconds shows rates that are no accident of a single sample."""
UPPER = 3
"""From so many samples on, the largest rate between two of them is the upper rate; before, there is only the mean."""


@dataclass(frozen=True, slots=True)
class _Loss:
    """What one broker's loss does: messages per second of each member, and what the overloaded ones cannot do."""

    broker: str
    loads: Mapping[str, float]
    capacity: float

    @property
    def overloaded(self) -> dict[str, float]:
        """Members that get more than they can do, with what is too much for them in a second."""
        return {member: load - self.capacity for member, load in self.loads.items() if load > self.capacity}

    @property
    def growth(self) -> float:
        """Messages per second by which the backlog grows."""
        return sum(self.overloaded.values())


def broker_loss(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that get more than they can do once a broker is gone: producers send all of it to the others.

    Judged at the largest rate between two samples. Every queue that is left keeps its part of its topic.
    """
    names = sorted({queue.broker for queue in message_queues(evidence.queues)})
    if len(names) < 2 or not evidence.has_owners:
        return
    if evidence.is_moving or evidence.strategy is None:
        yield Gap("who would own the queues that are left is unknown: " + _why_unowned(evidence))
        return
    rates = _upper_rates(evidence)
    if rates is None:
        yield Gap(f"what comes into each queue is unknown; a longer watch shows it: --watch {NEEDED_S:.0f}")
        return
    capacity = known_capacity(
        [interval for of_queue in evidence.intervals.values() for interval in of_queue], evidence.members
    )
    if capacity is None or capacity.is_lower_bound:
        yield Gap("what one member can do is unknown: none was busy, and none reports how long its calls take")
        return
    losses = [_loss(evidence, name, rates, capacity.sure_messages_per_s) for name in names]
    worst = max(losses, key=lambda loss: loss.growth)
    if worst.growth > 0 and not _is_overloaded(evidence, rates, capacity.sure_messages_per_s):
        yield _symptom(evidence, [loss for loss in losses if loss.growth > 0], worst, sum(rates.values()))


def _why_unowned(evidence: GroupEvidence) -> str:
    return "a rebalance may be under way" if evidence.is_moving else "the allocation strategy is not known"


def _upper_rates(evidence: GroupEvidence) -> Mapping[Queue, float] | None:
    """Return messages per second into each queue, at the largest rate of the whole group; ``None`` where unknown."""
    mean = evidence.arrival_rates
    if any(queue not in mean for queue in evidence.queues):
        return None
    total = sum(mean[queue] for queue in evidence.queues)
    rate_by_start: dict[object, float] = {}
    for queue in evidence.queues:
        for interval in evidence.intervals[queue]:
            if interval.seconds > 0:
                rate_by_start[interval.started_at] = (
                    rate_by_start.get(interval.started_at, 0.0) + interval.arrived / interval.seconds
                )
    upper = max(rate_by_start.values()) if len(rate_by_start) >= UPPER else total
    factor = upper / total if total else 1.0
    return {queue: mean[queue] * factor for queue in evidence.queues}


def _loss(evidence: GroupEvidence, broker: str, rates: Mapping[Queue, float], capacity: float) -> _Loss:
    left = [queue for queue in evidence.queues if queue.place[-1] != broker]
    return _Loss(broker, _loads(evidence, left, _carried_rates(evidence.queues, left, rates)), capacity)


def _carried_rates(
    queues: Sequence[Queue], left: Sequence[Queue], rates: Mapping[Queue, float]
) -> Mapping[Queue, float]:
    """Return what comes into the queues that are left: all of their topic, each by its part of it.

    Where nothing came into those of a topic before, each gets as much as the others.
    """
    total = {topic: sum(rates[queue] for queue in of_topic) for topic, of_topic in _by_topic(queues)}
    stays = {topic: sum(rates[queue] for queue in of_topic) for topic, of_topic in _by_topic(left)}
    many = Counter(queue.topic for queue in left)
    return {
        queue: total[queue.topic] * (rates[queue] / stays[queue.topic] if stays[queue.topic] else 1 / many[queue.topic])
        for queue in left
    }


def _by_topic(queues: Sequence[Queue]) -> list[tuple[str, list[Queue]]]:
    return [(topic, list(group)) for topic, group in groupby(sorted(queues), key=lambda queue: queue.topic)]


def _loads(evidence: GroupEvidence, queues: Sequence[Queue], rates: Mapping[Queue, float]) -> Mapping[str, float]:
    """Return what comes to each member in a second when they own these queues by the group's strategy."""
    assert evidence.strategy is not None
    known = message_queues(queues)
    owned = allocate_group(evidence.strategy, known, evidence.clients, evidence.group).answer()
    return {client: sum(rates[queue] for queue in owned[client] if queue in rates) for client in evidence.clients}


def _is_overloaded(evidence: GroupEvidence, rates: Mapping[Queue, float], capacity: float) -> bool:
    """Return whether some member gets too much already: other checks speak of that."""
    return any(load > capacity for load in _loads(evidence, evidence.queues, rates).values())


def _symptom(evidence: GroupEvidence, losses: Sequence[_Loss], worst: _Loss, total: float) -> Symptom:
    members, count = len(worst.overloaded), len(evidence.members)
    waiting = worst.growth * OUTAGE_S
    # Once the broker is back the load is as before, and the members have to spare what they cannot fill now.
    spare = min(worst.capacity - total / count, worst.capacity) if count else 0.0
    gone = f", gone {duration(waiting / (spare * count))} after it is back at the earliest" if spare > 0 else ""
    return Symptom(
        severity=Severity.WARNING,
        title=f"Without one broker ({some(loss.broker for loss in losses)}) {members} of {counted(count, 'member')} "
        f"{verb(members, 'gets', 'get')} more than {verb(members, 'it', 'they')} can do",
        evidence=(
            f"{rate(total)} come in at most, and go to the other brokers when one is gone",
            f"without {worst.broker}: {some(f'{member} {rate(worst.loads[member])}' for member in worst.overloaded)}; "
            f"one member does {rate(worst.capacity)}",
        ),
        consequence=f"while {worst.broker} is down the backlog grows by {rate(worst.growth)}: in half an hour "
        f"{number(waiting)} messages{gone}",
        advice=f"planner simulate --without-broker {worst.broker} says which count carries the load without it",
        about=tuple(worst.overloaded),
    )
