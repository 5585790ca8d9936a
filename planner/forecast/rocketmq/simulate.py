"""One request simulated from end to end, in the order in which things happen."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.handover.first_pulls import Starts, first_deliveries
from planner.forecast.rocketmq.handover.offsets import Deliveries, find_deliveries
from planner.forecast.rocketmq.handover.outcome import Observed, observe
from planner.forecast.rocketmq.handover.poll_commits import find_commits
from planner.forecast.rocketmq.handover.pop import (
    Redelivery,
    find_popped_deliveries,
    find_shared_owners,
    find_shared_rates,
    observe_shared,
)
from planner.forecast.rocketmq.handover.queue_locks import apply_queue_locks
from planner.forecast.rocketmq.handover.tenures import Tenures, queue_tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, find_rates, has_backlog
from planner.forecast.rocketmq.membership.inflow import Inflow, find_inflow
from planner.forecast.rocketmq.membership.membership_timeline import MembershipTimeline, find_membership
from planner.forecast.rocketmq.membership.membership_views import topic_views
from planner.forecast.rocketmq.membership.ownership import (
    Owners,
    find_owners,
    first_process,
    refuse_doubled,
    state_matrix,
)
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE
from planner.forecast.rocketmq.membership.scenario import Booleans, Scenario
from planner.forecast.rocketmq.membership.unknown_ids import Names, name_clients
from planner.forecast.rocketmq.random_streams import RandomStreams, Stage
from planner.forecast.rocketmq.timing import Calibration


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Every trial of one scenario, stage by stage; ``redelivery`` for POP only, ``inflow`` where it changes."""

    names: Names
    owners: Owners
    membership: MembershipTimeline
    tenures: Tenures
    starts: Starts
    deliveries: Deliveries
    observed: Observed
    redelivery: Redelivery | None = None
    inflow: Inflow | None = None


def simulate(scenario: Scenario, calibration: Calibration) -> Simulation:
    """Return all trials of a scenario; the same scenario and calibration give the same numbers."""
    streams = RandomStreams(scenario.request.seed)
    names = name_clients(scenario, streams.of(Stage.NAMES))
    before = state_matrix(scenario, names, BEFORE, scenario.initial)
    after = state_matrix(scenario, names, AFTER, scenario.final)
    pops = scenario.request.pops
    if not pops:
        refuse_doubled(scenario, before)
    owners = find_shared_owners(scenario, names, before) if pops else find_owners(scenario, names, before)
    rates = (
        find_shared_rates(scenario, before, after)
        if pops
        else find_rates(scenario, first_process(before), first_process(after))
    )
    membership = find_membership(scenario, rates, _owners_on_started(scenario, after), calibration, streams)
    tenures = _find_tenures(scenario, names, membership, before, rates, calibration, streams)
    starts = first_deliveries(scenario, tenures, rates, calibration, streams.of(Stage.PULLS))
    random = streams.of(Stage.OFFSETS)
    if pops:
        deliveries, redelivery = find_popped_deliveries(
            scenario, membership.times, tenures, starts, rates, before, calibration, random
        )
        observed = observe_shared(scenario, owners, tenures, starts, deliveries, after)
        return Simulation(names, owners, membership, tenures, starts, deliveries, observed, redelivery)
    waits = has_backlog(scenario, rates.service_s)
    inflow = find_inflow(scenario, rates.owners, rates.per_process, waits, streams.of(Stage.INFLOW))
    commits = None
    if scenario.request.polls:
        commits = find_commits(scenario, membership.times, tenures, rates, streams.of(Stage.COMMITS))
    deliveries = find_deliveries(
        scenario, membership.times, tenures, starts, rates, calibration, random, commits, inflow
    )
    random = streams.of(Stage.OUTCOME)
    observed = observe(scenario, owners, tenures, starts, deliveries, rates, calibration, random, inflow)
    return Simulation(names, owners, membership, tenures, starts, deliveries, observed, inflow=inflow)


def _owners_on_started(scenario: Scenario, after: Booleans) -> Booleans:
    """Return which processes own a queue of the broker that comes up."""
    started = None if scenario.up is None else scenario.brokers[scenario.up]
    on_started = np.array([queue.broker == started for queue in scenario.queues])
    owners: Booleans = (after & on_started).any(axis=1)
    return owners


def _find_tenures(
    scenario: Scenario,
    names: Names,
    membership: MembershipTimeline,
    before: Booleans,
    rates: Rates,
    calibration: Calibration,
    streams: RandomStreams,
) -> Tenures:
    """Return who owns which queue from when to when, by the member list that each client sees, and by queue locks."""
    views = [
        topic_views(
            scenario,
            names,
            membership.registrations,
            membership.rebalances,
            membership.routes,
            number,
            streams.of(Stage.VIEWS, number),
        )
        for number in range(len(scenario.topics))
    ]
    tenures = queue_tenures(scenario, membership.times, views, before)
    if not scenario.request.orderly:
        return tenures
    random = streams.of(Stage.LOCKS)
    return apply_queue_locks(scenario, membership.times, tenures, membership.rebalances, rates, calibration, random)
