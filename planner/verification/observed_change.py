"""``ObservedChange``: what was observed of a change, in the words of the forecast."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Between:
    """A figure that lies somewhere from ``low`` to ``high``; both are the same where it was observed exactly.

    An unlimited ``high`` is ``math.inf``: at least so much.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"a figure from {self.low} to {self.high}")

    @classmethod
    def exactly(cls, value: float) -> "Between":
        """Return a figure that was observed exactly."""
        return cls(value, value)


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """What was observed of a change; ``None`` is unknown.

    ``pause_seconds`` is the longest pause of a queue that moved, ``stall_seconds`` of one that stayed. ``utilisation``
    is the busiest consumer's share of what it can do, ``wait_seconds`` how long a new message waits. ``is_complete``
    means that waiting longer would show no more.
    """

    moved_queues: Between | None = None
    pause_seconds: Between | None = None
    stall_seconds: Between | None = None
    duplicates: Between | None = None
    settle_seconds: Between | None = None
    drained_seconds: Between | None = None
    utilisation: Between | None = None
    wait_seconds: Between | None = None
    is_complete: bool = False
