"""The kinds of steps. Each knows its time limit, its undo and what is forecast for it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class MovedQueues:
    """Forecast of a step: fewest and most queues that change owner through it; ``None`` where it is unknown."""

    fewest: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class StartConsumers:
    """Raise the Deployment's replicas; undo sets them back. Moves queues as soon as the new consumers join."""

    from_replicas: int
    to_replicas: int
    time_limit_seconds: int
    forecast: MovedQueues
    undo: str
    kind: Literal["startConsumers"] = "startConsumers"


@dataclass(frozen=True, slots=True)
class AwaitReady:
    """Wait until that many pods of the Deployment are ready; changes nothing, so there is nothing to undo."""

    replicas: int
    time_limit_seconds: int
    kind: Literal["awaitReady"] = "awaitReady"


@dataclass(frozen=True, slots=True)
class AwaitSettled:
    """Wait until that many members each own what the strategy gives them, seen twice in a row."""

    members: int
    strategy: str
    time_limit_seconds: int
    kind: Literal["awaitSettled"] = "awaitSettled"


@dataclass(frozen=True, slots=True)
class StopConsumers:
    """Lower the Deployment's replicas; ``preferred_victims`` are those whose stop moves the fewest queues."""

    from_replicas: int
    to_replicas: int
    preferred_victims: tuple[str, ...]
    time_limit_seconds: int
    forecast: MovedQueues
    undo: str
    kind: Literal["stopConsumers"] = "stopConsumers"


Step = StartConsumers | AwaitReady | AwaitSettled | StopConsumers
