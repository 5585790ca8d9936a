"""What each rebalance shows: one random broker's member list, the member's own route, and what it makes of them.

``RebalanceImpl#rebalanceByTopic``: for each topic a random broker of its route is asked for the members; both lists are
sorted and allocated. A member that is not in the list drops the topic; an empty list or no answer changes nothing.
Members see few different things, so each is allocated once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.forecast.rocketmq.membership.ownership import AllocationInputs, ownership_matrices
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.rebalances import Rebalances
from planner.forecast.rocketmq.membership.registrations import Registrations
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.membership.unknown_ids import Names
from planner.forecast.rocketmq.timing import NETWORK_TIMEOUT_S

NOTHING_NEW = -1


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """Seconds from which on the route of after the change is known, ALWAYS where it is no other.

    ``learned``: to each process (trials, processes); ``renewed``: to each broker, where brokers allocate (trials,
    brokers).
    """

    learned: Floats
    renewed: Floats

    @property
    def known_s(self) -> Floats:
        """Return when each process knows it and is answered by it, whichever broker it asks (trials, processes); 0
        where always."""
        latest = np.maximum(self.learned, self.renewed.max(axis=1, keepdims=True))
        return np.where(np.isfinite(latest), latest, 0.0)

    @property
    def first_s(self) -> Floats:
        """Return by trial when the first one learns it; infinite where nothing is to be learned."""
        times = np.concatenate([self.learned, self.renewed], axis=1)
        first: Floats = np.where(np.isfinite(times), times, np.inf).min(axis=1, initial=np.inf)
        return first


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """What the rebalances of one topic show.

    ``at``: when the view takes effect, by trial, process and rebalance; ``view``: which one, NOTHING_NEW where nothing
    changes; ``owned``: by view, process and queue (of the scenario) whether the process owns the queue under that view;
    ``whole``: by view whether brokers are shared whole, which only POP does.
    """

    at: Floats
    view: Indexes
    owned: Booleans
    whole: Booleans


def topic_views(
    scenario: Scenario,
    names: Names,
    registrations: Registrations,
    rebalances: Rebalances,
    routes: Routes,
    number: int,
    random: np.random.Generator,
) -> Views:
    """Return the views of topic ``number``."""
    topic = scenario.topics[number]
    asked, route = choose_brokers(scenario, rebalances, routes, number, random)
    at = _answered(scenario, rebalances, asked) + (number + 1) * rebalances.query_s
    keys, members = _keys(scenario, names, registrations, asked, route, at)
    # An empty table is "no consumer for this group", a dead broker no answer: nothing changes.
    is_answered = np.isfinite(at) & (asked >= 0) & (members > 0)
    _, first, inverse = np.unique(keys[is_answered], return_index=True, return_inverse=True)
    view = np.full(at.shape, NOTHING_NEW, dtype=np.intp)
    view[is_answered] = inverse
    trial, process, rebalance = np.unravel_index(np.flatnonzero(is_answered)[first], at.shape)
    listed = registrations.listed(trial, asked[trial, process, rebalance], at[trial, process, rebalance])
    listed &= scenario.groups == scenario.groups[process][:, None]
    strategy = np.array([each.strategy for each in scenario.processes], dtype=np.intp)[process]
    inputs = AllocationInputs(route[trial, process, rebalance], strategy, names.of_trial[trial], listed)
    owned = ownership_matrices(scenario, names, topic, inputs)
    whole = np.array([scenario.shares_whole_brokers(count) for count in listed.sum(axis=1).tolist()], dtype=bool)
    for row in np.flatnonzero(whole).tolist():  # whichever member asks, listed or not (``allocate4Pop``)
        owned[row] = False
        owned[row][:, topic.queues[AFTER if scenario.resizes else inputs.route[row]]] = True
    return Views(at, view, owned, whole)


def choose_brokers(
    scenario: Scenario, rebalances: Rebalances, routes: Routes, number: int, random: np.random.Generator
) -> tuple[Indexes, Indexes]:
    """Return the broker that each rebalance asks for topic ``number``, -1 where it has none, and the route it goes by.

    A broker that allocates goes by its own route, whichever the member has. A member's nth rebalance draws the same
    figure however many rebalances there are.
    """
    route = (routes.learned[:, :, None] <= rebalances.at).astype(np.intp)
    drawn = np.ascontiguousarray(np.moveaxis(random.random((route.shape[2], *route.shape[:2])), 0, 2))
    asked = np.full(route.shape, -1, dtype=np.intp)
    for side, brokers in enumerate(scenario.topics[number].brokers):
        if len(brokers):
            asked = np.where(route == side, brokers[(drawn * len(brokers)).astype(np.intp)], asked)
    if scenario.partitioned_s:
        # Who asks a broker that is out of reach has no answer, unless it is back within the time limit.
        lost = _asks_partitioned(scenario, asked) & (rebalances.at < rebalances.reached) & ~_is_in_flight(rebalances)
        asked = np.where(lost, -1, asked)
    if scenario.route_changes and scenario.request.is_broker_allocated:
        trial = np.arange(len(route))[:, None, None]
        route = (routes.renewed[trial, np.maximum(asked, 0)] <= rebalances.at).astype(np.intp)
    return asked, route


def _asks_partitioned(scenario: Scenario, asked: Indexes) -> Booleans:
    """Return which rebalances ask a broker that the change cuts their process off from."""
    result: Booleans = scenario.partitioned[np.arange(len(scenario.processes))[None, :, None], asked] & (asked >= 0)
    return result


def _answered(scenario: Scenario, rebalances: Rebalances, asked: Indexes) -> Floats:
    """Return when each rebalance is made: one in flight to a broker out of reach waits until that is back."""
    if not scenario.partitioned_s:
        return rebalances.at
    result: Floats = np.where(
        _asks_partitioned(scenario, asked), np.maximum(rebalances.at, rebalances.reached), rebalances.at
    )
    return result


def _is_in_flight(rebalances: Rebalances) -> Booleans:
    """Return which rebalance of each process is its last one before a broker is back, and not given up by then.

    A round goes on when it has an answer, so that one rebalance at most waits.
    """
    later = np.concatenate([rebalances.at[:, :, 1:], np.full((*rebalances.at.shape[:2], 1), np.inf)], axis=2)
    result: Booleans = (rebalances.at < rebalances.reached) & (later >= rebalances.reached)
    return result & (rebalances.at + NETWORK_TIMEOUT_S >= rebalances.reached)


def _keys(
    scenario: Scenario, names: Names, registrations: Registrations, asked: Indexes, route: Indexes, at: Floats
) -> tuple[NDArray[np.uint64], Indexes]:
    """Return for each rebalance a key that is equal for equal views, and how many members it shows; 0 where it has
    none.

    A key is a sum of fixed random 64-bit weights, one a member and one for each other thing that the answer rests on:
    two different views of a million have the same key with odds of one in ten million.
    """
    weights = np.random.default_rng(len(scenario.processes)).integers(
        1, 2**63, len(scenario.processes) + 4, dtype=np.uint64
    )
    strategy = np.array([process.strategy for process in scenario.processes], dtype=np.uint64)
    index = np.flatnonzero(np.isfinite(at) & (asked >= 0))
    of_process = index // at.shape[2]
    trial, rebalancer = of_process // at.shape[1], of_process % at.shape[1]
    keys = route.ravel()[index].astype(np.uint64) * weights[-1] + (strategy * weights[-2])[rebalancer]
    if not names.are_known:
        keys = keys + names.of_trial.astype(np.uint64)[trial] * weights[-3]
    groups = scenario.groups
    keys = keys + (groups.astype(np.uint64) * weights[-4])[rebalancer]
    when, broker = at.ravel()[index], asked.ravel()[index]
    count = np.zeros(len(keys), dtype=np.intp)
    for group in np.unique(groups).tolist():
        is_mine = groups[rebalancer] == group
        listed, members = registrations.sums(
            np.where(groups == group, weights[: len(groups)], 0), trial[is_mine], broker[is_mine], when[is_mine]
        )
        keys[is_mine] += listed
        count[is_mine] = members
    keys_of, counts = np.zeros(at.size, dtype=np.uint64), np.zeros(at.size, dtype=np.intp)
    keys_of[index], counts[index] = keys, count
    return keys_of.reshape(at.shape), counts.reshape(at.shape)
