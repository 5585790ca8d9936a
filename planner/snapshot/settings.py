"""What a policy states about snapshots, and how far back they look."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from planner.model.snapshot import NO_STATEMENT, KafkaTiming, NewPods


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """What the policy states about reading: window in seconds, percentile of the upper rate (0 to 100), overrides.

    ``reported_as`` is the name under which a group reports the stated strategy, where that is another: a policy may
    state the Python file of a user's Kafka assignor, and the coordinator reports the class's ``name()``.
    ``members_per_pod`` is stated where pods cannot be read or do not show it, ``None`` without such a statement.
    """

    window_s: float = 600.0
    percentile: float = 95.0
    strategy: str | None = None
    strategy_options: dict[str, Any] = field(default_factory=dict)
    reported_as: str | None = None
    capacity_messages_per_s: float | None = None
    pod_capacity_messages_per_s: float | None = None
    member_label: str | None = None
    members_per_pod: int | None = None
    timing: KafkaTiming | None = None
    new_pods: NewPods = NO_STATEMENT

    def states(self, observed: str) -> bool:
        """Return whether the policy states the strategy that the group reports by this name."""
        return observed in (self.strategy, self.reported_as)

    def contradicted_by(self, source: str, observed: str) -> str:
        """Return in a sentence that the group reports another strategy than the policy states."""
        file = ".py" in (self.strategy or "") and self.reported_as is None
        hint = ", and the file is none that may run here (PLANNER_STRATEGY_FILES) or holds no assignor" if file else ""
        return f"the policy says {self.strategy}, but {source} says {observed}{hint}"


RECENT = timedelta(hours=6)
"""How far back the snapshot's own series of the past reaches."""
