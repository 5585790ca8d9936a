"""What a policy states about snapshots, and how far back they look."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from planner.model.snapshot import NO_STATEMENT, KafkaTiming, NewPods


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """What the policy states about reading: window in seconds, percentile of the upper rate (0 to 100), overrides.

    ``members_per_pod`` is stated where pods cannot be read or do not show it, ``None`` without such a statement.
    """

    window_s: float = 600.0
    percentile: float = 95.0
    strategy: str | None = None
    strategy_options: dict[str, Any] = field(default_factory=dict)
    capacity_messages_per_s: float | None = None
    pod_capacity_messages_per_s: float | None = None
    member_label: str | None = None
    members_per_pod: int | None = None
    timing: KafkaTiming | None = None
    new_pods: NewPods = NO_STATEMENT


RECENT = timedelta(hours=6)
"""How far back the snapshot's own series of the past reaches."""
