"""The state of each queue: offsets, lag, rates, owner, racks and expected share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from planner.history.rates import QueueRates, queue_rates
from planner.history.shares import expected_shares
from planner.model.intervals import QueueInterval
from planner.model.membership import kafka_members
from planner.model.queues import Queue
from planner.model.samples import GroupSample, QueueOffsets
from planner.model.snapshot import QueueState
from planner.snapshot.settings import RECENT, SnapshotSettings
from planner.snapshot.unlisted import is_share_group


def rates_of(intervals: Sequence[QueueInterval], at: datetime, settings: SnapshotSettings) -> dict[Queue, QueueRates]:
    """Return the rates of each queue that has an interval, in messages per second, over the policy's window."""
    by_queue: dict[Queue, list[QueueInterval]] = {}
    for interval in intervals:
        by_queue.setdefault(interval.queue, []).append(interval)
    return {
        queue: queue_rates(of_queue, at, settings.window_s, settings.percentile) for queue, of_queue in by_queue.items()
    }


def queue_states(newest: GroupSample, rates: dict[Queue, QueueRates]) -> tuple[tuple[QueueState, ...], tuple[str, ...]]:
    """Return the state of each queue of the routes, and a sentence for each that has several owners or no offsets."""
    offsets = {entry.queue: entry for entry in newest.offsets}
    # Members of a share group read a partition, several may: none owns it, and which ones do says nothing of a plan.
    owners = {} if is_share_group(newest) else newest.owners
    racks = _racks(newest)
    problems = []
    states = []
    for queue in newest.routes.read_queues:
        of_queue = owners.get(queue, ())
        if len(of_queue) > 1:
            problems.append(f"queue {queue} is owned by {len(of_queue)} clients: {', '.join(of_queue)}")
        if queue not in offsets and not queue.is_retry:
            problems.append(f"queue {queue} has no offsets: no broker reports them")
        state = _state(queue, offsets.get(queue), rates.get(queue), of_queue)
        states.append(replace(state, racks=racks.get(queue)))
    return tuple(states), tuple(problems)


def with_shares(
    states: tuple[QueueState, ...], intervals: Sequence[QueueInterval], at: datetime
) -> tuple[QueueState, ...]:
    """Return the states with the share of arrivals that is expected of each data queue, by the last ``RECENT``."""
    data = [state.queue for state in states if not state.queue.is_retry]
    shares = expected_shares(intervals, data, at - RECENT, at)
    return tuple(replace(state, expected_share=shares.get(state.queue)) for state in states)


def _racks(newest: GroupSample) -> Mapping[Queue, tuple[str, ...]]:
    """Return the racks of each partition's replicas, sorted; nothing where no member has one."""
    if not any(member.rack for member in kafka_members(newest.members)):
        return {}
    return {
        route.partition: tuple(sorted({rack for rack in route.racks if rack}))
        for route in newest.routes.partitions
        if route.racks
    }


def _state(queue: Queue, offsets: QueueOffsets | None, rates: QueueRates | None, owners: tuple[str, ...]) -> QueueState:
    return QueueState(
        queue=queue,
        broker_offset=offsets.broker_offset if offsets else None,
        consumer_offset=offsets.consumer_offset if offsets else None,
        lag=offsets.lag if offsets else None,
        arrival_rate=rates.arrival if rates else None,
        upper_arrival_rate=rates.upper_arrival if rates else None,
        consumption_rate=rates.consumption if rates else None,
        owner=owners[0] if len(owners) == 1 else None,
    )
