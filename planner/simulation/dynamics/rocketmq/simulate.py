"""One request simulated from end to end, in the order in which things happen."""

from dataclasses import dataclass

import numpy as np

from planner.simulation.dynamics.rocketmq.course import Course, find_course
from planner.simulation.dynamics.rocketmq.draws import Draws, Stage
from planner.simulation.dynamics.rocketmq.holds import Holds, queue_holds
from planner.simulation.dynamics.rocketmq.locks import locked_holds
from planner.simulation.dynamics.rocketmq.names import Names, name_clients
from planner.simulation.dynamics.rocketmq.offsets import Deliveries, deliveries
from planner.simulation.dynamics.rocketmq.outcome import Observed, observe
from planner.simulation.dynamics.rocketmq.ownership import (
    Owners,
    find_owners,
    first_life,
    refuse_doubled,
    state_matrix,
)
from planner.simulation.dynamics.rocketmq.processes import AFTER, BEFORE
from planner.simulation.dynamics.rocketmq.pulls import Starts, first_deliveries
from planner.simulation.dynamics.rocketmq.rates import find_rates
from planner.simulation.dynamics.rocketmq.timing import Calibration
from planner.simulation.dynamics.rocketmq.views import topic_views
from planner.simulation.dynamics.rocketmq.world import World


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Every trial of one world, stage by stage."""

    names: Names
    owners: Owners
    course: Course
    holds: Holds
    starts: Starts
    found: Deliveries
    observed: Observed


def simulate(world: World, calibration: Calibration) -> Simulation:
    """Return all trials of a world; the same world and calibration give the same numbers."""
    draws = Draws(world.request.seed)
    names = name_clients(world, draws.of(Stage.NAMES))
    before = state_matrix(world, names, BEFORE, world.initial)
    after = state_matrix(world, names, AFTER, world.final)
    refuse_doubled(world, before)
    owners = find_owners(world, names, before)
    rates = find_rates(world, first_life(before), first_life(after))
    there = np.array(
        [queue.broker == (None if world.up is None else world.brokers[world.up]) for queue in world.queues]
    )
    course = find_course(world, rates, (after & there).any(axis=1), calibration, draws)
    views = [
        topic_views(world, names, course.tables, course.looks, course.learned, number, draws.of(Stage.VIEWS, number))
        for number in range(len(world.topics))
    ]
    holds = queue_holds(world, course.times, views, before)
    if world.request.orderly:
        random = draws.of(Stage.LOCKS)
        holds = locked_holds(world, course.times, holds, course.looks, rates, calibration, random)
    starts = first_deliveries(world, holds, rates, calibration, draws.of(Stage.PULLS))
    random = draws.of(Stage.OFFSETS)
    found = deliveries(world, course.times, holds, starts, rates, calibration, random)
    observed = observe(world, owners, holds, starts, found, rates, calibration, draws.of(Stage.OUTCOME))
    return Simulation(names, owners, course, holds, starts, found, observed)
