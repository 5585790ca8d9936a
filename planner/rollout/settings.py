"""What a policy states about carrying plans out."""

from dataclasses import dataclass

from planner.decision.prices import DEFAULT_PRICES, Prices
from planner.model.deployments import APPS, DEPLOYMENT
from planner.rollout.autoscalers import REFUSE, Handling
from planner.rollout.targets import Target


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What the policy says about carrying a plan out: the target, time limits in seconds, what a change may cost.

    ``ttl_s`` is how long the plan object stays after its end, ``None`` for always; ``idempotent`` whether consumers
    are, ``None`` where it is not stated. ``is_shared``: the pods serve other groups too. ``targets`` are the
    Deployments that the pods are split over, none where ``deployment`` runs all.
    """

    policy: str
    deployment: str
    policy_digest: str | None = None
    kind: str = DEPLOYMENT
    api_version: str = APPS
    valid_for_s: int = 900
    ready_limit_s: int = 300
    settled_limit_s: int = 180
    prices: Prices = DEFAULT_PRICES
    autoscaler: Handling = REFUSE
    ttl_s: int | None = None
    idempotent: bool | None = None
    is_shared: bool = False
    targets: tuple[Target, ...] = ()
