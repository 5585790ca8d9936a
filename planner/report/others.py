"""The other groups that the same pods serve: what the plan does to each of them."""

from dataclasses import dataclass

from planner.report import words
from planner.rollout.explain import describe_cost
from planner.rollout.plan import OtherGroup, OwnedQueues, RolloutPlan
from planner.rollout.queue_ranges import count_queues


@dataclass(frozen=True, slots=True)
class Share:
    """How many queues a consumer owns before and after; ``None`` where it is not there, or nobody knows."""

    consumer: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class OtherRow:
    """One other group: what is expected of it, what its policy would have decided alone, and what nobody knows."""

    group: str
    policy: str
    noun: str
    expected: str
    alone: str
    unknowns: tuple[str, ...]
    shares: tuple[Share, ...]


def others(plan: RolloutPlan | None) -> tuple[OtherRow, ...]:
    """Return one row for each other group of the plan's pods; none for a hold or pods that serve one group."""
    return tuple(_row(other) for other in (plan.others or () if plan else ()))


def _row(other: OtherGroup) -> OtherRow:
    system, forecast = other.group.system, other.forecast
    expected = describe_cost(forecast, other.preconditions.queues, system)
    return OtherRow(
        group=other.group.group,
        policy=other.policy,
        noun=words.queue_noun(system),
        expected=f"{expected[:1].upper()}{expected[1:]}.",
        alone=other.reason,
        unknowns=tuple(f"{unknown[:1].upper()}{unknown[1:]}." for unknown in forecast.unknowns),
        shares=_shares(forecast.owners_before, forecast.owners_after),
    )


def _shares(before: tuple[OwnedQueues, ...], after: tuple[OwnedQueues, ...]) -> tuple[Share, ...]:
    counts = [{owned.consumer: count_queues(owned.queues) for owned in owners} for owners in (before, after)]
    names = dict.fromkeys((*counts[0], *counts[1]))
    return tuple(Share(name, counts[0].get(name), counts[1].get(name)) for name in names)
