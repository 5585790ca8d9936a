"""A poll loop as Kafka's clients run it: work off a batch of one queue, commit it at the next poll, go on."""

from dataclasses import dataclass, field

from planner.model.queues import MessageQueue


@dataclass(slots=True)
class PollLoop:
    """One consumer of ``queues`` queues at ``message_s`` seconds a message, batches of up to ``batch`` of one queue.

    ``rate`` messages per second come into each queue, on top of ``backlog`` that wait in each at the beginning. It
    stands still for ``pause_s`` seconds after ``pause_after_s``. ``offsets`` answers as a broker does, every 5 s.
    """

    queues: int
    message_s: float
    rate: float
    backlog: int = 0
    batch: int = 500
    pause_after_s: float = float("inf")
    pause_s: float = 0.0
    _commits: dict[int, list[tuple[float, int]]] = field(default_factory=dict)

    def run(self, until_s: float) -> "PollLoop":
        """Work until ``until_s`` and return the loop itself."""
        position = dict.fromkeys(range(self.queues), 0)
        self._commits = {queue: [(0.0, 0)] for queue in position}
        clock, turn = 0.0, 0
        while clock < until_s:
            if clock >= self.pause_after_s:
                clock, self.pause_after_s = clock + self.pause_s, float("inf")
            queue = next(
                (
                    q % self.queues
                    for q in range(turn, turn + self.queues)
                    if self._end(clock) > position[q % self.queues]
                ),
                None,
            )
            if queue is None:
                clock += 0.01
                continue
            taken = min(self.batch, self._end(clock) - position[queue])
            clock += taken * self.message_s
            position[queue] += taken
            self._commits[queue].append((clock, position[queue]))
            turn = queue + 1
        return self

    def offsets(self, queue: MessageQueue, number: int) -> tuple[int, int | None]:
        """Return the end and the committed offset of a queue at sample ``number``."""
        now = 5.0 * number
        which = queue.queue_id * 2 + (queue.broker == "broker-b")
        return self._end(now), max(offset for at, offset in self._commits[which] if at <= now)

    def _end(self, at: float) -> int:
        return self.backlog + int(self.rate * at)
