"""The course of a change up to the looks: who lives when, who stands in which table, who is woken, who looks when."""

from dataclasses import dataclass, replace

import numpy as np

from planner.allocation.group import allocate_group
from planner.forecast.common.delay_ranges import spread, tailed
from planner.forecast.rocketmq.membership.consume_rates import Rates
from planner.forecast.rocketmq.membership.membership_views import Routes, asked_brokers
from planner.forecast.rocketmq.membership.process_times import ALWAYS, NEVER, LifeTimes, live_times
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.rebalances import Looks, member_looks
from planner.forecast.rocketmq.membership.registrations import Tables, member_tables, notifications
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, World
from planner.forecast.rocketmq.random_streams import Draws, Stage
from planner.forecast.rocketmq.request.changes import Partition
from planner.forecast.rocketmq.timing import FIRST_HEARTBEAT_S, Calibration
from planner.model.queues import RETRY_PREFIX, MessageQueue

_RETRIES_FIRST = 0.5
_PASSES = 2
"""A registration at that broker wakes others, whose looks register them; a third pass changes next to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """What happens up to the looks; ``routes``: who has the route of after the change from when on."""

    times: LifeTimes
    routes: Routes
    tables: Tables
    looks: Looks


def find_course(world: World, rates: Rates, takes_there: Booleans, calibration: Calibration, draws: Draws) -> Course:
    """Return the course; ``takes_there`` says by life whether it will own a queue of the broker that starts."""
    times = live_times(world, rates, calibration, draws.of(Stage.LIVES))
    tables = member_tables(world, times, calibration, draws.of(Stage.TABLES))
    routes = _routes(world, times, calibration, draws.of(Stage.ROUTES))
    polled = routes.learned
    if world.up is not None and world.request.is_broker_allocated:
        looks = _looks(world, times, tables, routes, calibration, draws)
        routes = _told_by_brokers(world, world.up, looks, routes, takes_there, draws)
    tables = _with_returned_broker(world, tables, polled, draws.of(Stage.RETURNS))
    course = Course(times, routes, tables, _looks(world, times, tables, routes, calibration, draws))
    connects = world.request.generation.registers_on_connect
    if world.up is not None and connects and world.request.settings.is_on("enableHeartbeatChannelEventListener"):
        for _ in range(_PASSES):
            tables = _with_connections(world, course, takes_there, calibration, draws)
            course = Course(times, routes, tables, _looks(world, times, tables, routes, calibration, draws))
    return course


def _routes(world: World, times: LifeTimes, calibration: Calibration, random: np.random.Generator) -> Routes:
    """Return when each life and each broker has the route of after the change: at its next poll of the name server.

    Brokers that allocate poll it, too (``TopicRouteInfoManager``, 5.0+); one that starts does so as it is asked first.
    """
    shape, brokers = times.heartbeat.shape, (len(times.heartbeat), len(world.brokers))
    if not world.route_changes:
        return Routes(np.full(shape, ALWAYS), np.full(brokers, ALWAYS))
    start = spread(random, calibration.broker_start_s, (shape[0], 1)) if world.up is not None else 0.0
    learned: Floats = start + random.uniform(0, world.request.settings.seconds("pollNameServerInterval"), shape)
    renewed = start + random.uniform(0, world.request.settings.seconds("loadBalancePollNameServerInterval"), brokers)
    if world.up is not None:
        renewed[:, world.up] = ALWAYS
    return Routes(learned, renewed if world.request.is_broker_allocated else np.full(brokers, ALWAYS))


def _with_returned_broker(world: World, tables: Tables, polled: Floats, random: np.random.Generator) -> Tables:
    """Return the tables with that of a broker that starts: empty until the members' next heartbeats (3.9).

    ``polled``: when each member learns of it by its own poll. Where brokers allocate and every poll has its heartbeat,
    that follows as it did at the start (``MQClientInstance#startScheduledTask``: both at a fixed rate).
    """
    if world.up is None or world.request.broadcasts:  # who broadcasts needs no table
        return tables
    entered = tables.entered.copy()
    beats, polls = (
        world.request.settings.value(name) for name in ("heartbeatBrokerInterval", "pollNameServerInterval")
    )
    waits = random.uniform(0, beats / 1000, polled.shape)
    in_step = world.request.is_broker_allocated and polls % beats == 0
    entered[:, :, world.up] = polled + (FIRST_HEARTBEAT_S if in_step else waits)
    return replace(tables, entered=entered)


def _told_by_brokers(
    world: World, up: int, looks: Looks, routes: Routes, takes_there: Booleans, draws: Draws
) -> Routes:
    """Return the routes where a member that is given a queue of a broker it does not know asks for the route at once.

    To read the queue's offset, ``RemoteBrokerOffsetStore#fetchConsumeOffsetFromBroker``; who pops does so as it pops
    first (``PullAPIWrapper#popAsync``, both 5.5.0). It asks for that queue's topic only: who is given the broker's
    retry queue first knows the address then, and never asks for the other route. Which topic comes first is the order
    of a hash table, and a broker that was never there has no retry queue, so that it is drawn.
    """
    given = np.zeros(looks.at.shape, dtype=bool)
    for number in range(len(world.topics)):
        asked, route = asked_brokers(world, looks, routes, number, draws.of(Stage.VIEWS, number))
        given |= (asked >= 0) & (asked != up) & (route == AFTER)
    odds = 1.0 if world.request.pops else _RETRIES_FIRST  # who pops does so half a second after it reads offsets
    retries_first = draws.of(Stage.RETRIES).random((len(given), 1)) < odds
    asks = takes_there & ~(_has_retries_there(world, up) & retries_first)
    told = np.where(given & asks[:, :, None], looks.at + looks.query_s, NEVER).min(axis=2, initial=NEVER)
    waits = world.traits.first_pull_s if world.request.pops else 0.0
    return replace(routes, learned=np.minimum(routes.learned, told + waits))


def _has_retries_there(world: World, up: int) -> Booleans:
    """Return by life whether it is to have the retry queue of the broker that starts: the group has one a broker."""
    topic, ids = f"{RETRY_PREFIX}{world.request.group}", [client.id or "" for client in world.clients]
    queues = [MessageQueue(topic, broker, 0) for broker in world.brokers]
    found = allocate_group(world.strategies[AFTER], queues, ids, world.request.group)
    owners = [
        found.clients[owner]
        for owner, queue in zip(found.owners.tolist(), found.queues, strict=True)
        if queue.broker == world.brokers[up]
    ]
    return np.array([ids[life.client] in owners for life in world.lives], dtype=bool)


def _with_connections(
    world: World, course: Course, takes_there: Booleans, calibration: Calibration, draws: Draws
) -> Tables:
    """Return the tables where a connection to the broker that has started brings a heartbeat, too (5.2+).

    A member connects when it asks that broker for the members, or pulls a queue of it that it has just taken. One to
    which brokers allocate takes it as it is given it, and reads its offset at once.
    """
    random = draws.of(Stage.CONNECTIONS)
    knows = course.routes.learned[:, :, None] <= course.looks.at
    asks, is_given = np.zeros(knows.shape, dtype=bool), np.zeros(knows.shape, dtype=bool)
    for number in range(len(world.topics)):
        asked, route = asked_brokers(world, course.looks, course.routes, number, draws.of(Stage.VIEWS, number))
        asks |= asked == world.up
        is_given |= (asked >= 0) & (route == AFTER)
    asking = np.where(knows & asks, course.looks.at, NEVER).min(axis=2, initial=NEVER)
    reads_at_once = world.request.is_broker_allocated and not world.request.pops
    takes = is_given if world.request.is_broker_allocated else knows
    pulling = np.where(takes, course.looks.at, NEVER).min(axis=2, initial=NEVER)
    pulling = pulling + (0.0 if reads_at_once else world.request.generation.first_pull_s)
    connected = np.minimum(asking, np.where(takes_there, pulling, NEVER))
    connected = connected + spread(random, calibration.register_step_s, connected.shape)
    entered = course.tables.entered.copy()
    entered[:, :, world.up] = np.minimum(entered[:, :, world.up], connected)
    return replace(course.tables, entered=entered)


def _looks(
    world: World,
    times: LifeTimes,
    tables: Tables,
    routes: Routes,
    calibration: Calibration,
    draws: Draws,
) -> Looks:
    """Return every member's looks from the first change to the first one after the last change."""
    wakes = notifications(world, tables, calibration, draws.of(Stage.WAKES))
    ready = np.where(np.isfinite(times.heartbeat), tables.entered.max(axis=2), ALWAYS)
    random = draws.of(Stage.FIRST_LOOKS)
    ready = ready + tailed(random, calibration.first_look_s, ready.shape)
    if world.request.polls:
        ready = np.where(np.isfinite(times.heartbeat), _told_first(world, times, wakes), ready)
    if (world.resumed >= 0).any():
        # What was due while a process stood still, its tick or a notification, happens as it wakes.
        awake = times.heartbeat + spread(random, calibration.woken_look_s, ready.shape)
        if isinstance(world.request.change, Partition):
            awake = awake + random.random(ready.shape) * world.traits.tick_s
        ready = np.where(world.resumed >= 0, awake, ready)
    until = np.maximum(tables.last_change[:, None], routes.known_s)
    changes = np.concatenate([tables.entered, tables.left], axis=1).reshape(len(wakes), -1)
    first = np.where(np.isfinite(changes), changes, np.inf).min(axis=1, initial=np.inf)
    first = np.minimum(first, routes.first_s)
    first = np.where(np.isfinite(first), np.maximum(first, 0.0), 0.0)
    return member_looks(world, times, wakes, ready, until, first, calibration, draws.of(Stage.LOOKS))


def _told_first(world: World, times: LifeTimes, wakes: Floats) -> Floats:
    """Return when a process that polls looks for the first time: when the first broker tells it of itself, or by tick.

    ``start()`` of those classes wakes nobody (``DefaultLitePullConsumerImpl``, ``DefaultMQPullConsumerImpl``).
    """
    by_tick = times.constructed + world.traits.tick_s
    return by_tick if not wakes.shape[2] else np.minimum(wakes[:, :, 0], by_tick)
