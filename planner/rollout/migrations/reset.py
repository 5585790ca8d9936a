"""A group goes back, or ahead, to one point: all its consumers stop, its offsets are set, as many start again."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from planner.errors import BadInputError, UnknownNameError
from planner.model.snapshot import QueueState
from planner.rollout.migrations.green import CLONE_LIMIT_S, stop_steps
from planner.rollout.migrations.machine_rooms import await_settled
from planner.rollout.migrations.migration import Migration, MigrationContext, all_owned, check_orderly
from planner.rollout.migrations.requests import ResetMessages, ResetRequest
from planner.rollout.migrations.reset_figures import ResetFigures, reset_figures
from planner.rollout.steps import AwaitReady, CheckForecast, ResetOffsets, StartConsumers
from planner.text.words import duration, number, some

KIND = "reset"


def reset(context: MigrationContext, request: ResetRequest) -> Migration:
    """Return the migration of the group to the point that is asked for, in its own Deployment.

    Once the offsets are set that is final: the group consumes from there on. Raises ``BadInputError`` for a point
    that lies ahead of the snapshot, of which no broker knows a message yet, and ``UnknownNameError`` for a topic or
    queue that the group does not have.
    """
    check_orderly(context)
    states = _selected(context, request)
    _check_point(context, request, states)
    settings, count = context.settings, context.count
    step = reset_step(context.snapshot.group, request)
    undo = f"set the replicas of {settings.deployment} back to 0"
    figures = reset_figures(context.snapshot, request, states)
    unknowns = figures.unknowns if request.brokers is None else request.brokers.unknowns
    return Migration(
        kind=KIND,
        steps=(
            *stop_steps(context),
            step,
            StartConsumers(0, count, settings.ready_limit_s, all_owned(context), undo),
            AwaitReady(count, settings.ready_limit_s),
            await_settled(context, count),
            CheckForecast(settings.settled_limit_s),
        ),
        must_be_true=tuple(_must_be_true(request, step)),
        why=(
            "All stop first: members of a running group would write their own offsets over those that are set.",
            _describe(figures, context.snapshot.at) if request.brokers is None else _describe_asked(request.brokers),
        ),
        moved=all_owned(context),
        unknowns=unknowns,
    )


def reset_step(group: str, request: ResetRequest) -> ResetOffsets:
    """Return the step that sets the offsets as they are asked for."""
    to = request.to
    return ResetOffsets(
        group,
        f"set the offsets of {group}",
        CLONE_LIMIT_S,
        to_time=to if isinstance(to, datetime) else None,
        to_end=to if isinstance(to, str) else None,
        to_offset=to if isinstance(to, int) else None,
        topic=request.topic,
        queue=request.queue,
    )


def _selected(context: MigrationContext, request: ResetRequest) -> Sequence[QueueState]:
    """Return the queues whose offsets are set."""
    states, step = context.snapshot.data_queues, reset_step(context.snapshot.group, request)
    selected = [state for state in states if step.selects(state.queue)]
    if not selected and (request.topic or request.queue):
        names = {state.queue.topic if request.topic else str(state.queue) for state in states}
        asked = f"topic {request.topic!r}" if request.topic else f"queue {request.queue!r}"
        raise UnknownNameError(
            f"group {context.snapshot.group} does not consume {asked}: it has {some(sorted(names)) or 'none'}"
        )
    return selected


def _check_point(context: MigrationContext, request: ResetRequest, states: Sequence[QueueState]) -> None:
    """Raise ``BadInputError`` for a time or an offset ahead of the snapshot."""
    group, at, to = context.snapshot.group, context.snapshot.at, request.to
    if isinstance(to, datetime) and to > at:
        raise BadInputError(
            f"group {group} cannot begin at {to:%Y-%m-%d %H:%M:%S %Z}: that is after the snapshot of "
            f"{at:%Y-%m-%d %H:%M:%S %Z}"
        )
    newest = states[0].broker_offset if isinstance(to, int) else None
    if isinstance(to, int) and newest is not None and to > newest:
        raise BadInputError(
            f"group {group} cannot begin at offset {to} of {request.queue}: its next message gets {newest}, as of the "
            f"snapshot of {at:%Y-%m-%d %H:%M:%S %Z}; latest skips all that waits"
        )


def _must_be_true(request: ResetRequest, step: ResetOffsets) -> Iterator[str]:
    """Yield what a person has to answer for, as half sentences."""
    to = request.to
    if isinstance(to, datetime):
        yield f"what the group has consumed{step.where} since {to:%Y-%m-%d %H:%M:%S %Z} may come again"
        yield f"what it has not consumed{step.where} from before then is given up"
    elif isinstance(to, int):
        yield f"what the group has consumed{step.where} from offset {to} on may come again"
        yield f"what it has not consumed{step.where} before that offset is given up"
    elif to == "earliest":
        yield f"all that the group has consumed{step.where} and the brokers still keep may come again"
    else:
        yield f"all that waits{step.where} when the offsets are set is given up"


def _describe(figures: ResetFigures, at: datetime) -> str:
    """Return how many messages come again or are left out, and how old they are, by the snapshot."""
    ages = f" {figures.ages}" if figures.ages else ""
    return (
        f"By the snapshot of {at:%Y-%m-%d %H:%M:%S %Z}, messages that come again: {figures.repeated}; messages that "
        f"are left out: {figures.skipped}.{ages} What arrives or is consumed until the group has stopped changes that."
    )


def _describe_asked(asked: ResetMessages) -> str:
    """Return how many messages come again or are left out, and how old the oldest are, by the brokers' own word."""
    return (
        f"By the brokers at {asked.at:%Y-%m-%d %H:%M:%S %Z}, messages that come again: "
        f"{_aged(asked.repeated, asked.oldest_repeated_s)}; messages that are left out: "
        f"{_aged(asked.skipped, asked.oldest_skipped_s)}. What arrives or is consumed until the group has stopped "
        "changes that."
    )


def _aged(count: int, oldest_s: float | None) -> str:
    if not count:
        return "none"
    return number(count) if oldest_s is None else f"{number(count)}, the oldest about {duration(oldest_s)} old"
