"""When the backlog is gone: what lies in a client's queues flows off as fast as its threads allow."""

import numpy as np

from planner.forecast.rocketmq.membership.consume_rates import Rates, most_pulled
from planner.forecast.rocketmq.membership.ownership import NOBODY
from planner.forecast.rocketmq.membership.scenario import Floats, Indexes, Scenario


def find_drain_times(scenario: Scenario, after: Indexes, begins: Floats, due: Floats, rates: Rates) -> Floats:
    """Return by trial when the last client has worked off its backlog, NaN where one never does.

    ``after``: the owning client, ``begins``: since when it delivers, ``due``: how many messages wait then, all by
    trial and queue. A client's pool works as long as anything waits in any of its queues, so it is empty when the sum
    is: a hot queue takes what the others leave. An orderly queue has one thread and is as slow as that by itself, and
    one that is pulled at intervals (``pullInterval``) as slow as its pulls.
    """
    drained_s = np.zeros(len(after))
    if scenario.request.orderly or np.isfinite(most_pulled(scenario)):
        alone = (rates.limit if scenario.request.orderly else most_pulled(scenario)) - scenario.rates
        waits = (due > 0) & (after != NOBODY)
        gone = np.where(alone > 0, begins + due / np.where(alone > 0, alone, 1.0), np.nan)
        drained_s = np.where(waits, gone, 0.0).max(axis=1, initial=0.0)
    for process in scenario.final:
        drained_s = np.maximum(drained_s, _client_drained(scenario, process, after, begins, due, rates))
    return drained_s


def _client_drained(
    scenario: Scenario, process: int, after: Indexes, begins: Floats, due: Floats, rates: Rates
) -> Floats:
    """Return when one client's queues are empty, taking them up in the order in which it begins to deliver them."""
    mine = after == scenario.processes[process].client
    order = np.argsort(np.where(mine, begins, np.inf), axis=1, kind="stable")[:, : int(mine.sum(axis=1).max(initial=0))]
    owns = np.take_along_axis(mine, order, axis=1)
    begin, waiting = (np.where(owns, np.take_along_axis(of, order, axis=1), 0.0) for of in (begins, due))
    arriving = np.where(owns, scenario.rates[order], 0.0)
    backlog, at, spare = np.zeros(len(after)), np.zeros(len(after)), np.full(len(after), rates.per_process[process])
    for column in range(order.shape[1]):
        now = np.maximum(begin[:, column], at)
        backlog = np.maximum(backlog - spare * (now - at), 0.0) + waiting[:, column]
        spare = spare - arriving[:, column]
        at = now
    gone = at + backlog / np.where(spare > 0, spare, 1.0)
    grows = (spare < 0) | ((spare <= 0) & (backlog > 0))
    return np.where(grows, np.nan, np.where(backlog > 0, gone, 0.0))
