"""One request simulated from end to end, in the order in which things happen."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.kafka.handover.assignments import Assignments
from planner.forecast.kafka.handover.blue_green import play_succession
from planner.forecast.kafka.handover.classic_protocol import play_rounds
from planner.forecast.kafka.handover.consumer_protocol import play_conversion, play_reversion, play_targets
from planner.forecast.kafka.handover.offsets import Deliveries, find_deliveries
from planner.forecast.kafka.handover.outcome import Observed, Owners, observe
from planner.forecast.kafka.handover.rebalance_context import RebalanceContext
from planner.forecast.kafka.handover.tenures import MembershipTimeline
from planner.forecast.kafka.handover.zombies import Zombies, find_zombies
from planner.forecast.kafka.membership.broker_outages import find_outages
from planner.forecast.kafka.membership.poll_loops import PollLoops, find_poll_loops
from planner.forecast.kafka.membership.process_times import ProcessTimes, process_times
from planner.forecast.kafka.membership.scenario import AFTER, Indexes, Scenario
from planner.forecast.kafka.membership.unknown_ids import Names, name_members
from planner.forecast.kafka.random_streams import RandomStreams, Stage
from planner.forecast.kafka.request.changes import BlueGreen
from planner.forecast.kafka.request.settings import CONSUMER
from planner.forecast.kafka.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Every trial of one scenario, stage by stage. ``shown``: the owners after the change that the answer shows."""

    names: Names
    assignments: Assignments
    poll_loops: PollLoops
    times: ProcessTimes
    membership: MembershipTimeline
    deliveries: Deliveries
    owners: Owners
    shown: Indexes
    zombies: Zombies
    observed: Observed


def simulate(scenario: Scenario, calibration: Calibration) -> Simulation:
    """Return all trials of a scenario; the same scenario and calibration give the same numbers."""
    streams = RandomStreams(scenario.request.seed)
    names = name_members(scenario, streams.of(Stage.NAMES))
    assignments = Assignments(scenario, names)
    poll_loops = find_poll_loops(scenario, assignments.owners(0))
    times = process_times(
        scenario, names, poll_loops, calibration, streams.of(Stage.PROCESSES), streams.of(Stage.BEATS)
    )
    zombies, times = find_zombies(
        scenario, assignments.owners(0), poll_loops, times, calibration, streams.of(Stage.ZOMBIES)
    )
    membership = _play(
        RebalanceContext(scenario, names, assignments, times, poll_loops, calibration, streams.of(Stage.ROUNDS))
    )
    deliveries = find_deliveries(scenario, times, membership.tenures, poll_loops, calibration, streams)
    owners = Owners(
        scenario.member_of[assignments.owners(0)], scenario.member_of[assignments.owners_in(membership.state)]
    )
    shown = _shown(scenario, names, assignments, membership)
    outages = find_outages(scenario, calibration, streams.of(Stage.BROKERS))
    random = streams.of(Stage.OUTCOME)
    observed = observe(
        scenario, owners, membership.tenures, deliveries, times, poll_loops, outages, zombies, calibration, random
    )
    return Simulation(names, assignments, poll_loops, times, membership, deliveries, owners, shown, zombies, observed)


def _play(context: RebalanceContext) -> MembershipTimeline:
    """Return the membership over time of the group, by the protocol that it has."""
    request = context.scenario.request
    if request.converts:
        return play_conversion(context)
    if request.reverts:
        return play_reversion(context)
    play = play_targets if request.protocol == CONSUMER else play_rounds
    return play_succession(context, request.change, play) if isinstance(request.change, BlueGreen) else play(context)


def _shown(scenario: Scenario, names: Names, assignments: Assignments, membership: MembershipTimeline) -> Indexes:
    """Return the member that owns each partition afterwards: most trials', or with newcomers sorting last."""
    if names.are_sampled and not names.renamed and not names.successor_ids:
        return scenario.member_of[assignments.settled(scenario.final, 0, AFTER)]
    most = int(np.bincount(membership.state).argmax())
    return scenario.member_of[assignments.owners(most)]
