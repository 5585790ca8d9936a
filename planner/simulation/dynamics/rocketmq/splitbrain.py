"""How long queues have two owners or none while members do not see the same: by second and in sum."""

from typing import Any

import numpy as np

from planner.simulation.dynamics.rocketmq.changes import BrokerDown, Join, Leave, Restart
from planner.simulation.dynamics.rocketmq.simulate import Simulation
from planner.simulation.dynamics.rocketmq.world import Floats, World
from planner.simulation.dynamics.trials import interval

MOST_SECONDS = 600


def find_split_brain(world: World, found: Simulation) -> dict[str, Any]:
    """Return under ``split_brain`` the queue-seconds with two owners and with none, and their means by second.

    Changes of routes and strategies only: members adopt those by their own clocks. ``per_second`` ends with the
    95th percentile of settling, at most ten minutes. Queues that go or come with the route are left out.
    """
    if isinstance(world.request.change, Join | Leave | Restart | BrokerDown):
        return {}
    stays = (found.owners.before >= 0) & (found.owners.after >= 0).all(axis=0)
    columns = stays[found.holds.queues]
    begins, ends = (np.maximum(at[:, columns], 0.0) for at in (found.holds.gained, found.holds.dropped))
    last = min(MOST_SECONDS, int(np.ceil(np.quantile(found.observed.settle_s, 0.95))))
    times = np.arange(last + 1, dtype=float)
    counts = [((begins <= at) & (at < ends)).sum(axis=2) for at in times]
    return {
        "split_brain": {
            "doubled_queue_s": interval(_total(begins, ends, found.observed.settle_s, doubled=True)),
            "orphan_queue_s": interval(_total(begins, ends, found.observed.settle_s, doubled=False)),
            "per_second": [
                {
                    "second": int(at),
                    "doubled": round(float((count > 1).sum(axis=1).mean()), 2),
                    "orphans": round(float((count == 0).sum(axis=1).mean()), 2),
                }
                for at, count in zip(times, counts, strict=True)
            ],
        }
    }


def _total(begins: Floats, ends: Floats, until: Floats, *, doubled: bool) -> Floats:
    """Return by trial the queue-seconds before ``until`` in which several hold a queue, or nobody does."""
    limit = until[:, None, None]
    begins, ends = np.minimum(begins, limit), np.minimum(ends, limit)
    edges = np.sort(np.concatenate([begins, ends, np.zeros_like(begins[:, :, :1])], axis=2), axis=2)
    edges = np.concatenate([edges, np.broadcast_to(limit, edges[:, :, :1].shape)], axis=2)
    spans = np.diff(edges, axis=2)
    middles = edges[:, :, :-1] + spans / 2
    holders = ((begins[:, :, None] <= middles[..., None]) & (middles[..., None] < ends[:, :, None])).sum(axis=3)
    wanted = holders > 1 if doubled else holders == 0
    total: Floats = (spans * wanted).sum(axis=(1, 2))
    return total
