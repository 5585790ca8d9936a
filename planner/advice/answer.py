"""``Advice``: one decision with its price, what nearly did, what else is wrong, and the next command."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from planner.advice.next_command import NextCommand
from planner.decision.decision import Decision, HoldCause
from planner.diagnosis.finding import Finding, Severity
from planner.model.snapshot import GroupSnapshot
from planner.rollout.plan import RolloutPlan
from planner.simulation.outcome import Messages, Seconds
from planner.text import words

MOST_FINDINGS = 3
"""Findings that stand beside an answer; ``planner doctor`` shows them all."""

TOO_FEW, TOO_MANY = "TooFewConsumers", "TooManyConsumers"
"""Causes of a decision to scale; a hold has its ``HoldCause``."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a decision costs.

    ``pods`` more run afterwards, fewer where it is negative; ``fewest`` to ``most`` of ``queues`` change their owner,
    ``None`` where that is not known. ``pause`` is the longest of a moved queue, ``duplicates`` all messages that come
    twice; ``None`` is unknown, and ``unknowns`` says why.
    """

    pods: int
    queues: int
    fewest: int | None
    most: int | None
    pause: Seconds | None
    duplicates: Messages | None
    unknowns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer on one group.

    Counts are of pods where ``deployment`` (``namespace/name``) is known, else of members. ``arrival_rate`` and
    ``consumption_rate`` are messages per second over ``watched_s`` seconds, ``None`` where unknown; so is ``lag``.
    ``is_clear`` says that the watch ended by its own rule, ``missing`` names what was not clear when it did not.
    ``count_note`` says in a line why counts are of members where pods cannot be distinguished; empty where they can.
    ``may_be_fewer``: the present count keeps up, and it is not known whether fewer would.
    """

    system: str
    cluster: str
    group: str
    deployment: str | None
    decision: Decision
    price: Price
    watched_s: float
    arrival_rate: float | None
    consumption_rate: float | None
    lag: int | None
    is_clear: bool
    missing: tuple[str, ...]
    near_misses: tuple[str, ...]
    findings: tuple[Finding, ...]
    next: NextCommand
    count_note: str = ""
    may_be_fewer: bool = False

    @property
    def cause(self) -> str:
        """Why it scales or holds, as one word for programs."""
        return cause_of(self.decision)

    @property
    def short_reason(self) -> str:
        """The cause, and for people whether fewer may do as well."""
        return f"{self.cause}, perhaps fewer" if self.may_be_fewer else self.cause

    @property
    def unit(self) -> str:
        """What is counted: ``pod`` or ``consumer``."""
        return "pod" if self.deployment else words.scaled(self.decision.members_per_pod)


def may_be_fewer(decision: Decision, snapshot: GroupSnapshot, lowest: int) -> bool:
    """Return whether more than the ``lowest`` count hold as right, and what one consumer can do did not show."""
    if decision.hold_cause is not HoldCause.RIGHT_ALREADY or decision.current <= lowest:
        return False
    return snapshot.capacity is None or snapshot.capacity.is_lower_bound


def fewer_note(advices: Iterable[Advice]) -> str:
    """Return of how many groups it is not known whether fewer would do, and what would say it; empty for none."""
    groups = sum(advice.may_be_fewer for advice in advices)
    if not groups:
        return ""
    return (
        f"Of {words.counted(groups, 'group')} it is not known whether fewer would do, as no consumer had work all the "
        "time: --capacity states what one can do."
    )


def price_of(plan: RolloutPlan | None, queues: int) -> Price:
    """Return what the plan costs; nothing where there is none, as nothing changes."""
    if plan is None:
        return Price(0, queues, 0, 0, Seconds(0.0, 0.0, 0.0), Messages(0, 0, 0))
    forecast, cost = plan.forecast, plan.forecast.cost
    return Price(
        pods=plan.final_replicas - plan.preconditions.replicas,
        queues=queues,
        fewest=forecast.moved_queues.fewest,
        most=forecast.moved_queues.most,
        pause=cost.pause_seconds if cost else None,
        duplicates=cost.duplicates if cost else None,
        unknowns=forecast.unknowns,
    )


def findings_that_matter(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the worst findings that are errors or warnings, at most ``MOST_FINDINGS``; they come worst first."""
    return tuple(finding for finding in findings if finding.severity != Severity.NOTICE)[:MOST_FINDINGS]


def cause_of(decision: Decision) -> str:
    """Return why it scales or holds, as one word for programs."""
    if decision.hold_cause is not None:
        return decision.hold_cause.value
    return TOO_FEW if decision.target > decision.current else TOO_MANY


def short_form(advice: Advice) -> dict[str, Any]:
    """Return the fixed short form of an advice, as ``short_answer`` has it."""
    return short_answer(advice.decision, advice.price, advice.next)


def short_answer(decision: Decision, price: Price, step: NextCommand | str) -> dict[str, Any]:
    """Return the fixed short form: decision, from, to, cause, reason, cost, next.

    ``from`` and ``to`` are counts of pods, of members where no Deployment is known; a hold has them equal.
    """
    return {
        "decision": "hold" if decision.is_hold else "scale",
        "from": decision.current,
        "to": decision.target,
        "cause": cause_of(decision),
        "reason": decision.reason,
        "cost": _cost(price),
        "next": str(step),
    }


def short_migration(plan: RolloutPlan, price: Price, step: NextCommand | str) -> dict[str, Any]:
    """Return the short form of a migration: ``decision`` is ``migrate``, ``cause`` the kind that was asked for.

    ``from`` and ``to`` are the pods before and in the end, over all Deployments that the plan changes.
    """
    return {
        "decision": "migrate",
        "from": plan.preconditions.replicas,
        "to": plan.final_replicas,
        "cause": plan.migration,
        "reason": plan.reason,
        "cost": _cost(price),
        "next": str(step),
    }


def _cost(price: Price) -> dict[str, Any]:
    return {
        "pods": price.pods,
        "movedQueues": {"fewest": price.fewest, "most": price.most, "of": price.queues},
        "pauseSeconds": _interval(price.pause),
        "duplicates": _interval(price.duplicates),
    }


def _interval(value: Seconds | Messages | None) -> dict[str, float] | None:
    return None if value is None else {"p05": value.p05, "p50": value.p50, "p95": value.p95}


def by_gain(advice: Advice) -> tuple[int, float, str]:
    """Return a sort key: groups that lack consumers first, then those that have too many, then those that hold.

    Within the first by what waits, within the second by the pods that become free; holds on a doubt stand before those
    that are right already.
    """
    decision = advice.decision
    if decision.target > decision.current:
        return 0, -float(advice.lag or 0), advice.group
    if decision.target < decision.current:
        return 1, float(advice.price.pods), advice.group
    is_right = advice.cause == "RightAlready"
    return 3 if is_right else 2, -float(advice.lag or 0), advice.group
