"""``Watches``: what this executor's observations, in sequence, show of the groups of its plans."""

import math
from dataclasses import replace
from datetime import datetime
from typing import Final

from planner.execution.observation import GroupObservation
from planner.execution.ports import StoredPlan
from planner.model.snapshot import Capacity
from planner.rollout.steps import AwaitLag, AwaitReady, AwaitSettled, CheckForecast, MarkVictims, PauseForPerson
from planner.verification.observed_change import Between
from planner.verification.span import Begun, TimedObservation
from planner.verification.watch import Watch

_CLOCK_S: Final = 1.5
"""So far the server's time, by which steps are noted, may be from the one that observations go by (``ServerClock``)."""
_KEPT_S: Final = 3600.0
"""A group that was not observed for so long is forgotten."""
_NO_CHANGE: Final = AwaitLag | AwaitReady | AwaitSettled | CheckForecast | MarkVictims | PauseForPerson
"""Steps that leave the group as it is."""


class Watches:
    """One watch for each plan and group that it observes; what another executor observed is not in it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Watch] = {}

    def note(
        self, stored: StoredPlan, group: GroupObservation, steady_s: float, began_s: float, ended_s: float
    ) -> tuple[GroupObservation, Watch | None]:
        """Return the group with how long its oldest message can have waited, and the watch with this observation in it.

        ``steady_s`` is the steady clock's time at ``group.at``; the group was read between the two others.
        """
        key, observation = (stored.key, group.name), _observation(group, began_s, ended_s)
        self._forget(ended_s)
        if observation is None:
            return group, self._kept.get(key)
        begun, before = _newest_effect(stored, steady_s, group.at), self._kept.get(key)
        watch = before.after(observation, begun) if before else Watch.begin(observation, begun)
        self._kept[key] = watch
        return replace(group, lag_seconds=watch.oldest_s()), watch

    def _forget(self, now_s: float) -> None:
        old = [key for key, watch in self._kept.items() if now_s - watch.last.ended_s > _KEPT_S]
        for key in old:
            del self._kept[key]


def _observation(group: GroupObservation, began_s: float, ended_s: float) -> TimedObservation | None:
    """Return the group as a watch takes it, ``None`` where the members, queues or offsets could not be read."""
    offsets = {offset.queue: offset for offset in group.offsets}
    if group.members is None or group.queues is None or offsets.keys() != set(group.queues):
        return None
    return TimedObservation(
        began_s=began_s,
        ended_s=ended_s,
        members=frozenset(group.members),
        owners=dict(group.owners or ()),
        offsets=offsets,
        is_calm=group.is_calm,
        epoch=group.epoch,
        capacity=_range(group.capacity) if group.capacity else None,
        shares_messages=group.shares_messages,
        busiest_fraction=group.busiest_fraction,
    )


def _range(capacity: Capacity) -> Between:
    low = capacity.messages_per_s if capacity.low is None else capacity.low
    high = capacity.messages_per_s if capacity.high is None else capacity.high
    return Between(low, math.inf if capacity.is_lower_bound else high)


def _newest_effect(stored: StoredPlan, steady_s: float, now: datetime) -> Begun | None:
    """Return the newest effect that the plan may have had, ``None`` before the first."""
    changes = [
        progress for progress in stored.status.steps if not isinstance(stored.plan.steps[progress.index], _NO_CHANGE)
    ]
    if not changes:
        return None
    first_s, at_s = (
        steady_s - (now - progress.started_at).total_seconds() - _CLOCK_S for progress in (changes[0], changes[-1])
    )
    return Begun(changes[-1].index, at_s, first_s)
