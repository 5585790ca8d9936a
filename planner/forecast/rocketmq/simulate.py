"""One request simulated from end to end, in the order in which things happen."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.handover.first_pulls import Starts, first_deliveries
from planner.forecast.rocketmq.handover.offsets import Deliveries, deliveries
from planner.forecast.rocketmq.handover.outcome import Observed, observe
from planner.forecast.rocketmq.handover.poll_commits import find_commits
from planner.forecast.rocketmq.handover.pop import (
    Again,
    observe_shared,
    popped_deliveries,
    shared_owners,
    shared_rates,
)
from planner.forecast.rocketmq.handover.queue_locks import locked_holds
from planner.forecast.rocketmq.handover.tenures import Holds, queue_holds
from planner.forecast.rocketmq.membership.consume_rates import find_rates
from planner.forecast.rocketmq.membership.membership_timeline import Course, find_course
from planner.forecast.rocketmq.membership.membership_views import topic_views
from planner.forecast.rocketmq.membership.ownership import (
    Owners,
    find_owners,
    first_life,
    refuse_doubled,
    state_matrix,
)
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import World
from planner.forecast.rocketmq.membership.unknown_ids import Names, name_clients
from planner.forecast.rocketmq.random_streams import Draws, Stage
from planner.forecast.rocketmq.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Every trial of one world, stage by stage; ``again`` for POP only."""

    names: Names
    owners: Owners
    course: Course
    holds: Holds
    starts: Starts
    found: Deliveries
    observed: Observed
    again: Again | None = None


def simulate(world: World, calibration: Calibration) -> Simulation:
    """Return all trials of a world; the same world and calibration give the same numbers."""
    draws = Draws(world.request.seed)
    names = name_clients(world, draws.of(Stage.NAMES))
    before = state_matrix(world, names, BEFORE, world.initial)
    after = state_matrix(world, names, AFTER, world.final)
    pops = world.request.pops
    if not pops:
        refuse_doubled(world, before)
    owners = shared_owners(world, names, before) if pops else find_owners(world, names, before)
    rates = shared_rates(world, before, after) if pops else find_rates(world, first_life(before), first_life(after))
    there = np.array(
        [queue.broker == (None if world.up is None else world.brokers[world.up]) for queue in world.queues]
    )
    course = find_course(world, rates, (after & there).any(axis=1), calibration, draws)
    views = [
        topic_views(world, names, course.tables, course.looks, course.routes, number, draws.of(Stage.VIEWS, number))
        for number in range(len(world.topics))
    ]
    holds = queue_holds(world, course.times, views, before)
    if world.request.orderly:
        random = draws.of(Stage.LOCKS)
        holds = locked_holds(world, course.times, holds, course.looks, rates, calibration, random)
    starts = first_deliveries(world, holds, rates, calibration, draws.of(Stage.PULLS))
    random = draws.of(Stage.OFFSETS)
    if pops:
        found, again = popped_deliveries(world, course.times, holds, starts, rates, before, calibration, random)
        observed = observe_shared(world, owners, holds, starts, found, after)
        return Simulation(names, owners, course, holds, starts, found, observed, again)
    commits = None
    if world.request.polls:
        commits = find_commits(world, course.times, holds, rates, draws.of(Stage.COMMITS))
    found = deliveries(world, course.times, holds, starts, rates, calibration, random, commits)
    observed = observe(world, owners, holds, starts, found, rates, calibration, draws.of(Stage.OUTCOME))
    return Simulation(names, owners, course, holds, starts, found, observed)
