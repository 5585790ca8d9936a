"""More queues for a topic, with more consumers for them. Brokers are only read, so a person raises the queues."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.errors import BadInputError, UnknownNameError
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.rollout.migrations.machine_rooms import await_settled
from planner.rollout.migrations.migration import Migration, MigrationContext, forecast_change
from planner.rollout.plan import Cost
from planner.rollout.plan_forecast import cost_of, costs_together
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import (
    AwaitReady,
    CheckForecast,
    MovedQueues,
    PauseForPerson,
    StartConsumers,
    Step,
)
from planner.simulation.candidates import simulate_candidate
from planner.simulation.group_model import group_model
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.transition import with_transition
from planner.text.words import queue_nouns, queues

KIND = "expand"
ASK_LIMIT_S = 3_600
"""How long a person has to raise the queues."""


def expand(context: MigrationContext, topic: str, each: int, consumers: int | None = None) -> Migration:
    """Return the migration to ``each`` queues of the topic per broker (Kafka: partitions in all), and ``consumers``.

    Consumers start first and wait for their queues, so that no queue is read late by a group that is still growing.
    Raises ``RefusedError`` for more consumers than can be useful then, ``UnknownNameError`` for a topic that the group
    does not consume, ``BadInputError`` for fewer queues or consumers than there are.
    """
    snapshot, target_count = context.snapshot, consumers or context.count
    grown = _grow(snapshot, topic, each)
    _check_count(context, grown, target_count)
    joined = _simulate_join(context, target_count)
    before, after = (_owners(each_snapshot, target_count, context.strategy) for each_snapshot in (snapshot, grown))
    shifted = sum(owner is not None and after[queue] != owner for queue, owner in before.items())
    costs = _costs(context, topic, each, joined)
    nouns, more = queue_nouns(snapshot.system), len(grown.data_queues) - len(snapshot.data_queues)
    return Migration(
        kind=KIND,
        steps=tuple(_steps(context, topic, each, target_count, joined)),
        must_be_true=(f"nothing that writes to {topic} counts on a key staying in its queue",),
        why=(
            f"Consumers first, then {nouns}: {topic} gets {more} more, "
            f"and {shifted} of those that are there change owner once more as the order shifts.",
        ),
        moved=_count_moved(joined, shifted),
        cost=costs if isinstance(costs, Cost) else None,
        unknowns=(costs,) if isinstance(costs, str) else (),
    )


def _steps(
    context: MigrationContext, topic: str, each: int, consumers: int, joined: CandidateOutcome | None
) -> Iterator[Step]:
    settings, count = context.settings, context.count
    if joined is not None:
        moved = MovedQueues(joined.moved_fewest, joined.moved_most)
        undo = f"set the replicas of {settings.deployment} back to {count}"
        yield StartConsumers(count, consumers, settings.ready_limit_s, moved, undo)
        yield AwaitReady(consumers, settings.ready_limit_s)
        yield await_settled(context, consumers)
    yield PauseForPerson(group_model(context.snapshot).growth_question(topic, each), ASK_LIMIT_S)
    yield await_settled(context, consumers)
    yield CheckForecast(settings.settled_limit_s)


def _check_count(context: MigrationContext, grown: GroupSnapshot, consumers: int) -> None:
    if consumers < context.count:
        raise BadInputError(
            f"group {grown.group} has {context.count} consumers: expected as many or more, not {consumers}"
        )
    if not simulate_candidate(grown, consumers, context.strategy).is_useful and consumers > context.count:
        raise refused(
            Refusal.MORE_CONSUMERS_THAN_USEFUL,
            f"with {queues(len(grown.data_queues), grown.system)} {consumers} consumers relieve nobody whom "
            f"{consumers - 1} would not",
        )


def _simulate_join(context: MigrationContext, consumers: int) -> CandidateOutcome | None:
    if consumers == context.count:
        return None
    return with_transition(
        simulate_candidate(context.snapshot, consumers, context.strategy), context.snapshot, context.digest
    )


def _count_moved(joined: CandidateOutcome | None, shifted: int) -> MovedQueues:
    """A queue that moves as consumers join and again as the order shifts may come back: between none of it and all."""
    if joined is None:
        return MovedQueues(shifted, shifted)
    if joined.moved_fewest is None or joined.moved_most is None:
        return MovedQueues()
    return MovedQueues(0, joined.moved_most + shifted)


def _costs(context: MigrationContext, topic: str, each: int, joined: CandidateOutcome | None) -> Cost | str:
    """Return what all rebalances cost, brokers being raised one after the other; else why that is unknown."""
    costs: list[Cost] = []
    if joined is not None:
        if joined.transition is None:
            return joined.unknowns[-1]
        costs.append(cost_of(joined.transition))
    for change in group_model(context.snapshot).growth_changes(topic, each):
        raised = forecast_change(context, (change, change))
        if isinstance(raised, str):
            return raised
        costs.append(cost_of(raised))
    return costs_together(costs)


def _owners(snapshot: GroupSnapshot, consumers: int, strategy: str) -> dict[Queue, str | None]:
    """Return who owns what with so many consumers, newcomers last in order."""
    return {owned.queue: owned.owner for owned in simulate_candidate(snapshot, consumers, strategy).owners}


def _grow(snapshot: GroupSnapshot, topic: str, each: int) -> GroupSnapshot:
    """Return the group with the topic's queues as they will be: the new ones are empty, and what arrives is shared."""
    locations: dict[tuple[str, ...], list[QueueState]] = {}
    for state in snapshot.data_queues:
        if state.queue.topic == topic:
            locations.setdefault(state.queue.place, []).append(state)
    if not locations:
        known = sorted({state.queue.topic for state in snapshot.data_queues})
        raise UnknownNameError(
            f"group {snapshot.group} does not consume topic {topic!r}: it consumes {', '.join(known)}"
        )
    most = max(len(states) for states in locations.values())
    if each <= most:
        raise BadInputError(
            f"topic {topic} has {most} queues in one place already: expected more than that, not {each}"
        )
    others = [state for state in snapshot.queues if state.queue.topic != topic]
    raised = [state for states in locations.values() for state in _raise_each(states, each)]
    return replace(snapshot, queues=tuple(sorted([*others, *raised], key=lambda state: state.queue)))


def _raise_each(states: Sequence[QueueState], each: int) -> Iterator[QueueState]:
    share = len(states) / each
    for number in range(each):
        state = states[number] if number < len(states) else _empty(states[0], number)
        rates = (rate and rate * share for rate in (state.arrival_rate, state.upper_arrival_rate))
        arrival, upper = rates
        yield replace(state, arrival_rate=arrival, upper_arrival_rate=upper)


def _empty(like: QueueState, number: int) -> QueueState:
    return replace(like, queue=like.queue.sibling(number), broker_offset=0, consumer_offset=0, lag=0, owner=None)
