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
class LongTail:
    """A ``share`` of all trials that lies far above the others, in seconds.

    ``low`` to ``high`` is the middle 90 % of the others, ``late`` to ``worst`` that of these few. What makes a tail:
    ``planner.forecast.common.tails``.
    """

    share: float
    low: float
    high: float
    late: float
    worst: float


@dataclass(frozen=True, slots=True)
class Seconds:
    """The middle 90 % of all trials and their median, in seconds; ``tail`` where a few of them lie far above."""

    p05: float
    p50: float
    p95: float
    tail: LongTail | None = None


@dataclass(frozen=True, slots=True)
class Messages:
    """The middle 90 % of all trials and their median, in whole messages."""

    p05: int
    p50: int
    p95: int


@dataclass(frozen=True, slots=True)
class Transition:
    """What going from the present group to a candidate costs, in the words of ``planner forecast``.

    ``pause_s`` is the longest pause of a queue that moves, ``stall_s`` of one that stays; ``duplicates`` and
    ``burst_messages`` are sums over all queues; ``settle_s`` is when every queue is delivered by its final owner,
    ``drained_s`` when no backlog is left, ``None`` where some consumer cannot keep up.
    """

    pause_s: Seconds | None
    stall_s: Seconds | None
    duplicates: Messages
    burst_messages: Messages
    settle_s: Seconds | None
    drained_s: Seconds | None


NO_SECONDS, NO_MESSAGES = Seconds(0.0, 0.0, 0.0), Messages(0, 0, 0)
NO_TRANSITION = Transition(NO_SECONDS, NO_SECONDS, NO_MESSAGES, NO_MESSAGES, NO_SECONDS, None)
"""The group stays as it is: nothing moves, so nothing pauses; ``drain_s`` of the outcome tells of its backlog."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The middle 90 % of what was drawn, both bounds drawn themselves."""

    p05: float
    p95: float


@dataclass(frozen=True, slots=True)
class DrawnIds:
    """What may come of clients that are not known yet, over so many ``draws`` of their ids.

    ``moved`` and ``largest_share`` are queues, ``utilisation`` is the busiest consumer's, ``None`` without capacity.
    The outcome that carries it shows the draw whose busiest load is that of ``percentile``. ``rooms`` has the machine
    room that was taken for each new client of that draw, where rooms count.
    """

    draws: int
    percentile: float
    moved: Interval
    largest_share: Interval
    utilisation: Interval | None
    rooms: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DrawnAnew:
    """A settled group whose members' ids are all drawn, as a rollout makes all of them anew.

    Of the draw that the policy's percentile of all are no busier than: ``busiest`` is its busiest consumer's messages
    per second, ``largest_share`` the most queues of one consumer. ``moved`` queues come from the group before,
    ``mean_moved`` on average.
    """

    busiest: float
    largest_share: int
    moved: Interval
    mean_moved: float


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """The simulated result of running ``count`` pods with ``members_per_pod`` consumers each under ``strategy``.

    ``moved_fewest`` to ``moved_most`` is the exact range of queues that change owner over everything that
    cannot be known beforehand (``unknowns``, in sentences); both are ``None`` where no exact range is known. Where
    clients' ids decide, and were drawn, it is the middle 90 % of all draws, and ``drawn`` says more of them.
    ``owners`` shows one such case, the one with the fewest moves for a leave, new clients last for a join.
    ``utilisation``, ``wait_s`` and ``drain_s`` are the worst of all consumers; ``keeps_up`` is ``None`` when
    unknown. ``hot_queue`` is the queue with the largest upper rate, ``hot_utilisation`` what it alone takes of
    the consumer that owns it: no count can get below it. ``transition`` is what the change costs, ``None`` where that
    is not known; ``unknowns`` then says why.
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
    transition: Transition | None = None
    members_per_pod: int = 1
    drawn: DrawnIds | None = None

    @property
    def members(self) -> int:
        """Consumers of the group at this count: those of all pods together."""
        return len(self.loads)

    @property
    def lag(self) -> int | None:
        """Messages waiting in all owned queues, ``None`` as soon as one lag is unknown."""
        known = [load.lag for load in self.loads if load.lag is not None]
        return sum(known) if len(known) == len(self.loads) else None
