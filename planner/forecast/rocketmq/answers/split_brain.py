"""How long queues have two owners or none while members do not see the same: by second and in sum."""

from typing import Any

import numpy as np

from planner.forecast.rocketmq.membership.ownership import NOBODY
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.request.changes import BrokerUp, QueueCount, StrategyChange
from planner.forecast.rocketmq.simulate import Simulation
from planner.forecast.trials import interval

MOST_SECONDS = 600


def find_split_brain(scenario: Scenario, simulation: Simulation) -> dict[str, Any]:
    """Return under ``split_brain`` the queue-seconds with two owners and with none, and their means by second.

    Changes of routes and strategies only, which members adopt by their own clocks, and cuts from some brokers, which
    then list other members than the rest; not where clients pop, as several have each queue all along. ``per_second``
    ends with the 95th percentile of settling, at most ten minutes. Queues that go or come with the route are left out.
    """
    splits = isinstance(scenario.request.change, BrokerUp | QueueCount | StrategyChange) or scenario.partitioned_s
    if scenario.request.pops or not splits:
        return {}
    times, counts = _holders(simulation)
    last = min(MOST_SECONDS, int(np.ceil(np.quantile(simulation.observed.settle_s, 0.95))))
    doubled, orphans = counts > 1, counts == 0
    return {
        "split_brain": {
            "doubled_queue_s": interval(_queue_seconds(times, doubled)),
            "orphan_queue_s": interval(_queue_seconds(times, orphans)),
            "per_second": [
                {"second": second, "doubled": round(double, 2), "orphans": round(orphan, 2)}
                for second, (double, orphan) in enumerate(
                    zip(_by_second(times, doubled, last), _by_second(times, orphans, last), strict=True)
                )
            ],
        }
    }


def _holders(simulation: Simulation) -> tuple[Floats, Indexes]:
    """Return by trial, queue and step the times at which the number of holders changes, and that number from then on.

    Times end with the settling of the trial, which is one more entry than there are numbers.
    """
    stays = (simulation.owners.before != NOBODY) & (simulation.owners.after != NOBODY).all(axis=0)
    columns = stays[simulation.tenures.queues]
    is_owned = (simulation.tenures.process != NOBODY)[:, columns].astype(np.intp)
    until = simulation.observed.settle_s[:, None, None]
    begins = np.minimum(np.maximum(simulation.tenures.taken[:, columns], 0.0), until)
    ends = np.minimum(simulation.tenures.dropped[:, columns], until)
    start = np.zeros_like(begins[:, :, :1])
    times = np.concatenate([start, begins, ends], axis=2)
    steps = np.concatenate([start.astype(np.intp), is_owned, -is_owned], axis=2)
    order = np.argsort(times, axis=2, kind="stable")
    counts = np.cumsum(np.take_along_axis(steps, order, axis=2), axis=2)
    times = np.take_along_axis(times, order, axis=2)
    return np.concatenate([times, np.broadcast_to(until, start.shape)], axis=2), counts


def _queue_seconds(times: Floats, concerned: Booleans) -> Floats:
    """Return by trial for how long, summed over the queues, the state in question lasts."""
    total: Floats = (np.diff(times, axis=2) * concerned).sum(axis=(1, 2))
    return total


def _by_second(times: Floats, concerned: Booleans, last: int) -> list[float]:
    """Return the mean number of queues in the wanted state at second 0, 1 and so on."""
    first = np.minimum(np.ceil(times[:, :, :-1][concerned]), last + 1).astype(np.intp)
    beyond = np.minimum(np.ceil(times[:, :, 1:][concerned]), last + 1).astype(np.intp)
    changes = np.bincount(first, minlength=last + 2) - np.bincount(beyond, minlength=last + 2)
    by_second: list[float] = (np.cumsum(changes)[:-1] / len(times)).tolist()
    return by_second
