"""Another group that takes over from this one (blue-green): two groups that know nothing of each other.

What the second one knows is what a tool copied: the offsets that the first one had committed by then. A broker takes
offsets for a group only while nobody is in it (``ClassicGroup#validateOffsetCommit``, 4.3), so that members of the
second one find a group without members, and wait as those of any new group do.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.forecast.kafka.handover.rebalance_context import Scene
from planner.forecast.kafka.handover.tenures import Course, Holds
from planner.forecast.kafka.membership.process_times import NEVER
from planner.forecast.kafka.request.changes import BlueGreen


def play_succession(scene: Scene, change: BlueGreen, play: Callable[[Scene], Course]) -> Course:
    """Return the courses of both groups as one, the first one's holds first; ``play`` plays a group alone."""
    first, second = (play(_of_group(scene, succeeds=succeeds)) for succeeds in (False, True))
    ended = _as_copied(scene, change, first.holds)
    holds = Holds(
        *(
            np.concatenate([getattr(one, name) for one in (ended, second.holds)])
            for name in ("life", "gained", "dropped", "saved")
        )
    )
    return Course(holds, second.state, (*first.rounds, *second.rounds))


def _of_group(scene: Scene, *, succeeds: bool) -> Scene:
    """Return the scene in which members of the other group never come."""
    mine = np.array([life.succeeds == succeeds for life in scene.world.lives])
    return replace(scene, times=replace(scene.times, arrives=np.where(mine, scene.times.arrives, NEVER)))


def _as_copied(scene: Scene, change: BlueGreen, holds: Holds) -> Holds:
    """Return holds of which as much counts as committed as the copy has.

    Each member commits every so often, all that it owns at once, and as it ends.
    """
    settings = scene.world.request.settings
    every_s = settings.seconds("auto.commit.interval.ms") if settings.is_on("enable.auto.commit") else 0.0
    ages = every_s * scene.random.random(scene.times.arrives.shape)
    copied = change.clone_s - np.stack([np.take_along_axis(ages, np.maximum(life, 0), axis=1) for life in holds.life])
    return replace(holds, saved=np.where(holds.saved <= change.clone_s, holds.saved, np.minimum(copied, holds.saved)))
