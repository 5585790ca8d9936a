"""``spec.autoscaler``, ``spec.stabilisation`` and ``spec.behavior`` of a policy: who moves the count, and how far."""

from typing import Annotated, Literal

from pydantic import Field, StrictInt

from planner.decision.objective import StepLimit
from planner.documents.source import SpecModel
from planner.rollout.autoscalers import Handling


class AutoscalerSpec(SpecModel):
    """What a plan does with the HPA or ScaledObject that sets the Deployment's replicas; see docs/adr/0006.

    ``refuse``: no plan is made. ``setBounds``: it is paused while the plan goes on, and holds exactly the new count
    afterwards. ``pause``: it stays paused. ``afterwards: restore`` lets it go on between its own bounds instead.
    """

    mode: Literal["refuse", "setBounds", "pause"] = "refuse"
    afterwards: Literal["keep", "restore"] = "keep"

    @property
    def handling(self) -> Handling:
        """The same in the plan's words."""
        return Handling(self.mode, restores=self.afterwards == "restore")


class StabilisationSpec(SpecModel):
    """How long, in seconds, nothing must have changed before the count may be changed again."""

    seconds: Annotated[StrictInt, Field(ge=0, le=21_600)]


class StepLimitSpec(SpecModel):
    """How many pods may come (or go) within ``periodSeconds``; without a period in one change."""

    pods: Annotated[StrictInt, Field(ge=1, le=10_000)]
    period_seconds: Annotated[StrictInt, Field(ge=0, le=21_600)] = 0

    @property
    def limit(self) -> StepLimit:
        """The same in the decision's words."""
        return StepLimit(self.pods, float(self.period_seconds))


class BehaviorSpec(SpecModel):
    """Step limits, each of which may be left out: how many pods one decision adds, and how many it takes away."""

    scale_up: StepLimitSpec | None = None
    scale_down: StepLimitSpec | None = None

    @property
    def step_up(self) -> StepLimit | None:
        """The limit on growth, ``None`` where none is stated."""
        return self.scale_up.limit if self.scale_up else None

    @property
    def step_down(self) -> StepLimit | None:
        """The limit on shrinking, ``None`` where none is stated."""
        return self.scale_down.limit if self.scale_down else None

    @property
    def longest_period_s(self) -> float:
        """The longest stated period in seconds."""
        return max((limit.period_s for limit in (self.step_up, self.step_down) if limit), default=0.0)
