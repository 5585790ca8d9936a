"""Steps that write to a broker: in migrations alone, and with a phrase that a person types."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from planner.rollout.steps.sense import check_limit, check_names, check_phrase
from planner.rollout.steps.words import grouped


@dataclass(frozen=True, slots=True)
class CloneOffsets:
    """Give another group the plan's group's committed offsets. ``confirmation`` is what a person types to allow it."""

    is_final: ClassVar[bool] = True
    undo: ClassVar[None] = None

    to_group: str
    confirmation: str
    time_limit_seconds: int
    kind: Literal["cloneOffsets"] = "cloneOffsets"
    group: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "groups", [self.to_group, *([self.group] if self.group is not None else [])])
        check_phrase(self.kind, self.confirmation, f"set the offsets of {self.to_group}")

    @property
    def action(self) -> str:
        """What it does."""
        return f"{self.confirmation} to those of {grouped(self.group)}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"group {self.to_group} has no member"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"group {self.to_group} has committed offsets on every queue that {grouped(self.group)} has them on"


@dataclass(frozen=True, slots=True)
class ResetOffsets:
    """Set a group's offsets to the first message at or after a time. ``confirmation`` is what a person types for it."""

    is_final: ClassVar[bool] = True
    undo: ClassVar[None] = None

    group: str
    to_time: datetime
    confirmation: str
    time_limit_seconds: int
    kind: Literal["resetOffsets"] = "resetOffsets"

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "group", [self.group])
        check_phrase(self.kind, self.confirmation, f"set the offsets of {self.group}")
        if self.to_time.tzinfo is None:
            raise ValueError(f"{self.kind} to name a time with its zone, not {self.to_time.isoformat()}")

    @property
    def action(self) -> str:
        """What it does."""
        return f"{self.confirmation} to the first messages since {self.to_time:%Y-%m-%d %H:%M:%S %Z}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"group {self.group} has no member"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"group {self.group} has its committed offsets at {self.to_time:%Y-%m-%d %H:%M:%S %Z} on every queue"
