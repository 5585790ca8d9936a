"""A change up to the rebalances: which processes run, which brokers list them, and when each rebalances."""

from dataclasses import dataclass, replace

import numpy as np

from planner.allocation.group import allocate_group
from planner.forecast.common.delay_ranges import draw_evenly, draw_tailed
from planner.forecast.rocketmq.membership.consume_rates import Rates
from planner.forecast.rocketmq.membership.membership_views import Routes, choose_brokers
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, ProcessTimes, process_times
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.rebalances import Rebalances, member_rebalances
from planner.forecast.rocketmq.membership.registrations import Registrations, member_registrations, notifications
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Scenario
from planner.forecast.rocketmq.random_streams import RandomStreams, Stage
from planner.forecast.rocketmq.request.changes import Partition
from planner.forecast.rocketmq.timing import FIRST_HEARTBEAT_S, Calibration
from planner.model.queues import RETRY_PREFIX, MessageQueue

_RETRIES_FIRST = 0.5
_PASSES = 2
"""A registration at that broker notifies others, whose rebalances register them; a third pass changes next to
nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class MembershipTimeline:
    """What happens up to the rebalances; ``routes``: from when on each has the route of after the change."""

    times: ProcessTimes
    routes: Routes
    registrations: Registrations
    rebalances: Rebalances


def find_membership(
    scenario: Scenario, rates: Rates, takes_from_started: Booleans, calibration: Calibration, streams: RandomStreams
) -> MembershipTimeline:
    """Return the membership over time; ``takes_from_started`` says by process whether it will own a queue of the broker
    that starts."""
    times = process_times(scenario, rates, calibration, streams.of(Stage.PROCESSES))
    registrations = member_registrations(scenario, times, calibration, streams.of(Stage.REGISTRATIONS))
    routes = _routes(scenario, times, calibration, streams.of(Stage.ROUTES))
    polled = routes.learned
    if scenario.up is not None and scenario.request.is_broker_allocated:
        rebalances = _rebalances(scenario, times, registrations, routes, calibration, streams)
        routes = _notified_by_brokers(scenario, scenario.up, rebalances, routes, takes_from_started, streams)
    registrations = _with_returned_broker(scenario, registrations, polled, streams.of(Stage.RETURNS))
    membership = MembershipTimeline(
        times, routes, registrations, _rebalances(scenario, times, registrations, routes, calibration, streams)
    )
    connects = scenario.request.generation.registers_on_connect
    if scenario.up is not None and connects and scenario.request.settings.is_on("enableHeartbeatChannelEventListener"):
        for _ in range(_PASSES):
            registrations = _with_connections(scenario, membership, takes_from_started, calibration, streams)
            membership = MembershipTimeline(
                times, routes, registrations, _rebalances(scenario, times, registrations, routes, calibration, streams)
            )
    return membership


def _routes(scenario: Scenario, times: ProcessTimes, calibration: Calibration, random: np.random.Generator) -> Routes:
    """Return when each process and each broker has the route of after the change: at its next poll of the name server.

    Brokers that allocate poll it, too (``TopicRouteInfoManager``, 5.0+); one that starts does so as it is asked first.
    """
    shape, brokers = times.heartbeat.shape, (len(times.heartbeat), len(scenario.brokers))
    if not scenario.route_changes:
        return Routes(np.full(shape, ALWAYS), np.full(brokers, ALWAYS))
    start = draw_evenly(random, calibration.broker_start_s, (shape[0], 1)) if scenario.up is not None else 0.0
    learned: Floats = start + random.uniform(0, scenario.request.settings.seconds("pollNameServerInterval"), shape)
    renewed = start + random.uniform(0, scenario.request.settings.seconds("loadBalancePollNameServerInterval"), brokers)
    if scenario.up is not None:
        renewed[:, scenario.up] = ALWAYS
    return Routes(learned, renewed if scenario.request.is_broker_allocated else np.full(brokers, ALWAYS))


def _with_returned_broker(
    scenario: Scenario, registrations: Registrations, polled: Floats, random: np.random.Generator
) -> Registrations:
    """Return the tables with that of a broker that starts: empty until the members' next heartbeats (3.9).

    ``polled``: when each member learns of it by its own poll. Where brokers allocate and every poll has its heartbeat,
    that follows as it did at the start (``MQClientInstance#startScheduledTask``: both at a fixed rate).
    """
    if scenario.up is None or scenario.request.broadcasts:  # a client that broadcasts needs no registration
        return registrations
    entered = registrations.entered.copy()
    beats, polls = (
        scenario.request.settings.value(name) for name in ("heartbeatBrokerInterval", "pollNameServerInterval")
    )
    waits = random.uniform(0, beats / 1000, polled.shape)
    in_step = scenario.request.is_broker_allocated and polls % beats == 0
    entered[:, :, scenario.up] = polled + (FIRST_HEARTBEAT_S if in_step else waits)
    return replace(registrations, entered=entered)


def _notified_by_brokers(
    scenario: Scenario,
    up: int,
    rebalances: Rebalances,
    routes: Routes,
    takes_from_started: Booleans,
    streams: RandomStreams,
) -> Routes:
    """Return the routes where a member that is given a queue of a broker it does not know asks for the route at once.

    To read the queue's offset, ``RemoteBrokerOffsetStore#fetchConsumeOffsetFromBroker``; a client that pops does so as
    it pops first (``PullAPIWrapper#popAsync``, both 5.5.0). It asks for that queue's topic only: a client that is given
    the broker's retry queue first knows the address then, and never asks for the other route. Which topic comes first
    is the order of a hash table, and a broker that was never there has no retry queue, so that it is drawn.
    """
    given = np.zeros(rebalances.at.shape, dtype=bool)
    for number in range(len(scenario.topics)):
        asked, route = choose_brokers(scenario, rebalances, routes, number, streams.of(Stage.VIEWS, number))
        given |= (asked >= 0) & (asked != up) & (route == AFTER)
    # A client that pops does so half a second after it reads offsets.
    odds = 1.0 if scenario.request.pops else _RETRIES_FIRST
    retries_first = streams.of(Stage.RETRIES).random((len(given), 1)) < odds
    asks = takes_from_started & ~(_owns_its_retry_queue(scenario, up) & retries_first)
    learned_at = np.where(given & asks[:, :, None], rebalances.at + rebalances.query_s, NEVER).min(
        axis=2, initial=NEVER
    )
    waits = scenario.behaviour.first_pull_s if scenario.request.pops else 0.0
    return replace(routes, learned=np.minimum(routes.learned, learned_at + waits))


def _owns_its_retry_queue(scenario: Scenario, up: int) -> Booleans:
    """Return by process whether it is to have the retry queue of the broker that starts: the group has one a broker."""
    topic, ids = f"{RETRY_PREFIX}{scenario.request.group}", [client.id or "" for client in scenario.clients]
    queues = [MessageQueue(topic, broker, 0) for broker in scenario.brokers]
    allocation = allocate_group(scenario.strategies[AFTER], queues, ids, scenario.request.group)
    owners = [
        allocation.clients[owner]
        for owner, queue in zip(allocation.owners.tolist(), allocation.queues, strict=True)
        if queue.broker == scenario.brokers[up]
    ]
    return np.array([ids[process.client] in owners for process in scenario.processes], dtype=bool)


def _with_connections(
    scenario: Scenario,
    membership: MembershipTimeline,
    takes_from_started: Booleans,
    calibration: Calibration,
    streams: RandomStreams,
) -> Registrations:
    """Return the tables where a connection to the broker that has started brings a heartbeat, too (5.2+).

    A member connects when it asks that broker for the members, or pulls a queue of it that it has just taken. One to
    which brokers allocate takes it as it is given it, and reads its offset at once.
    """
    random = streams.of(Stage.CONNECTIONS)
    knows = membership.routes.learned[:, :, None] <= membership.rebalances.at
    asks, is_given = np.zeros(knows.shape, dtype=bool), np.zeros(knows.shape, dtype=bool)
    for number in range(len(scenario.topics)):
        asked, route = choose_brokers(
            scenario, membership.rebalances, membership.routes, number, streams.of(Stage.VIEWS, number)
        )
        asks |= asked == scenario.up
        is_given |= (asked >= 0) & (route == AFTER)
    asking = np.where(knows & asks, membership.rebalances.at, NEVER).min(axis=2, initial=NEVER)
    reads_at_once = scenario.request.is_broker_allocated and not scenario.request.pops
    takes = is_given if scenario.request.is_broker_allocated else knows
    pulling = np.where(takes, membership.rebalances.at, NEVER).min(axis=2, initial=NEVER)
    pulling = pulling + (0.0 if reads_at_once else scenario.request.generation.first_pull_s)
    connected = np.minimum(asking, np.where(takes_from_started, pulling, NEVER))
    connected = connected + draw_evenly(random, calibration.register_step_s, connected.shape)
    entered = membership.registrations.entered.copy()
    entered[:, :, scenario.up] = np.minimum(entered[:, :, scenario.up], connected)
    return replace(membership.registrations, entered=entered)


def _rebalances(
    scenario: Scenario,
    times: ProcessTimes,
    registrations: Registrations,
    routes: Routes,
    calibration: Calibration,
    streams: RandomStreams,
) -> Rebalances:
    """Return every member's rebalances from the first change to the first one after the last change."""
    notified = notifications(scenario, registrations, calibration, streams.of(Stage.NOTIFICATIONS))
    ready = np.where(np.isfinite(times.heartbeat), registrations.entered.max(axis=2), ALWAYS)
    random = streams.of(Stage.FIRST_REBALANCES)
    ready = ready + draw_tailed(random, calibration.first_rebalance_s, ready.shape)
    if scenario.request.polls:
        ready = np.where(np.isfinite(times.heartbeat), _first_notified(scenario, times, notified), ready)
    if (scenario.resumed >= 0).any():
        # What was due while a process stood still, its tick or a notification, happens as it resumes.
        resumed = times.heartbeat + draw_evenly(random, calibration.resumed_rebalance_s, ready.shape)
        if isinstance(scenario.request.change, Partition):
            resumed = resumed + random.random(ready.shape) * scenario.behaviour.tick_s
        ready = np.where(scenario.resumed >= 0, resumed, ready)
    until = np.maximum(registrations.last_change[:, None], routes.known_s)
    changes = np.concatenate([registrations.entered, registrations.left], axis=1).reshape(len(notified), -1)
    first = np.where(np.isfinite(changes), changes, np.inf).min(axis=1, initial=np.inf)
    first = np.minimum(first, routes.first_s)
    first = np.where(np.isfinite(first), np.maximum(first, 0.0), 0.0)
    return member_rebalances(scenario, times, notified, ready, until, first, calibration, streams.of(Stage.REBALANCES))


def _first_notified(scenario: Scenario, times: ProcessTimes, notified: Floats) -> Floats:
    """Return when a process that polls rebalances for the first time: when the first broker notifies it of itself, or
    by tick.

    ``start()`` of those classes notifies nobody (``DefaultLitePullConsumerImpl``, ``DefaultMQPullConsumerImpl``).
    """
    by_tick = times.constructed + scenario.behaviour.tick_s
    return by_tick if not notified.shape[2] else np.minimum(notified[:, :, 0], by_tick)
