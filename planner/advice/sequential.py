"""When a watch may end: a rule over its evaluations, one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.advice.evaluation import Evaluation
from planner.decision.decision import HoldCause
from planner.text import words

LEAST_S = 60.0
"""Upper rates are means of whole minutes, so that no watch says less."""

STEADY_S = 30.0
"""An answer has to stay the same for so long: six evaluations, one at each sample."""

DIRECTION_S = 180.0
"""After so long a direction is enough: more consumers, or fewer, however many exactly. A group that nobody saw busy
until then has time to spare."""

LONGEST_S = 600.0
"""No watch lasts longer: the answer is then the best that is known, and says what is not clear."""

PATIENCE_S: Mapping[HoldCause, float] = {
    HoldCause.NO_CONSUMERS: 30.0,
    HoldCause.OTHER_SCALER: 30.0,
    HoldCause.MEMBERS_UNKNOWN: 60.0,
    HoldCause.SEVERAL_DEPLOYMENTS: 30.0,
    HoldCause.UNKNOWN_PODS: 30.0,
    HoldCause.UNEVEN_PODS: 180.0,
    HoldCause.UNSUPPORTED_STRATEGY: 30.0,
    HoldCause.PLAN_REFUSED: 30.0,
    HoldCause.UNKNOWN_STRATEGY: 60.0,
    HoldCause.UNKNOWN_LAG: 90.0,
    HoldCause.BLOCKED_QUEUES: 120.0,
    HoldCause.COMMITS_WENT_BACK: 120.0,
    HoldCause.SLOW_MEMBERS: 120.0,
    HoldCause.UNSETTLED: 180.0,
}
"""How long a reason to hold has to last until more watching is no hope: a rebalance ends, an unknown strategy stays."""

DEFAULT_PATIENCE_S = 240.0
"""Rates, capacity and completeness grow with the watch."""

COMPARED = (None, HoldCause.RIGHT_ALREADY, HoldCause.NO_COUNT_MEETS)
"""Causes of decisions for which all counts were compared; ``None`` scales."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that a clear answer needs: its name, how far it is met (0 to 1) and a few words on how far."""

    name: str
    share: float
    note: str

    @property
    def is_met(self) -> bool:
        """True when nothing is missing."""
        return self.share >= 1.0


@dataclass(frozen=True, slots=True)
class Clarity:
    """How clear the answer is by now."""

    conditions: tuple[Condition, ...]

    @property
    def is_clear(self) -> bool:
        """True when the watch may end."""
        return all(condition.is_met for condition in self.conditions)

    @property
    def share(self) -> float:
        """How far the conditions are met on average, 0 to 1: grows towards a clear answer."""
        return sum(min(1.0, condition.share) for condition in self.conditions) / len(self.conditions)

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not met, in words."""
        return tuple(condition.note for condition in self.conditions if not condition.is_met)


def clarity(evaluations: Sequence[Evaluation]) -> Clarity:
    """Return how clear the answer is after these evaluations, oldest first, at least one.

    A decision between counts is clear when the watch covers a minute, the answer has stayed the same for half a minute,
    and both bounds of rate and capacity give the same count. From three minutes on the same direction is enough. For
    growth each member that has work must have been seen to commit three times, too, once any other was.
    A reason to hold is clear when it has lasted for its ``PATIENCE_S``.
    """
    if evaluations[-1].decision.hold_cause in COMPARED:
        return Clarity(tuple(_compare(evaluations)))
    return Clarity((_lasting(evaluations),))


def steady_s(evaluations: Sequence[Evaluation]) -> float:
    """Return for how many seconds the newest answer has been the same."""
    newest = evaluations[-1]
    first = newest
    for evaluation in reversed(evaluations):
        if _answer(evaluation) != _answer(newest):
            break
        first = evaluation
    return newest.watched_s - first.watched_s


def _answer(evaluation: Evaluation) -> tuple[int, HoldCause | None]:
    return evaluation.decision.target, evaluation.decision.hold_cause


def _compare(evaluations: Sequence[Evaluation]) -> Iterator[Condition]:
    newest = evaluations[-1]
    watched, steady = newest.watched_s, steady_s(evaluations)
    yield Condition("watched", watched / LEAST_S, f"watched for {words.duration(watched)} of {words.duration(LEAST_S)}")
    same = f"the same answer for {words.duration(steady)} of {words.duration(STEADY_S)}"
    yield Condition("steady", steady / STEADY_S, same)
    yield _bounds(newest)
    if newest.decision.target > newest.decision.current:
        yield from _cycles(evaluations)


def _cycles(evaluations: Sequence[Evaluation]) -> Iterator[Condition]:
    """More members are no answer while one may only be slow: its pace shows in two whole cycles.

    A default Kafka consumer commits once it has worked off 500 records: at 0.3 s each that is every 150 s.
    """
    newest = evaluations[-1]
    lately = [each for each in evaluations if newest.watched_s - each.watched_s < STEADY_S]
    if between := sorted({member for each in lately for member in each.between_commits}):
        note = f"{words.some(between)} committed less than three times until {words.duration(STEADY_S)} ago"
        yield Condition("cycles", newest.watched_s / LONGEST_S, note)


def _bounds(newest: Evaluation) -> Condition:
    """The bounds of rate and capacity must give one count, or later one direction."""
    current, fewest, most = newest.decision.current, newest.fewest, newest.most
    if fewest is None or most is None:
        return Condition("bounds", 0.0, "neither rate nor capacity is known well enough")
    so_far = newest.watched_s / DIRECTION_S
    if newest.is_open_above and newest.decision.target <= current:
        return Condition("bounds", so_far, "no consumer has been busy so far: fewer may do")
    if fewest == most:
        return Condition("bounds", 1.0, f"rate and capacity are known well enough: {most}")
    if fewest > current or most < current:
        return Condition("bounds", so_far, f"{fewest} to {most} consumers are possible")
    return Condition("bounds", 0.5, f"{fewest} to {most} consumers are possible, the present {current} too")


def _lasting(evaluations: Sequence[Evaluation]) -> Condition:
    cause = evaluations[-1].decision.hold_cause
    patience = DEFAULT_PATIENCE_S if cause is None else PATIENCE_S.get(cause, DEFAULT_PATIENCE_S)
    steady = steady_s(evaluations)
    return Condition("lasting", steady / patience, f"held up for {words.duration(steady)} by {cause}")
