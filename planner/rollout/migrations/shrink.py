"""Fewer queues for a topic, none of its messages left behind. Brokers are only read, so a person lowers the queues.

Write queues come first, then what lies in the others is worked off, then read queues (``TopicConfig.writeQueueNums``,
``readQueueNums``): a producer sends to the first ``writeQueueNums`` queues, a consumer reads the first
``readQueueNums``, and nobody consumes what lies above until they are raised again or the broker deletes it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.errors import BadInputError, UnknownNameError
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.rollout.migrations.machine_rooms import await_settled
from planner.rollout.migrations.migration import Migration, MigrationContext, forecast_change
from planner.rollout.plan import Cost
from planner.rollout.plan_forecast import cost_of, costs_together
from planner.rollout.queue_ranges import compact_queues
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import AwaitLag, CheckForecast, MovedQueues, PauseForPerson
from planner.simulation.candidates import simulate_candidate
from planner.simulation.group_model import Change, group_model
from planner.simulation.outcome import CandidateOutcome
from planner.text.words import counted, some

KIND = "shrink"
ASK_LIMIT_S = 3_600
"""How long a person has to lower the queues."""
DRAIN_LIMIT_S = 14_400
"""How long the group has to work off what lies in queues that get nothing any more."""


def shrink(context: MigrationContext, topic: str, each: int) -> Migration:
    """Return the migration to ``each`` queues of the topic on every broker.

    Producers leave the upper queues first, the group works them off, and only then nobody reads them any more.
    Raises ``BadInputError`` for Kafka, whose partitions are never taken away, and where no broker has more queues;
    ``UnknownNameError`` for a topic that the group does not consume; ``RefusedError`` where consumers would be left
    without a queue, or where too few queues are left for what comes in.
    """
    snapshot, model = context.snapshot, group_model(context.snapshot)
    changes = model.shrink_changes(topic, each)
    given_up = _given_up(snapshot, topic, each)
    drained, smaller = _drained(snapshot, given_up), _without(snapshot, given_up)
    after = simulate_candidate(smaller, context.count, context.strategy)
    _check_count(context, smaller, after)
    entries, moved = compact_queues(given_up), _count_moved(context, after)
    leave, drop = model.shrink_questions(topic, each, some(entries))
    costs = _costs(replace(context, snapshot=drained), changes)
    return Migration(
        kind=KIND,
        steps=(
            PauseForPerson(leave, ASK_LIMIT_S),
            AwaitLag(DRAIN_LIMIT_S, messages=0, queues=entries),
            PauseForPerson(drop, ASK_LIMIT_S),
            await_settled(context, context.count),
            CheckForecast(context.settings.settled_limit_s),
        ),
        must_be_true=(
            f"nothing that writes to {topic} counts on a key staying in its queue",
            f"no producer writes to {topic} by queue number, or with a route that it does not renew",
        ),
        why=tuple(_why(topic, given_up, moved, context.current, after)),
        moved=MovedQueues(moved, moved),
        cost=costs if isinstance(costs, Cost) else None,
        unknowns=(costs,) if isinstance(costs, str) else (),
    )


def _given_up(snapshot: GroupSnapshot, topic: str, each: int) -> tuple[Queue, ...]:
    """Return the queues that nobody reads afterwards."""
    if each < 1:
        raise BadInputError(f"queues: found {each}, expected 1 or more: without a queue nobody could read {topic}")
    queues = [state.queue for state in snapshot.data_queues]
    of_topic = [queue for queue in queues if queue.topic == topic]
    if not of_topic:
        known = some(sorted({queue.topic for queue in queues}))
        raise UnknownNameError(f"group {snapshot.group} does not consume topic {topic!r}: it consumes {known}")
    given_up = tuple(queue for queue in of_topic if queue.number >= each)
    if not given_up:
        most = 1 + max(queue.number for queue in of_topic)
        raise BadInputError(
            f"topic {topic} has {most} queues on a broker at most: expected fewer than that, not {each}"
        )
    return given_up


def _without(snapshot: GroupSnapshot, given_up: tuple[Queue, ...]) -> GroupSnapshot:
    """Return the group once nobody reads the queues: what arrived in them arrives in the others of its topic."""
    moved = _drained(snapshot, given_up)
    return replace(moved, queues=tuple(state for state in moved.queues if state.queue not in set(given_up)))


def _drained(snapshot: GroupSnapshot, given_up: tuple[Queue, ...]) -> GroupSnapshot:
    """Return the group once the queues get nothing and are worked off, still there: producers go round the others."""
    gone, topic = set(given_up), given_up[0].topic
    rates = [state for state in snapshot.data_queues if state.queue.topic == topic]
    left = [state for state in rates if state.queue not in gone]
    arrival, upper = _share(rates, len(left), "arrival_rate"), _share(rates, len(left), "upper_arrival_rate")

    def drained(state: QueueState) -> QueueState:
        if state.queue in gone:
            return replace(state, arrival_rate=0.0, upper_arrival_rate=0.0, lag=0, consumer_offset=state.broker_offset)
        if state.queue.topic == topic and not state.queue.is_retry:
            return replace(state, arrival_rate=arrival, upper_arrival_rate=upper)
        return state

    return replace(snapshot, queues=tuple(drained(state) for state in snapshot.queues))


def _share(states: list[QueueState], among: int, field: str) -> float | None:
    rates = [getattr(state, field) for state in states]
    return None if any(rate is None for rate in rates) else sum(rates) / among


def _check_count(context: MigrationContext, smaller: GroupSnapshot, after: CandidateOutcome) -> None:
    """Raise ``RefusedError`` for consumers that no queue is left for, and for queues that too few can consume."""
    left, count = counted(len(smaller.data_queues), "queue"), context.count
    busy = len({owned.owner for owned in after.owners if owned.owner is not None})
    if busy < count:
        raise refused(
            Refusal.MORE_CONSUMERS_THAN_USEFUL,
            f"with {left} {count - busy} of {count} consumers would own none: scale down first (a plan under "
            f"spec.maxReplicas of {busy}), then ask again",
        )
    if context.current.keeps_up and after.keeps_up is False:
        raise refused(
            Refusal.TOO_FEW_QUEUES,
            f"with {left} the busiest of {count} consumers gets more than it can do: keep more queues, or add "
            "consumers first where they can share the load",
        )


def _count_moved(context: MigrationContext, after: CandidateOutcome) -> int:
    """Return how many of the queues that stay have another owner afterwards."""
    before = {owned.queue: owned.owner for owned in context.current.owners}
    return sum(owned.owner != before[owned.queue] for owned in after.owners)


def _costs(drained: MigrationContext, changes: Sequence[Change]) -> Cost | str:
    """Return what lowering the read queues costs, one place after the other; else why that is unknown."""
    context = replace(drained, current=simulate_candidate(drained.snapshot, drained.count, drained.strategy))
    costs = []
    for change in changes:
        lowered = forecast_change(context, (change, change))
        if isinstance(lowered, str):
            return lowered
        costs.append(cost_of(lowered))
    return costs_together(costs)


def _why(
    topic: str, given_up: tuple[Queue, ...], moved: int, before: CandidateOutcome, after: CandidateOutcome
) -> Iterator[str]:
    yield (
        f"Write queues first, then read queues: what lies in the {counted(len(given_up), 'queue')} that {topic} gives "
        f"up is consumed before nobody reads them; {moved} of those that stay change owner as the order shifts."
    )
    if before.utilisation is not None and after.utilisation is not None:
        yield f"The busiest consumer works {after.utilisation:.0%} of the time then, {before.utilisation:.0%} now."
