"""What sets ``spec.replicas`` besides us: autoscalers, and clients by the server's own note of them."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """Something that sets ``spec.replicas`` by rules of its own, between ``minimum`` and ``maximum``.

    ``kind`` is ``HorizontalPodAutoscaler`` or ``ScaledObject`` (KEDA). ``desired`` is what it wants now, where it says
    so. ``made_by`` names the ScaledObject that made an HPA. ``set_by`` is the plan's step that set it last, by its
    annotation.

    ``is_paused``: an HPA that may move in neither direction, or a ScaledObject with KEDA's annotation. It leaves the
    count alone, except that an HPA brings one outside of its bounds back to them (``reconcileAutoscaler``, Kubernetes
    1.36), and a ScaledObject that is paused at a count (``paused_at``) brings every other one there. ``idle`` is how
    many a ScaledObject keeps while nothing triggers it, ``None`` for its minimum.
    """

    kind: str
    name: str
    minimum: int
    maximum: int
    desired: int | None = None
    made_by: str | None = None
    is_paused: bool = False
    paused_at: int | None = None
    idle: int | None = None
    set_by: str | None = None
    resource_version: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def leaves(self, count: int) -> bool:
        """True when it is paused and would leave so many replicas alone. An HPA leaves 0 alone, whatever its bounds."""
        if self.paused_at is not None:
            return count == self.paused_at
        is_within = self.minimum <= count <= self.maximum
        return self.is_paused and (self.kind != "HorizontalPodAutoscaler" or count == 0 or is_within)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The client that last set ``spec.replicas``, by the object's ``managedFields``.

    ``manager`` is the client's own name (``kubectl``, ``helm``, ``kube-controller-manager``), ``operation`` is
    ``Apply`` or ``Update``, ``subresource`` is ``scale`` for ``kubectl scale`` and autoscalers. ``at`` is ``None`` for
    those: the API server notes no time for the scale subresource.
    """

    manager: str
    operation: str
    subresource: str | None = None
    at: datetime | None = None
