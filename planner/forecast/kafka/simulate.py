"""One request simulated from end to end, in the order in which things happen."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.handover.assignments import Assignments
from planner.forecast.kafka.handover.blue_green import play_succession
from planner.forecast.kafka.handover.classic_protocol import play_rounds
from planner.forecast.kafka.handover.consumer_protocol import play_conversion, play_reversion, play_targets
from planner.forecast.kafka.handover.offsets import Deliveries, deliveries
from planner.forecast.kafka.handover.outcome import Observed, Owners, observe
from planner.forecast.kafka.handover.rebalance_context import Scene
from planner.forecast.kafka.handover.tenures import Course
from planner.forecast.kafka.handover.zombies import Zombies, find_zombies
from planner.forecast.kafka.membership.broker_outages import find_outages
from planner.forecast.kafka.membership.poll_loops import Loops, find_loops
from planner.forecast.kafka.membership.process_times import LifeTimes, live_times
from planner.forecast.kafka.membership.scenario import AFTER, Indexes, World
from planner.forecast.kafka.membership.unknown_ids import Names, name_members
from planner.forecast.kafka.random_streams import Draws, Stage
from planner.forecast.kafka.request.changes import BlueGreen
from planner.forecast.kafka.request.settings import CONSUMER
from planner.forecast.kafka.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Every trial of one world, stage by stage. ``shown``: the owners after the change that the answer shows."""

    names: Names
    assignments: Assignments
    loops: Loops
    times: LifeTimes
    course: Course
    found: Deliveries
    owners: Owners
    shown: Indexes
    zombies: Zombies
    observed: Observed


def simulate(world: World, calibration: Calibration) -> Simulation:
    """Return all trials of a world; the same world and calibration give the same numbers."""
    draws = Draws(world.request.seed)
    names = name_members(world, draws.of(Stage.NAMES))
    assignments = Assignments(world, names)
    loops = find_loops(world, assignments.owners(0))
    times = live_times(world, names, loops, calibration, draws.of(Stage.LIVES), draws.of(Stage.BEATS))
    zombies, times = find_zombies(world, assignments.owners(0), loops, times, calibration, draws.of(Stage.ZOMBIES))
    course = _play(Scene(world, names, assignments, times, loops, calibration, draws.of(Stage.ROUNDS)))
    found = deliveries(world, times, course.holds, loops, calibration, draws)
    owners = Owners(world.member_of[assignments.owners(0)], world.member_of[assignments.owners_in(course.state)])
    shown = _shown(world, names, assignments, course)
    outages = find_outages(world, calibration, draws.of(Stage.BROKERS))
    random = draws.of(Stage.OUTCOME)
    observed = observe(world, owners, course.holds, found, times, loops, outages, zombies, calibration, random)
    return Simulation(names, assignments, loops, times, course, found, owners, shown, zombies, observed)


def _play(scene: Scene) -> Course:
    """Return the course of the group, by the protocol that it has."""
    request = scene.world.request
    if request.converts:
        return play_conversion(scene)
    if request.reverts:
        return play_reversion(scene)
    play = play_targets if request.protocol == CONSUMER else play_rounds
    return play_succession(scene, request.change, play) if isinstance(request.change, BlueGreen) else play(scene)


def _shown(world: World, names: Names, assignments: Assignments, course: Course) -> Indexes:
    """Return the member that owns each partition afterwards: most trials', or with newcomers sorting last."""
    if names.are_sampled and not names.renamed:
        return world.member_of[assignments.settled(world.final, 0, AFTER)]
    most = int(np.bincount(course.state).argmax())
    return world.member_of[assignments.owners(most)]
