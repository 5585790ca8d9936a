"""When each process of each trial comes, stops, and is missed: what the coordinator hears of it, and when."""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.changes import CRASH, CUT, FREEZE, GRACEFUL, SILENT
from planner.forecast.common.delay_ranges import DelayRange, draw_evenly, draw_tailed
from planner.forecast.kafka.membership.network_recovery import arrival_s, patience_s
from planner.forecast.kafka.membership.poll_loops import PollLoops
from planner.forecast.kafka.membership.scenario import Booleans, Floats, Scenario
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
class ProcessTimes:
    """Seconds since the change, one row a trial, one column a process.

    ``arrives``: its first request to join reaches the coordinator (ALWAYS for those that run before). ``ends``: it gets
    the signal to close, or dies (NEVER for those that stay). ``stops``: its last delivery. ``leaves``: the coordinator
    drops it. ``suspended_at`` to ``resumed_at`` it does nothing, and gets records again at ``reads``. ``unsaved_s``:
    how old its last commit is when it dies or is suspended without one. ``beat``: a moment at which it sends a
    heartbeat.

    ``interval``: how far its heartbeats lie apart. By trial, in one column: ``busy``, from 0 to 1, how much gets in the
    way of whatever is done: what keeps one member waiting, a machine or a network, keeps the others waiting, too.
    """

    arrives: Floats
    ends: Floats
    stops: Floats
    leaves: Floats
    suspended_at: Floats
    resumed_at: Floats
    reads: Floats
    unsaved_s: Floats
    beat: Floats
    interval: Floats
    busy: Floats

    @property
    def outlives(self) -> Booleans:
        """Return where a process's session outlives its suspension."""
        return np.isfinite(self.suspended_at) & np.isposinf(self.leaves)

    def delay(self, random: np.random.Generator, bounds: DelayRange) -> Floats:
        """Return by trial and process a delay between two bounds, near the lower one in a trial in which little is
        busy."""
        return bounds[0] + (bounds[1] - bounds[0]) * self.busy * random.random(self.arrives.shape)


def beat_intervals_s(scenario: Scenario) -> Floats:
    """Return the seconds between two heartbeats of each process."""
    settings = scenario.request.settings
    classic, server = (settings.seconds(f"{name}heartbeat.interval.ms") for name in ("", "group.consumer."))
    return np.where(scenario.by_server, server, classic)


def session_s(scenario: Scenario, process: int) -> float:
    """Return the seconds after which the coordinator gives up a silent process."""
    is_classic = not scenario.processes[process].is_server_side
    return scenario.request.settings.seconds(f"{'' if is_classic else 'group.consumer.'}session.timeout.ms")


def process_times(
    scenario: Scenario,
    names: Names,
    poll_loops: PollLoops,
    calibration: Calibration,
    random: np.random.Generator,
    beats: np.random.Generator,
) -> ProcessTimes:
    """Return the times of every process in every trial."""
    shape = (scenario.request.trials, len(scenario.processes))
    stops, leaves, suspended_at, resumed_at = (np.full(shape, NEVER) for _ in range(4))
    busy = beats.random((shape[0], 1)) ** CALM
    interval = beat_intervals_s(scenario) + calibration.beat_late_s[0] + np.ptp(calibration.beat_late_s) * busy
    beat, unsaved = _beats(scenario, interval, calibration, beats), _unsaved(scenario, poll_loops, calibration, random)
    _begin_anew(scenario, beat, calibration, beats)
    ends = _ends(scenario, names, random)
    arrives = np.full(shape, ALWAYS)
    times = ProcessTimes(
        arrives, ends, stops, leaves, suspended_at, resumed_at, resumed_at.copy(), unsaved, beat, interval, busy
    )
    suspended = [NEVER if process.suspended_s is None else process.suspended_s for process in scenario.processes]
    end_of_loop = poll_loops.until_poll(random, np.minimum(ends, suspended))
    closing, starting = (draw_tailed(random, bounds, shape) for bounds in (calibration.close_s, calibration.start_s))
    for index, process in enumerate(scenario.processes):
        if process.starts_s is not None and process.replaces is None:
            earliest = process.starts_s if process.follows is None else stops[:, process.follows]
            times.arrives[:, index] = np.maximum(process.starts_s, earliest) + starting[:, index]
            if process.follows is not None and _announces_leaving(
                scenario, process.follows
            ):  # it has said so before it ended
                times.arrives[:, index] = np.maximum(times.arrives[:, index], leaves[:, process.follows])
        if process.how == CUT:
            _cut(scenario, times, index, calibration, random)
        elif process.ends_s is not None or process.suspended_s is not None:
            _end(scenario, times, index, end_of_loop[:, index], closing[:, index], starting[:, index])
        if process.follows is not None and scenario.members[process.member].instance_id is not None:
            leaves[:, process.follows] = times.arrives[:, index]  # it takes the other one's place
        if process.replaces is not None:
            expired = np.isfinite(leaves[:, process.replaces])
            times.arrives[:, index] = np.where(expired, resumed_at[:, process.replaces] + closing[:, index], NEVER)
    return times


def _ends(scenario: Scenario, names: Names, random: np.random.Generator) -> Floats:
    """Return when each process ends; whose turn it is in a rolling update is any order (``ActivePodsWithRanks``)."""
    ends = np.tile(
        [NEVER if process.ends_s is None else process.ends_s for process in scenario.processes],
        (scenario.request.trials, 1),
    )
    if isinstance(scenario.request.change, RollingUpdate):
        old = list(scenario.initial)
        draw = names.streams(MOST_ORDERS)
        ends[:, old] = random.permuted(ends[: draw.max() + 1, old], axis=1)[draw]
    return ends


def _end(
    scenario: Scenario, times: ProcessTimes, index: int, end_of_loop: Floats, closing: Floats, starting: Floats
) -> None:
    """Fill in when one process stops, leaves, or is suspended and resumes."""
    process = scenario.processes[index]
    stop = times.ends[:, index] if process.suspended_s is None else np.full(len(times.stops), process.suspended_s)
    is_graceful = process.how == GRACEFUL
    # A session runs from the last word of its member. A graceful end of a static one is its last commit, and its leave
    # by the consumer protocol is none (``consumerGroupStaticMemberGroupLeave``, 4.3).
    commits = is_graceful and not scenario.classic_members[index] and not process.is_server_side
    expires = session_s(scenario, index) + (stop + end_of_loop if commits else _last_sign(scenario, times, index, stop))
    if is_graceful:
        stop, times.unsaved_s[:, index] = stop + end_of_loop, 0.0
    if process.resumed_s is None:
        times.stops[:, index] = stop
        times.leaves[:, index] = stop + closing if _announces_leaving(scenario, index) else expires
        return
    # Who restarts at once does so when its loop has ended.
    back = process.resumed_s if process.how == FREEZE else np.maximum(process.resumed_s, stop) + starting
    times.suspended_at[:, index] = stop
    times.resumed_at[:, index] = times.reads[:, index] = np.maximum(back, stop)
    if process.is_server_side and process.how in (CRASH, SILENT):
        # UNRELEASED_INSTANCE_ID: the broker refuses a second process until the first one's session is over.
        times.resumed_at[:, index] = times.reads[:, index] = np.maximum(times.resumed_at[:, index], expires + starting)
    _expire(times, index, stop, expires)


def _announces_leaving(scenario: Scenario, index: int) -> bool:
    """Return whether a process that ends notifies the coordinator that it leaves: static ones do not."""
    process = scenario.processes[index]
    return process.how == GRACEFUL and scenario.members[process.member].instance_id is None


def _expire(times: ProcessTimes, index: int, stop: Floats, expires: Floats) -> None:
    """Let the coordinator drop a process that has not resumed when its session ends."""
    expired = expires < times.resumed_at[:, index]
    times.leaves[:, index] = np.where(expired, expires, NEVER)
    times.stops[:, index] = np.where(expired, stop, NEVER)


def _cut(
    scenario: Scenario, times: ProcessTimes, index: int, calibration: Calibration, random: np.random.Generator
) -> None:
    """Fill in when a process that is cut off is heard again, and when it gets records again.

    It has a connection of its own to the coordinator (``ConsumerCoordinator``), on which heartbeats and commits go. The
    classic Java client closes that one when its session is over by its own clock (``Heartbeat#sessionTimeoutExpired``).
    """
    process, settings, trials = scenario.processes[index], scenario.request.settings, len(times.stops)
    assert process.suspended_s is not None
    assert process.resumed_s is not None
    for_s, stop = process.resumed_s - process.suspended_s, np.full(trials, process.suspended_s)
    beat, interval = times.beat[:, index], times.interval[:, index]
    speaks = beat + np.ceil((stop - beat) / interval) * interval - stop
    if settings.is_on("enable.auto.commit"):
        speaks = np.minimum(speaks, settings.seconds("auto.commit.interval.ms") * random.random(trials))
    patience, session = patience_s(settings, is_java=scenario.request.is_java), session_s(scenario, index)
    expires = session + _last_sign(scenario, times, index, stop)
    watches = scenario.request.is_java and not process.is_server_side
    closes = np.minimum(speaks + patience, expires - stop if watches else NEVER)
    anew, rediscovered = (
        draw_evenly(random, bounds, (trials,)) for bounds in (calibration.reconnected_s, calibration.rediscovered_s)
    )
    opens = np.where(closes < speaks + patience, rediscovered, anew)
    asked = calibration.answered_s * random.random(trials)
    times.suspended_at[:, index] = stop
    times.resumed_at[:, index] = stop + arrival_s(speaks, for_s, closes, opens, calibration, random)
    times.reads[:, index] = stop + arrival_s(asked, for_s, asked + patience, anew, calibration, random)
    _expire(times, index, stop, expires)


def _last_sign(scenario: Scenario, times: ProcessTimes, process: int, silent: Floats) -> Floats:
    """Return when the coordinator last heard of a process that falls silent: heartbeat, or commit of a classic member.

    A commit starts the classic session anew (``rescheduleClassicGroupMemberHeartbeat``), in a classic group.
    """
    interval, beat = times.interval[:, process], times.beat[:, process]
    last: Floats = beat + np.floor((silent - beat) / interval) * interval
    if scenario.processes[process].is_server_side or scenario.classic_members[process]:
        return last
    return np.maximum(last, silent - times.unsaved_s[:, process])


def _beats(scenario: Scenario, interval: Floats, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return a heartbeat of each process before the change, less than an interval ago.

    The end of a round sets all members' clocks to one moment; from then on they drift apart (3.5 Observed). Members of
    the consumer protocol are never set together.
    """
    trials, shape = scenario.request.trials, (scenario.request.trials, len(scenario.processes))
    if scenario.request.protocol != CLASSIC:
        return -random.random(shape) * interval
    ages = np.exp(random.uniform(np.log(YOUNGEST_AGE_S), np.log(LONGEST_AGE_S), (trials, 1)))
    if scenario.request.since_rebalance_s is not None:
        ages = scenario.request.since_rebalance_s + draw_tailed(random, calibration.assigned_s, (trials, 1))
    drift = random.standard_normal(shape) * calibration.beat_jitter_s * np.sqrt(np.floor(ages / interval))
    return -((ages - drift) % interval)


def _begin_anew(scenario: Scenario, beat: Floats, calibration: Calibration, random: np.random.Generator) -> None:
    """Let heartbeats begin anew with the first restart of those who are restarted in their place twice."""
    for index, process in enumerate(scenario.processes):
        if process.rested_s is not None:
            beat[:, index] = process.rested_s + draw_tailed(random, calibration.start_s, (len(beat),))


def _unsaved(
    scenario: Scenario, poll_loops: PollLoops, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return how old the last commit of each process is, at any moment.

    By itself it commits in the first poll after ``auto.commit.interval.ms``, counted from the last assignment; else
    after each poll, so that what is in hand is missing. A commit names the positions of its poll: its way to the broker
    makes it no older, unless its member dies in these milliseconds.
    """
    shape, request = (scenario.request.trials, len(scenario.processes)), scenario.request
    late = draw_evenly(random, calibration.commit_jitter_s, shape)
    if not request.settings.is_on("enable.auto.commit"):
        return poll_loops.batch_s * np.where(poll_loops.busy < 1, 1.0, random.random(shape))
    interval = (
        request.settings.seconds("auto.commit.interval.ms")
        + np.where(poll_loops.busy < 1, 0.0, poll_loops.batch_s)
        + late
    )
    since = request.since_rebalance_s
    if since is None or request.protocol != CLASSIC:
        return interval * random.random(shape)
    ages = since + draw_tailed(random, calibration.assigned_s, shape)
    return np.where(interval > 0, ages % np.maximum(interval, 1e-9), 0.0)
