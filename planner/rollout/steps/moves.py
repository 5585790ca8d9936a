"""What a step that changes membership does to the queues."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MovedQueues:
    """Forecast of a step: fewest and most queues that change owner through it; ``None`` where it is unknown."""

    fewest: int | None = None
    most: int | None = None
