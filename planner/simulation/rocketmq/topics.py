"""A RocketMQ group's data queues by topic: what its members allocate one topic after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from planner.allocation.strategy import Owners, Strategy
from planner.errors import BadInputError
from planner.model.queues import MessageQueue, Queue
from planner.model.snapshot import GroupSnapshot, QueueState


@dataclass(frozen=True, slots=True)
class Topics:
    """The data queues of one snapshot by topic, sorted, as the clients allocate them."""

    states: tuple[tuple[QueueState, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Queues of each topic."""
        return tuple(len(states) for states in self.states)

    @property
    def queues(self) -> list[list[MessageQueue]]:
        """The queues of each topic."""
        return [[_message_queue(state.queue) for state in states] for states in self.states]

    def owners(self, strategy: Strategy, clients: Sequence[str]) -> list[Owners]:
        """Return, for each topic, the position of every queue's owner."""
        return [strategy.owners(queues, clients) for queues in self.queues]


def _message_queue(queue: Queue) -> MessageQueue:
    if isinstance(queue, MessageQueue):
        return queue
    raise BadInputError(f"queue {queue}: found a Kafka partition, expected a RocketMQ queue")


def topics_of(snapshot: GroupSnapshot) -> Topics:
    """Return the snapshot's data queues by topic; ``%RETRY%`` queues carry no planned load and are left out."""
    ordered = sorted(snapshot.data_queues, key=lambda state: state.queue)
    by_topic = groupby(ordered, key=lambda state: state.queue.topic)
    return Topics(tuple(tuple(states) for _, states in by_topic))
