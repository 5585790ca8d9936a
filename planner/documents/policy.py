"""``ConsumerScalingPolicy``: what somebody wants for one consumer group."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import Field, StrictInt, StrictStr, ValidationError, model_validator

from planner.allocation.kafka import find_assignor
from planner.allocation.registry import find_strategy
from planner.decision.objective import Objective, WaitObjective
from planner.decision.prices import DEFAULT_PRICES, Prices
from planner.documents.approval import ApprovalSpec, ChangeWindowSpec
from planner.documents.format import API_VERSION, check_header, digest_of, document_error
from planner.documents.source import KubernetesSpec, Name, Source, SpecModel
from planner.documents.stability import AutoscalerSpec, StabilisationSpec
from planner.documents.timing import TimingSpec, check_timing
from planner.documents.yaml import load_yaml
from planner.errors import BadInputError, DocumentError
from planner.rollout.approval import ApprovalRule
from planner.rollout.bounds import PolicyBounds
from planner.rollout.build import RolloutSettings
from planner.rollout.plan import LEAST_TTL_S, MOST_TTL_S, GroupRef
from planner.snapshot.build import SnapshotSettings

KIND = "ConsumerScalingPolicy"

_Key = TypeVar("_Key", Path, str)

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MOST_MEMBERS_PER_POD = 64
Replicas = Annotated[StrictInt, Field(ge=1, le=10_000)]


class ScaleTargetRef(SpecModel):
    """The Deployment that runs the group's consumers."""

    api_version: Literal["apps/v1"] = "apps/v1"
    kind: Literal["Deployment"] = "Deployment"
    name: Name


SMALLEST_COUNT: Final = "SmallestCount"
HORIZON: Final = "Horizon"
DEFAULT_UTILISATION: Final = 0.8
DEFAULT_WAIT: Final = WaitObjective()


class ObjectiveSpec(SpecModel):
    """What counts as good: utilisation of the busiest consumer, wait of a message, end of the backlog; and which rule.

    ``SmallestCount`` takes the smallest count within the bounds. ``Horizon`` takes the one whose consumers, changes and
    late minutes cost least over possible futures; the bounds then hold only where the policy states them.
    """

    rule: Literal["SmallestCount", "Horizon"] = SMALLEST_COUNT
    max_utilisation: Share | None = None
    oldest_message_seconds: Positive | None = None
    backlog_gone_seconds: Positive | None = None
    late_after_seconds: Positive = DEFAULT_WAIT.late_after_s
    pod_start_seconds: Positive = DEFAULT_WAIT.pod_start_s
    decided_every_seconds: Positive = DEFAULT_WAIT.decided_every_s

    @property
    def utilisation_bound(self) -> float:
        """The bound on the busiest consumer's utilisation: the stated one, else that of the rule."""
        if self.max_utilisation is not None:
            return self.max_utilisation
        return DEFAULT_UTILISATION if self.rule == SMALLEST_COUNT else math.inf


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

    max_age_seconds: Positive = 120.0
    min_completeness: Share = 0.9


class RolloutSpec(SpecModel):
    """How long a plan holds, how long its steps may take, and how long it stays in the cluster after its end."""

    valid_for_seconds: Annotated[StrictInt, Field(ge=60)] = 900
    ready_seconds: Annotated[StrictInt, Field(ge=1)] = 300
    settled_seconds: Annotated[StrictInt, Field(ge=1)] = 180
    ttl_seconds_after_finished: Annotated[StrictInt, Field(ge=LEAST_TTL_S, le=MOST_TTL_S)] | None = None


class PricesSpec(SpecModel):
    """What changes and late minutes cost, each in seconds of one consumer: what counts and ways are weighed by."""

    moved_queue_seconds: Price = DEFAULT_PRICES.moved_queue_s
    duplicate_seconds: Price = DEFAULT_PRICES.duplicate_s
    standstill_seconds: Price = DEFAULT_PRICES.standstill_s
    late_minute_seconds: Positive = DEFAULT_PRICES.late_minute_s

    @property
    def prices(self) -> Prices:
        """The same in the decision's words."""
        return Prices(
            self.moved_queue_seconds, self.duplicate_seconds, self.standstill_seconds, self.late_minute_seconds
        )


class PolicySpec(SpecModel):
    """The policy's body."""

    source: Source
    scale_target_ref: ScaleTargetRef
    kubernetes: KubernetesSpec | None = None
    autoscaler: AutoscalerSpec = AutoscalerSpec()
    min_replicas: Replicas = 1
    max_replicas: Replicas
    objective: ObjectiveSpec = ObjectiveSpec()
    strategy: Name | None = None
    strategy_options: dict[str, Any] = Field(default_factory=dict)
    capacity: CapacitySpec | None = None
    window: WindowSpec = WindowSpec()
    freshness: FreshnessSpec = FreshnessSpec()
    stabilisation: StabilisationSpec | None = None
    rollout: RolloutSpec = RolloutSpec()
    prices: PricesSpec = PricesSpec()
    approval: ApprovalSpec = ApprovalSpec()
    change_windows: tuple[ChangeWindowSpec, ...] = ()
    timing: TimingSpec | None = None
    members_per_pod: Annotated[StrictInt, Field(ge=1, le=MOST_MEMBERS_PER_POD)] | None = None

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"minReplicas {self.min_replicas} to be at most maxReplicas {self.max_replicas}")
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


class Metadata(SpecModel):
    """Kubernetes metadata, as far as the planner uses it."""

    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
    namespace: Name = "default"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class ConsumerScalingPolicy(SpecModel):
    """One policy document."""

    api_version: Literal["consumerplanner.dev/v1alpha1"] = API_VERSION
    kind: Literal["ConsumerScalingPolicy"] = "ConsumerScalingPolicy"
    metadata: Metadata
    spec: PolicySpec

    @property
    def objective(self) -> Objective:
        """The bounds of a decision."""
        spec = self.spec
        return Objective(
            lowest=spec.min_replicas,
            highest=spec.max_replicas,
            max_utilisation=spec.objective.utilisation_bound,
            oldest_message_s=spec.objective.oldest_message_seconds,
            backlog_gone_s=spec.objective.backlog_gone_seconds,
            max_age_s=spec.freshness.max_age_seconds,
            min_completeness=spec.freshness.min_completeness,
            sets_autoscaler=spec.autoscaler.handling.is_allowed,
            quiet_s=spec.stabilisation.seconds if spec.stabilisation else None,
            wait=self._wait,
        )

    @property
    def _wait(self) -> WaitObjective | None:
        objective = self.spec.objective
        if objective.rule == SMALLEST_COUNT:
            return None
        return WaitObjective(
            late_after_s=objective.late_after_seconds,
            pod_start_s=objective.pod_start_seconds,
            decided_every_s=objective.decided_every_seconds,
            prices=self.spec.prices.prices,
        )

    @property
    def snapshot_settings(self) -> SnapshotSettings:
        """How the group is to be read."""
        spec = self.spec
        return SnapshotSettings(
            window_s=float(spec.window.seconds),
            percentile=spec.window.percentile,
            strategy=spec.strategy,
            strategy_options=spec.strategy_options,
            capacity_messages_per_s=spec.capacity.messages_per_second if spec.capacity else None,
            pod_capacity_messages_per_s=spec.capacity.pod_messages_per_second if spec.capacity else None,
            member_label=spec.kubernetes.member_label if spec.kubernetes else None,
            members_per_pod=spec.members_per_pod,
            timing=spec.timing.timing if spec.timing else None,
        )

    @property
    def digest(self) -> str:
        """The digest of what is wanted, whether a default was written down or not."""
        content = self.spec.model_dump(mode="json", by_alias=True)
        # Policies without what earlier releases did not know keep the digest that plans of those name.
        if content["rollout"]["ttlSecondsAfterFinished"] is None:
            del content["rollout"]["ttlSecondsAfterFinished"]
        if self.spec.objective.rule == SMALLEST_COUNT:
            # So do policies of the rule that earlier releases had, which knows none of these fields.
            content["objective"]["maxUtilisation"] = self.spec.objective.utilisation_bound
            for field in ("rule", "lateAfterSeconds", "podStartSeconds", "decidedEverySeconds"):
                del content["objective"][field]
            del content["prices"]["lateMinuteSeconds"]
        if content["membersPerPod"] is None:
            del content["membersPerPod"]
        if content["capacity"] is not None and content["capacity"]["podMessagesPerSecond"] is None:
            del content["capacity"]["podMessagesPerSecond"]
        return digest_of(content)

    @property
    def approval_rule(self) -> ApprovalRule | None:
        """What approves a plan without a person, ``None`` where every plan is for one."""
        return self.spec.approval.rule(tuple(window.window for window in self.spec.change_windows))

    @property
    def bounds(self) -> PolicyBounds:
        """What any plan must lie inside."""
        spec, source = self.spec, self.spec.source
        return PolicyBounds(
            policy=self.metadata.name,
            deployment=spec.scale_target_ref.name,
            group=GroupRef(source.system, source.cluster, source.group),
            lowest=spec.min_replicas,
            highest=spec.max_replicas,
            valid_for_s=spec.rollout.valid_for_seconds,
            autoscaler=spec.autoscaler.handling,
        )

    @property
    def rollout_settings(self) -> RolloutSettings:
        """How a plan is to be carried out."""
        rollout = self.spec.rollout
        return RolloutSettings(
            policy=self.metadata.name,
            deployment=self.spec.scale_target_ref.name,
            policy_digest=self.digest,
            valid_for_s=rollout.valid_for_seconds,
            ready_limit_s=rollout.ready_seconds,
            settled_limit_s=rollout.settled_seconds,
            autoscaler=self.spec.autoscaler.handling,
            ttl_s=rollout.ttl_seconds_after_finished,
            prices=self.spec.prices.prices,
        )


def parse_policy(text: str, where: str) -> ConsumerScalingPolicy:
    """Return the policy in ``text``; ``where`` names the file in errors. Raises ``DocumentError``."""
    document = check_header(load_yaml(text, where), KIND, where)
    try:
        policy = ConsumerScalingPolicy.model_validate(document)
    except ValidationError as error:
        raise document_error(error, where, schema=_schema()) from error
    _check_strategy(policy.spec, where)
    check_timing(policy.spec.timing, policy.spec.source.system, where)
    return policy


@cache
def _schema() -> dict[str, Any]:
    """Return the schema of a policy, which takes longer to make than to read a hundred policies."""
    return ConsumerScalingPolicy.model_json_schema()


def _check_strategy(spec: PolicySpec, where: str) -> None:
    """Raise ``DocumentError`` for options that the strategy does not take."""
    if not spec.strategy_options:
        return
    try:
        (find_assignor if spec.source.system == "kafka" else find_strategy)(spec.strategy or "", spec.strategy_options)
    except BadInputError as error:
        raise DocumentError(f"{where}: field spec.strategyOptions: {error}") from error


def read_policy(path: Path) -> ConsumerScalingPolicy:
    """Return the policy in the file. Raises ``BadInputError`` when it is missing or wrong."""
    return parse_policy(policy_text(path), str(path))


def policy_text(path: Path) -> str:
    """Return the text of a policy file. Raises ``BadInputError`` when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(f"policy file {path} does not exist: check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"policy file {path} cannot be read: {error}") from error


def read_policies(folder: Path) -> Sequence[ConsumerScalingPolicy]:
    """Return all policies (``*.yaml``, ``*.yml``) of the folder, by name.

    Raises ``BadInputError`` when the folder is missing or holds no policy, when two policies share a name, or
    when two speak of one group: nobody could say which of them decides.
    """
    policies = [(path, read_policy(path)) for path in policy_files(folder)]
    for sentence in twins(policies).values():
        raise BadInputError(sentence)
    return sorted((policy for _, policy in policies), key=lambda policy: policy.metadata.name)


def policy_files(folder: Path) -> Sequence[Path]:
    """Return the policy files of the folder by name. Raises ``BadInputError`` when there is none."""
    if not folder.is_dir():
        raise BadInputError(f"policy folder {folder} does not exist: create it and put a {KIND} YAML file into it")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
    if not files:
        raise BadInputError(f"policy folder {folder} holds no .yaml file: put a {KIND} into it")
    return files


def twins(policies: Sequence[tuple[_Key, ConsumerScalingPolicy]]) -> Mapping[_Key, str]:
    """Return a sentence for each file or object that shares its policy's name or its group with another one."""
    files: dict[tuple[str, ...], _Key] = {}
    sentences: dict[_Key, str] = {}
    for path, policy in policies:
        source = policy.spec.source
        for key in (("name", policy.metadata.name), ("group", source.system, source.cluster, source.group)):
            first = files.setdefault(key, path)
            if first != path:
                sentence = f"policies {first} and {path} have the same {key[0]} {key[-1]}: keep one of them"
                sentences |= dict.fromkeys((first, path), sentence)
    return sentences
