"""The classic protocol: rounds with a join barrier (3.2), played for all trials at once.

A round begins with a trigger. Members learn of it by their next heartbeat and rejoin in their next poll; the
coordinator answers when all have rejoined, left, or been waited for long enough; then the leader assigns.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from planner.forecast.kafka.handover.assignments import first_side
from planner.forecast.kafka.handover.rebalance_context import Scene
from planner.forecast.kafka.handover.sync_group import Syncs, find_syncs, find_unheard
from planner.forecast.kafka.handover.tenures import Course, HoldBook, RoundTimes
from planner.forecast.kafka.membership.process_times import ALWAYS, NEVER
from planner.forecast.kafka.membership.scenario import AFTER, NOBODY, Booleans, Floats, Indexes, World

_ROUNDS_A_LIFE = 8


@dataclass(slots=True)
class _Group:
    """The coordinator's view while the rounds are played, by trial (and life).

    ``prepared``: its last commit before it rejoined; ``deaf``: it did not hear what the last round decided; ``loses``:
    the coordinator does not know its generation, so that it drops all it has, without a commit, as it hears of that.
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
    deaf: Booleans
    loses: Booleans
    rounds: list[RoundTimes] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Interrupted:
    """A classic group in the midst of its rounds, by trial (and life): open holds, who is in and who out for good.

    ``rejoins``: when who is in hears of the round that is not over, NEVER where there is none. ``loses``: who is not of
    the group's generation.
    """

    book: HoldBook
    inside: Booleans
    gone: Booleans
    beat: Floats
    state: Indexes
    rejoins: Floats
    loses: Booleans


def play_rounds(scene: Scene) -> Course:
    """Return the course of a classic group."""
    group, book = _begin(scene)
    if scene.world.expands:
        _learn_partitions(scene, group)
    for _ in range(_ROUNDS_A_LIFE * (len(scene.world.lives) + 1)):
        _take_places(scene, group, book)
        found = _next_round(scene, group)
        if not found.played.any():
            break
        _finish_round(scene, group, found, book)
    return Course(book.close(scene.times.stops, scene.times.unsaved_s), group.state, tuple(group.rounds))


def play_rounds_until(scene: Scene, until: Floats) -> Interrupted:
    """Return a classic group at a moment of each trial; members of the consumer protocol have no part in it so far."""
    group, book = _begin(scene)
    group.arrives = np.where(scene.world.by_server, NEVER, group.arrives)
    rejoins, is_broken_off = np.full(group.arrives.shape, NEVER), np.zeros(len(until), dtype=bool)
    for _ in range(_ROUNDS_A_LIFE * (len(scene.world.lives) + 1)):
        found = _next_round(scene, group)
        is_over = found.played & ~is_broken_off & (found.barrier <= until)
        breaks_off = found.played & ~is_broken_off & ~is_over & (found.begins < until)
        rejoins = np.where(breaks_off[:, None] & group.inside, found.joins, rejoins)
        is_broken_off |= breaks_off
        if not is_over.any():
            break
        found = replace(found, played=is_over, barrier=np.where(is_over, found.barrier, NEVER))
        _finish_round(scene, group, found, book)
    return Interrupted(book, group.inside, group.gone, group.beat, group.state, rejoins, group.loses)


def play_rounds_since(scene: Scene, found: Interrupted, since: Floats) -> Course:
    """Return the course of a group that is a classic one from a moment of each trial on, NEVER where it never is.

    The leave that makes it one makes all others rejoin. Who is not of its generation hears of that by a commit, too.
    """
    group, _ = _begin(scene)
    group.inside, group.gone, group.beat, group.state = found.inside, found.gone, found.beat, found.state
    group.done = since
    if found.loses.any():
        _lose(scene, group, found.loses, since)
    for _ in range(_ROUNDS_A_LIFE * (len(scene.world.lives) + 1)):
        round_ = _next_round(scene, group)
        if not round_.played.any():
            break
        _finish_round(scene, group, round_, found.book)
    return Course(found.book.close(scene.times.stops, scene.times.unsaved_s), group.state, tuple(group.rounds))


def _begin(scene: Scene) -> tuple[_Group, HoldBook]:
    """Return a group at rest and its open holds."""
    world, times = scene.world, scene.times
    trials, shape = world.request.trials, times.arrives.shape
    inside = np.isneginf(times.arrives)
    group = _Group(
        inside,
        np.zeros(shape, dtype=bool),
        times.arrives.copy(),
        np.full(shape, NEVER),
        times.beat.copy(),
        np.full(trials, ALWAYS),
        np.zeros(trials, dtype=np.intp),
        np.full(trials, first_side(world), dtype=np.intp),
        np.full(shape, NEVER),
        np.zeros(shape, dtype=bool),
        np.zeros(shape, dtype=bool),
    )
    return group, HoldBook(scene.holders(), trials)


def _learn_partitions(scene: Scene, group: _Group) -> None:
    """Let the leader, one of the members, find out by its next look at the metadata (3.2: only it watches counts)."""
    settings, is_java = scene.world.request.settings, scene.world.request.is_java
    age = settings.seconds("metadata.max.age.ms" if is_java else "topic.metadata.refresh.interval.ms")
    trials, initial = len(group.state), np.array(scene.world.initial, dtype=np.intp)
    if len(initial):
        leader = initial[scene.random.integers(0, len(initial), trials)]
        group.wants[np.arange(trials), leader] = scene.random.uniform(0, age, trials)
    group.side[:] = AFTER


def _take_places(scene: Scene, group: _Group, book: HoldBook) -> None:
    """Let static members that come again before the next round take the places of their former processes.

    Nobody notices while the group would choose the same assignor (``updateStaticMemberThenRebalanceOrCompleteJoin``,
    4.3). Else it is a round like any other.
    """
    for new, old in scene.world.heirs.items():
        at, others = scene.times.arrives[:, new], np.minimum(*_events(scene, group))
        others[:, [new, old]] = NEVER
        inside = group.inside.copy()
        inside[:, [new, old]] = [True, False]
        quiet = group.inside[:, old] & (at < others.min(axis=1)) & scene.assignments.keeps_assignor(group.state, inside)
        if not quiet.any():
            continue
        mine = quiet[:, None] & (book.life == old)
        stops = np.broadcast_to(scene.times.stops[:, [old]], mine.shape)
        book.end(mine, stops, stops - scene.times.unsaved_s[:, [old]])
        book.begin(mine, np.full(mine.shape, new), at[:, None] + scene.trips(mine.shape))
        group.inside = np.where(quiet[:, None], inside, group.inside)
        group.gone[:, old] |= quiet
        group.beat[:, new] = np.where(quiet, at, group.beat[:, new])
        succeeded = scene.assignments.succeeded(group.state, old, new)
        group.state = np.where(quiet, succeeded, group.state)


def _events(scene: Scene, group: _Group) -> tuple[Floats, Floats]:
    """Return when each life outside comes, and when each one inside leaves or wants another round."""
    comes = np.where(~group.inside & ~group.gone, group.arrives, NEVER)
    return comes, np.where(group.inside, np.minimum(scene.times.leaves, group.wants), NEVER)


def _next_round(scene: Scene, group: _Group) -> RoundTimes:
    """Return the next round of each trial that has one, up to its barrier."""
    times, shape = scene.times, group.inside.shape
    comes, calls = _events(scene, group)
    trigger = np.minimum(comes, calls).min(axis=1)
    played = np.isfinite(trigger)
    begins = np.maximum(np.where(played, trigger, 0.0), np.where(played, group.done, 0.0))
    trip = scene.trips(shape)
    beats = np.maximum(np.ceil((begins[:, None] - group.beat) / times.interval), 1.0)
    told = group.beat + beats * times.interval + scene.draw(scene.calibration.told_s, shape)
    told = np.maximum(told, begins[:, None]) + trip
    told = told + scene.in_hand(told)
    at = np.where(np.isfinite(group.wants), np.maximum(group.wants, begins[:, None]), told)
    at = np.where(group.loses, np.minimum(at, told), at)
    asleep = (times.sleeps <= at) & (at < times.wakes)
    at = np.where(asleep, times.wakes, at) + trip
    joins = np.where(group.inside & (at < times.stops), at, NEVER)
    limit = begins + scene.world.request.settings.seconds("max.poll.interval.ms")
    ready = np.minimum(np.minimum(joins, times.leaves), limit[:, None])
    barrier = np.where(group.inside, ready, begins[:, None]).max(axis=1)
    is_empty = ~group.inside.any(axis=1)
    barrier = np.where(is_empty, _first_barrier(scene.world, begins, comes), barrier)
    return RoundTimes(played, begins, joins, np.where(played, barrier, NEVER))


def _first_barrier(world: World, begins: Floats, comes: Floats) -> Floats:
    """Return when an empty group has waited long enough for more members (``group.initial.rebalance.delay.ms``).

    Whoever comes within a window opens another one, up to the rebalance time-out (3.2 step 5).
    """
    settings = world.request.settings
    delay = settings.seconds("group.initial.rebalance.delay.ms")
    most = begins + max(delay, settings.seconds("max.poll.interval.ms"))
    start, end = begins, begins + delay
    for _ in range(comes.shape[1]):
        more = ((comes > start[:, None]) & (comes <= end[:, None])).any(axis=1)
        if not more.any() or delay == 0:
            break
        start, end = np.where(more, end, start), np.where(more, np.minimum(end + delay, most), end)
    return end


def _finish_round(scene: Scene, group: _Group, found: RoundTimes, book: HoldBook) -> None:
    """Let the leader assign, and every member drop and take what that means for it."""
    assignments = scene.assignments
    played, barrier = found.played[:, None], found.barrier[:, None]
    left = group.inside & (scene.times.leaves <= barrier)
    stays = group.inside & ~left & (found.joins <= barrier)
    comes = ~group.inside & ~group.gone & (group.arrives <= barrier)
    late = group.inside & ~left & ~stays
    # Who missed the barrier is out, and comes again once it polls; a dead one never does.
    group.arrives = np.where(played & late, found.joins, group.arrives)
    group.gone |= played & (left | late & ~np.isfinite(found.joins))
    group.inside = np.where(played, stays | comes, group.inside)
    # The answers to JoinGroup set all clocks to one moment.
    group.beat = np.where(played & group.inside, barrier, group.beat)
    # Who has not heard of the last round has not gone on since it committed for it.
    group.prepared = np.where(played & ~(group.deaf | group.loses), found.joins, group.prepared)
    syncs = find_syncs(scene, group.inside, np.where(found.played, found.barrier, 0.0))
    claimed = assignments.forgotten(group.state, group.loses)
    after, revokes = assignments.play(claimed, group.inside, scene.names.of_trial, group.side)
    rejoins = syncs.synced + scene.trips(revokes.shape)
    deaf = find_unheard(syncs, group.inside & played, revokes & played, rejoins)
    heard = group.inside & ~deaf
    group.done = np.where(found.played, np.where(heard, syncs.synced, barrier).max(axis=1), group.done)
    group.wants = np.where(played, NEVER, group.wants)
    group.wants = np.where(revokes & heard & played, rejoins, np.where(deaf, syncs.asks, group.wants))
    group.deaf = np.where(played, deaf, group.deaf)
    group.state = np.where(found.played, assignments.unheard(group.state, after, deaf), group.state)
    _hand_over(scene, group, found, syncs, book)
    group.loses = group.loses & ~played
    group.rounds.append(found)


def _hand_over(scene: Scene, group: _Group, found: RoundTimes, syncs: Syncs, book: HoldBook) -> None:
    """End the holds that a round ends, and begin those that it gives."""
    world, times = scene.world, scene.times
    owners = scene.assignments.owners_in(group.state)
    owners = np.where(found.played[:, None], owners, book.life)
    held, cooperates = np.maximum(book.life, 0), np.array([life.is_cooperative for life in world.lives])

    def of_holder(values: Floats) -> Floats:
        return np.take_along_axis(values, held, axis=1)

    stays = np.take_along_axis(group.inside & np.isfinite(found.joins), held, axis=1)
    loses = np.take_along_axis(group.loses, held, axis=1)
    keeps = stays & cooperates[held] & ~loses
    ends = found.played[:, None] & (book.life != NOBODY) & ~(keeps & (owners == book.life))
    stops, joins = of_holder(times.stops), of_holder(found.joins)
    # Eager members stop as they rejoin; cooperative ones when they hear what they lose; others at their own end, or,
    # where they do not know yet that they are out, at their next poll.
    dropped = np.where(stays, np.where(keeps, of_holder(syncs.synced), joins), np.minimum(stops, joins))
    saved = np.where(
        stays,
        np.where(loses | keeps & ~commits_last(world), of_holder(group.prepared), dropped),
        dropped - of_holder(times.unsaved_s),
    )
    book.end(ends, dropped, saved)
    begins = found.played[:, None] & (owners != NOBODY) & (book.life == NOBODY)
    book.begin(begins, owners, np.take_along_axis(syncs.synced, np.maximum(owners, 0), axis=1))


def _lose(scene: Scene, group: _Group, loses: Booleans, since: Floats) -> None:
    """Let members whose generation is refused from a moment on hear of it by their next commit, if not by a heartbeat.

    That commit fails, so that the one before is their last.
    """
    last = since[:, None] - scene.times.unsaved_s
    due = last + _between_commits(scene.world) + scene.draw(scene.calibration.commit_jitter_s, last.shape)
    group.loses = loses & np.isfinite(last)
    group.prepared = np.where(group.loses, last, group.prepared)
    group.wants = np.where(group.loses, np.maximum(due, since[:, None]), group.wants)


def _between_commits(world: World) -> float:
    """Return the seconds between two commits of a member, 0 where its application commits after each poll."""
    settings = world.request.settings
    return settings.seconds("auto.commit.interval.ms") if settings.is_on("enable.auto.commit") else 0.0


def commits_last(world: World) -> bool:
    """Return whether a cooperative member has committed what it delivered when it hands a partition over.

    The Java client commits by itself only as it rejoins (``onJoinPrepare``), not as it revokes, and refuses commits of
    the application in between (``RebalanceInProgressException``); librdkafka commits what it revokes
    (``rdkafka_assignment.c``).
    """
    return not world.request.is_java or world.request.commits_on_revoke
