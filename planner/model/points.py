"""A group's past as metrics show it: figures of the whole group, and of single queues only where metrics have them."""

from dataclasses import dataclass
from datetime import datetime

from planner.model.intervals import QueueInterval
from planner.model.times import check_time


@dataclass(frozen=True, slots=True)
class GroupPoint:
    """One group, or one of its topics, over a span that is ``seconds`` long and ends at ``at`` (UTC).

    Rates are messages per second over the span; ``lag`` in messages, ``lag_s`` (the longest wait) in seconds and
    ``members`` are as of its end. ``None`` is unknown: the series was not there, was not whole, or a counter began
    anew within the span. ``is_gap`` says that scrapes are missing in it. ``topic`` is ``None`` for the whole group.
    """

    at: datetime
    seconds: float
    arrival_rate: float | None
    consumption_rate: float | None
    lag: int | None
    lag_s: float | None
    members: int | None
    is_gap: bool
    topic: str | None = None

    def __post_init__(self) -> None:
        check_time("a point of a group's past", self.at)


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """What metrics show of one group's past; ``source`` names server kind and family (``prometheus/kafka-exporter``).

    ``intervals`` are of single queues where the family distinguishes them, else there is ``by_topic``: points of each
    topic. ``points`` are the whole group's. All are in order of time. ``period_s`` is the time between two readings:
    the step, or the scrape interval where that is longer. ``refresh_s`` is how old a value may have been when it was
    scraped. ``newest_at`` is the time of the newest scrape, ``None`` without any. ``problems`` are sentences.
    """

    system: str
    cluster: str
    group: str
    source: str
    period_s: float
    refresh_s: float
    newest_at: datetime | None
    intervals: tuple[QueueInterval, ...]
    points: tuple[GroupPoint, ...]
    by_topic: tuple[GroupPoint, ...]
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.newest_at is not None:
            check_time(f"the newest scrape of group {self.group}", self.newest_at)

    def age_s(self, at: datetime) -> float | None:
        """Return how old the newest figures may be at ``at``, in seconds; ``None`` when there are none."""
        return None if self.newest_at is None else (at - self.newest_at).total_seconds() + self.refresh_s
