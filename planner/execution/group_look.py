"""``look_at_group``: one sample of a group, as the engine sees it."""

from typing import Final

from planner.execution.look import GroupLook
from planner.model.queues import Queue
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import unsettled_queues

_QUIET: Final = ("Stable", "Empty", "Dead")
"""States of a Kafka group in which no rebalance is under way (``GroupState``, classic and consumer, Kafka 4.1)."""


def look_at_group(sample: GroupSample, snapshot: GroupSnapshot, lag_seconds: float | None = None) -> GroupLook:
    """Return the look at a group from one sample of it and the snapshot made of that sample.

    A group that shows no member has none only where the sample is complete; else its members are unknown. A member
    that did not answer leaves the owners unknown. RocketMQ's brokers know of no rebalance: there, queues that are not
    where the strategy puts them are the only sign of one. ``lag_seconds`` is how long the oldest message has waited.
    """
    members = tuple(sorted(member.identity for member in sample.members))
    queues = tuple(state.queue for state in snapshot.data_queues)
    owners = _owners(sample, queues)
    return GroupLook(
        name=sample.group,
        at=sample.at,
        members=members if members or not sample.problems else None,
        queues=queues or None,
        owners=owners,
        strategy=snapshot.strategy,
        misplaced=None if owners is None else unsettled_queues(snapshot),
        is_rebalancing=sample.kafka.state not in _QUIET if sample.kafka else False,
        epoch=sample.kafka.epoch if sample.kafka else None,
        lag_messages=None if snapshot.unknown_lag else snapshot.lag,
        lag_seconds=lag_seconds,
        pods=tuple((link.client, link.pod) for link in snapshot.pods),
    )


def _owners(sample: GroupSample, queues: tuple[Queue, ...]) -> tuple[tuple[Queue, tuple[str, ...]], ...] | None:
    if any(member.owned is None for member in sample.members):
        return None
    owners = sample.owners
    return tuple((queue, owners.get(queue, ())) for queue in queues)
