"""``CalibrationRecord``: one forecast and what came of it, kept for the next one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from planner.model.times import check_time
from planner.rollout.plan import GroupRef, OtherGroup, RolloutPlan
from planner.verification.verdict import Figure, Fit, Verdict


@dataclass(frozen=True, slots=True)
class Miss:
    """How far a figure that was observed lies from its forecast, in its unit.

    0 is inside, below 0 less than forecast, above 0 more; ``None`` where it is unknown. ``width`` is the forecast's
    own: one that is always inside because it is wide is no good one.
    """

    name: str
    unit: str
    fit: Fit
    distance: float | None
    width: float | None


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """One change of one group: what kind it was, and how each figure of its forecast did."""

    group: GroupRef
    policy: str
    strategy: str
    migration: str | None
    members_before: int
    members_after: int
    queues: int
    snapshot_digest: str
    judged_at: datetime
    misses: tuple[Miss, ...]

    def __post_init__(self) -> None:
        check_time(f"record of group {self.group.group}", self.judged_at)


def calibration_records(plan: RolloutPlan, verdict: Verdict) -> tuple[CalibrationRecord, ...]:
    """Return the records of a plan that was carried out and judged: its own group's, then those of each other group.

    A group of the same pods that the verdict has no figures for has none.
    """
    figures = {other.group: other.figures for other in verdict.others or ()}
    others = ((other, figures[other.group.group]) for other in plan.others or () if other.group.group in figures)
    return (
        _record(plan, plan.migration, verdict.judged_at, verdict.figures),
        *(_record(other, plan.migration, verdict.judged_at, judged) for other, judged in others),
    )


def _record(
    basis: RolloutPlan | OtherGroup, migration: str | None, judged_at: datetime, figures: Sequence[Figure]
) -> CalibrationRecord:
    return CalibrationRecord(
        group=basis.group,
        policy=basis.policy,
        strategy=basis.preconditions.strategy,
        migration=migration,
        members_before=len(basis.preconditions.members),
        members_after=len(basis.forecast.owners_after),
        queues=basis.preconditions.queues,
        snapshot_digest=basis.snapshot.digest,
        judged_at=judged_at,
        misses=tuple(map(_miss, figures)),
    )


def _miss(figure: Figure) -> Miss:
    width = None if figure.low is None or figure.high is None else figure.high - figure.low
    return Miss(figure.name, figure.unit, figure.fit, _distance(figure), width)


def _distance(figure: Figure) -> float | None:
    if figure.fit is Fit.INSIDE:
        return 0.0
    if figure.fit is Fit.UNKNOWN or figure.low is None or figure.high is None or figure.seen_low is None:
        return None
    if figure.seen_low > figure.high:
        return figure.seen_low - figure.high
    return None if figure.seen_high is None else figure.seen_high - figure.low
