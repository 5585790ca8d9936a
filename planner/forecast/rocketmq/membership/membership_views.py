"""What each look shows: one random broker's member list, the member's own route, and what it makes of them.

``RebalanceImpl#rebalanceByTopic``: for each topic a random broker of its route is asked for the members; both lists are
sorted and allocated. A member that is not in the list drops the topic; an empty list or no answer changes nothing.
Members see few different things, so each is allocated once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.forecast.rocketmq.membership.ownership import Seen, ownership_matrices
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.rebalances import Looks
from planner.forecast.rocketmq.membership.registrations import Tables
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, World
from planner.forecast.rocketmq.membership.unknown_ids import Names
from planner.forecast.rocketmq.timing import NETWORK_TIMEOUT_S

NOTHING_NEW = -1


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """Seconds from which on the route of after the change is known, ALWAYS where it is no other.

    ``learned``: to each life (trials, lives); ``renewed``: to each broker, where brokers allocate (trials, brokers).
    """

    learned: Floats
    renewed: Floats

    @property
    def known_s(self) -> Floats:
        """Return when each life knows it and is answered by it, whomever it asks (trials, lives); 0 where always."""
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
    """What the looks of one topic show.

    ``at``: when the view takes effect, by trial, life and look; ``view``: which one, NOTHING_NEW where nothing
    changes; ``owned``: by view, life and queue (of the world) whether the life owns the queue under that view;
    ``whole``: by view whether brokers are shared whole, which only POP does.
    """

    at: Floats
    view: Indexes
    owned: Booleans
    whole: Booleans


def topic_views(
    world: World,
    names: Names,
    tables: Tables,
    looks: Looks,
    routes: Routes,
    number: int,
    random: np.random.Generator,
) -> Views:
    """Return the views of topic ``number``."""
    topic = world.topics[number]
    asked, route = asked_brokers(world, looks, routes, number, random)
    at = _answered(world, looks, asked) + (number + 1) * looks.query_s
    keys, members = _keys(world, names, tables, asked, route, at)
    # An empty table is "no consumer for this group", a dead broker no answer: nothing changes.
    is_answered = np.isfinite(at) & (asked >= 0) & (members > 0)
    _, first, inverse = np.unique(keys[is_answered], return_index=True, return_inverse=True)
    view = np.full(at.shape, NOTHING_NEW, dtype=np.intp)
    view[is_answered] = inverse
    trial, life, look = np.unravel_index(np.flatnonzero(is_answered)[first], at.shape)
    listed = tables.listed(trial, asked[trial, life, look], at[trial, life, look])
    listed &= world.groups == world.groups[life][:, None]
    strategy = np.array([one.strategy for one in world.lives], dtype=np.intp)[life]
    seen = Seen(route[trial, life, look], strategy, names.of_trial[trial], listed)
    owned = ownership_matrices(world, names, topic, seen)
    whole = np.array([world.shares_whole_brokers(count) for count in listed.sum(axis=1).tolist()], dtype=bool)
    for row in np.flatnonzero(whole).tolist():  # whoever asks, listed or not (``allocate4Pop``)
        owned[row] = False
        owned[row][:, topic.queues[AFTER if world.resizes else seen.route[row]]] = True
    return Views(at, view, owned, whole)


def asked_brokers(
    world: World, looks: Looks, routes: Routes, number: int, random: np.random.Generator
) -> tuple[Indexes, Indexes]:
    """Return the broker that each look asks for topic ``number``, -1 where it has none, and the route it goes by.

    A broker that allocates goes by its own route, whichever the member has. A member's nth look draws the same figure
    however many looks there are.
    """
    route = (routes.learned[:, :, None] <= looks.at).astype(np.intp)
    drawn = np.ascontiguousarray(np.moveaxis(random.random((route.shape[2], *route.shape[:2])), 0, 2))
    asked = np.full(route.shape, -1, dtype=np.intp)
    for side, brokers in enumerate(world.topics[number].brokers):
        if len(brokers):
            asked = np.where(route == side, brokers[(drawn * len(brokers)).astype(np.intp)], asked)
    if world.severed_s:
        # Who asks a broker that is out of reach has no answer, unless it is back within the time limit.
        lost = _asks_severed(world, asked) & (looks.at < looks.reached) & ~_is_under_way(looks)
        asked = np.where(lost, -1, asked)
    if world.route_changes and world.request.is_broker_allocated:
        trial = np.arange(len(route))[:, None, None]
        route = (routes.renewed[trial, np.maximum(asked, 0)] <= looks.at).astype(np.intp)
    return asked, route


def _asks_severed(world: World, asked: Indexes) -> Booleans:
    """Return which looks ask a broker that the change cuts their life off from."""
    found: Booleans = world.severed[np.arange(len(world.lives))[None, :, None], asked] & (asked >= 0)
    return found


def _answered(world: World, looks: Looks, asked: Indexes) -> Floats:
    """Return when each look is made: one that is under way to a broker out of reach waits until that is back."""
    if not world.severed_s:
        return looks.at
    found: Floats = np.where(_asks_severed(world, asked), np.maximum(looks.at, looks.reached), looks.at)
    return found


def _is_under_way(looks: Looks) -> Booleans:
    """Return which look of each life is its last one before a broker is back, and not given up by then.

    A round goes on when it has an answer, so that one look at most waits.
    """
    later = np.concatenate([looks.at[:, :, 1:], np.full((*looks.at.shape[:2], 1), np.inf)], axis=2)
    found: Booleans = (looks.at < looks.reached) & (later >= looks.reached)
    return found & (looks.at + NETWORK_TIMEOUT_S >= looks.reached)


def _keys(
    world: World, names: Names, tables: Tables, asked: Indexes, route: Indexes, at: Floats
) -> tuple[NDArray[np.uint64], Indexes]:
    """Return for each look a key that is equal for equal views, and how many members it shows; 0 where it has none.

    A key is a sum of fixed random 64-bit weights, one a member and one for each other thing that the answer rests on:
    two different views of a million have the same key with odds of one in ten million.
    """
    weights = np.random.default_rng(len(world.lives)).integers(1, 2**63, len(world.lives) + 4, dtype=np.uint64)
    strategy = np.array([life.strategy for life in world.lives], dtype=np.uint64)
    place = np.flatnonzero(np.isfinite(at) & (asked >= 0))
    of_life = place // at.shape[2]
    trial, looker = of_life // at.shape[1], of_life % at.shape[1]
    keys = route.ravel()[place].astype(np.uint64) * weights[-1] + (strategy * weights[-2])[looker]
    if not names.are_known:
        keys = keys + names.of_trial.astype(np.uint64)[trial] * weights[-3]
    groups = world.groups
    keys = keys + (groups.astype(np.uint64) * weights[-4])[looker]
    when, broker = at.ravel()[place], asked.ravel()[place]
    count = np.zeros(len(keys), dtype=np.intp)
    for group in np.unique(groups).tolist():
        is_mine = groups[looker] == group
        listed, members = tables.sums(
            np.where(groups == group, weights[: len(groups)], 0), trial[is_mine], broker[is_mine], when[is_mine]
        )
        keys[is_mine] += listed
        count[is_mine] = members
    found, counts = np.zeros(at.size, dtype=np.uint64), np.zeros(at.size, dtype=np.intp)
    found[place], counts[place] = keys, count
    return found.reshape(at.shape), counts.reshape(at.shape)
