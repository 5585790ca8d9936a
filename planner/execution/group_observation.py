"""``observe_group``: one sample of a group, as the engine sees it."""

from typing import Final

from planner.errors import BadInputError
from planner.execution.observation import GroupObservation
from planner.inference.rocketmq import class_strategy
from planner.model.queues import Queue
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import shares_messages, unsettled_queues
from planner.simulation.group_model import group_model
from planner.snapshot.unlisted import unlisted_consumption

_QUIET: Final = ("Stable", "Empty", "Dead")
"""States of a Kafka group in which no rebalance is under way (``GroupState``, classic and consumer, Kafka 4.1)."""
_NOBODY: Final = ("Empty", "Dead")
"""Those of a group without members."""


def observe_group(sample: GroupSample, snapshot: GroupSnapshot) -> GroupObservation:
    """Return the observation of a group from one sample of it and the snapshot made of that sample.

    A group that shows no member has none only where the sample is complete, or where all brokers that keep a list of
    members say that it is empty; else its members are unknown, as they are while clients consume that no broker lists
    (behind a proxy). A member that did not answer leaves the owners unknown. RocketMQ's brokers know of no rebalance:
    there, queues that are not where the strategy puts them are the only sign of one. Members that share messages own no
    queue, so that ``owners`` is empty: nothing moves, nothing can be misplaced. ``lag_seconds`` stays unknown: one
    sample does not show how long a message has waited.
    """
    members = tuple(sorted(member.identity for member in sample.members))
    queues = tuple(state.queue for state in snapshot.data_queues)
    shares = shares_messages(snapshot)
    owners = () if shares else _owners(sample, queues)
    return GroupObservation(
        name=sample.group,
        at=sample.at,
        members=members if _are_known(sample) else None,
        queues=queues or None,
        owners=owners,
        strategy=snapshot.strategy,
        misplaced=None if owners is None else _count_misplaced(snapshot),
        is_rebalancing=sample.kafka.state not in _QUIET if sample.kafka else False,
        epoch=sample.kafka.epoch if sample.kafka else None,
        lag_messages=None if snapshot.unknown_lag else snapshot.lag,
        pods=tuple((link.client, link.pod) for link in snapshot.pods),
        offsets=tuple(entry for entry in sample.offsets if entry.queue in set(queues)),
        capacity=snapshot.consumer_capacity,
        reported_strategies=_reported_strategies(sample),
        shares_messages=shares,
        busiest_fraction=group_model(snapshot).busiest_fraction(len(members)) if shares and members else None,
    )


def _are_known(sample: GroupSample) -> bool:
    if unlisted_consumption(sample, ()):
        return False
    return bool(sample.members) or not sample.problems or _all_list_nobody(sample)


def _count_misplaced(snapshot: GroupSnapshot) -> int | None:
    try:
        return unsettled_queues(snapshot)
    except BadInputError:
        return None  # a member that the strategy's parameters do not name, as it came just now


def _reported_strategies(sample: GroupSample) -> tuple[str, ...]:
    tunings = [member.tuning for member in sample.members if member.tuning]
    return tuple(sorted({class_strategy(tuning.strategy_class) for tuning in tunings if tuning.strategy_class}))


def _all_list_nobody(sample: GroupSample) -> bool:
    """True where every broker, of Kafka the group's coordinator, says that it has no member.

    That a group is offline is among a sample's problems: people want to know it. To the engine it is an answer.
    """
    if sample.kafka is not None:
        return sample.kafka.state in _NOBODY
    return bool(sample.listed) and all(listing.clients == () for listing in sample.listed)


def _owners(sample: GroupSample, queues: tuple[Queue, ...]) -> tuple[tuple[Queue, tuple[str, ...]], ...] | None:
    if any(member.owned is None for member in sample.members):
        return None
    owners = sample.owners
    return tuple((queue, owners.get(queue, ())) for queue in queues)
