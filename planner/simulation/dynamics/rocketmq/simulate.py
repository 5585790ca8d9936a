"""One request simulated from end to end, in the order in which things happen."""

from dataclasses import dataclass

import numpy as np

from planner.errors import BadInputError
from planner.simulation.dynamics.rocketmq.holds import NOBODY, Holds, queue_holds
from planner.simulation.dynamics.rocketmq.lives import ALWAYS, LifeTimes, live_times
from planner.simulation.dynamics.rocketmq.locks import locked_holds
from planner.simulation.dynamics.rocketmq.looks import Looks, member_looks
from planner.simulation.dynamics.rocketmq.names import Names, name_clients
from planner.simulation.dynamics.rocketmq.offsets import Deliveries, deliveries
from planner.simulation.dynamics.rocketmq.outcome import Observed, Owners, observe
from planner.simulation.dynamics.rocketmq.pulls import Starts, first_deliveries
from planner.simulation.dynamics.rocketmq.rates import find_rates
from planner.simulation.dynamics.rocketmq.tables import Tables, member_tables, notifications
from planner.simulation.dynamics.rocketmq.timing import Calibration
from planner.simulation.dynamics.rocketmq.views import ownership_matrix, topic_views
from planner.simulation.dynamics.rocketmq.world import AFTER, BEFORE, Booleans, Floats, Indexes, World


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Every trial of one world, stage by stage."""

    names: Names
    owners: Owners
    times: LifeTimes
    tables: Tables
    holds: Holds
    starts: Starts
    found: Deliveries
    observed: Observed


def simulate(world: World, calibration: Calibration) -> Simulation:
    """Return all trials of a world; the same world and calibration give the same numbers."""
    random = np.random.default_rng(world.request.seed)
    names = name_clients(world, random)
    before = state_matrix(world, names, BEFORE, world.initial, 0)
    _refuse_doubled(world, before)
    owners = _owners(world, names, before)
    initial = _first_life(before)
    final = _first_life(state_matrix(world, names, AFTER, world.final, 0))
    rates = find_rates(world, initial, final)
    times = live_times(world, rates, calibration, random)
    tables = member_tables(world, times, calibration, random)
    learned = _route_learned(world, times, random)
    looks = _looks(world, times, tables, learned, calibration, random)
    views = [topic_views(world, names, tables, looks, learned, n, random) for n in range(len(world.topics))]
    holds = queue_holds(world, times, views, before)
    runs_on = np.zeros(holds.life.shape, dtype=bool)
    if world.request.orderly:
        holds, runs_on = locked_holds(world, times, holds, looks, rates, calibration, random)
    starts = first_deliveries(world, times, holds, rates, calibration, random)
    found = deliveries(world, times, holds, starts, runs_on, rates, calibration, random)
    observed = observe(world, owners, holds, starts, found, calibration, random)
    return Simulation(names, owners, times, tables, holds, starts, found, observed)


def state_matrix(world: World, names: Names, route: int, members: tuple[int, ...], placement: int) -> Booleans:
    """Return by life and queue who owns what when everybody sees these members, each under its own strategy."""
    owned = np.zeros((len(world.lives), len(world.queues)), dtype=bool)
    present = np.array(members, dtype=np.intp)
    for strategy in {world.lives[member].strategy for member in members}:
        mine = [member for member in members if world.lives[member].strategy == strategy]
        for topic in world.topics:
            found = ownership_matrix(world, topic, route, strategy, present, names.placements[placement])
            owned[mine] |= found[mine]
    return owned


def _refuse_doubled(world: World, before: Booleans) -> None:
    doubled = np.flatnonzero(before.sum(axis=0) > 1)
    if len(doubled):
        raise BadInputError(
            f"strategy: gives {world.queues[doubled[0]]} to several clients before the change already, "
            f"so every message comes more than once; expected a strategy with one owner a queue"
        )


def _owners(world: World, names: Names, before: Booleans) -> Owners:
    """Return the owning clients of all queues, before, and after in every trial's placement of unknown ids."""
    client = np.array([*(life.client for life in world.lives), NOBODY])
    after = np.stack(
        [
            client[_first_life(state_matrix(world, names, AFTER, world.final, placement))]
            for placement in range(len(names.placements))
        ]
    )
    return Owners(client[_first_life(before)], after[names.of_trial])


def shown_owners(world: World, found: Simulation) -> Indexes:
    """Return the clients that own each queue afterwards where unknown ids sort last, as the answer shows it."""
    client = np.array([*(life.client for life in world.lives), NOBODY])
    return client[_first_life(state_matrix(world, found.names, AFTER, world.final, 0))]


def _first_life(owned: Booleans) -> Indexes:
    """Return the first life that owns each queue, NOBODY where none does."""
    return np.where(owned.any(axis=0), owned.argmax(axis=0), NOBODY)


def _route_learned(world: World, times: LifeTimes, random: np.random.Generator) -> Floats:
    """Return when each life has the route of after the change: at its next poll, or when it starts."""
    shape = times.heartbeat.shape
    if not world.route_changes:
        return np.full(shape, ALWAYS)
    return random.uniform(0, world.request.settings.seconds("pollNameServerInterval"), shape)


def _looks(
    world: World,
    times: LifeTimes,
    tables: Tables,
    learned: Floats,
    calibration: Calibration,
    random: np.random.Generator,
) -> Looks:
    """Return every member's looks from the first change to the first one after the last change."""
    wakes = notifications(world, tables, calibration, random)
    ready = np.where(np.isfinite(times.heartbeat), tables.entered.max(axis=2), ALWAYS)
    until = np.maximum(tables.last_change[:, None], np.where(np.isfinite(learned), learned, 0.0))
    changes = np.concatenate([tables.entered, tables.left], axis=1).reshape(len(wakes), -1)
    first = np.where(np.isfinite(changes), changes, np.inf).min(axis=1, initial=np.inf)
    first = np.minimum(first, np.where(np.isfinite(learned), learned, np.inf).min(axis=1, initial=np.inf))
    first = np.where(np.isfinite(first), np.maximum(first, 0.0), 0.0)
    return member_looks(world, times, wakes, ready, until, first, calibration, random)
