"""What happened to one queue between two samples: one row of the lag history."""

from dataclasses import dataclass
from datetime import datetime

from planner.model.queues import Queue


@dataclass(frozen=True, slots=True)
class QueueInterval:
    """One queue from ``started_at`` to ``ended_at`` (UTC), ``seconds`` long; offsets and ``lag`` as of the end.

    ``arrived`` and ``consumed`` are differences of offsets in messages and may be negative: a topic was
    recreated (``broker_reset``), an offset was set back (``consumer_reset``). Rates are then ``None``, as a
    negative rate means nothing; the difference itself stays. ``is_gap`` marks an interval longer than twice
    the sampling period: its rates are true means, but nothing is known of what happened within it.
    ``consumer_offset`` is ``None`` where the group has committed nothing or no broker reported it, ``consumed`` where
    that holds of either end: unknown, which is not 0.
    ``commit_age_s`` says for how long, at the end, messages have waited without the consumer offset moving;
    ``None`` when it was never observed to move. ``owners`` are the clients that reported the queue as theirs at the
    end, ``moved_from`` those that were last known to own it before, where they were others; empty when nothing moved.
    ``lag_s`` says for how long, at the end, the oldest message not yet consumed has been in the broker, in seconds;
    ``lag_s_is_least`` that it is at least so long, since no sample was taken when the message came. ``None``: lag
    unknown.
    """

    queue: Queue
    started_at: datetime
    ended_at: datetime
    seconds: float
    broker_offset: int
    consumer_offset: int | None
    lag: int | None
    arrived: int
    consumed: int | None
    is_gap: bool
    commit_age_s: float | None
    owners: tuple[str, ...]
    lag_s: float | None = None
    lag_s_is_least: bool = False
    moved_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"an interval of {self.queue} to be longer than {self.seconds} s")
        if self.started_at.tzinfo is None or self.ended_at.tzinfo is None:
            raise ValueError(f"an interval of {self.queue} to carry times with their zone")

    @property
    def broker_reset(self) -> bool:
        """True when the broker's offset went back."""
        return self.arrived < 0

    @property
    def consumer_reset(self) -> bool:
        """True when the consumer's offset went back."""
        return self.consumed is not None and self.consumed < 0

    @property
    def arrival_rate(self) -> float | None:
        """Messages per second that came in, ``None`` after a reset."""
        return None if self.broker_reset else self.arrived / self.seconds

    @property
    def consumption_rate(self) -> float | None:
        """Messages per second that were committed, ``None`` after a reset or where it is unknown."""
        return None if self.consumed is None or self.consumed < 0 else self.consumed / self.seconds
