"""The step that makes an autoscaler leave the count alone, and the one that lets it go on."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from planner.rollout.steps.sense import check_limit, check_names

AutoscalerKind = Literal["HorizontalPodAutoscaler", "ScaledObject"]


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """What an autoscaler is told: its bounds, and whether it is paused."""

    minimum: int
    maximum: int
    is_paused: bool

    def __str__(self) -> str:
        bounds = f"exactly {self.minimum}" if self.minimum == self.maximum else f"{self.minimum} to {self.maximum}"
        return f"{bounds} replicas, {'paused' if self.is_paused else 'not paused'}"


@dataclass(frozen=True, slots=True)
class SetAutoscaler:
    """Set the bounds of the Deployment's autoscaler and pause it, or let it go on; bounds are valid at every moment.

    A paused HorizontalPodAutoscaler may move in neither direction (``behavior``, ``selectPolicy: Disabled``), a paused
    ScaledObject has KEDA's annotation ``autoscaling.keda.sh/paused``.
    """

    is_final: ClassVar[bool] = False

    autoscaler: str
    autoscaler_kind: AutoscalerKind
    before: AutoscalerState
    after: AutoscalerState
    time_limit_seconds: int
    kind: Literal["setAutoscaler"] = "setAutoscaler"

    def __post_init__(self) -> None:
        check_limit(self.kind, self.time_limit_seconds)
        check_names(self.kind, "autoscaler", [self.autoscaler])
        if self.before == self.after:
            raise ValueError(f"{self.kind} to change something, not from {self.before} to {self.after}")
        for state in (self.before, self.after):
            if not 0 <= state.minimum <= state.maximum:
                raise ValueError(f"{self.kind} to have a minimum from 0 up to its maximum, not {state}")

    @property
    def named(self) -> str:
        """The autoscaler."""
        return f"{self.autoscaler_kind} {self.autoscaler}"

    @property
    def action(self) -> str:
        """What it does."""
        return f"set {self.named} to {self.after}"

    @property
    def needs(self) -> str:
        """What must be true before."""
        return f"{self.named} has {self.before}"

    @property
    def done_when(self) -> str:
        """What is seen once it is done."""
        return f"{self.named} has {self.after}"

    @property
    def undo(self) -> str:
        """What takes it back."""
        return f"set {self.named} back to {self.before}"
