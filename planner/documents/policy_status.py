"""``status`` of a ``ConsumerScalingPolicy``: what the last run made of it. It is written for people and tools alone.

::

    Ready    the last run decided on the policy as it stands; a hold is a decision
    Holding  the last decision leaves the group as it is; the reason is the hold's cause
    Stalled  the policy cannot be served until somebody changes it

No decision rests on a status, so whoever may write one can mislead readers and nobody else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

import planner.documents.status  # noqa: F401  spells the conditions
from planner.advice.answer import TOO_FEW, TOO_MANY
from planner.execution.progress import Condition
from planner.text.printable import one_line, without_passwords

READY, HOLDING, STALLED = "Ready", "Holding", "Stalled"
INVALID: Final = "InvalidPolicy"
"""Why a policy is stalled."""
NO_DECISION: Final = "NoDecision"
"""Why a policy is not ready though nothing is wrong with it: its group was not read, or a stage failed on it."""
LONGEST: Final = 1_024
"""Characters of one sentence; errors of servers may be of any length."""


class _StatusModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class LastDecision(_StatusModel):
    """The last decision: counts of consumers, its cause in a word, its reason in a sentence.

    ``since`` is when a decision with these counts and this cause came first, all later ones being the same.
    """

    at: datetime
    since: datetime
    from_replicas: int = Field(alias="from")
    to_replicas: int = Field(alias="to")
    cause: str
    reason: str


class LearnedCapacity(_StatusModel):
    """Messages per second that one consumer can do, as it was learned, with the bounds of 95 % confidence if known."""

    messages_per_second: float
    low: float | None = None
    high: float | None = None
    observations: int
    is_lower_bound: bool
    source: str


class PolicyStatus(_StatusModel):
    """What the last run made of the policy; what is not known is absent.

    ``plan`` is the policy's open plan in the namespace. ``next_look_at`` is when the next run is due, by its schedule.
    """

    observed_generation: int | None = None
    last_decision: LastDecision | None = None
    hold_cause: str | None = None
    plan: str | None = None
    learned_capacity: LearnedCapacity | None = None
    next_look_at: datetime | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionNews:
    """A run's decision on one policy: ``hold`` is the cause of a hold, ``plan`` the name of its open plan."""

    current: int
    target: int
    hold: str | None
    reason: str
    plan: str | None
    capacity: LearnedCapacity | None


@dataclass(frozen=True, slots=True)
class NoDecisionNews:
    """Why a run has no decision on one policy; ``is_stalled`` where only a change of the policy can help."""

    sentence: str
    is_stalled: bool


News = DecisionNews | NoDecisionNews


def next_status(
    before: PolicyStatus, news: News, at: datetime, generation: int | None, next_look_at: datetime | None
) -> PolicyStatus:
    """Return the status after a run of time ``at`` that read the policy's ``generation``.

    Without a decision the last one stays, with its time, and so does what was learned.
    """
    news_fields: dict[str, Any] = {"observed_generation": generation, "next_look_at": next_look_at}
    if isinstance(news, DecisionNews):
        decision = _decision(before.last_decision, news, at)
        news_fields |= {"last_decision": decision, "hold_cause": news.hold, "plan": news.plan}
        news_fields["learned_capacity"] = news.capacity
        facts = (
            (READY, True, decision.cause, decision.reason),
            (HOLDING, news.hold is not None, decision.cause, decision.reason),
            (STALLED, False, "Served", "the policy can be served"),
        )
    else:
        reason, sentence = INVALID if news.is_stalled else NO_DECISION, shown(news.sentence)
        holding = _condition_of(before, HOLDING)
        is_holding = holding is not None and holding.status == "True"
        last = f"as the last decision left it; the last run made none: {sentence}"
        facts = (
            (READY, False, reason, sentence),
            (HOLDING, is_holding, holding.reason if holding else NO_DECISION, shown(last)),
            (STALLED, news.is_stalled, reason if news.is_stalled else "Served", sentence),
        )
    conditions = tuple(_condition(before, *fact, at, generation) for fact in facts)
    return before.model_copy(update={**news_fields, "conditions": conditions})


def _decision(before: LastDecision | None, news: DecisionNews, at: datetime) -> LastDecision:
    cause = news.hold or (TOO_FEW if news.target > news.current else TOO_MANY)
    same = before is not None and (before.from_replicas, before.to_replicas, before.cause) == (
        news.current,
        news.target,
        cause,
    )
    since = before.since if before is not None and same else at
    counts = {"from": news.current, "to": news.target}
    return LastDecision.model_validate(
        {"at": at, "since": since, **counts, "cause": cause, "reason": shown(news.reason)}
    )


def _condition(
    before: PolicyStatus,
    name: str,
    is_true: bool,
    reason: str,
    message: str,
    at: datetime,
    generation: int | None,
) -> Condition:
    """Return a condition; its time changes with its status alone."""
    status, earlier = str(is_true), _condition_of(before, name)
    since = earlier.last_transition_time if earlier is not None and earlier.status == status else at
    return Condition(name, status, reason, message, since, generation)


def _condition_of(status: PolicyStatus, name: str) -> Condition | None:
    return next((condition for condition in status.conditions if condition.type == name), None)


def shown(sentence: str) -> str:
    """Return a sentence as a status may have it: one line of bounded length that holds no password."""
    line = one_line(without_passwords(sentence))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def dump_policy_status(status: PolicyStatus) -> dict[str, Any]:
    """Return the status for a merge patch: what is absent is null, which takes away what stood there."""
    return status.model_dump(mode="json", by_alias=True)


def parse_policy_status(status: Mapping[str, Any] | None) -> PolicyStatus:
    """Return the status of a policy object, a new one where there is none or what stands there cannot be read.

    Nothing rests on it, so one that somebody broke is begun anew.
    """
    try:
        return PolicyStatus.model_validate(status or {})
    except ValidationError:
        return PolicyStatus()
