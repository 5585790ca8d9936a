"""What a policy may state: the fields of its ``spec``, their bounds and their defaults."""

import math
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from planner.decision.objective import WaitObjective
from planner.decision.prices import DEFAULT_PRICES, Prices
from planner.documents.approval import ApprovalSpec, ChangeWindowSpec
from planner.documents.events import MOST_EVENTS, EventSpec
from planner.documents.source import MOST_NAMES, KubernetesSpec, Name, Options, Source, SpecModel
from planner.documents.stability import AutoscalerSpec, BehaviorSpec, StabilisationSpec
from planner.documents.timing import TimingSpec
from planner.model.deployments import APPS, BUILT_IN, DEPLOYMENT, check_target_kind
from planner.model.snapshot import DEFAULT_IDS_PERCENTILE, LEAST_IDS_PERCENTILE
from planner.rollout.plan import LEAST_TTL_S, MOST_TTL_S
from planner.rollout.steps.sense import MOST_LIMIT_S
from planner.rollout.targets import Target

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MOST_SECONDS: Final = 31_536_000
"""A year: beyond it a time cannot be told, and longer means never."""
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MOST_MEMBERS_PER_POD = 64
MOST_MONEY = 1e6
MOST_SHARED = 15
"""Other policies of one target, at most."""
MOST_TARGETS = 8
MOST_WEIGHT = 100
Replicas = Annotated[StrictInt, Field(ge=1, le=10_000)]
ReplicasOrNone = Annotated[StrictInt, Field(ge=0, le=10_000)]


_NO_PODS_OF_ITS_OWN: Final = ("CronJob", "DaemonSet", "Job")


class ScaleTargetRef(SpecModel):
    """The Deployment, StatefulSet or other kind with a sub-resource ``scale`` that runs the group's consumers.

    ``sharedWith`` names the policies of all other groups that its pods serve; each of them names the rest.
    """

    api_version: Annotated[StrictStr, Field(max_length=300)] = APPS
    kind: Annotated[StrictStr, Field(max_length=63)] = DEPLOYMENT
    name: Name
    shared_with: Annotated[tuple[Name, ...], Field(max_length=MOST_SHARED)] = ()

    @model_validator(mode="after")
    def _possible_kind(self) -> Self:
        check_target_kind(self.kind, self.api_version)
        if self.kind in _NO_PODS_OF_ITS_OWN:
            raise ValueError(
                f"a kind whose count can be set: a {self.kind} has no sub-resource scale; run the consumers in a "
                "Deployment, a StatefulSet, or another kind that has one"
            )
        return self

    @property
    def is_of_other_kind(self) -> bool:
        """True for all but a Deployment and a StatefulSet of Kubernetes itself."""
        return (self.api_version, self.kind) not in BUILT_IN

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.shared_with)) < len(self.shared_with):
            raise ValueError("sharedWith to name each policy once")
        return self


class WeightedTargetRef(SpecModel):
    """One of several Deployments that run one group: its part of the pods by weight, and its own bounds."""

    api_version: Literal["apps/v1"] = "apps/v1"
    kind: Literal["Deployment"] = "Deployment"
    name: Name
    weight: Annotated[StrictInt, Field(ge=1, le=MOST_WEIGHT)] = 1
    min_replicas: ReplicasOrNone = 0
    max_replicas: Replicas | None = None

    @model_validator(mode="before")
    @classmethod
    def _known_workload(cls, value: Any) -> Any:
        """Say of all but Deployments why a group cannot be split over them."""
        given = value if isinstance(value, Mapping) else {}
        kind, version = given.get("kind", DEPLOYMENT), given.get("apiVersion", "apps/v1")
        if isinstance(kind, str) and isinstance(version, str) and (version != "apps/v1" or kind != DEPLOYMENT):
            raise ValueError(
                f"a Deployment of apps/v1: a group is split over Deployments alone, not over a {kind}; name the one "
                "target in scaleTargetRef"
            )
        return value

    @model_validator(mode="after")
    def _own_bounds(self) -> Self:
        if self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise ValueError(f"minReplicas {self.min_replicas} to be at most maxReplicas {self.max_replicas}")
        return self

    @property
    def target(self) -> Target:
        """The same in the plan's words."""
        return Target(self.name, self.weight, self.min_replicas, self.max_replicas)


SMALLEST_COUNT: Final = "SmallestCount"
HORIZON: Final = "Horizon"
WEIGHED_FIELDS: Final = {"late_after_seconds", "pod_start_seconds", "decided_every_seconds"}
DEFAULT_UTILISATION: Final = 0.8
DEFAULT_WAIT: Final = WaitObjective()


class ObjectiveSpec(SpecModel):
    """What counts as good: utilisation of the busiest consumer, wait of a message, end of the backlog; and which rule.

    ``SmallestCount`` takes the smallest count within the bounds, and is the rule of policies that state a bound.
    ``Horizon`` takes the one whose consumers, changes and late minutes cost least over possible futures, and is the
    rule of all others; with it bounds hold only where they are stated.
    ``decided_every_seconds`` is what a run takes from its own schedule where it is not stated.
    Where client ids that are not known yet decide, loads are those that ``idsPercentile`` of 100 possible ids do not
    exceed.
    """

    rule: Literal["SmallestCount", "Horizon"] | None = None
    max_utilisation: Share | None = None
    oldest_message_seconds: Seconds | None = None
    backlog_gone_seconds: Seconds | None = None
    ids_percentile: Annotated[float, Field(ge=LEAST_IDS_PERCENTILE, le=100)] = DEFAULT_IDS_PERCENTILE
    late_after_seconds: Seconds = DEFAULT_WAIT.late_after_s
    pod_start_seconds: Seconds = DEFAULT_WAIT.pod_start_s
    decided_every_seconds: Seconds | None = None

    @model_validator(mode="after")
    def _states_its_rule(self) -> Self:
        # Written out with all of its defaults it is the same policy: which fields were stated shows here alone.
        if self.rule is None:
            object.__setattr__(self, "rule", self._rule_of_what_is_stated())
        return self

    def _rule_of_what_is_stated(self) -> str:
        if self.model_fields_set & WEIGHED_FIELDS:
            return HORIZON
        bounds = (self.max_utilisation, self.oldest_message_seconds, self.backlog_gone_seconds)
        return HORIZON if bounds == (None, None, None) else SMALLEST_COUNT

    @property
    def decides_by(self) -> str:
        """The rule: the stated one, else that whose fields are stated, ``Horizon`` where both are or none is."""
        return self.rule or HORIZON

    @property
    def decided_every_s(self) -> float:
        """The period of decisions in seconds: the stated one, else that of the scheduled DAG."""
        return self.decided_every_seconds or DEFAULT_WAIT.decided_every_s

    @property
    def utilisation_bound(self) -> float:
        """The bound on the busiest consumer's utilisation: the stated one, else that of the rule."""
        if self.max_utilisation is not None:
            return self.max_utilisation
        return DEFAULT_UTILISATION if self.decides_by == SMALLEST_COUNT else math.inf


class CapacitySpec(SpecModel):
    """Messages per second that one consumer can do, and one pod with all of its consumers busy, where it is known."""

    messages_per_second: Positive | None = None
    pod_messages_per_second: Positive | None = None

    @model_validator(mode="after")
    def _states_something(self) -> Self:
        if self.messages_per_second is None and self.pod_messages_per_second is None:
            raise ValueError("messagesPerSecond, podMessagesPerSecond or both")
        return self


class WindowSpec(SpecModel):
    """The recent past that rates are taken from, and which percentile of its minutes is the upper rate."""

    seconds: Annotated[StrictInt, Field(ge=60, le=86_400)] = 600
    percentile: Annotated[float, Field(ge=50, le=100)] = 95.0


class FreshnessSpec(SpecModel):
    """How old and how incomplete data may be before the planner holds."""

    max_age_seconds: Seconds = 120.0
    min_completeness: Share = 0.9


class RolloutSpec(SpecModel):
    """How long a plan holds, how long its steps may take, and how long it stays in the cluster after its end."""

    valid_for_seconds: Annotated[StrictInt, Field(ge=60, le=MOST_LIMIT_S)] = 900
    ready_seconds: Annotated[StrictInt, Field(ge=1, le=MOST_LIMIT_S)] = 300
    settled_seconds: Annotated[StrictInt, Field(ge=1, le=MOST_LIMIT_S)] = 180
    ttl_seconds_after_finished: Annotated[StrictInt, Field(ge=LEAST_TTL_S, le=MOST_TTL_S)] | None = None


class PricesSpec(SpecModel):
    """What changes and late minutes cost, each in seconds of one consumer: what counts and ways are weighed by.

    ``consumerHour`` is what one consumer costs an hour, in your money: bills then show money, too.
    """

    moved_queue_seconds: Price = DEFAULT_PRICES.moved_queue_s
    duplicate_seconds: Price = DEFAULT_PRICES.duplicate_s
    standstill_seconds: Price = DEFAULT_PRICES.standstill_s
    late_minute_seconds: Positive = DEFAULT_PRICES.late_minute_s
    consumer_hour: Annotated[float, Field(ge=0, le=MOST_MONEY, allow_inf_nan=False)] | None = None

    @property
    def prices(self) -> Prices:
        """The same in the decision's words."""
        return Prices(
            moved_queue_s=self.moved_queue_seconds,
            duplicate_s=self.duplicate_seconds,
            standstill_s=self.standstill_seconds,
            late_minute_s=self.late_minute_seconds,
            consumer_hour=self.consumer_hour,
        )


class NewPodsSpec(SpecModel):
    """What is known of pods that do not run yet: machine room (RocketMQ), topics and rack (Kafka), their network.

    Where it does not say, new pods are taken to be like present ones.
    """

    room: Name | None = None
    topics: Annotated[tuple[Name, ...], Field(max_length=MOST_NAMES)] = ()
    rack: Name | None = None
    pod_cidr: StrictStr | None = None

    @model_validator(mode="after")
    def _network(self) -> Self:
        if self.pod_cidr is not None:
            try:
                ip_network(self.pod_cidr)
            except ValueError:
                raise ValueError(f"podCidr to be a network such as 10.244.0.0/16, not {self.pod_cidr}") from None
        return self


class ScaleToZeroSpec(SpecModel):
    """When the last pod stops: after so many seconds in which no message came and none waited (``minReplicas: 0``)."""

    after_seconds: Annotated[StrictInt, Field(ge=60, le=21_600)] = 300


class PolicySpec(SpecModel):
    """The policy's body.

    ``idempotent`` states whether a message that comes twice does the consumers' work once; absent: not known.
    ``scaleTargetRefs`` stands in place of ``scaleTargetRef`` where several Deployments run the group.
    """

    source: Source
    scale_target_ref: ScaleTargetRef | None = None
    scale_target_refs: Annotated[tuple[WeightedTargetRef, ...], Field(min_length=2, max_length=MOST_TARGETS)] | None = (
        None
    )
    kubernetes: KubernetesSpec | None = None
    autoscaler: AutoscalerSpec = AutoscalerSpec()
    min_replicas: ReplicasOrNone = 1
    scale_to_zero: ScaleToZeroSpec | None = None
    max_replicas: Replicas
    objective: ObjectiveSpec = ObjectiveSpec()
    strategy: Name | None = None
    strategy_options: Options = Field(default_factory=dict)
    capacity: CapacitySpec | None = None
    window: WindowSpec = WindowSpec()
    freshness: FreshnessSpec = FreshnessSpec()
    stabilisation: StabilisationSpec | None = None
    behavior: BehaviorSpec = BehaviorSpec()
    rollout: RolloutSpec = RolloutSpec()
    prices: PricesSpec = PricesSpec()
    approval: ApprovalSpec = ApprovalSpec()
    change_windows: tuple[ChangeWindowSpec, ...] = ()
    events: Annotated[tuple[EventSpec, ...], Field(max_length=MOST_EVENTS)] = ()
    timing: TimingSpec | None = None
    members_per_pod: Annotated[StrictInt, Field(ge=1, le=MOST_MEMBERS_PER_POD)] | None = None
    new_pods: NewPodsSpec = NewPodsSpec()
    idempotent: StrictBool | None = None

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"minReplicas {self.min_replicas} to be at most maxReplicas {self.max_replicas}")
        if self.scale_to_zero is not None and self.min_replicas:
            raise ValueError("scaleToZero together with minReplicas: 0")
        if self.min_replicas == 0 and self.kubernetes is None:
            raise ValueError("kubernetes beside minReplicas: 0, as no member shows that no pod runs")
        if self.min_replicas == 0 and self.strategy is None:
            raise ValueError("strategy beside minReplicas: 0, as no member reports it while no pod runs")
        return self

    @model_validator(mode="after")
    def _targets(self) -> Self:
        if (self.scale_target_ref is None) == (self.scale_target_refs is None):
            raise ValueError(
                "scaleTargetRef, or scaleTargetRefs where several Deployments run the group: exactly one of both"
            )
        if self.scale_target_refs is not None:
            self._check_targets(self.scale_target_refs)
        if self.scale_target_ref is not None and self.scale_target_ref.is_of_other_kind and self.kubernetes is None:
            raise ValueError(
                f"kubernetes beside a scaleTargetRef of kind {self.scale_target_ref.kind}, as it alone shows whether "
                "its count can be changed, and which pods it has"
            )
        return self

    def _check_targets(self, refs: tuple[WeightedTargetRef, ...]) -> None:
        if len({ref.name for ref in refs}) < len(refs):
            raise ValueError("scaleTargetRefs to name each Deployment once")
        if self.kubernetes is None:
            raise ValueError("kubernetes beside scaleTargetRefs, as a split goes by the pods of each Deployment")
        if self.autoscaler.handling.is_allowed:
            raise ValueError("autoscaler.mode refuse beside scaleTargetRefs: no plan sets autoscalers of several")
        if self.min_replicas == 0:
            raise ValueError("minReplicas of 1 at least beside scaleTargetRefs: one of several may have 0, not all")
        least = sum(ref.min_replicas for ref in refs)
        bounds = [ref.max_replicas for ref in refs]
        most = None if None in bounds else sum(bound or 0 for bound in bounds)
        if least > self.max_replicas or (most is not None and most < self.min_replicas):
            raise ValueError(
                f"the minima of scaleTargetRefs, {least} together, and their maxima, {most or 'none'} together, to "
                f"leave a count from minReplicas {self.min_replicas} to maxReplicas {self.max_replicas}"
            )

    @property
    def targets(self) -> tuple[Target, ...]:
        """The Deployments that the pods are split over, none where there is one target."""
        return tuple(ref.target for ref in self.scale_target_refs or ())

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of all targets, the first one first."""
        single = () if self.scale_target_ref is None else (self.scale_target_ref.name,)
        return (*single, *(target.name for target in self.targets))

    @property
    def target_kind(self) -> str:
        """The kind of the targets: several are all Deployments."""
        return DEPLOYMENT if self.scale_target_ref is None else self.scale_target_ref.kind

    @property
    def target_api_version(self) -> str:
        """The API version of that kind."""
        return APPS if self.scale_target_ref is None else self.scale_target_ref.api_version

    @property
    def pod_bounds(self) -> tuple[int, int]:
        """The fewest and the most pods that the policy allows: its own bounds, within those of its targets together."""
        least = sum(target.lowest for target in self.targets)
        most = [target.highest for target in self.targets]
        highest = self.max_replicas if None in most or not most else min(self.max_replicas, sum(m or 0 for m in most))
        return max(self.min_replicas, least), highest

    @model_validator(mode="after")
    def _event_names(self) -> Self:
        names = [event.name for event in self.events]
        if len(set(names)) < len(names):
            raise ValueError(f"events to have a name of their own each, found {sorted(names)}")
        return self

    @model_validator(mode="after")
    def _strategy(self) -> Self:
        if self.strategy_options and self.strategy is None:
            raise ValueError("strategyOptions to stand beside the strategy that they belong to")
        return self

    @model_validator(mode="after")
    def _windows(self) -> Self:
        criteria = self.approval.criteria
        if bool(self.change_windows) != bool(criteria and criteria.only_in_change_windows):
            raise ValueError(
                "changeWindows together with approval.criteria.onlyInChangeWindows: true, which goes by them"
            )
        return self
