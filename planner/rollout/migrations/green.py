"""A second Deployment takes over, the green one: all of the old stop before it starts, or it starts beside them.

The plan's own Deployment is left with no replicas: it is kept for going back, and a person who is content deletes it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import BadInputError
from planner.forecast.common.changes import CRASH, GRACEFUL
from planner.forecast.words import count_between, messages_between, seconds_between
from planner.rollout.batches import Span
from planner.rollout.migrations.migration import MigrationContext, all_owned, check_orderly, forecast_change
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CloneOffsets,
    CreateDeployment,
    StartConsumers,
    Step,
    StopConsumers,
)
from planner.rollout.template import TemplateChange
from planner.simulation.group_model import group_model
from planner.simulation.outcome import NO_SECONDS, Transition

CREATE_LIMIT_S = 60
CLONE_LIMIT_S = 120
EMPTY_S = Span(5.0, 12.0)
"""From the old consumers' end until others may start, beside what pods take: that nobody is left must be seen twice,
5 s apart (``SETTLED_APART`` of the engine), and each of the steps between takes an observation or two (3 s, measured
live)."""
ONLY_DUPLICATES = "how long two groups side by side take to settle: what comes twice is forecast alone"
CONTENT = "spec.scaleTargetRef of the policy names the green Deployment once the plan has succeeded"


@dataclass(frozen=True, slots=True)
class Green:
    """The Deployment that takes over: its name and what is different in its template.

    ``group`` is the consumer group that its members join, ``None`` for the plan's own; ``strategy`` is theirs, with
    ``options`` as ``planner allocate`` takes them, ``None`` for those that are known of the plan's group. Under
    ``MACHINE_ROOM_NEARBY`` they are in ``room``.
    """

    deployment: str
    change: TemplateChange
    strategy: str
    group: str | None = None
    options: dict[str, Any] | None = None
    room: str | None = None


@dataclass(frozen=True, slots=True)
class Takeover:
    """One kind of takeover: its steps, and what it costs, in seconds of one consumer; ``None`` where that is unknown.

    ``pause_s`` is how long nobody consumes, ``duplicates`` how many messages come twice.
    """

    name: str
    steps: tuple[Step, ...]
    pause_s: Span | None
    duplicates: Span | None
    cost: Span | None
    transition: Transition | None
    unknown: str | None = None


def of_new_group(context: MigrationContext, group: str) -> Iterator[str]:
    """Yield what somebody must answer for where the consumers join another group, of which offsets are all it gets."""
    snapshot = context.snapshot
    yield f"the changed template makes every consumer join group {group}"
    yield f"a policy for group {group} stands beside this one once the plan has succeeded"
    yield from group_model(snapshot).new_group_conditions()
    if blank := snapshot.unknown_lag:
        yield (
            f"on {len(blank)} queues, on which group {snapshot.group} never committed, group {group} begins where its "
            "consumers' own settings say"
        )


def in_a_window(context: MigrationContext, green: Green) -> Takeover:
    """Return the takeover in which all stop, offsets are cloned if the group changes, and all start: one pause."""
    forecast = _forecast_restart(context, EMPTY_S)
    pause = duplicates = cost = None
    if isinstance(forecast, Transition) and forecast.pause_s:
        pause = Span(forecast.pause_s.p05, forecast.pause_s.p95)
        duplicates = Span(forecast.duplicates.p05, forecast.duplicates.p95)
        prices = context.settings.prices
        cost = pause.times(context.count * prices.standstill_s) + duplicates.times(prices.duplicate_s)
    steps = (
        CreateDeployment(green.deployment, CREATE_LIMIT_S, green.change),
        *stop_steps(context),
        *_clone_steps(green),
        *_start_steps(context, green, context.count),
        CheckForecast(context.settings.settled_limit_s),
    )
    known = forecast if isinstance(forecast, Transition) else None
    return Takeover("stop all, then start all", steps, pause, duplicates, cost, known, None if known else str(forecast))


def side_by_side(context: MigrationContext, green: Green) -> Takeover:
    """Return the takeover in which the green group starts at cloned offsets while the old one goes on: all duplicated.

    From the clone until the old one has stopped each message is delivered to both groups: as long as the green pods
    take to be ready and to settle at least, at most until the time limits of these steps.
    """
    if green.group is None:
        raise BadInputError("two groups side by side need two names: name the new group")
    forecast, settings = _forecast_restart(context, Span()), context.settings
    duplicates = cost = None
    if isinstance(forecast, Transition) and forecast.settle_s:
        settle_s, limit_s = forecast.settle_s, settings.ready_limit_s + settings.settled_limit_s
        beside = Span(settle_s.p05, max(settle_s.p95, limit_s))
        rates = _rates(context)
        duplicates = rates and Span(rates.least * beside.least, rates.most * beside.most)
        cost = duplicates and beside.times(context.count) + duplicates.times(settings.prices.duplicate_s)
    steps = (
        CreateDeployment(green.deployment, CREATE_LIMIT_S, green.change),
        *_clone_steps(green),
        *_start_steps(context, green, context.count),
        *stop_steps(context),
        CheckForecast(settings.settled_limit_s),
    )
    unknown = ONLY_DUPLICATES if cost else _no_rates(forecast)
    return Takeover("both groups side by side", steps, Span(), duplicates, cost, None, unknown)


def cheapest(takeovers: Sequence[Takeover]) -> Takeover:
    """Return the takeover of the least upper cost, the first of equal ones; unknown costs come last."""
    return min(takeovers, key=lambda takeover: takeover.cost.most if takeover.cost else math.inf)


def explain_choice(best: Takeover, takeovers: Sequence[Takeover]) -> Iterator[str]:
    """Yield in sentences which takeover was chosen and what the others would cost."""
    yield f"Chosen: {_costs(best)}."
    yield from (f"Not {_costs(takeover)}." for takeover in takeovers if takeover is not best)


def _costs(takeover: Takeover) -> str:
    if takeover.cost is None or takeover.duplicates is None or takeover.pause_s is None:
        return f"{takeover.name} ({takeover.unknown})"
    worth = count_between(round(takeover.cost.least), round(takeover.cost.most))
    pause = seconds_between(takeover.pause_s.least, takeover.pause_s.most)
    duplicates = messages_between(round(takeover.duplicates.least), round(takeover.duplicates.most))
    return f"{takeover.name}: a pause of {pause}, {duplicates} twice, worth {worth} consumer-seconds"


def _forecast_restart(context: MigrationContext, empty_s: Span) -> Transition | str:
    """Return what it costs that all members stop at once and as many start as soon as a pod can, after ``empty_s``.

    Raises ``RefusedError`` for an orderly group whose pods are killed.
    """
    check_orderly(context)
    ready = context.ready_s(context.count)
    if ready is None:
        return "how long a pod takes until it is ready: none of the present ones shows it"
    model, clients = group_model(context.snapshot), context.snapshot.clients
    how = GRACEFUL if context.deployment.grace_s else CRASH
    # Pods do not start at one moment: the first one takes all queues, and hands them on to the next.
    stagger_s = (ready.most - ready.least) / max(1, context.count - 1)
    first = model.restart_change(clients, how, ready.least + empty_s.least, 0.0)
    last = model.restart_change(clients, how, ready.least + empty_s.most, stagger_s)
    forecast = forecast_change(context, (first, last))
    # A member that restarts keeps its name there, so its queues stall; here they move to another one for as long.
    return forecast if isinstance(forecast, str) else replace(forecast, pause_s=forecast.stall_s, stall_s=NO_SECONDS)


def _rates(context: MigrationContext) -> Span | None:
    states = context.snapshot.data_queues
    means = [state.arrival_rate for state in states if state.arrival_rate is not None]
    uppers = [state.upper_arrival_rate for state in states if state.upper_arrival_rate is not None]
    return Span(sum(means), sum(uppers)) if len(means) == len(uppers) == len(states) else None


def _no_rates(forecast: Transition | str) -> str:
    return forecast if isinstance(forecast, str) else "how many messages come meanwhile: not all rates are known"


def stop_steps(context: MigrationContext) -> tuple[Step, ...]:
    """Return the steps after which no pod of the old Deployment consumes any more."""
    settings = context.settings
    everything = all_owned(context)
    undo = f"set the replicas of {settings.deployment} back to {context.count}"
    return (
        StopConsumers(context.count, 0, (), settings.ready_limit_s, everything, undo),
        AwaitReady(0, settings.ready_limit_s),
        AwaitSettled(0, context.strategy, settings.settled_limit_s),
    )


def _start_steps(context: MigrationContext, green: Green, members: int) -> tuple[Step, ...]:
    settings = context.settings
    everything = all_owned(context)
    undo = f"set the replicas of {green.deployment} back to 0"
    name = green.deployment
    return (
        StartConsumers(0, context.count, settings.ready_limit_s, everything, undo, deployment=name),
        AwaitReady(context.count, settings.ready_limit_s, deployment=name),
        AwaitSettled(
            members,
            green.strategy,
            settings.settled_limit_s,
            group=green.group,
            options=green.options or None,
            new_room=green.room,
        ),
    )


def _clone_steps(green: Green) -> tuple[Step, ...]:
    if green.group is None:
        return ()
    return (CloneOffsets(green.group, f"set the offsets of {green.group}", CLONE_LIMIT_S),)
