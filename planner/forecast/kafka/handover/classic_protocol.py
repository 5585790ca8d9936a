"""The classic protocol: rounds with a join barrier (3.2), played for all trials at once.

A round begins with a trigger. Members learn of it by their next heartbeat and rejoin in their next poll; the
coordinator answers when all have rejoined, left, or been waited for long enough; then the leader assigns.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from planner.forecast.kafka.handover.assignments import first_side
from planner.forecast.kafka.handover.rebalance_context import RebalanceContext
from planner.forecast.kafka.handover.sync_group import Syncs, find_missed_syncs, find_syncs
from planner.forecast.kafka.handover.tenures import MembershipTimeline, RoundTimes, TenureLog
from planner.forecast.kafka.membership.process_times import ALWAYS, NEVER
from planner.forecast.kafka.membership.scenario import AFTER, NOBODY, Booleans, Floats, Indexes, Scenario
from planner.forecast.kafka.request.changes import TopicCreated

_ROUNDS_A_PROCESS = 8


@dataclass(slots=True)
class _Group:
    """The coordinator's view while the rounds are played, by trial (and process).

    ``prepared``: its last commit before it rejoined; ``missed_sync``: it did not hear what the last round decided;
    ``fenced``: the coordinator does not know its generation, so that it drops all it has, without a commit, as it hears
    of that.
    """

    inside: Booleans
    gone: Booleans
    arrives: Floats
    wants: Floats
    beat: Floats
    done: Floats
    state: Indexes
    side: Indexes
    prepared: Floats
    missed_sync: Booleans
    fenced: Booleans
    rounds: list[RoundTimes] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Interrupted:
    """A classic group in the midst of its rounds, by trial (and process): open tenures, which members are in, and which
    are out for good.

    ``rejoins``: when a member that is in hears of the round that is not over, NEVER where there is none. ``fenced``:
    not of the group's generation.
    """

    log: TenureLog
    inside: Booleans
    gone: Booleans
    beat: Floats
    state: Indexes
    rejoins: Floats
    fenced: Booleans


def play_rounds(context: RebalanceContext) -> MembershipTimeline:
    """Return the membership over time of a classic group."""
    group, log = _begin(context)
    if context.scenario.expands:
        _learn_partitions(context, group)
    for _ in range(_ROUNDS_A_PROCESS * (len(context.scenario.processes) + 1)):
        _fill_slots(context, group, log)
        played_round = _next_round(context, group)
        if not played_round.played.any():
            break
        _finish_round(context, group, played_round, log)
    return MembershipTimeline(log.close(context.times.stops, context.times.unsaved_s), group.state, tuple(group.rounds))


def play_rounds_until(context: RebalanceContext, until: Floats) -> Interrupted:
    """Return a classic group at a moment of each trial; members of the consumer protocol have no part in it so far."""
    group, log = _begin(context)
    group.arrives = np.where(context.scenario.by_server, NEVER, group.arrives)
    rejoins, is_broken_off = np.full(group.arrives.shape, NEVER), np.zeros(len(until), dtype=bool)
    for _ in range(_ROUNDS_A_PROCESS * (len(context.scenario.processes) + 1)):
        played_round = _next_round(context, group)
        is_over = played_round.played & ~is_broken_off & (played_round.barrier <= until)
        breaks_off = played_round.played & ~is_broken_off & ~is_over & (played_round.begins < until)
        rejoins = np.where(breaks_off[:, None] & group.inside, played_round.joins, rejoins)
        is_broken_off |= breaks_off
        if not is_over.any():
            break
        played_round = replace(played_round, played=is_over, barrier=np.where(is_over, played_round.barrier, NEVER))
        _finish_round(context, group, played_round, log)
    return Interrupted(log, group.inside, group.gone, group.beat, group.state, rejoins, group.fenced)


def play_rounds_since(context: RebalanceContext, interrupted: Interrupted, since: Floats) -> MembershipTimeline:
    """Return the membership over time of a group that is a classic one from a moment of each trial on, NEVER where it
    never is.

    The leave that makes it one makes all others rejoin. A member of another generation hears of that by a commit, too.
    """
    group, _ = _begin(context)
    group.inside, group.gone, group.beat, group.state = (
        interrupted.inside,
        interrupted.gone,
        interrupted.beat,
        interrupted.state,
    )
    group.done = since
    if interrupted.fenced.any():
        _lose(context, group, interrupted.fenced, since)
    for _ in range(_ROUNDS_A_PROCESS * (len(context.scenario.processes) + 1)):
        round_ = _next_round(context, group)
        if not round_.played.any():
            break
        _finish_round(context, group, round_, interrupted.log)
    return MembershipTimeline(
        interrupted.log.close(context.times.stops, context.times.unsaved_s), group.state, tuple(group.rounds)
    )


def _begin(context: RebalanceContext) -> tuple[_Group, TenureLog]:
    """Return a group at rest and its open tenures."""
    scenario, times = context.scenario, context.times
    trials, shape = scenario.request.trials, times.arrives.shape
    inside = np.isneginf(times.arrives)
    group = _Group(
        inside,
        np.zeros(shape, dtype=bool),
        times.arrives.copy(),
        np.full(shape, NEVER),
        times.beat.copy(),
        np.full(trials, ALWAYS),
        np.zeros(trials, dtype=np.intp),
        np.full(trials, first_side(scenario), dtype=np.intp),
        np.full(shape, NEVER),
        np.zeros(shape, dtype=bool),
        np.zeros(shape, dtype=bool),
    )
    return group, TenureLog(context.holders(), trials)


def _learn_partitions(context: RebalanceContext, group: _Group) -> None:
    """Let the leader, one of the members, find out by its next check of the metadata (3.2: only it watches counts).

    A topic that a pattern matches each member finds by its own check (``ConsumerCoordinator#rejoinNeededOrPending``);
    all others check anew as they rejoin, so that the first one's round is the only one.
    """
    settings, is_java = context.scenario.request.settings, context.scenario.request.is_java
    age = settings.seconds("metadata.max.age.ms" if is_java else "topic.metadata.refresh.interval.ms")
    trials, initial = len(group.state), np.array(context.scenario.initial, dtype=np.intp)
    if isinstance(context.scenario.request.change, TopicCreated):
        finds = context.random.uniform(0, age, (trials, len(initial)))
        group.wants[np.arange(trials), initial[finds.argmin(axis=1)]] = finds.min(axis=1)
    elif len(initial):
        leader = initial[context.random.integers(0, len(initial), trials)]
        group.wants[np.arange(trials), leader] = context.random.uniform(0, age, trials)
    group.side[:] = AFTER


def _fill_slots(context: RebalanceContext, group: _Group, log: TenureLog) -> None:
    """Let static members that come again before the next round take the places of their former processes.

    Nobody notices while the group would choose the same assignor (``updateStaticMemberThenRebalanceOrCompleteJoin``,
    4.3). Else it is a round like any other.
    """
    for new, old in context.scenario.static_successors.items():
        at, others = context.times.arrives[:, new], np.minimum(*_events(context, group))
        others[:, [new, old]] = NEVER
        inside = group.inside.copy()
        inside[:, [new, old]] = [True, False]
        quiet = (
            group.inside[:, old] & (at < others.min(axis=1)) & context.assignments.keeps_assignor(group.state, inside)
        )
        if not quiet.any():
            continue
        mine = quiet[:, None] & (log.process == old)
        stops = np.broadcast_to(context.times.stops[:, [old]], mine.shape)
        log.end(mine, stops, stops - context.times.unsaved_s[:, [old]])
        log.begin(mine, np.full(mine.shape, new), at[:, None] + context.trips(mine.shape))
        group.inside = np.where(quiet[:, None], inside, group.inside)
        group.gone[:, old] |= quiet
        group.beat[:, new] = np.where(quiet, at, group.beat[:, new])
        succeeded = context.assignments.succeeded(group.state, old, new)
        group.state = np.where(quiet, succeeded, group.state)


def _events(context: RebalanceContext, group: _Group) -> tuple[Floats, Floats]:
    """Return when each process outside comes, and when each one inside leaves or wants another round."""
    comes = np.where(~group.inside & ~group.gone, group.arrives, NEVER)
    return comes, np.where(group.inside, np.minimum(context.times.leaves, group.wants), NEVER)


def _next_round(context: RebalanceContext, group: _Group) -> RoundTimes:
    """Return the next round of each trial that has one, up to its barrier."""
    times, shape = context.times, group.inside.shape
    comes, calls = _events(context, group)
    trigger = np.minimum(comes, calls).min(axis=1)
    played = np.isfinite(trigger)
    begins = np.maximum(np.where(played, trigger, 0.0), np.where(played, group.done, 0.0))
    trip = context.trips(shape)
    beats = np.maximum(np.ceil((begins[:, None] - group.beat) / times.interval), 1.0)
    notified_at = group.beat + beats * times.interval + context.draw(context.calibration.notified_s, shape)
    notified_at = np.maximum(notified_at, begins[:, None]) + trip
    notified_at = notified_at + context.in_hand(notified_at)
    at = np.where(np.isfinite(group.wants), np.maximum(group.wants, begins[:, None]), notified_at)
    at = np.where(group.fenced, np.minimum(at, notified_at), at)
    suspended = (times.suspended_at <= at) & (at < times.resumed_at)
    at = np.where(suspended, times.resumed_at, at) + trip
    joins = np.where(group.inside & (at < times.stops), at, NEVER)
    limit = begins + context.scenario.request.settings.seconds("max.poll.interval.ms")
    ready = np.minimum(np.minimum(joins, times.leaves), limit[:, None])
    barrier = np.where(group.inside, ready, begins[:, None]).max(axis=1)
    is_empty = ~group.inside.any(axis=1)
    barrier = np.where(is_empty, _first_barrier(context.scenario, begins, comes), barrier)
    return RoundTimes(played, begins, joins, np.where(played, barrier, NEVER))


def _first_barrier(scenario: Scenario, begins: Floats, comes: Floats) -> Floats:
    """Return when an empty group has waited long enough for more members (``group.initial.rebalance.delay.ms``).

    A member that comes within a window opens another one, up to the rebalance time-out (3.2 step 5).
    """
    settings = scenario.request.settings
    delay = settings.seconds("group.initial.rebalance.delay.ms")
    most = begins + max(delay, settings.seconds("max.poll.interval.ms"))
    start, end = begins, begins + delay
    for _ in range(comes.shape[1]):
        more = ((comes > start[:, None]) & (comes <= end[:, None])).any(axis=1)
        if not more.any() or delay == 0:
            break
        start, end = np.where(more, end, start), np.where(more, np.minimum(end + delay, most), end)
    return end


def _finish_round(context: RebalanceContext, group: _Group, played_round: RoundTimes, log: TenureLog) -> None:
    """Let the leader assign, and every member drop and take what that means for it."""
    assignments = context.assignments
    played, barrier = played_round.played[:, None], played_round.barrier[:, None]
    left = group.inside & (context.times.leaves <= barrier)
    stays = group.inside & ~left & (played_round.joins <= barrier)
    comes = ~group.inside & ~group.gone & (group.arrives <= barrier)
    late = group.inside & ~left & ~stays
    # Who missed the barrier is out, and comes again once it polls; a dead one never does.
    group.arrives = np.where(played & late, played_round.joins, group.arrives)
    group.gone |= played & (left | late & ~np.isfinite(played_round.joins))
    group.inside = np.where(played, stays | comes, group.inside)
    # The answers to JoinGroup set all clocks to one moment.
    group.beat = np.where(played & group.inside, barrier, group.beat)
    # Who has not heard of the last round has not gone on since it committed for it.
    group.prepared = np.where(played & ~(group.missed_sync | group.fenced), played_round.joins, group.prepared)
    syncs = find_syncs(context, group.inside, np.where(played_round.played, played_round.barrier, 0.0))
    claimed = assignments.forgotten(group.state, group.fenced)
    after, revokes = assignments.play(claimed, group.inside, context.names.of_trial, group.side)
    rejoins = syncs.synced + context.trips(revokes.shape)
    missed_sync = find_missed_syncs(syncs, group.inside & played, revokes & played, rejoins)
    rejoin_notified_at = group.inside & ~missed_sync
    group.done = np.where(
        played_round.played, np.where(rejoin_notified_at, syncs.synced, barrier).max(axis=1), group.done
    )
    group.wants = np.where(played, NEVER, group.wants)
    group.wants = np.where(
        revokes & rejoin_notified_at & played, rejoins, np.where(missed_sync, syncs.asks, group.wants)
    )
    group.missed_sync = np.where(played, missed_sync, group.missed_sync)
    group.state = np.where(played_round.played, assignments.without_sync(group.state, after, missed_sync), group.state)
    _hand_over(context, group, played_round, syncs, log)
    group.fenced = group.fenced & ~played
    group.rounds.append(played_round)


def _hand_over(
    context: RebalanceContext, group: _Group, played_round: RoundTimes, syncs: Syncs, log: TenureLog
) -> None:
    """End the tenures that a round ends, and begin those that it gives."""
    scenario, times = context.scenario, context.times
    owners = context.assignments.owners_in(group.state)
    owners = np.where(played_round.played[:, None], owners, log.process)
    holder, cooperates = (
        np.maximum(log.process, 0),
        np.array([process.is_cooperative for process in scenario.processes]),
    )

    def of_holder(values: Floats) -> Floats:
        return np.take_along_axis(values, holder, axis=1)

    stays = np.take_along_axis(group.inside & np.isfinite(played_round.joins), holder, axis=1)
    fenced = np.take_along_axis(group.fenced, holder, axis=1)
    keeps = stays & cooperates[holder] & ~fenced
    ends = played_round.played[:, None] & (log.process != NOBODY) & ~(keeps & (owners == log.process))
    stops, joins = of_holder(times.stops), of_holder(played_round.joins)
    # Eager members stop as they rejoin; cooperative ones when they hear what they lose; others at their own end, or,
    # where they do not know yet that they are out, at their next poll.
    revoked_at = np.where(stays, np.where(keeps, of_holder(syncs.synced), joins), np.minimum(stops, joins))
    saved = np.where(
        stays,
        np.where(fenced | keeps & ~commits_last(scenario), of_holder(group.prepared), revoked_at),
        revoked_at - of_holder(times.unsaved_s),
    )
    log.end(ends, revoked_at, saved)
    begins = played_round.played[:, None] & (owners != NOBODY) & (log.process == NOBODY)
    log.begin(begins, owners, np.take_along_axis(syncs.synced, np.maximum(owners, 0), axis=1))


def _lose(context: RebalanceContext, group: _Group, fenced: Booleans, since: Floats) -> None:
    """Let members whose generation is refused from a moment on hear of it by their next commit, if not by a heartbeat.

    That commit fails, so that the one before is their last.
    """
    last = since[:, None] - context.times.unsaved_s
    due = last + _between_commits(context.scenario) + context.draw(context.calibration.commit_jitter_s, last.shape)
    group.fenced = fenced & np.isfinite(last)
    group.prepared = np.where(group.fenced, last, group.prepared)
    group.wants = np.where(group.fenced, np.maximum(due, since[:, None]), group.wants)


def _between_commits(scenario: Scenario) -> float:
    """Return the seconds between two commits of a member, 0 where its application commits after each poll."""
    settings = scenario.request.settings
    return settings.seconds("auto.commit.interval.ms") if settings.is_on("enable.auto.commit") else 0.0


def commits_last(scenario: Scenario) -> bool:
    """Return whether a cooperative member has committed what it delivered when it hands a partition over.

    The Java client commits by itself only as it rejoins (``onJoinPrepare``), not as it revokes, and refuses commits of
    the application in between (``RebalanceInProgressException``); librdkafka commits what it revokes
    (``rdkafka_assignment.c``).
    """
    return not scenario.request.is_java or scenario.request.commits_on_revoke
