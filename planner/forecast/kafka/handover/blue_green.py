"""Another group that takes over from this one (blue-green): two groups that know nothing of each other.

What the second one knows is what a tool copied: the offsets that the first one had committed by then. A broker takes
offsets for a group only while nobody is in it (``ClassicGroup#validateOffsetCommit``, 4.3), so that members of the
second one find a group without members, and wait as those of any new group do.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.forecast.kafka.handover.rebalance_context import RebalanceContext
from planner.forecast.kafka.handover.tenures import MembershipTimeline, Tenures
from planner.forecast.kafka.membership.process_times import NEVER
from planner.forecast.kafka.request.changes import BlueGreen


def play_succession(
    context: RebalanceContext, change: BlueGreen, play: Callable[[RebalanceContext], MembershipTimeline]
) -> MembershipTimeline:
    """Return the memberships over time of both groups as one, the first one's tenures first; ``play`` plays a group
    alone."""
    first, second = (play(_of_group(context, succeeds=succeeds)) for succeeds in (False, True))
    ended = _as_copied(context, change, first.tenures)
    tenures = Tenures(
        *(
            np.concatenate([getattr(group, name) for group in (ended, second.tenures)])
            for name in ("process", "assigned_at", "revoked_at", "saved")
        )
    )
    return MembershipTimeline(tenures, second.state, (*first.rounds, *second.rounds))


def _of_group(context: RebalanceContext, *, succeeds: bool) -> RebalanceContext:
    """Return the context in which members of the other group never come."""
    mine = np.array([process.succeeds == succeeds for process in context.scenario.processes])
    return replace(context, times=replace(context.times, arrives=np.where(mine, context.times.arrives, NEVER)))


def _as_copied(context: RebalanceContext, change: BlueGreen, tenures: Tenures) -> Tenures:
    """Return tenures of which as much counts as committed as the copy has.

    Each member commits every so often, all that it owns at once, and as it ends.
    """
    settings = context.scenario.request.settings
    every_s = settings.seconds("auto.commit.interval.ms") if settings.is_on("enable.auto.commit") else 0.0
    ages = every_s * context.random.random(context.times.arrives.shape)
    copied = change.clone_s - np.stack(
        [np.take_along_axis(ages, np.maximum(process, 0), axis=1) for process in tenures.process]
    )
    return replace(
        tenures, saved=np.where(tenures.saved <= change.clone_s, tenures.saved, np.minimum(copied, tenures.saved))
    )
