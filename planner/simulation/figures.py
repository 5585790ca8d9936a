"""From owners to figures: what one candidate's ownership means for every consumer and for the group."""

from collections.abc import Mapping, Sequence

from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.simulation.load import DECIMALS, consumer_loads
from planner.simulation.moves import MoveRange
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad, OwnedQueue


def outcome_of(
    snapshot: GroupSnapshot,
    *,
    strategy: str,
    is_current: bool,
    is_useful: bool,
    largest_share: int | None,
    moves: MoveRange | None,
    owners: Mapping[Queue, str | None],
    clients: Sequence[str],
    unknowns: tuple[str, ...],
) -> CandidateOutcome:
    """Return the outcome of ``clients`` owning what ``owners`` says; ``largest_share`` ``None`` counts it there."""
    capacity = known.sure_messages_per_s if (known := snapshot.consumer_capacity) else None
    loads = consumer_loads(snapshot.data_queues, owners, clients, capacity)
    hot = max(snapshot.data_queues, key=lambda state: state.upper_arrival_rate or 0.0)
    return CandidateOutcome(
        count=len(clients),
        strategy=strategy,
        is_current=is_current,
        is_useful=is_useful,
        largest_share=max(load.queues for load in loads) if largest_share is None else largest_share,
        moved_fewest=moves.fewest if moves else None,
        moved_most=moves.most if moves else None,
        utilisation=_worst([load.utilisation for load in loads]),
        keeps_up=_keeps_up(loads),
        wait_s=_worst([load.wait_s for load in loads]),
        drain_s=_worst([load.drain_s for load in loads]),
        hot_queue=hot.queue if hot.upper_arrival_rate is not None else None,
        hot_utilisation=_hot_utilisation(hot, capacity),
        loads=loads,
        owners=tuple(OwnedQueue(queue, owner) for queue, owner in owners.items()),
        unknowns=unknowns,
    )


def _worst(values: Sequence[float | None]) -> float | None:
    """Return the largest value, ``None`` as soon as one is unknown."""
    known = [value for value in values if value is not None]
    return max(known, default=None) if len(known) == len(values) else None


def _keeps_up(loads: Sequence[ConsumerLoad]) -> bool | None:
    if not loads or any(load.utilisation is None for load in loads):
        return None
    return all(load.utilisation is not None and load.utilisation < 1.0 for load in loads)


def _hot_utilisation(hot: QueueState, capacity: float | None) -> float | None:
    if hot.upper_arrival_rate is None or not capacity:
        return None
    return round(hot.upper_arrival_rate / capacity, DECIMALS)
