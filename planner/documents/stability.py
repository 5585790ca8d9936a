"""``spec.autoscaler`` and ``spec.stabilisation`` of a policy: who else moves the count, and how often it may move."""

from typing import Annotated, Literal

from pydantic import Field, StrictInt

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
