"""A new image or configuration: all pods are replaced, in batches of so many new ones before as many old ones go."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.decision.prices import Prices
from planner.forecast.trials import Document
from planner.forecast.words import count_between, messages_between, seconds_between
from planner.rollout.batches import Span
from planner.rollout.migrations.migration import Ground, Migration, all_owned, check_orderly, known_cost, timed
from planner.rollout.migrations.rooms import settled
from planner.rollout.migrations.torn import refuse_rolling
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import AwaitReady, AwaitSettled, CheckForecast, MovedQueues, Step, UpdateTemplate
from planner.rollout.template import TemplateChange
from planner.simulation.outcome import Transition

KIND = "update"
_SHARE = 0.25
"""Kubernetes' own default for both limits of a rolling update."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How many pods an update replaces at once, with what that costs; ``cost`` in seconds of one consumer."""

    surge: int
    unavailable: int
    found: Transition | str
    cost: Span | None = None


def update(found: Ground, change: TemplateChange, from_revision: int, surge: int | None = None) -> Migration:
    """Return the update of all pods to the changed template, never with fewer ready consumers than now.

    ``from_revision`` is the Deployment's now. Without ``surge`` one, a quarter of all and all new pods at once are
    forecast, and the cheapest is taken; Kubernetes' default of 25 % more and 25 % less stands beside them.
    Raises ``RefusedError`` for an orderly group whose consumers would be killed, or would stop before others start, and
    for a change that names another RocketMQ strategy: members would mix two.
    """
    check_orderly(found)
    refuse_rolling(found, change)
    if found.snapshot.orderly and surge == 0:
        raise refused(
            Refusal.ORDERLY_WITHOUT_SURGE,
            f"group {found.snapshot.group} consumes in order, and without surge each queue waits until its new owner "
            "has started: allow one pod more",
        )
    wanted = sorted({1, math.ceil(found.count * _SHARE), found.count}) if surge is None else [surge]
    turns = [_turn(found, size, 0) for size in wanted]
    best = min(turns, key=_upper_end)
    fewer = math.floor(found.count * _SHARE)
    usual = [_turn(found, math.ceil(found.count * _SHARE), fewer)] if fewer or surge is not None else []
    moved = all_owned(found)
    return Migration(
        kind=KIND,
        steps=update_steps(found, change, from_revision, best.surge, moved, found.strategy),
        must_be_true=(
            "the new version can run beside the old one in one group",
            "the changed template leaves the allocation strategy as it is",
        ),
        why=tuple(_why(best, [turn for turn in (*turns, *usual) if turn is not best])),
        moved=moved,
        cost=known_cost(best.found),
        unknowns=(best.found,) if isinstance(best.found, str) else (),
    )


def update_steps(
    found: Ground, change: TemplateChange, from_revision: int, surge: int, moved: MovedQueues, strategy: str
) -> tuple[Step, ...]:
    """Return the steps of one roll through all pods, until the group has settled under ``strategy``."""
    settings, turns = found.settings, math.ceil(found.count / surge)
    limit_s = settings.ready_limit_s * turns
    return (
        UpdateTemplate(change, found.count, surge, 0, from_revision, settings.ready_limit_s, moved),
        AwaitReady(found.count, limit_s),
        settled(found, found.count)
        if strategy == found.strategy
        else AwaitSettled(found.count, strategy, settings.settled_limit_s),
        CheckForecast(settings.settled_limit_s),
    )


def _turn(found: Ground, surge: int, unavailable: int) -> Turn:
    ready = found.ready_s(surge)
    if ready is None:
        return Turn(surge, unavailable, "how long a pod takes until it is ready: none of the present ones tells")
    deployment = found.deployment
    first, last = (
        rolled(surge, unavailable, ready_s, deployment.min_ready_s, deployment.grace_s)
        for ready_s in (ready.least, ready.most)
    )
    changes = (first, last)
    cost = timed(found, changes)
    return Turn(surge, unavailable, cost, _priced(cost, surge, found.settings.prices))


def rolled(surge: int, unavailable: int, ready_s: float, min_ready_s: float, grace_s: float) -> Document:
    """Return the forecast's change of a Deployment that replaces all its pods, so many at once."""
    return {
        "kind": "rolling_update",
        "max_surge": surge,
        "max_unavailable": unavailable,
        "ready_s": ready_s,
        "min_ready_s": min_ready_s,
        "grace_s": grace_s,
    }


def _priced(cost: Transition | str, surge: int, prices: Prices) -> Span | None:
    """Messages that come twice, and the pods above the count until all is over."""
    if isinstance(cost, str) or cost.settle_s is None:
        return None
    twice = Span(cost.duplicates.p05, cost.duplicates.p95).times(prices.duplicate_s)
    return twice + Span(cost.settle_s.p05, cost.settle_s.p95).times(surge)


def _upper_end(turn: Turn) -> tuple[float, int]:
    """Unknown costs: the fewest rebalances, which is all at once."""
    return (turn.cost.most if turn.cost else math.inf, -turn.surge)


def _why(best: Turn, others: Sequence[Turn]) -> Iterator[str]:
    yield f"Chosen: {_told(best)}."
    yield from (f"Not {_told(turn)}." for turn in others)


def _told(turn: Turn) -> str:
    how = f"{turn.surge} more and {turn.unavailable} fewer pods at once"
    cost = turn.found
    if isinstance(cost, str):
        return f"{how} ({cost})"
    pause = seconds_between(cost.pause_s.p05, cost.pause_s.p95) if cost.pause_s else "of unknown length"
    priced = (
        f", worth {count_between(round(turn.cost.least), round(turn.cost.most))} consumer-seconds" if turn.cost else ""
    )
    return f"{how}: longest pause {pause}, {messages_between(cost.duplicates.p05, cost.duplicates.p95)} twice{priced}"
