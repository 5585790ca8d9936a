"""Share groups (KIP-932): members share the records of a partition, and the broker says which partitions each reads.

The built-in assignor ``simple`` (``SimpleHomogeneousAssignmentBuilder``, Kafka 4.3.1) wants each of ``P`` partitions
read by ``s = ceil(M / P)`` of ``M`` members. Up to ``P`` members each partition has one, and a member has
``ceil(P / M)`` of them at most, as in a consumer group. Beyond that a member has one or two, and ``s * P - M`` of them
have two. A member that has nothing to do takes what another one of its partition has not, so that the busiest gets no
more than the partitions ask for that have the fewest members between them.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

import numpy as np

from planner.model.snapshot import GroupSnapshot
from planner.simulation.counts import relieves
from planner.simulation.load import DECIMALS, consumer_loads, load_of, sum_known, sum_of_known_lags
from planner.simulation.outcome import CandidateOutcome, ConsumerLoad
from planner.simulation.shared_outcome import shared_outcome, sharing_clients, unknown_of_shared
from planner.text.words import duration

MOST_MEMBERS: Final = 200
"""``group.share.max.size`` where nobody set it (``ShareGroupConfig``, 4.3.1): the broker refuses further members."""

MOST_LOCKS: Final = 2_000
"""``group.share.partition.max.record.locks`` where nobody set it: records of a partition that members hold at most."""

MOST_POLLED: Final = 500
"""``max.poll.records`` where nobody set it: what one member takes at once."""

LOCK_S: Final = 30
"""``group.share.record.lock.duration.ms`` where nobody set it (Kafka 4.3.1): a record is one member's for so long."""


def most_for_member(amounts: Sequence[float], members: int) -> float:
    """Return the most of ``amounts``, one for each partition, that can come to one of ``members``, in their unit.

    Six partitions of 1: 6 for one member, 2 for three or five (one of five has two), 1 for six to ten, and 0.5 for 12.
    For 7 to 11 it is no more than those partitions have whose members have two: both may be the same two partitions.
    """
    ordered = np.sort(np.asarray(amounts, dtype=float))[::-1]
    partitions = len(ordered)
    if members <= partitions:
        return float(ordered[: -(-partitions // members)].sum())
    sharing = -(-members // partitions)
    sizes = np.arange(1, partitions + 1)
    inside = np.where(sizes > 1, np.minimum(sharing * partitions - members, sizes * sharing // 2), 0)
    return float((ordered.cumsum() / (sizes * sharing - inside)).max())


def most_partitions(partitions: int, members: int) -> int:
    """Return how many partitions the assignor lets one member read at most."""
    return -(-partitions * -(-members // partitions) // members)


def busiest_fraction(snapshot: GroupSnapshot, members: int) -> float:
    """Return which part of all that comes in one of so many members may get; partitions count alike without rates."""
    rates = [state.upper_arrival_rate or 0.0 for state in snapshot.data_queues]
    amounts = rates if sum(rates) > 0 else [1.0] * len(rates)
    return most_for_member(amounts, members) / sum(amounts)


def simulate_share(snapshot: GroupSnapshot, count: int, staying: Sequence[str] | None = None) -> CandidateOutcome:
    """Return what ``count`` members mean: by what each reads where that is known, else the most for the busiest.

    ``staying`` names those who are left, where that is known.
    """
    clients, partitions = sharing_clients(snapshot, count, staying), len(snapshot.data_queues)
    known = _present_loads(snapshot) if count == len(snapshot.clients) else None
    unknowns = (
        *unknown_of_shared(snapshot, count, staying),
        *_unknowns(count, partitions, is_known=bool(known)),
        *_late_batches(snapshot),
    )
    return shared_outcome(
        snapshot,
        known or _loads(snapshot, clients),
        unknowns,
        most_queues=most_partitions(partitions, count),
        is_useful=count > partitions or relieves((partitions,), count),
    )


def _present_loads(snapshot: GroupSnapshot) -> tuple[ConsumerLoad, ...] | None:
    """Return the loads of the present members, the busiest first; ``None`` unless one alone reads each partition."""
    owners = {state.queue: state.owner for state in snapshot.data_queues}
    if None in owners.values():
        return None
    loads = consumer_loads(snapshot.data_queues, owners, snapshot.clients, _capacity(snapshot))
    return tuple(sorted(loads, key=lambda load: (-(load.arrival_rate or 0.0), -(load.lag or 0), load.client)))


def _loads(snapshot: GroupSnapshot, clients: Sequence[str]) -> tuple[ConsumerLoad, ...]:
    """Return the most for the first member, the rest in equal shares for the others."""
    states, members = snapshot.data_queues, len(clients)
    rates, lags = _rates(snapshot, members), _lags(snapshot, members)
    most, capacity = most_partitions(len(states), members), _capacity(snapshot)
    return tuple(
        load_of(client, most, rate, lag, capacity) for client, rate, lag in zip(clients, rates, lags, strict=True)
    )


def _rates(snapshot: GroupSnapshot, members: int) -> list[float | None]:
    rates = [state.upper_arrival_rate for state in snapshot.data_queues]
    if (total := sum_known(rates)) is None:
        return [None] * members
    most = most_for_member([rate or 0.0 for rate in rates], members)
    others = (total - most) / max(members - 1, 1)
    return [round(most, DECIMALS), *[round(others, DECIMALS)] * (members - 1)]


def _lags(snapshot: GroupSnapshot, members: int) -> list[int | None]:
    if (total := sum_of_known_lags(snapshot.data_queues)) is None:
        return [None] * members
    most = ceil(most_for_member([state.lag or 0 for state in snapshot.data_queues], members))
    whole, rest = divmod(total - most, max(members - 1, 1))
    return [most, *(whole + (number < rest) for number in range(members - 1))]


def _capacity(snapshot: GroupSnapshot) -> float | None:
    return known.sure_messages_per_s if (known := snapshot.consumer_capacity) else None


def _unknowns(count: int, partitions: int, *, is_known: bool) -> Iterator[str]:
    if not is_known and count % partitions:
        yield (
            "which partitions a member reads, as hash order decides: the busiest is shown with the most that it can get"
        )
    if count > MOST_MEMBERS:
        yield f"whether the broker takes so many members: group.share.max.size is {MOST_MEMBERS} unless it is set"
    if count * MOST_POLLED > partitions * MOST_LOCKS:
        yield (
            "whether a partition keeps all its members at work: it gives out the next records while fewer than "
            f"{MOST_LOCKS:,} are held (group.share.partition.max.record.locks), and a member takes up to "
            f"{MOST_POLLED} at once (max.poll.records)"
        )


def _late_batches(snapshot: GroupSnapshot) -> Iterator[str]:
    """Say that locks end before a full batch does; seen of Java's client with its defaults (docs/evidence.md)."""
    capacity = snapshot.consumer_capacity
    if capacity is None or capacity.is_lower_bound or capacity.messages_per_s * LOCK_S >= MOST_POLLED:
        return
    yield (
        f"how many records come twice at any count: a batch of {MOST_POLLED} (max.poll.records) takes a member "
        f"{duration(MOST_POLLED / capacity.messages_per_s)}, and others are given what it has not done after "
        f"{LOCK_S} s (group.share.record.lock.duration.ms); a lower max.poll.records with "
        "share.acquire.mode=record_limit ends that"
    )
