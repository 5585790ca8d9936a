"""What is predicted for one candidate count."""

from dataclasses import dataclass

from planner.model.queues import Queue


@dataclass(frozen=True, slots=True)
class ConsumerLoad:
    """What one consumer would carry.

    ``arrival_rate`` is the upper rate of its queues in messages per second, ``utilisation`` that rate over its
    capacity (1.0 is all it can do), ``lag`` the messages waiting in its queues. ``wait_s`` is how long a
    message that arrives now waits behind them, ``drain_s`` how long until they are gone; ``drain_s`` is
    ``None`` when the consumer does not keep up, and every figure is ``None`` when what it rests on is unknown.
    """

    client: str
    queues: int
    arrival_rate: float | None
    utilisation: float | None
    lag: int | None
    wait_s: float | None
    drain_s: float | None


@dataclass(frozen=True, slots=True)
class OwnedQueue:
    """A queue with its predicted owner; ``None`` when nobody would own it."""

    queue: Queue
    owner: str | None


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """The simulated result of running ``count`` consumers under ``strategy``.

    ``moved_fewest`` to ``moved_most`` is the exact range of queues that change owner over everything that
    cannot be known beforehand (``unknowns``, in sentences); both are ``None`` where no exact range is known.
    ``owners`` shows one such case, the one with the fewest moves for a leave, new clients last for a join.
    ``utilisation``, ``wait_s`` and ``drain_s`` are the worst of all consumers; ``keeps_up`` is ``None`` when
    unknown. ``hot_queue`` is the queue with the largest upper rate, ``hot_utilisation`` what it alone takes of
    the consumer that owns it: no count can get below it.
    """

    count: int
    strategy: str
    is_current: bool
    is_useful: bool
    largest_share: int
    moved_fewest: int | None
    moved_most: int | None
    utilisation: float | None
    keeps_up: bool | None
    wait_s: float | None
    drain_s: float | None
    hot_queue: Queue | None
    hot_utilisation: float | None
    loads: tuple[ConsumerLoad, ...]
    owners: tuple[OwnedQueue, ...]
    unknowns: tuple[str, ...]

    @property
    def lag(self) -> int | None:
        """Messages waiting in all owned queues, ``None`` as soon as one lag is unknown."""
        known = [load.lag for load in self.loads if load.lag is not None]
        return sum(known) if len(known) == len(self.loads) else None
