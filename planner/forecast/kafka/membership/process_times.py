"""When each process of each trial comes, stops, and is missed: what the coordinator hears of it, and when."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.changes import CRASH, CUT, FREEZE, GRACEFUL, SILENT
from planner.forecast.common.delay_ranges import Spread, spread, tailed
from planner.forecast.kafka.membership.network_recovery import patience_s, through_s
from planner.forecast.kafka.membership.poll_loops import Loops
from planner.forecast.kafka.membership.scenario import Booleans, Floats, World
from planner.forecast.kafka.membership.unknown_ids import Names
from planner.forecast.kafka.request.changes import RollingUpdate
from planner.forecast.kafka.request.settings import CLASSIC
from planner.forecast.kafka.timing import LONGEST_AGE_S, YOUNGEST_AGE_S, Calibration

NEVER, ALWAYS = np.inf, -np.inf

MOST_ORDERS = 48
"""In which the pods of a rolling update end: trials of one order and one placement of ids share their rounds."""
CALM = 5
"""Machines are calm mostly: ``busy`` is below 0.03 in half of the trials, and above 0.6 in one of ten."""


@dataclass(frozen=True, slots=True, eq=False)
class LifeTimes:
    """Seconds since the change, one row a trial, one column a life.

    ``arrives``: its first request to join reaches the coordinator (ALWAYS for those that run before). ``ends``: it is
    told to close, or dies (NEVER for those that stay). ``stops``: its last delivery. ``leaves``: the coordinator drops
    it. ``sleeps`` to ``wakes`` it does nothing, and gets records again at ``reads``. ``unsaved_s``: how old its last
    commit is when it dies or falls asleep without one. ``beat``: a moment at which it sends a heartbeat.

    ``interval``: how far its heartbeats lie apart. By trial, in one column: ``busy``, from 0 to 1, how much gets in the
    way of whatever is done: what keeps one member waiting, a machine or a network, keeps the others waiting, too.
    """

    arrives: Floats
    ends: Floats
    stops: Floats
    leaves: Floats
    sleeps: Floats
    wakes: Floats
    reads: Floats
    unsaved_s: Floats
    beat: Floats
    interval: Floats
    busy: Floats

    @property
    def outlives(self) -> Booleans:
        """Return where a life's session outlives its sleep."""
        return np.isfinite(self.sleeps) & np.isposinf(self.leaves)

    def delay(self, random: np.random.Generator, ends: Spread) -> Floats:
        """Return by trial and life a delay between two ends, near the lower one in a trial in which little is busy."""
        return ends[0] + (ends[1] - ends[0]) * self.busy * random.random(self.arrives.shape)


def beat_intervals_s(world: World) -> Floats:
    """Return the seconds between two heartbeats of each life."""
    settings = world.request.settings
    classic, server = (settings.seconds(f"{name}heartbeat.interval.ms") for name in ("", "group.consumer."))
    return np.where(world.by_server, server, classic)


def session_s(world: World, life: int) -> float:
    """Return the seconds after which the coordinator gives up a silent life."""
    is_classic = not world.lives[life].is_server_side
    return world.request.settings.seconds(f"{'' if is_classic else 'group.consumer.'}session.timeout.ms")


def live_times(
    world: World,
    names: Names,
    loops: Loops,
    calibration: Calibration,
    random: np.random.Generator,
    beats: np.random.Generator,
) -> LifeTimes:
    """Return the times of every life in every trial."""
    shape = (world.request.trials, len(world.lives))
    stops, leaves, sleeps, wakes = (np.full(shape, NEVER) for _ in range(4))
    busy = beats.random((shape[0], 1)) ** CALM
    interval = beat_intervals_s(world) + calibration.beat_late_s[0] + np.ptp(calibration.beat_late_s) * busy
    beat, unsaved = _beats(world, interval, calibration, beats), _unsaved(world, loops, calibration, random)
    _begin_anew(world, beat, calibration, beats)
    ends = _ends(world, names, random)
    arrives = np.full(shape, ALWAYS)
    times = LifeTimes(arrives, ends, stops, leaves, sleeps, wakes, wakes.copy(), unsaved, beat, interval, busy)
    slept = [NEVER if life.asleep_s is None else life.asleep_s for life in world.lives]
    end_of_loop = loops.until_poll(random, np.minimum(ends, slept))
    closing, starting = (tailed(random, ends, shape) for ends in (calibration.close_s, calibration.start_s))
    for index, life in enumerate(world.lives):
        if life.starts_s is not None and life.replaces is None:
            earliest = life.starts_s if life.follows is None else stops[:, life.follows]
            times.arrives[:, index] = np.maximum(life.starts_s, earliest) + starting[:, index]
            if life.follows is not None and _says_so(world, life.follows):  # it has said so before it ended
                times.arrives[:, index] = np.maximum(times.arrives[:, index], leaves[:, life.follows])
        if life.how == CUT:
            _cut(world, times, index, calibration, random)
        elif life.ends_s is not None or life.asleep_s is not None:
            _end(world, times, index, end_of_loop[:, index], closing[:, index], starting[:, index])
        if life.follows is not None and world.members[life.member].instance_id is not None:
            leaves[:, life.follows] = times.arrives[:, index]  # it takes the other one's place
        if life.replaces is not None:
            expired = np.isfinite(leaves[:, life.replaces])
            times.arrives[:, index] = np.where(expired, wakes[:, life.replaces] + closing[:, index], NEVER)
    return times


def _ends(world: World, names: Names, random: np.random.Generator) -> Floats:
    """Return when each life ends; whose turn it is in a rolling update is any order (``ActivePodsWithRanks``)."""
    ends = np.tile([NEVER if life.ends_s is None else life.ends_s for life in world.lives], (world.request.trials, 1))
    if isinstance(world.request.change, RollingUpdate):
        old = list(world.initial)
        draw = names.draws(MOST_ORDERS)
        ends[:, old] = random.permuted(ends[: draw.max() + 1, old], axis=1)[draw]
    return ends


def _end(world: World, times: LifeTimes, index: int, end_of_loop: Floats, closing: Floats, starting: Floats) -> None:
    """Fill in when one life stops, leaves, or sleeps and wakes."""
    life = world.lives[index]
    stop = times.ends[:, index] if life.asleep_s is None else np.full(len(times.stops), life.asleep_s)
    is_graceful = life.how == GRACEFUL
    # A session runs from the last word of its member. A graceful end of a static one is its last commit, and its leave
    # by the consumer protocol is none (``consumerGroupStaticMemberGroupLeave``, 4.3).
    commits = is_graceful and not world.hosted[index] and not life.is_server_side
    expires = session_s(world, index) + (stop + end_of_loop if commits else _last_sign(world, times, index, stop))
    if is_graceful:
        stop, times.unsaved_s[:, index] = stop + end_of_loop, 0.0
    if life.awake_s is None:
        times.stops[:, index] = stop
        times.leaves[:, index] = stop + closing if _says_so(world, index) else expires
        return
    # Who restarts at once does so when its loop has ended.
    back = life.awake_s if life.how == FREEZE else np.maximum(life.awake_s, stop) + starting
    times.sleeps[:, index] = stop
    times.wakes[:, index] = times.reads[:, index] = np.maximum(back, stop)
    if life.is_server_side and life.how in (CRASH, SILENT):
        # UNRELEASED_INSTANCE_ID: the broker refuses a second process until the first one's session is over.
        times.wakes[:, index] = times.reads[:, index] = np.maximum(times.wakes[:, index], expires + starting)
    _expire(times, index, stop, expires)


def _says_so(world: World, index: int) -> bool:
    """Return whether a life that ends tells the coordinator that it leaves: static ones do not."""
    life = world.lives[index]
    return life.how == GRACEFUL and world.members[life.member].instance_id is None


def _expire(times: LifeTimes, index: int, stop: Floats, expires: Floats) -> None:
    """Let the coordinator drop a life that has not woken when its session ends."""
    expired = expires < times.wakes[:, index]
    times.leaves[:, index] = np.where(expired, expires, NEVER)
    times.stops[:, index] = np.where(expired, stop, NEVER)


def _cut(world: World, times: LifeTimes, index: int, calibration: Calibration, random: np.random.Generator) -> None:
    """Fill in when a life that is cut off is heard again, and when it gets records again.

    It has a connection of its own to the coordinator (``ConsumerCoordinator``), on which heartbeats and commits go. The
    classic Java client closes that one when its session is over by its own clock (``Heartbeat#sessionTimeoutExpired``).
    """
    life, settings, trials = world.lives[index], world.request.settings, len(times.stops)
    assert life.asleep_s is not None
    assert life.awake_s is not None
    for_s, stop = life.awake_s - life.asleep_s, np.full(trials, life.asleep_s)
    beat, interval = times.beat[:, index], times.interval[:, index]
    speaks = beat + np.ceil((stop - beat) / interval) * interval - stop
    if settings.is_on("enable.auto.commit"):
        speaks = np.minimum(speaks, settings.seconds("auto.commit.interval.ms") * random.random(trials))
    patience, session = patience_s(settings, is_java=world.request.is_java), session_s(world, index)
    expires = session + _last_sign(world, times, index, stop)
    watches = world.request.is_java and not life.is_server_side
    closes = np.minimum(speaks + patience, expires - stop if watches else NEVER)
    anew, found = (spread(random, ends, (trials,)) for ends in (calibration.reconnected_s, calibration.found_again_s))
    opens = np.where(closes < speaks + patience, found, anew)
    asked = calibration.answered_s * random.random(trials)
    times.sleeps[:, index] = stop
    times.wakes[:, index] = stop + through_s(speaks, for_s, closes, opens, calibration, random)
    times.reads[:, index] = stop + through_s(asked, for_s, asked + patience, anew, calibration, random)
    _expire(times, index, stop, expires)


def _last_sign(world: World, times: LifeTimes, life: int, silent: Floats) -> Floats:
    """Return when the coordinator last heard of a life that falls silent: heartbeat, or commit of a classic member.

    A commit starts the classic session anew (``rescheduleClassicGroupMemberHeartbeat``), in a classic group.
    """
    interval, beat = times.interval[:, life], times.beat[:, life]
    last: Floats = beat + np.floor((silent - beat) / interval) * interval
    if world.lives[life].is_server_side or world.hosted[life]:
        return last
    return np.maximum(last, silent - times.unsaved_s[:, life])


def _beats(world: World, interval: Floats, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return a heartbeat of each life before the change, less than an interval ago.

    The end of a round sets all members' clocks to one moment; from then on they drift apart (3.5 Observed). Members of
    the consumer protocol are never set together.
    """
    trials, shape = world.request.trials, (world.request.trials, len(world.lives))
    if world.request.protocol != CLASSIC:
        return -random.random(shape) * interval
    ages = np.exp(random.uniform(np.log(YOUNGEST_AGE_S), np.log(LONGEST_AGE_S), (trials, 1)))
    if world.request.since_rebalance_s is not None:
        ages = world.request.since_rebalance_s + tailed(random, calibration.assigned_s, (trials, 1))
    drift = random.standard_normal(shape) * calibration.beat_jitter_s * np.sqrt(np.floor(ages / interval))
    return -((ages - drift) % interval)


def _begin_anew(world: World, beat: Floats, calibration: Calibration, random: np.random.Generator) -> None:
    """Let heartbeats begin anew with the first restart of those who are restarted in their place twice."""
    for index, life in enumerate(world.lives):
        if life.rested_s is not None:
            beat[:, index] = life.rested_s + tailed(random, calibration.start_s, (len(beat),))


def _unsaved(world: World, loops: Loops, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return how old the last commit of each life is, at any moment.

    By itself it commits in the first poll after ``auto.commit.interval.ms``, counted from the last assignment; else
    after each poll, so that what is in hand is missing. A commit names the positions of its poll: its way to the broker
    makes it no older, unless its member dies in these milliseconds.
    """
    shape, request = (world.request.trials, len(world.lives)), world.request
    late = spread(random, calibration.commit_jitter_s, shape)
    if not request.settings.is_on("enable.auto.commit"):
        return loops.batch_s * np.where(loops.busy < 1, 1.0, random.random(shape))
    interval = request.settings.seconds("auto.commit.interval.ms") + np.where(loops.busy < 1, 0.0, loops.batch_s) + late
    since = request.since_rebalance_s
    if since is None or request.protocol != CLASSIC:
        return interval * random.random(shape)
    ages = since + tailed(random, calibration.assigned_s, shape)
    return np.where(interval > 0, ages % np.maximum(interval, 1e-9), 0.0)
