"""What each process does by its client's release: one figure a process, as an upgrade mixes generations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.forecast.rocketmq.membership.processes import Process
from planner.forecast.rocketmq.request.settings import Consumer, Settings
from planner.forecast.rocketmq.timing import ORDERLY_START_FIXED, generation

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ClientBehaviour:
    """The fields of ``timing.Generation`` by process; ``gap_s`` is the least time between two rebalances, ``tick_s``
    the most.

    ``starts_locked``: what is locked in a round is consumed at once, not after the next renewal of locks (4.9.5+).
    """

    gap_s: Floats
    tick_s: Floats
    first_pull_s: Floats
    races: Booleans
    retries_lock: Booleans
    unlocks_late: Booleans
    listener_wait_s: Floats
    starts_locked: Booleans


def find_behaviour(processes: Sequence[Process], settings: Settings, is_never_balanced: bool) -> ClientBehaviour:
    """Return the behaviour of every process; ``is_never_balanced``: a rebalance of 5.2+ follows the last one as soon as
    may be.

    Who polls waits for no first pull, and quotes no version of its subscription (``RebalanceLitePullImpl``: its
    ``dispatchPullRequest`` does nothing, ``messageQueueChanged`` changes no version).
    """
    pushed = settings.consumer == Consumer.PUSH
    kinds = [generation(process.version) for process in processes]
    gap_s = settings.seconds("rocketmq.client.rebalance.minInterval")
    wait_s = settings.seconds("rocketmq.client.rebalance.waitInterval")
    return ClientBehaviour(
        tick_s=np.array([gap_s if is_never_balanced and kind.has_min_gap else wait_s for kind in kinds]),
        gap_s=np.array([gap_s if kind.has_min_gap else 0.0 for kind in kinds]),
        first_pull_s=np.array([kind.first_pull_s if pushed else 0.0 for kind in kinds]),
        races=np.array([kind.has_version_race and pushed for kind in kinds], dtype=bool),
        retries_lock=np.array([kind.retries_lock for kind in kinds], dtype=bool),
        unlocks_late=np.array([kind.unlocks_late for kind in kinds], dtype=bool),
        listener_wait_s=np.array([kind.listener_wait_s for kind in kinds]),
        starts_locked=np.array([process.version >= ORDERLY_START_FIXED for process in processes], dtype=bool),
    )
