"""What ownership adds to a snapshot's word about the strategy: its parameters, a confirmation, or a contradiction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.allocation.kafka import own_assignor
from planner.allocation.registry import runnable_strategy
from planner.inference.even_strategies import HASH
from planner.inference.explanation import Explanation, Freedom, Inference, contradiction
from planner.inference.kafka import infer_assignor, partition_observation_of
from planner.inference.observation import SETTLED_AFTER, observation_of
from planner.inference.rocketmq import infer, misplaced
from planner.model.intervals import QueueInterval
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot

FILLED_IN = (HASH, "MACHINE_ROOM")
"""Strategies whose parameters, once they are the only ones that fit, hold for clients that are yet to come."""


def with_evidence(
    snapshot: GroupSnapshot, newest: GroupSample, intervals: Sequence[QueueInterval], stated: str | None
) -> GroupSnapshot:
    """Return the snapshot with what the newest sample's ownership says of its strategy; a policy's word is ``stated``.

    ``strategy_source`` then carries the evidence. A strategy that nobody names is filled in when exactly one without
    parameters explains everything; parameters are, when they alone do. A statement that ownership contradicts, and a
    number of virtual nodes that is known not to be the default and not known itself, leave the strategy unknown. While
    ownership changes it says nothing, and the snapshot stays as it is. In a share group nobody owns anything.
    """
    if newest.kafka is not None and newest.kafka.is_share:
        return snapshot
    if not is_at_rest(newest, intervals):
        return snapshot
    inferred = infer_newest(newest)
    if not inferred.evidence.queues_observed:
        return snapshot
    if stated is not None:
        return _checked_against_ownership(snapshot, newest, inferred, stated)
    return (
        _with_inferred_strategy(snapshot, inferred)
        if snapshot.strategy is None
        else _with_confirmed_strategy(snapshot, inferred)
    )


def infer_newest(newest: GroupSample) -> Inference:
    """Return what one sample shows of the group's strategy."""
    return _SYSTEMS[newest.system].infer(newest)


def is_at_rest(newest: GroupSample, intervals: Sequence[QueueInterval]) -> bool:
    """Return whether every queue has had the owners of the newest sample for ``SETTLED_AFTER`` or longer."""
    owners, since = newest.owners, newest.at - SETTLED_AFTER
    begins = max((interval.ended_at for interval in intervals if interval.ended_at <= since), default=None)
    if begins is None:
        return False
    recent = (interval for interval in intervals if begins <= interval.ended_at <= newest.at)
    return all(set(interval.owners) == set(owners.get(interval.queue, ())) for interval in recent)


def _checked_against_ownership(
    snapshot: GroupSnapshot, newest: GroupSample, inferred: Inference, stated: str
) -> GroupSnapshot:
    """Return the snapshot without its strategy when ownership speaks against the policy's."""
    if snapshot.strategy is None:
        return snapshot
    wrong = _SYSTEMS[newest.system].check_stated(snapshot, newest, inferred, stated)
    if wrong is not None:
        return replace(snapshot, strategy=None, strategy_options={}, strategy_source=wrong)
    return snapshot


def _with_inferred_strategy(snapshot: GroupSnapshot, inferred: Inference) -> GroupSnapshot:
    """Return the snapshot with the strategy that ownership alone shows beyond doubt, else with what can be said."""
    source = f"{snapshot.strategy_source}; {inferred.sentence}"
    name = inferred.strategy
    if name is None or inferred.custom or inferred.explanations[0].freedom > Freedom.NONE:
        return replace(snapshot, strategy_source=source)
    return replace(snapshot, strategy=name, strategy_source=source)


def _with_confirmed_strategy(snapshot: GroupSnapshot, inferred: Inference) -> GroupSnapshot:
    source = f"{snapshot.strategy_source}; {inferred.sentence}"
    best = next(
        (explanation for explanation in inferred.explanations if explanation.strategy == snapshot.strategy), None
    )
    if best is None or best.freedom == Freedom.NONE or best.strategy not in FILLED_IN:
        return replace(snapshot, strategy_source=source)
    return _with_parameters(snapshot, best, source)


def _with_parameters(snapshot: GroupSnapshot, best: Explanation, source: str) -> GroupSnapshot:
    if len(best.parameters) == 1:
        return replace(snapshot, strategy_options=dict(best.options), strategy_source=source)
    if best.strategy == HASH:
        source = f"{source}: state the number in spec.strategyOptions"
        return replace(snapshot, strategy=None, strategy_source=source)
    return replace(snapshot, strategy_source=source)


@dataclass(frozen=True, slots=True)
class _System:
    """What one system's ownership shows: the strategies that explain a sample, and what speaks against a stated one."""

    infer: Callable[[GroupSample], Inference]
    check_stated: Callable[[GroupSnapshot, GroupSample, Inference, str], str | None]


def _infer_rocketmq(newest: GroupSample) -> Inference:
    return infer([observation_of(newest)])


def _infer_kafka(newest: GroupSample) -> Inference:
    return infer_assignor([partition_observation_of(newest)])


def _check_rocketmq(snapshot: GroupSnapshot, newest: GroupSample, inferred: Inference, stated: str) -> str | None:
    """Where the strategy can be run with the policy's parameters, its owners are compared one by one."""
    strategy = runnable_strategy(stated, snapshot.strategy_options)
    if strategy is None:
        return contradiction(stated, inferred)
    reason = misplaced(strategy, [observation_of(newest)])
    return None if reason is None else f"the policy states {stated}, but {reason}"


def _check_kafka(snapshot: GroupSnapshot, _: GroupSample, inferred: Inference, stated: str) -> str | None:
    """A user's own assignor is known by the name that the coordinator reports; the decision compares its owners."""
    own = own_assignor(stated, snapshot.strategy_options)
    if own is not None and own.name in inferred.custom and not inferred.is_mixed:
        return None
    return contradiction(stated, inferred)


_SYSTEMS: Final[Mapping[str, _System]] = {
    "rocketmq": _System(_infer_rocketmq, _check_rocketmq),
    "kafka": _System(_infer_kafka, _check_kafka),
}
