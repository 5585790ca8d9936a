"""A new image or configuration: all pods are replaced, in batches of so many new ones before as many old ones go."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.decision.prices import Prices
from planner.forecast.words import count_between, messages_between, seconds_between
from planner.rollout.batches import Span
from planner.rollout.migrations.machine_rooms import await_settled
from planner.rollout.migrations.migration import (
    Migration,
    MigrationContext,
    all_owned,
    check_orderly,
    forecast_change,
    known_cost,
)
from planner.rollout.migrations.split_brain import refuse_rolling
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import AwaitReady, AwaitSettled, CheckForecast, MovedQueues, Step, UpdateTemplate
from planner.rollout.steps.sense import scaled_limit
from planner.rollout.template import TemplateChange
from planner.simulation.group_model import Change, group_model
from planner.simulation.outcome import Transition

KIND = "update"
_SHARE = 0.25
"""Kubernetes' own default for both limits of a rolling update."""


@dataclass(frozen=True, slots=True)
class UpdatePace:
    """How many pods an update replaces at once, with what that costs; ``cost`` in seconds of one consumer."""

    surge: int
    unavailable: int
    forecast: Transition | str
    cost: Span | None = None


def update(
    context: MigrationContext, change: TemplateChange, from_revision: int, surge: int | None = None
) -> Migration:
    """Return the update of all pods to the changed template, never with fewer ready consumers than now.

    ``from_revision`` is the Deployment's now. Without ``surge`` one, a quarter of all and all new pods at once are
    forecast, and the cheapest is taken; Kubernetes' default of 25 % more and 25 % less stands beside them.
    Raises ``RefusedError`` for an orderly group whose consumers would be killed, or would stop before others start, and
    for a change that names another RocketMQ strategy: members would mix two.
    """
    check_orderly(context)
    refuse_rolling(context, change)
    if context.snapshot.orderly and surge == 0:
        raise refused(
            Refusal.ORDERLY_WITHOUT_SURGE,
            f"group {context.snapshot.group} consumes in order, and without surge each queue waits until its new owner "
            "has started: allow one pod more",
        )
    surges = sorted({1, math.ceil(context.count * _SHARE), context.count}) if surge is None else [surge]
    paces = [_pace(context, size, 0) for size in surges]
    best = min(paces, key=_upper_end)
    fewer = math.floor(context.count * _SHARE)
    usual = [_pace(context, math.ceil(context.count * _SHARE), fewer)] if fewer or surge is not None else []
    moved = all_owned(context)
    return Migration(
        kind=KIND,
        steps=update_steps(context, change, from_revision, best.surge, moved, context.strategy),
        must_be_true=(
            "the new version can run beside the old one in one group",
            "the changed template leaves the allocation strategy as it is",
        ),
        why=tuple(_why(best, [pace for pace in (*paces, *usual) if pace is not best])),
        moved=moved,
        cost=known_cost(best.forecast),
        unknowns=(best.forecast,) if isinstance(best.forecast, str) else (),
    )


def update_steps(
    context: MigrationContext, change: TemplateChange, from_revision: int, surge: int, moved: MovedQueues, strategy: str
) -> tuple[Step, ...]:
    """Return the steps of one roll through all pods, until the group has settled under ``strategy``."""
    settings, rounds = context.settings, math.ceil(context.count / surge)
    limit_s = scaled_limit(settings.ready_limit_s, rounds)
    return (
        UpdateTemplate(change, context.count, surge, 0, from_revision, settings.ready_limit_s, moved),
        AwaitReady(context.count, limit_s),
        await_settled(context, context.count)
        if strategy == context.strategy
        else AwaitSettled(context.count, strategy, settings.settled_limit_s),
        CheckForecast(settings.settled_limit_s),
    )


def _pace(context: MigrationContext, surge: int, unavailable: int) -> UpdatePace:
    ready = context.ready_s(surge)
    if ready is None:
        return UpdatePace(
            surge, unavailable, "how long a pod takes until it is ready: none of the present ones shows it"
        )
    first, last = (roll_change(context, surge, unavailable, ready_s) for ready_s in (ready.least, ready.most))
    changes = (first, last)
    cost = forecast_change(context, changes)
    return UpdatePace(surge, unavailable, cost, _price(cost, surge, context.settings.prices))


def roll_change(context: MigrationContext, surge: int, unavailable: int, ready_s: float) -> Change:
    """Return the forecast's change of a Deployment that replaces all its pods, so many at once."""
    deployment = context.deployment
    return group_model(context.snapshot).roll_change(
        surge, unavailable, ready_s=ready_s, min_ready_s=deployment.min_ready_s, grace_s=deployment.grace_s
    )


def _price(cost: Transition | str, surge: int, prices: Prices) -> Span | None:
    """Duplicates, and the pods above the count until all is over."""
    if isinstance(cost, str) or cost.settle_s is None:
        return None
    duplicates = Span(cost.duplicates.p05, cost.duplicates.p95).times(prices.duplicate_s)
    return duplicates + Span(cost.settle_s.p05, cost.settle_s.p95).times(surge)


def _upper_end(pace: UpdatePace) -> tuple[float, int]:
    """Unknown costs: the fewest rebalances, which is all at once."""
    return (pace.cost.most if pace.cost else math.inf, -pace.surge)


def _why(best: UpdatePace, others: Sequence[UpdatePace]) -> Iterator[str]:
    yield f"Chosen: {_describe(best)}."
    yield from (f"Not {_describe(pace)}." for pace in others)


def _describe(pace: UpdatePace) -> str:
    how = f"{pace.surge} more and {pace.unavailable} fewer pods at once"
    cost = pace.forecast
    if isinstance(cost, str):
        return f"{how} ({cost})"
    pause = seconds_between(cost.pause_s.p05, cost.pause_s.p95) if cost.pause_s else "of unknown length"
    priced = (
        f", worth {count_between(round(pace.cost.least), round(pace.cost.most))} consumer-seconds" if pace.cost else ""
    )
    return f"{how}: longest pause {pause}, {messages_between(cost.duplicates.p05, cost.duplicates.p95)} twice{priced}"
