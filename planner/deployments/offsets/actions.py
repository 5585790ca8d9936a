"""``OffsetActions``: whether a plan's offset step is done, and doing it."""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.execution.effects import SetOffsets
from planner.execution.plan_targets import offsets_group
from planner.execution.ports import ConflictError
from planner.model.queues import Queue
from planner.rollout.steps import CloneOffsets, ResetOffsets

Offsets = Mapping[Queue, int]
"""The next offset that a group consumes, by queue: those that it has committed on."""


@dataclass(frozen=True, slots=True)
class KeptOffsets:
    """The offset of a queue's earliest message, and the one that its next message will get."""

    earliest: int
    latest: int


class GroupOffsets(Protocol):
    """Committed offsets of the groups of one installation. Retry and dead-letter topics are left alone.

    All raise ``OutOfReachError`` for what does not answer.
    """

    def committed(self, group: str) -> Offsets:
        """Return what the group has committed; none where it never did, or nobody knows it."""

    def since(self, group: str, time: datetime) -> Offsets:
        """Return the offset of the first message at or after a time, on every queue of the group's topics."""

    def kept(self, group: str) -> Mapping[Queue, KeptOffsets]:
        """Return which messages the brokers keep, on every queue of the group's topics."""

    def clone(self, origin: str, group: str) -> None:
        """Give ``group`` what ``origin`` has committed. Raises ``ConflictError`` where ``group`` has members."""

    def commit(self, group: str, offsets: Offsets) -> None:
        """Set the group's offsets on these queues. Raises ``ConflictError`` where it has members."""


Installation = Callable[[ConsumerScalingPolicy], AbstractContextManager[GroupOffsets]]
"""The brokers that a policy names."""


@dataclass(frozen=True, slots=True)
class OffsetsState:
    """Whether a group's offsets are as a step sets them, and a fingerprint of what they are."""

    is_set: bool
    fingerprint: str


@dataclass
class OffsetActions:
    """Offset steps on the brokers that policies name.

    ``_cloned`` is what the last clone of a plan gave, by the plan's key. A group that goes on consuming is ahead of
    its clone at once, so nothing else shows that the clone is in: an executor that does not remember makes it anew,
    which does no harm to a group without members. ``_skipped`` is what a plan's reset to the latest offsets gave, for
    the same reason: producers go on. It is kept by step, as a plan may have several.
    """

    installation: Installation
    _cloned: dict[str, Offsets] = field(default_factory=dict)
    _skipped: dict[tuple[str, ResetOffsets], Offsets] = field(default_factory=dict)

    def state(self, policy: ConsumerScalingPolicy, effect: SetOffsets) -> OffsetsState:
        """Return how the offsets are, read from the brokers.

        Raises ``BadInputError`` where there is nothing to set, ``OutOfReachError`` where that cannot be read.
        """
        with self.installation(policy) as offsets:
            expected = self._expected_offsets(offsets, effect)
            committed = offsets.committed(offsets_group(effect.step))
        return OffsetsState(expected.items() <= committed.items(), _fingerprint(committed))

    def set(self, policy: ConsumerScalingPolicy, effect: SetOffsets) -> None:
        """Set them. Doing it twice gives the same. Raises ``ConflictError`` where the group has members."""
        group = offsets_group(effect.step)
        with self.installation(policy) as offsets:
            if isinstance(effect.step, CloneOffsets):
                offsets.clone(effect.origin, group)
                self._remember(offsets, effect, group)
            else:
                self._reset(offsets, effect, effect.step)

    def _reset(self, offsets: GroupOffsets, effect: SetOffsets, step: ResetOffsets) -> None:
        expected = self._expected_offsets(offsets, effect)
        offsets.commit(step.group, expected)
        if step.to_end == "latest":
            self._skipped[effect.plan, step] = expected

    def _remember(self, offsets: GroupOffsets, effect: SetOffsets, group: str) -> None:
        cloned, origin = offsets.committed(group), offsets.committed(effect.origin)
        if not origin.keys() <= cloned.keys():
            missing = ", ".join(sorted(str(queue) for queue in origin.keys() - cloned.keys())[:3])
            raise ConflictError(f"group {effect.origin} committed on {missing} while its offsets were cloned")
        self._cloned[effect.plan] = {queue: cloned[queue] for queue in origin}

    def _expected_offsets(self, offsets: GroupOffsets, effect: SetOffsets) -> Offsets:
        step = effect.step
        if isinstance(step, CloneOffsets):
            # A broker that was away during the clone has queues of the origin that it did not give.
            expected: Offsets = {**offsets.committed(effect.origin), **self._cloned.get(effect.plan, {})}
            what = f"group {effect.origin} has no committed offset that group {step.to_group} could begin at"
        elif (effect.plan, step) in self._skipped:
            return self._skipped[effect.plan, step]
        else:
            expected = point_of(offsets, step)
            what = f"group {step.group} has committed on no topic{step.where}, and its policy names none"
        if not expected:
            raise BadInputError(f"{what}: name the topics in spec.source.topics, or leave the step out")
        return expected


def point_of(offsets: GroupOffsets, step: ResetOffsets) -> Offsets:
    """Return the offsets that the step asks for. Raises ``BadInputError`` for one of which no message is kept."""
    if step.to_time is not None:
        at_time = offsets.since(step.group, step.to_time)
        return {queue: offset for queue, offset in at_time.items() if step.selects(queue)}
    kept = {queue: bounds for queue, bounds in offsets.kept(step.group).items() if step.selects(queue)}
    if step.to_offset is None:
        return {
            queue: bounds.earliest if step.to_end == "earliest" else bounds.latest for queue, bounds in kept.items()
        }
    for queue, bounds in kept.items():
        if not bounds.earliest <= step.to_offset <= bounds.latest:
            raise BadInputError(
                f"queue {queue} keeps offsets {bounds.earliest} to {bounds.latest}, the plan asks for "
                f"{step.to_offset}, for which a consumer would take the earliest or latest, as it is set up: plan "
                "again with one of these"
            )
    return dict.fromkeys(kept, step.to_offset)


def _fingerprint(offsets: Offsets) -> str:
    text = repr(sorted((str(queue), offset) for queue, offset in offsets.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
