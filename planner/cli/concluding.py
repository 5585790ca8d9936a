"""From a finished watch to the answer: the decision on what was watched, its plan and price, findings, next command."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.advice.answer import Advice, findings_that_matter, may_be_fewer, price_of
from planner.advice.counting import count_note, likely_members_per_pod
from planner.advice.evaluation import own_outcomes
from planner.advice.near_misses import near_misses
from planner.advice.next_command import AddressCommands, NextCommand, command_after_decision
from planner.cli.default_policy import MOST
from planner.cli.watching import GroupWatch

if TYPE_CHECKING:
    from planner.cli.address import Address
    from planner.cli.target import Target
    from planner.decision.decision import Decision
    from planner.diagnosis.finding import Finding
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.snapshot import GroupSnapshot
    from planner.rollout.plan import DecisionRecord, RolloutPlan
    from planner.simulation.outcome import CandidateOutcome


@dataclass(frozen=True)
class Conclusion:
    """The answer on one group, and all that a page about it shows."""

    advice: Advice
    policy: "ConsumerScalingPolicy"
    snapshot: "GroupSnapshot"
    outcomes: "tuple[CandidateOutcome, ...]"
    record: "DecisionRecord"
    plan: "RolloutPlan | None"


def conclude(watch: GroupWatch, sample_every_s: float, address: "Address", target: "Target | None") -> Conclusion:
    """Return the answer on the group from all its samples, of which there is at least one."""
    from planner import pipeline

    policy = watch.policy_now(sample_every_s)
    snapshot = watch.take_snapshot(policy, sample_every_s)
    outcomes = own_outcomes(snapshot, policy.objective.lowest, policy.objective.highest)
    record = pipeline.decide(snapshot, outcomes, policy)
    if not record.decision.is_hold:
        outcomes = _with_price(outcomes, snapshot, record)
    plan = pipeline.plan(snapshot, record, policy, outcomes)
    commands = AddressCommands(
        watch.group,
        f"{address.server}{address.account}",
        options=_options(policy),
        deployment=str(target) if target else None,
        highest=policy.spec.max_replicas,
        kubeconfig=str(target.kubeconfig) if target and target.kubeconfig else None,
        members_per_pod=likely_members_per_pod(snapshot),
        larger_bound=_larger_bound(snapshot, policy.spec.max_replicas),
    )
    clarity = watch.clarity
    arrival, consumption = group_rates(snapshot)
    perhaps_fewer = may_be_fewer(record.decision, snapshot, policy.objective.lowest)
    advice = Advice(
        system=snapshot.system,
        cluster=snapshot.cluster,
        group=snapshot.group,
        deployment=str(target) if target and snapshot.deployment else None,
        decision=record.decision,
        price=price_of(plan, len(snapshot.data_queues)),
        watched_s=watch.watched_s,
        arrival_rate=arrival,
        consumption_rate=consumption,
        lag=None if snapshot.unknown_lag else snapshot.lag,
        is_clear=watch.is_clear,
        missing=clarity.missing if clarity else (),
        near_misses=near_misses(outcomes, record.decision.target, policy.objective),
        findings=findings_that_matter(_findings(watch, sample_every_s)),
        next=_next(record.decision, commands, is_unknown=perhaps_fewer),
        count_note=count_note(snapshot),
        may_be_fewer=perhaps_fewer,
    )
    return Conclusion(advice, policy, snapshot, outcomes, record, plan)


def _next(decision: "Decision", commands: AddressCommands, *, is_unknown: bool) -> NextCommand:
    """Return the next command; where it ``is_unknown`` whether fewer would do, with what says that."""
    step = command_after_decision(decision, commands)
    hint = "; with --capacity, what one consumer can do, planner advise says whether fewer would do"
    return NextCommand(step.command, f"{step.note}{hint}") if is_unknown else step


def _options(policy: "ConsumerScalingPolicy") -> str:
    """Return what a person has stated of pods and consumers, as options of the next command."""
    capacity = policy.spec.capacity.messages_per_second if policy.spec.capacity else None
    stated = {"--members-per-pod": policy.spec.members_per_pod, "--capacity": capacity}
    return "".join(f" {option} {value:.15g}" for option, value in stated.items() if value is not None)


def _larger_bound(snapshot: "GroupSnapshot", highest: int) -> int | None:
    """Return twice the bound, or as many pods as there are queues for; ``None`` where no more could help."""
    from planner.simulation.candidates import shares_messages

    queues = -(-len(snapshot.data_queues) // (snapshot.members_per_pod or 1))
    larger = min(2 * highest, MOST if shares_messages(snapshot) else queues)
    return larger if highest < larger <= MOST else None


def group_rates(snapshot: "GroupSnapshot") -> tuple[float | None, float | None]:
    """Return what comes in and what is consumed over the window, in messages per second; ``None`` where unknown."""
    arrivals = [state.arrival_rate for state in snapshot.data_queues]
    consumptions = [state.consumption_rate for state in snapshot.data_queues]
    return _sum(arrivals), _sum(consumptions)


def _sum(rates: list[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _with_price(
    outcomes: "tuple[CandidateOutcome, ...]", snapshot: "GroupSnapshot", record: "DecisionRecord"
) -> "tuple[CandidateOutcome, ...]":
    """Return the outcomes, the chosen one with what the change costs."""
    from planner.simulation.transition import with_transition

    target = record.decision.target
    return tuple(
        with_transition(outcome, snapshot, record.snapshot.digest) if outcome.count == target else outcome
        for outcome in outcomes
    )


def _findings(watch: GroupWatch, sample_every_s: float) -> "tuple[Finding, ...]":
    from planner.diagnosis.diagnose import diagnose
    from planner.diagnosis.group_evidence import GroupEvidence

    timing = watch.policy.snapshot_settings.timing
    return diagnose(GroupEvidence(tuple(watch.samples), sample_every_s, timing=timing))
