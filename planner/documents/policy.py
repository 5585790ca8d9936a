"""``ConsumerScalingPolicy``: what somebody wants for one consumer group."""

from copy import deepcopy
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StrictStr, ValidationError

from planner.allocation.answers import FINDERS, reported_name
from planner.decision.objective import Objective, WaitObjective
from planner.documents.format import API_VERSION, check_header, digest_of, document_error
from planner.documents.policy_spec import (
    DEFAULT_WAIT,
    HORIZON,
    SMALLEST_COUNT,
    NewPodsSpec,
    PolicySpec,
    ScaleToZeroSpec,
)
from planner.documents.source import Name, SpecModel
from planner.documents.timing import check_timing
from planner.documents.yaml import load_yaml
from planner.errors import BadInputError, DocumentError, why_unread
from planner.model.snapshot import DEFAULT_IDS_PERCENTILE, NewPods
from planner.rollout.approval import ApprovalRule
from planner.rollout.bounds import PolicyBounds
from planner.rollout.plan import GroupRef
from planner.rollout.settings import RolloutSettings
from planner.snapshot.settings import SnapshotSettings

KIND = "ConsumerScalingPolicy"


class Metadata(SpecModel):
    """Kubernetes metadata, as far as the planner uses it."""

    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
    namespace: Name = "default"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


_UNSTATED: Final[tuple[tuple[tuple[str, ...], object], ...]] = (
    (("rollout", "ttlSecondsAfterFinished"), None),
    (("approval", "approvers"), []),
    (("objective", "idsPercentile"), DEFAULT_IDS_PERCENTILE),
    (("capacity", "podMessagesPerSecond"), None),
    (("source", "proxies"), None),
    (("scaleTargetRef", "sharedWith"), []),
    (("scaleTargetRefs",), None),
    (("scaleToZero",), None),
    (("membersPerPod",), None),
    (("idempotent",), None),
    (("behavior", "scaleUp"), None),
    (("behavior", "scaleDown"), None),
    (("behavior",), {}),
    (("events",), []),
    (("prices", "consumerHour"), None),
    (("newPods", "rack"), None),
    (("newPods",), NewPodsSpec().model_dump(mode="json", by_alias=True, exclude={"rack"})),
)
"""Fields that earlier releases did not know, with the value of a policy that does not state them."""


def _drop_unstated(content: dict[str, Any]) -> None:
    """Remove what earlier releases did not know and the policy does not state: the digest that plans name stays."""
    for (*parents, field), unstated in _UNSTATED:
        holder = content
        for parent in parents:
            holder = holder.get(parent) or {}
        if holder.get(field, ...) == unstated:
            del holder[field]


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
        lowest, highest = spec.pod_bounds
        return Objective(
            lowest=max(lowest, 1),
            highest=highest,
            max_utilisation=spec.objective.utilisation_bound,
            oldest_message_s=spec.objective.oldest_message_seconds,
            backlog_gone_s=spec.objective.backlog_gone_seconds,
            max_age_s=spec.freshness.max_age_seconds,
            min_completeness=spec.freshness.min_completeness,
            sets_autoscaler=spec.autoscaler.handling.is_allowed,
            quiet_s=spec.stabilisation.seconds if spec.stabilisation else None,
            step_up=spec.behavior.step_up,
            step_down=spec.behavior.step_down,
            wait=self._wait,
            idle_s=None if spec.min_replicas else float((spec.scale_to_zero or ScaleToZeroSpec()).after_seconds),
            events=tuple(event.event for event in spec.events),
            answered_after_s=spec.objective.pod_start_seconds + spec.objective.decided_every_s,
        )

    @property
    def _wait(self) -> WaitObjective | None:
        objective = self.spec.objective
        if objective.decides_by == SMALLEST_COUNT:
            return None
        return WaitObjective(
            late_after_s=objective.late_after_seconds,
            pod_start_s=objective.pod_start_seconds,
            decided_every_s=objective.decided_every_s,
            prices=self.spec.prices.prices,
        )

    def decided_every(self, period_s: float) -> Self:
        """Return the policy with this period of decisions, in seconds, stated."""
        objective = self.spec.objective.model_copy(update={"decided_every_seconds": period_s})
        return self.model_copy(update={"spec": self.spec.model_copy(update={"objective": objective})})

    @property
    def snapshot_settings(self) -> SnapshotSettings:
        """How the group is to be read."""
        spec = self.spec
        return SnapshotSettings(
            window_s=float(spec.window.seconds),
            percentile=spec.window.percentile,
            strategy=spec.strategy,
            strategy_options=spec.strategy_options,
            reported_as=reported_name(spec.source.system, spec.strategy, spec.strategy_options),
            capacity_messages_per_s=spec.capacity.messages_per_second if spec.capacity else None,
            pod_capacity_messages_per_s=spec.capacity.pod_messages_per_second if spec.capacity else None,
            member_label=spec.kubernetes.member_label if spec.kubernetes else None,
            members_per_pod=spec.members_per_pod,
            timing=spec.timing.timing if spec.timing else None,
            new_pods=NewPods(
                room=spec.new_pods.room,
                topics=spec.new_pods.topics,
                rack=spec.new_pods.rack,
                pod_cidr=spec.new_pods.pod_cidr,
                ids_percentile=spec.objective.ids_percentile,
            ),
        )

    @property
    def digest(self) -> str:
        """The digest of what is wanted, whether a default was written down or not."""
        content = self.spec.model_dump(mode="json", by_alias=True)
        if self.spec.objective.decides_by == SMALLEST_COUNT:
            # Policies of the rule that earlier releases had, which knows none of these fields, keep their digest.
            content["objective"]["maxUtilisation"] = self.spec.objective.utilisation_bound
            for field in ("rule", "lateAfterSeconds", "podStartSeconds", "decidedEverySeconds"):
                del content["objective"][field]
            del content["prices"]["lateMinuteSeconds"]
        else:
            # Not what is wanted but how often somebody asks for it: a run may state its own period.
            content["objective"] |= {"rule": HORIZON, "decidedEverySeconds": DEFAULT_WAIT.decided_every_s}
        _drop_unstated(content)
        return digest_of(content)

    @property
    def approval_rule(self) -> ApprovalRule | None:
        """What approves a plan without a person, ``None`` where every plan is for one."""
        windows = tuple(window.window for window in self.spec.change_windows)
        return self.spec.approval.rule(windows, may_repeat=self.spec.idempotent is not False)

    @property
    def bounds(self) -> PolicyBounds:
        """What any plan must lie inside."""
        spec, source = self.spec, self.spec.source
        lowest, highest = spec.pod_bounds
        return PolicyBounds(
            policy=self.metadata.name,
            deployment=spec.target_names[0],
            group=GroupRef(source.system, source.cluster, source.group),
            lowest=lowest,
            highest=highest,
            valid_for_s=spec.rollout.valid_for_seconds,
            autoscaler=spec.autoscaler.handling,
            kind=spec.target_kind,
            api_version=spec.target_api_version,
            shared_with=self.shared_with,
            targets=spec.targets,
        )

    @property
    def shared_with(self) -> tuple[str, ...]:
        """The policies of the other groups that the target's pods serve, by name."""
        ref = self.spec.scale_target_ref
        return () if ref is None else tuple(sorted(ref.shared_with))

    @property
    def rollout_settings(self) -> RolloutSettings:
        """How a plan is to be carried out."""
        rollout = self.spec.rollout
        return RolloutSettings(
            policy=self.metadata.name,
            deployment=self.spec.target_names[0],
            kind=self.spec.target_kind,
            api_version=self.spec.target_api_version,
            targets=self.spec.targets,
            policy_digest=self.digest,
            valid_for_s=rollout.valid_for_seconds,
            ready_limit_s=rollout.ready_seconds,
            settled_limit_s=rollout.settled_seconds,
            autoscaler=self.spec.autoscaler.handling,
            ttl_s=rollout.ttl_seconds_after_finished,
            idempotent=self.spec.idempotent,
            is_shared=bool(self.shared_with),
            prices=self.spec.prices.prices,
        )


MOST_KEPT, MOST_KEPT_TEXT = 4096, 16_384
"""Of so many policies, of so many characters each, what their text says is kept."""


def parse_policy(text: str, where: str) -> ConsumerScalingPolicy:
    """Return the policy in ``text``; ``where`` names the file in errors. Raises ``DocumentError``."""
    if len(text) > MOST_KEPT_TEXT:
        return policy_of(load_yaml(text, where), where)
    try:
        document = _document_in(text)
    except DocumentError:
        document = load_yaml(text, where)
    return policy_of(deepcopy(document), where)


@lru_cache(maxsize=MOST_KEPT)
def _document_in(text: str) -> object:
    """Return what the YAML says: a process that runs every 30 s reads the same policies each time."""
    return load_yaml(text, "policy")


def policy_of(document: object, where: str) -> ConsumerScalingPolicy:
    """Return the policy in a parsed document; ``where`` names its origin in errors. Raises ``DocumentError``."""
    checked = check_header(document, KIND, where)
    try:
        policy = ConsumerScalingPolicy.model_validate(checked)
    except ValidationError as error:
        raise document_error(error, where, schema=_schema()) from error
    except UnicodeEncodeError as error:  # pydantic's own, over a sentence of ours that quotes the text
        raise DocumentError(
            f"{where}: half a surrogate pair in a text, expected whole characters: correct it"
        ) from error
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
        FINDERS[spec.source.system](spec.strategy or "", spec.strategy_options)
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
        raise BadInputError(f"policy file {path} cannot be read: {why_unread(error)}") from error
