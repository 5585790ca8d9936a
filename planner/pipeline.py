"""The path, top to bottom: observe, snapshot, simulate, decide, plan.

Each function takes what the one above returned. The Spark apps run the same functions, one group a row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from planner.decision.choose import decide as choose
from planner.decision.decision import Decision, HoldCause
from planner.decision.hold_reasons import too_old
from planner.decision.shared import Wish, decide_together, keep_counts
from planner.documents.approve import approved
from planner.documents.data import METRIC_HISTORY, SAMPLE, SNAPSHOT
from planner.documents.migration import with_request
from planner.documents.plan import PLAN, document_name, migration_name
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError, UnknownNameError
from planner.history.intervals import queue_intervals
from planner.inference import with_evidence
from planner.model.intervals import QueueInterval
from planner.model.points import MetricHistory
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.rollout.approval import why_not
from planner.rollout.bounds import outside_policy
from planner.rollout.build import build_plan
from planner.rollout.feasibility import why_no_plan
from planner.rollout.migrations.make import make_migration
from planner.rollout.migrations.migration import plan_of, read_context
from planner.rollout.migrations.requests import Request
from planner.rollout.plan import DecisionRecord, GroupRef, RolloutPlan, SnapshotRef
from planner.rollout.refusals import Refusal, refused
from planner.rollout.shared import OtherCase, with_others
from planner.simulation.candidates import (
    can_simulate,
    candidate_counts,
    check_comparable,
    simulable_counts,
    simulate_candidate,
    strategies_to_compare,
)
from planner.simulation.lost_broker import BrokerLoss, loss_transition
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.second_lever import second_lever
from planner.simulation.transition import with_transition
from planner.simulation.zero import outcome_around_zero
from planner.snapshot.build import build_snapshot
from planner.snapshot.metrics import with_metrics
from planner.sources.capture import Capture
from planner.storage.files import write_atomically
from planner.storage.layout import metrics_path, sample_path
from planner.text.words import and_list

LOAD_IS_KNOWN = (
    HoldCause.RIGHT_ALREADY,
    HoldCause.NO_COUNT_MEETS,
    HoldCause.OTHER_SCALER,
    HoldCause.PLAN_REFUSED,
    HoldCause.SHARED_TARGET,
)
"""Causes of a hold in spite of which the load is known well enough to weigh another lever."""


def observe_capture(capture: Capture, group: str, since: datetime, until: datetime) -> tuple[GroupSample, ...]:
    """Return the capture's samples of ``group`` from ``since`` up to, not including, ``until``."""
    return tuple(sample for sample in capture.samples(group) if since <= sample.at < until)


def land_samples(data: Path, samples: Iterable[GroupSample]) -> tuple[Path, ...]:
    """Write each sample below the data folder, one file each; landing one again gives the same file.

    A sample that differs from the one that landed for the same group and millisecond is not written. Raises
    ``BadInputError`` that names the first such, once all others are.
    """
    landed, differing = [], []
    for sample in samples:
        path, content = sample_path(data, sample), SAMPLE.dump(sample)
        if path.exists() and path.read_bytes() != content and SAMPLE.read(path) != sample:
            differing.append(path)
        else:
            landed.append(write_atomically(path, content))
    if differing:
        raise BadInputError(
            f"found {len(differing)} samples that differ from one of the same group and time, {differing[0]} for one: "
            f"the first stays and {len(landed)} others were written; record with one planner, or into two data folders"
        )
    return tuple(landed)


def land_metrics(data: Path, history: MetricHistory) -> Path | None:
    """Write a group's past out of metrics below the data folder and return the path, ``None`` when it is empty.

    The lag history takes what lies before the first time that it knows of the group.
    """
    end_times = [interval.ended_at for interval in history.intervals] + [point.at for point in history.points]
    if not end_times:
        return None
    return write_atomically(metrics_path(data, history, max(end_times)), METRIC_HISTORY.dump(history))


def take_snapshot(
    samples: Sequence[GroupSample],
    sample_every_s: float,
    policy: ConsumerScalingPolicy,
    at: datetime,
    past: MetricHistory | None = None,
) -> GroupSnapshot:
    """Return the group's snapshot as of ``at`` from the samples taken until then.

    ``past`` fills in what metrics know and the samples do not.

    Raises ``UnknownNameError`` when there is none.
    """
    until = [sample for sample in samples if sample.at <= at]
    if not until:
        group = policy.spec.source.group
        raise UnknownNameError(f"group {group} has no sample up to {at.isoformat()}: observe it first")
    newest = max(until, key=lambda sample: sample.at)
    taken = snapshot_from(newest, queue_intervals(until, sample_every_s), policy, at)
    return with_metrics(taken, past, policy.snapshot_settings) if past else taken


def snapshot_from(
    newest: GroupSample, intervals: Sequence[QueueInterval], policy: ConsumerScalingPolicy, at: datetime
) -> GroupSnapshot:
    """Return the group's snapshot as of ``at``, its strategy compared with who owns what."""
    built = build_snapshot(newest, intervals, at, policy.snapshot_settings)
    return with_evidence(built, newest, intervals, policy.spec.strategy)


def candidates(snapshot: GroupSnapshot, policy: ConsumerScalingPolicy) -> tuple[tuple[str, int], ...]:
    """Return what is to be simulated: strategies and counts, the group's own strategy first, counts ascending.

    None for a group without consumers or queues, or whose strategy cannot be simulated: the decision says so. Nor are
    counts among them for which owners are unknown (``why_no_more``).
    """
    if not can_simulate(snapshot):
        return ()
    counts = candidate_counts(snapshot, policy.objective.lowest, policy.objective.highest)
    strategies = strategies_to_compare(snapshot)
    return tuple((name, count) for name in strategies for count in simulable_counts(snapshot, name, counts))


def simulate(snapshot: GroupSnapshot, policy: ConsumerScalingPolicy) -> tuple[CandidateOutcome, ...]:
    """Return one outcome for each of the ``candidates``, in their order."""
    return simulate_candidates(snapshot, candidates(snapshot, policy))


def simulate_candidates(
    snapshot: GroupSnapshot, requested: Iterable[tuple[str, int]], digest: str | None = None
) -> tuple[CandidateOutcome, ...]:
    """Return one outcome for each strategy and count, with what the change to it costs; ``digest`` is the snapshot's.

    The only source of outcomes: the command line, the Spark app and the report all call this, so all agree. Nothing
    requested gives nothing. Raises ``BadInputError`` where there is nothing to compare, and ``UnknownNameError`` for an
    unknown strategy.
    """
    listed = tuple(requested)
    if listed:
        check_comparable(snapshot)
    named = digest or SNAPSHOT.digest(snapshot)
    return tuple(with_transition(simulate_candidate(snapshot, count, name), snapshot, named) for name, count in listed)


def with_loss(
    outcomes: Iterable[CandidateOutcome], snapshot: GroupSnapshot, loss: BrokerLoss
) -> tuple[CandidateOutcome, ...]:
    """Return the outcomes of the group without a broker; that of the present count gets what the loss costs.

    ``snapshot`` is of the group with all of its brokers.
    """
    return tuple(_with_loss(outcome, snapshot, loss) for outcome in outcomes)


def _with_loss(outcome: CandidateOutcome, snapshot: GroupSnapshot, loss: BrokerLoss) -> CandidateOutcome:
    unknowns = (*outcome.unknowns, *loss.unknowns)
    if not outcome.is_current:
        return replace(outcome, unknowns=unknowns)
    whole = simulate_candidate(snapshot, outcome.count, outcome.strategy)
    transition, why = loss_transition(whole, snapshot, loss.broker, SNAPSHOT.digest(snapshot))
    return replace(outcome, transition=transition, unknowns=(*unknowns, *([why] if why else [])))


def decide(
    snapshot: GroupSnapshot,
    outcomes: Sequence[CandidateOutcome],
    policy: ConsumerScalingPolicy,
    at: datetime | None = None,
) -> DecisionRecord:
    """Return the decision at time ``at``, the snapshot's own time when ``None``, with its snapshot and policy.

    A change that no plan could carry out is a hold, and says why. So is any of a group whose pods serve other groups,
    as only ``decide_shared`` knows these.
    """
    record = decide_alone(snapshot, outcomes, policy, at)
    if not policy.shared_with or record.decision.is_hold:
        return record
    others = ", ".join(policy.shared_with)
    why = f"the same pods serve the groups of policy {others}: planner run decides on all of them together"
    return keep_count(GroupCase(policy, snapshot, record), why)


def keep_count(case: "GroupCase", why: str) -> DecisionRecord:
    """Return the hold of a group whose pods serve others of which nothing is known; ``why`` has no stop."""
    return replace(case.own, decision=keep_counts([case.wish], why)[case.name], second_lever=None)


def decide_alone(
    snapshot: GroupSnapshot,
    outcomes: Sequence[CandidateOutcome],
    policy: ConsumerScalingPolicy,
    at: datetime | None = None,
) -> DecisionRecord:
    """Return the decision as if the target's pods served this group alone."""
    decision = choose(snapshot, outcomes, policy.objective, at or snapshot.at)
    if refusal := why_no_plan(snapshot, decision.target, policy.spec.autoscaler.handling, policy.spec.targets):
        decision = decision.as_hold(refusal.sentence)
    return DecisionRecord(
        policy=policy.metadata.name,
        group=GroupRef(snapshot.system, snapshot.cluster, snapshot.group),
        deployment=and_list(policy.spec.target_names),
        snapshot=SnapshotRef(SNAPSHOT.digest(snapshot), snapshot.at),
        decision=decision,
        second_lever=_second_lever(snapshot, outcomes, decision, policy),
    )


def _second_lever(
    snapshot: GroupSnapshot, outcomes: Sequence[CandidateOutcome], decision: Decision, policy: ConsumerScalingPolicy
) -> str | None:
    """Return what would do instead of the pods that the decision adds, or without another one where it adds none.

    Nothing of a hold that rests on doubtful data, or of a group that more pods did not help.
    """
    if decision.target < decision.current or (decision.is_hold and decision.hold_cause not in LOAD_IS_KNOWN):
        return None
    own = {outcome.count: outcome for outcome in outcomes if outcome.strategy == decision.strategy}
    staying, chosen = own.get(decision.current), own.get(decision.target)
    return second_lever(snapshot, staying, chosen, policy.objective.stated_utilisation)


@dataclass(frozen=True, slots=True)
class GroupCase:
    """One of several groups that the same pods serve; ``own`` is what it would get alone."""

    policy: ConsumerScalingPolicy
    snapshot: GroupSnapshot
    own: DecisionRecord

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.policy.metadata.name

    @property
    def wish(self) -> Wish:
        """What it would get alone, as the decision of all of them takes it."""
        return Wish(self.name, self.own.decision, self.policy.spec.max_replicas)

    @property
    def other(self) -> OtherCase:
        """The same as the plan of another policy takes it."""
        return OtherCase(self.snapshot, self.own.snapshot.digest, self.own.decision, self.policy.rollout_settings)


def decide_shared(cases: Sequence[GroupCase]) -> Mapping[str, DecisionRecord]:
    """Return the decision of each policy of one target, by its name: at most one of them scales, for all groups."""
    wishes = [case.wish for case in cases]
    decisions = decide_together(wishes)
    for name, decision in decisions.items():
        if not decision.is_hold and (why := _why_not_for_all(cases, name, decision.target)) is not None:
            decisions = keep_counts(wishes, why)
            break
    return {case.name: _shared_record(case.own, decisions[case.name]) for case in cases}


def _shared_record(own: DecisionRecord, decision: Decision) -> DecisionRecord:
    """Return the record with the decision for all groups: what would do instead is said of the group's own count."""
    lever = own.second_lever if decision.target == own.decision.target else None
    return replace(own, decision=decision, second_lever=lever)


def _why_not_for_all(cases: Sequence[GroupCase], lead: str, count: int) -> str | None:
    """Return why ``count`` pods do harm to a group whose policy did not ask for them, ``None`` where they do not."""
    others = [case for case in cases if case.name != lead]
    reasons = ((case.wish.group, _why_not_for(case, count)) for case in others)
    return next((f"{group} in the same pods: {why}" for group, why in reasons if why is not None), None)


def _why_not_for(case: GroupCase, count: int) -> str | None:
    snapshot, spec = case.snapshot, case.policy.spec
    if (refusal := why_no_plan(snapshot, count, spec.autoscaler.handling)) is not None:
        return refusal.sentence
    if 0 in (snapshot.count, count):
        return None
    if not simulable_counts(snapshot, snapshot.strategy or "", [count]):
        return f"who would own its queues with {count} pods is not known"
    now = simulate_candidate(snapshot, snapshot.count, snapshot.strategy or "").utilisation
    then = simulate_candidate(snapshot, count, snapshot.strategy or "").utilisation
    bound = case.policy.objective.stated_utilisation
    if then is None or now is None or bound is None or then <= max(now, bound):
        return None
    return f"its busiest consumer would be used at {then:.0%} with {count} pods, above the bound of {bound:.0%}"


def plan(
    snapshot: GroupSnapshot,
    record: DecisionRecord,
    policy: ConsumerScalingPolicy,
    outcomes: Sequence[CandidateOutcome],
    others: Sequence[GroupCase] = (),
) -> RolloutPlan | None:
    """Return the plan for a decision to scale, ``None`` for a hold; ``others`` are those of the same pods."""
    decision = record.decision
    if decision.is_hold:
        return None
    is_around_zero = 0 in (decision.current, decision.target)
    digest, target = record.snapshot.digest, decision.target
    chosen = outcome_around_zero(snapshot, target, digest) if is_around_zero else _chosen(decision, outcomes)
    built = build_plan(snapshot, digest, decision, chosen, policy.rollout_settings)
    made = replace(built, second_lever=record.second_lever)
    return with_others(made, [case.other for case in others]) if others else made


def migrate(
    snapshot: GroupSnapshot, request: Request, policy: ConsumerScalingPolicy, at: datetime | None = None
) -> RolloutPlan:
    """Return the plan for a migration that somebody asks for, made at ``at``, the snapshot's own time when ``None``.

    Load decides nothing here, but its costs rest on it: a snapshot too old for a decision is too old for this.
    Raises ``RefusedError`` for what would do harm or rests on too little, ``BadInputError`` for what does not fit.
    """
    made_at = at or snapshot.at
    if policy.spec.targets:
        sentence = (
            f"group {snapshot.group} is split over Deployments {and_list(policy.spec.target_names)}: a migration "
        )
        raise refused(Refusal.OUTSIDE_POLICY, f"{sentence}changes one that runs all members; let one of them do so")
    if old := too_old(snapshot, policy.objective, made_at):
        raise refused(Refusal.OLD_DATA, f"the snapshot of group {snapshot.group}: {old}: take a new one")
    context = read_context(snapshot, SNAPSHOT.digest(snapshot), policy.rollout_settings)
    made = plan_of(make_migration(context, request), context, made_at)
    if outside := outside_policy(made, policy.bounds):
        raise refused(Refusal.OUTSIDE_POLICY, f"{'; '.join(outside)}: ask for less, or change the policy first")
    return made


def migration_document(made: RolloutPlan, policy: ConsumerScalingPolicy, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a migration's plan as a document that keeps the ``request``, so that it can be made anew.

    It is never approved by criteria: migrations are for a person.
    """
    return with_request(PLAN.document(made, migration_name(made), policy.metadata.namespace), request)


def plan_document(
    made: RolloutPlan, record: DecisionRecord, policy: ConsumerScalingPolicy, doubts: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the plan as a document, approved where ``why_no_approval`` has no reason against it."""
    document = PLAN.document(made, document_name(record), policy.metadata.namespace)
    return document if why_no_approval(made, policy, doubts) else approved(document)


def why_no_approval(made: RolloutPlan, policy: ConsumerScalingPolicy, doubts: Sequence[str] = ()) -> tuple[str, ...]:
    """Return every reason why the plan is for a person to approve; none when the policy's criteria approve it.

    The criteria go by the forecast, so they approve nothing where ``doubts`` exist (``TrackRecord``).
    """
    rule = policy.approval_rule
    if rule is None:
        return ("the policy leaves every plan to a person",)
    return (*why_not(made, rule, made.made_at), *doubts)


def _chosen(decision: Decision, outcomes: Sequence[CandidateOutcome]) -> CandidateOutcome:
    return next(o for o in outcomes if o.count == decision.target and o.strategy == decision.strategy)
